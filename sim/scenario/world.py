"""What surrounds the agent in a scenario: the room, the detector, the recogniser, the voice, and the session.

Part of the scenario model; ``model`` gathers it. Left out: how each of them works; ``bargein.models`` does that.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from bargein.models.apps.clock import DEFAULT_START
from bargein.models.latency import Constant, Latency

__all__ = ["Acoustics", "Echo", "LateFinal", "Noise", "S2s", "Session", "Stt", "Tts", "Vad"]


@dataclass(frozen=True, slots=True)
class Noise:
    """Noise in the caller's room: ``white``, ``pink`` or ``babble``, below the speech by ``snr_db``."""

    kind: str = "pink"
    snr_db: int | float = 30


@dataclass(frozen=True, slots=True)
class Echo:
    """The agent's own voice coming back into the microphone, ``delay_us`` later and ``gain_db`` louder (below 0)."""

    delay_us: int = 60_000
    gain_db: int | float = -30


@dataclass(frozen=True, slots=True)
class Acoustics:
    """What the microphone hears besides the caller; silence where neither is given."""

    noise: Noise | None = None
    echo: Echo | None = None


@dataclass(frozen=True, slots=True)
class Vad:
    """The voice activity detector: ``energy`` or ``silero``, its thresholds in dBFS, its onset and hangover."""

    engine: str = "energy"
    on_db: int | float = -40
    off_db: int | float = -46
    onset_frames: int = 2
    hangover_us: int = 200_000


@dataclass(frozen=True, slots=True)
class LateFinal:
    """The recogniser's last ``words`` words of each line come as a second final, ``after_us`` after the first."""

    after_us: int
    words: int = 1


@dataclass(frozen=True, slots=True)
class Stt:
    """The recogniser: from the end of the caller's speech, as the detector saw it, to the final transcript."""

    latency: Latency = field(default=Constant(200_000))
    late_final: LateFinal | None = None


@dataclass(frozen=True, slots=True)
class Tts:
    """The voice.

    Attributes:
        ttfb: from the first text to the first audio.
        speed: audio arrives this many times faster than it plays.
        voice: which voice of the fixtures, or of the plain synthesis, speaks.
        missing_clips: clips whose pre-rendered audio is not there when they are needed.
    """

    ttfb: Latency = field(default=Constant(150_000))
    speed: int | float = 4
    voice: str = "agent"
    missing_clips: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class S2s:
    """Speech to speech: one provider that hears, thinks and speaks, in place of ``stt`` and ``tts``.

    The script of ``llm`` says what it answers, and ``agent.turn`` is its detector's. ``tts`` still gives the voice, and
    says fillers and the fallback, which no provider does.

    Attributes:
        provider: whose wire: ``gemini_live`` or ``realtime``.
        latency: of each message, either way.
        audio_speed: audio comes this many times faster than it plays.
        turn_delay_us: how much later than the rest its messages about the user's turns come.
        transcript: from the end of a turn to its transcript, where that is not at once.
        turns: who asks for the answer to a turn and stops one that is interrupted: the ``provider`` or the ``client``.
    """

    provider: str
    latency: Latency = field(default=Constant(50_000))
    audio_speed: int | float = 4
    turn_delay_us: int = 0
    transcript: Latency = field(default=Constant(0))
    turns: str = "provider"


@dataclass(frozen=True, slots=True)
class Session:
    """The call as a whole.

    Attributes:
        id: the session's id, part of every idempotency key.
        max_duration_us: the call is ended then, whatever goes on.
        per_frame: the reference mode, in which audio moves frame by frame.
        starts_at: the wall time at which it begins, as ISO 8601 with an offset; only ``get_time`` reads it.
    """

    id: str = "s"
    max_duration_us: int = 600_000_000
    per_frame: bool = False
    starts_at: str = DEFAULT_START
