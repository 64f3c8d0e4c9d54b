"""Layered calls by the hundred: interrupted wherever it matters, swept over seeds, live, shown, and in the handbook."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from bargein import sim
from bargein.models.callers import ScriptedCaller
from bargein.sim.kernel.clock import Clock
from bargein.sim.lab.explore import _CHUNK
from bargein.sim.lab.invariants import check
from bargein.sim.lab.replays import record
from bargein.sim.report.console import story
from bargein.sim.report.html import page
from bargein.sim.report.lanes import Bar, Look, lanes
from bargein.sim.report.turns import turn_trace
from bargein.sim.scenario.around import surroundings
from bargein.sim.scenario.build import Plan
from bargein.sim.scenario.places import ScenarioError
from tests.sessions.layers.layers_kit import MODEL, MS, RULES, Approve, Deny, Judge, S, answers, run, scenario, told
from tests.sessions.s2s.live import call, placed


def approving(clock: Clock) -> dict[str, list[sim.Layer]]:
    return {"book": [Approve(clock, 400 * MS)]}


def both(clock: Clock) -> dict[str, list[sim.Layer]]:
    return {"book": [Approve(clock, 200 * MS), Judge(clock, 300 * MS)], MODEL: [Approve(clock, 50 * MS)]}


# -- explored ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layers", [approving, both])
@pytest.mark.parametrize("hang_up", [False, True])
def test_a_suspended_booking_holds_every_invariant_wherever_the_caller_cuts_in(layers: Any, hang_up: bool) -> None:
    found = sim.explore(scenario(llm=RULES), layers=layers, hang_up=hang_up, ties=1)
    assert found.findings == ()
    assert found.instants >= 30


def test_two_interjections_one_after_the_other_hold_them_too() -> None:
    found = sim.explore(scenario(llm=RULES), layers=approving, depth=2, budget=400)
    assert (found.findings, found.runs) == ((), 400)


def test_an_exploration_comes_out_the_same_again_and_in_other_processes() -> None:
    first, again, elsewhere = (
        sim.explore(scenario(llm=RULES), layers=both, ties=1, hang_up=True, workers=workers) for workers in (1, 1, 2)
    )
    assert first.to_json() == again.to_json() == elsewhere.to_json()
    assert first.runs > _CHUNK  # so that there is something to share


def test_a_reproduction_says_that_the_layers_are_the_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bargein.pipelines.tools.layered import LayeredSideEffects

    # A booking that waits is forgotten, and goes on waiting.
    monkeypatch.setattr(LayeredSideEffects, "_withdraw", lambda self, run, cause: self._forget(run))
    found = sim.explore(scenario(llm=RULES), layers=approving, out=tmp_path, budget=60)
    small = found.findings[0].reproduction
    assert small is not None
    assert small.confirmed
    assert small.command == f"sim.run({small.path!r}, layers=LAYERS)"
    result = sim.run(small.path, layers=approving)
    assert found.findings[0].invariant in [each.invariant for each in result.violations]


def test_a_call_that_is_left_waiting_is_found() -> None:
    result = withdrawn()
    forgotten = [each for each in result.records if each["kind"] not in ("tool.withdrawn", "tool.settled")]
    found = [each.message for each in check(forgotten, result.check_settings) if each.invariant == "quiet_end"]
    assert found == ["call t1.0 of book still waits for an approval"]


# -- swept ------------------------------------------------------------------------------------------------------------


def test_a_sweep_gives_each_session_layers_of_its_own() -> None:
    def twice(clock: Clock) -> dict[str, list[sim.Layer]]:
        class Once(sim.Layer):
            asked = 0

            def before(self, ask: sim.Ask) -> sim.Deny | None:
                self.asked += 1
                return sim.Deny("Once.") if self.asked > 1 else None

        return {"book": [Once()]}

    again = [{"calls": [{"book": {"people": 1}}]}, {"calls": [{"book": {"people": 2}}]}, {"text": "."}]
    table = sim.sweep(scenario(llm=again), {"tools.book.latency": ["100ms", "200ms"]}, seeds=3, layers=twice)
    assert table.column("side_effect_runs") == [1] * 6
    assert table.column("violations") == [""] * 6


def test_a_sweep_that_was_stopped_does_not_go_on_within_other_layers(tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    out = tmp_path / "table.csv"
    with pytest.raises(KeyboardInterrupt):
        sim.sweep(scenario(), seeds=250, layers=lambda _: {"book": [Deny()]}, out=out, progress=stop, metrics=["turns"])
    with pytest.raises(ScenarioError):
        sim.sweep(scenario(), seeds=250, out=out, metrics=["turns"])


# -- speech to speech, and other stacks -------------------------------------------------------------------------------

BOOKS: dict[str, Any] = {
    "book": {"description": "Books.", "kind": "side_effect", "latency": "500ms", "result": "booked"},
}
LIVE = [{"calls": [{"book": {}}]}, {"text": "Done."}]


def live(*lines: dict[str, Any]) -> Any:
    return sim.load(call("realtime", LIVE, *(lines or (placed(),)), tools=BOOKS))


def test_in_speech_to_speech_a_call_waits_and_its_answer_goes_to_the_provider() -> None:
    result = sim.run(live(), layers=approving)
    assert result.violations == []
    kinds = [each[1] for each in told(result, "tool.")]
    assert kinds == ["tool.suspended", "tool.started", "tool.finished", "tool.settled"]
    suspended, started = (result.timeline.of(kind)[0]["t"] for kind in ("tool.suspended", "tool.started"))
    assert started - suspended == 400 * MS
    assert answers(result) == [("t1.0", "booked")]


def test_there_a_denial_is_what_the_provider_reads() -> None:
    result = sim.run(live(), layers=lambda _: {"book": [Deny("Closed today.")]})
    assert result.violations == []
    assert (answers(result), result.tools["book"]["runs"]) == ([("t1.0", "Closed today.")], 0)


@pytest.mark.parametrize("key", ["agent/live:default", MODEL])
def test_around_a_live_connection_there_are_no_layers(key: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        sim.run(live(), layers=lambda _: {key: [Deny()]})
    assert str(refused.value) == (
        f"layers: {key}: a live provider answers on one connection, which is no single request; accepted in speech to "
        "speech are layers around tools"
    )


@pytest.mark.parametrize("visible", [False, True])
def test_a_layered_live_call_is_replayed_and_resumed(tmp_path: Path, visible: bool) -> None:
    log = record(Plan(live(), layers=approving))[1]
    assert sim.replay(log, layers=approving, visible=visible).equal
    saved = tmp_path / "saved.json"
    whole = sim.run(live(), layers=approving, checkpoint_at="tool.suspended", checkpoint=saved)
    assert sim.resume(saved, layers=approving).result.digest == whole.digest


def test_a_remote_agents_tools_may_have_layers_too() -> None:
    remote = {"accept_at": "0s", "tools": {"send": {"description": "Sends.", "kind": "side_effect", "result": "sent"}}}
    llm = [{"calls": [{"send": {}}]}, {"text": "Done."}]
    result = run(lambda clock: {"send": [Approve(clock, 300 * MS)]}, remote=remote, llm=llm)
    assert [each[:2] for each in told(result, "tool.")][:2] == [
        (450 * MS, "tool.suspended"),
        (750 * MS, "tool.started"),
    ]
    assert answers(result) == [("t1.0", "sent")]


def test_other_stacks_run_no_layers() -> None:
    with pytest.raises(ScenarioError) as refused:
        surroundings(Plan(scenario(llm=RULES), layers=approving))
    assert str(refused.value) == "layered has layers, which other stacks do not run"


# -- shown ------------------------------------------------------------------------------------------------------------


def withdrawn() -> Any:
    stop = {"at": "1500ms", "level": "decision", "for": "100ms", "say": "Stop."}
    return run(lambda clock: {"book": [Approve(clock, 2 * S)], MODEL: [Approve(clock, 50 * MS)]}, caller=[stop])


def test_the_story_tells_what_waited_and_what_never_ran() -> None:
    sentences = [text for _, text in story(withdrawn().records)]
    at = sentences.index("the request waits for an approval (approve, round 0)")
    assert sentences[at : at + 3] == [
        "the request waits for an approval (approve, round 0)",
        "LLM asked (round 0)",
        "LLM's first token (round 0)",
    ]
    assert "book waits for an approval as t1.0 (approve)" in sentences
    assert "t1.0 is given up, and book has not run (barge_in)" in sentences
    judged = run(lambda clock: {"book": [Judge(clock, 300 * MS)]})
    assert "the result of t1.0 waits for a verdict (judge)" in [text for _, text in story(judged.records)]
    answered = run(lambda clock: {MODEL: [Judge(clock, 300 * MS)]})
    assert "the LLM's answer waits for a verdict (judge, round 0)" in [text for _, text in story(answered.records)]


def test_a_wait_is_a_bar_of_its_own_in_the_row_of_its_call() -> None:
    approved = run(lambda clock: {"book": [Approve(clock, 2 * S)]})
    tools = [bar for bar in lanes(approved.records).bars if bar.lane == "tools"]
    assert tools == [
        Bar("tools", 0, 450 * MS, 2450 * MS, Look.WAITING, "book"),
        Bar("tools", 0, 2450 * MS, 2950 * MS, Look.SIDE_EFFECT, "book"),
    ]
    given_up = [bar for bar in lanes(withdrawn().records).bars if bar.look in (Look.WAITING, Look.SIDE_EFFECT)]
    assert given_up[:2] == [
        Bar("LLM", 0, 100 * MS, 150 * MS, Look.WAITING),
        Bar("tools", 0, 500 * MS, 1500 * MS, Look.WAITING, "book"),
    ]


def test_a_call_that_was_cut_off_while_it_waits_is_drawn_up_to_its_end() -> None:
    records = withdrawn().records
    cut = records[: [each["kind"] for each in records].index("tool.withdrawn")]
    bars = [bar for bar in lanes(cut).bars if bar.look is Look.WAITING]
    assert (bars[-1].lane, bars[-1].start_us, bars[-1].end_us) == ("tools", 500 * MS, 1500 * MS)


def test_the_turn_trace_has_the_waiting_and_the_end_of_it() -> None:
    lines = turn_trace(withdrawn().records).splitlines()
    assert any('"tool_waits": {"call": "t1.0", "tool": "book", "layer": "approve"}' in each for each in lines)
    assert any('"tool_withdrawn": {"call": "t1.0", "tool": "book"}' in each for each in lines)
    assert not any('"tool_call"' in each for each in lines)


def test_a_page_shows_it_as_well() -> None:
    text = page(withdrawn())
    assert '"waits for an approval"' in text.split("<script>")[1]
    assert "book has not run" in text


# -- the example in the handbook --------------------------------------------------------------------------------------


def test_the_example_runs_as_it_stands() -> None:
    assert sim.__doc__ is not None
    code = dedent(sim.__doc__.partition("::\n")[2])
    names: dict[str, Any] = {}
    exec(compile(code, "the example", "exec"), names)
    result = sim.run("interrupted_booking", layers=names["layers"])
    assert result.violations == []
    assert [(each["t"], each["kind"]) for each in result.records if each["kind"].startswith("tool.s")][:2] == [
        (3_410_000, "tool.suspended"),
        (5_410_000, "tool.started"),
    ]
    assert isinstance(result.opened.caller, ScriptedCaller)


def test_the_same_call_gives_the_same_bytes() -> None:
    made = scenario(llm=RULES, caller=[{"at": "900ms", "level": "decision", "say": "Stop."}])
    digests = {sim.run(made, layers=both, tie_seed=seed).digest for seed in (7, 7)}
    assert len(digests) == 1
