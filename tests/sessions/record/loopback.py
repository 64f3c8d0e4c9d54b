"""A provider on the loopback interface: the scripted vendor's bytes over real HTTP, one request after another.

It answers the n-th request with the n-th round of a script, on whatever path is posted to, and keeps what it was sent.
Left out: time; it sends as fast as it can.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

from bargein.models.llm_stream import call_deltas, text_deltas
from bargein.models.vendors.wire import answer_class
from bargein.pipelines.agent.deltas import CallDelta, StreamEnd, TextDelta
from bargein.sim.live.endpoints import PLACES
from bargein.sim.scenario.model import Round

__all__ = ["KEY", "Provider", "answer_pieces", "serving"]

KEY = "canary-7f3a9b-never-written"
"""The key that every loopback provider is asked with; it must turn up nowhere."""


def answer_pieces(wire: str, number: int, plan: Round) -> list[bytes]:
    """A round as the vendor says it, event by event."""
    answer = answer_class(wire)(wire, number, "m", frozenset(), 10)
    deltas: list[Any] = [*text_deltas(plan.text, 1)]
    deltas += [each for batch in call_deltas(plan.calls, 10 * number, "whole") for each in batch]
    said = [answer.begin()]
    for each in deltas:
        if type(each) is TextDelta:
            said.append(answer.text(each.text))
        elif type(each) is CallDelta:
            said.append(answer.call(each))
    said.append(answer.end(StreamEnd("tool_calls" if plan.calls else "stop")))
    return [each for each in said if each]


class Provider:
    """What it was asked.

    Attributes:
        environ: the variables under which it is found.
        paths, headers, bodies: of each request, in order.
        raw: answers in place of those of the script, by number from 1: status and pieces, and whether the connection
            is dropped after them.
    """

    def __init__(self, wire: str, rounds: Sequence[Round], port: int) -> None:
        place = PLACES[wire]
        self.base_url = f"http://127.0.0.1:{port}/base"
        self.environ = {f"{place.prefix}_BASE_URL": self.base_url, place.key_variable: KEY}
        self.wire = wire
        self.rounds = rounds
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.bodies: list[dict[str, Any]] = []
        self.raw: dict[int, tuple[int, list[bytes], bool]] = {}

    def answer(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, list[bytes], bool]:
        self.paths.append(path)
        self.headers.append(headers)
        self.bodies.append(json.loads(body))
        number = len(self.bodies)
        if number in self.raw:
            return self.raw[number]
        return 200, answer_pieces(self.wire, number, self.rounds[number - 1]), False


@contextmanager
def serving(wire: str, rounds: Sequence[Round]) -> Iterator[Provider]:
    """A provider of this wire that can be asked while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, pieces, dropped = provider.answer(self.path, headers, body)
            self.send_response(status)
            self.send_header("Content-Type", "text/event-stream" if status == 200 else "application/json")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for piece in pieces:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.flush()
            if not dropped:
                self.wfile.write(b"0\r\n\r\n")
            self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    provider = Provider(wire, rounds, server.server_port)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
