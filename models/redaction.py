"""What must not stand in a recording, taken out of requests and of streamed answers.

The recorder asks it twice: for keys, before anything else sees an answer, and for a user's patterns, before a
cassette is written. A streamed answer says a number or a name over several events, so texts are searched as they
read when put together, field by field, and each match is replaced where it begins. Left out: a pattern that matches a
number among a call's arguments leaves text that is no JSON; playing the cassette shows it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from json import dumps, loads
from typing import Any

from bargein.models.cassettes import Exchange
from bargein.models.providers.errors import WireError
from bargein.models.providers.sse import SseEvent, SseParser

__all__ = ["REDACTED", "Redactor"]

REDACTED = "[redacted]"
"""What stands in place of a match; when a cassette is played, it fits any text, and alone any value."""

_MARK = re.compile(re.escape(REDACTED))
_SAME = ("type", "index", "output_index")
_Place = tuple[dict[Any, Any] | list[Any], Any]
"""Where a text stands: what holds it, and under which key or position."""


class Redactor:
    """Takes matches out.

    Args:
        patterns: regular expressions of what goes.
        secrets: texts that go, wherever they stand.
    """

    def __init__(self, patterns: Sequence[str] = (), secrets: Sequence[str] = ()) -> None:
        self._secrets = tuple(sorted((each for each in secrets if each), key=lambda each: (-len(each), each)))
        self._spans: list[int] = []
        self._patterns = [re.compile(each) for each in (*map(re.escape, self._secrets), *patterns)]

    def text(self, text: str) -> str:
        """``text`` without its matches."""
        return "".join(_kept(text, 0, self._matches(text)))

    def _matches(self, text: str) -> list[tuple[int, int]]:
        """Where matches are; those that overlap are one, and what is redacted already stays so as a whole."""
        found = [
            match.span() for pattern in (*self._patterns, _MARK) for match in pattern.finditer(text) if match.group()
        ]
        merged: list[tuple[int, int]] = []
        for start, stop in sorted(found):
            if merged and start < merged[-1][1]:
                merged[-1] = merged[-1][0], max(stop, merged[-1][1])
            else:
                merged.append((start, stop))
        return merged

    def value(self, value: Any) -> Any:
        """JSON values without their matches; a number that matches becomes `REDACTED`."""
        if type(value) is str:
            return self.text(value)
        if type(value) is dict:
            return {self.text(key): self.value(each) for key, each in value.items()}
        if type(value) is list:
            return [self.value(each) for each in value]
        if type(value) in (int, float) and self._matches(str(value)):
            return REDACTED
        return value

    def exchange(self, exchange: Exchange) -> Exchange:
        """An exchange without matches; where there are none in the answer, its bytes and instants stay as they are."""
        pieces = self._pieces(exchange.pieces)
        return replace(exchange, request=self.value(exchange.request), pieces=pieces)

    # -- answers ------------------------------------------------------------------------------------------

    def _pieces(self, pieces: tuple[tuple[int, bytes], ...]) -> tuple[tuple[int, bytes], ...]:
        """An answer's pieces; one that is changed comes event by event, each with its last byte."""
        body = b"".join(piece for _, piece in pieces)
        spoken = self._events(body) or self._whole(body)
        if b"".join(spoken) == body or not body:
            return pieces
        ends = _ends(len(piece) for _, piece in pieces)
        rewritten: list[tuple[int, bytes]] = []
        for end, event in zip(_ends(self._spans), spoken, strict=True):
            after_us = pieces[bisect_left(ends, end)][0]
            rewritten.append((after_us, event))
        return tuple(rewritten)

    def _whole(self, body: bytes) -> list[bytes]:
        """A body that is no stream of events: JSON, or any text."""
        self._spans = [len(body)]
        text = body.decode("utf-8", "backslashreplace")
        try:
            data = loads(text)
        except (ValueError, RecursionError):
            clean = self.text(text)
            return [body if clean == text else clean.encode("utf-8")]
        clean = self.value(data)
        return [self._bare(body) if clean == data else _json(clean).encode("utf-8")]

    def _events(self, body: bytes) -> list[bytes]:
        """A body's events, rewritten where they hold a match; none where it is no stream of JSON events."""
        parser = SseParser("")
        try:
            events = [*parser.feed(body), *parser.finish()]
        except WireError:
            return []
        data = [_loads(event.data) for event in events]
        if not any(type(each) in (dict, list) for each in data):
            return []
        before = [None if each is None else _json(each) for each in data]
        for places in _texts(data).values():
            self._clean(places)
        starts = [0, *(event.offset for event in events[1:]), len(body)]
        self._spans = [stop - start for start, stop in pairwise(starts)]
        spoken: list[bytes] = []
        for at, (event, each) in enumerate(zip(events, data, strict=True)):
            raw = body[starts[at] : starts[at + 1]]
            clean = None if each is None else self.value(each)
            same = clean is None or _json(clean) == before[at]
            spoken.append(self._bare(raw) if same else _event(event, clean))
        return spoken

    def _clean(self, places: Sequence[_Place]) -> None:
        """Take matches out of texts that read as one."""
        texts = [holder[key] for holder, key in places]
        matches = self._matches("".join(texts))
        at = 0
        for (holder, key), text in zip(places, texts, strict=True):
            holder[key] = "".join(_kept(text, at, matches))
            at += len(text)

    def _bare(self, raw: bytes) -> bytes:
        """Bytes without the secrets, wherever else they may stand in them."""
        for secret in self._secrets:
            raw = raw.replace(secret.encode("utf-8"), REDACTED.encode("ascii"))
        return raw


def _kept(text: str, at: int, matches: Sequence[tuple[int, int]]) -> Iterator[str]:
    """What stays of a text that begins at ``at``: a match is marked where it begins, and gone where it goes on."""
    done = at
    for start, stop in matches:
        if stop <= at or start >= at + len(text):
            continue
        yield text[done - at : max(start, at) - at]
        if start >= at:
            yield REDACTED
        done = stop
    yield text[max(0, done - at) :]


def _texts(data: Sequence[Any]) -> dict[tuple[Any, ...], list[_Place]]:
    """Where texts stand in events, those that go on from one event to the next together."""
    found: dict[tuple[Any, ...], list[_Place]] = {}

    def walk(value: Any, path: tuple[Any, ...]) -> None:
        if type(value) is dict:
            # What belongs together has one type and one index; its position in a list says nothing.
            own = tuple(value[name] for name in _SAME if type(value.get(name)) in (int, str))
            steps = [(key, each, (*path, *own, key)) for key, each in value.items()]
        else:
            steps = [(at, each, (*path, _number(each, at))) for at, each in enumerate(value)]
        for key, each, there in steps:
            if type(each) is str:
                found.setdefault(there, []).append((value, key))
            elif type(each) in (dict, list):
                walk(each, there)

    for each in data:
        if type(each) in (dict, list):
            walk(each, ())
    return found


def _number(value: Any, at: int) -> Any:
    return value["index"] if type(value) is dict and type(value.get("index")) is int else at


def _ends(sizes: Iterable[int]) -> list[int]:
    ends: list[int] = []
    at = 0
    for size in sizes:
        at += size
        ends.append(at)
    return ends


def _event(event: SseEvent, data: Any) -> bytes:
    head = f"event: {event.name}\n" if event.name else ""
    return f"{head}data: {_json(data)}\n\n".encode("utf-8", "backslashreplace")


def _json(value: Any) -> str:
    return dumps(value, ensure_ascii=False, separators=(",", ":"))


def _loads(text: str) -> Any:
    try:
        return loads(text)
    except (ValueError, RecursionError):
        return None
