"""What a recorded program says and sets, as an agent run has it.

``driving`` makes its agent and its hooks' edits of these. Left out: what the model said, which only a run knows.
"""

from __future__ import annotations

from dataclasses import replace

from bargein.pipelines.agent.media_sources import Base64, Url
from bargein.pipelines.agent.messages import Media, MediaKind, Role, Text
from bargein.pipelines.agent.messages import Part as VoicePart
from bargein.pipelines.agent.parts import (
    AudioPart,
    DocumentPart,
    ImagePart,
    OpaquePart,
    Part,
    RunMessage,
    TextPart,
    VideoPart,
)
from bargein.pipelines.agent.run_state import Run
from tests.conformance.reading import Recorded, Turn

__all__ = ["news", "preamble", "quoted", "said"]

_MEDIA: dict[MediaKind, type[ImagePart | AudioPart | VideoPart | DocumentPart]] = {
    MediaKind.IMAGE: ImagePart,
    MediaKind.AUDIO: AudioPart,
    MediaKind.VIDEO: VideoPart,
    MediaKind.DOCUMENT: DocumentPart,
}


def preamble(recorded: Recorded) -> str | None:
    """The instructions at the head of a request."""
    first = recorded.turns[0]
    return first.text if first.role == "system" else None


def news(turns: list[Turn], role: str) -> list[Turn]:
    """The turns of ``role`` after the last answer."""
    since = max((at + 1 for at, turn in enumerate(turns) if turn.role == "assistant"), default=0)
    return [turn for turn in turns[since:] if turn.role == role]


def said(turn: Turn) -> RunMessage:
    """A turn of the program as a run's message.

    Raises:
        ValueError: the turn is not the user's; an answer from before the recording is none that a run could have.
    """
    if turn.role != "user":
        raise ValueError(f"the program says a turn of {turn.role}; accepted is one of the user")
    return RunMessage(Role.USER, tuple([_part(part) for part in turn.parts]))


def _part(part: VoicePart) -> Part:
    if type(part) is Media:
        source = Url(part.url) if part.url else Base64(part.data)
        return _MEDIA[part.kind](source, part.media_type, part.detail)
    assert type(part) is Text
    return TextPart(part.text)


def quoted(run: Run, recorded: Recorded) -> tuple[RunMessage, ...]:
    """The run's last answer and what follows it; of the answer only what the recorded program quoted."""
    messages = run.history.messages()
    at = max(at for at, message in enumerate(messages) if message.role is Role.ASSISTANT)
    turn = next(turn for turn in reversed(recorded.turns) if turn.role == "assistant")
    kept: list[Part] = [
        part
        for part in messages[at].parts
        if (type(part) is not OpaquePart or turn.reasons) and (type(part) is not TextPart or turn.text)
    ]
    return (replace(messages[at], parts=tuple(kept)), *messages[at + 1 :])
