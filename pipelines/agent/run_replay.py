"""Agent runs replayed: a bus on which a log answers everything that its program needs served.

The application builds its runs on that bus as it did on the other, puts its layers around the keys again, and drives
them. Nothing of the handlers is made, so nothing of what they need is asked for (run contract, sections 10 and 13).
Left out: whether the runs are the recorded ones (``run_identity``), and what a replay refuses (``sim.effects.replay``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NoReturn

from bargein.pipelines.agent.run import AgentRuns
from bargein.pipelines.agent.run_identity import Verdict, check_replayable
from bargein.pipelines.agent.run_logs import follow, log_of_runs
from bargein.pipelines.agent.run_plain import RunPlain
from bargein.pipelines.agent.run_state import Run
from bargein.sim.effects.bus import Effect, EffectKind
from bargein.sim.effects.descriptors import Descriptor
from bargein.sim.effects.documents import DocumentError
from bargein.sim.effects.layers import LayeredBus
from bargein.sim.effects.log import EffectLog
from bargein.sim.effects.recording import Recorder
from bargein.sim.effects.replay import Replay
from bargein.sim.effects.streams import LiveStreams
from bargein.sim.effects.tails import LogCheckpoint
from bargein.sim.kernel.clock import Clock

__all__ = ["ReplayedRuns", "replay_runs"]


class ReplayedRuns:
    """A world without handlers, and its log.

    Attributes:
        log: what answers.
        clock, bus: for the runs; ``bus`` serves every key of the log, with the recorded descriptors but their layers.
            Those of ``own`` are left to the program.
        recorder: records the replay in turn.
        streams: tells observers, if anybody does.
    """

    def __init__(
        self, log: EffectLog, replay: Replay, clock: Clock, live: LiveStreams | None, own: Collection[str] = ()
    ) -> None:
        self.log = log
        self.clock = clock
        self.streams = live
        self.recorder: Recorder = replay.recorder
        self.bus = LayeredBus(self.recorder.open(clock))
        self._replay = replay
        for key, descriptor in _descriptors(log).items():
            collected = live if descriptor.family == EffectKind.COMPLETION else None
            if key not in own:
                self.bus.serve(key, _FromLog(collected), descriptor=descriptor)

    def follow(self, runs: AgentRuns) -> AgentRuns:
        """Have the replay know these runs; call it before anything is spawned. Returns them."""
        follow(runs, self.recorder)
        self._replay.may_come(lambda scope: may_come(runs, scope))
        return runs

    def check(self, runs: AgentRuns, run: Run) -> Verdict:
        """Whether a run is the recorded one; before it goes on."""
        return check_replayable(runs, run, self.log)

    def finish(self) -> None:
        """Assert, when the runs have come to rest, that everything recorded has come again.

        Raises:
            ReplayRefused: it has not.
        """
        self._replay.finish()

    def again(self, runs: AgentRuns) -> EffectLog:
        """What the replay recorded."""
        return log_of_runs(runs, self.recorder, hooks=self.log.header["hooks"], seed=self.log.header["seed"])


def replay_runs(
    log: EffectLog,
    *,
    visible: bool = False,
    instants: bool = False,
    clock: Clock | None = None,
    live: Callable[[Clock], LiveStreams] | None = None,
    after: LogCheckpoint[Any] | None = None,
    own: Collection[str] = (),
) -> ReplayedRuns:
    """A world in which a log answers.

    Args:
        visible: also reproduce in which order and in which batches things became visible.
        instants: in that mode, also when.
        clock: of the world; one with the recorded tie seed unless given.
        live: makes what tells observers of streamed answers; nobody is told unless given.
        after: the checkpoint that the runs are loaded from, where the log is the tail that goes on from there. An
            effect that was in flight there goes out again when they are loaded, and takes its whole recorded time
            again, as it would with the handler that served it: of how long it had been under way nobody knows there.
            It is therefore late, which ``instants`` does not accept.
        own: keys of handlers that ask for something themselves. A log has what they asked and what came of it, and
            nobody asks it again unless they do: the program serves these keys on ``bus`` as it did, with
            ``recorder.clock``, and what they answer is compared with the log (run contract, section 8.3).

    Raises:
        DocumentError: the log is no tail of that checkpoint, or is a session's.
        ReplayRefused: the log cannot establish what the mode promises.
    """
    if not log.of_runs:
        raise DocumentError(f"{log.name}: it is the log of a session; accepted is a log of agent runs")
    if after is not None:
        after.accept(log)
    replay = Replay(log, RunPlain(), visible=visible, own=own, instants=instants)
    on = Clock(tie_seed=log.header["tie_seed"]) if clock is None else clock
    return ReplayedRuns(log, replay, on, None if live is None else live(on), own)


def may_come(runs: AgentRuns, scope: str) -> bool:
    """Whether somebody outside can still make a run ask for more: whoever spawns it, fills it, or holds it back."""
    run = next((each for each in runs.live.values() if each.scope == scope), None)
    if run is None or not run.ready or run.ending is not None:
        return True
    if run.stands_still:
        return True
    asked = [effect.dispatch for effect in run.effects if effect.outcome is None]
    return any(dispatch is None or (dispatch.running and dispatch.effect is None) for dispatch in asked)


def _descriptors(log: EffectLog) -> dict[str, Descriptor]:
    """What is known of the handlers that stood behind a log, without their layers."""
    header = log.header
    keys = [*header["handlers"], *header["required"], *header["signature"], *(record.key for record in log.records)]
    for program in header["programs"].values():
        keys += program["required"] if type(program) is dict and "required" in program else ()
    return {key: _descriptor(key, header["handlers"].get(key)) for key in keys}


def _descriptor(key: str, known: Any) -> Descriptor:
    """A recorded descriptor read; what the key says where there is none."""
    match known:
        case {"family": str(family), "label": str(label), "capabilities": dict(capabilities)}:
            return Descriptor(key, family, label, capabilities)
    return Descriptor.of_key(key)


class _FromLog:
    """Stands where a handler would; the recorder puts a replayer in its place."""

    def __init__(self, streams: LiveStreams | None) -> None:
        self.streams = streams

    def streamed(self, effect: Effect) -> bool:
        """Whether an answer was asked for as a stream."""
        return bool(effect.payload.stream)

    def serve(self, effect: Effect) -> NoReturn:
        """Nobody calls it."""
        raise AssertionError(f"effect {effect.id} ({effect.key}) went past the log")
