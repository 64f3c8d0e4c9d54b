"""The conversation as the model will read it, and the rules that keep it valid.

The runner pushes messages; the playout truncates assistant text to what was heard. The rules (tool contract,
"Internal representation"): every call is answered exactly once, after its assistant message and before any
other message; no assistant message is empty; call ids are never reused. A push that would break a rule is
refused and changes nothing. Left out: how a request is cut from it (``request``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from bargein.pipelines.agent.messages import Message, Role, Text, ToolCall, ToolResult, user

__all__ = ["CharsPerToken", "Context", "ContextError", "ContextListener", "TokenEstimator"]


class ContextError(ValueError):
    """A message that would make the conversation invalid; it was not pushed."""


class ContextListener(Protocol):
    """Told of each change, in order; the session's timeline is one."""

    def pushed(self, mid: int, message: Message) -> None:
        """A message was appended and carries the number ``mid`` from now on."""

    def truncated(self, mid: int, text: str) -> None:
        """An assistant message now says ``text``, a prefix of what it said."""

    def removed(self, mid: int) -> None:
        """An assistant message of which nothing was heard is gone."""

    def filled(self, mid: int, text: str) -> None:
        """A user message, whose words were not known yet, says ``text``."""


class TokenEstimator(Protocol):
    """Guesses what a message costs."""

    def tokens(self, message: Message) -> int:
        """Tokens of one message, zero or more."""
        ...


class CharsPerToken:
    """The default guess: UTF-8 bytes of text, call names, arguments and results over 4, plus 4 a message."""

    def tokens(self, message: Message) -> int:
        """Tokens of one message, rounded down per message."""
        size = 0
        for part in message.parts:
            if type(part) is Text:
                size += _bytes(part.text)
            elif type(part) is ToolResult:
                size += _bytes(part.content)
            elif type(part) is ToolCall:
                size += _bytes(part.name) + _bytes(str(part.arguments))
        return size // 4 + 4


class Context:
    """An ordered, always valid conversation.

    Invariant: after any push, every call but those of the last assistant message is answered exactly once,
    directly after the message that asked.
    """

    __slots__ = ("_call_counts", "_estimator", "_listener", "_mids", "_next_mid", "_open", "_seen", "messages")

    def __init__(self, listener: ContextListener | None = None, estimator: TokenEstimator | None = None) -> None:
        self.messages: list[Message] = []
        self._mids: list[int] = []
        self._next_mid = 0
        self._open: dict[str, ToolCall] = {}
        self._seen: set[str] = set()
        self._call_counts: dict[int, int] = {}
        self._listener = listener
        self._estimator = estimator or CharsPerToken()

    def __len__(self) -> int:
        return len(self.messages)

    def __iter__(self) -> Iterator[Message]:
        return iter(self.messages)

    # -- pushing ------------------------------------------------------------------------------------------

    def push(self, message: Message) -> int:
        """Append a message.

        Returns:
            Its number, stable for the life of the context.

        Raises:
            ContextError: the conversation would be invalid; the message names the call or the role at fault.
        """
        if message.role is Role.TOOL:
            self._check_answer(message)
        else:
            if self._open:
                raise ContextError(
                    f"call {next(iter(self._open))} has no answer yet; the {message.role} message has to wait"
                )
            if message.role is Role.ASSISTANT:
                self._check_assistant(message)
        mid = self._next_mid
        self._next_mid += 1
        self.messages.append(message)
        self._mids.append(mid)
        if self._listener is not None:
            self._listener.pushed(mid, message)
        return mid

    def _check_answer(self, message: Message) -> None:
        result = message.result
        if result is None:
            raise ContextError("a tool message needs the result of a call")
        if result.call_id not in self._open:
            known = "was answered before" if result.call_id in self._seen else "was never asked"
            raise ContextError(f"call {result.call_id} {known}; a tool message answers an open call")
        del self._open[result.call_id]

    def _check_assistant(self, message: Message) -> None:
        if not message.text and not message.calls:
            raise ContextError("an assistant message without text and without calls is left out")
        calls = message.calls
        fresh: dict[str, ToolCall] = {}
        for call in calls:
            if call.id in self._seen or call.id in fresh:
                raise ContextError(f"call id {call.id} is taken; ids are never reused in a session")
            fresh[call.id] = call
        for call in calls:
            self._seen.add(call.id)
            epoch = _epoch_of(call.id)
            if epoch is not None:
                self._call_counts[epoch] = self._call_counts.get(epoch, 0) + 1
        self._open.update(fresh)

    # -- calls --------------------------------------------------------------------------------------------

    @property
    def open_calls(self) -> tuple[ToolCall, ...]:
        """Calls without an answer, in issue order."""
        return tuple(self._open.values())

    def next_call_ids(self, epoch: int, count: int) -> list[str]:
        """Mint ``count`` ids for the calls of one response: ``t<epoch>.<seq>``.

        ``seq`` counts over every call of the turn, so push the response before minting for the next one of the
        same turn: otherwise both get the same ids and the second push is refused.
        """
        first = self._call_counts.get(epoch, 0)
        return [f"t{epoch}.{first + offset}" for offset in range(count)]

    def close_pending(self, answer: Callable[[ToolCall], Message]) -> tuple[ToolCall, ...]:
        """Answer every open call with ``answer(call)``; calls answered before are left alone.

        Returns:
            The calls that were closed, in issue order (tool contract, item 8).
        """
        pending = self.open_calls
        for call in pending:
            self.push(answer(call))
        return pending

    # -- truncation ---------------------------------------------------------------------------------------

    def truncate(self, mid: int, heard: str) -> None:
        """Cut an assistant message to the text that was heard; with nothing heard and no calls it is removed.

        Calls and their answers stay: the model did ask for them.
        """
        at = self._mids.index(mid)
        message = self.messages[at]
        if message.text == heard:
            return
        cut = message.with_text(heard)
        if cut.parts:
            self.messages[at] = cut
            if self._listener is not None:
                self._listener.truncated(mid, heard)
        else:
            del self.messages[at]
            del self._mids[at]
            if self._listener is not None:
                self._listener.removed(mid)

    def fill(self, mid: int, text: str) -> None:
        """Give a user message its words, where they became known after it was answered (speech to speech)."""
        at = self._mids.index(mid)
        self.messages[at] = user(text)
        if self._listener is not None:
            self._listener.filled(mid, text)

    # -- checking -----------------------------------------------------------------------------------------

    def tokens(self) -> int:
        """The estimate for the whole conversation."""
        return sum(self._estimator.tokens(message) for message in self.messages)

    def validate(self) -> None:
        """Check the whole conversation from the start, as a reader that trusts nothing would.

        Raises:
            ContextError: the first rule broken, with the call or message at fault. Calls that are still open at
                the end count as unanswered.
        """
        fresh = Context()
        for message in self.messages:
            fresh.push(message)
        if fresh._open:
            raise ContextError(f"call {next(iter(fresh._open))} has no answer")


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _epoch_of(call_id: str) -> int | None:
    head, dot, _ = call_id.partition(".")
    return int(head[1:]) if dot and head[:1] == "t" and head[1:].isdigit() else None
