"""The memory of a run: its conversation is loaded before its first round and what it added is appended as it settles.

The run loop calls these functions at their places; each operation is an effect of the run (run contract, section 11).
Left out: what the operations are (``memory``), and where a conversation persists.

Ties: a run that is stopped on the instant on which its load lands, before the step that reads it, has loaded nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bargein.pipelines.agent.endings import Failed, Failure
from bargein.pipelines.agent.media_sources import ContentError
from bargein.pipelines.agent.memory import Append, Clear, Form, Load, MemoryOp, read_loaded
from bargein.pipelines.agent.memory import Phase as MemoryPhase
from bargein.pipelines.agent.parts import RunMessage, message_from_dict
from bargein.pipelines.agent.run_state import Memory, PendingEffect, Phase, Purpose, Run
from bargein.sim.effects.bus import EffectKind, Status
from bargein.sim.effects.reports import Report, report_of

if TYPE_CHECKING:
    from bargein.pipelines.agent.run import AgentRuns

__all__ = ["append_memory", "begin_memory", "clear_memory", "land_append", "land_memory"]

_FORM: Form[RunMessage] = Form(lambda message: message.to_dict(), lambda data: message_from_dict(dict(data)))


def begin_memory(runs: AgentRuns, run: Run, *, brought_history: bool) -> Phase:
    """The phase in which a run opens: it loads first, unless it remembers nothing or brought a history."""
    memory = run.memory
    if memory is None:
        return Phase.ASSEMBLING
    if brought_history:
        memory.phase = MemoryPhase.BYPASSED
        return Phase.ASSEMBLING
    memory.phase = MemoryPhase.LOADING
    _ask(runs, run, memory, Load(memory.remembers.conversation), Purpose.LOAD)
    return Phase.LOADING_MEMORY


def land_memory(runs: AgentRuns, run: Run) -> None:
    """What was loaded goes before the prompt, and the run may begin; a load that failed fails it."""
    memory = run.memory
    load = next((each for each in run.effects if each.purpose is Purpose.LOAD), None)
    if memory is None or memory.phase is not MemoryPhase.LOADING or load is None or load.outcome is None:
        return
    loaded = read_loaded(load.outcome, _FORM)
    if isinstance(loaded, Report):
        memory.phase = MemoryPhase.FAILED
        runs.end(run, Failed(Failure.MEMORY, loaded))
        return
    try:
        run.history.remember(loaded)
    except ContentError as error:
        runs.end(run, Failed(Failure.CONTENT, detail=str(error)))
        return
    memory.phase = MemoryPhase.READY
    run.phase = Phase.ASSEMBLING
    runs.wake()


def append_memory(runs: AgentRuns, run: Run) -> None:
    """The run has settled: what it added is appended, once; whether that succeeds changes nothing about its answer."""
    memory = run.memory
    if memory is None or memory.phase is not MemoryPhase.READY:
        return
    memory.phase = MemoryPhase.APPENDED
    own = tuple([_FORM.write(message) for message in run.history.own()])
    _ask(runs, run, memory, Append(memory.remembers.conversation, own), Purpose.APPEND)


def land_append(effect: PendingEffect, run: Run) -> None:
    """Keep why an append failed, if it did."""
    if effect.purpose is Purpose.APPEND and run.memory is not None and effect.outcome is not None:
        failed = effect.outcome.status is not Status.OK
        run.memory.append_failure = report_of(effect.outcome) if failed else None


def clear_memory(runs: AgentRuns, run: Run) -> None:
    """Forget the conversation, on behalf of a hook; what this run has loaded it keeps.

    Raises:
        ValueError: the run remembers nothing.
    """
    if run.memory is None:
        raise ValueError(f"{run.name} remembers nothing; accepted is a run of an agent with a memory")
    _ask(runs, run, run.memory, Clear(run.memory.remembers.conversation), Purpose.HOOK)


def _ask(runs: AgentRuns, run: Run, memory: Memory, operation: MemoryOp, purpose: Purpose) -> None:
    effect = PendingEffect(EffectKind.MEMORY, memory.remembers.key, operation, runs.wake, purpose=purpose)
    run.effects.append(effect)
    runs.wake()
