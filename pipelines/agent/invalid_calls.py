"""Calls to tools that a round may not use: found, put before hooks, and resolved in one of five ways.

In a stream such a call is found as soon as its name has come; failing takes effect there and then, anything else
waits until the model has really finished. Where one round has several, failing goes before asking again, and that
before skipping; otherwise each is repaired or ignored by itself (run contract, section 8.2). Left out: calls whose
arguments do not fit, which are the tool's to refuse.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bargein.pipelines.agent.answers import Answer, Block
from bargein.pipelines.agent.batch import result_message
from bargein.pipelines.agent.endings import Failed, Failure
from bargein.pipelines.agent.history import ResultStatus
from bargein.pipelines.agent.hooks import At, Moment
from bargein.pipelines.agent.messages import Role
from bargein.pipelines.agent.parts import CallPart, Part, RunMessage, TextPart
from bargein.pipelines.agent.run_settings import InvalidCalls, Unhandled, effective
from bargein.pipelines.agent.run_state import InvalidCall, Phase, Resolution, ResolutionKind, Run, Turn
from bargein.pipelines.wordings import INVALID_PEER

if TYPE_CHECKING:
    from bargein.pipelines.agent.run import AgentRuns

__all__ = ["ask_hooks", "discover_early", "find_invalid", "judge_invalid_calls", "resolve_invalid_defaults"]


def discover_early(run: Run, turn: Turn, block: Block) -> None:
    """A call was named in a stream that still goes on."""
    if block.name is not None and not turn.may_run(block.name) and turn.fold is not None:
        call = CallPart(block.call_id, block.name, {}, block.provider_id)
        turn.invalid.append(InvalidCall(call, block, turn.fold.prefix(block), block.named_at))


def find_invalid(turn: Turn, answer: Answer) -> bool:
    """Enter the calls of a whole answer that the round may not make. Returns whether there are new ones."""
    known = {each.call.id for each in turn.invalid}
    fresh = [
        InvalidCall(part)
        for part in answer.parts
        if type(part) is CallPart and not turn.may_run(part.name) and part.id not in known
    ]
    turn.invalid.extend(fresh)
    return bool(fresh)


def ask_hooks(runs: AgentRuns, run: Run) -> None:
    """Put each call that is not resolved before the hooks, once."""
    turn = run.turn
    for invalid in () if turn is None else tuple(turn.invalid):
        if invalid.resolution is None and not invalid.asked and run.ending is None:
            invalid.asked = True
            runs.hooks.call(Moment(runs, At.INVALID_CALL, run, turn, None, None, invalid))


def resolve_invalid_defaults(runs: AgentRuns, run: Run) -> None:
    """What no hook resolved, the settings do."""
    turn = run.turn
    for invalid in () if turn is None else turn.invalid:
        if invalid.resolution is None and invalid.asked:
            unhandled = _policy(run).unhandled
            kind = ResolutionKind.FAIL if unhandled is Unhandled.FAIL else ResolutionKind.IGNORE
            invalid.resolution = Resolution(kind)


def _policy(run: Run) -> InvalidCalls:
    policy: InvalidCalls = effective(run.settings, run.agent, "invalid_calls", InvalidCalls())
    return policy


def judge_invalid_calls(runs: AgentRuns, run: Run) -> None:
    """Act on the resolutions: at once where the run fails by them, else when the answer is there."""
    turn = run.turn
    if turn is None or turn.read:
        return
    open_ = [each for each in turn.invalid if not each.done]
    resolved = [each for each in open_ if each.resolution is not None]
    for invalid in resolved:
        if _fails(run, turn, invalid, resolved):
            runs.end(run, Failed(Failure.UNKNOWN_TOOL_CALL, detail=invalid.call.name))
            return
    if turn.answer is None or len(resolved) < len(open_):
        return
    for kind in (ResolutionKind.RETRY, ResolutionKind.SKIP):
        chosen = [each for each in resolved if each.resolution is not None and each.resolution.kind is kind]
        if chosen:
            _answer_all(runs, run, turn, chosen)
            if kind is ResolutionKind.RETRY:
                run.invalid_retries += 1
            return
    for invalid in resolved:
        _mend(turn, invalid)
    if any(not each.done for each in resolved):
        runs.wake()


def _fails(run: Run, turn: Turn, invalid: InvalidCall, all_: list[InvalidCall]) -> bool:
    assert invalid.resolution is not None
    kind = invalid.resolution.kind
    if kind is ResolutionKind.RETRY:
        return run.invalid_retries >= _policy(run).retries
    retried = any(each.resolution is not None and each.resolution.kind is ResolutionKind.RETRY for each in all_)
    if kind is ResolutionKind.SKIP:
        return turn.tool_choice == "none" and not retried
    return kind is ResolutionKind.FAIL


def _answer_all(runs: AgentRuns, run: Run, turn: Turn, chosen: list[InvalidCall]) -> None:
    """Keep the answer as it was when the first call was found, answer every call in it, and ask again."""
    assert turn.answer is not None
    said = {each.call.id: each.resolution.text for each in chosen if each.resolution is not None}
    early = next((each for each in chosen if each.block is not None), None)
    parts = turn.answer.parts if early is None else early.prefix
    turn.read = True
    turn.assistant = runs.store(run, RunMessage(Role.ASSISTANT, parts, turn.answer.head))
    if turn.assistant is None:
        return
    calls = [part for part in parts if type(part) is CallPart]
    message, statuses = result_message(
        [(call, (TextPart(said.get(call.id, INVALID_PEER)),), ResultStatus.SKIPPED) for call in calls]
    )
    runs.store(run, message, statuses)
    for each in turn.invalid:
        each.done = True
    run.phase = Phase.ASSEMBLING
    runs.wake()


def _mend(turn: Turn, invalid: InvalidCall) -> None:
    """Repair or drop one call of the answer."""
    assert turn.answer is not None
    assert invalid.resolution is not None
    if invalid.resolution.kind is ResolutionKind.REPAIR:
        name = invalid.resolution.text
        parts: list[Part] = [
            replace(part, name=name) if type(part) is CallPart and part.id == invalid.call.id else part
            for part in turn.answer.parts
        ]
        invalid.call = replace(invalid.call, name=name)
        invalid.done = turn.access.key_of(name) is not None
        if not invalid.done:
            invalid.resolution, invalid.asked = None, False
    else:
        parts = [part for part in turn.answer.parts if type(part) is not CallPart or part.id != invalid.call.id]
        invalid.done = True
    turn.answer = replace(turn.answer, parts=tuple(parts))
