"""A program's own Python: what it did before the place is in the checkpoint, and it is not done again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bargein import sim
from bargein.sim.effects.checkpoint import Checkpoint
from bargein.sim.effects.replay import ReplayRefused
from bargein.sim.lab.checkpoints import read_checkpoint

CALL: dict[str, Any] = {
    "scenario": "own",
    "caller": [
        {"say": "Book Friday.", "at": "100ms", "level": "decision", "for": "300ms"},
        {"say": "And Monday.", "at": "4s", "level": "decision", "for": "300ms"},
    ],
    "llm": [
        {"calls": [{"book": {"day": "friday"}}]},
        {"text": "Friday is booked."},
        {"calls": [{"book": {"day": "monday"}}]},
        {"text": "Monday is booked."},
    ],
}


class Desk:
    """What really happened, outside of any session."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.booked: list[str] = []

    def tools(self) -> sim.Tools:
        tools = sim.Tools()

        @tools.side_effect(filler_after=None)
        def book(day: str) -> Any:
            """Books."""
            self.begun.append(day)
            yield "200ms"
            yield sim.Progress("Nearly.")
            yield "200ms"
            self.booked.append(day)
            return {"booked": day}

        return tools


def saved_at(when: str, folder: Path) -> tuple[str, Path]:
    whole = sim.run(CALL, tools=Desk().tools(), checkpoint_at=when, checkpoint=folder / "a.json")
    return whole.digest, folder / "a.json"


@pytest.mark.parametrize(
    ("when", "left"),
    [
        ("turn.user:1", ["friday", "monday"]),
        ("tool.finished:1", ["monday"]),
        ("tool.committed:1", ["monday"]),
        ("playout.ended:1", ["monday"]),
        ("tool.committed:2", []),
    ],
)
def test_only_what_was_not_done_is_done(tmp_path: Path, when: str, left: list[str]) -> None:
    digest, path = saved_at(when, tmp_path)
    desk = Desk()
    assert sim.resume(path, tools=desk.tools()).result.digest == digest
    assert desk.booked == desk.begun == left


@pytest.mark.parametrize("when", ["tool.started:1", "tool.progress:1", "1s", "tool.started:2"])
def test_code_that_is_running_at_the_place_must_not_run_twice(tmp_path: Path, when: str) -> None:
    _, path = saved_at(when, tmp_path)
    desk = Desk()
    with pytest.raises(ReplayRefused) as problem:
        sim.resume(path, tools=desk.tools())
    number = 4 if when.endswith("2") else 1
    assert str(problem.value) == (
        f"{path}: effect {number} (agent/tool:book#0) is running code of the program's own, which must not run twice; "
        "accepted is a place before it starts or after it ends"
    )
    assert desk.begun == []


def test_a_place_that_cannot_be_resumed_is_told_when_it_is_saved(tmp_path: Path) -> None:
    result = sim.run(CALL, tools=Desk().tools(), checkpoint_at="tool.progress", checkpoint=tmp_path / "a.json")
    assert len(result.notes) == 1
    assert result.notes[0].startswith("the checkpoint can be looked at, and not resumed: effect 1 (agent/tool:book#0)")


def test_without_the_program_s_tools_nobody_can_go_on(tmp_path: Path) -> None:
    _, path = saved_at("tool.committed:1", tmp_path)
    with pytest.raises(ReplayRefused, match="the program's own tools book are not here; accepted is to give them"):
        sim.resume(path)


def test_tools_that_are_declared_otherwise_are_refused(tmp_path: Path) -> None:
    _, path = saved_at("tool.committed:1", tmp_path)
    tools = sim.Tools()

    @tools.read_only(filler_after=None)
    def book(day: str) -> str:
        return day

    with pytest.raises(ReplayRefused, match=r'tools\.book\.kind: recorded was "side_effect", found "read_only"'):
        sim.resume(path, tools=tools)


def test_values_can_be_changed_beside_own_tools(tmp_path: Path) -> None:
    _, path = saved_at("tool.committed:1", tmp_path)
    desk = Desk()
    result = sim.resume(path, tools=desk.tools(), set={"llm[3].text": "It is Monday then."}).result
    assert result.heard == ["Friday is booked.", "It is Monday then."]
    assert desk.booked == ["monday"]


def test_a_record_that_was_made_up_is_not_believed(tmp_path: Path) -> None:
    """The model said what follows from the record, so another result comes to another state."""
    _, path = saved_at("tool.committed:1", tmp_path)
    saved: Checkpoint = read_checkpoint(path)
    saved.records[1].value = {"booked": "sunday"}
    desk = Desk()
    with pytest.raises(ReplayRefused, match=r"parts\.|records\["):
        sim.resume(saved, tools=desk.tools())
    assert desk.begun == []
