"""Where the time of a turn went: the wait from the end of the caller's speech to the answer, stage by stage.

The latency plot stacks what is computed here. Left out: the metrics of a whole session (``metrics``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from bargein.sim.kernel.frames import samples_to_us
from bargein.sim.kernel.timeline import Record

__all__ = ["STAGES", "TurnStages", "turns"]

STAGES: dict[str, str] = {
    "endpoint": "end of speech to the decision that the turn has ended",
    "stt": "that decision to the user's message",
    "first_token": "the user's message to the first LLM token",
    "tools": "tool rounds",
    "llm": "the rest of the LLM's work",
    "speech": "first text to speech to its first sample heard, speech before it included",
}
"""The stages in the order of a turn, and what each spans."""


@dataclass(frozen=True, slots=True)
class TurnStages:
    """One turn's wait for the first sample of its last answer.

    Attributes:
        stages: microseconds by the names of ``STAGES``; they add up to ``total_us``. Empty when no answer was heard.
        first_sound_us: the wait for the turn's first sample of any source, a filler's included.
    """

    epoch: int
    text: str
    stages: dict[str, int]
    total_us: int | None
    first_sound_us: int | None


def turns(records: Iterable[Record]) -> list[TurnStages]:
    """The stages of every user turn, in order. A turn without a speech end is counted from its message."""
    found: list[_Marks] = []
    by_epoch: dict[int, _Marks] = {}
    ended: Record | None = None
    for record in records:
        kind = record["kind"]
        if kind == "turn.ended":
            ended = record
        elif kind == "turn.user":
            marks = _Marks(record, ended)
            by_epoch[record["epoch"]] = marks
            found.append(marks)
            ended = None
        else:
            own = by_epoch.get(record["epoch"])
            if own is not None:
                own.read(kind, record)
    return [marks.stages() for marks in found]


class _Marks:
    """The instants of one turn that the stages lie between."""

    def __init__(self, user: Record, ended: Record | None) -> None:
        self.user = user
        self.speech_end_us: int = user["t"] if ended is None else ended["speech_end_us"]
        self.ended_us: int = user["t"] if ended is None else ended["t"]
        self.first_token_us: int | None = None
        self.tools: list[tuple[int, int]] = []
        self.tools_since_us: int | None = None
        self.first_sound_us: int | None = None
        self.opened: dict[Any, tuple[Any, int]] = {}
        self.answer: tuple[Any, int, int] | None = None  # ordinal, opened, first sample

    def read(self, kind: str, record: Record) -> None:
        t = record["t"]
        match kind:
            case "llm.first_token" if self.first_token_us is None:
                self.first_token_us = t
            case "tools.started":
                self.tools_since_us = t
            case "tools.ended" if self.tools_since_us is not None:
                self.tools.append((self.tools_since_us, t))
                self.tools_since_us = None
            case "tts.opened" if record["source"] != "filler":
                self.opened[record["utterance"]] = (record["ordinal"], t)
            case "playout.started":
                heard = samples_to_us(record["at_sample"])
                if self.first_sound_us is None:
                    self.first_sound_us = heard
                opened = self.opened.get(record["utterance"])
                if opened is not None and (self.answer is None or opened[0] != self.answer[0]):
                    self.answer = (opened[0], opened[1], heard)

    def stages(self) -> TurnStages:
        start = self.speech_end_us
        first_sound = None if self.first_sound_us is None else self.first_sound_us - start
        epoch, text = self.user["epoch"], self.user["text"]
        if self.answer is None:
            return TurnStages(epoch, text, {}, None, first_sound)
        _, opened, heard = self.answer
        token = min(self.first_token_us if self.first_token_us is not None else opened, opened)
        token = max(token, self.user["t"])
        tools = sum(max(0, min(end, opened) - begin) for begin, end in self.tools if begin < opened)
        stages = {
            "endpoint": self.ended_us - start,
            "stt": self.user["t"] - self.ended_us,
            "first_token": token - self.user["t"],
            "tools": tools,
            "llm": max(opened, token) - token - tools,
            "speech": heard - max(opened, token),
        }
        return TurnStages(epoch, text, stages, heard - start, first_sound)
