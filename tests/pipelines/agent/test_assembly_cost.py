"""Finishing a response takes time in proportion to its bytes."""

from __future__ import annotations

from time import process_time

from bargein.pipelines.agent.assembly import ResponseAssembler
from bargein.pipelines.agent.context import Context
from bargein.pipelines.agent.deltas import CallDelta


def seconds_to_finish(kibibytes: int) -> float:
    """CPU seconds to finish a response of so many kibibytes, in fragments of 64 bytes; the best of eleven."""
    text = '{"items":[' + ",".join(['"0123456"'] * (kibibytes * 1024 // 10 - 2)) + "]}"
    best = 1.0
    for _ in range(11):
        assembler = ResponseAssembler()
        for at in range(0, len(text), 64):
            assembler.feed(CallDelta(0, "id", "f", text[at : at + 64]))
        started = process_time()
        assembler.finish(1, Context())
        best = min(best, process_time() - started)
    return best


def test_four_times_the_bytes_take_about_four_times_as_long() -> None:
    """Sixteen times would be quadratic. Half of that is the bound: a busy machine moves the best of eleven less."""
    assert seconds_to_finish(248) / seconds_to_finish(62) < 8
