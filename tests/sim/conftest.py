"""Hand-made timelines: a builder on a clock that stands still, one whole clean session, and ways to spoil it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bargein.pipelines.events import KINDS
from bargein.sim.kernel.timeline import Record, Timeline


class StillClock:
    """Stands at the instant it was set to."""

    _now = 0


class Story:
    """Appends to a real timeline, so that a record with wrong fields fails."""

    def __init__(self) -> None:
        self.clock = StillClock()
        self.timeline = Timeline(self.clock, KINDS)
        self.epoch = 0

    def at(self, ms: int) -> Story:
        self.clock._now = ms * 1_000
        return self

    def add(self, kind: str, *values: Any, epoch: int | None = None) -> Story:
        self.timeline.add(kind, self.epoch if epoch is None else epoch, *values)
        return self

    def push(self, message: int, role: str, text: str = "", source: str = "", **more: Any) -> Story:
        values = {"calls": [], "call": "", "error": "", **more}
        return self.add(
            "context.pushed", message, role, source, text, values["calls"], values["call"], values["error"], "0" * 8
        )

    def user(self, epoch: int, text: str, segments: list[int], message: int) -> Story:
        self.epoch = epoch
        return self.add("turn.user", text, segments).push(message, "user", text)

    def words(self, utterance: int, *timed: tuple[int, str]) -> Story:
        for index, (ms, word) in enumerate(timed):
            self.at(ms).add("playout.word", utterance, index, word)
        return self

    @property
    def records(self) -> list[Record]:
        return list(self.timeline)


class Spoil:
    """A copy of records with one thing changed; kinds are counted from 0 with ``nth``."""

    def __init__(self, records: list[Record]) -> None:
        self.records = [dict(record) for record in records]

    def find(self, kind: str, nth: int = 0) -> int:
        return [at for at, record in enumerate(self.records) if record["kind"] == kind][nth]

    def change(self, kind: str, nth: int = 0, **fields: Any) -> Spoil:
        self.records[self.find(kind, nth)].update(fields)
        return self._renumber()

    def drop(self, kind: str, nth: int = 0) -> Spoil:
        del self.records[self.find(kind, nth)]
        return self._renumber()

    def insert(self, kind: str, t: int, epoch: int, *values: Any) -> Spoil:
        """After everything of the instant ``t``."""
        at = next((at for at, record in enumerate(self.records) if record["t"] > t), len(self.records))
        named = dict(zip(KINDS[kind], values, strict=True))
        self.records.insert(at, {"t": t, "seq": 0, "kind": kind, "epoch": epoch, **named})
        return self._renumber()

    def swap(self, first: tuple[str, int], second: tuple[str, int]) -> Spoil:
        """Exchange two records and their instants."""
        a, b = self.find(*first), self.find(*second)
        records = self.records
        records[a], records[b] = records[b], records[a]
        records[a]["t"], records[b]["t"] = records[b]["t"], records[a]["t"]
        return self._renumber()

    def _renumber(self) -> Spoil:
        for seq, record in enumerate(self.records):
            record["seq"] = seq
        return self


@pytest.fixture
def story() -> Story:
    return Story()


@pytest.fixture
def spoil() -> Callable[[list[Record]], Spoil]:
    return Spoil


@pytest.fixture
def interrupted_booking() -> list[Record]:
    """A booking that the caller interrupts during its filler; it is noted late, and booked anew for three."""
    s = Story()
    s.at(0).add("session.started").push(0, "system", "You book tables.")
    s.at(500).add("caller.started", 0, "A table for two on Friday, please.", 1_600_000, "audio")
    s.at(540).add("vad.started", 500_000)
    s.at(2_100).add("caller.ended", 0)
    s.at(2_300).add("vad.stopped", 2_100_000)
    s.at(2_600).add("turn.ended", 2_100_000)
    s.at(2_650).add("stt.final", 0, "A table for two on Friday, please.")
    s.user(1, "A table for two on Friday, please.", [0], 1).add("llm.request", 0, 1, 2, 1)
    s.at(3_000).add("llm.first_token", 0).add("response.started", 0, "answer").add("tts.opened", 1, 0, "answer", None)
    s.at(3_100).add("llm.done", 0, "tool_calls", 1, 25).push(
        2, "assistant", "Let me book that for you.", "answer", calls=["t1.0"]
    )
    s.add("tools.started", 0, ["t1.0"]).add("tool.started", "t1.0", "book_table", True, 2)
    s.at(3_150).add("tts.first_byte", 1)
    s.at(3_160).add("playout.started", 1, "answer", 50_560)
    s.at(3_200).add("tts.ended", 1, 16_000)
    s.words(1, (3_300, "Let"), (3_420, " me"), (3_600, " book"), (3_800, " that"), (3_950, " for"), (4_160, " you."))
    s.add("playout.ended", 1, 16_000)
    s.at(4_300).add("filler.due", 0, "book_table")
    s.add("filler.spoken", 0, "book_table", "One moment, please.", "one_moment").add("clip.cued", 1, "one_moment")
    s.add("response.started", 1, "filler").add("tts.opened", 2, 1, "filler", "one_moment")
    s.add("clip.queued", 2, "one_moment").add("tts.ended", 2, 24_000).add("playout.started", 2, "filler", 68_800)
    s.words(2, (4_600, "One"))
    s.at(4_700).add("caller.started", 1, "Wait, make it three.", 900_000, "audio")
    s.at(4_740).add("vad.started", 4_700_000)
    s.at(4_900).add("playout.word", 2, 1, " moment,")
    s.at(5_013).add("turn.barge_in", 4_700_000, "audio").add("turn.interrupted", "barge_in")
    s.add("tool.settled", "t1.0", "book_table", "interrupted_running", 1_913_000, 0)
    s.push(3, "tool", call="t1.0", error="interrupted").push(4, "assistant", "One moment, please.", "filler")
    s.add("run.ended", "cancelled", 1)
    s.at(5_020).add("playout.cut", 2, 11_520, 24_000).add("context.truncated", 4, "One moment,")
    s.at(5_500).add("tool.finished", "t1.0", "book_table", "ok").add("tool.late_result", "t1.0", "book_table", "ok")
    s.at(5_600).add("caller.ended", 1)
    s.at(5_800).add("vad.stopped", 5_600_000)
    s.at(6_100).add("turn.ended", 5_600_000)
    s.at(6_150).add("stt.final", 1, "Wait, make it three.").push(5, "system", "It was booked.", "note", call="t1.0")
    s.user(2, "Wait, make it three.", [1], 6).add("llm.request", 0, 3, 7, 1)
    s.at(6_400).add("llm.first_token", 0).add("response.started", 2, "answer").add("tts.opened", 3, 2, "answer", None)
    s.at(6_500).add("llm.done", 0, "tool_calls", 1, 22).push(
        7, "assistant", "Sorry, for three then.", "answer", calls=["t2.0"]
    )
    s.add("tools.started", 0, ["t2.0"]).add("tool.started", "t2.0", "book_table", True, 4).add("tts.first_byte", 3)
    s.at(6_520).add("playout.started", 3, "answer", 104_320).add("tts.ended", 3, 12_800)
    s.words(3, (6_800, "Sorry,"), (6_900, " for"), (7_100, " three"))
    s.at(7_300).add("tool.finished", "t2.0", "book_table", "ok")
    s.add("tool.settled", "t2.0", "book_table", "ok", 800_000, 0).add("tools.ended", 0, 1, 0, False)
    s.push(8, "tool", call="t2.0").add("tool.committed", 0, ["t2.0"], []).add("llm.request", 1, 5, 9, 1)
    s.at(7_320).add("playout.word", 3, 3, " then.").add("playout.ended", 3, 12_800)
    s.at(7_700).add("llm.first_token", 1).add("response.started", 3, "answer").add("tts.opened", 4, 3, "answer", None)
    s.at(7_750).add("llm.done", 1, "stop", 0, 16).push(9, "assistant", "Done. For three.", "answer")
    s.add("run.ended", "answered", 2)
    s.at(7_800).add("tts.first_byte", 4)
    s.at(7_820).add("playout.started", 4, "answer", 125_120).add("tts.ended", 4, 16_000)
    s.words(4, (8_300, "Done."), (8_500, " For"), (8_820, " three."))
    s.add("playout.ended", 4, 16_000)
    s.at(9_500).add("session.ended", "quiet")
    return s.records
