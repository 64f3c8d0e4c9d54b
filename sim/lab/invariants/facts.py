"""A timeline read once: the pieces that every checker asks for.

It knows the vocabulary and nothing of the stages: what an utterance's audible spans were, which message a response
became, what the context held. Left out: any judgment; the checkers judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bargein.sim.kernel.timeline import Record

__all__ = ["Facts", "Message", "Response", "Utterance", "epoch_of_call"]


def epoch_of_call(call: str, otherwise: int) -> int:
    """The turn that a call id belongs to (``t<epoch>.<seq>``), or ``otherwise`` for an id of another form."""
    head, dot, _ = call.partition(".")
    return int(head[1:]) if dot and head[:1] == "t" and head[1:].isdigit() else otherwise


@dataclass(slots=True)
class Utterance:
    """One TTS context on its way to the ear.

    Attributes:
        spans: audible pieces as ``(first sample, samples)`` on the global grid; the last one is open while playing.
        heard: samples heard in all.
        close: the record that ended it: ``playout.ended``, ``playout.cut`` or ``tts.dropped``.
        pauses: the ``playout.starved`` and ``playout.resumed`` records.
    """

    number: Any
    epoch: int
    ordinal: int | None
    source: str
    opened: Record | None
    started: Record | None = None
    close: Record | None = None
    received: int | None = None
    heard: int = 0
    spans: list[tuple[int, int]] = field(default_factory=list)
    words: list[Record] = field(default_factory=list)
    pauses: list[Record] = field(default_factory=list)

    @property
    def end_sample(self) -> int | None:
        """The global sample after the last one heard; ``None`` when none was."""
        return self.spans[-1][0] + self.spans[-1][1] if self.spans else None


@dataclass(slots=True)
class Response:
    """One thing the agent set out to say, and the message it became."""

    started: Record
    utterances: list[Utterance] = field(default_factory=list)
    message: Message | None = None

    @property
    def epoch(self) -> int:
        return int(self.started["epoch"])

    @property
    def source(self) -> str:
        return str(self.started["source"])

    def heard_text(self, before_seq: int | None = None) -> str:
        """The words that were heard (before a record), joined."""
        return "".join(
            str(word["word"])
            for utterance in self.utterances
            for word in utterance.words
            if before_seq is None or word["seq"] < before_seq
        )


@dataclass(slots=True)
class Message:
    """One message of the context, with the edits made to it: ``(seq, text)``, or ``None`` for its removal."""

    pushed: Record
    edits: list[tuple[int, str | None]] = field(default_factory=list)
    response: Response | None = None

    def text_at(self, seq: int | None = None) -> str | None:
        """What it says (before a record); ``None`` once it is removed."""
        text: str | None = self.pushed["text"]
        for at, edit in self.edits:
            if seq is None or at < seq:
                text = edit
        return text


class Facts:
    """Everything the checkers share. Built in one pass; the lists keep the order of the timeline.

    Invariant: nothing here is derived from a record that comes later than the one it describes, except ``close``,
    ``edits`` and ``message``, which say so.
    """

    __slots__ = ("_kinds", "_pending", "messages", "records", "responses", "utterances")

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = records
        self._kinds: dict[str, list[Record]] = {}
        self.utterances: dict[Any, Utterance] = {}
        self.responses: dict[tuple[int, Any], Response] = {}
        self.messages: dict[Any, Message] = {}
        self._pending: dict[str, list[Response]] = {}
        for record in records:
            self._kinds.setdefault(record["kind"], []).append(record)
            read = _READERS.get(record["kind"])
            if read is not None:
                read(self, record)

    def of(self, kind: str) -> list[Record]:
        """The records of one kind."""
        return self._kinds.get(kind, [])

    def first(self, kind: str) -> dict[int, Record]:
        """The first record of a kind in each epoch."""
        found: dict[int, Record] = {}
        for record in self.of(kind):
            found.setdefault(record["epoch"], record)
        return found

    @property
    def end(self) -> Record | None:
        """The last record."""
        return self.records[-1] if self.records else None

    # -- reading ------------------------------------------------------------------------------------------

    def _response(self, record: Record) -> None:
        response = Response(record)
        self.responses[record["epoch"], record["ordinal"]] = response
        self._pending.setdefault(record["source"], []).append(response)

    def _opened(self, record: Record) -> None:
        utterance = Utterance(record["utterance"], record["epoch"], record["ordinal"], record["source"], record)
        self.utterances[record["utterance"]] = utterance
        response = self.responses.get((record["epoch"], record["ordinal"]))
        if response is not None:
            response.utterances.append(utterance)

    def _at(self, record: Record) -> Utterance:
        utterance = self.utterances.get(record["utterance"])
        if utterance is None:  # played without having been opened: a fault, but one that can still be described
            utterance = Utterance(record["utterance"], record["epoch"], None, record.get("source", ""), None)
            self.utterances[record["utterance"]] = utterance
        return utterance

    def _started(self, record: Record) -> None:
        utterance = self._at(record)
        utterance.started = utterance.started or record
        utterance.spans.append((record["at_sample"], 0))

    def _heard(self, utterance: Utterance, samples: int) -> None:
        if utterance.spans and samples > utterance.heard:
            at, length = utterance.spans[-1]
            utterance.spans[-1] = (at, length + samples - utterance.heard)
        utterance.heard = max(utterance.heard, samples)

    def _starved(self, record: Record) -> None:
        utterance = self._at(record)
        self._heard(utterance, record["samples"])
        utterance.pauses.append(record)

    def _resumed(self, record: Record) -> None:
        utterance = self._at(record)
        utterance.spans.append((record["at_sample"], 0))
        utterance.pauses.append(record)

    def _word(self, record: Record) -> None:
        self._at(record).words.append(record)

    def _received(self, record: Record) -> None:
        self._at(record).received = record["samples"]

    def _closed(self, record: Record) -> None:
        utterance = self._at(record)
        utterance.close = utterance.close or record
        self._heard(utterance, record["samples"])

    def _dropped(self, record: Record) -> None:
        utterance = self._at(record)
        utterance.close = utterance.close or record

    def _pushed(self, record: Record) -> None:
        message = Message(record)
        self.messages[record["message"]] = message
        if record["role"] == "assistant":
            response = self._claim(record)
            if response is not None:
                response.message, message.response = message, response

    def _claim(self, record: Record) -> Response | None:
        """The response that a pushed assistant message tells of.

        An answer is pushed when its stream ends, so it is the newest one that has no message; fillers and fallbacks
        are kept aside and pushed in the order they were spoken. A response that was never pushed is left behind.
        """
        pending = self._pending.get(record["source"], [])
        own = [response for response in pending if response.epoch == record["epoch"]]
        if not own:
            return None
        response = own[-1] if record["source"] == "answer" else own[0]
        pending.remove(response)
        if record["source"] == "answer":
            self._pending["answer"] = []
        return response

    def _truncated(self, record: Record) -> None:
        message = self.messages.get(record["message"])
        if message is not None:
            message.edits.append((record["seq"], record.get("text")))


_READERS = {
    "response.started": Facts._response,
    "tts.opened": Facts._opened,
    "tts.ended": Facts._received,
    "tts.dropped": Facts._dropped,
    "playout.started": Facts._started,
    "playout.word": Facts._word,
    "playout.starved": Facts._starved,
    "playout.resumed": Facts._resumed,
    "playout.ended": Facts._closed,
    "playout.cut": Facts._closed,
    "context.pushed": Facts._pushed,
    "context.truncated": Facts._truncated,
    "context.removed": Facts._truncated,
}
