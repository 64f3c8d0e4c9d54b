"""Live runs: which are wanted, where, and what they print.

``test_live`` runs them against real providers when it is told to, ``test_dry_run`` against the loopback interface.
Left out: the calls and their checks (``calls``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from bargein import sim
from bargein.sim.live.endpoints import PLACES, endpoint
from bargein.sim.live.fetch import Fetcher
from bargein.sim.live.recording import record
from bargein.sim.live.story import median_us, result_line, story_lines, table_row
from bargein.sim.scenario.places import ScenarioError
from tests.live.calls import CALLS, check_of

__all__ = ["PROVIDERS", "Report", "picked", "run_live", "why_not"]

SWITCH = "BARGEIN_LIVE_TESTS"
SCENARIOS = "BARGEIN_LIVE_SCENARIOS"
REPEATS = "BARGEIN_LIVE_REPEATS"
GEMINI_SPACING_US = 13_000_000
"""Its free plan takes no more than that many requests a minute."""


@dataclass(frozen=True)
class Live:
    """A provider that live runs can be made with.

    Attributes:
        wire: its name in the catalogue; ``None`` for speech to speech.
        scenarios: the variable that picks its scenarios; ``model``: the one that names its model, if not this one.
        needs: what has to be set.
    """

    wire: str | None
    scenarios: str
    model: str
    needs: str
    default_model: str = ""
    spacing_us: int = 0


PROVIDERS: dict[str, Live] = {
    "openrouter": Live(
        "openrouter", "OPENROUTER_SCENARIOS", "OPENROUTER_MODEL", "OPENROUTER_API_KEY", "openai/gpt-4o-mini"
    ),
    "anthropic": Live("anthropic", "ANTHROPIC_SCENARIOS", "ANTHROPIC_MODEL", "ANTHROPIC_API_KEY", "claude-haiku-4-5"),
    "gemini": Live(
        "gemini", "GEMINI_SCENARIOS", "GEMINI_MODEL", "GEMINI_API_KEY", "gemini-2.5-flash", GEMINI_SPACING_US
    ),
    "gemini_live": Live(None, "GEMINI_LIVE_SCENARIOS", "GEMINI_LIVE_MODEL", "GEMINI_API_KEY"),
    # A local server needs no key; its model has to be named, since what is there differs.
    "ollama": Live("ollama", "OLLAMA_SCENARIOS", "OLLAMA_MODEL", "OLLAMA_MODEL"),
}


def why_not(provider: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """Why a live run cannot be made, or ``None``."""
    if environ.get(SWITCH) != "1":
        return f"live runs are made with {SWITCH}=1 only"
    if environ.get("PYTEST_XDIST_WORKER"):
        return "live runs are made one at a time; run pytest with -n 0"
    live = PROVIDERS[provider]
    if not environ.get(live.needs, "").strip():
        return f"{live.needs} is not set"
    return None


def picked(provider: str, environ: Mapping[str, str]) -> list[int]:
    """The scenarios that are wanted of a provider: its own variable's, else the common one's, else all."""
    live = PROVIDERS[provider]
    text = environ.get(live.scenarios) or environ.get(SCENARIOS) or ""
    known = (1, 2) if live.wire is None else tuple(CALLS)
    wanted = [int(each) for each in text.split(",") if each.strip()] or list(known)
    return [each for each in wanted if each in known]


@dataclass
class Report:
    """What a provider's live runs came to."""

    failures: list[str] = field(default_factory=list)
    rows: list[tuple[int, str, str, int]] = field(default_factory=list)
    first_text_us: list[int] = field(default_factory=list)


def run_live(provider: str, environ: Mapping[str, str], say: Callable[[str], Any] = print) -> Report:
    """Make the live runs of a provider, one at a time, and print what they show."""
    live = PROVIDERS[provider]
    assert live.wire in PLACES
    model = environ.get(live.model) or live.default_model
    fetcher = Fetcher(endpoint(live.wire, model, environ), spacing_us=live.spacing_us)
    report = Report()
    for number in picked(provider, environ):
        for _ in range(int(environ.get(REPEATS, "1"))):
            _run(provider, number, model, fetcher, environ, report, say)
    for row in report.rows:
        say("table: scenario {}, {}, first event of the issuing round {}, {} rounds".format(*row))
    say(f"first text p50: {median_us(report.first_text_us)} us over {len(report.first_text_us)}")
    return report


def _run(
    provider: str,
    number: int,
    model: str,
    fetcher: Fetcher,
    environ: Mapping[str, str],
    report: Report,
    say: Callable[[str], Any],
) -> None:
    wire = PROVIDERS[provider].wire
    assert wire is not None
    started = perf_counter()
    try:
        result = record(sim.load(CALLS[number]), wire, model, environ=environ, fetcher=fetcher).result
    except ScenarioError as error:
        wrong = [str(error)]
        report.rows.append((number, "FAILED", "-", 0))
    else:
        wrong = check_of(number)(result) + [each.message for each in result.violations]
        for line in story_lines(result):
            say(line)
        report.rows.append((number, *table_row(result, not wrong)))
        trips: Any = getattr(result.opened.model, "round_trips", ())
        report.first_text_us += [trip.first_text_us for trip in trips if trip.first_text_us is not None]
    for each in wrong:
        say(f"wrong: {each}")
    report.failures += [f"scenario {number}: {each}" for each in wrong]
    say(result_line(provider, number, not wrong, perf_counter() - started))
