"""Agent runs on the virtual clock: the loop that takes each of them step by step from its prompt to its ending.

A step is taken whenever something happened: an effect landed, an item came, a hold was released, a run was spawned.
It goes through the same functions in the same order for every run, the oldest first (run contract, sections 1, 4, 5
and 9). Steps follow each other on one instant until nothing changes. Nothing here knows of voice.

Ties: a step is ``WORK``, so everything that is delivered on an instant is collected before it is acted on. Left out:
checkpoints, and delivering streams to observers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from json import dumps
from typing import Any

from bargein.pipelines.agent.assets import BinaryAssets
from bargein.pipelines.agent.endings import Ending, Failed, Failure, RunBusy
from bargein.pipelines.agent.history import History, ResultStatus
from bargein.pipelines.agent.hooks import At, Hooks, Moment
from bargein.pipelines.agent.media_sources import ContentError
from bargein.pipelines.agent.parts import Part, RunMessage, user_message
from bargein.pipelines.agent.run_settings import Agent, Settings
from bargein.pipelines.agent.run_state import Memory, PendingEffect, Purpose, Run, Turn
from bargein.pipelines.agent.run_steps import COLLECT, STAGES, dispatch_effect
from bargein.sim.effects.bus import EffectBus, EffectKind, Outcome
from bargein.sim.effects.layers import LayeredBus
from bargein.sim.effects.reports import Report, ReportKind
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock, Order
from bargein.sim.kernel.timeline import Timeline

__all__ = ["RUN_EVENTS", "AgentRun", "AgentRuns", "Prompt"]

Prompt = str | Part | RunMessage | Sequence[Part]

RUN_EVENTS: dict[str, tuple[str, ...]] = {
    "agent.run_started": ("scope", "name"),
    "agent.run_opened": ("scope",),
    "agent.provider_retry": ("scope", "attempt", "budget", "reason"),
    "agent.tool_turn_committed": ("scope", "turn"),
    "agent.run_ended": ("scope", "ending", "detail"),
    "agent.run_despawn_refused": ("scope", "reason"),
}
"""What runs write on their timeline; ``epoch`` is the run's number."""


class AgentRuns:
    """Every run on one bus.

    Args:
        clock: gives the instants.
        bus: what the runs ask.
        hooks: who is called when.
        assets: where media are kept; shared by all runs.

    Attributes:
        timeline: what happened, in order.
        live: the runs there are, by number, the oldest first.
        next_run: number of the next one.
        queued: numbers that were given to runs which are not there yet.
        host_state: how what the host keeps with a run is written and read, by name; nothing else of it is saved.
    """

    def __init__(
        self,
        clock: Clock,
        bus: EffectBus | LayeredBus,
        hooks: Hooks | None = None,
        assets: BinaryAssets | None = None,
    ) -> None:
        self.clock = clock
        self.bus = bus if isinstance(bus, LayeredBus) else LayeredBus(bus)
        self.hooks = hooks or Hooks()
        self.assets = assets or BinaryAssets()
        self.timeline = Timeline(clock, RUN_EVENTS)
        self.live: dict[int, Run] = {}
        self.next_run = 1
        self.host_state: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {}
        self.queued: dict[int, None] = {}
        self._commands: deque[Callable[[], object]] = deque()
        self._again: list[tuple[Run, PendingEffect]] = []
        self._submitted: deque[tuple[PendingEffect, Outcome]] = deque()
        self._awake = False
        self._watchers: list[Callable[[Run, int], object]] = []
        self._removing: list[Callable[[Run], object]] = []

    # -- spawning -----------------------------------------------------------------------------------------

    def spawn(
        self,
        agent: Agent,
        prompt: Prompt,
        history: Iterable[RunMessage] = (),
        *,
        streamed: bool = False,
        max_turns: int | None = None,
        settings: Settings | None = None,
    ) -> Run:
        """Start a run at once; its first request is made with the next step, on this instant."""
        return self._populate(self._number(), agent, prompt, history, streamed, max_turns, settings)

    def queue_spawn(
        self,
        agent: Agent,
        prompt: Prompt,
        history: Iterable[RunMessage] = (),
        *,
        streamed: bool = False,
        max_turns: int | None = None,
        settings: Settings | None = None,
    ) -> int:
        """Have a run start with the next step. Returns its number, which is in ``live`` from then on."""
        seq = self._number()
        rest = (seq, agent, prompt, tuple(history), streamed, max_turns, settings)

        def spawn() -> None:
            del self.queued[seq]
            self._populate(*rest)

        self.queued[seq] = None
        self._queue(spawn)
        return seq

    def create(self, agent: Agent, settings: Settings | None = None, *, streamed: bool = False) -> Run:
        """A run to be filled by hand: nothing reads it before `make_ready`."""
        return self._create(self._number(), agent, settings, streamed)

    def _number(self) -> int:
        self.next_run += 1
        return self.next_run - 1

    def make_ready(self, run: Run) -> None:
        """The run is filled; it opens with the next step."""
        run.ready = True
        self.wake()

    def _create(self, seq: int, agent: Agent, settings: Settings | None, streamed: bool) -> Run:
        run = Run(seq, agent, History(f"r{seq}", self.assets), replace(settings or Settings()), streamed)
        run.memory = None if agent.remembers is None else Memory(agent.remembers)
        self.live[seq] = run
        self.tell("agent.run_started", run, run.name)
        self.hooks.call(Moment(self, At.RUN_STARTED, run))
        return run

    def _populate(
        self,
        seq: int,
        agent: Agent,
        prompt: Prompt,
        history: Iterable[RunMessage],
        streamed: bool,
        max_turns: int | None,
        settings: Settings | None,
    ) -> Run:
        run = self._create(seq, agent, settings, streamed)
        if seq not in self.live:
            return run  # a hook has taken it out again
        run.prompt = user_message(prompt if isinstance(prompt, str | RunMessage) else _parts(prompt))
        if max_turns is not None:
            run.settings.max_turns = max_turns
        for message in history:
            run.prior.append(message)
        self.make_ready(run)
        return run

    # -- ending -------------------------------------------------------------------------------------------

    def cancel(self, run: Any, reason: str) -> None:
        """End a run as cancelled; a run that has ended keeps its ending, and what is no run is left alone."""
        if isinstance(run, Run):
            self.end(run, Failed(Failure.CANCELLED, Report(ReportKind.CANCELLED, reason)))

    def queue_cancel(self, seq: int, reason: str) -> None:
        """Cancel a run with the next step, before anything else of it."""
        self._queue(lambda: self.cancel(self.live.get(seq), reason))

    def despawn(self, run: Any) -> RunBusy | None:
        """Take out an ended run with all that belongs to it; its records stay.

        Returns:
            Why it was not taken out; ``None`` where it was.
        """
        if not isinstance(run, Run) or self.live.get(run.seq) is not run:
            return RunBusy.NOT_A_RUN
        if run.ending is None:
            return RunBusy.UNSETTLED
        if any(effect.outcome is None for effect in run.effects) or self.bus.nested(run.scope):
            return RunBusy.IN_FLIGHT
        del self.live[run.seq]
        return None

    def queue_despawn(self, seq: int) -> None:
        """Take a run out with the next step; a refusal is told on the timeline."""

        def take() -> None:
            refused = self.despawn(self.live.get(seq))
            if refused is not None:
                self.timeline.add("agent.run_despawn_refused", seq, f"r{seq}", str(refused))

        self._queue(take)

    def remove(self, run: Run) -> None:
        """Take a run out whatever it is doing: what it has in flight is cancelled, the rest never asked."""
        if self.live.pop(run.seq, None) is run:
            for watcher in tuple(self._removing):
                watcher(run)
        run.ending = run.ending or Failed(Failure.CANCELLED, Report(ReportKind.CANCELLED, "the run was removed"))
        run.phase, run.told = None, True
        asked = [effect.dispatch for effect in sorted(run.effects, key=PendingEffect.order_of_withdrawal)]
        for dispatch in (*asked, *self.bus.nested(run.scope)):  # what is nested may outlast what it was asked for
            if dispatch is not None:
                dispatch.cancel(Cause.DISCARDED)

    def end(self, run: Run, ending: Ending) -> None:
        """Give a run its ending; the first one stands.

        What it has not asked yet is not asked any more, nor is what waits for a place at its handler. A tool in flight
        is left to its handler; an answer that still streams has no reader now and is cancelled.
        """
        if run.ending is not None:
            return
        run.ending, run.phase, run.settling = ending, None, None
        if run.turn is not None:
            run.turn.read, run.turn.reading = True, False
        asked, run.effects = run.effects, []
        for effect in sorted(asked, key=PendingEffect.order_of_withdrawal):
            if effect.dispatch is not None or effect.outcome is not None:
                self.leave(run, effect)
        self.wake()

    def leave(self, run: Run, effect: PendingEffect) -> None:
        """Leave what an ended run has asked for to whoever serves it, if anybody does."""
        if not effect.queued:
            run.effects.append(effect)
        if effect.queued or (effect.in_flight and effect.purpose is Purpose.REQUEST and run.streamed):
            assert effect.dispatch is not None
            effect.dispatch.cancel(Cause.DISCARDED)

    # -- holds at committed turns -------------------------------------------------------------------------

    def hold_after_tool_turn(self, run: Run, owner: str, minimum_turn: int) -> None:
        """Have a run stand still once it has committed a tool turn from ``minimum_turn`` on, until ``owner`` releases
        it; the same owner's earlier hold is not moved later."""
        run.holds[owner] = min(minimum_turn, run.holds.get(owner, minimum_turn))

    def release_tool_turn_hold(self, run: Run, owner: str) -> None:
        """Take an owner's hold back; an owner without one changes nothing."""
        run.holds.pop(owner, None)
        self.wake()

    def watch_commits(self, watcher: Callable[[Run, int], object]) -> None:
        """Call ``watcher(run, turn)`` whenever a tool turn is committed, its results stored."""
        self._watchers.append(watcher)

    def watch_removals(self, watcher: Callable[[Run], object]) -> None:
        """Call ``watcher(run)`` whenever a run is taken out as it stands, before anything of it is cancelled."""
        self._removing.append(watcher)

    # -- for the steps and for hooks ----------------------------------------------------------------------

    def ask(
        self,
        run: Run,
        kind: EffectKind,
        key: str,
        payload: Any,
        on_landed: Callable[[PendingEffect], object] | None = None,
    ) -> PendingEffect | None:
        """Ask something of the world under a run, with the next step; nothing where nobody serves ``key``.

        Raises:
            ValueError: a custom payload that is no plain data.
        """
        if kind is EffectKind.CUSTOM:
            try:
                dumps(payload, allow_nan=False)
            except (TypeError, ValueError) as error:
                raise ValueError(f"payload of {key}: {error}; accepted is plain data") from None
        if not self.bus.serves(key):
            return None
        effect = PendingEffect(kind, key, payload, self.wake, on_landed=on_landed)
        run.effects.append(effect)
        self.wake()
        return effect

    def submit(self, effect: PendingEffect, outcome: Outcome) -> None:
        """Answer an effect that an `Open` handler has left to others; it is collected with the next step.

        Submissions are collected in their order. One that has not been collected is in no checkpoint.
        """
        self._submitted.append((effect, outcome))
        self.wake()

    def ask_again(self, effects: Iterable[tuple[Run, PendingEffect]]) -> None:
        """Have effects of saved runs that were taken and not answered go out with the next step, before all others, in
        the order of their ids and so of their records, whichever run they are of."""
        again = [(run, effect) for run, effect in effects if effect.reserved is not None and effect.outcome is None]
        self._again = sorted([*self._again, *again], key=lambda each: each[1].reserved or 0)
        self.wake()

    def store(self, run: Run, message: RunMessage, statuses: Sequence[ResultStatus | None] = ()) -> int | None:
        """Add a message to a run's history; one that cannot be stored fails the run, and only this one."""
        try:
            return run.history.append(message, statuses)
        except ContentError as error:
            self.end(run, Failed(Failure.CONTENT, detail=str(error)))
            return None

    def committed(self, run: Run, turn: Turn) -> None:
        """Tell that a tool turn is committed: hooks first, then, where none has taken the run out, whoever watches."""
        self.hooks.call(Moment(self, At.COMMITTED, run, turn))
        if self.live.get(run.seq) is not run:
            return
        self.tell("agent.tool_turn_committed", run, turn.number)
        for watcher in tuple(self._watchers):
            watcher(run, turn.number)

    def tell(self, kind: str, run: Run, *values: Any) -> None:
        """Write on the timeline."""
        self.timeline.add(kind, run.seq, run.scope, *values)

    def wake(self) -> None:
        """Something happened; take a step on this instant."""
        if not self._awake:
            self._awake = True
            self.clock.call_in(0, Order.WORK, self._step)

    def _queue(self, command: Callable[[], object]) -> None:
        self._commands.append(command)
        self.wake()

    # -- one step -----------------------------------------------------------------------------------------

    def _step(self, _: object) -> None:
        self._awake = False
        while self._commands:
            self._commands.popleft()()
        if self._again:  # before a hook of this step can end the run they are of: they are out in the world already
            self._dispatch_again()
        for stage, ended in STAGES:
            if stage is COLLECT:
                self._collect()
            for run in tuple(self.live.values()):
                if (ended or run.ending is None) and self.live.get(run.seq) is run:
                    stage(self, run)

    def _dispatch_again(self) -> None:
        again, self._again = self._again, []
        for run, effect in again:
            here = self.live.get(run.seq) is run and effect in run.effects
            if here and effect.outcome is None and not effect.held:
                dispatch_effect(self, run, effect)

    def _collect(self) -> None:
        """Land what was submitted before this step, in the order in which it was."""
        submitted, self._submitted = self._submitted, deque()
        for effect, outcome in submitted:
            served = None if effect.dispatch is None else effect.dispatch.effect
            if served is not None:
                served.land(outcome)


def _parts(prompt: Any) -> tuple[Part, ...]:
    return tuple(prompt) if isinstance(prompt, list | tuple) else (prompt,)


class AgentRun:
    """One agent on one bus: the short way to a run.

    Args:
        agent: whose runs these are.
        bus: what they ask.
        clock: gives the instants.
        hooks: who is called when.
    """

    def __init__(self, agent: Agent, bus: EffectBus | LayeredBus, clock: Clock, *, hooks: Hooks | None = None) -> None:
        self.agent = agent
        self.runs = AgentRuns(clock, bus, hooks)

    def start(
        self,
        prompt: Prompt,
        history: Iterable[RunMessage] = (),
        *,
        streamed: bool = False,
        max_turns: int | None = None,
        settings: Settings | None = None,
    ) -> Run:
        """Start a run on this instant; it goes on as the clock does."""
        return self.runs.spawn(self.agent, prompt, history, streamed=streamed, max_turns=max_turns, settings=settings)
