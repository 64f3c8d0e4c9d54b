"""A scenario is recorded from a real endpoint, over HTTP on the loopback interface, and its cassette gives it again."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bargein import sim
from bargein.models.cassettes import Cassette, dump_cassette, read_cassette
from bargein.models.providers.catalogue import WIRES, adapter
from bargein.sim.cli import main
from bargein.sim.lab.invariants import Violation
from bargein.sim.lab.result import Result as Run
from bargein.sim.live.recording import play, record
from bargein.sim.scenario.places import ScenarioError
from tests.sessions.record.loopback import KEY, Provider, serving
from tests.sessions.verification.loose import LOOSE
from tests.sessions.verification.scripts import SCENARIOS, SHAPES

PHONE = "555-0100"
CALL = {
    "scenario": "lookup",
    "caller": [{"say": f"My number is {PHONE}.", "at": "100ms", "level": "decision", "for": "900ms"}],
    "tools": {"get_customer": {"latency": "150ms", "result": {"phone": "{args.phone}", "city": "Izmir"}}},
    "llm": [
        {"text": "One second.", "calls": [{"get_customer": {"phone": PHONE}}]},
        {"text": f"You are in Izmir, and your number is {PHONE}."},
    ],
}


def _recorded(wire: str, data: dict[str, Any] = CALL, **keys: Any) -> tuple[Any, Provider]:
    scenario = sim.load(data)
    with serving(wire, scenario.llm.rounds) as provider:
        return record(scenario, wire, "m", environ=provider.environ, **keys), provider


@pytest.mark.parametrize("wire", WIRES)
def test_what_is_recorded_plays_again_to_the_byte_and_the_instant(wire: str) -> None:
    recorded, provider = _recorded(wire)

    cassette = read_cassette(dump_cassette(recorded.cassette))
    played = play(cassette, sim.load(CALL))
    assert cassette == recorded.cassette
    assert [each.request for each in cassette.exchanges] == provider.bodies
    assert played.timeline.to_jsonl() == recorded.result.timeline.to_jsonl()
    assert recorded.result.violations == []
    assert recorded.result.heard == ["One second.", f"You are in Izmir, and your number is {PHONE}."]
    assert recorded.result.tools["get_customer"]["runs"] == 1


@pytest.mark.parametrize("shape", ["openai", "responses", "anthropic", "gemini"])
@pytest.mark.parametrize("name", ["S1", "S2", "S3", "S4", "S5"])
def test_the_verification_scenarios_hold_over_http(name: str, shape: str) -> None:
    data = SCENARIOS[name](SHAPES["plain"])[0]

    recorded, _ = _recorded(SHAPES[shape].llm["wire"], data)

    assert LOOSE[name](recorded.result) == []
    assert recorded.result.violations == []


@pytest.mark.parametrize(
    ("wire", "path", "header"),
    [
        ("anthropic", "/base/v1/messages", ("x-api-key", KEY)),
        ("gemini", "/base/v1beta/models/m:streamGenerateContent?alt=sse", ("x-goog-api-key", KEY)),
        ("openai", "/base/chat/completions", ("authorization", f"Bearer {KEY}")),
        ("openai_responses", "/base/responses", ("authorization", f"Bearer {KEY}")),
    ],
)
def test_each_provider_is_asked_where_and_as_it_wants(wire: str, path: str, header: tuple[str, str]) -> None:
    _, provider = _recorded(wire)

    assert provider.paths == [path, path]
    assert [headers[header[0]] for headers in provider.headers] == [header[1]] * 2
    assert [headers["accept-encoding"] for headers in provider.headers] == ["identity"] * 2


# -- keys and personal data ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_a_key_and_an_address_that_the_provider_echoes_reach_no_file_no_timeline_and_no_log(
    wire: str, caplog: pytest.LogCaptureFixture
) -> None:
    scenario = sim.load(CALL)
    caplog.set_level(logging.DEBUG)
    with serving(wire, scenario.llm.rounds) as provider:
        echo = json.dumps({"error": {"message": f"Incorrect key {KEY} at {provider.base_url}"}}).encode()
        provider.raw[1] = (401, [echo[:40], echo[40:]], False)
        recorded = record(scenario, wire, "m", environ=provider.environ)

    failed = [r["reason"] for r in recorded.result.records if r["kind"] == "llm.failed"]
    name = adapter(wire, "m").provider
    assert failed == [f"{name} answered 401: Incorrect key [redacted] at [redacted]"]
    written = dump_cassette(recorded.cassette) + recorded.result.timeline.to_jsonl() + caplog.text
    assert KEY not in written
    assert provider.base_url not in written
    assert "127.0.0.1" not in written


def test_a_key_that_is_spoken_over_several_events_is_taken_out_before_it_is_heard() -> None:
    data = {**CALL, "llm": [{"text": f"The key is {KEY}, do not tell."}]}
    scenario = sim.load(data)
    with serving("openai", scenario.llm.rounds) as provider:
        provider.environ["OPENAI_API_KEY"] = "key is"  # two words, and so two events
        recorded = record(scenario, "openai", "m", environ=provider.environ)

    assert recorded.result.heard == [f"The [redacted] {KEY}, do not tell."]


@pytest.mark.parametrize("wire", WIRES)
def test_personal_data_is_redacted_by_pattern_and_the_cassette_still_plays(wire: str) -> None:
    recorded, _ = _recorded(wire, redact=[r"\d{3}-\d{4}", "Izmir"])

    text = dump_cassette(recorded.cassette)
    assert PHONE not in text
    assert "Izmir" not in text
    assert recorded.result.heard[-1] == f"You are in Izmir, and your number is {PHONE}."  # the run itself is not
    played = play(recorded.cassette, sim.load(CALL))
    assert played.heard == ["One second.", "You are in [redacted], and your number is [redacted]."]


def test_without_a_match_a_pattern_changes_no_byte() -> None:
    recorded, _ = _recorded("anthropic", redact=["Ankara"])

    pieces = [exchange.body for exchange in recorded.cassette.exchanges]
    plain, _ = _recorded("anthropic")
    assert pieces == [exchange.body for exchange in plain.cassette.exchanges]


# -- when the provider fails --------------------------------------------------------------------------------------


def test_a_connection_that_is_lost_in_mid_answer_is_part_of_the_recording() -> None:
    scenario = sim.load(CALL)
    with serving("anthropic", scenario.llm.rounds) as provider:
        provider.raw[1] = (200, [b'event: ping\ndata: {"type":"ping"}\n\n'], True)
        recorded = record(scenario, "anthropic", "m", environ=provider.environ)

    (exchange,) = recorded.cassette.exchanges
    assert (exchange.status, exchange.broken) == (200, True)
    failed = [r["reason"] for r in recorded.result.records if r["kind"] == "llm.failed"]
    assert failed == ["Anthropic: the connection was lost after 35 bytes"]
    assert play(recorded.cassette, scenario).digest == recorded.result.digest


def test_a_provider_that_cannot_be_reached_is_one_sentence_without_address_or_key() -> None:
    scenario = sim.load(CALL)
    with serving("openai", ()) as provider:
        environ = provider.environ  # it is gone after this

    with pytest.raises(ScenarioError) as refused:
        record(scenario, "openai", "m", environ=environ)

    assert str(refused.value).startswith("request 1 to openai got no answer (ConnectError")
    assert KEY not in str(refused.value)
    assert "127.0.0.1" not in str(refused.value)


def test_without_httpx_the_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bargein.sim.live.recording.find_spec", lambda name: None)

    with pytest.raises(ScenarioError, match=r"pip install 'bargein\[live\]'"):
        record(sim.load(CALL), "openai", "m", environ={})


# -- the command --------------------------------------------------------------------------------------------------


def _command(monkeypatch: pytest.MonkeyPatch, provider: Provider, *arguments: str) -> Result:
    for name, value in provider.environ.items():
        monkeypatch.setenv(name, value)
    return CliRunner().invoke(main, ["record", *arguments])


def test_the_command_writes_a_cassette_that_a_scenario_plays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "lookup.scenario.json"
    source.write_text(json.dumps(CALL))
    out = tmp_path / "lookup.cassette.jsonl"
    with serving("gemini", sim.load(CALL).llm.rounds) as provider:
        ran = _command(monkeypatch, provider, str(source), "--provider", "gemini", "--model", "m", "--out", str(out))

    assert ran.exit_code == 0, ran.output
    lines = ran.output.splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "round 1 (t1)",
        "round 2 (t1)",
        "tool get_customer (t1.0)",
        "counters",
        "spoken",
        "spoken",
        f"wrote {out}",
        "ok",
    ]
    assert KEY not in ran.output + out.read_text()
    playing = tmp_path / "played.scenario.json"
    playing.write_text(json.dumps({**CALL, "llm": {"cassette": out.name}}))
    played = sim.run(playing)
    assert played.ok
    assert f"digest {played.digest[:16]}" in lines[-1]


def test_launch_settings_name_the_provider_and_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, out, settings = (tmp_path / name for name in ("call.scenario.json", "out.jsonl", "launch.yaml"))
    source.write_text(json.dumps(CALL))
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    with serving("gemini", sim.load(CALL).llm.rounds) as provider:
        endpoint = provider.environ["GEMINI_BASE_URL"]
        settings.write_text(f"{{provider: gemini, model: m, endpoint: '{endpoint}', auth: {{env: TEAM_KEY}}}}")
        monkeypatch.setenv("TEAM_KEY", KEY)
        arguments = ["record", str(source), "--launch", str(settings), "--out", str(out)]
        ran = CliRunner().invoke(main, arguments)
    assert ran.exit_code == 0, ran.output
    assert KEY not in ran.output + out.read_text()
    assert endpoint not in out.read_text()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--provider", "openai"], "--provider and --model go together; accepted are both, or --launch with a file"),
        ([], "--provider and --model go together; accepted are both, or --launch with a file"),
        (
            ["--model", "m", "--launch", "x.yaml"],
            "--launch names provider and model itself; accepted is one way or the other",
        ),
        (["--launch", "x.yaml"], "x.yaml: there is no such file; accepted is launch settings"),
    ],
)
def test_a_provider_is_named_in_one_way(arguments: list[str], sentence: str, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    ran = CliRunner().invoke(main, ["record", "parallel_lookups", *arguments, "--out", str(out)])
    assert (ran.exit_code, ran.output, out.exists()) == (2, f"{sentence}\n", False)


@pytest.mark.parametrize(
    ("arguments", "environ", "sentence"),
    [
        (["--provider", "openia"], {}, "unknown provider 'openia'; accepted is anthropic, "),
        (["--provider", "openai"], {}, "OPENAI_API_KEY is not set; accepted is the provider's key in the environment"),
        (
            ["--provider", "openai"],
            {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"ftp://{KEY}"},
            "OPENAI_BASE_URL is no address; accepted is http:// or https:// with a host",
        ),
        (
            ["--provider", "openai"],
            {"OPENAI_API_KEY": f"{KEY}\r\nx: y"},
            "OPENAI_API_KEY holds characters that no header can; accepted is the key alone",
        ),
        (
            ["--provider", "openai", "--redact", "("],
            {"OPENAI_API_KEY": KEY},
            "--redact '(': missing ), unterminated subpattern at position 0; accepted is a regular expression",
        ),
    ],
)
def test_what_cannot_be_recorded_is_one_sentence(
    arguments: list[str], environ: dict[str, str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    out = tmp_path / "out.jsonl"

    ran = CliRunner().invoke(main, ["record", "parallel_lookups", *arguments, "--model", "m", "--out", str(out)])

    assert ran.exit_code == 2
    assert ran.output.startswith(sentence)
    assert ran.output.count("\n") == 1
    assert KEY not in ran.output
    assert not out.exists()


def test_a_cassette_in_which_redaction_broke_a_call_is_said_not_to_play(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "lookup.scenario.json"
    numbered = [{"calls": [{"get_customer": {"phone": 5550100}}]}, {"text": "Yes."}]
    source.write_text(json.dumps({**CALL, "llm": numbered}))
    out = str(tmp_path / "out.jsonl")
    with serving("openai", sim.load({**CALL, "llm": numbered}).llm.rounds) as provider:
        ran = _command(
            monkeypatch,
            provider,
            str(source),
            "--provider",
            "openai",
            "--model",
            "m",
            "--out",
            out,
            "--redact",
            "5550100",
        )

    assert ran.exit_code == 1
    assert "FAILED: the cassette does not play back: " in ran.output
    assert "request 2 (turn 1) no longer matches the recording at /messages/1/" in ran.output


def test_a_run_that_breaks_an_invariant_is_kept_and_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, out = tmp_path / "lookup.scenario.json", tmp_path / "out.jsonl"
    source.write_text(json.dumps(CALL))
    monkeypatch.setattr(Run, "violations", [Violation("one_reply", 5, "two of them", 0)])
    with serving("openai", sim.load(CALL).llm.rounds) as provider:
        ran = _command(monkeypatch, provider, str(source), "--provider", "openai", "--model", "m", "--out", str(out))

    assert ran.exit_code == 1
    assert ran.output.splitlines()[-2] == "violated: one_reply at 5 us: two of them"
    assert len(read_cassette(out.read_text()).exchanges) == 2


def test_an_empty_recording_is_a_cassette_too() -> None:
    assert read_cassette(dump_cassette(Cassette("openai", "m", "s", ()))) == Cassette("openai", "m", "s", ())
