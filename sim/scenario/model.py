"""A scenario as Python objects: the twin of the file, key by key.

``loading`` makes one from a file, ``Scenario.from_dict`` from plain data with the same keys, and ``dump`` writes one
as YAML that loads to an equal one. A duration is ``delay: 1.2s`` in the file and ``delay_us=1_200_000`` here.
Everything is frozen; ``with_value`` gives a changed copy. Left out: building a session of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path as FilePath
from typing import Any, Self

from bargein.pipelines.settings import EngineConfig, TtsSettings, TurnSettings
from bargein.pipelines.tools.spec import ToolSpec
from bargein.pipelines.wordings import DEFAULT_FALLBACK_TEXT
from bargein.sim.scenario.callers import Line
from bargein.sim.scenario.codec import ABSENT, read_fields, write_fields
from bargein.sim.scenario.expected import Expect, MessageExpectation, Range
from bargein.sim.scenario.moments import After, EventExpectation, EventMatch
from bargein.sim.scenario.places import Fault, Path, Place, ScenarioError
from bargein.sim.scenario.remembering import Earlier, Memory
from bargein.sim.scenario.remote import Link, Narrowing, Outage, Remote
from bargein.sim.scenario.script import Behaviour, Call, Delta, Llm, ResultWhen, Round, Rule, When
from bargein.sim.scenario.steering import Patch, Steer, SteerLimit, SteerWhen
from bargein.sim.scenario.toolbox import Progress, Tool, ToolRun
from bargein.sim.scenario.world import Acoustics, Echo, LateFinal, Noise, S2s, Session, Stt, Tts, Vad

__all__ = [
    "ABSENT",
    "Acoustics",
    "After",
    "Agent",
    "Behaviour",
    "Call",
    "Delta",
    "Earlier",
    "Echo",
    "EventExpectation",
    "EventMatch",
    "Expect",
    "Filler",
    "Invariants",
    "LateFinal",
    "Line",
    "Link",
    "Llm",
    "Memory",
    "MessageExpectation",
    "Narrowing",
    "Noise",
    "Outage",
    "Patch",
    "Phrase",
    "Progress",
    "Range",
    "Remote",
    "ResultWhen",
    "Round",
    "Rule",
    "S2s",
    "Scenario",
    "ScenarioError",
    "Session",
    "Steer",
    "SteerLimit",
    "SteerWhen",
    "Stt",
    "Tool",
    "ToolRun",
    "Tts",
    "Vad",
    "When",
    "dump",
]


@dataclass(frozen=True, slots=True)
class Phrase:
    """Something to say while a tool runs, with the clip that says it, if there is one."""

    text: str
    clip: str | None = None

    @classmethod
    def from_value(cls, data: Any, path: Path = ()) -> Self:
        """Read ``{text: ..., clip: ...}``, or the text alone."""
        return cls(data) if isinstance(data, str) else read_fields(cls, data, path)

    def to_value(self) -> Any:
        return self.text if self.clip is None else write_fields(self)


@dataclass(frozen=True, slots=True)
class Filler:
    """When a filler is spoken, and what it says; ``off`` in the file is ``enabled=False``.

    Attributes:
        delay_us: from the start of the tool round; ``per_tool`` takes each tool's ``filler_after`` instead.
        phrases: what may be said, in turn; the packaged one where empty. ``tool_phrases``: for single tools.
        clip: the clip of every phrase that names none of its own.
        speak_progress: whether a tool's progress is spoken in place of a phrase.
    """

    enabled: bool = True
    delay_us: int = 1_200_000
    per_tool: bool = False
    phrases: tuple[Phrase, ...] = ()
    tool_phrases: dict[str, tuple[Phrase, ...]] = field(default_factory=dict)
    clip: str | None = None
    speak_progress: bool = False

    @classmethod
    def from_value(cls, data: Any, path: Path = ()) -> Self:
        """Read ``off`` or the mapping."""
        return cls(enabled=False) if data in ("off", False) else read_fields(cls, data, path)

    def to_value(self) -> Any:
        return write_fields(self) if self.enabled else "off"


@dataclass(frozen=True, slots=True)
class Agent:
    """The agent under test; every setting that is not given keeps the pipeline's default.

    Attributes:
        tools: the tools that it uses, by name, of all that the scenario and the program provide; all where not given.
        confirm_tools: of these, the ones that wait for the user's confirmation, whatever they declare themselves.
        policy_version: what the program calls its own ways, where they are not in the scenario; part of the identity
            of each run and of nothing else.
    """

    system: str = ""
    model: str = "default"
    tools: tuple[str, ...] | None = None
    confirm_tools: tuple[str, ...] = ()
    policy_version: str = ""
    max_context_tokens: int = 32_000
    filler: Filler = field(default_factory=Filler)
    fallback: str = DEFAULT_FALLBACK_TEXT
    max_tool_rounds: int = 6
    speculation: bool = False
    turn: TurnSettings = field(default_factory=TurnSettings)
    engine: EngineConfig = field(default_factory=EngineConfig)
    tts: TtsSettings = field(default_factory=TtsSettings)


@dataclass(frozen=True, slots=True)
class Invariants:
    """Which invariants are not checked, by name."""

    off: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scenario:
    """One call, whole: who says what when, what the model and the tools do, and what must come of it.

    Attributes:
        scenario: its name.
        about: what it shows, in a sentence.
        seed: of all its random streams.
        kind: the kind of fault it is about, where it is about one.
        llm: what the agent's own model does; models: what others do that steering routes requests to, by label.
        folder: where its file lies, for its recordings; ``place``: its lines, for errors. Not part of what it says.
        own_tools: declarations of tools that the program brings, in Python; a file cannot. They replace tools of the
            same name and add to the others. Not part of what it says either.
    """

    scenario: str
    about: str = ""
    seed: int = 0
    kind: str | None = None
    agent: Agent = field(default_factory=Agent)
    tools: dict[str, Tool] = field(default_factory=dict)
    remote: Remote | None = None
    caller: tuple[Line, ...] = ()
    llm: Llm = field(default_factory=Llm)
    models: dict[str, Llm] = field(default_factory=dict)
    expect: Expect = field(default_factory=Expect)
    invariants: Invariants = field(default_factory=Invariants)
    acoustics: Acoustics = field(default_factory=Acoustics)
    vad: Vad = field(default_factory=Vad)
    stt: Stt = field(default_factory=Stt)
    tts: Tts = field(default_factory=Tts)
    s2s: S2s | None = None
    memory: Memory | None = None
    steering: tuple[Steer, ...] = ()
    session: Session = field(default_factory=Session)
    folder: FilePath | None = field(default=None, compare=False, metadata={"apart": True})
    place: Place = field(default_factory=Place, compare=False, repr=False, metadata={"apart": True})
    own_tools: tuple[ToolSpec, ...] = field(default=(), compare=False, repr=False, metadata={"apart": True})

    @property
    def name(self) -> str:
        """The scenario's name."""
        return self.scenario

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The declarations of the tools that the agent uses, the scenario's order first; a remote agent's are apart."""
        specs = self.provided
        if self.agent.tools is not None:
            specs = tuple(spec for spec in specs if spec.name in self.agent.tools)
        gated = self.agent.confirm_tools
        return tuple(replace(spec, confirm=True) if spec.name in gated else spec for spec in specs) if gated else specs

    @property
    def provided(self) -> tuple[ToolSpec, ...]:
        """The declarations of all tools that the scenario and the program provide, used or not."""
        own = {spec.name: spec for spec in self.own_tools}
        specs = [own.get(name) or tool.spec(name) for name, tool in self.tools.items()]
        return (*specs, *(spec for spec in self.own_tools if spec.name not in self.tools))

    @property
    def all_specs(self) -> tuple[ToolSpec, ...]:
        """Those of a run, with what a remote agent declares and the session can take."""
        if self.remote is None:
            return self.specs
        taken = [spec.name for spec in self.specs]
        return (*self.specs, *(spec for spec in self.remote.specs if spec.name not in taken))

    @property
    def scripts(self) -> dict[str, Llm]:
        """What each model does, by its label, the agent's own first."""
        return {self.agent.model: self.llm, **self.models}

    @property
    def user_lines(self) -> tuple[str, ...]:
        """What the recogniser makes of each line that the caller speaks, in order."""
        return tuple(line.transcript or line.say for line in self.caller if line.say)

    @classmethod
    def from_dict(
        cls,
        data: Mapping[str, Any],
        place: Place | None = None,
        *,
        folder: FilePath | None = None,
        tools: Sequence[ToolSpec] = (),
    ) -> Scenario:
        """Plain data with the file's keys, checked like a file.

        Args:
            place: the file and its lines, for errors.
            folder: where its recordings are.
            tools: declarations of tools that the program brings.

        Raises:
            ScenarioError: a sentence for each thing wrong.
        """
        from bargein.sim.scenario.agent_file import settle_agent
        from bargein.sim.scenario.checks import faults_of
        from bargein.sim.scenario.schema import structure_faults

        settled = settle_agent(data, place or Place(), folder, tools)
        data, place = settled.data, settled.place
        found = structure_faults(data)
        if found:
            raise place.error(found)
        try:
            scenario = read_fields(Scenario, data)
        except Fault as fault:
            raise place.error([fault]) from None
        scenario = replace(settled.dressed(scenario), folder=folder, place=place, own_tools=tuple(tools))
        found = faults_of(scenario, data)
        if found:
            raise place.error(found)
        return scenario

    def to_dict(self) -> dict[str, Any]:
        """The file's data, defaults left out; ``from_dict`` makes an equal scenario of it."""
        return write_fields(self)

    def with_value(self, path: str, value: Any) -> Scenario:
        """A copy with one value changed, checked as a whole: ``with_value("agent.filler.delay", "800ms")``.

        Args:
            path: keys joined by dots, list positions in brackets: ``caller[1].after.by``.
            value: as it would stand in the file.

        Raises:
            ScenarioError: the path is none of a scenario's (named with the nearest one), or the value does not fit.
        """
        from bargein.sim.scenario.setting import assignment, changed

        place = Place(assignment(path, value))
        data = changed(self.to_dict(), path, value)
        return Scenario.from_dict(data, place, folder=self.folder, tools=self.own_tools)

    def with_tools(self, tools: Sequence[ToolSpec]) -> Scenario:
        """The scenario in a program that brings these tools, checked as a whole.

        Raises:
            ScenarioError: it does not fit them.
        """
        if self.own_tools == tuple(tools):
            return self
        return Scenario.from_dict(self.to_dict(), Place(self.place.file), folder=self.folder, tools=tools)


def dump(scenario: Scenario) -> str:
    """The scenario as YAML, the same text for equal scenarios; loading it gives an equal one."""
    from bargein.sim.scenario.texts import to_yaml

    return to_yaml(scenario.to_dict())
