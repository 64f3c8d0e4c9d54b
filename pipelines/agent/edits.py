"""Changes to one request that leave what is stored alone: edits of parts, and patches of the whole.

Hooks place both on a fresh round; assembly applies them to that round's request and to no other (run contract,
section 9.3). Left out: changes for good (``history``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bargein.pipelines.agent.history import Held, History
from bargein.pipelines.agent.media_sources import ContentError
from bargein.pipelines.agent.parts import Part, ResultPart, RunMessage, TextPart
from bargein.pipelines.agent.run_settings import Document

__all__ = ["PartEdit", "RemoveEdit", "RequestPatch", "TextEdit", "edited"]


@dataclass(frozen=True, slots=True)
class TextEdit:
    """Have a text part say something else; its annotations stay."""

    target: str
    text: str


@dataclass(frozen=True, slots=True)
class RemoveEdit:
    """Leave a part out, with what it holds."""

    target: str


PartEdit = TextEdit | RemoveEdit


def edited(history: History, edits: Sequence[PartEdit]) -> list[RunMessage]:
    """The messages of ``history`` with ``edits`` applied; the last edit of a part wins, a removed part takes all with
    it, and a message that loses every part is left out.

    Raises:
        ContentError: a target is none of this history's, or is no text where text is edited.
    """
    if not edits:
        return list(history.messages())
    known = {held.id: held for held in history.held()}
    last: dict[str, PartEdit] = {}
    for edit in edits:
        held = known.get(edit.target)
        if held is None:
            raise ContentError(f"edit of {edit.target}: {history.owner} has no such part")
        if isinstance(edit, TextEdit) and type(held.part) is not TextPart:
            raise ContentError(f"edit of {edit.target}: found {held.part.type}; only text can be given other words")
        last[edit.target] = edit
    messages = []
    for message in history.stored:
        parts = [part for held in message.parts if (part := _edited(history, held, last)) is not None]
        if parts or not message.parts:
            messages.append(RunMessage(message.role, tuple(parts), message.head))
    return messages


def _edited(history: History, held: Held, edits: Mapping[str, PartEdit]) -> Part | None:
    edit = edits.get(held.id)
    if isinstance(edit, RemoveEdit):
        return None
    part = history.out(held)
    if isinstance(edit, TextEdit) and type(part) is TextPart:
        return replace(part, text=edit.text)
    if type(part) is ResultPart:
        items: Any = [_edited(history, item, edits) for item in held.items]
        return replace(part, items=tuple([item for item in items if item is not None]))
    return part


@dataclass(frozen=True, slots=True)
class RequestPatch:
    """Another request for one round; ``None`` leaves a field as it is.

    Attributes:
        preamble: in place of the agent's; what the output mode adds still follows.
        temperature, max_tokens, tool_choice: in place of the settings.
        active_tools: only these are on offer.
        additional_params: a mapping goes over the settings', anything else takes their place.
        extra_context: documents after the round's own.
        history: messages in place of the stored ones.
    """

    preamble: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    tool_choice: Any = None
    active_tools: tuple[str, ...] | None = None
    additional_params: Any = None
    extra_context: tuple[Document, ...] = ()
    history: tuple[RunMessage, ...] | None = None

    def merge(self, later: RequestPatch) -> RequestPatch:
        """Both, where ``later`` has the last word: documents are appended, mappings merged, tools intersected."""
        ours, theirs = self.active_tools, later.active_tools
        tools = theirs if ours is None else ours if theirs is None else tuple([name for name in ours if name in theirs])
        return RequestPatch(
            self.preamble if later.preamble is None else later.preamble,
            self.temperature if later.temperature is None else later.temperature,
            self.max_tokens if later.max_tokens is None else later.max_tokens,
            self.tool_choice if later.tool_choice is None else later.tool_choice,
            tools,
            over(self.additional_params, later.additional_params),
            (*self.extra_context, *later.extra_context),
            self.history if later.history is None else later.history,
        )


def over(under: Any, above: Any) -> Any:
    """``above`` laid over ``under``: two mappings merge key by key, anything else takes its place."""
    if above is None:
        return under
    if isinstance(under, Mapping) and isinstance(above, Mapping):
        return {**under, **above}
    return above
