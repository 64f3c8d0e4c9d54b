"""Live runs without a provider: the same calls, checks and lines, over HTTP on the loopback interface."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bargein import sim
from bargein.models.voice import speak
from bargein.sim.live.endpoints import Endpoint
from bargein.sim.live.fetch import Fetcher
from bargein.sim.live.recording import record
from bargein.sim.scenario.model import Round
from tests.live.calls import CALLS, S2S_CALLS, SENTENCE, check_of
from tests.live.running import GEMINI_SPACING_US, PROVIDERS, picked, run_live, why_not
from tests.sessions.record.loopback import KEY, Provider, serving
from tests.sessions.verification.scripts import BOOKING, SCENARIOS, SHAPES

pytest.importorskip("httpx", reason="live runs need httpx, the extra 'live'")

ROOT = Path(__file__).parents[2]
RESULT = re.compile(r"LIVE RESULT ([a-z_]+) scenario (\d+): (ok|FAILED) \(\d+\.\d s\)")
SWITCHED_OFF = "live runs are made with BARGEIN_LIVE_TESTS=1 only"


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def _rounds(number: int) -> tuple[Round, ...]:
    """What a model says that gets it right."""
    name = next(each for each in SCENARIOS if each.startswith(f"S{number}"))
    return sim.load(SCENARIOS[name](SHAPES["plain"])[0]).llm.rounds


def _environ(provider: Provider, **more: str) -> dict[str, str]:
    return {**provider.environ, "OLLAMA_MODEL": "m", **more}


# -- what a run prints --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", CALLS)
def test_a_good_model_passes_and_prints_rounds_tools_counters_speech_and_one_result(number: int) -> None:
    said: list[str] = []
    with serving("anthropic", _rounds(number)) as provider:
        report = run_live("anthropic", _environ(provider, ANTHROPIC_SCENARIOS=str(number)), said.append)

    assert report.failures == []
    assert [RESULT.fullmatch(line) is not None for line in said].count(True) == 1
    result = next(line for line in said if line.startswith("LIVE"))
    assert result.startswith(f"LIVE RESULT anthropic scenario {number}: ok (")
    assert said[0].startswith("round 1 (t1): first event ")
    shape = r"round \d+ \(t\d+\): first event \d+ ms, first text (\d+ ms|-), total \d+ ms, calls \d+, text \d+ bytes"
    rounds = [line for line in said if line.startswith("round ")]
    assert [line for line in rounds if re.fullmatch(shape, line) is None] == []
    assert len(rounds) == len(_rounds(number))
    tools = [line for line in said if line.startswith("tool ")]
    assert [t for t in tools if re.fullmatch(r"tool \w+ \(t\d\.\d\): start \d+ ms, finish \d+ ms, ok", t) is None] == []
    assert tools
    assert [line.partition(":")[0] for line in said if ":" in line].count("counters") == 1
    assert [line for line in said if line.startswith("spoken: ")]
    assert KEY not in "\n".join(said)


def test_a_lookup_that_an_interruption_drops_is_said_to_be_dropped() -> None:
    data = {**CALLS[5], "caller": [*CALLS[5]["caller"]]}
    data["caller"].append({"hang_up": True, "after": {"event": "tool.started", "by": "100ms"}})
    from bargein.sim.live.story import story_lines

    with serving("anthropic", _rounds(5)) as provider:
        result = record(sim.load(data), "anthropic", "m", environ=provider.environ).result

    assert [line for line in story_lines(result) if re.search(r": start \d+ ms, dropped \d+ ms, hang_up", line)]


def test_a_failed_run_says_what_was_wrong_and_failed() -> None:
    said: list[str] = []
    with serving("ollama", [Round(text="It is sunny everywhere.")]) as provider:
        report = run_live("ollama", _environ(provider, OLLAMA_SCENARIOS="1"), said.append)

    assert report.failures == ["scenario 1: 0 cities were looked up; wanted 3"]
    assert "wrong: 0 cities were looked up; wanted 3" in said
    assert [line[: line.index("(")] for line in said if RESULT.fullmatch(line)] == [
        "LIVE RESULT ollama scenario 1: FAILED "
    ]
    assert [row[:2] for row in report.rows] == [(1, "FAILED")]


def test_a_provider_that_cannot_be_reached_fails_each_scenario_without_its_address() -> None:
    said: list[str] = []
    with serving("ollama", ()) as provider:
        environ = _environ(provider, OLLAMA_SCENARIOS="1,5")

    report = run_live("ollama", environ, said.append)

    assert len(report.failures) == 2
    assert [RESULT.fullmatch(line) is not None for line in said].count(True) == 2
    assert KEY not in "\n".join(said)
    assert "127.0.0.1" not in "\n".join(said)


def test_a_call_that_is_written_as_text_ends_the_sixth_scenario_at_its_limit_with_a_clear_failure() -> None:
    text = '{"name": "book_table", "arguments": {"day": "friday", "people": 2}}'
    with serving("ollama", [Round(text=text)]) as provider:
        result = record(sim.load(CALLS[6]), "ollama", "m", environ=provider.environ).result

    assert result.tools == {} or result.tools["book_table"]["runs"] == 0
    assert result.heard == [text]
    assert (result.virtual_us, result.records[-1]["reason"]) == (120_000_000, "hang_up")
    assert check_of(6)(result) == [
        f"a call was read out: {text!r}",
        "the table was booked 0 times; wanted 1",
        "the booking is told 0 times; wanted 1",
    ]


def test_six_scenarios_three_times_are_eighteen_runs_with_a_median() -> None:
    said: list[str] = []
    rounds = [each for number in CALLS for _ in range(3) for each in _rounds(number)]
    with serving("ollama", rounds) as provider:
        report = run_live("ollama", _environ(provider, BARGEIN_LIVE_REPEATS="3"), said.append)

    assert report.failures == []
    assert [RESULT.fullmatch(line) is not None for line in said].count(True) == 18
    assert [line.startswith("table: ") for line in said].count(True) == 18
    assert re.fullmatch(r"first text p50: \d+ us over 18", said[-1])


# -- which runs are made ------------------------------------------------------------------------------------------


def test_one_variable_picks_for_all_and_each_provider_has_its_own() -> None:
    environ = {"BARGEIN_LIVE_SCENARIOS": "1,2,6", "GEMINI_SCENARIOS": "3", "OPENROUTER_SCENARIOS": ""}

    assert {provider: picked(provider, environ) for provider in PROVIDERS} == {
        "openrouter": [1, 2, 6],
        "anthropic": [1, 2, 6],
        "gemini": [3],
        "gemini_live": [1, 2],
        "ollama": [1, 2, 6],
    }
    assert picked("anthropic", {}) == [1, 2, 3, 4, 5, 6]
    assert [PROVIDERS[name].scenarios for name in PROVIDERS] == [
        "OPENROUTER_SCENARIOS",
        "ANTHROPIC_SCENARIOS",
        "GEMINI_SCENARIOS",
        "GEMINI_LIVE_SCENARIOS",
        "OLLAMA_SCENARIOS",
    ]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_run_needs_the_switch_one_worker_and_the_key(provider: str) -> None:
    needs = PROVIDERS[provider].needs
    ready = {"BARGEIN_LIVE_TESTS": "1", needs: KEY}

    assert why_not(provider, ready) is None
    for switch in ("", "0", "yes"):
        assert why_not(provider, {**ready, "BARGEIN_LIVE_TESTS": switch}) == SWITCHED_OFF
    assert why_not(provider, {**ready, needs: " "}) == f"{needs} is not set"
    assert why_not(provider, {**ready, "PYTEST_XDIST_WORKER": "gw0"}) == (
        "live runs are made one at a time; run pytest with -n 0"
    )


@pytest.mark.parametrize("switch", ["", "1"])
def test_without_switch_or_keys_all_five_skip_with_a_message_and_open_no_socket(switch: str) -> None:
    code = (
        "import socket, sys, pytest\n"
        "def refuse(*args, **keys): raise AssertionError('a socket was opened')\n"
        "socket.socket.connect = refuse\n"
        "sys.exit(pytest.main(['-rs', '-p', 'no:cacheprovider', 'tests/live/test_live.py']))"
    )
    environ = {"PATH": "", "BARGEIN_LIVE_TESTS": switch, "BARGEIN_OTHER_KEY": KEY}
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environ, capture_output=True, text=True)

    assert ran.returncode == 0, ran.stdout
    assert "5 skipped" in ran.stdout
    needed = ["OPENROUTER_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OLLAMA_MODEL"]
    wanted = needed if switch else [SWITCHED_OFF]
    assert [name for name in wanted if name not in ran.stdout] == []
    assert KEY not in ran.stdout + ran.stderr


def test_requests_to_gemini_are_thirteen_seconds_apart_and_others_are_not_kept_waiting() -> None:
    assert {name: live.spacing_us for name, live in PROVIDERS.items() if live.spacing_us} == {"gemini": 13_000_000}
    now = [0]
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += round(seconds * 1e9)

    with serving("openai", [Round(text="Hi.")] * 3) as provider:
        place = Endpoint("openai", "m", f"{provider.base_url}/chat/completions", {}, ())
        fetcher = Fetcher(place, spacing_us=GEMINI_SPACING_US, now_ns=lambda: now[0], sleep=sleep)
        for waited_us in (0, 3_000_000, 20_000_000):
            now[0] += waited_us * 1_000
            fetcher.fetch({})

    assert slept == [10.0]


# -- the calls ----------------------------------------------------------------------------------------------------


def test_the_live_calls_have_three_times_of_their_own() -> None:
    assert CALLS[5]["tools"]["order_status"]["latency"] == "1s"
    assert CALLS[5]["agent"]["filler"] == {"delay": "400ms"}
    assert CALLS[6]["tools"]["book_table"]["latency"] == "600ms"
    others = [CALLS[number]["agent"] for number in CALLS if number != 5]
    assert [sorted(agent) for agent in others] == [["system"]] * 5


@pytest.mark.parametrize("data", [*CALLS.values(), *S2S_CALLS.values()], ids=lambda data: data["scenario"])
def test_every_live_call_is_a_scenario(data: dict[str, Any]) -> None:
    assert sim.load(data).name == data["scenario"]


def test_a_wrong_booking_is_found_whatever_is_said() -> None:
    book = {"calls": [{"book_table": BOOKING}]}
    changed = {"calls": [{"book_table": {**BOOKING, "people": 3}}]}
    data = {**CALLS[3], "llm": [book, changed, {"text": "Done."}]}

    assert check_of(3)(sim.run(data)) == ["the table was booked 2 times; wanted 1"]


def test_the_sentence_for_speech_to_speech_is_spoken_and_its_prompts_lead_to_three_lookups_or_a_chain() -> None:
    spoken = speak("caller", SENTENCE)
    assert (spoken.text, len(spoken.words), spoken.length > 16_000) == (SENTENCE, 15, True)
    started: dict[int, list[tuple[str, ...]]] = {}
    for number, data in S2S_CALLS.items():
        calls = [{tool: {"of": "Comoros"}} for tool in data["tools"]]
        asked = [{"calls": calls}] if number == 1 else [{"calls": [call]} for call in calls]
        result = sim.run({**data, "llm": [*asked, {"text": "That is all."}]})
        assert result.violations == []
        at: dict[int, list[str]] = {}
        for record_ in result.records:
            if record_["kind"] == "tool.started":
                at.setdefault(record_["t"], []).append(record_["tool"])
        started[number] = [tuple(tools) for tools in at.values()]
    assert started == {
        1: [("get_area", "get_population", "get_climate")],
        2: [("get_country",), ("get_capital",), ("get_weather",)],
    }
