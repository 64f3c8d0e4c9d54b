"""Cassettes: recorded provider traffic as a file, request by request, with the instant of every piece of an answer.

`bargein record` writes one and ``llm: {cassette: FILE}`` plays it. The file is JSON lines, each an object: a head
(``bargein_cassette``, ``provider``, ``model``, ``scenario``), then for each exchange a ``request`` (the body as it was
sent), a ``status``, the pieces of the answer as ``text`` (``base64`` where a piece is not UTF-8 of its own), and an
``end``, ``complete`` or ``broken``. ``after_us`` counts from the request. No address, header or key has a place in it.
Left out: playing it (``llm_played``) and making it (``bargein.sim.live``).
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from json import dumps, loads
from typing import Any

from bargein.models.providers.catalogue import WIRES
from bargein.sim.effects.document_sorts import sort_of
from bargein.sim.effects.identity import content_digest

__all__ = ["MAX_BYTES", "Cassette", "CassetteError", "Exchange", "dump_cassette", "read_cassette"]

MAX_BYTES = 64 * 1024 * 1024
"""What a cassette may hold, and one answer of a provider."""

_FORMAT = 1
_HEAD = ("provider", "model", "scenario")


class CassetteError(ValueError):
    """A file that is no cassette; the argument is a sentence with the line, what was found and what is accepted."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and what came back.

    Attributes:
        request: the body, as JSON values.
        status: of the HTTP answer.
        answered_us: when its head had come, from the request.
        pieces: ``(after_us, bytes)`` of its body, in order.
        end_us: when it ended.
        broken: it ended because the connection was lost.

    Invariant: no instant is before the one in front of it.
    """

    request: dict[str, Any]
    status: int
    answered_us: int
    pieces: tuple[tuple[int, bytes], ...]
    end_us: int
    broken: bool = False

    @property
    def body(self) -> bytes:
        """The whole answer."""
        return b"".join(piece for _, piece in self.pieces)


@dataclass(frozen=True, slots=True)
class Cassette:
    """A recorded call.

    Attributes:
        provider: the wire, by its name in the catalogue.
        model: the provider's name of the model.
        scenario: what was recorded.
        content: the content key of the text that it was read from; no part of what it says.
    """

    provider: str
    model: str
    scenario: str
    exchanges: tuple[Exchange, ...]
    content: str = field(default="", compare=False)


# -- writing ------------------------------------------------------------------------------------------------------


def dump_cassette(cassette: Cassette) -> str:
    """The file's text; equal cassettes give equal texts."""
    return "".join(dumps(line, ensure_ascii=False) + "\n" for line in _lines(cassette))


def _lines(cassette: Cassette) -> Iterator[dict[str, Any]]:
    yield {"bargein_cassette": _FORMAT, **{name: getattr(cassette, name) for name in _HEAD}}
    for exchange in cassette.exchanges:
        yield {"request": exchange.request}
        yield {"status": exchange.status, "after_us": exchange.answered_us}
        for after_us, piece in exchange.pieces:
            yield {"after_us": after_us, **_written(piece)}
        yield {"end": "broken" if exchange.broken else "complete", "after_us": exchange.end_us}


def _written(piece: bytes) -> dict[str, str]:
    try:
        return {"text": piece.decode("utf-8")}
    except UnicodeDecodeError:  # it ends inside a character, or is no text at all
        return {"base64": b64encode(piece).decode("ascii")}


# -- reading ------------------------------------------------------------------------------------------------------


def read_cassette(text: str) -> Cassette:
    """The cassette in a file's text.

    Raises:
        CassetteError: it is none.
    """
    return _Reader(text).cassette()


class _Reader:
    def __init__(self, text: str) -> None:
        self._bytes = text.encode("utf-8", "surrogatepass")
        self._lines: Sequence[str] = text.removesuffix("\n").split("\n")
        self._at = 0
        self._last_us = 0

    def cassette(self) -> Cassette:
        head = self._head()
        for name in _HEAD:
            if type(head.get(name)) is not str:
                raise self._error(f"found no {name}; accepted is a text")
        if head["provider"] not in WIRES:
            raise self._error(f"found provider {head['provider']!r}; accepted is {', '.join(WIRES)}")
        exchanges = []
        while self._at < len(self._lines):
            exchanges.append(self._exchange())
        content = content_digest(self._bytes)
        return Cassette(head["provider"], head["model"], head["scenario"], tuple(exchanges), content)

    def _head(self) -> dict[str, Any]:
        other = None
        try:
            head = self._line()
        except CassetteError:
            other = sort_of(self._bytes)
            if other is None:
                raise
            head = {}
        if head.get("bargein_cassette") != _FORMAT:
            other = other or (None if "bargein_cassette" in head else sort_of(self._bytes))
            told = "" if other is None else f" (it is {other})"
            raise self._error(f"found no head; accepted is an object with bargein_cassette: {_FORMAT}{told}")
        return head

    def _exchange(self) -> Exchange:
        request = self._line().get("request")
        if type(request) is not dict:
            raise self._error("found no request; accepted is an object with the body of one")
        self._last_us = 0
        answer = self._line()
        status = answer.get("status")
        if type(status) is not int or not 100 <= status <= 599:
            raise self._error("found no status; accepted is that of an HTTP answer, 100 to 599")
        answered_us = self._after(answer)
        pieces: list[tuple[int, bytes]] = []
        while True:
            line = self._line()
            after_us = self._after(line)
            if "end" in line:
                if line["end"] not in ("complete", "broken"):
                    raise self._error(f"found end {line['end']!r}; accepted is complete or broken")
                return Exchange(request, status, answered_us, tuple(pieces), after_us, line["end"] == "broken")
            pieces.append((after_us, self._piece(line)))

    def _piece(self, line: dict[str, Any]) -> bytes:
        try:
            if type(line.get("text")) is str:
                return str(line["text"]).encode("utf-8")
            return bytes(b64decode(line["base64"], validate=True))
        except (KeyError, TypeError, ValueError):
            raise self._error("found no piece of an answer; accepted is text, base64 or end") from None

    def _after(self, line: dict[str, Any]) -> int:
        after_us = line.get("after_us")
        if type(after_us) is not int or after_us < self._last_us:
            raise self._error(f"found after_us {after_us!r}; accepted is a whole number, {self._last_us} or more")
        self._last_us = after_us
        return after_us

    def _line(self) -> dict[str, Any]:
        if self._at == len(self._lines):
            raise self._error("the file ends inside an exchange; accepted is one that ends with end")
        self._at += 1
        try:
            line = loads(self._lines[self._at - 1])
        except (ValueError, RecursionError):
            line = None
        if type(line) is not dict:
            raise self._error("found no JSON object; accepted is one on every line")
        return line

    def _error(self, problem: str) -> CassetteError:
        return CassetteError(f"line {self._at}: {problem}")
