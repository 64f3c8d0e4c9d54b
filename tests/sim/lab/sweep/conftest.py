"""Sweeps that are quick: a few sessions, small chunks."""

from __future__ import annotations

import pytest


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> int:
    """Chunks of three sessions instead of hundreds."""
    monkeypatch.setattr("bargein.sim.lab.sweep.tasks.CHUNK", 3)
    return 3
