"""Entities read into runs, in a scratch place of their own: nothing of the destination is touched here.

Every entity is looked at before anything is believed: what it hangs on and what it refers to, its values by their
fields' hints, messages by what their role may hold, media by the payloads there are, calls that a batch holds back by
what a batch can hold (run contract, section 13). Derived things (the effects of a round, the fold of a stream that has
ended) are made again. Left out: effects by themselves (``restored_effects``), who serves what, and going on
(``run_restore``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bargein.pipelines.agent.answers import StreamFold
from bargein.pipelines.agent.assets import BinaryAssets
from bargein.pipelines.agent.edits import PartEdit, RemoveEdit, TextEdit
from bargein.pipelines.agent.history import Held, HeldMessage, History, ResultStatus
from bargein.pipelines.agent.media_sources import Base64, ContentError, Raw, Source, Stored
from bargein.pipelines.agent.messages import Role
from bargein.pipelines.agent.parts import AssistantHead, MediaPart, Part, ResultPart, RunMessage
from bargein.pipelines.agent.restored_effects import RestoredEffects, check_ids
from bargein.pipelines.agent.run_checkpoint import RunCheckpoint
from bargein.pipelines.agent.run_settings import Agent, Settings
from bargein.pipelines.agent.run_state import InvalidCall, PendingEffect, Run, Turn
from bargein.pipelines.agent.saved_errors import (
    BadBinary,
    BadContent,
    BadLink,
    BadParent,
    BadValue,
    MissingBinary,
    UnknownField,
    UnknownHostState,
    UnknownKind,
)
from bargein.pipelines.agent.saved_graph import AGENT, EFFECT, INVALID, RUN, TURN
from bargein.pipelines.agent.saved_values import ValueFault, count, read, read_fields, shaped

__all__ = ["RestoredGraph"]

_LINKS: Mapping[str, tuple[str, ...]] = {
    "handler": ("key", "descriptor"),
    "agent": (),
    "run": ("agent", "seq", "next_part", "host"),
    "message": ("parent", "role", "head", "remembered"),
    "part": ("parent", "id", "part", "status"),
    "turn": ("parent", "assistant", "results"),
    "edit": ("parent", "target", "text"),
    "invalid_call": ("parent", "block"),
    "effect": ("parent", "place", "asks", "id", "on_behalf_of", "held", "slot", "release_in_us", "withheld"),
}
_VALUES: Mapping[str, tuple[str, ...]] = {"agent": AGENT, "run": RUN, "turn": TURN, "invalid_call": INVALID}
_VALUES = {**_VALUES, "effect": EFFECT}
"""What an entity of each kind may have, besides its kind."""


@dataclass(slots=True)
class _Saved:
    """What a run's entities say that is put together once all of them were read."""

    effects: RestoredEffects
    parts: dict[str, int] = field(default_factory=dict)


class RestoredGraph:
    """The runs of a checkpoint.

    Args:
        checkpoint: what was saved.
        assets: a scratch store with what the destination has; the payloads are put into it.
        host_state: what the destination has registered, by name.
        wake: what effects call when something about them changed.

    Attributes:
        objects: what was made of each entity, by its position; handlers make none.
        runs: the runs, in order; effects: of all of them, in the order in which each asked.
        assets: the scratch store.
        waits_us: of effects held by a backoff, how much longer.
        withheld: effects that were answered, and whose asker had not been told.

    Raises:
        CheckpointError: the class says why.
    """

    def __init__(
        self,
        checkpoint: RunCheckpoint,
        assets: BinaryAssets,
        host_state: Mapping[str, tuple[Any, Any]],
        wake: Any,
    ) -> None:
        self._checkpoint = checkpoint
        self.assets = assets
        self._host_state = host_state
        self._wake = wake
        self._run_of: list[Run | None] = []
        self._of_run: dict[Run, _Saved] = {}
        self.objects: list[Any] = []
        self.runs: list[Run] = []
        self.waits_us: dict[PendingEffect, int] = {}
        self.withheld: dict[PendingEffect, None] = {}
        self._binaries()
        for at, entity in enumerate(checkpoint.entities):
            self._entity(at, entity)
        for run in self.runs:
            self._complete(run)
        self.effects = [effect for run in self.runs for effect in run.effects]
        check_ids(self.effects, checkpoint.name)

    def _place(self, at: int) -> str:
        return f"{self._checkpoint.name}: entities[{at}]"

    def _binaries(self) -> None:
        for digest, data in self._checkpoint.binaries.items():
            try:
                self.assets.put(Raw(data))
            except ContentError as error:
                raise BadBinary(f"{self._checkpoint.name}: binaries.{digest}: {error}") from error

    # -- entities -----------------------------------------------------------------------------------------

    def _entity(self, at: int, entity: Mapping[str, Any]) -> None:
        place, kind = self._place(at), entity["kind"]
        if kind not in _LINKS:
            raise UnknownKind(f"{place}.kind: found {kind!r}; accepted is one of {', '.join(_LINKS)}")
        known = (*_LINKS[kind], *_VALUES.get(kind, ()))
        for name in entity:
            if name != "kind" and name not in known:
                raise UnknownField(
                    f"{place}.{name}: an entity of kind {kind} has no {name}; accepted is {', '.join(known)}"
                )
        for name in _LINKS[kind]:
            if name not in entity:
                raise BadValue(f"{place}: {name} is missing; it was edited")
        made: Any = None
        self._run_of.append(None)
        try:
            if kind != "handler":
                made = getattr(self, f"_{kind}")(at, entity, place)
        except ValueFault as fault:
            raise BadValue(str(fault)) from fault
        except ContentError as error:
            raise BadContent(f"{place}: {error}") from error
        self.objects.append(made)

    def _agent(self, _: int, entity: Mapping[str, Any], place: str) -> Agent:
        values = read_fields(Agent, AGENT, entity, place)
        return Agent(**values)

    def _run(self, at: int, entity: Mapping[str, Any], place: str) -> Run:
        seq, next_part = count(entity["seq"], f"{place}.seq"), count(entity["next_part"], f"{place}.next_part")
        agent = self._linked(entity["agent"], Agent, f"{place}.agent", BadLink)
        if any(run.seq == seq for run in self.runs) or not 0 < seq < self._checkpoint.next_run:
            raise BadValue(f"{place}.seq: found {seq}; accepted is a number of its own below counters.next_run")
        values = read_fields(Run, RUN, entity, place)
        settings: Settings = values.pop("settings")
        run = Run(seq, agent, History(f"r{seq}", self.assets), settings, **values)
        run.history.next_part = next_part
        run.host = self._host(entity["host"], place)
        self.runs.append(run)
        self._of_run[run] = _Saved(RestoredEffects(run, self._wake))
        self._run_of[at] = run
        return run

    def _host(self, data: Any, place: str) -> dict[str, Any]:
        if type(data) is not dict:
            raise BadValue(f"{place}.host: found a {type(data).__name__}; accepted is a mapping")
        for name in data:
            if name not in self._host_state:
                accepted = ", ".join(self._host_state) or "nothing, since nobody registered any"
                raise UnknownHostState(f"{place}.host.{name}: nobody registered it here; accepted is {accepted}")
        read_back = {}
        for name, each in data.items():
            try:
                read_back[name] = self._host_state[name][1](read(each, f"{place}.host.{name}"))
            except (TypeError, ValueError, LookupError, AttributeError) as error:
                raise BadValue(f"{place}.host.{name}: it cannot be read: {error}") from error
        return read_back

    def _message(self, at: int, entity: Mapping[str, Any], place: str) -> HeldMessage:
        run = self._parent(at, entity, Run, place)
        role = entity["role"]
        if role not in tuple(Role):
            raise BadValue(f"{place}.role: found {role!r}; accepted is one of {', '.join(Role)}")
        head = shaped(read(entity["head"], f"{place}.head"), AssistantHead | None, f"{place}.head")
        remembered = shaped(entity["remembered"], bool, f"{place}.remembered")
        message = HeldMessage(Role(role), [], head, remembered)
        RunMessage(message.role, (), head)  # whether the role may have a head
        run.history.stored.append(message)
        return message

    def _part(self, at: int, entity: Mapping[str, Any], place: str) -> Held:
        parent = self._parent(at, entity, HeldMessage | Held, place)
        run = self._run_of[at]
        assert run is not None
        part = shaped(read(entity["part"], f"{place}.part"), Part, f"{place}.part")
        id_, status = shaped(entity["id"], str, f"{place}.id"), entity["status"]
        if status is not None and status not in tuple(ResultStatus):
            raise BadValue(f"{place}.status: found {status!r}; accepted is one of {', '.join(ResultStatus)}")
        if status is not None and type(part) is not ResultPart:
            raise BadValue(f"{place}.status: it is that of a tool's result, and stands on a {part.type} part")
        if id_ in self._of_run[run].parts:
            raise BadValue(f"{place}.id: {run.scope} has two parts {id_}")
        if not _was_given(id_, run):
            raise BadValue(
                f"{place}.id: found {id_!r}; accepted is {run.scope}: and a number below the run's next_part"
            )
        if type(part) is ResultPart and part.items:
            raise BadValue(f"{place}.part.items: what a result holds hangs on it; accepted is none in itself")
        if isinstance(part, MediaPart):
            self._check_source(part.source, place)
        held = Held(id_, part, (), None if status is None else ResultStatus(status))
        self._of_run[run].parts[id_] = at
        self._hang(parent, held, place)
        return held

    def _check_source(self, source: Source, place: str) -> None:
        if isinstance(source, Raw | Base64):
            raise BadValue(f"{place}.part.source: a stored medium points to its payload; it was edited")
        if isinstance(source, Stored) and source.sha256 not in self.assets:
            raise MissingBinary(f"{place}.part.source: payload {source.sha256} is not among the binaries")

    def _hang(self, parent: HeldMessage | Held, held: Held, place: str) -> None:
        """A part on its message, or an item in its result."""
        if isinstance(parent, HeldMessage):
            parent.parts.append(held)
            RunMessage(parent.role, (held.part,))  # whether the role may hold it
            return
        if type(parent.part) is not ResultPart:
            raise BadParent(f"{place}.parent: it hangs on a {parent.part.type} part, which holds none")
        parent.items = (*parent.items, held)
        inside: Any = (*parent.part.items, held.part)
        RunMessage(Role.USER, (ResultPart("", inside[-1:]),))  # whether a result may hold it
        parent.part = ResultPart(parent.part.call_id, inside, parent.part.name, parent.part.provider_id)

    def _turn(self, at: int, entity: Mapping[str, Any], place: str) -> Turn:
        run = self._parent(at, entity, Run, place)
        turn = Turn(**read_fields(Turn, TURN, entity, place))
        turn.assistant = self._own_message(entity["assistant"], run, Role.ASSISTANT, f"{place}.assistant")
        turn.results = self._own_message(entity["results"], run, Role.USER, f"{place}.results")
        if (turn.commit is None) is not (turn.results is None):
            raise BadLink(f"{place}.results: a round is committed with the message that has its results; it was edited")
        if turn.commit is not None and turn.commit != turn.number:
            raise BadValue(f"{place}.commit: found {turn.commit}; accepted is {turn.number}, the round's own number")
        if turn.items or turn.answer is not None or turn.broken:
            turn.fold = _folded(run, turn, place)
        run.turns.append(turn)
        return turn

    def _own_message(self, link: Any, run: Run, role: Role, place: str) -> int | None:
        """The position of a message of this run that a round is linked to."""
        if link is None:
            return None
        message = self._linked(link, HeldMessage, place, BadLink)
        found = [at for at, each in enumerate(run.history.stored) if each is message]
        if not found:
            raise BadLink(f"{place}: entity {link} is a message of another run than {run.scope}")
        if message.role is not role:
            raise BadLink(f"{place}: entity {link} is of role {message.role}; accepted is a message of role {role}")
        if role is Role.USER and any(type(each.part) is not ResultPart for each in message.parts):
            raise BadLink(f"{place}: entity {link} holds more than results of tools")
        return found[0]

    def _edit(self, at: int, entity: Mapping[str, Any], place: str) -> PartEdit:
        turn = self._parent(at, entity, Turn, place)
        held = self._linked(entity["target"], Held, f"{place}.target", BadLink)
        if self._run_of[entity["target"]] is not self._run_of[at]:
            raise BadLink(f"{place}.target: entity {entity['target']} is a part of another run")
        text = shaped(entity["text"], str | None, f"{place}.text")
        edit: PartEdit = RemoveEdit(held.id) if text is None else TextEdit(held.id, text)
        turn.edits.append(edit)
        return edit

    def _invalid_call(self, at: int, entity: Mapping[str, Any], place: str) -> InvalidCall:
        turn = self._parent(at, entity, Turn, place)
        invalid = InvalidCall(**read_fields(InvalidCall, INVALID, entity, place))
        block = shaped(entity["block"], int | None, f"{place}.block")
        blocks = [] if turn.fold is None else turn.fold.blocks
        if block is not None and not 0 <= block < len(blocks):
            raise BadLink(f"{place}.block: found {block}; the round's stream has {len(blocks)} blocks")
        invalid.block = None if block is None else blocks[block]
        turn.invalid.append(invalid)
        return invalid

    def _effect(self, at: int, entity: Mapping[str, Any], place: str) -> PendingEffect:
        parent = self._parent(at, entity, Run | Turn, place)
        run = self._run_of[at]
        assert run is not None
        return self._of_run[run].effects.read(entity, parent if isinstance(parent, Turn) else None, place)

    # -- references ---------------------------------------------------------------------------------------

    def _parent(self, at: int, entity: Mapping[str, Any], kind: Any, place: str) -> Any:
        """What an entity hangs on; it belongs to the same run."""
        parent = self._linked(entity["parent"], kind, f"{place}.parent", BadParent)
        self._run_of[at] = self._run_of[entity["parent"]]
        return parent

    def _linked(self, link: Any, kind: Any, place: str, error: type[BadLink | BadParent]) -> Any:
        """The object made of an earlier entity."""
        if type(link) is not int or not 0 <= link < len(self.objects):
            raise error(f"{place}: found {link!r}; accepted is the position of an entity before it")
        found = self.objects[link]
        if not isinstance(found, kind):
            raise error(
                f"{place}: entity {link} is of kind {self._checkpoint.entities[link]['kind']}, which does not fit"
            )
        return found

    # -- putting a run together ---------------------------------------------------------------------------

    def _complete(self, run: Run) -> None:
        """What is derived of a run, once all of it was read."""
        effects = self._of_run[run].effects
        effects.complete(self._checkpoint.name)
        self.waits_us.update(effects.waits_us)
        self.withheld.update(effects.withheld)
        try:
            run.history.messages()
        except ContentError as error:
            raise BadContent(f"{self._checkpoint.name}: {run.scope}: {error}") from error


def _was_given(id_: str, run: Run) -> bool:
    """Whether a part's id is one that the run has given before."""
    owner, _, number = id_.rpartition(":")
    return (
        owner == run.scope and number.isdecimal() and f"{int(number)}" == number and int(number) < run.history.next_part
    )


def _folded(run: Run, turn: Turn, place: str) -> StreamFold:
    """The fold of what had streamed in."""
    fold = StreamFold(run.scope, turn.first_call)
    broken = {at for at, _ in turn.errors}
    for at, item in enumerate(turn.items):
        if at not in broken:
            try:
                fold.feed(item)
            except (TypeError, ValueError, AttributeError) as error:
                raise BadValue(f"{place}.items[{at}]: it is no item of a stream: {error}") from error
    return fold
