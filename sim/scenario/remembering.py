"""The memory of a scenario's agent: where it persists, which conversation, and what was said before.

Part of the scenario model; ``model`` gathers it, and ``build`` asks it for a memory for each session. A file is where
every session begins: it is read when the call connects and left as it is, so that a scenario gives the same bytes each
time, unless ``keep`` says that the call is to be written to it. Left out: the stores (``bargein.models``), and when a
session asks them (``bargein.pipelines.session_memory``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from bargein.models.latency import Constant, Latency
from bargein.models.memory import MemoryHandler, MemoryStore, Store, StoreError
from bargein.pipelines.agent.memory import Remembers
from bargein.pipelines.agent.messages import assistant, user
from bargein.sim.effects.identity import memory_key
from bargein.sim.kernel.clock import Clock
from bargein.sim.kernel.streams import Stream
from bargein.sim.scenario.folders import inside
from bargein.sim.scenario.places import Fault

if TYPE_CHECKING:
    from bargein.models.memory_sqlite import SqliteStore
    from bargein.sim.scenario.model import Scenario

__all__ = ["Earlier", "Memory", "check_repeatable", "memory_faults", "memory_handler", "remembers"]

KEY = memory_key("agent")


@dataclass(frozen=True, slots=True)
class Earlier:
    """Something that was said in an earlier call, by the user or by the agent."""

    user: str | None = None
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """What the agent remembers with.

    Attributes:
        store: ``memory`` or ``sqlite``, the database of which is in memory unless it has a path.
        path: a file of the SQLite store, in the scenario's folder.
        keep: whether the call is written to that file, which the next one then begins from.
        conversation: which one.
        messages: what was said before, where the store does not know the conversation.
        latency: of each operation.
        fails: words with which every ``load``, ``append`` or ``clear`` fails.
    """

    store: str = "memory"
    path: str | None = None
    keep: bool = False
    conversation: str = "caller"
    messages: tuple[Earlier, ...] = ()
    latency: Latency = field(default=Constant(20_000))
    fails: dict[str, str] = field(default_factory=dict)


def remembers(memory: Memory) -> Remembers:
    """What the session is told of it."""
    return Remembers(KEY, memory.conversation)


def memory_faults(scenario: Scenario) -> Iterator[Fault]:
    """Everything about the scenario's memory that cannot be, short of opening its file."""
    memory = scenario.memory
    if memory is None:
        return
    if scenario.s2s is not None:
        yield Fault(("memory",), "it stands beside s2s, whose provider keeps its own; accepted is one of them")
    if memory.path is not None:
        if memory.store != "sqlite":
            yield Fault(("memory", "path"), f"{memory.store} keeps no file; accepted is a path with store: sqlite")
        elif scenario.folder is None:
            yield Fault(("memory", "path"), "it has no folder to be in; accepted is a scenario that is a file")
        else:
            found = inside(scenario.folder, memory.path)
            if found is None:
                problem = f'"{memory.path}" leaves the scenario\'s folder; accepted is a path inside it'
                yield Fault(("memory", "path"), problem)
            elif not found.is_file() and not memory.keep:
                problem = f'there is no file "{memory.path}"; accepted is one that is there, or keep: true'
                yield Fault(("memory", "path"), problem)
    if memory.keep and memory.path is None:
        yield Fault(("memory", "keep"), "there is nothing to keep it in; accepted is keep: true with a path")
    for at, earlier in enumerate(memory.messages):
        if (earlier.user is None) == (earlier.agent is None):
            problem = "accepted is either what the user said or what the agent said"
            yield Fault(("memory", "messages", at), problem)


def check_repeatable(scenario: Scenario) -> None:
    """That one session of the scenario leaves the next as it found it, as those who run many of them need.

    Raises:
        ScenarioError: it writes to a file.
    """
    if scenario.memory is not None and scenario.memory.keep:
        problem = "each call would begin where another ended; accepted for many calls is keep: false"
        raise scenario.place.error([Fault(("memory", "keep"), problem)])


def memory_handler(scenario: Scenario, memory: Memory, clock: Clock, stream: Stream) -> MemoryHandler:
    """The memory of one session; its file is opened when it is first asked."""
    return MemoryHandler(clock, _Lazy(lambda: _store(scenario, memory)), stream, memory.latency, memory.fails)


def _store(scenario: Scenario, memory: Memory) -> Store:
    store: Store = MemoryStore()
    if memory.store == "sqlite":
        store = _sqlite(scenario, memory)
    if memory.messages and not store.load(memory.conversation):
        said = [assistant(each.agent or "") if each.user is None else user(each.user) for each in memory.messages]
        store.append(memory.conversation, [message.to_dict() for message in said])
    return store


def _sqlite(scenario: Scenario, memory: Memory) -> SqliteStore:
    from bargein.models.memory_sqlite import SqliteStore

    if memory.path is None:
        return SqliteStore()
    path = None if scenario.folder is None else inside(scenario.folder, memory.path)
    if path is None:
        raise StoreError(f"{memory.path} is no path in the scenario's folder")
    if memory.keep:
        return SqliteStore(path)
    return _copy(path, memory.path)


def _copy(path: FilePath, name: str) -> SqliteStore:
    from bargein.models.memory_sqlite import SqliteStore

    if not path.is_file():
        raise StoreError(f"there is no file {name}")
    with SqliteStore(path, read_only=True) as found:
        return found.copy()


class _Lazy:
    """A store that is opened when it is first asked; a replay never asks."""

    def __init__(self, open_store: Callable[[], Store]) -> None:
        self._open = open_store
        self._store: Store | None = None

    def _opened(self) -> Store:
        if self._store is None:
            self._store = self._open()
        return self._store

    def load(self, conversation: str) -> list[Mapping[str, Any]]:
        return self._opened().load(conversation)

    def append(self, conversation: str, messages: Sequence[Mapping[str, Any]]) -> None:
        self._opened().append(conversation, messages)

    def clear(self, conversation: str) -> None:
        self._opened().clear(conversation)
