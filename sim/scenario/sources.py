"""Where a model's answers come from besides a script of its own: a profile laid over one, or a cassette.

``checks`` asks for what is impossible, ``build`` for the rest. Left out: the profiles and the format of a
cassette; ``bargein.models`` knows them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from bargein.sim.scenario.folders import inside
from bargein.sim.scenario.places import Fault, Path
from bargein.sim.scenario.script import Llm
from bargein.sim.scenario.suggest import unknown

if TYPE_CHECKING:
    from bargein.models.cassettes import Cassette
    from bargein.models.llm_script import Choose
    from bargein.sim.scenario.model import Scenario

__all__ = ["cassette_of", "ends_turns", "profiled_choice", "source_faults", "with_profiled_rounds"]


def source_faults(scenario: Scenario, script: Llm, root: Path) -> Iterator[Fault]:
    """Everything about a profile or a cassette that cannot be, short of reading the cassette.

    Args:
        script: one of the scenario's; ``root``: where it stands.
    """
    if script.cassette is not None:
        problem = _cassette_problem(scenario, script.cassette)
        if problem is not None:
            yield Fault((*root, "cassette"), problem)
    if script.profile is not None:
        yield from _profile_faults(scenario, script, script.profile, (*root, "profile"))


def _cassette_problem(scenario: Scenario, name: str) -> str | None:
    if scenario.s2s is not None:
        return "a cassette holds text; accepted is a scenario without s2s"
    if scenario.models:
        return "a cassette holds what one model was asked; accepted is a scenario without models"
    found = _file(name, scenario.folder)
    return found if isinstance(found, str) else None


def _profile_faults(scenario: Scenario, script: Llm, name: str, path: Path) -> Iterator[Fault]:
    from bargein.models.profiles import PROFILES

    if name not in PROFILES:
        yield Fault(path, unknown("profile", name, PROFILES))
    elif PROFILES[name].rounds is not None and not script.rounds:
        yield Fault(path, f"{name} changes the order of rounds; accepted is {name} beside rounds")
    elif not (script.rounds or script.rules or script.behaviour):
        yield Fault(path, f"{name} has no script to change; accepted is rounds, rules or a behaviour")
    elif PROFILES[name].ends_turns and script.rounds and scenario.models:
        problem = f"{name} ends turns before their rounds are used up, some of which may be another model's"
        yield Fault(path, f"{problem}; accepted is {name} beside rules")


def with_profiled_rounds(scenario: Scenario) -> Scenario:
    """The scenario with rounds as a profile changes them, where that is what the profile does."""
    if all(script.profile is None for script in scenario.scripts.values()):
        return scenario
    models = {label: _with_profiled_rounds(script) for label, script in scenario.models.items()}
    return replace(scenario, llm=_with_profiled_rounds(scenario.llm), models=models)


def _with_profiled_rounds(script: Llm) -> Llm:
    if script.profile is None:
        return script
    from bargein.models.profiles import PROFILES

    change = PROFILES[script.profile].rounds
    return script if change is None else replace(script, profile=None, rounds=change(script.rounds))


def profiled_choice(script: Llm, choose: Choose, answers: int = 0) -> Choose:
    """``choose`` as a model of the script's profile answers, if it has one; for one session, ``answers`` into it."""
    if script.profile is None:
        return choose
    from bargein.models.profiles import PROFILES, profiled

    return profiled(PROFILES[script.profile], choose, answers)


def ends_turns(script: Llm) -> bool:
    """Whether its profile may end a turn before the rounds of it are used up."""
    if script.profile is None:
        return False
    from bargein.models.profiles import PROFILES

    return PROFILES[script.profile].ends_turns


def _file(name: str, folder: FilePath | None) -> FilePath | str:
    """The file that ``name`` means, or what is wrong with it."""
    if folder is None:
        return f'"{name}" has no folder to be in; accepted is a cassette in a scenario that is a file'
    path = inside(folder, name)
    if path is None:
        return f'"{name}" leaves the scenario\'s folder; accepted is a path inside it'
    return path if path.is_file() else f'there is no file "{name}"; accepted is a cassette in the scenario\'s folder'


def cassette_of(scenario: Scenario) -> Cassette | None:
    """The scenario's cassette, if it has one.

    Raises:
        ScenarioError: it cannot be read.
    """
    from bargein.models.cassettes import MAX_BYTES, CassetteError, read_cassette

    name = scenario.llm.cassette
    if name is None:
        return None
    found = _file(name, scenario.folder)
    problem = found if isinstance(found, str) else None
    if not isinstance(found, str):
        try:
            if found.stat().st_size > MAX_BYTES:
                problem = f"{name}: it has {found.stat().st_size} bytes; accepted is a cassette of up to {MAX_BYTES}"
            else:
                return read_cassette(found.read_bytes().decode("utf-8"))  # as it is: its content identifies it
        except CassetteError as error:
            problem = f"{name}, {error}"
        except UnicodeDecodeError:
            problem = f"{name}: found bytes that are no UTF-8; accepted is a cassette"
        except OSError as error:
            problem = f"{name}: it cannot be read ({error.strerror}); accepted is a readable file"
    raise scenario.place.error([Fault(("llm", "cassette"), problem or "")])
