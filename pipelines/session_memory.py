"""Memory of a call: what was said in earlier ones is loaded as it connects, and what this one added is kept at its end.

In respect of memory a whole call is one run (run contract, section 11): one load, one append. The session asks at those
two moments; a turn of the user's that comes while the load runs waits for it. A load that fails, gives no valid
conversation or takes too long leaves the call without a memory, and then nothing is appended either. Calls that are
remembered get ids of epoch 0, which has no calls of its own. Left out: where it persists.

Ties: what lands on the instant of its time limit counts, as a delivery goes before a timer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bargein.pipelines.agent.context import Context, ContextError
from bargein.pipelines.agent.effects_port import Effects
from bargein.pipelines.agent.memory import Form, Phase, Remembers, RunMemory
from bargein.pipelines.agent.messages import Message, Part, ToolCall, ToolResult, message_from_dict
from bargein.pipelines.conversation import Conversation
from bargein.sim.effects.reports import Report
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock, Order, Timer
from bargein.sim.kernel.timeline import Timeline

__all__ = ["MEMORY_TIMEOUT_US", "SCOPE", "SessionMemory", "with_ids_of_epoch_0"]

MEMORY_TIMEOUT_US = 5_000_000
"""How long a call waits for its memory, at either end."""

SCOPE = "session"
"""The scope of its effects, which belong to no turn."""

_FORM: Form[Message] = Form(lambda message: message.to_dict(), lambda data: message_from_dict(dict(data)))


class SessionMemory:
    """The memory of one call.

    Args:
        effects: the bus.
        conversation: what was loaded goes in before anything else, and what is in it at the end is appended.
        remembers: which conversation.

    Attributes:
        loading: whether the call still waits for what was said before.
    """

    def __init__(
        self, clock: Clock, effects: Effects, timeline: Timeline, conversation: Conversation, remembers: Remembers
    ) -> None:
        self._clock = clock
        self._timeline = timeline
        self._conversation = conversation
        self._run = RunMemory(effects, remembers, SCOPE, _FORM)
        self._timer: Timer | None = None
        self.loading = False

    def begin(self, go_on: Callable[[], object]) -> None:
        """The call connects: load, and then call ``go_on()`` (perhaps before this returns)."""
        self.loading = True

        def loaded(messages: Sequence[Message]) -> None:
            recalled = with_ids_of_epoch_0(messages)
            try:
                _check(recalled)
            except ContextError as error:
                self._run.phase = Phase.FAILED
                self._fail("load", str(error))
            else:
                self._conversation.recall(recalled)
                self._timeline.add("memory.loaded", 0, len(recalled))
            over()

        def failed(report: Report) -> None:
            self._fail("load", report.message)
            over()

        def over() -> None:
            self._disarm()
            self.loading = False
            go_on()

        self._arm()
        self._run.begin(loaded, failed)

    def settle(self, go_on: Callable[[], object]) -> None:
        """The call ends: append what it added, and then call ``go_on()`` (perhaps before this returns)."""
        if self.loading:
            self._run.abandon()
            self._run.cancel(Cause.HANG_UP)
            self._disarm()
        messages = self._conversation.context.messages
        added = len(messages) - self._run.remembered

        def landed() -> None:
            self._disarm()
            failure = self._run.append_failure
            if failure is None:
                self._timeline.add("memory.appended", self._conversation.epoch, added)
            else:
                self._fail("append", failure.message)
            go_on()

        self._arm()
        if not added or not self._run.settle(messages, landed):
            self._disarm()
            go_on()

    def _fail(self, operation: str, reason: str) -> None:
        self._timeline.add("memory.failed", self._conversation.epoch, operation, reason)

    def _arm(self) -> None:
        self._timer = self._clock.call_in(MEMORY_TIMEOUT_US, Order.TIMER, self._run.cancel, Cause.DEADLINE)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _check(messages: Sequence[Message]) -> None:
    """That a conversation may begin with these messages.

    Raises:
        ContextError: what would make it invalid.
    """
    fresh = Context()
    for message in messages:
        fresh.push(message)
    fresh.validate()


def with_ids_of_epoch_0(messages: Sequence[Message]) -> list[Message]:
    """The same messages, their calls numbered anew, so that no call of this session can have the id of one of them."""
    ids: dict[str, str] = {}

    def id_of(call: str, *, asked: bool) -> str:
        if asked or call not in ids:
            ids[call] = f"t0.{len(ids)}"
        return ids[call]

    def renamed(part: Part) -> Part:
        if type(part) is ToolCall:
            call = id_of(part.id, asked=True)
            return ToolCall(call, part.name, part.arguments, part.provider_id, part.provider_data)
        if type(part) is ToolResult:
            return ToolResult(id_of(part.call_id, asked=False), part.content, part.is_error)
        return part

    return [
        Message(
            message.role,
            tuple([renamed(part) for part in message.parts]),
            message.provider_data,
            id_of(message.tells, asked=False) if message.tells else "",
        )
        for message in messages
    ]
