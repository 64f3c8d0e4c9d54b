"""Every default of the pipeline, in the one place where a reader looks for it.

Scenario files, agent files and Python callers override single fields by name; the stages themselves hold no
defaults. All durations are microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from bargein.pipelines.agent.request import AgentSettings
from bargein.pipelines.steering import Steering
from bargein.pipelines.wordings import DEFAULT_FALLBACK_TEXT, DEFAULT_FILLER_TEXT

__all__ = [
    "BargeInWhen",
    "EngineConfig",
    "FillerConfig",
    "FillerSettings",
    "PhraseSettings",
    "SessionSettings",
    "TtsSettings",
    "TurnSettings",
]


class BargeInWhen(StrEnum):
    """When the caller's speech may become a barge-in."""

    AUDIBLE = "audible"
    """While the bot is heard, or its audio is queued."""
    ACTIVE = "active"
    """While it is heard or about to be: also while a run is working on an answer."""
    ALWAYS = "always"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class TurnSettings:
    """How speech becomes decisions.

    Attributes:
        min_speech_us: voiced time from its onset before speech counts as a barge-in.
        min_silence_us: silence after the last voiced frame before the user's turn has ended.
        cooldown_us: after a barge-in decision, time in which there is no other.
        warm_up_us: from the bot's first sample of the session, time in which audio cannot interrupt it (an echo
            canceller needs it); a decision that a scenario places directly is not held up.
        barge_in: when a barge-in may be decided.
    """

    min_speech_us: int = 200_000
    min_silence_us: int = 500_000
    cooldown_us: int = 0
    warm_up_us: int = 0
    barge_in: BargeInWhen = BargeInWhen.ACTIVE


@dataclass(frozen=True, slots=True)
class PhraseSettings:
    """One thing to say while a tool runs, with the pre-rendered clip that says it, if there is one."""

    text: str
    clip: str | None = None


@dataclass(frozen=True, slots=True)
class FillerConfig:
    """On or off, and when (tool contract, "Filler policy").

    Attributes:
        enabled: whether fillers are spoken at all.
        delay_us: from the start of the tool round; ``None`` means each tool's own ``filler_after``.
    """

    enabled: bool = True
    delay_us: int | None = 1_200_000


@dataclass(frozen=True, slots=True)
class FillerSettings:
    """The filler policy of a session: when, and what to say."""

    config: FillerConfig = FillerConfig()
    phrases: tuple[PhraseSettings, ...] = (PhraseSettings(DEFAULT_FILLER_TEXT),)
    tool_phrases: dict[str, tuple[PhraseSettings, ...]] = field(default_factory=dict)
    speak_progress: bool = False


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Bounds of the tool engine (tool contract, "Tool engine"). Sizes are bytes."""

    max_invalid_rounds: int = 2
    max_result_bytes: int = 64 * 1024
    idempotency_capacity: int = 256
    idempotency_max_bytes: int = 4 * 1024 * 1024
    max_argument_bytes: int = 16 * 1024
    max_side_effect_runtime_us: int = 120_000_000
    orphan_window_us: int = 120_000_000
    confirm_ttl_us: int = 120_000_000


@dataclass(frozen=True, slots=True)
class TtsSettings:
    """Bounds of the speech stage.

    Attributes:
        inbox: text pieces that may wait before the runner has to.
        clip_queue: clips that may wait to be played.
        clip_wait_limit_us: how long a provider context is held back by a pending clip.
    """

    inbox: int = 64
    clip_queue: int = 4
    clip_wait_limit_us: int = 30_000_000


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Everything about the agent's pipeline that a session may set.

    Attributes:
        max_tool_rounds: rounds of tools one turn may take before the fallback is spoken.
        fallback_text: what is spoken then.
        speculation: start the model at the user's first final, hold its side effects until the turn ends.
        per_frame: the reference mode: audio moves by one tick a frame instead of by spans.
        steering: how single requests differ, which model has them, and which calls are denied.
    """

    session_id: str = "s"
    agent: AgentSettings = field(default_factory=AgentSettings)
    turn: TurnSettings = TurnSettings()
    filler: FillerSettings = FillerSettings()
    engine: EngineConfig = EngineConfig()
    tts: TtsSettings = TtsSettings()
    max_tool_rounds: int = 6
    fallback_text: str = DEFAULT_FALLBACK_TEXT
    speculation: bool = False
    per_frame: bool = False
    steering: Steering = field(default_factory=Steering)
