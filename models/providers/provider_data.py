"""A provider's own data on its way through a conversation: packed by a decoder, unpacked by the same wire's encoder.

An assistant message holds text and calls; what else an answer held (reasoning, signatures, item ids) and in which
order rides beside them as plain data, tagged with the wire. Nothing else reads it (tool contract, "Internal
representation"). It refers to text by length, so that a message cut to what was heard is still spelled in its order.
Another wire's data is left out: a conversation may go on at another provider.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bargein.models.providers.errors import RequestError
from bargein.pipelines.agent.messages import Message, ToolCall

__all__ = ["Order", "Piece", "call_data", "message_data", "pieces_of"]


@dataclass(frozen=True, slots=True)
class Piece:
    """One thing of an assistant message, in the provider's order: text, a call, or an item of the provider's own.

    Attributes:
        data: members that the provider gave a text.
        cut: the text is shorter than the provider's was.
    """

    text: str = ""
    call: ToolCall | None = None
    item: Mapping[str, Any] | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    cut: bool = False


class Order:
    """Notes in which order an answer came; a decoder keeps one."""

    __slots__ = ("_wire", "entries")

    def __init__(self, wire: str) -> None:
        self._wire = wire
        self.entries: list[dict[str, Any]] = []

    def text(self, length: int, join: bool = True) -> dict[str, Any]:
        """So many characters of text; they belong to the text before unless ``join`` is off."""
        if join and self.entries and "text" in self.entries[-1] and "with" not in self.entries[-1]:
            self.entries[-1]["text"] += length
        else:
            self.entries.append({"text": length})
        return self.entries[-1]

    def call(self, index: int) -> None:
        """The call of this index."""
        self.entries.append({"call": index})

    def item(self, item: Any) -> None:
        """An item to be sent back verbatim."""
        self.entries.append({"item": item})

    def packed(self, **more: Any) -> dict[str, Any] | None:
        """The data for the message; ``None`` where text and then calls say it all."""
        entries = [each for each in self.entries if each.get("text") != 0 or "with" in each]
        calls = [at for at, each in enumerate(entries) if "call" in each]
        plain = all(set(each) == {"text"} for each in entries if "call" not in each) and len(entries) - len(calls) <= 1
        if plain and calls == list(range(len(entries) - len(calls), len(entries))) and not more:
            return None
        return {"wire": self._wire, "order": entries, **more}


def message_data(provider: str, wire: str, message: Message) -> Mapping[str, Any]:
    """This wire's data of a message; empty where it has none.

    Raises:
        RequestError: it has another shape than this wire gives it.
    """
    return _own(provider, wire, message.provider_data, "a message")


def call_data(provider: str, wire: str, call: ToolCall) -> Mapping[str, Any]:
    """This wire's data of a call; empty where it has none.

    Raises:
        RequestError: it has another shape than this wire gives it.
    """
    return _own(provider, wire, call.provider_data, f"call {call.id}")


def _own(provider: str, wire: str, data: Any, whose: str) -> Mapping[str, Any]:
    if data is None:
        return {}
    if type(data) is not dict or type(data.get("wire")) is not str:
        raise RequestError(provider, f"the provider data of {whose} is no mapping that names its wire")
    return data if data["wire"] == wire else {}


def pieces_of(provider: str, wire: str, message: Message) -> list[Piece]:
    """An assistant message in the order in which this provider gave it; text first and calls after it otherwise."""
    text, calls = message.text, message.calls
    entries = message_data(provider, wire, message).get("order", [])
    pieces: list[Piece] = []
    at = 0
    placed: set[int] = set()
    try:
        for entry in entries:
            if "text" in entry:
                part = text[at : at + entry["text"]]
                cut = len(part) < entry["text"]
                at += entry["text"]
                if part or not entry["text"]:
                    pieces.append(Piece(part, data=entry.get("with", {}), cut=cut))
            elif "call" in entry:
                if 0 <= entry["call"] < len(calls):
                    placed.add(entry["call"])
                    pieces.append(Piece(call=calls[entry["call"]]))
            else:
                pieces.append(Piece(item=dict(entry["item"])))
    except (KeyError, TypeError, ValueError):
        raise RequestError(provider, f"the provider data of a message is not what {wire} gives") from None
    if at < len(text):
        pieces.append(Piece(text[at:]))
    return [*pieces, *(Piece(call=call) for index, call in enumerate(calls) if index not in placed)]
