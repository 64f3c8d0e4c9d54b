"""A live call goes on from a checkpoint: its provider is run again up to the place, and the rest is what it was.

Where a round is in the middle of its response there is no cursor to go on from; everywhere else the open connection is
in nobody's way.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bargein import sim
from bargein.sim.effects.checkpoint import Checkpoint
from bargein.sim.effects.identity import content_digest, written
from bargein.sim.effects.recording import Recorder
from bargein.sim.effects.replay import ReplayRefused
from bargein.sim.lab.checkpoints import When, checkpoint_of, take_checkpoint
from bargein.sim.lab.resumes import resume
from bargein.sim.lab.session import run_plan
from bargein.sim.scenario.build import Plan
from bargein.sim.scenario.places import ScenarioError
from tests.sessions.s2s.live import call, placed
from tests.sessions.s2s.recorded import CALLS

TRUNCATED, WITHDRAWN, LATE = "a barge-in that truncates", "calls that the provider withdraws", "late turn events"
RESUMING = Path(__file__).parent.parent / "resume" / "resuming.py"


def saved_everywhere(name: str, tie_seed: int | None = None) -> list[tuple[Checkpoint, list[str]]]:
    """A checkpoint after every event of the timeline, read back from its bytes, and the kinds of what had happened."""
    plan, recorder = Plan(sim.load(CALLS[name])), Recorder()
    opened = plan.open(tie_seed=tie_seed, recorder=recorder)
    session, seen, saved = opened.session, 0, []
    session.start()
    while True:
        kinds, seen = [row[1] for row in session.timeline.rows[seen:]], len(session.timeline)
        made = checkpoint_of(plan, opened, recorder, kinds[-1], tie_seed=tie_seed)
        saved.append((Checkpoint.from_bytes(made.to_bytes(), f"{seen:03d}"), kinds))
        if not session.clock.run_while(lambda _, before=seen: len(session.timeline) == before):
            return saved


def side_effects(result: Any) -> list[str]:
    return [each["call"] for each in result.timeline.of("tool.started") if each["side_effect"]]


@pytest.mark.parametrize("name", [TRUNCATED, WITHDRAWN, LATE])
@pytest.mark.parametrize("tie_seed", [None, 3])
def test_it_goes_on_from_every_event_but_those_in_the_middle_of_a_response(name: str, tie_seed: int | None) -> None:
    whole = run_plan(Plan(sim.load(CALLS[name])), tie_seed=tie_seed)
    resumed, streaming, seen = 0, 0, set()
    for saved, kinds in saved_everywhere(name, tie_seed):
        open_rounds = [each for each in saved.records if each.kind == "completion" and each.status is None]
        if any(each.items for each in open_rounds):
            with pytest.raises(ReplayRefused, match=r"effect \d .*agent/model.* is in the middle of its stream"):
                resume(saved)
            streaming += 1
        else:
            result = resume(saved).result
            assert (result.digest, side_effects(result), result.ok) == (whole.digest, side_effects(whole), True)
            resumed += 1
            seen.update(kinds)
    assert resumed > streaming > 0
    assert {"s2s.received", "s2s.sent", "turn.user", "turn.barge_in", "llm.request", "turn.interrupted"} <= seen


def test_it_goes_on_in_a_fresh_process(tmp_path: Path) -> None:
    wanted = {"turn.barge_in", "playout.cut", "tool.started"}
    for name in (TRUNCATED, WITHDRAWN):
        for saved, kinds in saved_everywhere(name):
            if wanted & set(kinds):
                (tmp_path / f"{CALLS[name]['s2s']['provider']}_{saved.name}.json").write_bytes(saved.to_bytes())
    ran = subprocess.run(
        [sys.executable, str(RESUMING), str(tmp_path)],
        env={"PYTHONHASHSEED": "11"},
        capture_output=True,
        text=True,
        check=True,
    )
    found = [json.loads(text) for text in ran.stdout.splitlines()]
    digests = {
        CALLS[name]["s2s"]["provider"]: run_plan(Plan(sim.load(CALLS[name]))).digest for name in (TRUNCATED, WITHDRAWN)
    }
    assert len(found) == 5
    assert [each["digest"] for each in found] == [digests[each["place"].rpartition("_")[0]] for each in found]
    assert all(each["ok"] and set(each["runs"].values()) <= {1} for each in found)


def saved_at(when: str, name: str = TRUNCATED) -> Checkpoint:
    return take_checkpoint(Plan(sim.load(CALLS[name])), When.parse(when))[2]


def test_the_provider_is_in_the_saved_state_and_a_provider_that_comes_to_another_is_refused() -> None:
    saved = saved_at("turn.barge_in")
    provider = saved.parts["model"]["provider"]
    assert (provider["server"]["active"], provider["server"]["turns"]) == ("", 1)
    provider["server"]["turns"] += 1
    saved.digests["model"] = content_digest(written(saved.parts["model"]))[:16]
    with pytest.raises(ReplayRefused, match=r"parts\.model\.provider\.server\.turns: recorded was \d, found \d"):
        resume(saved)


def test_a_connection_that_is_recorded_otherwise_is_refused() -> None:
    saved = saved_at("turn.barge_in")
    (said,) = [item["said"] for item in saved.records[-1].items if "placed" in item.get("said", {})][:1]
    said["placed"]["text"] = "Ho."
    with pytest.raises(ReplayRefused, match=r'\.said\.placed\.text: recorded was "Ho\.", found "Hi\."'):
        resume(saved)


def test_a_log_of_the_whole_call_is_that_of_the_call_that_was_not_stopped(tmp_path: Path) -> None:
    sim.run(CALLS[LATE], record=tmp_path / "a.log", checkpoint_at="turn.barge_in", checkpoint=tmp_path / "a.json")
    sim.resume(tmp_path / "a.json", record=tmp_path / "b.log")
    assert (tmp_path / "a.log").read_bytes() == (tmp_path / "b.log").read_bytes()
    assert sim.replay(tmp_path / "b.log", visible=True).ok


def test_what_the_programs_own_code_did_is_not_done_again(tmp_path: Path) -> None:
    booked: list[str] = []

    def tools() -> sim.Tools:
        made = sim.Tools()

        @made.side_effect(filler_after=None)
        def book(day: str) -> Any:
            """Books."""
            yield "200ms"
            booked.append(day)
            return {"booked": day}

        return made

    llm = [{"calls": [{"book": {"day": "friday"}}]}, {"text": "It is booked."}]
    file = tmp_path / "a.json"
    whole = sim.run(call("realtime", llm), tools=tools(), checkpoint_at="tool.committed", checkpoint=file)
    assert sim.resume(file, tools=tools()).result.digest == whole.digest
    assert booked == ["friday"]


# -- going on otherwise -----------------------------------------------------------------------------------------


def test_what_the_provider_says_after_the_place_can_be_changed() -> None:
    saved = saved_at("turn.barge_in")
    whole = sim.run(CALLS[TRUNCATED])
    result = resume(saved, set={"llm.rules[0].text": "I am listening."}).result
    assert (whole.heard[1:], result.heard[1:], result.ok) == (["Yes?"], ["I am listening."], True)
    assert result.timeline.rows[: saved.place.seq] == whole.timeline.rows[: saved.place.seq]


def test_rounds_that_the_provider_has_begun_are_given_although_nobody_was_told_yet() -> None:
    llm = [{"text": "One."}, {"text": "Two."}, {"text": "Three."}]
    lines = [placed("Hi."), {"say": "And?", "at": "4s", "level": "decision", "for": "1s"}]
    plan = Plan(sim.load(call("realtime", llm, *lines)))
    saved = take_checkpoint(plan, When.parse("5060ms"))[2]  # it heard the end 10 ms ago, and is 40 ms away
    assert [item for item in saved.records[-1].items if "response_started" in item][1:] == []
    for value in ("llm[0].text", "llm[1].text"):
        with pytest.raises(ScenarioError, match="llm: its first 2 rounds were given already; accepted is to change a"):
            resume(saved, set={value: "Other."})
    earlier = take_checkpoint(plan, When.parse("5040ms"))[2]
    assert resume(earlier, set={"llm[1].text": "Other."}).result.heard == ["One.", "Other."]
    assert resume(saved, set={"llm[2].text": "Other."}).result.heard == ["One.", "Two."]


@pytest.mark.parametrize(
    ("values", "moved"),
    [
        ({"tools.book.latency": "100ms"}, "tool.finished"),
        ({"agent.filler": "off"}, "filler.due"),
        ({"caller[1].say": "Hold on."}, "caller.started"),
    ],
)
def test_what_else_can_be_changed(values: dict[str, Any], moved: str) -> None:
    saved = saved_at("turn.user", LATE)
    whole, result = sim.run(CALLS[LATE]), resume(saved, set=values).result
    first = next(at for at, (one, other) in enumerate(zip(whole.records, result.records, strict=False)) if one != other)
    assert first >= saved.place.seq
    assert moved in (whole.records[first]["kind"], result.records[first]["kind"])


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        ("s2s.latency", "10ms", "s2s.latency"),
        ("s2s.provider", "gemini_live", "s2s.provider"),
        ("agent.turn.min_silence", "1s", "agent.turn.min_silence"),
        ("agent.system", "Be brief.", "agent.system"),
    ],
)
def test_what_a_provider_was_connected_with_it_keeps(path: str, value: Any, place: str) -> None:
    with pytest.raises(ScenarioError) as problem:
        resume(saved_at("turn.barge_in"), set={path: value})
    assert str(problem.value).startswith(f"{place}: it cannot be changed in the middle of a call; accepted are ")
    assert str(problem.value).endswith("a live provider keeps what it was connected with")
