"""The speaker: how a run puts its words into the speech stage, one announced response after the other.

Everything the agent says goes through here: answers while they stream, fillers, the fallback. A full stage makes the
run wait, and the waiting ends with its turn. Left out: what is said (``llm_runner``) and when it is heard.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from bargein.pipelines.playout_book import PlayoutBook, Source
from bargein.pipelines.tts_stage import SpeechItem
from bargein.sim.kernel.cancel import CancelToken
from bargein.sim.kernel.channel import Channel
from bargein.sim.kernel.timeline import Timeline

__all__ = ["Speaker", "Steps"]

Steps = Generator[Any, Any, Any]
"""A part of a process: it yields what it waits for."""


class Speaker:
    """The run's way to the speech stage.

    Args:
        book: numbers the responses and takes the cues for clips.
        speech: the stage's inbox.

    Attributes:
        offer: puts one item into the inbox if there is room now, and says whether there was.
    """

    def __init__(self, timeline: Timeline, book: PlayoutBook, speech: Channel[SpeechItem]) -> None:
        self._timeline = timeline
        self._book = book
        self._speech = speech
        self.offer = speech.offer

    def begin(self, epoch: int, source: Source, clip: str | None = None) -> int:
        """Announce a response to the playout book, with the clip that can say it.

        Returns:
            Its ordinal, which every item of it carries.
        """
        ordinal = self._book.next_ordinal()
        if clip is not None:
            self._book.cue_clip(ordinal, clip)
            self._timeline.add("clip.cued", epoch, ordinal, clip)
        self._timeline.add("response.started", epoch, ordinal, source)
        return ordinal

    def put(self, token: CancelToken, item: SpeechItem) -> Steps:
        """Put one item, waiting while the stage is full; given up when ``token`` is cancelled."""
        while not self._speech.offer(item):
            room = self._speech.room()
            listening = token.listen(room.win)
            yield room
            if token.cancelled:
                return
            token.forget(listening)

    def say_whole(self, token: CancelToken, epoch: int, ordinal: int, source: Source, text: str) -> Steps:
        """Put a response that is known whole: its text, and its end."""
        yield from self.put(token, (epoch, ordinal, source, text))
        if not token.cancelled:
            yield from self.put(token, (epoch, ordinal, source, None))
