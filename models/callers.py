"""The caller: says their lines, each at an instant or some time after an event, and hangs up.

A line is audio at the microphone, which the agent has to detect, or a pair of placed decisions. The caller drives
the session from outside and reads nothing of it but the timeline. Left out: reacting to what the agent says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from bargein.models.recordings import Recording
from bargein.models.stt import ScriptedStt
from bargein.sim.kernel.clock import Clock, Order
from bargein.sim.kernel.frames import samples_to_us
from bargein.sim.kernel.timeline import Timeline

__all__ = ["CallerLine", "CallerSession", "Moment", "ScriptedCaller"]


class Moment(Protocol):
    """The nth event of a kind whose fields have certain values, and a delay after it."""

    @property
    def event(self) -> str: ...
    @property
    def by_us(self) -> int: ...
    @property
    def nth(self) -> int: ...
    @property
    def where(self) -> Mapping[str, Any]: ...


class CallerLine(Protocol):
    """One line of the script."""

    @property
    def say(self) -> str: ...
    @property
    def transcript(self) -> str | None: ...
    @property
    def at_us(self) -> int | None: ...
    @property
    def after(self) -> Moment | None: ...
    @property
    def level(self) -> str: ...
    @property
    def for_us(self) -> int | None: ...
    @property
    def hang_up(self) -> bool: ...


class CallerSession(Protocol):
    """What the caller needs of a session."""

    epoch: int
    timeline: Timeline
    clock: Clock
    over: bool
    """Whether the call has ended; it may still be written down somewhere."""

    def caller_speaks(self, line: Recording, first_sample: int) -> None: ...
    def caller_decides(self, text: str, duration_us: int) -> None: ...
    def hang_up(self) -> None: ...
    def poke(self) -> None:
        """The caller has fallen silent: look whether the session is over."""
        ...


class ScriptedCaller:
    """The caller of one session.

    Args:
        lines: the script, in order.
        recordings: the audio of each line; ``None`` for one that only hangs up.
        stt: is told which words are coming, so that it can recognise them.

    Attributes:
        said: (line, first sample, recording) for each line spoken as audio.
        unsaid: lines whose event has not come, in order.
    """

    def __init__(self, lines: Sequence[CallerLine], recordings: Sequence[Recording | None], stt: ScriptedStt) -> None:
        self._lines = lines
        self._recordings = recordings
        self._stt = stt
        self._busy = 0  # lines that are timed or being spoken
        self._session: CallerSession | None = None
        self.said: list[tuple[int, int, Recording]] = []
        self.unsaid: dict[int, None] = {}

    @property
    def exhausted(self) -> bool:
        """Whether the caller will do nothing more unless an event that a line waits for happens."""
        return self._busy == 0

    def adopt(self, lines: Sequence[CallerLine], recordings: Sequence[Recording | None]) -> None:
        """Say other things in the lines that have not begun; when they are said stays."""
        self._lines = lines
        self._recordings = recordings

    def start(self, session: CallerSession) -> None:
        """Time the lines that have an instant, and wait for the events of the others."""
        self._session = session
        for number, line in enumerate(self._lines, start=1):
            if line.at_us is not None:
                self._busy += 1
                session.clock.call_at(line.at_us, self._order(line), self._speak, number)
            elif line.after is not None:
                self.unsaid[number] = None
                self._await(number, line, line.after)

    @staticmethod
    def _order(line: CallerLine) -> Order:
        """Sound is delivered, after the frame that has just come in; a placed decision is an interruption."""
        return Order.DELIVERY if line.level == "audio" and line.say else Order.INTERRUPTION

    def _await(self, number: int, line: CallerLine, moment: Moment) -> None:
        session = self._session
        assert session is not None
        fields = session.timeline.kinds[moment.event]
        wanted: list[tuple[int, Any]] = []
        for name, value in moment.where.items():
            wanted.append((2 if name == "epoch" else 3 + fields.index(name), value))
        seen = 0

        def watch(row: tuple[Any, ...]) -> None:
            nonlocal seen
            if number not in self.unsaid or any(row[at] != value for at, value in wanted):
                return
            seen += 1
            if seen == moment.nth:
                del self.unsaid[number]
                self._busy += 1
                session.clock.call_in(moment.by_us, self._order(line), self._speak, number)

        session.timeline.watch(moment.event, watch)

    def _speak(self, number: int) -> None:
        session = self._session
        assert session is not None
        if session.over:
            return
        line, recording = self._lines[number - 1], self._recordings[number - 1]
        if recording is None:
            self._busy -= 1
            session.hang_up()
            return
        now = session.clock.now
        if line.level == "decision":
            duration_us = line.for_us if line.for_us is not None else samples_to_us(recording.length)
            session.timeline.add("caller.started", session.epoch, number, line.say, duration_us, "decision")
            session.clock.call_in(duration_us, Order.DELIVERY, self._fall_silent, number)
            session.caller_decides(line.transcript if line.transcript is not None else line.say, duration_us)
            return
        first_sample = -(-now * 2 // 125)
        duration_us = samples_to_us(first_sample + recording.length) - now
        session.timeline.add("caller.started", session.epoch, number, line.say, duration_us, "audio")
        self._stt.will_say(first_sample, self._words(line, recording))
        self.said.append((number, first_sample, recording))
        session.clock.call_in(duration_us, Order.DELIVERY, self._fall_silent, number)
        session.caller_speaks(recording, first_sample)

    @staticmethod
    def _words(line: CallerLine, recording: Recording) -> list[tuple[str, int, int]]:
        if line.transcript is None:
            return [(word.text, word.start, word.end) for word in recording.words]
        return [(line.transcript, 0, recording.length)] if line.transcript else []

    def _fall_silent(self, number: int) -> None:
        session = self._session
        assert session is not None
        if session.over:
            return
        self._busy -= 1
        session.timeline.add("caller.ended", session.epoch, number)
        session.poke()
        if self._lines[number - 1].hang_up:
            session.hang_up()
