"""The house rules that a machine can read from the source: who may import whom, and what nobody may read.

Arrows point down only: cli, lab, report and scenario stand on pipelines and models, these on effects, effects on
the kernel. The rules are read from the imports themselves, the deferred ones inside functions included.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LONGEST = 450
HEAVY = ("scipy", "matplotlib", "soundfile", "joblib", "pandas", "jsonschema", "rich", "IPython")

KERNEL = ("bargein.sim.kernel",)
EFFECTS = ("bargein.sim.effects", *KERNEL)
PIPELINES = ("bargein.pipelines", *EFFECTS)
# A model may know what crosses the border between it and the pipeline, and nothing of how the pipeline works.
BORDER = (
    "bargein.pipelines.ports",
    "bargein.pipelines.agent",
    "bargein.pipelines.events",
    "bargein.pipelines.wordings",
    "bargein.pipelines.tools.invocation",
    "bargein.pipelines.tools.spec",
)
MODELS = ("bargein.models", "bargein.audio_fixtures", *BORDER, *EFFECTS)
SCENARIO = ("bargein.sim.scenario", "bargein.models", *PIPELINES)

MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "bargein.sim.kernel": KERNEL,
    "bargein.sim.effects": EFFECTS,
    "bargein.pipelines": PIPELINES,
    "bargein.models": MODELS,
    "bargein.sim.scenario": SCENARIO,
    # How a file is written whole stands alone; what the lab writes down goes through it too.
    "bargein.sim.lab": ("bargein.sim.lab", "bargein.sim.report.atomic", *SCENARIO),
    "bargein.sim.report": ("bargein.sim.report", "bargein.sim.lab", *SCENARIO),
    "bargein.sim": ("bargein",),
    "bargein.audio_fixtures": ("bargein.audio_fixtures", "bargein.models", *KERNEL),
}
"""The longest prefix of a module's name decides what it may import."""

BRIDGES = {
    # A user's functions become declared tools here, so this one model speaks of the registry and its limits.
    "bargein.models.python_tools": ("bargein.pipelines.tools.registry", "bargein.pipelines.tools.bounded"),
}
"""Modules that may import a little more than their floor, each with its reason."""

DEFERRED = {
    "bargein.sim.lab.result": ("bargein.sim.report",),  # result.plot() is what users type
}
"""What may be imported upwards inside a function, so that the floor above is loaded only by who asks for it."""

FORBIDDEN_MODULES = {"time", "random", "secrets", "uuid", "threading", "asyncio", "socket", "locale"}
FORBIDDEN_CALLS = {"id", "hash", "getenv", "urandom", "now", "utcnow", "today"}
FORBIDDEN_NAMES = {"environ", "default_rng", "RandomState"}
REPLACED = {
    # An event loop of our own stands in for what these bring, and puts the virtual clock in their place.
    "bargein.models.stacks.loop": ("asyncio", "threading", "time"),
    "bargein.models.stacks.livekit": ("asyncio",),
    "bargein.models.stacks.livekit_services": ("asyncio",),
    "bargein.models.async_tools": ("asyncio",),
}
"""Modules that may name what is forbidden elsewhere, each with its reason."""
INSIDE = ("bargein.sim.kernel", "bargein.sim.effects", "bargein.pipelines", "bargein.models")


@cache
def modules() -> dict[str, Path]:
    found: dict[str, Path] = {}
    for folder in ("sim", "models", "pipelines", "audio_fixtures"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            steps = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(("bargein", *(step for step in steps if step != "__init__")))] = path
    return found


@cache
def tree(name: str) -> ast.Module:
    return ast.parse(modules()[name].read_text(encoding="utf-8"))


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def statements(node: ast.AST, deferred: bool = False) -> Iterator[tuple[ast.stmt, bool]]:
    """Every import statement, and whether it runs when the module is imported (else it is deferred)."""
    for child in ast.iter_child_nodes(node):
        later = deferred or is_type_checking(child) or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, later
        yield from statements(child, later)


def imports(name: str) -> Iterator[tuple[str, bool]]:
    """(module, deferred) for each import; ``from package import module`` names the module."""
    for statement, deferred in statements(tree(name)):
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                yield alias.name, deferred
        elif isinstance(statement, ast.ImportFrom):
            assert statement.level == 0, f"{name} imports relatively"
            assert statement.module is not None
            for alias in statement.names:
                inner = f"{statement.module}.{alias.name}"
                yield (inner if inner in modules() else statement.module), deferred


def under(name: str, prefixes: tuple[str, ...]) -> bool:
    return any(name == prefix or name.startswith(f"{prefix}.") for prefix in prefixes)


def floor_of(name: str) -> str:
    return max((floor for floor in MAY_IMPORT if under(name, (floor,))), key=len)


def every_module() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("name", modules())


def test_the_walk_finds_the_house() -> None:
    assert {"bargein.sim.kernel.clock", "bargein.pipelines.tools.engine", "bargein.models.tts"} <= modules().keys()
    assert {floor_of(name) for name in modules()} == MAY_IMPORT.keys()
    assert ("bargein.sim.report.picture", True) in set(imports("bargein.sim.lab.result"))
    assert ("bargein.sim.kernel.races", False) not in set(imports("bargein.sim.kernel.channel"))
    assert ("bargein.sim.kernel.race", False) in set(imports("bargein.sim.kernel.channel"))


@every_module()
def test_arrows_point_down_only(name: str) -> None:
    allowed = (*MAY_IMPORT[floor_of(name)], *BRIDGES.get(name, ()))
    wrong = [
        found
        for found, deferred in imports(name)
        if under(found, ("bargein",)) and not under(found, (*allowed, *(DEFERRED.get(name, ()) if deferred else ())))
    ]
    assert wrong == []


def test_there_are_no_circles_between_modules() -> None:
    graph = {
        name: {found for found, deferred in imports(name) if not deferred and found in modules()} - {name}
        for name in modules()
    }
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


@every_module()
def test_every_module_says_what_it_is_and_what_it_offers(name: str) -> None:
    module = tree(name)
    if not module.body:
        assert modules()[name].name == "__init__.py"
        return
    assert ast.get_docstring(module), "a module opens with a docstring"
    if modules()[name].name == "__init__.py" and len(module.body) == 1:
        return  # a package of nothing but its docstring offers its modules
    offered = [
        node.value for node in module.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    assert len(offered) == 1, "a module names what it offers once, in __all__"
    names = ast.literal_eval(offered[0])
    assert names, "__all__ is not empty"
    assert len(set(names)) == len(names)
    defined: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            defined |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            defined.add(node.id)
    assert set(names) <= defined


@every_module()
def test_no_file_is_longer_than_a_reader_can_hold(name: str) -> None:
    assert len(modules()[name].read_text(encoding="utf-8").splitlines()) <= LONGEST


@every_module()
def test_nothing_is_imported_by_star(name: str) -> None:
    stars = [
        ast.unparse(statement)
        for statement, _ in statements(tree(name))
        if isinstance(statement, ast.ImportFrom) and any(alias.name == "*" for alias in statement.names)
    ]
    assert stars == []


@every_module()
def test_heavy_libraries_are_imported_only_inside_the_functions_that_use_them(name: str) -> None:
    if name == "bargein.audio_fixtures.make_fixtures":
        return  # a script of its own, run once after the lines have changed
    assert [found for found, deferred in imports(name) if not deferred and under(found, HEAVY)] == []


def test_the_command_line_starts_without_the_heavy_libraries() -> None:
    code = (
        f"import sys, bargein.sim.cli\nprint([name for name in {(*HEAVY, 'numpy', 'yaml')!r} if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ran.stdout == "[]\n"


def test_running_a_scenario_loads_no_picture_no_sound_and_no_statistics() -> None:
    code = (
        "import sys\nfrom bargein import sim\nassert sim.run('barge_in_during_booking').ok\n"
        "print([name for name in ('scipy', 'matplotlib', 'joblib', 'pandas', 'rich') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ran.stdout == "[]\n"


def readings(name: str) -> list[str]:
    """What a module reads that is not the same on every run: clocks, chance, the environment, addresses."""
    forbidden = FORBIDDEN_MODULES - set(REPLACED.get(name, ()))
    found = [each for each, _ in imports(name) if each.split(".")[0] in forbidden]
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in FORBIDDEN_CALLS:
                found.append(ast.unparse(node))
        elif isinstance(node, ast.Attribute) and (
            node.attr in FORBIDDEN_NAMES or ast.unparse(node).startswith(("np.random", "numpy.random"))
        ):
            found.append(ast.unparse(node))
    return found


@pytest.mark.parametrize("name", [name for name in modules() if under(name, INSIDE)])
def test_nothing_inside_reads_a_clock_chance_the_environment_or_an_address(name: str) -> None:
    assert readings(name) == []


def loops_over_sets(name: str) -> list[str]:
    """Loops and lists straight over a set that is written in place: their order is the hash's."""

    def is_set(node: ast.expr) -> bool:
        return isinstance(node, ast.Set | ast.SetComp) or (
            isinstance(node, ast.Call) and ast.unparse(node.func) in ("set", "frozenset")
        )

    found = []
    for node in ast.walk(tree(name)):
        looped = node.iter if isinstance(node, ast.For | ast.comprehension) else None
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("list", "tuple", "iter", "next") and node.args:
            looped = node.args[0]
        if looped is not None and is_set(looped):
            found.append(ast.unparse(looped))
    return found


@pytest.mark.parametrize("name", [name for name in modules() if under(name, INSIDE)])
def test_nothing_inside_loops_over_a_set(name: str) -> None:
    assert loops_over_sets(name) == []
