"""Server-sent events out of bytes, in whatever pieces they arrive.

Every decoder feeds its bytes through `SseParser`. Lines may end in LF, CRLF or CR, also with the two characters of
a CRLF in different pieces; comments, unknown fields and a byte order mark are skipped. Text is decoded a whole line
at a time, so a piece may end inside a character. The work is linear in the bytes. Left out: reconnecting.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bargein.models.providers.errors import WireError

__all__ = ["MAX_EVENT_BYTES", "SseEvent", "SseParser"]

MAX_EVENT_BYTES = 8 * 1024 * 1024
"""What one event may hold; a stream that never ends one cannot fill the memory."""

_LINE_END = re.compile(rb"[\r\n]")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class SseEvent:
    """One event: its number from 1, the offset of its first byte, its name (often empty) and its data."""

    number: int
    offset: int
    name: str
    data: str


class SseParser:
    """Incremental, for one stream.

    Args:
        provider: stands in errors.

    Attributes:
        offset: bytes taken so far.
        events: events given so far.
    """

    __slots__ = (
        "_after_cr",
        "_data",
        "_first_line",
        "_line",
        "_line_at",
        "_name",
        "_provider",
        "_size",
        "_start",
        "events",
        "offset",
    )

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._line = bytearray()
        self._line_at = 0
        self._after_cr = False
        self._first_line = True
        self._start: int | None = None
        self._name = ""
        self._data: list[str] = []
        self._size = 0
        self.offset = 0
        self.events = 0

    def feed(self, piece: bytes) -> list[SseEvent]:
        """Take the next bytes, of any length.

        Returns:
            The events they complete.

        Raises:
            WireError: a line is not UTF-8, or an event is larger than ``MAX_EVENT_BYTES``.
        """
        found: list[SseEvent] = []
        at = 0
        if self._after_cr and piece:
            self._after_cr = False
            if piece[0] == 0x0A:
                at = 1
                self._line_at = self.offset + 1
        while True:
            end = _LINE_END.search(piece, at)
            if end is None:
                break
            self._line += piece[at : end.start()]
            at = end.end()
            if end.group() == b"\r":
                if at == len(piece):
                    self._after_cr = True
                elif piece[at] == 0x0A:
                    at += 1
            event = self._end_line()
            if event is not None:
                found.append(event)
            self._line_at = self.offset + at
        self._line += piece[at:]
        self.offset += len(piece)
        if len(self._line) + self._size > MAX_EVENT_BYTES:
            raise self._error(f"an event holds more than {MAX_EVENT_BYTES} bytes")
        return found

    def finish(self) -> list[SseEvent]:
        """The stream has ended: the event it ended in, if any, without waiting for its blank line."""
        found = []
        if self._line:
            event = self._end_line()
            if event is not None:
                found.append(event)
        last = self._dispatch()
        if last is not None:
            found.append(last)
        return found

    def _end_line(self) -> SseEvent | None:
        line = bytes(self._line)
        self._line.clear()
        if self._first_line:
            self._first_line = False
            line = line.removeprefix(_BOM)
        if not line:
            return self._dispatch()
        if line[0] == 0x3A:
            return None  # a comment, which providers send to keep the connection open
        if self._start is None:
            self._start = self._line_at
        self._size += len(line)
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise self._error(f"byte {self._line_at + error.start} is not UTF-8") from None
        field, _, value = text.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._name = value
        return None

    def _dispatch(self) -> SseEvent | None:
        name, data, start = self._name, self._data, self._start
        self._name, self._data, self._start, self._size = "", [], None, 0
        if not data:
            return None
        self.events += 1
        return SseEvent(self.events, start or 0, name, "\n".join(data))

    def _error(self, what: str) -> WireError:
        return WireError(self._provider, self.events + 1, self._line_at if self._start is None else self._start, what)
