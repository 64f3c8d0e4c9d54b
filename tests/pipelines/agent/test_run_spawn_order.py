"""In what order a run is put together: itself, its prompt and budget, its history, the mark, and only then it opens."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.pipelines.agent import run as run_module
from bargein.pipelines.agent.messages import Role
from bargein.pipelines.agent.parts import RunMessage, TextPart, user_message
from bargein.pipelines.agent.run_settings import Settings
from bargein.pipelines.agent.run_state import Run
from tests.pipelines.agent.run_kit import World, output, text

OLD = (user_message("one"), RunMessage(Role.ASSISTANT, (TextPart("two"),)))


@pytest.mark.parametrize("queued", [False, True])
def test_one_spawn_step_by_step(queued: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    traced: list[Any] = []

    class TracedList(list[RunMessage]):
        def append(self, message: RunMessage) -> None:
            traced.append(("history", message.parts[0].text))  # type: ignore[union-attr]
            super().append(message)

    class TracedSettings(Settings):
        def __setattr__(self, name: str, value: Any) -> None:
            if name == "max_turns" and value is not None:
                traced.append((name, value))
            super().__setattr__(name, value)

    class TracedRun(Run):
        def __setattr__(self, name: str, value: Any) -> None:
            if name == "agent":
                traced.append(("run", value.owner))
            elif name == "prompt" and value is not None:
                traced.append((name, value.parts[0].text))
            elif name == "ready" and value:
                traced.append(("ready", len(self.prior)))
            elif name == "phase" and value is not None and self.phase is None:
                traced.append(("opened", str(value), len(self.history)))
            elif name == "prior" and not isinstance(value, TracedList):
                value = TracedList(value)
            super().__setattr__(name, value)

    monkeypatch.setattr(run_module, "Run", TracedRun)
    world = World(text("done"))
    spawn = world.runs.queue_spawn if queued else world.runs.spawn
    spawned = spawn(world.agent, "three", OLD, max_turns=2, settings=TracedSettings())
    at_once = list(traced)
    world.clock.run()
    assert traced == [
        ("run", "golden"),
        ("prompt", "three"),
        ("max_turns", 2),
        ("history", "one"),
        ("history", "two"),
        ("ready", 2),
        ("opened", "Assembling", 3),
    ]
    assert at_once == ([] if queued else traced[:-1])
    run = world.runs.live[spawned] if isinstance(spawned, int) else spawned
    assert output(run) == "done"
