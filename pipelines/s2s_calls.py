"""The calls of a live session on its wire: each id that the provider gives is answered once, in the order it came.

The context knows calls by internal ids and the provider by its own; this ledger knows both, and which answers and notes
the provider has been told. Left out: what an answer says (``tools.engine``) and when one is due (``s2s``).
"""

from __future__ import annotations

from collections.abc import Sequence
from json import loads

from bargein.pipelines.agent.live import CallReady, CallResult
from bargein.pipelines.agent.messages import Message, Role
from bargein.pipelines.tools.results import ErrorKind, error
from bargein.pipelines.wordings import INTERRUPTED, LATE_NOTE

__all__ = ["WireCalls"]


class WireCalls:
    """What was asked and what was answered.

    Invariant: no call id is answered twice, and none that the provider has withdrawn.
    """

    def __init__(self) -> None:
        self._open: dict[str, str] = {}  # provider id to tool, unanswered, in the order of asking
        self._wire_ids: dict[str, str] = {}  # internal id to provider id
        self._answered: dict[str, CallResult] = {}
        self._told: dict[str, None] = {}  # calls whose late note was sent

    def asked(self, call: CallReady) -> None:
        """The provider asks for a call."""
        self._open[call.call] = call.name

    def withdrawn(self, calls: Sequence[str]) -> list[str]:
        """The provider does not want these answered any more.

        Returns:
            Notes on those that were answered already: the answer was on its way, and the provider passes it over, so
            that it would ask for the same effect again.
        """
        notes = []
        for call in calls:
            self._open.pop(call, None)
            answer = self._answered.pop(call, None)
            if answer is not None and not _is_interrupted(answer):
                notes.append(LATE_NOTE.format(tool=answer.name, call=call, content=answer.content))
        return notes

    @property
    def open(self) -> tuple[str, ...]:
        """Ids that wait for an answer, in the order of asking."""
        return tuple(self._open)

    def untold(self, messages: Sequence[Message]) -> tuple[list[CallResult], list[str]]:
        """Answers and notes in the context that the provider has not been told; from now on it has."""
        results, notes = [], []
        for message in messages:
            if message.role is Role.ASSISTANT:
                for call in message.calls:
                    self._wire_ids.setdefault(call.id, call.provider_id)
            elif message.result is not None:
                answer = message.result
                wire_id = self._wire_ids.get(answer.call_id, "")
                if wire_id in self._open:
                    result = CallResult(wire_id, self._open.pop(wire_id), answer.content, answer.is_error)
                    self._answered[wire_id] = result
                    results.append(result)
            elif message.tells and message.tells not in self._told:
                self._told[message.tells] = None
                wire_id = self._wire_ids.get(message.tells, "")
                # The provider knows the call by its own id only.
                notes.append(message.text.replace(f"(call {message.tells})", f"(call {wire_id})", 1))
        return results, notes

    def give_up(self, calls: Sequence[str]) -> list[CallResult]:
        """Answers to calls that will not run: they came of a response that is over."""
        answers = []
        for call in calls:
            tool = self._open.pop(call, None)
            if tool is not None:
                answer = error(ErrorKind.INTERRUPTED, tool, INTERRUPTED)
                answers.append(CallResult(call, tool, answer.content, answer.is_error))
        return answers


def _is_interrupted(answer: CallResult) -> bool:
    """Whether the answer tells nothing of how the call went."""
    return answer.is_error and bool(loads(answer.content)["error"] == ErrorKind.INTERRUPTED)
