"""Going on with other settings: only what is still to come can change, and only what comes of the change differs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bargein import sim
from bargein.sim.effects.checkpoint import Checkpoint
from bargein.sim.lab.checkpoints import When, take_checkpoint
from bargein.sim.lab.diff import compare
from bargein.sim.scenario.build import Plan
from bargein.sim.scenario.places import ScenarioError

NAME = "barge_in_during_booking"


def saved_at(when: str, name: Any = NAME) -> Checkpoint:
    return take_checkpoint(Plan(sim.load(name)), When.parse(when))[2]


@pytest.fixture(scope="module")
def at_barge_in() -> Checkpoint:
    return saved_at("turn.barge_in")


def first_difference(saved: Checkpoint, **values: Any) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """The first event that differs from the call as it was: as it was, and as it is now."""
    whole = sim.run(NAME).records
    now = sim.resume(saved, set=values).result.records
    found = compare(whole, now)
    assert found is not None
    at = next(at for at, (one, other) in enumerate(zip(whole, now, strict=False)) if one != other)
    assert at >= saved.place.seq
    return whole[at], now[at]


def test_another_filler_delay_from_the_barge_in_on_moves_the_filler_first(at_barge_in: Checkpoint) -> None:
    was, now = first_difference(at_barge_in, **{"agent.filler.delay": "300ms"})
    assert now is not None
    assert (now["t"], now["kind"], now["epoch"]) == (6_950_000, "filler.due", 2)
    result = sim.resume(at_barge_in, set={"agent.filler.delay": "300ms"}).result
    spoken = [(each["t"], each["text"]) for each in result.timeline.of("filler.spoken")]
    assert spoken == [(6_950_000, "One moment, please.")]
    started = result.timeline.of("tools.started")[-1]["t"]
    assert spoken[0][0] - started == 300_000
    assert result.violations == []
    assert was is not None


def test_a_filler_that_is_timed_already_keeps_its_instant() -> None:
    saved = saved_at("tools.started:2")
    result = sim.resume(saved, set={"agent.filler.delay": "300ms"}).result
    assert [each["t"] for each in result.timeline.of("filler.due")] == [7_850_000]


@pytest.mark.parametrize(
    ("values", "kind", "at_us"),
    [
        ({"agent.filler": "off"}, "filler.due", 7_850_000),
        ({"agent.filler.phrases": ["A second."], "agent.filler.clip": "second"}, "clip.cued", 7_850_000),
        ({"tools.book_table.latency": "100ms"}, "tool.finished", 6_750_000),
        ({"tools.book_table.result": {"booking": "none"}}, "context.pushed", 9_050_000),
        ({"tools.book_table.results": [{"result": 1}, {"error": "full"}]}, "tool.finished", 9_050_000),
        ({"llm[2].text": "Good. A table for three."}, "llm.done", None),
        ({"llm.ttft": "1s"}, "llm.first_token", None),
        ({"agent.turn.min_silence": "900ms"}, "turn.ended", None),
        ({"agent.system": "Be brief."}, None, None),
        ({"caller[1].say": "No, no, make it three."}, "caller.started", None),
    ],
)
def test_what_can_be_changed_in_the_middle_of_a_call(
    values: dict[str, Any], kind: str | None, at_us: int | None
) -> None:
    place = "playout.started" if "caller[1].say" in values else "turn.barge_in"
    saved = saved_at(place)
    whole = sim.run(NAME).records
    if kind is None:
        result = sim.resume(saved, set=values).result
        assert [record["kind"] for record in result.records] == [record["kind"] for record in whole]
        requests = result.opened.model.requests
        assert [each.messages[0].text for each in requests] == [
            "You book tables at a restaurant.",
            "Be brief.",
            "Be brief.",
        ]
        return
    was, now = first_difference(saved, **values)
    assert was is not None
    assert now is not None
    assert kind in (was["kind"], now["kind"])
    if at_us is not None:
        assert at_us in (was["t"], now["t"])


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("seed", 8, "seed: it cannot be changed in the middle of a call; accepted are agent.filler"),
        ("session.id", "t", "session.id: it cannot be changed in the middle of a call"),
        ("session.per_frame", True, "session.per_frame: it cannot be changed in the middle of a call"),
        ("tts.ttfb", "1s", "tts.ttfb: it cannot be changed in the middle of a call"),
        ("stt.latency", "1s", "stt.latency: it cannot be changed in the middle of a call"),
        ("vad.on_db", -30, "vad.on_db: it cannot be changed in the middle of a call"),
        ("agent.model", "other", "agent.model: it cannot be changed in the middle of a call"),
        ("tools.book_table.timeout", "1s", "tools.book_table.timeout: it cannot be changed in the middle of a call"),
        ("tools.book_table.kind", "read_only", "tools.book_table.kind: it cannot be changed in the middle of a call"),
        ("llm[0].text", "No.", "llm: its first 1 rounds were given already; accepted is to change a later one"),
        ("caller[0].say", "A table for two.", "caller[0]: the line was begun already; accepted is a later one"),
        ("caller[1].say", "No, three.", "caller[1]: the line was begun already; accepted is a later one"),
        ("agent.filler.delya", "1s", "agent.filler.delya"),
    ],
)
def test_what_cannot_be_changed_is_refused_by_name(at_barge_in: Checkpoint, path: str, value: Any, told: str) -> None:
    with pytest.raises(ScenarioError) as problem:
        sim.resume(at_barge_in, set={path: value})
    assert told in str(problem.value)


def test_the_time_of_a_line_that_is_still_to_come_cannot_be_changed() -> None:
    with pytest.raises(ScenarioError, match=r"caller\[1\]: when and how a line is said cannot be changed"):
        sim.resume(saved_at("playout.started"), set={"caller[1].after.by": "100ms"})


def test_all_that_cannot_be_changed_is_told_at_once(at_barge_in: Checkpoint) -> None:
    with pytest.raises(ScenarioError) as problem:
        sim.resume(at_barge_in, set={"seed": 8, "tts.ttfb": "1s", "agent.filler.delay": "1s"})
    assert [each.partition(":")[0] for each in problem.value.sentences] == ["seed", "tts.ttfb"]


def test_bounds_of_the_engine_hold_from_the_place_on() -> None:
    """The booking of the first turn is an orphan; with no window for orphans an identical call runs again."""
    saved = saved_at("turn.barge_in", "orphan_replay")
    before, after = sim.resume(saved).result, sim.resume(saved, set={"agent.engine.orphan_window": "0s"}).result
    assert (before.tools["book_table"]["runs"], after.tools["book_table"]["runs"]) == (1, 2)


@pytest.mark.parametrize("when", ["tool.started", "filler.spoken", "playout.ended"])
@pytest.mark.parametrize(
    "values",
    [{"agent.filler.delay": "100ms"}, {"agent.filler.delay": "2s"}, {"agent.filler.per_tool": True}],
)
def test_what_was_done_before_is_judged_by_the_values_of_then(when: str, values: dict[str, Any]) -> None:
    """The filler of the first turn was timed under the delay that it had."""
    result = sim.resume(saved_at(when, "slow_tool_filler"), set=values).result
    assert [each["t"] for each in result.timeline.of("filler.spoken")] == [3_490_000]
    assert result.violations == []


def test_fillers_that_are_switched_off_were_right_before() -> None:
    saved = saved_at("filler.spoken", "slow_tool_filler")
    result = sim.resume(saved, set={"agent.filler": "off"}).result
    assert (len(result.timeline.of("filler.spoken")), result.violations) == (1, [])


def test_a_booking_that_ran_again_without_a_window_for_orphans_is_no_repeat_once_there_is_one() -> None:
    scenario = sim.load("orphan_replay").with_value("agent.engine.orphan_window", "0s")
    saved = saved_at("tool.started:2", scenario)
    result = sim.resume(saved, set={"agent.engine.orphan_window": "10min"}).result
    assert (result.tools["book_table"]["runs"], result.violations) == (2, [])


def test_a_confirmation_that_was_taken_in_time_was_in_time() -> None:
    scenario = {
        "scenario": "confirmed",
        "tools": {"wipe": {"kind": "side_effect", "confirm": True, "latency": "1s", "result": 1}},
        "caller": [{"say": "Please do it.", "at": "500ms"}, {"say": "Yes, please.", "at": "5s"}],
        "llm": [
            {"calls": [{"wipe": {}}]},
            {"text": "Shall I?"},
            {"calls": [{"confirm_pending": {"call_id": "t1.0"}}]},
            {"text": "It is done."},
        ],
    }
    saved = saved_at("confirm.taken", scenario)
    result = sim.resume(saved, set={"agent.engine.confirm_ttl": "1ms"}).result
    assert (result.tools["wipe"]["runs"], result.violations) == (1, [])


def test_a_log_of_a_resumed_call_replays(tmp_path: Path, at_barge_in: Checkpoint) -> None:
    result = sim.resume(at_barge_in, record=tmp_path / "a.log").result
    again = sim.replay(tmp_path / "a.log", visible=True)
    assert again.result.digest == result.digest
    with pytest.raises(ScenarioError, match="a log names one program"):
        sim.resume(at_barge_in, record=tmp_path / "b.log", set={"agent.filler.delay": "1s"})
    assert not (tmp_path / "b.log").exists()
