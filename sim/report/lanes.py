"""What a picture of a session shows, as data: bars in lanes, marks, lines and waits, all in microseconds.

``picture`` draws it. Kept apart so that what is shown can be tested without looking at pixels. Left out: sizes,
colours and fonts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from bargein.sim.kernel.durations import format_us
from bargein.sim.kernel.frames import samples_to_us
from bargein.sim.kernel.timeline import Record

__all__ = ["LANES", "Bar", "Lanes", "Line", "Look", "Mark", "Wait", "lanes"]

LANES = ("caller", "VAD", "LLM", "tools", "filler", "bot")
"""From top to bottom."""


class Look(StrEnum):
    """What a bar, mark or line stands for; the legend shows these words."""

    CALLER = "caller speaks"
    VOICED = "speech seen by the VAD"
    FIRST_TOKEN = "LLM, until its first token"
    STREAM = "LLM streams"
    WAITING = "waits for an approval"
    READ_ONLY = "read-only tool"
    SIDE_EFFECT = "side effect"
    TAIL = "still running after its slot was answered"
    FILLER = "filler or fallback heard"
    BOT = "bot heard"
    UNHEARD = "received, never heard"
    TURN_ENDED = "end of turn decided"
    NOTE = "late note"
    BARGE_IN = "barge-in decided"
    CUT = "playout cut"


@dataclass(frozen=True, slots=True)
class Bar:
    """Something that lasted; ``row`` counts from 0 within its lane."""

    lane: str
    row: int
    start_us: int
    end_us: int
    look: Look
    label: str = ""
    short: str = ""
    """Stands in for the label where that has no room."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Something at one instant, in a lane."""

    lane: str
    row: int
    at_us: int
    look: Look


@dataclass(frozen=True, slots=True)
class Line:
    """Something at one instant, across all lanes."""

    at_us: int
    look: Look


@dataclass(frozen=True, slots=True)
class Wait:
    """A latency worth naming."""

    start_us: int
    end_us: int
    label: str


@dataclass(slots=True)
class Lanes:
    """Everything of one picture; ``rows`` says how many rows each lane has."""

    end_us: int = 0
    bars: list[Bar] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)

    def rows(self, lane: str) -> int:
        used = [bar.row for bar in self.bars if bar.lane == lane]
        return max(used, default=0) + 1


def lanes(records: Sequence[Record]) -> Lanes:
    """Read a timeline as a picture; whatever is still open at its end is drawn up to there."""
    reader = _Reader(records[-1]["t"] if records else 0)
    for record in records:
        read = getattr(reader, record["kind"].replace(".", "_"), None)
        if read is not None:
            read(record)
    return reader.finish()


@dataclass(slots=True)
class _Sound:
    lane: str
    look: Look
    since_us: int | None = None
    heard: int = 0
    received: int = 0
    words: list[str] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)


class _Reader:
    """One pass; a method for each kind that shows, named after it."""

    def __init__(self, end_us: int) -> None:
        self.out = Lanes(end_us)
        self.caller: dict[Any, Record] = {}
        self.onset_us: int | None = None
        self.request: dict[int, Record] = {}
        self.token: dict[int, int] = {}
        self.tools: dict[str, tuple[int, Record, int | None]] = {}
        self.waits_since: dict[str, tuple[int, int, str]] = {}
        self.held_since: dict[int, int] = {}
        self.busy: list[int] = []
        self.tool_rows: dict[str, int] = {}
        self.round_at: dict[int, int] = {}
        self.sounds: dict[Any, _Sound] = {}
        self.speech_end_us: int | None = None
        self.waiting: dict[int, int] = {}
        self.barge_in_onset_us: int | None = None

    # -- the caller ---------------------------------------------------------------------------------------

    def caller_started(self, record: Record) -> None:
        self.caller[record["line"]] = record

    def caller_ended(self, record: Record) -> None:
        started = self.caller.pop(record["line"], None)
        if started is not None:
            self._bar("caller", 0, started["t"], record["t"], Look.CALLER, started["text"])

    def vad_started(self, record: Record) -> None:
        self.onset_us = record["onset_us"]

    def vad_stopped(self, record: Record) -> None:
        if self.onset_us is not None:
            self._bar("VAD", 0, self.onset_us, record["speech_end_us"], Look.VOICED)
            self.onset_us = None

    def turn_ended(self, record: Record) -> None:
        self.out.marks.append(Mark("VAD", 0, record["t"], Look.TURN_ENDED))
        self.speech_end_us = record["speech_end_us"]

    def turn_user(self, record: Record) -> None:
        if self.speech_end_us is not None:
            self.waiting[record["epoch"]] = self.speech_end_us
            self.speech_end_us = None
        self.barge_in_onset_us = None

    def turn_barge_in(self, record: Record) -> None:
        self.out.lines.append(Line(record["t"], Look.BARGE_IN))
        self.barge_in_onset_us = record["onset_us"]

    def turn_interrupted(self, record: Record) -> None:
        self._close_request(record)

    # -- the model and its tools --------------------------------------------------------------------------

    def llm_suspended(self, record: Record) -> None:
        self._close_request(record)
        self.held_since[record["epoch"]] = record["t"]

    def llm_withdrawn(self, record: Record) -> None:
        self._close_request(record)

    def llm_request(self, record: Record) -> None:
        self._close_request(record)
        self.request[record["epoch"]] = record

    def llm_first_token(self, record: Record) -> None:
        self.token[record["epoch"]] = record["t"]

    def llm_done(self, record: Record) -> None:
        self._close_request(record)

    def llm_failed(self, record: Record) -> None:
        self._close_request(record)

    def _close_request(self, record: Record) -> None:
        held_us = self.held_since.pop(record["epoch"], None)
        if held_us is not None:
            self._bar("LLM", 0, held_us, record["t"], Look.WAITING)
        request = self.request.pop(record["epoch"], None)
        if request is not None:
            token = self.token.pop(record["epoch"], record["t"])
            number = str(request["round"])
            self._bar("LLM", 0, request["t"], token, Look.FIRST_TOKEN, f"round {number}", number)
            self._bar("LLM", 0, token, record["t"], Look.STREAM)

    def tools_started(self, record: Record) -> None:
        self.round_at[record["epoch"]] = record["t"]

    def tool_suspended(self, record: Record) -> None:
        row = self._end_wait(record)
        row = self._free_row(record) if row is None else row
        self.waits_since[record["call"]] = (row, record["t"], record["tool"])

    def tool_withdrawn(self, record: Record) -> None:
        self._end_wait(record)

    def tool_started(self, record: Record) -> None:
        row = self._end_wait(record)
        if row is None:
            row = self._free_row(record)
        self.busy[row] = self.out.end_us + 1
        self.tool_rows[record["call"]] = row
        self.tools[record["call"]] = (row, record, None)

    def _free_row(self, record: Record) -> int:
        """A row that nothing stands in from now on, for something that does."""
        row = next((row for row, until in enumerate(self.busy) if until <= record["t"]), len(self.busy))
        self.busy[row : row + 1] = [self.out.end_us + 1]
        return row

    def _end_wait(self, record: Record) -> int | None:
        """The call waits no longer for an approval; the row in which it did, where it did."""
        waited = self.waits_since.pop(record["call"], None)
        if waited is None:
            return None
        row, since_us, tool = waited
        self.busy[row] = record["t"]
        self._bar("tools", row, since_us, record["t"], Look.WAITING, tool)
        return row

    def tool_settled(self, record: Record) -> None:
        self._end_wait(record)
        running = self.tools.get(record["call"])
        if running is not None and running[2] is None:
            self.tools[record["call"]] = (running[0], running[1], record["t"])

    def tool_finished(self, record: Record) -> None:
        self._close_tool(record["call"], record["t"])

    def tool_dropped(self, record: Record) -> None:
        self._close_tool(record["call"], record["t"])

    def _close_tool(self, call: str, t: int) -> None:
        running = self.tools.pop(call, None)
        if running is None:
            return
        row, started, settled_us = running
        self.busy[row] = t
        look = Look.SIDE_EFFECT if started["side_effect"] else Look.READ_ONLY
        slot_us = t if settled_us is None else settled_us
        self._bar("tools", row, started["t"], slot_us, look, started["tool"])
        self._bar("tools", row, slot_us, t, Look.TAIL)

    def context_pushed(self, record: Record) -> None:
        if record["role"] == "system" and record["source"] == "note":
            row = self.tool_rows.get(record["call"], 0)
            self.out.marks.append(Mark("tools", row, record["t"], Look.NOTE))

    # -- speech -------------------------------------------------------------------------------------------

    def filler_spoken(self, record: Record) -> None:
        since = self.round_at.get(record["epoch"])
        if since is not None:
            self._wait("filler delay", since, record["t"])

    def playout_started(self, record: Record) -> None:
        answer = record["source"] == "answer"
        sound = self.sounds.setdefault(
            record["utterance"], _Sound("bot" if answer else "filler", Look.BOT if answer else Look.FILLER)
        )
        sound.since_us = samples_to_us(record["at_sample"])
        speech_end_us = self.waiting.pop(record["epoch"], None)
        if speech_end_us is not None:
            self._wait("response latency", speech_end_us, sound.since_us)

    def playout_resumed(self, record: Record) -> None:
        sound = self.sounds.get(record["utterance"])
        if sound is not None:
            sound.since_us = samples_to_us(record["at_sample"])

    def playout_word(self, record: Record) -> None:
        sound = self.sounds.get(record["utterance"])
        if sound is not None:
            sound.words.append(record["word"])

    def playout_starved(self, record: Record) -> None:
        self._silence(record)

    def playout_ended(self, record: Record) -> None:
        self._silence(record)

    def playout_cut(self, record: Record) -> None:
        sound = self.sounds.get(record["utterance"])
        if sound is not None and sound.since_us is not None:
            self.out.lines.append(Line(record["t"], Look.CUT))
            if self.barge_in_onset_us is not None:
                self._wait("stop latency", self.barge_in_onset_us, record["t"])
                self.barge_in_onset_us = None
        self._silence(record)
        lost = record["received"] - record["samples"]
        if sound is not None and lost > 0:
            self._bar(sound.lane, 0, record["t"], record["t"] + samples_to_us(lost), Look.UNHEARD)

    def _silence(self, record: Record) -> None:
        sound = self.sounds.get(record["utterance"])
        if sound is not None and sound.since_us is not None:
            self._bar(sound.lane, 0, sound.since_us, record["t"], sound.look, "".join(sound.words).strip())
            sound.since_us, sound.words = None, []

    # -- putting together ---------------------------------------------------------------------------------

    def _bar(
        self, lane: str, row: int, start_us: int, end_us: int, look: Look, label: str = "", short: str = ""
    ) -> None:
        if end_us > start_us:
            self.out.bars.append(Bar(lane, row, start_us, end_us, look, label, short))

    def _wait(self, name: str, start_us: int, end_us: int) -> None:
        self.out.waits.append(Wait(start_us, end_us, f"{name} {format_us(end_us - start_us)}"))

    def finish(self) -> Lanes:
        end_us = self.out.end_us
        for line in list(self.caller):
            self.caller_ended({"line": line, "t": end_us})
        for epoch in [*self.request, *self.held_since]:
            self._close_request({"epoch": epoch, "t": end_us})
        for call in list(self.waits_since):
            self._end_wait({"call": call, "t": end_us})
        for call in list(self.tools):
            self._close_tool(call, end_us)
        for utterance in list(self.sounds):
            self._silence({"utterance": utterance, "t": end_us})
        if self.onset_us is not None:
            self._bar("VAD", 0, self.onset_us, end_us, Look.VOICED)
        self.out.bars = [self._shown(bar) for bar in self.out.bars]
        return self.out

    def _shown(self, bar: Bar) -> Bar:
        """What was never heard is drawn where it would have been, up to what was heard there instead."""
        if bar.look is not Look.UNHEARD:
            return bar
        later = [b.start_us for b in self.out.bars if b.lane == bar.lane and b.start_us > bar.start_us]
        return replace(bar, end_us=min([bar.end_us, self.out.end_us, *later]))
