"""Agent files: an agent's instructions, tools, fillers and interruption settings, in TOML or YAML.

``bargein check`` validates one by itself; a scenario names one in place of its ``agent:`` block, which then is what
the file says (tool contract, "In the server binary"). An agent has the tools that it lists and no others, and a tool
that nobody provides keeps every session of it from starting. Left out: the tools of a remote agent, which its link
declares and no file lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from bargein.pipelines.tools.spec import ToolSpec
from bargein.pipelines.wordings import CONFIRM_PENDING_TOOL
from bargein.sim.effects.document_sorts import AGENT as AGENT_FILE
from bargein.sim.effects.document_sorts import sort_of, sort_of_data
from bargein.sim.scenario.folders import inside
from bargein.sim.scenario.places import Fault, Path, Place, ScenarioError
from bargein.sim.scenario.schema import AGENT, structure_faults
from bargein.sim.scenario.suggest import either, nearest, unknown
from bargein.sim.scenario.texts import parse_yaml
from bargein.sim.scenario.toml_lines import parse_toml

if TYPE_CHECKING:
    from bargein.sim.scenario.model import Scenario

__all__ = [
    "AgentFile",
    "Settled",
    "check_agent_file",
    "is_agent_file",
    "load_agent",
    "read_agent",
    "settle_agent",
    "use_faults",
]

_MAX_BYTES = 1024 * 1024
_DEMO = "bargein.models.apps.demo:tools"
_SAME = (
    "system",
    "tools",
    "confirm_tools",
    "policy_version",
    "max_context_tokens",
    "max_tool_rounds",
    "fallback",
    "speculation",
)
"""Keys of the file's ``agent`` that a scenario's ``agent`` has under the same name."""


@dataclass(frozen=True, slots=True)
class AgentFile:
    """What an agent file says.

    Attributes:
        block: the ``agent`` block of a scenario that says the same.
        provider: whose wire it speaks; ``voice``: the voice it has; where the file says so.
        place: the file and its lines.
    """

    block: dict[str, Any]
    provider: str | None = None
    voice: str | None = None
    place: Place = field(default_factory=Place, compare=False, repr=False)

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools that it lists."""
        return tuple(self.block["tools"])


def is_agent_file(name: str) -> bool:
    """Whether a file is to be read as an agent's: one in TOML, or one in YAML that has an agent and no scenario."""
    if name.endswith(".toml"):
        return True
    path = FilePath(name)
    if path.suffix not in (".yaml", ".yml") or not path.is_file() or path.stat().st_size > _MAX_BYTES:
        return False
    try:
        data, _ = parse_yaml(path.read_text(encoding="utf-8-sig"), name)
    except (ScenarioError, OSError, UnicodeDecodeError):
        return False  # whoever reads it as a scenario says what is wrong
    return isinstance(data, dict) and "agent" in data and "scenario" not in data


# -- reading ------------------------------------------------------------------------------------------------------


def load_agent(path: FilePath, name: str = "") -> AgentFile:
    """The agent in a file; TOML where its name ends in ``.toml``, else YAML.

    Args:
        name: what errors call it; its path unless given.

    Raises:
        ScenarioError: it cannot be read; a sentence for each thing wrong.
    """
    name = name or str(path)
    return read_agent(_text(path, name), name)


def read_agent(text: str, name: str) -> AgentFile:
    """The agent in the text of a file.

    Raises:
        ScenarioError: a sentence for each thing wrong.
    """
    data, place = _parse(text, name)
    faults = list(_form_faults(data))
    if faults:
        raise place.error(faults)
    return _agent(data, place)


def _text(path: FilePath, name: str) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(_MAX_BYTES + 1)
        text = raw.decode("utf-8-sig")
    except OSError as error:
        raise ScenarioError(f"{name}: it cannot be read ({error.strerror}); accepted is a readable file") from None
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ScenarioError(f"{name}:{line}: found bytes that are no UTF-8; accepted is text in UTF-8") from None
    if len(raw) > _MAX_BYTES:
        _refuse_other(sort_of(raw), name)
        raise ScenarioError(f"{name}: it has more than {_MAX_BYTES} bytes; accepted is an agent file of up to that")
    return text


def _parse(text: str, name: str) -> tuple[Any, Place]:
    try:
        data, place = parse_toml(text, name) if name.endswith(".toml") else parse_yaml(text, name)
    except ScenarioError:
        _refuse_other(sort_of(text.encode("utf-8", "surrogatepass")), name)
        raise
    _refuse_other(sort_of_data(data), name)
    return data, place


def _refuse_other(sort: str | None, name: str) -> None:
    if sort is not None and sort != AGENT_FILE:
        raise ScenarioError(f"{name}: it is {sort}; accepted is an agent file")


def _form_faults(data: Any) -> Iterator[Fault]:
    """What is wrong with the file whatever tools there are."""
    yield from structure_faults(data, AGENT)
    provider = _part(data, "llm").get("provider")
    if isinstance(provider, str):
        from bargein.models.providers.catalogue import WIRES

        if provider not in WIRES:
            yield Fault(("llm", "provider"), unknown("provider", provider, WIRES))


def _part(data: Any, key: str) -> Mapping[str, Any]:
    """A table of the file; an empty one where there is none, or it is something else."""
    found = data.get(key) if isinstance(data, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _agent(data: Any, place: Place) -> AgentFile:
    return AgentFile(_block(data), _part(data, "llm").get("provider"), _part(data, "tts").get("voice"), place)


def _block(data: Mapping[str, Any]) -> dict[str, Any]:
    """The file's tables as a scenario's ``agent`` block."""
    agent = data["agent"]
    block: dict[str, Any] = {"tools": [], **{key: agent[key] for key in _SAME if key in agent}}
    model = data.get("llm", {}).get("model")
    if model is not None:
        block["model"] = model
    if "filler" in data:
        block["filler"] = _filler(data["filler"])
    if "interruption" in data:
        given = data["interruption"]
        block["turn"] = {key.removesuffix("_ms"): f"{value}ms" for key, value in given.items() if key.endswith("_ms")}
        if "when" in given:
            block["turn"]["barge_in"] = given["when"]
    return block


def _filler(given: Mapping[str, Any]) -> Any:
    if not given.get("enabled", True):
        return "off"
    filler = {key: value for key, value in given.items() if key not in ("enabled", "delay_ms")}
    if "delay_ms" in given:
        filler["delay"] = f"{given['delay_ms']}ms"
    return filler


# -- checking -----------------------------------------------------------------------------------------------------


def check_agent_file(path: FilePath, name: str = "", tools: Iterable[ToolSpec] = ()) -> AgentFile:
    """Validate an agent file by itself, offline.

    Args:
        tools: what the program brings; the packaged tools are known besides.

    Raises:
        ScenarioError: a sentence for each thing wrong.
    """
    name = name or str(path)
    data, place = _parse(_text(path, name), name)
    own = tuple(tools)
    taken = [spec.name for spec in own]
    provided = (*own, *(spec for spec in _packaged().values() if spec.name not in taken))
    listed = _names(_part(data, "agent").get("tools"))
    faults = [
        *_form_faults(data),
        *use_faults(listed, _names(_part(data, "agent").get("confirm_tools")), provided),
        *(
            Fault(("filler", "tool_phrases", tool), unknown("tool", tool, listed))
            for tool in _part(_part(data, "filler"), "tool_phrases")
            if tool not in listed
        ),
    ]
    if faults:
        raise place.error(faults)
    return _agent(data, place)


def _names(value: Any) -> list[str]:
    """A list of names, also one that has other faults; its positions are kept."""
    return [str(each) for each in value] if isinstance(value, list) else []


def use_faults(
    tools: Sequence[str] | None, confirm_tools: Sequence[str], provided: Sequence[ToolSpec]
) -> Iterator[Fault]:
    """What is wrong with the tools that an agent lists.

    Args:
        tools: their names; ``None`` where it uses all.
        confirm_tools: those of them that are put behind the confirmation gate.
        provided: the declarations of all tools there are.
    """
    specs = {spec.name: spec for spec in provided}
    for key, names in (("tools", tools or ()), ("confirm_tools", confirm_tools)):
        for index, name in enumerate(names):
            path: Path = ("agent", key, index)
            if name == CONFIRM_PENDING_TOOL:
                yield Fault(path, f'"{name}" comes by itself with a tool that needs it; accepted is any other tool')
            elif name in names[:index]:
                yield Fault(path, f'"{name}" is listed twice; accepted is once')
            elif key == "tools" and name not in specs:
                yield Fault(path, _missing(name, specs))
            elif key == "confirm_tools":
                yield from _gate_faults(name, path, specs, list(specs) if tools is None else tools)


def _gate_faults(name: str, path: Path, specs: Mapping[str, ToolSpec], used: Sequence[str]) -> Iterator[Fault]:
    if name not in used:
        known = either(f'"{each}"' for each in used)
        yield Fault(path, f'"{name}" is not among the agent\'s tools; accepted is one of them: {known}')
    elif name in specs and not specs[name].side_effect:
        yield Fault(path, f'"{name}" is read_only and changes nothing; accepted is a side_effect')


def _missing(name: str, provided: Iterable[str]) -> str:
    """What would provide the tool."""
    if name in _demo():
        return f'nobody provides the tool "{name}"; it is a demo tool: accepted is --tools {_DEMO}'
    near = nearest(name, [*provided, *_packaged()])
    hint = "" if near is None else f'; the nearest known one is "{near}"'
    where = "a scenario's tools, --tools MODULE:ATTRIBUTE or a packaged one"
    return f'nobody provides the tool "{name}"{hint}; accepted is a tool of {where} ({", ".join(sorted(_packaged()))})'


def _packaged() -> dict[str, ToolSpec]:
    from bargein.models.apps.builtin import builtin_specs

    return builtin_specs()


def _demo() -> tuple[str, ...]:
    from bargein.models.apps.demo import tools

    return tuple(spec.name for spec in tools.specs)


# -- in a scenario --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Settled:
    """A scenario's data once its agent is in it.

    Attributes:
        data: with the agent's block in full, and with the packaged tools that it lists.
        place: of the scenario, with the agent file's own.
        agent: the file it names, if it names one.
    """

    data: Any
    place: Place
    agent: AgentFile | None = None

    def dressed(self, scenario: Scenario) -> Scenario:
        """The scenario with the agent's wire and voice, where it has no others."""
        agent = self.agent
        if agent is None:
            return scenario
        if agent.provider is not None and scenario.llm.wire is None:
            scenario = replace(scenario, llm=replace(scenario.llm, wire=agent.provider))
        if agent.voice is not None and "voice" not in self.data.get("tts", {}):
            scenario = replace(scenario, tts=replace(scenario.tts, voice=agent.voice))
        return scenario


def settle_agent(data: Any, place: Place, folder: FilePath | None, own: Sequence[ToolSpec]) -> Settled:
    """Put the agent file that a scenario names, and the packaged tools that its agent lists, into its data.

    Args:
        own: declarations of tools that the program brings.

    Raises:
        ScenarioError: the agent file cannot be used.
    """
    given = data.get("agent") if isinstance(data, Mapping) else None
    if not isinstance(given, Mapping):
        return Settled(data, place)
    agent = None
    name = given.get("file")
    if isinstance(name, str):
        agent = load_agent(_path(name, folder, place), name)
        block = {**agent.block, **{key: value for key, value in given.items() if key != "file"}}
        data = {**data, "agent": block}
        place = replace(place, parts={("agent", key): agent.place for key in agent.block if key not in given})
    return Settled(_with_packaged(data, own), place, agent)


def _path(name: str, folder: FilePath | None, place: Place) -> FilePath:
    path: Path = ("agent", "file")
    if folder is None:
        problem = f'"{name}" has no folder to be in; accepted is an agent file of a scenario that is a file'
        raise place.error([Fault(path, problem)])
    found = inside(folder, name)
    if found is None:
        raise place.error([Fault(path, f'"{name}" leaves the scenario\'s folder; accepted is an agent file inside it')])
    if not found.is_file():
        raise place.error(
            [Fault(path, f'there is no file "{name}"; accepted is an agent file in the scenario\'s folder')]
        )
    return found


def _with_packaged(data: Any, own: Sequence[ToolSpec]) -> Any:
    """A packaged tool that the agent lists needs no entry of its own."""
    listed, tools = data["agent"].get("tools"), data.get("tools", {})
    if not isinstance(listed, list) or not isinstance(tools, Mapping):
        return data
    given = [*tools, *(spec.name for spec in own)]
    more = {name: {"builtin": name} for name in listed if name not in given and name in _packaged()}
    return {**data, "tools": {**tools, **more}} if more else data
