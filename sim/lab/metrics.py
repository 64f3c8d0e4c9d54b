"""Numbers of one session, read from its timeline: how long the caller waited, and what it cost.

``metrics`` gives one flat mapping for tables, sweeps and expectations; its legend is ``METRICS``. ``tool_summary``
counts by tool. All durations are whole microseconds and their names end in ``_us``. Left out: numbers over many
sessions (the sweep's), and the stages of a turn (``stages``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bargein.sim.kernel.frames import samples_to_us
from bargein.sim.kernel.timeline import Record

__all__ = ["METRICS", "Metrics", "metrics", "tool_summary"]

Metrics = dict[str, "int | list[int] | None"]

METRICS: dict[str, tuple[str, str]] = {
    "response_latency_us": (
        "us",
        "longest wait of a turn: end of the caller's speech, as the VAD saw it, to first sample",
    ),
    "response_latencies_us": ("us", "the same for each turn that was answered aloud, in order"),
    "endpoint_delay_us": ("us", "longest: end of speech to the decision that the turn has ended"),
    "endpoint_delays_us": ("us", "the same for each decision"),
    "stt_latency_us": ("us", "longest: the VAD's stop to a final transcript"),
    "stt_latencies_us": ("us", "the same for each final transcript that follows a stop"),
    "llm_ttft_us": ("us", "longest: an LLM request to its first token"),
    "llm_ttfts_us": ("us", "the same for each round that gave a token"),
    "llm_duration_us": ("us", "longest: an LLM request to its last token or its failure"),
    "llm_durations_us": ("us", "the same for each round that came to an end"),
    "tool_duration_us": ("us", "longest: a tool body from its start to its own end, or to when it was stopped"),
    "tool_durations_us": ("us", "the same for each run, in the order of their ends"),
    "tts_ttfb_us": ("us", "longest: a provider's TTS context opened to its first audio; clips have none"),
    "tts_ttfbs_us": ("us", "the same for each"),
    "stop_latency_us": ("us", "longest: onset of the interrupting speech to the last bot sample heard"),
    "stop_latencies_us": ("us", "the same for each barge-in that cut audible speech"),
    "talk_over_us": ("us", "time in which the caller and the bot were both audible"),
    "dead_air_us": ("us", "longest silence of both that the bot ended, after the caller first spoke"),
    "fillers": ("", "fillers spoken"),
    "fillers_cut": ("", "filler utterances that were cut, those not yet heard included"),
    "fallbacks": ("", "fallback lines spoken"),
    "words_heard": ("", "bot words heard to their end"),
    "words_lost": ("", "bot words known to be meant for the ear, but not heard to their end"),
    "barge_ins": ("", "decisions to let the caller interrupt"),
    "turns": ("", "user turns"),
    "rounds": ("", "LLM requests"),
    "tool_calls": ("", "tool calls settled, refusals included"),
    "tool_runs": ("", "tool bodies started"),
    "side_effect_runs": ("", "of these, side effects"),
    "late_notes": ("", "late notes in the context"),
}
"""Unit and definition of each metric, in the order they are shown; a value is ``None`` where there was no case."""

_WORST = {
    "response_latency_us": "response_latencies_us",
    "endpoint_delay_us": "endpoint_delays_us",
    "stt_latency_us": "stt_latencies_us",
    "llm_ttft_us": "llm_ttfts_us",
    "llm_duration_us": "llm_durations_us",
    "tool_duration_us": "tool_durations_us",
    "tts_ttfb_us": "tts_ttfbs_us",
    "stop_latency_us": "stop_latencies_us",
}


def metrics(records: Iterable[Record]) -> Metrics:
    """Every metric of a session, in one pass.

    Args:
        records: the whole timeline, in order.

    Returns:
        A value for each name of ``METRICS``: an int, a list of ints, or ``None`` where there was no case.
    """
    meter = _Meter()
    for record in records:
        read = _READERS.get(record["kind"])
        if read is not None:
            read(meter, record)
    lists = meter.lists
    return {
        name: lists[name]
        if name in lists
        else max(lists[_WORST[name]], default=None)
        if name in _WORST
        else meter.value(name)
        for name in METRICS
    }


def tool_summary(records: Iterable[Record]) -> dict[str, dict[str, Any]]:
    """By tool name, in name order: ``runs`` (bodies started) and ``outcomes`` (settled calls by outcome)."""
    tools: dict[str, dict[str, Any]] = {}
    for record in records:
        kind = record["kind"]
        if kind == "tool.started" or kind == "tool.settled":
            tool = tools.setdefault(record["tool"], {"runs": 0, "outcomes": {}})
            if kind == "tool.started":
                tool["runs"] += 1
            else:
                outcomes = tool["outcomes"]
                outcomes[record["outcome"]] = outcomes.get(record["outcome"], 0) + 1
    return {
        name: {"runs": tools[name]["runs"], "outcomes": dict(sorted(tools[name]["outcomes"].items()))}
        for name in sorted(tools)
    }


class _Meter:
    """The running state of one pass.

    Invariant: ``quiet_since`` is set exactly while the caller has spoken before and neither side is audible.
    """

    def __init__(self) -> None:
        self.lists: dict[str, list[int]] = {name: [] for name in _WORST.values()}
        self.counts: dict[str, int] = {}
        self.talk_over_us = 0
        self.dead_air_us: int | None = None
        self.speech_end_us: int | None = None
        self.vad_stop_us: int | None = None
        self.waiting: dict[int, int] = {}
        self.requests: dict[tuple[int, int], int] = {}
        self.running: dict[str, int] = {}
        self.opened: dict[Any, int] = {}
        self.sources: dict[Any, str] = {}
        self.barge_in_onset_us: int | None = None
        self.callers: set[Any] = set()
        self.audible: set[Any] = set()
        self.words_meant = 0
        self.since_us = 0
        self.quiet_since_us: int | None = None

    def value(self, name: str) -> int | None:
        if name == "talk_over_us":
            return self.talk_over_us
        if name == "dead_air_us":
            return self.dead_air_us
        if name == "words_lost":
            return max(0, self.words_meant - self.counts.get("words_heard", 0))
        return self.counts.get(name, 0)

    def count(self, name: str) -> None:
        self.counts[name] = self.counts.get(name, 0) + 1

    # -- who is audible -----------------------------------------------------------------------------------

    def sound(self, t: int, side: set[Any], who: Any, on: bool) -> None:
        """The caller or the bot becomes audible, or falls silent."""
        if self.callers and self.audible:
            self.talk_over_us += t - self.since_us
        self.since_us = t
        if on:
            if side is self.audible and self.quiet_since_us is not None:
                self.dead_air_us = max(self.dead_air_us or 0, t - self.quiet_since_us)
            self.quiet_since_us = None
            side.add(who)
        elif who in side:
            side.discard(who)
            if not self.callers and not self.audible and "lines" in self.counts:
                self.quiet_since_us = t

    def caller_started(self, record: Record) -> None:
        self.count("lines")
        self.sound(record["t"], self.callers, record["line"], True)

    def caller_ended(self, record: Record) -> None:
        self.sound(record["t"], self.callers, record["line"], False)

    def playout_started(self, record: Record) -> None:
        speech_end_us = self.waiting.pop(record["epoch"], None)
        if speech_end_us is not None:
            self.lists["response_latencies_us"].append(samples_to_us(record["at_sample"]) - speech_end_us)
        self.sound(record["t"], self.audible, record["utterance"], True)

    def playout_resumed(self, record: Record) -> None:
        self.sound(record["t"], self.audible, record["utterance"], True)

    def playout_stopped(self, record: Record) -> None:
        self.sound(record["t"], self.audible, record["utterance"], False)

    def playout_cut(self, record: Record) -> None:
        if record["utterance"] in self.audible and self.barge_in_onset_us is not None:
            self.lists["stop_latencies_us"].append(record["t"] - self.barge_in_onset_us)
            self.barge_in_onset_us = None
        if self.sources.get(record["utterance"]) == "filler":
            self.count("fillers_cut")
        self.playout_stopped(record)

    def word(self, _: Record) -> None:
        self.count("words_heard")

    # -- the turn -----------------------------------------------------------------------------------------

    def vad_stopped(self, record: Record) -> None:
        self.vad_stop_us = record["t"]

    def stt_final(self, record: Record) -> None:
        if self.vad_stop_us is not None:
            self.lists["stt_latencies_us"].append(record["t"] - self.vad_stop_us)

    def turn_ended(self, record: Record) -> None:
        self.speech_end_us = record["speech_end_us"]
        self.lists["endpoint_delays_us"].append(record["t"] - record["speech_end_us"])

    def turn_user(self, record: Record) -> None:
        self.count("turns")
        self.barge_in_onset_us = None
        if self.speech_end_us is not None:
            self.waiting[record["epoch"]] = self.speech_end_us
            self.speech_end_us = None

    def barge_in(self, record: Record) -> None:
        self.count("barge_ins")
        self.barge_in_onset_us = record["onset_us"]

    # -- the agent ----------------------------------------------------------------------------------------

    def llm_request(self, record: Record) -> None:
        self.count("rounds")
        self.requests[record["epoch"], record["round"]] = record["t"]

    def llm_first_token(self, record: Record) -> None:
        asked = self.requests.get((record["epoch"], record["round"]))
        if asked is not None:
            self.lists["llm_ttfts_us"].append(record["t"] - asked)

    def llm_over(self, record: Record) -> None:
        asked = self.requests.pop((record["epoch"], record["round"]), None)
        if asked is not None:
            self.lists["llm_durations_us"].append(record["t"] - asked)

    def tool_started(self, record: Record) -> None:
        self.count("tool_runs")
        if record["side_effect"]:
            self.count("side_effect_runs")
        self.running[record["call"]] = record["t"]

    def tool_over(self, record: Record) -> None:
        started = self.running.pop(record["call"], None)
        if started is not None:
            self.lists["tool_durations_us"].append(record["t"] - started)

    def tool_settled(self, _: Record) -> None:
        self.count("tool_calls")

    def tts_opened(self, record: Record) -> None:
        self.sources[record["utterance"]] = record["source"]
        if not record["clip"]:
            self.opened[record["utterance"]] = record["t"]

    def tts_first_byte(self, record: Record) -> None:
        opened = self.opened.pop(record["utterance"], None)
        if opened is not None:
            self.lists["tts_ttfbs_us"].append(record["t"] - opened)

    def filler_spoken(self, record: Record) -> None:
        self.count("fillers")
        self.words_meant += len(record["text"].split())

    def fallback_spoken(self, record: Record) -> None:
        self.count("fallbacks")
        self.words_meant += len(record["text"].split())

    def pushed(self, record: Record) -> None:
        if record["role"] == "assistant" and record["source"] not in ("filler", "fallback", "memory"):
            self.words_meant += len(record["text"].split())
        elif record["role"] == "system" and record["source"] == "note":
            self.count("late_notes")


_READERS = {
    "caller.started": _Meter.caller_started,
    "caller.ended": _Meter.caller_ended,
    "playout.started": _Meter.playout_started,
    "playout.resumed": _Meter.playout_resumed,
    "playout.starved": _Meter.playout_stopped,
    "playout.ended": _Meter.playout_stopped,
    "playout.cut": _Meter.playout_cut,
    "playout.word": _Meter.word,
    "vad.stopped": _Meter.vad_stopped,
    "stt.final": _Meter.stt_final,
    "turn.ended": _Meter.turn_ended,
    "turn.user": _Meter.turn_user,
    "turn.barge_in": _Meter.barge_in,
    "llm.request": _Meter.llm_request,
    "llm.first_token": _Meter.llm_first_token,
    "llm.done": _Meter.llm_over,
    "llm.failed": _Meter.llm_over,
    "tool.started": _Meter.tool_started,
    "tool.finished": _Meter.tool_over,
    "tool.dropped": _Meter.tool_over,
    "tool.settled": _Meter.tool_settled,
    "tts.opened": _Meter.tts_opened,
    "tts.first_byte": _Meter.tts_first_byte,
    "filler.spoken": _Meter.filler_spoken,
    "fallback.spoken": _Meter.fallback_spoken,
    "context.pushed": _Meter.pushed,
}
