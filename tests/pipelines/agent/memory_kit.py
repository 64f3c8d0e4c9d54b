"""A world whose agent remembers and looks things up; see ``run_kit``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from bargein.models.memory import MemoryHandler, MemoryStore
from bargein.pipelines.agent.memory import Append, Remembers
from bargein.pipelines.agent.messages import Role
from bargein.pipelines.agent.parts import RunMessage, TextPart, user_message
from bargein.pipelines.agent.retrieval import Retrieves
from bargein.pipelines.agent.run_state import Memory, Run
from bargein.sim.effects.bus import Effect, Outcome, Status
from bargein.sim.kernel.streams import Stream
from tests.pipelines.agent.run_kit import Tool, World

MEMORY = "golden/memory"
GOLDEN = "golden-conversation"
CONTEXT, TOOLS = "golden/retrieve:context#0", "golden/retrieve:tools#0"
SHORT = {"completion": "C", "tool_call": "T", "retrieval": "R"}
OLD = (user_message("Earlier."), RunMessage(Role.ASSISTANT, (TextPart("Indeed."),)))


def plain(*messages: RunMessage) -> tuple[dict[str, Any], ...]:
    return tuple(message.to_dict() for message in messages)


def found(*results: list[Any]) -> Outcome:
    return Outcome(Status.OK, list(results))


class RememberingWorld(World):
    """Its agent remembers ``golden-conversation``, in which ``old`` was said."""

    def __init__(self, *script: Any, old: Sequence[RunMessage] = (), handler: Any = None, **more: Any) -> None:
        super().__init__(*script, **more)
        self.store = MemoryStore()
        self.store.append(GOLDEN, plain(*old))
        handler = MemoryHandler(self.clock, self.store, Stream(0, "memory"), **(handler or {}))
        self.bus.serve(MEMORY, handler)
        self.agent.remembers = Remembers(MEMORY, GOLDEN)

    def look_up(self, *links: Retrieves, retrievable: Collection[str] = ()) -> None:
        self.agent.retrieves = links
        self.agent.retrievable = tuple(retrievable)

    def index(self, key: str, *answers: Outcome, delay_us: int = 0) -> None:
        left = iter(answers)
        self.bus.serve(key, Tool(self.clock, lambda _: next(left), delay_us))

    @property
    def log(self) -> list[Effect]:
        return self.bus.bus.log

    @property
    def ops(self) -> list[str]:
        """The log in short; a memory's operations by name."""
        return [SHORT.get(each.kind) or type(each.payload).__name__ for each in self.log]

    @property
    def appended(self) -> list[list[tuple[str, list[str]]]]:
        """Of each append the messages: role, and the types of the parts."""
        appends = [each.payload for each in self.log if type(each.payload) is Append]
        return [[(m["role"], [part["type"] for part in m["content"]]) for m in each.messages] for each in appends]


def memory_of(run: Run) -> Memory:
    assert run.memory is not None
    return run.memory


def remembered(run: Run) -> list[bool]:
    """Of each stored message, whether it was loaded."""
    return [held.remembered for held in run.history.stored]
