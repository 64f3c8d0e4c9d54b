"""What an agent brings to its runs, and what a run sets in its place.

The same settings stand on both; a run's go before its agent's, one by one (run contract, sections 1, 5 and 8.1). The
specification of an agent is what makes two programs the same one. Left out: what a voice session sets besides
(``request``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from bargein.pipelines.agent.links import Remembers, Retrieves
from bargein.pipelines.agent.result_limit import ResultLimit
from bargein.sim.effects.identity import model_key, tool_key

__all__ = [
    "Agent",
    "Backoff",
    "Document",
    "Grant",
    "InvalidCalls",
    "ModelDescriptor",
    "OutputMode",
    "OutputSpec",
    "OutputToolConfig",
    "Settings",
    "ToolAccess",
    "Unhandled",
    "effective",
    "overlaid_options",
    "overlaid_provider_options",
    "specification",
]

DEFAULT_MAX_TURNS = 1
DEFAULT_PROVIDER_RETRIES = 3
DEFAULT_CONCURRENCY = 1
OUTPUT_RETRIES = 1


class OutputMode(StrEnum):
    """How a structured answer is asked for."""

    AUTO = "Auto"
    NATIVE = "Native"
    TOOL = "Tool"
    PROMPTED = "Prompted"


class Unhandled(StrEnum):
    """What becomes of an invalid call that no hook resolves."""

    FAIL = "fail"
    IGNORE = "ignore"


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """The schema of the answer; plain text without one."""

    schema: dict[str, Any] | None = None
    mode: OutputMode = OutputMode.AUTO


@dataclass(frozen=True, slots=True)
class OutputToolConfig:
    """What the output tool is called, how it is described, and whether the system message speaks of it."""

    name: str | None = None
    description: str | None = None
    augment: bool = True


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long a retry waits: ``base_us`` doubled with each attempt, at most ``max_us``."""

    base_us: int
    max_us: int

    def delay_us(self, attempt: int) -> int:
        """The wait before the attempt, counted from 1."""
        if attempt > self.max_us.bit_length() + 1:  # doubled so often it is past any maximum
            return self.max_us if self.base_us else 0
        return min(self.base_us << (attempt - 1), self.max_us)


@dataclass(frozen=True, slots=True)
class InvalidCalls:
    """What becomes of invalid calls that no hook resolves, and how many retries a hook may ask for."""

    unhandled: Unhandled = Unhandled.FAIL
    retries: int = 0


@dataclass(frozen=True, slots=True)
class ToolAccess:
    """Which names can be run and which may be, apart from what is advertised.

    Attributes:
        bindings: handler key by name; those advertised where ``None``.
        allowed: names a model may call; those that can be run where ``None``.
    """

    bindings: Mapping[str, str] | None = None
    allowed: tuple[str, ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        """As a specification holds it."""
        bindings, allowed = self.bindings, self.allowed
        return {
            "bindings": None if bindings is None else dict(bindings),
            "allowed": None if allowed is None else list(allowed),
        }


@dataclass(frozen=True, slots=True)
class Document:
    """A document beside the conversation."""

    id: str
    text: str
    props: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As a request holds it."""
        data: dict[str, Any] = {"id": self.id, "text": self.text}
        if self.props:
            data["additional_props"] = dict(self.props)
        return data


@dataclass(frozen=True, slots=True)
class Grant:
    """A tool an agent may use: what the model is told of it, and the key of who runs it."""

    name: str
    description: str
    parameters: dict[str, Any]
    key: str

    def to_dict(self) -> dict[str, Any]:
        """As a request advertises it."""
        return {"name": self.name, "description": self.description, "parameters": self.parameters}


@dataclass(frozen=True, slots=True)
class ModelDescriptor:
    """A model: the key of who serves it, and whether it gives structured answers while it has tools."""

    key: str
    composes_native_output_with_tools: bool = False


@dataclass(slots=True, kw_only=True)
class Settings:
    """Settings of an agent or of one run; ``None`` leaves it to the other, then to the default.

    Attributes:
        options: of generation, overlaid key by key; a key that holds ``None`` holds its default.
        provider_options: by provider; an entry takes the place of the whole one below.
        max_turns: model calls of a run; 1 where nobody says.
        provider_retries: requests sent again after an error that may pass; 3 where nobody says.
        concurrency: calls of one batch that run at the same time; 1 where nobody says.
        tool_context: values handed to tools beside their arguments.
        policy_version: what the program calls its own ways, hooks and whatever else no setting says; it is part of the
            specification where it is not empty, and a replay is unverified without it.
        record_telemetry_content: whether telemetry may hold what was said; the timeline has no answer where it may not,
            and no request, record or specification has the setting (run contract, section 1).
    """

    preamble: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    tool_choice: Any = None
    additional_params: Any = None
    options: Mapping[str, Any] | None = None
    provider_options: Mapping[str, Any] | None = None
    output: OutputSpec | None = None
    output_tool: OutputToolConfig | None = None
    max_turns: int | None = None
    provider_retries: int | None = None
    backoff: Backoff | None = None
    concurrency: int | None = None
    tool_context: Mapping[str, Any] | None = None
    result_limit: ResultLimit | None = None
    invalid_calls: InvalidCalls | None = None
    tool_access: ToolAccess | None = None
    policy_version: str | None = None
    record_telemetry_content: bool | None = None


@dataclass(slots=True, kw_only=True)
class Agent:
    """An agent: its model, its tools, its documents and its settings.

    Attributes:
        owner: names the agent in handler keys.
        model: what its runs ask unless told otherwise; ``routes`` are the others it declares.
        grants: its tools, in the order in which they are advertised.
        context: documents that go with every request.
        remembers: the memory that its runs load from and append to, unless they bring a history.
        retrieves: the handlers that its rounds look things up with, in the order in which they are asked.
        retrievable: names of grants that are offered only where they were found.
    """

    owner: str = "agent"
    model: ModelDescriptor = ModelDescriptor("agent/model:default")
    routes: tuple[ModelDescriptor, ...] = ()
    grants: list[Grant] = field(default_factory=list)
    context: list[Document] = field(default_factory=list)
    settings: Settings = field(default_factory=Settings)
    remembers: Remembers | None = None
    retrieves: tuple[Retrieves, ...] = ()
    retrievable: tuple[str, ...] = ()

    @classmethod
    def named(cls, owner: str, label: str = "default", **settings: Any) -> Agent:
        """An agent whose keys begin with ``owner``, with these settings."""
        return cls(owner=owner, model=ModelDescriptor(model_key(owner, label)), settings=Settings(**settings))

    def grant(self, name: str, description: str = "", parameters: dict[str, Any] | None = None) -> Grant:
        """Give it one tool more; its key counts the agent's tools from 0."""
        schema = {"type": "object"} if parameters is None else parameters
        granted = Grant(name, description, schema, tool_key(self.owner, name, len(self.grants)))
        self.grants.append(granted)
        return granted

    def model_of(self, key: str) -> ModelDescriptor:
        """The model under ``key``; one that was not declared is taken to compose nothing."""
        return next((each for each in (self.model, *self.routes) if each.key == key), ModelDescriptor(key))


def effective(run: Settings, agent: Agent, name: str, default: Any = None) -> Any:
    """A setting: the run's, else the agent's, else ``default``."""
    for settings in (run, agent.settings):
        value = getattr(settings, name)
        if value is not None:
            return value
    return default


def overlaid_options(run: Settings, agent: Agent) -> dict[str, Any]:
    """The agent's generation options under the run's; what holds its default is left out."""
    both = {**(agent.settings.options or {}), **(run.options or {})}
    return {name: value for name, value in both.items() if value is not None}


def overlaid_provider_options(run: Settings, agent: Agent) -> dict[str, Any]:
    """The agent's entries with the run's in their places."""
    return {**(agent.settings.provider_options or {}), **(run.provider_options or {})}


def specification(agent: Agent, run: Settings | None = None) -> dict[str, Any]:
    """What makes a program: plain data, to be hashed (run contract, section 6). With ``run`` the effective one.

    Options, a policy version and an explicit access stand in it only where there are any.
    """
    settings = run or Settings()
    output = effective(settings, agent, "output", OutputSpec())
    tool = effective(settings, agent, "output_tool", OutputToolConfig())
    invalid = effective(settings, agent, "invalid_calls", InvalidCalls())
    spec = {
        "preamble": effective(settings, agent, "preamble"),
        "static_context": [{"id": each.id, "text": each.text, **each.props} for each in agent.context],
        "additional_params": effective(settings, agent, "additional_params"),
        "max_tokens": effective(settings, agent, "max_tokens"),
        "temperature": effective(settings, agent, "temperature"),
        "tool_choice": effective(settings, agent, "tool_choice"),
        "max_turns": effective(settings, agent, "max_turns", DEFAULT_MAX_TURNS),
        "max_invalid_tool_call_retries": invalid.retries,
        "output_schema": output.schema,
        "output_mode": str(output.mode),
        "output_tool_name": tool.name,
        "output_tool_description": tool.description,
        "augment_output_preamble": tool.augment,
        "unhandled_invalid_tool_call": str(invalid.unhandled),
    }
    options, provider_options = overlaid_options(settings, agent), overlaid_provider_options(settings, agent)
    if options:
        spec["options"] = options
    if provider_options:
        spec["provider_options"] = provider_options
    version: str | None = effective(settings, agent, "policy_version")
    access: ToolAccess | None = effective(settings, agent, "tool_access")
    if version:
        spec["policy_version"] = version
    if access is not None:
        spec["tool_access"] = access.to_dict()
    return spec
