"""Going on with other tools of the program's own: the past stands, and what comes runs what is there now."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bargein import sim
from bargein.pipelines.agent.request import Request
from bargein.sim.cli import main
from bargein.sim.effects.checkpoint import Checkpoint
from bargein.sim.effects.replay import ReplayRefused
from bargein.sim.lab.checkpoints import read_checkpoint
from bargein.sim.lab.result import Result
from bargein.sim.scenario.places import ScenarioError

DAY: dict[str, Any] = {"type": "object", "properties": {"day": {"type": "string"}}, "required": ["day"]}
CALL: dict[str, Any] = {
    "scenario": "own",
    "tools": {"look": {"description": "Looks.", "result": "red", "latency": "100ms"}},
    "caller": [
        {"say": "Book Friday.", "at": "100ms", "level": "decision", "for": "300ms"},
        {"say": "And Monday.", "at": "4s", "level": "decision", "for": "300ms"},
    ],
    "llm": [
        {"calls": [{"book": {"day": "friday"}}]},
        {"text": "Friday is booked."},
        {"calls": [{"book": {"day": "monday"}}, {"look": {}}]},
        {"text": "Monday is booked."},
    ],
}


class Desk:
    """What really happened, outside of any session."""

    def __init__(self, says: str = "booked") -> None:
        self.says = says
        self.booked: list[str] = []

    def tools(self, **declared: Any) -> sim.Tools:
        tools = sim.Tools()
        declared = {"filler_after": None, "description": "Books.", **declared}
        declare: Any = tools.read_only if declared.pop("read_only", False) else tools.side_effect

        @declare(name="book", **declared)
        def book(day: str = "", date: str = "") -> Any:
            yield "200ms"
            self.booked.append(day or date)
            return {self.says: day or date}

        return tools


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kept")


@pytest.fixture(scope="module")
def saved(folder: Path) -> Path:
    """After the first booking; there is one more to come."""
    whole = sim.run(CALL, tools=Desk().tools(), checkpoint_at="run.ended", checkpoint=folder / "a.json")
    assert whole.ok
    return folder / "a.json"


def save(folder: Path, when: str, tools: sim.Tools, call: Any = CALL, name: str = "b.json") -> Checkpoint:
    sim.run(call, tools=tools, checkpoint_at=when, checkpoint=folder / name)
    return read_checkpoint(folder / name)


def requests(result: Result) -> list[Request]:
    return [each.payload for each in result.opened.session.bus.log if each.kind == "completion"]


def refusals(go: Callable[[], object]) -> list[str]:
    with pytest.raises(ReplayRefused) as refused:
        go()
    return [each.partition(": ")[2] for each in refused.value.sentences]


# -- what is adopted --------------------------------------------------------------------------------------------------


def test_requests_tell_of_the_new_declaration_and_calls_run_the_new_code_from_the_place_on(saved: Path) -> None:
    desk = Desk("reserved")
    result = sim.resume(saved, tools=desk.tools(description="Reserves."), replace=True).result
    assert [each.tools[0].description for each in requests(result)] == ["Books.", "Books.", "Reserves.", "Reserves."]
    assert desk.booked == ["monday"]
    results = [each["content"] for each in result.context if each["role"] == "tool"]
    assert results == ['{"booked":"friday"}', '{"reserved":"monday"}', "red"]
    assert result.violations == []
    assert read_checkpoint(saved).header["tools"]["book"]["description"] == "Books."


def test_without_replacing_another_declaration_is_refused(saved: Path) -> None:
    found = refusals(lambda: sim.resume(saved, tools=Desk().tools(description="Reserves.")))
    assert found[0] == 'tools.book.description: recorded was "Books.", found "Reserves."'
    assert found[-1] == "the program's own tools have changed; accepted is to say so, by --replace or replace=True"


def test_calls_are_judged_by_the_new_schema_from_the_place_on(saved: Path) -> None:
    other = {"type": "object", "properties": {"date": {"type": "string"}}, "required": ["date"]}
    desk = Desk()
    result = sim.resume(saved, tools=desk.tools(parameters=other), replace=True).result
    outcomes = [each["outcome"] for each in result.timeline.of("tool.settled") if each["tool"] == "book"]
    assert outcomes == ["ok", "invalid_arguments"]
    assert desk.booked == []
    assert requests(result)[2].tools[0].parameters == other


def test_a_call_waits_as_long_as_the_new_declaration_says(saved: Path) -> None:
    desk = Desk()
    result = sim.resume(saved, tools=desk.tools(timeout="50ms"), replace=True).result
    outcomes = [(each["outcome"], each["duration_us"]) for each in result.timeline.of("tool.settled")]
    assert outcomes == [("ok", 200_000), ("timed_out_running", 50_000), ("ok", 100_000)]


def test_the_same_declaration_brings_its_new_code_and_leaves_the_timeline(saved: Path) -> None:
    desk = Desk()
    assert (
        sim.resume(saved, tools=desk.tools(), replace=True).result.digest == sim.run(CALL, tools=Desk().tools()).digest
    )
    assert desk.booked == ["monday"]


def test_tools_are_replaced_beside_values_that_are_changed(saved: Path) -> None:
    desk = Desk("reserved")
    going = sim.resume(
        saved,
        tools=desk.tools(description="Reserves."),
        replace=True,
        set={"llm.rounds[3].text": "It is Monday then.", "tools.look.result": "blue"},
    ).result
    assert going.heard == ["Friday is booked.", "It is Monday then."]
    assert [each["content"] for each in going.context if each["role"] == "tool"][1:] == [
        '{"reserved":"monday"}',
        "blue",
    ]
    with pytest.raises(ScenarioError, match=r"^seed: it cannot be changed in the middle of a call"):
        sim.resume(saved, tools=desk.tools(), replace=True, set={"seed": 8})


def test_every_session_has_its_own_declarations(saved: Path) -> None:
    """The plan that the past is run by is kept, and one resume must not change it for the next."""
    other = sim.resume(saved, tools=Desk().tools(description="Reserves."), replace=True).result
    same = sim.resume(saved, tools=Desk().tools()).result
    assert [each.tools[0].description for each in requests(same)] == ["Books."] * 4
    assert requests(other)[3].tools[0].description == "Reserves."


def test_a_call_is_resumed_from_every_place_that_can_be(folder: Path) -> None:
    whole = sim.run(CALL, tools=Desk().tools())
    starts = [each["t"] for each in whole.timeline.of("tool.started") if each["tool"] == "book"]
    went_on = 0
    for at_us in range(0, whole.virtual_us, 400_000):
        saved = save(folder, f"{at_us}us", Desk().tools())
        desk = Desk()
        if not saved.unresumable("python"):
            result = sim.resume(saved, tools=desk.tools(description="Reserves."), replace=True).result
            assert desk.booked == [day for day, t in zip(("friday", "monday"), starts, strict=True) if at_us <= t]
            assert result.digest == whole.digest  # what a request says of a tool is on no timeline
            went_on += 1
    assert went_on > 10


def test_a_tool_made_for_its_session_is_made_for_the_resumed_one(folder: Path) -> None:
    made: list[str] = []

    class Own(sim.Tools):
        def for_session(self, session: Any) -> sim.Tools:
            made.append(type(session).__name__)
            return Desk("reserved").tools()

    own = Own()
    own.include(Desk().tools(description="Reserves."))
    result = sim.resume(save(folder, "run.ended", Desk().tools()), tools=own, replace=True).result
    assert made == ["_NotedControl"]
    assert result.context[-3]["content"] == '{"reserved":"monday"}'


# -- what is refused ------------------------------------------------------------------------------------------------


def test_a_tool_that_is_missing_and_one_too_many_are_refused_together(saved: Path) -> None:
    tools, desk = sim.Tools(), Desk()
    tools.side_effect(name="cancel", description="Cancels.", parameters=DAY)(lambda day: day)
    tools.read_only(name="look", description="Looks.")(lambda: "blue")
    assert refusals(lambda: sim.resume(saved, tools=tools, replace=True)) == [
        "tools.book: the program brings none of that name, and the saved one did; accepted is to give it",
        "tools.cancel: the program brings it, and the saved one did not; accepted are its tools book",
        "tools.look: the program brings it, and the saved one did not; accepted are its tools book",
    ]
    assert desk.booked == []


def test_a_tool_that_the_agent_does_not_use_is_not_one_too_many(folder: Path) -> None:
    call = {**CALL, "agent": {"tools": ["book", "look"]}}
    saved = save(folder, "run.ended", Desk().tools(), call)
    tools = Desk().tools(description="Reserves.")
    tools.side_effect(name="cancel", description="Cancels.", parameters=DAY)(lambda day: day)
    assert sim.resume(saved, tools=tools, replace=True).result.violations == []


STAYS = "so it stays; accepted are another description, parameters, timeout and filler_after"


@pytest.mark.parametrize(
    ("declared", "sentence"),
    [
        (
            {"read_only": True},
            'tools.book.kind: saved was "side_effect", given is "read_only"; what an interruption and a repeat do to '
            f"its calls depends on it, {STAYS}",
        ),
        (
            {"repeatable": True},
            "tools.book.repeatable: saved was false, given is true; which calls were run again was decided by it, "
            f"{STAYS}",
        ),
        (
            {"confirm": True},
            "tools.book.confirm: saved was false, given is true; which calls waited for the user was decided by it, "
            f"{STAYS}",
        ),
    ],
)
def test_what_decided_what_a_call_may_do_stays(saved: Path, declared: dict[str, Any], sentence: str) -> None:
    desk = Desk()
    tools = desk.tools(description="Reserves.", **declared)
    assert refusals(lambda: sim.resume(saved, tools=tools, replace=True)) == [sentence]
    assert desk.booked == []


def test_code_that_is_running_at_the_place_is_not_replaced(folder: Path) -> None:
    saved = save(folder, "tool.started", Desk().tools())
    found = refusals(lambda: sim.resume(saved, tools=Desk().tools(), replace=True))
    assert found == [
        "effect 1 (agent/tool:book#0) is running code of the program's own, which must not run twice; "
        "accepted is a place before it starts or after it ends"
    ]


def test_a_call_that_waits_for_the_user_was_judged_by_the_saved_schema(folder: Path) -> None:
    call = {
        **CALL,
        "llm": [
            {"calls": [{"book": {"day": "friday"}}]},
            {"text": "Shall I?"},
            {"calls": [{"confirm_pending": {"call_id": "t1.0"}}]},
            {"text": "Done."},
        ],
    }
    saved = save(folder, "run.ended", Desk().tools(confirm=True), call)
    desk, loose = Desk("reserved"), {"type": "object"}
    found = refusals(lambda: sim.resume(saved, tools=desk.tools(confirm=True, parameters=loose), replace=True))
    assert found == [
        "tools.book.parameters: call t1.0 was made by the saved ones and waits to be run; accepted is a place where "
        "none of the tool's calls waits"
    ]
    assert desk.booked == []
    told = sim.resume(saved, tools=desk.tools(confirm=True, description="Reserves."), replace=True).result
    assert desk.booked == ["friday"]
    assert told.context[-2]["content"] == '{"reserved":"friday"}'


def test_a_call_that_a_speculation_holds_was_judged_by_the_saved_schema(folder: Path) -> None:
    call = {
        **CALL,
        "agent": {"speculation": True},
        "caller": [{"say": "Book Friday.", "at": "100ms"}],
        "llm": {"rounds": CALL["llm"][:2], "ttft": "50ms"},
    }
    saved = save(folder, "tool.held", Desk().tools(), call)
    found = refusals(lambda: sim.resume(saved, tools=Desk().tools(parameters={"type": "object"}), replace=True))
    assert found[0].startswith("tools.book.parameters: call t1.0 was made by the saved ones and waits to be run")
    desk = Desk()
    assert sim.resume(saved, tools=desk.tools(description="Reserves."), replace=True).result.violations == []
    assert desk.booked == ["friday"]


def test_a_filler_that_was_timed_by_a_tool_keeps_its_delay(folder: Path) -> None:
    call = {**CALL, "agent": {"filler": {"per_tool": True}}}
    saved = save(folder, "tool.committed:1", Desk().tools(filler_after="100ms"), call)
    for delay in ("150ms", None):
        tools = Desk().tools(filler_after=delay)
        assert refusals(lambda tools=tools: sim.resume(saved, tools=tools, replace=True)) == [  # type: ignore[misc]
            "tools.book.filler_after: a filler was timed by the saved one; accepted is an earlier place"
        ]
    early = save(folder, "turn.user:1", Desk().tools(filler_after="100ms"), call)
    result = sim.resume(early, tools=Desk().tools(filler_after="150ms"), replace=True).result
    assert result.timeline.of("tools.started")[0]["t"] == 750_000
    assert [each["t"] for each in result.timeline.of("filler.due")][:1] == [900_000]
    assert result.violations == []


def test_a_live_provider_was_told_of_the_tools_when_the_call_connected(folder: Path) -> None:
    from bargein.sim.lab.replacing import with_other_tools
    from bargein.sim.scenario.build import Plan

    live = {**CALL, "s2s": {"provider": "gemini_live"}}
    old = Plan(sim.load(live, tools=Desk().tools()), Desk().tools()).scenario
    saved = save(folder, "run.ended", Desk().tools())
    assert refusals(lambda: with_other_tools(saved, old, Desk().tools(description="Reserves."))) == [
        "tools.book: a live provider was told of it when the call connected; accepted is the same description and "
        "parameters"
    ]
    assert with_other_tools(saved, old, Desk().tools(timeout="9s")).own_tools[0].timeout_us == 9_000_000


def test_another_program_is_refused_as_ever(saved: Path) -> None:
    read = read_checkpoint(saved)
    read.header["settings"] = {**read.header["settings"], "max_tool_rounds": 9}
    found = refusals(lambda: sim.resume(read, tools=Desk().tools(), replace=True))
    assert found == ["settings.max_tool_rounds: recorded was 9, found 6"]


def test_a_log_names_one_program_and_there_has_to_be_something_to_replace_with(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"^a log names one program, and a session with replaced tools is two"):
        sim.resume(saved, tools=Desk().tools(), replace=True, record=tmp_path / "a.log")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ScenarioError, match=r"^there are no tools to replace with; accepted is replace together with"):
        sim.resume(saved, replace=True)


# -- the command ------------------------------------------------------------------------------------------------------

MODULE = """
from bargein import sim

tools = sim.Tools()

@tools.side_effect(description="Reserves.", filler_after=None)
def book(day: str = "", date: str = "") -> dict:
    return {"reserved": day}
"""


def test_the_command_replaces_the_tools_that_it_is_given(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "replaced_tools_of_a_test.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    place = ["--tools", "replaced_tools_of_a_test:tools"]

    def resume(*more: str) -> Any:
        return CliRunner().invoke(main, ["resume", str(saved), *more])

    ran = resume(*place, "--replace", "--json")
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout)["violations"] == []
    assert json.loads(ran.stdout)["tools"]["book"]["runs"] == 2
    strict = resume(*place)
    assert strict.exit_code == 2
    assert f'{saved}: tools.book.description: recorded was "Books.", found "Reserves."' in strict.stderr.splitlines()
    both = resume(*place, "--replace", "--json", "--set", "llm[3].text=Done.")
    assert both.exit_code == 0, both.output
    assert json.loads(both.stdout)["digest"] != json.loads(ran.stdout)["digest"]
    for more, told in (
        (["--replace"], "there are no tools to replace with; accepted is replace together with tools"),
        ([*place, "--replace", "--record", str(tmp_path / "a.log")], "a log names one program, and a session with"),
    ):
        refused = resume(*more)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert refused.stderr.startswith(told)
        assert refused.stderr.count("\n") == 1
