"""Live runs against real providers: with ``BARGEIN_LIVE_TESTS=1`` and a key only, and loosely judged.

    BARGEIN_LIVE_TESTS=1 ANTHROPIC_API_KEY=... pytest tests/live -n 0 -s

``BARGEIN_LIVE_SCENARIOS=1,2,6`` picks scenarios for all providers, ``GEMINI_SCENARIOS`` and its like for one;
``BARGEIN_LIVE_REPEATS=3`` makes each run three times.
"""

from __future__ import annotations

import os

import pytest

from tests.live.running import run_live, why_not


def _live(provider: str) -> None:
    reason = why_not(provider)
    if reason is not None:
        pytest.skip(reason)
    assert run_live(provider, os.environ).failures == []


def test_live_openrouter() -> None:
    _live("openrouter")


def test_live_anthropic() -> None:
    _live("anthropic")


def test_live_gemini() -> None:
    _live("gemini")


def test_live_gemini_live() -> None:
    reason = why_not("gemini_live")
    pytest.skip(reason or "speech to speech is a scripted provider here; there is no client for the real one")


def test_live_ollama() -> None:
    _live("ollama")
