"""From a scenario's agent to the settings of its sessions, and to the clips that its fillers name.

``build.Plan`` asks once for all sessions. Left out: what a setting does (``pipelines.settings``).
"""

from __future__ import annotations

from bargein.models.clips import RenderedClips
from bargein.pipelines.agent.request import AgentSettings
from bargein.pipelines.settings import FillerConfig, FillerSettings, PhraseSettings, SessionSettings
from bargein.pipelines.wordings import DEFAULT_FILLER_TEXT
from bargein.sim.scenario.model import Filler, Phrase, Scenario
from bargein.sim.scenario.steering import steering_of

__all__ = ["clips_of", "settings_of"]


def settings_of(scenario: Scenario) -> SessionSettings:
    """Everything about the agent."""
    agent = scenario.agent
    return SessionSettings(
        session_id=scenario.session.id,
        agent=AgentSettings(agent.system, agent.model, agent.max_context_tokens),
        turn=agent.turn,
        filler=_filler(agent.filler),
        engine=agent.engine,
        tts=agent.tts,
        max_tool_rounds=agent.max_tool_rounds,
        fallback_text=agent.fallback,
        speculation=agent.speculation,
        per_frame=scenario.session.per_frame,
        steering=steering_of(scenario.steering),
    )


def _filler(filler: Filler) -> FillerSettings:
    config = FillerConfig(filler.enabled, None if filler.per_tool else filler.delay_us)
    generic = filler.phrases or (Phrase(DEFAULT_FILLER_TEXT),)

    def phrases(given: tuple[Phrase, ...]) -> tuple[PhraseSettings, ...]:
        return tuple(PhraseSettings(phrase.text, phrase.clip or filler.clip) for phrase in given)

    return FillerSettings(
        config=config,
        phrases=phrases(generic),
        tool_phrases={tool: phrases(given) for tool, given in filler.tool_phrases.items()},
        speak_progress=filler.speak_progress,
    )


def clips_of(scenario: Scenario) -> RenderedClips:
    """The clips that the filler phrases name, each saying its phrase."""
    settings = _filler(scenario.agent.filler)
    texts: dict[str, str] = {}
    for phrase in (*settings.phrases, *(each for given in settings.tool_phrases.values() for each in given)):
        if phrase.clip is not None:
            texts.setdefault(phrase.clip, phrase.text)
    return RenderedClips(texts, scenario.tts.voice, frozenset(scenario.tts.missing_clips))
