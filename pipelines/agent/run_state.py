"""One run of an agent as it stands: plain data that the steps of the run loop read and write.

A run holds rounds, a round holds what it asked of the world; each step finds here what the one before it left (run
contract, sections 1 and 4). Left out: the steps (``advance``, ``materialise``, ``batch``, ``invalid_calls``), and
what drives them (``run``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from bargein.pipelines.agent.answers import Answer, Block, StreamFold
from bargein.pipelines.agent.edits import PartEdit, RequestPatch
from bargein.pipelines.agent.endings import Ending
from bargein.pipelines.agent.history import History
from bargein.pipelines.agent.links import Remembers
from bargein.pipelines.agent.memory import Phase as MemoryPhase
from bargein.pipelines.agent.parts import CallPart, Part, RunMessage
from bargein.pipelines.agent.run_settings import Agent, Document, OutputMode, Settings
from bargein.sim.effects.bus import EffectKind, Outcome
from bargein.sim.effects.layers import Dispatch
from bargein.sim.effects.reports import Report

__all__ = [
    "BACKOFF_OWNER",
    "BATCH_OWNER",
    "AccessSnapshot",
    "InvalidCall",
    "Memory",
    "PendingEffect",
    "Phase",
    "Purpose",
    "Resolution",
    "ResolutionKind",
    "Retry",
    "Run",
    "Turn",
]

BATCH_OWNER = "rig-ecs/batch"
BACKOFF_OWNER = "rig-ecs/backoff"
"""Owners of the loop's own holds; the names are part of the contract."""


class Phase(StrEnum):
    """What an open run is doing."""

    LOADING_MEMORY = "LoadingMemory"
    ASSEMBLING = "Assembling"
    AWAITING_MODEL = "AwaitingModel"
    RESOLVING_TOOLS = "ResolvingTools"


class Purpose(StrEnum):
    """What a run asks something for, and with that who reads what comes of it."""

    REQUEST = "request"
    CALL = "call"
    LOAD = "load"
    APPEND = "append"
    LOOKUP = "lookup"
    HOOK = "hook"
    """A hook asked; the run itself does not look at it."""


@dataclass(slots=True, eq=False)
class PendingEffect:
    """Something a run asks of the world, before and after it is dispatched.

    Attributes:
        call: the tool call it carries out.
        parent: the effect on whose behalf it is asked, where there is one.
        outcome: what came of it, a hook's replacement included; its record keeps the handler's own.
        reserved: the id it had in the session in which it was dispatched before; it goes out under it again.
        release_at_us: when its backoff is over.
    """

    kind: EffectKind
    key: str
    payload: Any
    wake: Callable[[], object]
    turn: Turn | None = None
    call: CallPart | None = None
    purpose: Purpose = Purpose.HOOK
    parent: int | None = None
    outcome: Outcome | None = None
    dispatch: Dispatch | None = None
    reserved: int | None = None
    gated: bool = False
    judged: bool = False
    on_landed: Callable[[PendingEffect], object] | None = None
    holds: dict[str, None] = field(default_factory=dict)
    barred: bool = False
    release_at_us: int | None = None

    @property
    def id(self) -> int | None:
        """Of its record; ``None`` until a handler serves it."""
        served = None if self.dispatch is None else self.dispatch.effect
        return self.reserved if served is None else served.id

    @property
    def held(self) -> bool:
        """Whether anybody keeps it from being dispatched."""
        return self.barred or bool(self.holds)

    @property
    def in_flight(self) -> bool:
        """Whether it was dispatched and has not landed."""
        return self.dispatch is not None and self.outcome is None

    @property
    def queued(self) -> bool:
        """Whether it was dispatched and waits for a place at its handler, which was not asked."""
        return self.dispatch is not None and self.dispatch.queued

    def order_of_withdrawal(self) -> int:
        """What waits for a place goes first; the end of another would let it in."""
        return 0 if self.queued else 1

    @property
    def takes_slot(self) -> bool:
        """Whether a batch counts it as running."""
        return self.outcome is None and BATCH_OWNER not in self.holds

    @property
    def outputs(self) -> Mapping[str, Any]:
        """What the tool published beside its reply; empty until it has landed."""
        return getattr(self.payload, "outputs", {}) if self.outcome is not None else {}

    def hold(self, owner: str) -> None:
        """Keep it back in this owner's name; twice is once."""
        self.holds[owner] = None

    def release(self, owner: str) -> None:
        """Take an owner's hold back; an owner without one changes nothing."""
        if owner in self.holds:
            del self.holds[owner]
            self.wake()

    def bar(self) -> None:
        """Keep it back in nobody's name; only `unbar` takes that back."""
        self.barred = True

    def unbar(self) -> None:
        """Take the nameless hold back."""
        self.barred = False
        self.wake()

    def approve(self) -> None:
        """Take every hold back."""
        self.holds.clear()
        self.unbar()


class ResolutionKind(StrEnum):
    """What becomes of an invalid call."""

    FAIL = "Fail"
    IGNORE = "Ignore"
    RETRY = "Retry"
    REPAIR = "Repair"
    SKIP = "Skip"


@dataclass(frozen=True, slots=True)
class Resolution:
    """What becomes of one invalid call; ``text`` is the feedback, the other name or the reason."""

    kind: ResolutionKind
    text: str = ""


@dataclass(slots=True, eq=False)
class InvalidCall:
    """A call to a tool that the run may not use.

    Attributes:
        block: where it was found in a stream, with the ``prefix`` delivered until then and the item's ``position``.
        asked: whether hooks were asked about it.
    """

    call: CallPart
    block: Block | None = None
    prefix: tuple[Part, ...] = ()
    position: int = -1
    resolution: Resolution | None = None
    asked: bool = False
    done: bool = False


@dataclass(frozen=True, slots=True)
class Retry:
    """Ask again; with ``feedback`` the answer and it are kept."""

    feedback: str | None = None


@dataclass(frozen=True, slots=True)
class AccessSnapshot:
    """What a round's calls may be: handler keys by name, and the names allowed."""

    bindings: Mapping[str, str]
    allowed: tuple[str, ...]

    def key_of(self, name: str) -> str | None:
        """Who carries out a call of this name; nobody where it is not allowed."""
        return self.bindings.get(name) if name in self.allowed else None


@dataclass(slots=True, eq=False)
class Turn:
    """One round: a request, its answer, and the calls that the answer asks for.

    Attributes:
        number: model calls counted when it was asked, from 1.
        attempt: which retry it is; 0 for a request that is not one.
        lookups: what it asked its agent's links; it is ``retrieving`` until all of them have answered.
        mode: as resolved when its request was folded; it stays.
        items: what has been folded of its stream, and ``errors`` which of them broke it, by their positions; its first
            call is numbered ``first_call``.
        answer: as read; a hook may have put another in its place.
        commit: the turn's number, once a whole batch of it has landed; ``assistant`` and ``results`` are positions.
    """

    number: int
    attempt: int
    attachments: list[Document]
    patch: RequestPatch | None = None
    edits: list[PartEdit] = field(default_factory=list)
    lookups: list[PendingEffect] = field(default_factory=list)
    retrieving: bool = False
    found_tools: tuple[str, ...] = ()
    offered: bool = False
    mode: OutputMode = OutputMode.NATIVE
    output_tool: str = ""
    tool_choice: Any = None
    access: AccessSnapshot = field(default_factory=lambda: AccessSnapshot({}, ()))
    request: PendingEffect | None = None
    inbox: list[Any] = field(default_factory=list)
    items: list[Any] = field(default_factory=list)
    errors: list[tuple[int, Report]] = field(default_factory=list)
    first_call: int = 0
    fold: StreamFold | None = None
    broken: bool = False
    answer: Answer | None = None
    counted: bool = False
    judged: bool = False
    retry: Retry | None = None
    invalid: list[InvalidCall] = field(default_factory=list)
    reading: bool = False
    read: bool = False
    batch: list[PendingEffect] = field(default_factory=list)
    output_after: CallPart | None = None
    reprompts: dict[str, str] = field(default_factory=dict)
    assistant: int | None = None
    results: int | None = None
    commit: int | None = None

    @property
    def patched(self) -> RequestPatch:
        """Its changes to the request."""
        return self.patch or RequestPatch()

    @property
    def settles(self) -> bool:
        """Whether its batch has landed, and the run settles on the call of the output tool that stood beside it."""
        return self.commit is not None and self.output_after is not None and not self.reprompts

    def may_run(self, name: str) -> bool:
        """Whether a call of this name is one the round expects."""
        return self.access.key_of(name) is not None or (self.mode is OutputMode.TOOL and name == self.output_tool)


@dataclass(slots=True)
class Memory:
    """Where a run stands with its conversation.

    Attributes:
        remembers: its agent's, as it was when the run was spawned.
    """

    remembers: Remembers
    phase: MemoryPhase = MemoryPhase.IDLE
    append_failure: Report | None = None


@dataclass(slots=True, eq=False)
class Run:
    """One run.

    Attributes:
        seq: counts runs from 1; the order in which runs are dealt with.
        scope, name: what records and people call it.
        prior, prompt: messages and prompt that were not read yet.
        cursor: model calls made.
        uses_model: key of the model, once it is chosen.
        output_tool: name minted for the output tool; it stays.
        usage: what all answers cost.
        memory: where its conversation is kept; ``None`` where its agent remembers nothing.
        documents: those that were attached to any of its rounds, by id.
        holds: by owner, the committed turn from which on the run stands still.
        settling: the output it will settle on at the end of the step.
    """

    seq: int
    agent: Agent
    history: History
    settings: Settings
    streamed: bool = False
    prior: list[RunMessage] = field(default_factory=list)
    prompt: RunMessage | None = None
    ready: bool = False
    phase: Phase | None = None
    ending: Ending | None = None
    cursor: int = 0
    output_retries: int = 0
    invalid_retries: int = 0
    provider_retried: int = 0
    retrying: bool = False
    uses_model: str | None = None
    output_tool: str | None = None
    usage: dict[str, int | None] = field(default_factory=dict)
    turns: list[Turn] = field(default_factory=list)
    effects: list[PendingEffect] = field(default_factory=list)
    holds: dict[str, int] = field(default_factory=dict)
    calls: int = 0
    settling: str | None = None
    told: bool = False
    memory: Memory | None = None
    documents: dict[str, Document] = field(default_factory=dict)
    host: dict[str, Any] = field(default_factory=dict)

    @property
    def scope(self) -> str:
        """Names the run in records."""
        return f"r{self.seq}"

    @property
    def name(self) -> str:
        """Names the run to people."""
        return f"{self.agent.owner} run {self.seq}"

    @property
    def turn(self) -> Turn | None:
        """The newest round."""
        return self.turns[-1] if self.turns else None

    @property
    def settles(self) -> bool:
        """Whether it has its answer, and nothing but its ending is left: it asks nothing more."""
        return self.ending is None and (self.settling is not None or (bool(self.turns) and self.turns[-1].settles))

    @property
    def messages(self) -> tuple[RunMessage, ...]:
        """The stored messages."""
        return self.history.messages()

    @property
    def committed(self) -> int:
        """The newest committed turn; 0 where there is none."""
        return max((turn.commit or 0 for turn in self.turns), default=0)

    @property
    def stands_still(self) -> bool:
        """Whether somebody holds it at a turn that it has committed."""
        committed = self.committed if self.holds else 0
        return committed > 0 and any(turn <= committed for turn in self.holds.values())
