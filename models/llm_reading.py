"""What a scripted model can read in a request: the user's words, the state of its calls, the fate of its last reply.

Rules and behaviours decide on these and nothing else, so that a script never knows more than a real model would.
Left out: deciding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from json import loads
from typing import Any

from bargein.pipelines.agent.messages import Message, Role, ToolCall
from bargein.pipelines.agent.request import Request

__all__ = ["CallState", "Reading"]

_PENDING = ("interrupted", "timeout", "duplicate_call")
_FAILED = ("tool_failed", "result_too_large", "unknown_outcome")


@dataclass(frozen=True, slots=True)
class CallState:
    """One call as the request shows it.

    Attributes:
        states: all that is true of it: ``ok``, ``failed``, ``interrupted``, ``pending``, ``note``, ``refused``.
        error: the kind of its error answer, or empty.
        in_turn: whether it was asked for after the last user message.
    """

    call: ToolCall
    states: frozenset[str]
    error: str
    in_turn: bool

    @property
    def success(self) -> bool:
        """Whether its success can be read, in its own result or in a note."""
        return "ok" in self.states


class Reading:
    """A request, read.

    Args:
        said: the texts of the model's replies so far, whole, oldest first.
    """

    def __init__(self, request: Request, said: Sequence[str], epoch: int, round: int) -> None:
        self.request = request
        self.user = request.last_user_text
        self.epoch = epoch
        self.round = round
        self._said = said

    def calls_of(self, tool: str) -> list[CallState]:
        """The calls of ``tool``, oldest first."""
        messages = self.request.messages
        last_user = max((at for at, each in enumerate(messages) if each.role is Role.USER), default=-1)
        found = []
        for at, message in enumerate(messages):
            if message.role is Role.ASSISTANT:
                for call in message.calls:
                    if call.name == tool:
                        found.append(self._state_of(call, messages[at + 1 :], at > last_user))
        return found

    def _state_of(self, call: ToolCall, after: Sequence[Message], in_turn: bool) -> CallState:
        states: set[str] = set()
        error = ""
        for message in after:
            result = message.result if message.role is Role.TOOL else None
            if result is not None and result.call_id == call.id:
                error = _error_kind(result.content) if result.is_error else ""
                states |= _states_of(error)
            elif message.role is Role.SYSTEM and f"(call {call.id}): " in message.text:
                told = message.text.partition(f"(call {call.id}): ")[2]
                states.discard("pending")
                states |= {"note", "failed" if _error_kind(told) else "ok"}
        return CallState(call, frozenset(states), error, in_turn)

    @property
    def last_reply(self) -> str:
        """How much of the model's last spoken reply the context still holds: heard, cut, unheard, or none."""
        if not self._said:
            return "none"
        last = self._said[-1]
        texts = [each.text for each in self.request.messages if each.role is Role.ASSISTANT and each.text]
        if last in texts:
            return "heard"
        return "cut" if any(last.startswith(text) for text in texts) else "unheard"


def _states_of(error: str) -> set[str]:
    if not error:
        return {"ok"}
    states = {"failed"} if error in _FAILED else {"refused"}
    if error in _PENDING:
        states = {"pending"}
        if error == "interrupted":
            states.add("interrupted")
        elif error == "duplicate_call":
            states.add("refused")
    return states


def _error_kind(content: str) -> str:
    if not content.startswith('{"error":'):
        return ""
    try:
        body: Any = loads(content)
    except ValueError:
        return ""
    kind = body.get("error") if isinstance(body, dict) else None
    return kind if isinstance(kind, str) else ""
