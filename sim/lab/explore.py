"""Exploration: the call is run once, then again with the caller cutting in at every instant that matters.

``bargein explore`` and ``sim.explore`` call it. Runs are made in an order that depends on nothing but the
arguments, and are judged by the invariants; however many workers share them, the outcome is the same. Left out:
what a scenario expects, which is about the call as it was written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

from bargein.models.python_tools import Tools
from bargein.sim.kernel.clock import Limits
from bargein.sim.kernel.streams import Stream
from bargein.sim.lab.findings import Exploration, Finding, Outcome, group
from bargein.sim.lab.matching import HINT
from bargein.sim.lab.probes import LEVELS, Probe, Prober, instants
from bargein.sim.lab.reproductions import Case, save
from bargein.sim.lab.session import run_plan
from bargein.sim.lab.shrink import shrink
from bargein.sim.lab.variants import AS_WRITTEN, HUNG, INSTANT, variant
from bargein.sim.scenario.build import Plan
from bargein.sim.scenario.layering import MakeLayers
from bargein.sim.scenario.model import Scenario
from bargein.sim.scenario.places import Fault, ScenarioError
from bargein.sim.scenario.remembering import check_repeatable

__all__ = ["DEFAULT_BUDGET", "Options", "Progress", "explore"]

DEFAULT_BUDGET = 10_000
_CHUNK = 100
_LIMITS = Limits(events=200_000, same_instant=10_000)

Progress = Callable[[int, int], object]
"""Told of runs done and runs planned."""


@dataclass(frozen=True, slots=True)
class Options:
    """What an exploration tries.

    Attributes:
        level: ``decision`` places the barge-in exactly there; ``audio`` lets real speech begin there.
        depth: interjections in one call, at most.
        ties: orders of ties besides the written one, each with a seed from 1.
        instant_tools, hung_tools: also the scenario with tools that answer at once, or never.
        hang_up: also the caller hanging up there, instead of speaking.
        grid_us: also an instant this often.
        budget: runs at most; beyond it instants are sampled.
        seed: of that sample, and of the random streams; the scenario's own where none is given.
    """

    level: str = "decision"
    depth: int = 1
    ties: int = 0
    instant_tools: bool = False
    hung_tools: bool = False
    hang_up: bool = False
    grid_us: int | None = None
    budget: int = DEFAULT_BUDGET
    seed: int | None = None

    def check(self) -> None:
        """Refuse what cannot be tried.

        Raises:
            ScenarioError: a sentence for each option.
        """
        wrong = []
        if self.level not in LEVELS:
            wrong.append(f'level is "{self.level}"; accepted is {" or ".join(LEVELS)}')
        for name, least in (("depth", 1), ("ties", 0), ("budget", 1)):
            if getattr(self, name) < least:
                wrong.append(f"{name} is {getattr(self, name)}; accepted is {least} or more")
        if self.grid_us is not None and self.grid_us < 1:
            wrong.append(f"grid is {self.grid_us} us; accepted is 1 us or more")
        if wrong:
            raise ScenarioError(*wrong)

    @property
    def variants(self) -> list[str]:
        """The variants of the scenario to try, as it is written first."""
        return [AS_WRITTEN, *([INSTANT] if self.instant_tools else []), *([HUNG] if self.hung_tools else [])]


def explore(
    scenario: Scenario,
    options: Options | None = None,
    *,
    tools: Tools | None = None,
    layers: MakeLayers | None = None,
    workers: int = 1,
    out: Path | None = None,
    progress: Progress | None = None,
) -> Exploration:
    """Look for instants at which an interruption breaks an invariant.

    Args:
        scenario: what to explore; rounds in order are matched to the requests they fit.
        tools: tools that the program brings.
        layers: makes the layers of each session, anew for each.
        workers: processes to share the runs; 1 runs them here.
        out: where the smallest failing scenario of each finding is saved; ``None`` saves and shrinks nothing.
        progress: told of runs done and planned, now and then.

    Returns:
        What was found. Ctrl-C breaks it off and returns what the runs so far have shown.

    Raises:
        ScenarioError: the options or the scenario cannot be used, or its script has no answer to a request.
        OSError: a failing scenario cannot be saved.
    """
    options = options or Options()
    options.check()
    check_repeatable(scenario)
    plans = {name: Plan(variant(scenario, name), tools, layers) for name in options.variants}
    _check_course(plans[AS_WRITTEN], options.seed)
    search = _Search(plans, tools, layers, options, workers, progress)
    started = perf_counter()
    search.run()
    findings = group(search.outcomes)
    seconds = perf_counter() - started
    if out is not None and not search.stopped:
        findings = tuple(_reproduced(finding, scenario, tools, layers, options, out) for finding in findings)
    return Exploration(
        scenario.name, search.tried, search.known, len(search.outcomes), seconds, findings, search.stopped
    )


def _check_course(plan: Plan, seed: int | None) -> None:
    """Refuse a list of rounds that gives another call in its order than matched to the requests that it fits.

    Where the session breaks anyway, the list may not fit because of that, and what breaks is worth more.
    """
    prober = Prober(plan, seed)
    if prober.scenario is plan.scenario:
        return
    try:
        written = run_plan(plan, seed, limits=_LIMITS)
    except ScenarioError:
        return
    base = prober.base()
    if written.digest != base.digest and not (written.violations or base.violations):
        problem = f"its rounds give another call in their order than matched to the requests they fit; {HINT}"
        raise plan.scenario.place.error([Fault(("llm",), problem)])


def _reproduced(
    finding: Finding, scenario: Scenario, tools: Tools | None, layers: MakeLayers | None, options: Options, out: Path
) -> Finding:
    first = finding.first
    seeded = scenario if options.seed is None else replace(scenario, seed=options.seed)
    case = Case(variant(seeded, first.variant), first.probe, tools, layers)
    small = save(shrink(case, first.violation), finding, out)
    if not small.confirmed:
        small = save(case, finding, out)
    return replace(finding, reproduction=small)


class _Search:
    """The runs of one exploration, layer by layer: the call itself, one interjection, two of them, ...

    Attributes:
        outcomes: of all runs so far, in order.
        tried, known: different instants of the first interjection.
    """

    def __init__(
        self,
        plans: dict[str, Plan],
        tools: Tools | None,
        layers: MakeLayers | None,
        options: Options,
        workers: int,
        progress: Progress | None,
    ) -> None:
        self._program = tools, layers
        self._options = options
        self._workers = workers
        self._progress = progress
        self._plans = plans
        self._probers = {name: Prober(plan, options.seed) for name, plan in plans.items()}
        self._stream = Stream(options.seed or 0, "explore")
        self._ties: list[int | None] = [None, *range(1, options.ties + 1)]
        self.outcomes: list[Outcome] = []
        self.tried = self.known = 0
        self.stopped = False

    def run(self) -> None:
        """Make all runs that the budget allows, or those until Ctrl-C."""
        try:
            bases = self._layer([(name, Probe((), tie)) for name in self._probers for tie in self._ties])
            self._probe_further([each for each in bases if each.probe.tie_seed is None])
        except KeyboardInterrupt:
            self.stopped = True

    def _probe_further(self, parents: list[Outcome]) -> None:
        for depth in range(1, self._options.depth + 1):
            chosen = self._sample([(parent, at_us) for parent in parents for at_us in self._next(parent)])
            if depth == 1:
                self.tried = len({at_us: None for _, at_us in chosen})
            level = self._options.level
            probes = [
                (parent.variant, Probe((*parent.probe.at_us, at_us), tie, level, hang_up))
                for parent, at_us in chosen
                for hang_up in ((False, True) if self._options.hang_up else (False,))
                for tie in self._ties
            ]
            layer = self._layer(probes)
            parents = [each for each in layer if each.probe.tie_seed is None and not each.probe.hang_up]

    def _next(self, parent: Outcome) -> list[int]:
        """Where one may cut in, in the course that this run took."""
        after = parent.probe.at_us[-1] if parent.probe.at_us else -1
        found = [
            at_us
            for at_us in parent.instants
            if at_us > after and self._probers[parent.variant].fits(at_us, self._options.level)
        ]
        if not parent.probe.at_us:
            self.known = max(self.known, len(found))
        return found

    def _sample(self, places: list[tuple[Outcome, int]]) -> list[tuple[Outcome, int]]:
        """As many as the budget still has room for, in their order."""
        each = len(self._ties) * (2 if self._options.hang_up else 1)
        room = max(0, self._options.budget - len(self.outcomes)) // each
        if len(places) <= room:
            return places
        picked: dict[int, None] = {}
        for last in range(len(places) - room, len(places)):  # Floyd's way: no draw is made twice
            draw = self._stream.below(last + 1)
            picked[last if draw in picked else draw] = None
        return [places[at] for at in sorted(picked)]

    def _layer(self, probes: Sequence[tuple[str, Probe]]) -> list[Outcome]:
        """Run these, sharing them among the workers; outcomes come in the order of the probes."""
        deeper = self._options.depth > 1
        chunks: list[tuple[str, list[Probe]]] = []
        for name, probe in probes:
            if not chunks or chunks[-1][0] != name or len(chunks[-1][1]) == _CHUNK:
                chunks.append((name, []))
            chunks[-1][1].append(probe)
        planned = len(self.outcomes) + len(probes)
        first = len(self.outcomes)
        for found in self._run_chunks(chunks, deeper):
            self.outcomes += found
            if self._progress is not None:
                self._progress(len(self.outcomes), planned)
        return self.outcomes[first:]

    def _run_chunks(self, chunks: list[tuple[str, list[Probe]]], deeper: bool) -> Iterator[list[Outcome]]:
        grid_us = self._options.grid_us
        if self._workers == 1 or len(chunks) == 1:
            for name, probes in chunks:
                yield _run_probes(self._probers[name], name, probes, grid_us, deeper)
            return
        from joblib import Parallel, delayed

        tasks = (
            delayed(_run_elsewhere)(
                self._plans[name].scenario, self._program, self._options.seed, name, probes, grid_us, deeper
            )
            for name, probes in chunks
        )
        yield from Parallel(n_jobs=self._workers, return_as="generator", batch_size=1)(tasks)


def _run_elsewhere(
    scenario: Scenario,
    program: tuple[Tools | None, MakeLayers | None],
    seed: int | None,
    name: str,
    probes: list[Probe],
    grid_us: int | None,
    deeper: bool,
) -> list[Outcome]:
    """A worker's part: builds its own plan."""
    return _run_probes(Prober(Plan(scenario, *program), seed), name, probes, grid_us, deeper)


def _run_probes(prober: Prober, name: str, probes: list[Probe], grid_us: int | None, deeper: bool) -> list[Outcome]:
    outcomes = []
    for probe in probes:
        result = prober.run(probe, _LIMITS)
        wanted = not probe.at_us or (deeper and probe.tie_seed is None and not probe.hang_up)
        found = tuple(instants(result.records, grid_us)) if wanted else ()
        outcomes.append(Outcome(name, probe, tuple(result.unexpected_violations), found))
    return outcomes
