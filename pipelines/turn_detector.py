"""The turn detector: from the detector's edges and the transcriber's finals to two decisions.

A *barge-in* is decided when the caller has been speaking for the minimum time while the bot is active; the
session then cuts the bot. The *end of the turn* is decided when the caller has been silent for the minimum time;
the turn is handed over once all its transcripts are final. A scenario may also place both decisions itself, on
exact instants, when its question is not about audio.

Speech that overlaps the bot and does not become a barge-in is not transcribed and starts no turn: too short (a
backchannel), inside the cooldown or the warm-up. Where barge-ins are switched off it waits until the bot has
finished. A final that comes after its turn was handed over opens a turn of its own, so that each final belongs to
exactly one.

Ties: a decision is taken after what is delivered on its instant and before timers. Left out: what a decision does
(``session``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from bargein.pipelines.ports import Edge, Transcriber
from bargein.pipelines.settings import BargeInWhen, TurnSettings
from bargein.sim.kernel.clock import Clock, Order, Timer
from bargein.sim.kernel.frames import FRAME_US
from bargein.sim.kernel.timeline import Timeline

__all__ = ["Bot", "TurnDetector", "TurnTaking"]


class Bot(Protocol):
    """What the detector must know of the bot, and whom it tells."""

    epoch: int

    @property
    def audible(self) -> bool:
        """Whether it is heard or queued to be heard."""
        ...

    @property
    def active(self) -> bool:
        """Whether it is audible or a run is working on an answer."""
        ...

    @property
    def first_sound_us(self) -> int | None:
        """When it was first heard."""
        ...

    def barge_in(self, onset_us: int, source: str) -> None:
        """The caller interrupts, now."""
        ...

    def take_turn(self, text: str, segments: list[int]) -> None:
        """The user has said ``text``."""
        ...

    def expect_turn(self, text: str) -> None:
        """The user seems to have finished with ``text``; the turn has not ended yet."""
        ...

    def expect_more(self) -> None:
        """The user goes on speaking."""
        ...


class TurnTaking(Protocol):
    """What a session asks of whoever decides on the user's turns; `TurnDetector` says what each means."""

    @property
    def idle(self) -> bool: ...
    @property
    def hearing(self) -> bool: ...
    def waits(self) -> list[str]: ...
    def on_edge(self, edge: Edge) -> None: ...
    def place(self, text: str, duration_us: int) -> None: ...
    def bot_changed(self) -> None: ...
    def adopt(self, settings: TurnSettings) -> None: ...
    def stop(self) -> None: ...


class TurnDetector:
    """Decides when the caller interrupts and when they have finished.

    Args:
        transcriber: gives the text of a stretch of speech.
        bot: is asked for its state and told the decisions.
        on_idle: called whenever the detector may have come to rest.
    """

    def __init__(
        self,
        clock: Clock,
        timeline: Timeline,
        settings: TurnSettings,
        transcriber: Transcriber,
        bot: Bot,
        on_idle: Callable[[], object],
    ) -> None:
        self._clock = clock
        self._timeline = timeline
        self._settings = settings
        self._transcriber = transcriber
        self._bot = bot
        self._on_idle = on_idle
        self._speaking = False
        self._onset_us = 0
        self._interrupted = False  # this stretch of speech was a barge-in
        self._overlapped = False  # this stretch of speech fell on an active bot
        self._decision: Timer | None = None
        self._end: Timer | None = None
        self._ended = False  # the end of the turn was decided; its transcripts are waited for
        self._segments = 0
        self._pending: dict[int, None] = {}  # segments without a last final, in order
        self._begun: set[int] = set()  # those of them that have had a first final
        self._texts: list[tuple[int, str]] = []
        self._placed = 0  # decisions placed by the scenario and not ended yet
        self._last_barge_in_us: int | None = None
        self._deferred = False  # a turn waits for the bot to finish

    @property
    def idle(self) -> bool:
        """Whether the caller is silent and nothing of theirs is being worked on."""
        return not (self._speaking or self._pending or self._end is not None or self._texts or self._placed)

    @property
    def hearing(self) -> bool:
        """Whether somebody is speaking, as far as the detector knows."""
        return self._speaking

    def waits(self) -> list[str]:
        """What is waited for, in words; the report of a stuck session shows it."""
        return [f"segment {segment} waits for its transcript" for segment in self._pending]

    def adopt(self, settings: TurnSettings) -> None:
        """Decide by other settings from now on; what is timed already stays."""
        self._settings = settings

    # -- the detector's edges -----------------------------------------------------------------------------

    def on_edge(self, edge: Edge) -> None:
        """Take one edge, on its instant."""
        if edge.kind == "start":
            self._speech_started(edge.onset_frame * FRAME_US)
        else:
            self._speech_stopped((edge.last_frame + 1) * FRAME_US)

    def _speech_started(self, onset_us: int) -> None:
        self._timeline.add("vad.started", self._bot.epoch, onset_us)
        self._speaking = True
        self._onset_us = onset_us
        self._interrupted = False
        self._overlapped = self._bot.active
        self._ended = False
        self._bot.expect_more()
        if self._end is not None:
            self._end.cancel()
            self._end = None
        if self._settings.barge_in is not BargeInWhen.NEVER:
            due = max(self._clock.now, onset_us + self._settings.min_speech_us)
            self._decision = self._clock.call_at(due, Order.INTERRUPTION, self._decide)

    def _speech_stopped(self, end_us: int) -> None:
        self._timeline.add("vad.stopped", self._bot.epoch, end_us)
        self._speaking = False
        if self._decision is not None:
            self._decision.cancel()
            self._decision = None
        beside = self._overlapped and not self._interrupted and self._bot.active
        if not beside or self._outlasts(end_us):
            self._segments += 1
            self._pending[self._segments] = None
            self._transcriber.transcribe(self._segments, self._onset_us, end_us, self._on_final)
        if self._pending or self._texts:
            due = max(self._clock.now, end_us + self._settings.min_silence_us)
            self._end = self._clock.call_at(due, Order.TIMER, self._end_turn, end_us)

    def _outlasts(self, end_us: int) -> bool:
        """Speech over an active bot that did not interrupt it: does it still count as the user's words?"""
        if self._settings.barge_in is BargeInWhen.NEVER:
            return True
        long_enough = end_us - self._onset_us >= self._settings.min_speech_us
        self._timeline.add("turn.ignored", self._bot.epoch, self._onset_us, "not_now" if long_enough else "too_short")
        return False

    # -- barge-in -----------------------------------------------------------------------------------------

    def _decide(self, _: object = None) -> None:
        """The caller has been speaking long enough: interrupt the bot, if this is a time for it."""
        self._decision = None
        wait_us = self._obstacle()
        if wait_us is None:
            self._interrupted = True
            self._last_barge_in_us = self._clock.now
            self._bot.barge_in(self._onset_us, "audio")
        elif wait_us > 0:
            self._decision = self._clock.call_in(wait_us, Order.INTERRUPTION, self._decide)

    def _obstacle(self) -> int | None:
        """``None`` when a barge-in may be decided now; else how long to wait, or 0 to wait for the bot."""
        settings, now = self._settings, self._clock.now
        when = settings.barge_in
        applies = (
            when is BargeInWhen.ALWAYS
            or (when is BargeInWhen.ACTIVE and self._bot.active)
            or (when is BargeInWhen.AUDIBLE and self._bot.audible)
        )
        if not applies:
            return 0
        wait = 0
        if self._last_barge_in_us is not None:
            wait = max(wait, self._last_barge_in_us + settings.cooldown_us - now)
        first = self._bot.first_sound_us
        if settings.warm_up_us and first is not None:
            wait = max(wait, first + settings.warm_up_us - now)
        return wait if wait > 0 else None

    def bot_changed(self) -> None:
        """The bot became active or audible, or finished: look again at speech that is going on, or at a turn."""
        if self._speaking:
            if self._bot.active:
                self._overlapped = True
            waiting = self._decision is None and not self._interrupted
            if waiting and self._settings.barge_in is not BargeInWhen.NEVER:
                due = max(self._clock.now, self._onset_us + self._settings.min_speech_us)
                self._decision = self._clock.call_at(due, Order.INTERRUPTION, self._decide)
        if self._deferred and not self._bot.active:
            self._deferred = False
            self._hand_over()

    # -- end of turn --------------------------------------------------------------------------------------

    def _end_turn(self, end_us: int) -> None:
        self._end = None
        if self._pending or self._texts:
            self._timeline.add("turn.ended", self._bot.epoch, end_us)
            self._ended = True
            self._hand_over()
        self._on_idle()

    def _on_final(self, segment: int, text: str, more: bool) -> None:
        number = self._number(segment)
        self._timeline.add("stt.final", self._bot.epoch, number, text)
        if more:
            self._begun.add(segment)
        else:
            self._begun.discard(segment)
            self._pending.pop(segment, None)
        if text:
            self._texts.append((number, text))
        if self._end is None and not self._speaking and not self._ended:
            self._ended = bool(self._texts)  # it missed its turn: it opens one of its own
        if self._end is not None and self._texts and not self._waits_for_more():
            self._bot.expect_turn(" ".join(said for _, said in self._texts))
        self._hand_over()
        self._on_idle()

    def _number(self, segment: int) -> int:
        """A second final has a number of its own, so that the turn it belongs to can be told."""
        if segment not in self._begun:
            return segment
        self._segments += 1
        return self._segments

    def _hand_over(self) -> None:
        """Give the turn to the session once its end is decided and its transcripts are there."""
        if not self._ended or self._waits_for_more():
            return
        self._ended = False
        texts, self._texts = self._texts, []
        if not texts:
            return
        if self._settings.barge_in is BargeInWhen.NEVER and self._bot.active:
            self._texts = texts
            self._ended = self._deferred = True
            return
        self._bot.take_turn(" ".join(text for _, text in texts), [number for number, _ in texts])

    def _waits_for_more(self) -> bool:
        """Whether a segment of this turn has had no final at all yet."""
        return any(segment not in self._begun for segment in self._pending)

    # -- decisions placed by the scenario -----------------------------------------------------------------

    def place(self, text: str, duration_us: int) -> None:
        """The caller speaks from now on for ``duration_us``, without audio: the decisions fall exactly so.

        While the bot is active the barge-in is decided now; the turn ends, with its final, when the speech does.
        """
        self._placed += 1
        onset_us = self._clock.now
        if self._bot.active:
            self._last_barge_in_us = onset_us
            self._bot.barge_in(onset_us, "decision")
        self._clock.call_in(duration_us, Order.TIMER, self._end_placed, text)

    def _end_placed(self, text: str) -> None:
        if not self._placed:
            return  # the session is over
        self._placed -= 1
        self._segments += 1
        epoch = self._bot.epoch
        if text:
            self._timeline.add("turn.ended", epoch, self._clock.now)
            self._timeline.add("stt.final", epoch, self._segments, text)
            self._bot.take_turn(text, [self._segments])
        self._on_idle()

    def stop(self) -> None:
        """The session is over: nothing more is decided."""
        for timer in (self._decision, self._end):
            if timer is not None:
                timer.cancel()
        self._decision = self._end = None
        self._speaking = False
        self._pending.clear()
        self._texts.clear()
        self._placed = 0
