"""What is said between a client and a live provider, in one form whatever provider it is.

A speech-to-speech session sends commands and takes events; a wire spells both for its provider, as an adapter does for
streamed text (``deltas``). Positions in commands are whole milliseconds, as live protocols count them. Left out: the
caller's audio itself, which goes up all the time, and how any of it looks on a wire.
"""

from __future__ import annotations

from dataclasses import dataclass

from bargein.pipelines.agent.request import Advert
from bargein.pipelines.ports import Speech

__all__ = [
    "AudioDelta",
    "CallReady",
    "CallResult",
    "CallsCancelled",
    "CancelResponse",
    "Command",
    "Configure",
    "CreateResponse",
    "DeleteItem",
    "LiveEvent",
    "Note",
    "Refused",
    "ResponseEnded",
    "ResponseStarted",
    "Results",
    "SpeechStarted",
    "SpeechStopped",
    "Transcript",
    "TruncateItem",
]


# -- commands: from the client to the provider ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Configure:
    """The set-up: instructions, tools, and whether the provider answers and interrupts by itself."""

    system: str
    tools: tuple[Advert, ...]
    answers_turns: bool


@dataclass(frozen=True, slots=True)
class CallResult:
    """The answer to one call, under the provider's own id of it."""

    call: str
    name: str
    content: str
    is_error: bool


@dataclass(frozen=True, slots=True)
class Results:
    """Answers in call order; ``quiet`` where nothing is to be said on them."""

    results: tuple[CallResult, ...]
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Note:
    """A system message, such as a late result."""

    text: str


@dataclass(frozen=True, slots=True)
class CreateResponse:
    """Ask for a response; ``tag`` comes back with its beginning."""

    tag: str


@dataclass(frozen=True, slots=True)
class CancelResponse:
    """Stop this response, and no other that may have begun meanwhile; its end acknowledges it."""

    response: str


@dataclass(frozen=True, slots=True)
class TruncateItem:
    """Of this item only the first ``audio_end_ms`` milliseconds were heard."""

    item: str
    audio_end_ms: int


@dataclass(frozen=True, slots=True)
class DeleteItem:
    """Of this item nothing was heard."""

    item: str


Command = Configure | Results | Note | CreateResponse | CancelResponse | TruncateItem | DeleteItem


# -- events: from the provider to the client --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SpeechStarted:
    """The provider hears the user, whose turns are numbered from 1.

    Attributes:
        at_us: on the session's clock; ``None`` where the wire does not say.
        interrupts: whether it stops what the provider says.
    """

    turn: int
    at_us: int | None = None
    interrupts: bool = True


@dataclass(frozen=True, slots=True)
class SpeechStopped:
    """The user's turn has ended."""

    turn: int
    at_us: int | None = None


@dataclass(frozen=True, slots=True)
class Transcript:
    """What the user said; it may come long after it was answered."""

    turn: int
    text: str


@dataclass(frozen=True, slots=True)
class ResponseStarted:
    """A response begins.

    Attributes:
        asked: the tag of the request for it; empty where the provider began it itself.
        turn: then, the turn of the user's that it answers.
    """

    response: str
    asked: str = ""
    turn: int = 0


@dataclass(frozen=True, slots=True)
class AudioDelta:
    """A piece of a response's audio, with the words that it says."""

    response: str
    item: str
    speech: Speech
    text: str


@dataclass(frozen=True, slots=True)
class CallReady:
    """A complete tool call; the arguments are JSON text."""

    response: str
    call: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class CallsCancelled:
    """The provider does not want these calls answered any more."""

    calls: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ResponseEnded:
    """Nothing more comes of a response: ``completed``, ``cancelled`` or ``failed``, and why."""

    response: str
    status: str = "completed"
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """The provider refused something that it was sent."""

    code: str
    message: str


LiveEvent = (
    SpeechStarted
    | SpeechStopped
    | Transcript
    | ResponseStarted
    | AudioDelta
    | CallReady
    | CallsCancelled
    | ResponseEnded
    | Refused
)
