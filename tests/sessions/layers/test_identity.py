"""Layers in logs and checkpoints: they are the program's, are named there, and decide again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from bargein import sim
from bargein.sim.effects.bus import Outcome
from bargein.sim.effects.checkpoint import Checkpoint
from bargein.sim.effects.log import EffectLog
from bargein.sim.effects.recording import Recorder
from bargein.sim.effects.replay import ReplayRefused
from bargein.sim.kernel.clock import Clock
from bargein.sim.lab.checkpoints import When, checkpoint_of, take_checkpoint
from bargein.sim.lab.programs import program_of
from bargein.sim.lab.replays import record
from bargein.sim.scenario.build import Plan
from bargein.sim.scenario.places import ScenarioError
from tests.sessions.layers.layers_kit import (
    BOOK,
    MODEL,
    MS,
    RULES,
    Approve,
    Arguments,
    Deny,
    Judge,
    MakeLayers,
    Note,
    Replace,
    S,
    scenario,
    told,
)

AGAIN: list[dict[str, Any]] = [{"calls": [{"book": {"people": 2}}]}] * 3 + [{"text": "Done."}]


def cutting_in(*at: str) -> list[dict[str, Any]]:
    return [{"at": each, "level": "decision", "for": "100ms", "say": "Again."} for each in at]


def waiting(clock: Clock) -> dict[str, list[sim.Layer]]:
    return {"book": [Approve(clock, 1 * S), Arguments(people=4)], MODEL: [Note("audit", [])]}


def judging(clock: Clock) -> dict[str, list[sim.Layer]]:
    return {"book": [Replace("Kept."), Judge(clock, 600 * MS)]}


def asking(clock: Clock) -> dict[str, list[sim.Layer]]:
    return {MODEL: [Approve(clock, 300 * MS)], "book": [Approve(clock, 200 * MS, "No.")]}


CALLS: dict[str, tuple[Any, MakeLayers]] = {
    "approved": (scenario(), waiting),
    "interrupted while it waits": (scenario(caller=cutting_in("1s"), llm=AGAIN), waiting),
    "twice": (scenario(caller=cutting_in("1s", "1700ms"), llm=AGAIN), waiting),
    "judged": (scenario(), judging),
    "interrupted while it is judged": (scenario(caller=cutting_in("1200ms"), llm=AGAIN), judging),
    "asked for": (scenario(caller=cutting_in("300ms"), llm=AGAIN), asking),
}


def logged(name: str, tie_seed: int | None = None) -> EffectLog:
    made, layers = CALLS[name]
    return EffectLog.from_bytes(record(Plan(made, layers=layers), tie_seed=tie_seed)[1].to_bytes(), "a.log")


# -- named ------------------------------------------------------------------------------------------------------------


def test_a_log_names_the_layers_after_the_steering_and_each_handler_its_own() -> None:
    made = scenario(steering=[{"deny": "look", "reason": "No."}])
    layers = {"book": [Deny(), Replace(1)], MODEL: [Note("audit", [])]}
    header = record(Plan(made, layers=lambda _: layers))[1].header
    assert header["hooks"] == ["deny:look", "audit", "deny", "replace"]
    assert {key: each["layers"] for key, each in header["handlers"].items() if "layers" in each} == {
        MODEL: ["audit"],
        BOOK: ["deny", "replace"],
    }


def test_a_handlers_descriptor_names_them_too() -> None:
    session = Plan(scenario(), layers=waiting).open().session
    assert session.layered is not None
    assert session.layered.descriptor(BOOK).layers == ("approve", "arguments")
    assert session.layered.descriptor("agent/tool:look#0").layers == ()


def test_a_program_without_layers_declares_none_and_has_no_layered_bus() -> None:
    plan = Plan(scenario())
    assert program_of(plan)["hooks"] == []
    assert not any("layers" in each for each in program_of(plan)["handlers"].values())
    assert plan.open().session.layered is None


def test_they_are_made_once_for_each_session_with_its_clock() -> None:
    clocks: list[Clock] = []

    def layers(clock: Clock) -> Mapping[str, Sequence[sim.Layer]]:
        clocks.append(clock)
        return waiting(clock)

    plan = Plan(scenario(), layers=layers)
    first, second = plan.open().session, plan.open().session
    assert [id(each) for each in clocks] == [id(first.clock), id(second.clock)]
    assert program_of(plan)["hooks"] == ["audit", "approve", "arguments"]
    assert len(clocks) == 2


def test_a_session_whose_layers_are_others_than_the_last_ones_is_refused() -> None:
    made: list[int] = []

    def layers(_: Clock) -> Mapping[str, Sequence[sim.Layer]]:
        made.append(1)
        return {"book": [Deny()] * len(made)}

    plan = Plan(scenario(), layers=layers)
    plan.open()
    with pytest.raises(ScenarioError) as refused:
        plan.open()
    assert str(refused.value) == (
        f"layers: the function gave {{'{BOOK}': ['deny', 'deny']}}, and {{'{BOOK}': ['deny']}} before; accepted are "
        "the same for each session"
    )


# -- refused by name --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layers", "told"),
    [
        ({"boook": [Deny()]}, 'layers: boook: unknown handler "boook"; the nearest known one is "book"'),
        (
            {"agent/memory": [Deny()]},
            'layers: agent/memory: unknown handler "agent/memory"; accepted is agent/model:default, '
            "agent/tool:book#0, agent/tool:look#0, book or look",
        ),
        ({"book": Deny()}, "layers: book: found a Deny; accepted is a list of layers, the outermost first"),
        ({"book": [Deny]}, "layers: book: found the class Deny in the list; accepted is a bargein.sim.Layer"),
        (
            {"book": [Deny()], BOOK: [Deny()]},
            f"layers: {BOOK}: {BOOK} has layers already; accepted is either its key or the tool's name",
        ),
        ({"book": [Note("", [])]}, "layers: book: a layer is called ''; accepted is a text that is not empty"),
        (
            [Deny()],
            "layers: the function gave a list; accepted is a mapping from handler keys or names of tools to their "
            "layers",
        ),
    ],
)
def test_what_stands_around_nothing_or_is_no_layer_is_refused_by_name(layers: Any, told: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        sim.run(scenario(), layers=lambda _: layers)
    assert str(refused.value) == told
    with pytest.raises(ScenarioError) as swept:
        sim.sweep(scenario(), seeds=1, layers=lambda _: layers)
    assert str(swept.value) == told
    with pytest.raises(ScenarioError) as explored:
        sim.explore(scenario(llm=RULES), layers=lambda _: layers)
    assert str(explored.value) == told


def test_everything_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(ScenarioError) as refused:
        sim.run(scenario(), layers=lambda _: {"boook": [Deny()], "lok": [Deny()]})
    assert len(refused.value.sentences) == 2


# -- replayed ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("visible", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_a_replay_within_the_same_layers_comes_out_equal(name: str, visible: bool) -> None:
    for tie_seed in (None, 3):
        log = logged(name, tie_seed)
        replayed = sim.replay(log, layers=CALLS[name][1], visible=visible)
        assert replayed.equal
        assert replayed.again.to_bytes() == log.to_bytes()


@pytest.mark.parametrize(
    ("layers", "told"),
    [
        (None, 'a.log: hooks[0]: recorded was "audit", found nothing'),
        (
            lambda clock: {"book": [Approve(clock, 1 * S)], MODEL: [Note("audit", [])]},
            'a.log: hooks[2]: recorded was "arguments", found nothing',
        ),
        (
            lambda clock: {"book": waiting(clock)["book"][::-1], MODEL: [Note("audit", [])]},
            'a.log: hooks[1]: recorded was "approve", found "arguments"',
        ),
    ],
)
def test_a_replay_without_them_or_within_others_is_refused_by_name(layers: MakeLayers | None, told: str) -> None:
    log = logged("approved")
    with pytest.raises(ReplayRefused) as refused:
        sim.replay(log, layers=layers)
    assert refused.value.sentences[0] == told
    assert any(f"handlers.{BOOK}.layers" in each for each in refused.value.sentences)


def test_layers_around_another_handler_are_others() -> None:
    made = scenario(llm=[{"calls": [{"look": {}}]}, {"text": "."}])
    log = record(Plan(made, layers=lambda _: {"look": [sim.Layer()]}))[1]
    with pytest.raises(ReplayRefused) as refused:
        sim.replay(log, layers=lambda _: {"book": [sim.Layer()]})
    assert 'handlers.agent/tool:look#0.layers: recorded was ["layer"], found nothing' in str(refused.value)


def test_layers_of_the_same_name_that_decide_otherwise_are_found_out() -> None:
    log = logged("approved")

    def other(clock: Clock) -> dict[str, list[sim.Layer]]:
        return {"book": [Approve(clock, 1 * S), Arguments(people=5)], MODEL: [Note("audit", [])]}

    with pytest.raises(ReplayRefused) as refused:
        sim.replay(log, layers=other)
    assert str(refused.value) == (f"a.log: effect 1 ({BOOK}) at 1450000 us: arguments.people: recorded was 4, found 5")


def test_a_call_that_was_served_in_the_recording_and_is_withdrawn_now_is_refused() -> None:
    made = scenario(caller=cutting_in("1500ms"), llm=AGAIN)
    log = record(Plan(made, layers=lambda clock: {"book": [Approve(clock, 500 * MS)]}))[1]
    with pytest.raises(ReplayRefused) as refused:
        sim.replay(log, layers=lambda clock: {"book": [Approve(clock, 5 * S)]})
    assert str(refused.value).endswith(
        f"effect 1 ({BOOK}) was served in the recording, and at 1500000 us it was given up before anybody was asked "
        "to serve it"
    )


def test_a_file_keeps_all_of_it(tmp_path: Path) -> None:
    made, layers = CALLS["twice"]
    result = sim.run(made, layers=layers, record=tmp_path / "call.log")
    assert sim.replay(tmp_path / "call.log", layers=layers, visible=True).equal
    assert result.ok


# -- resumed ----------------------------------------------------------------------------------------------------------


def every_place(name: str) -> list[Checkpoint]:
    """The call saved after each of its events."""
    made, layers = CALLS[name]
    plan, recorder = Plan(made, layers=layers), Recorder()
    opened = plan.open(recorder=recorder)
    session = opened.session
    session.start()
    found = []
    while True:
        seen = len(session.timeline)
        saved = checkpoint_of(plan, opened, recorder, session.timeline.rows[-1][1])
        found.append(Checkpoint.from_bytes(saved.to_bytes(), "saved.json"))
        if not session.clock.run_while(lambda _, before=seen: len(session.timeline) == before):
            return found


@pytest.mark.parametrize("name", CALLS)
def test_a_layered_call_goes_on_from_every_event_as_if_nothing_had_been(name: str) -> None:
    made, layers = CALLS[name]
    whole = sim.run(made, layers=layers)
    resumed = 0
    for saved in every_place(name):
        if saved.unresumable("python"):
            continue
        assert sim.resume(saved, layers=layers).result.digest == whole.digest, saved.place
        resumed += 1
    assert resumed >= 10


def test_a_checkpoint_shows_what_waits_and_a_resume_without_the_layers_is_refused() -> None:
    made, layers = CALLS["approved"]
    saved = take_checkpoint(Plan(made, layers=layers), When.parse("1s"))[2]
    ((_, execution),) = saved.parts["responses"]
    assert execution["slots"][0]["run"]["effect"] == {"asked": BOOK, "served": False, "withheld": False, "told": False}
    with pytest.raises(ReplayRefused) as refused:
        sim.resume(saved)
    assert 'hooks[0]: recorded was "audit", found nothing' in refused.value.sentences[0]


def test_what_own_tools_did_before_the_place_is_not_done_again_also_where_a_call_was_withdrawn() -> None:
    tools, ran = sim.Tools(), []

    @tools.side_effect
    def book(people: int) -> str:
        ran.append(people)
        return "done"

    def layers(clock: Clock) -> dict[str, list[sim.Layer]]:
        return {"book": [Approve(clock, 400 * MS)]}

    ask, done = AGAIN[0], AGAIN[-1]
    made = sim.load(scenario(caller=cutting_in("500ms", "3s"), llm=[ask, ask, done, ask, done]), tools=tools)
    plan = Plan(made, tools, layers)
    whole, _, saved = take_checkpoint(plan, When.parse("tool.suspended:3"))
    assert (len(ran), [each[3] for each in told(whole, "tool.settled")]) == (2, ["not_started", "ok", "ok"])
    ran.clear()
    assert sim.resume(saved, tools=tools, layers=layers).result.digest == whole.digest
    assert len(ran) == 1


def test_tools_are_not_replaced_where_a_call_of_theirs_waits_that_the_saved_schema_judged() -> None:
    def tools(limit: int) -> sim.Tools:
        made = sim.Tools()
        made.side_effect(
            name="book",
            parameters={"type": "object", "properties": {"people": {"type": "integer", "maximum": limit}}},
        )(lambda people: "done")
        return made

    plan = Plan(sim.load(scenario(), tools=tools(9)), tools(9), waiting)
    saved = take_checkpoint(plan, When.parse("1s"))[2]
    with pytest.raises(ReplayRefused) as refused:
        sim.resume(saved, tools=tools(8), layers=waiting, replace=True)
    assert "tools.book.parameters: call t1.0 was made by the saved ones and waits to be run" in str(refused.value)
    later = take_checkpoint(plan, When.parse("run.ended"))[2]
    assert sim.resume(later, tools=tools(8), layers=waiting, replace=True).ok


def test_a_value_is_changed_at_the_place_within_the_same_layers() -> None:
    made, layers = CALLS["approved"]
    saved = take_checkpoint(Plan(made, layers=layers), When.parse("1s"))[2]
    changed = sim.resume(saved, layers=layers, set={"tools.book.latency": "2s"}).result
    assert told(changed, "tool.finished") == [(3450 * MS, "tool.finished", "t1.0", "ok")]


# -- other sorts of call ----------------------------------------------------------------------------------------------


def test_outcomes_that_a_layer_is_written_with_are_the_buss() -> None:
    assert sim.Outcome is Outcome
    with pytest.raises(AttributeError):
        sim.Layers  # type: ignore[attr-defined]  # noqa: B018
