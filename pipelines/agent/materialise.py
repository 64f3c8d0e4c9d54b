"""Reading what landed, in a fixed chain: memory, results, usage, invalid calls, then the answer itself.

Each link takes one run, and the loop calls it for every run in their order before the next link; what a link writes
the ones after it read (run contract, section 4). Left out: collecting what landed (``collect``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from bargein.pipelines.agent.advance import max_turns
from bargein.pipelines.agent.answers import Answer, StreamFold, is_answerless, is_empty
from bargein.pipelines.agent.batch import land_batch, result_message, start_batch
from bargein.pipelines.agent.endings import Failed, Failure
from bargein.pipelines.agent.history import ResultStatus
from bargein.pipelines.agent.invalid_calls import find_invalid, judge_invalid_calls, resolve_invalid_defaults
from bargein.pipelines.agent.messages import Role
from bargein.pipelines.agent.output_modes import (
    compact,
    missing_field_reprompt,
    missing_fields,
    satisfies,
    text_reprompt,
)
from bargein.pipelines.agent.parts import CallPart, Part, RunMessage, TextPart, user_message
from bargein.pipelines.agent.retries import provider_failed
from bargein.pipelines.agent.run_memory import land_memory
from bargein.pipelines.agent.run_settings import OUTPUT_RETRIES, OutputMode, OutputSpec, effective
from bargein.pipelines.agent.run_state import Phase, Run, Turn
from bargein.pipelines.wordings import NO_ANSWER
from bargein.sim.effects.bus import Status
from bargein.sim.effects.reports import Report, ReportKind, report_of

if TYPE_CHECKING:
    from bargein.pipelines.agent.run import AgentRuns

__all__ = ["CHAIN", "answer_of"]


def answer_of(turn: Turn) -> Answer | None:
    """The answer that landed, whole or streamed; ``None`` where it has not, or is an error."""
    request = turn.request
    if request is None or request.outcome is None or request.outcome.status is not Status.OK:
        return None
    value = request.outcome.value
    if isinstance(value, Answer):
        return value
    return (turn.fold or StreamFold("", 0)).answer(value)


def record_usage(runs: AgentRuns, run: Run) -> None:
    """Add what the answer cost, once; a counter that no wire sent stays unknown."""
    turn = run.turn
    if turn is None or turn.counted or turn.answer is None:
        return
    turn.counted = True
    for name, count in turn.answer.usage.items():
        known = run.usage.get(name)
        run.usage[name] = known if count is None else count + (known or 0)


def read_turn(runs: AgentRuns, run: Run) -> None:
    """Read a landed round once: an error, a call it may not make, or an answer for the links that follow."""
    turn = run.turn
    if turn is None or turn.read or turn.request is None or turn.request.outcome is None:
        return
    if any(not each.done for each in turn.invalid):
        return
    if turn.request.outcome.status is not Status.OK:
        provider_failed(runs, run, turn, report_of(turn.request.outcome))
        return
    assert turn.answer is not None
    if find_invalid(turn, turn.answer):
        runs.wake()
        return
    turn.read = True
    cut = NO_ANSWER.get(turn.answer.finish)
    if cut is not None and is_answerless(turn.answer):
        runs.end(run, Failed(Failure.PROVIDER, Report(ReportKind.RESPONSE, cut)))
        return
    turn.reading = True


def materialise_assistant(runs: AgentRuns, run: Run) -> None:
    """Store the answer, or what stands for it: nothing of an empty one, words for the output tool's call."""
    turn = _reading(run)
    if turn is None:
        return
    answer = _answer(turn)
    calls = [part for part in answer.parts if type(part) is CallPart]
    if turn.retry is not None:
        turn.reading = False
        _ask_again(runs, run, turn, answer, bool(calls))
        return
    if is_empty(answer.parts):
        return
    output, granted = _split(run, turn, calls)
    parts = tuple([part for part in answer.parts if part is output or not _is_output(turn, part)])
    if output is not None and (not _missing(run, output) or not _may_reprompt(run)):
        if granted:
            parts = tuple([part for part in parts if part is not output])
            turn.output_after = output
        else:
            said = TextPart(compact(output.arguments))
            parts = tuple([said if part is output else part for part in parts])
    if parts:
        turn.assistant = runs.store(run, RunMessage(Role.ASSISTANT, parts, answer.head))


def materialise_batch(runs: AgentRuns, run: Run) -> None:
    """Calls that may be run become the batch."""
    turn = _reading(run)
    if turn is None:
        return
    output, granted = _split(run, turn, [part for part in _answer(turn).parts if type(part) is CallPart])
    if not granted:
        return
    turn.reading = False
    if output is not None and turn.output_after is None:
        turn.output_after = output
        turn.reprompts[output.id] = missing_field_reprompt(turn.output_tool, _missing(run, output))
        run.output_retries += 1
    start_batch(runs, run, turn, granted)


def materialise_reprompt(runs: AgentRuns, run: Run) -> None:
    """Ask again, while the budget lasts, for an answer that lacks fields or came as text."""
    turn = _reading(run)
    if turn is None or turn.mode is not OutputMode.TOOL or not _may_reprompt(run):
        return
    answer = _answer(turn)
    output, _ = _split(run, turn, [part for part in answer.parts if type(part) is CallPart])
    statuses: list[ResultStatus] = []
    if output is not None:
        missing = _missing(run, output)
        if not missing:
            return
        said = TextPart(missing_field_reprompt(turn.output_tool, missing))
        message, statuses = result_message([(output, (said,), ResultStatus.SKIPPED)])
    elif is_empty(answer.parts) or satisfies(_schema(run), _text(answer.parts)):
        return
    else:
        message = user_message(text_reprompt(turn.output_tool))
    turn.reading = False
    run.output_retries += 1
    runs.store(run, message, statuses)
    _again(runs, run)


def materialise_answer(runs: AgentRuns, run: Run) -> None:
    """The run settles on what is left: the output tool's arguments, or the text."""
    turn = run.turn
    if turn is None or run.settling is not None:
        return
    if turn.settles:
        assert turn.output_after is not None
        said = compact(turn.output_after.arguments)
        turn.output_after = None
        runs.store(run, RunMessage(Role.ASSISTANT, (TextPart(said),)))
        run.settling = said
        return
    reading = _reading(run)
    if reading is None:
        return
    reading.reading = False
    answer = _answer(reading)
    output, _ = _split(run, reading, [part for part in answer.parts if type(part) is CallPart])
    run.settling = _text(answer.parts) if output is None else compact(output.arguments)


CHAIN: tuple[Callable[[AgentRuns, Run], None], ...] = (
    land_memory,
    resolve_invalid_defaults,
    land_batch,
    record_usage,
    judge_invalid_calls,
    read_turn,
    materialise_assistant,
    materialise_batch,
    materialise_reprompt,
    materialise_answer,
)
"""The links, in order."""


def _reading(run: Run) -> Turn | None:
    turn = run.turn
    return turn if turn is not None and turn.reading and run.ending is None else None


def _answer(turn: Turn) -> Answer:
    assert turn.answer is not None
    return turn.answer


def _is_output(turn: Turn, part: Part) -> bool:
    return turn.mode is OutputMode.TOOL and type(part) is CallPart and part.name == turn.output_tool


def _split(run: Run, turn: Turn, calls: list[CallPart]) -> tuple[CallPart | None, list[CallPart]]:
    """The output tool's call, and the calls to run.

    Of several output calls the first that lacks nothing counts, or else the first; the others are not kept.
    """
    outputs = [call for call in calls if _is_output(turn, call)]
    whole = next((call for call in outputs if not _missing(run, call)), None)
    chosen = whole if whole is not None else outputs[0] if outputs else None
    return chosen, [call for call in calls if not _is_output(turn, call)]


def _text(parts: tuple[Part, ...]) -> str:
    return "".join([part.text for part in parts if type(part) is TextPart])


def _schema(run: Run) -> object:
    return effective(run.settings, run.agent, "output", OutputSpec()).schema


def _missing(run: Run, output: CallPart) -> list[str]:
    return missing_fields(_schema(run), output.arguments)


def _may_reprompt(run: Run) -> bool:
    return run.output_retries < OUTPUT_RETRIES and run.cursor < max_turns(run)


def _ask_again(runs: AgentRuns, run: Run, turn: Turn, answer: Answer, has_calls: bool) -> None:
    """A hook wants another answer."""
    assert turn.retry is not None
    if has_calls:
        runs.end(run, Failed(Failure.UNSUPPORTED, detail="a round with tool calls cannot be asked again"))
        return
    if turn.retry.feedback is not None:
        if not is_empty(answer.parts):
            turn.assistant = runs.store(run, RunMessage(Role.ASSISTANT, answer.parts, answer.head))
        runs.store(run, user_message(turn.retry.feedback))
    _again(runs, run)


def _again(runs: AgentRuns, run: Run) -> None:
    if run.ending is None:
        run.phase = Phase.ASSEMBLING
        runs.wake()
