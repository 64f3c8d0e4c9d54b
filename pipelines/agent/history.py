"""The stored messages of one run, part by part, each part known by an id that stays.

What a request sends is read from here anew each round, so whatever was changed is in the next one; what was read
before is a snapshot (run contract, sections 1 and 9.3). Media go through the asset store on their way in and out.
Left out: changes for one request only (``edits``), and what may be sent of it (``fold``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypeVar

from bargein.pipelines.agent.assets import BinaryAssets
from bargein.pipelines.agent.media_sources import ContentError, Stored
from bargein.pipelines.agent.messages import Role
from bargein.pipelines.agent.parts import (
    AssistantHead,
    ImagePart,
    JsonPart,
    MediaPart,
    Part,
    ResultPart,
    RunMessage,
    TextPart,
)

__all__ = ["Held", "HeldMessage", "History", "ResultStatus"]

_Any = TypeVar("_Any", bound=Any)


class ResultStatus(StrEnum):
    """How a result came about, kept beside it as data; nothing that is sent depends on it."""

    OK = "Ok"
    ERROR = "Error"
    REFUSED = "Refused"
    SKIPPED = "Skipped"
    DENIED = "Denied"
    WRONG_FAMILY = "WrongFamily"


@dataclass(slots=True, eq=False)
class Held:
    """One stored part.

    Attributes:
        id: names it for good; ``<run>:<number>``.
        part: as stored; media point into the store.
        items: what a tool's result holds, each with an id of its own.
        status: of a result that a batch brought.
    """

    id: str
    part: Part
    items: tuple[Held, ...] = ()
    status: ResultStatus | None = None


@dataclass(slots=True, eq=False)
class HeldMessage:
    """One stored message; ``remembered`` where it was loaded from a memory, which has it already."""

    role: Role
    parts: list[Held]
    head: AssistantHead | None = None
    remembered: bool = False


class History:
    """The messages of one run, oldest first.

    Args:
        owner: name of the run; part ids begin with it.
        assets: where media are kept.

    Attributes:
        stored: the messages, oldest first.
        next_part: number of the next part.
    """

    def __init__(self, owner: str, assets: BinaryAssets) -> None:
        self.owner = owner
        self.stored: list[HeldMessage] = []
        self._assets = assets
        self.next_part = 0

    def __len__(self) -> int:
        return len(self.stored)

    def keep_in(self, assets: BinaryAssets) -> None:
        """Have media kept in another store, which has those of this history already."""
        self._assets = assets

    # -- writing ------------------------------------------------------------------------------------------

    def append(self, message: RunMessage, statuses: Sequence[ResultStatus | None] = ()) -> int:
        """Add a message.

        Args:
            statuses: of its parts, where they are results of a batch.

        Returns:
            Its position.

        Raises:
            ContentError: the asset store refuses a medium; nothing was added.
        """
        held = self._hold(message)
        for one, status in zip(held.parts, statuses, strict=False):
            one.status = status
        self.stored.append(held)
        return len(self.stored) - 1

    def remember(self, messages: Sequence[RunMessage]) -> None:
        """Put messages that a memory has before all others.

        Raises:
            ContentError: the asset store refuses a medium; nothing was added.
        """
        held = [self._hold(message) for message in messages]
        for each in held:
            each.remembered = True
        self.stored[:0] = held

    def write(self, position: int, message: RunMessage) -> None:
        """Put ``message`` in the place of another, for good; its parts are new ones.

        Raises:
            ContentError: the asset store refuses a medium; nothing was changed.
        """
        self.stored[position] = self._hold(message)

    def edit(self, part_id: str, part: Part) -> None:
        """Put ``part`` in the place of another, for good; it keeps the id. What a tool's result holds is a part too.

        Raises:
            ContentError: there is no such part, or it may not stand there.
        """
        for result in [one for message in self.stored for one in message.parts]:
            if any(item.id == part_id for item in result.items):
                self._edit_item(result, part_id, part)
                return
        message, held = self._find(part_id)
        fresh = self._hold_part(part)
        parts = [fresh.part if one is held else one.part for one in message.parts]
        RunMessage(message.role, tuple(parts), message.head)
        held.part, held.items = fresh.part, fresh.items
        if type(part) is not ResultPart:
            held.status = None

    def _edit_item(self, result: Held, part_id: str, part: Part) -> None:
        fresh = self._hold_part(part)
        inside: Any = tuple([fresh.part if item.id == part_id else item.part for item in result.items])
        RunMessage(Role.USER, (ResultPart("", inside),))  # whether a result may hold it
        result.part = replace(result.part, items=inside)
        next(item for item in result.items if item.id == part_id).part = fresh.part

    def reorder(self, position: int, order: Sequence[int]) -> None:
        """Have the parts of a message stand in another order.

        Raises:
            ContentError: ``order`` does not name each part once.
        """
        parts = self.stored[position].parts
        if sorted(order) != list(range(len(parts))):
            raise ContentError(f"order {list(order)}: accepted is each of 0 to {len(parts) - 1} once")
        self.stored[position].parts = [parts[at] for at in order]

    # -- reading ------------------------------------------------------------------------------------------

    def messages(self) -> tuple[RunMessage, ...]:
        """All messages, media as they came in.

        Raises:
            ContentError: a medium's bytes are not in the store.
        """
        return tuple([self.read(position) for position in range(len(self.stored))])

    def own(self) -> tuple[RunMessage, ...]:
        """The messages that no memory has."""
        return tuple([self.read(at) for at, held in enumerate(self.stored) if not held.remembered])

    def read(self, position: int) -> RunMessage:
        """One message, media as they came in."""
        held = self.stored[position]
        return RunMessage(held.role, tuple([self.out(one) for one in held.parts]), held.head)

    def out(self, held: Held) -> Part:
        """A stored part as it is sent."""
        if type(held.part) is ResultPart:
            items: tuple[Any, ...] = tuple([self._shown(one.part) for one in held.items])
            return replace(held.part, items=items)
        return self._shown(held.part)

    def ids(self, position: int) -> tuple[str, ...]:
        """The ids of a message's parts."""
        return tuple([held.id for held in self.stored[position].parts])

    def item_ids(self, part_id: str) -> tuple[str, ...]:
        """The ids of what a tool's result holds."""
        return tuple([held.id for held in self._find(part_id)[1].items])

    def statuses(self, position: int) -> tuple[ResultStatus | None, ...]:
        """How the results of a message came about."""
        return tuple([held.status for held in self.stored[position].parts])

    def held(self) -> Iterator[Held]:
        """Every part, and every item after its result."""
        for message in self.stored:
            for one in message.parts:
                yield one
                yield from one.items

    def digests(self) -> Iterator[str]:
        """Every asset that is used."""
        for held in self.held():
            if isinstance(held.part, MediaPart) and isinstance(held.part.source, Stored):
                yield held.part.source.sha256

    def _find(self, part_id: str) -> tuple[HeldMessage, Held]:
        for message in self.stored:
            for held in message.parts:
                if held.id == part_id:
                    return message, held
        raise ContentError(f"part {part_id}: {self.owner} has no such part")

    def _shown(self, part: _Any) -> _Any:
        return replace(part, source=self._assets.out(part.source)) if isinstance(part, MediaPart) else part

    def _hold(self, message: RunMessage) -> HeldMessage:
        return HeldMessage(message.role, [self._hold_part(part) for part in message.parts], message.head)

    def _hold_part(self, part: Part) -> Held:
        if isinstance(part, MediaPart):
            part = replace(part, source=self._assets.put(part.source))
        held = Held(f"{self.owner}:{self.next_part}", part)
        self.next_part += 1
        if type(part) is ResultPart:
            held.items = tuple([self._hold_part(item) for item in part.items])
            stored: Any = tuple([item.part for item in held.items])
            assert all(type(each) in (TextPart, ImagePart, JsonPart) for each in stored)
            held.part = replace(part, items=stored)
        return held
