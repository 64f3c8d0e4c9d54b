"""The confirmation gate: requests that wait for the user's word, and the order of events that lets one run.

The engine asks and takes; the session reports user turns, speech and barge-ins (tool contract, "Confirmation gate").
A request runs only after a user turn that began after it was made. Left out: what counts as a yes, which is the
model's judgment, and running the call, which is a side effect like any other.

Ties: whatever is reported first on an instant came first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bargein.pipelines.tools.orphans import call_digest
from bargein.pipelines.tools.outcomes import ToolOutcome
from bargein.pipelines.tools.planning import Refusal
from bargein.pipelines.tools.registry import RegisteredTool
from bargein.pipelines.tools.results import ErrorKind, error
from bargein.pipelines.wordings import (
    CONFIRM_EXPIRED,
    CONFIRM_NOT_REPLIED,
    CONFIRM_PENDING_TOOL,
    CONFIRM_STALE,
    CONFIRM_UNKNOWN,
)
from bargein.sim.kernel.clock import Clock
from bargein.sim.kernel.timeline import Timeline

__all__ = ["MAX_REQUESTS", "Confirmations", "Request"]

MAX_REQUESTS = 8


@dataclass(frozen=True, slots=True)
class Request:
    """A gated call that waits.

    Attributes:
        call_id: its id, by which it is confirmed.
        arguments: as the model asked; a confirmation cannot change them.
        made_at_us: when it was made.
        mark: its place among the session's requests, user turns and speech starts.
    """

    call_id: str
    tool: RegisteredTool
    arguments: dict[str, Any]
    epoch: int
    made_at_us: int
    mark: int
    digest: bytes


class Confirmations:
    """The requests of one session.

    Args:
        ttl_us: how long a request lives, its last instant included.

    Invariant: at most `MAX_REQUESTS` wait, and no two for the same tool with the same arguments.
    """

    def __init__(self, clock: Clock, timeline: Timeline, ttl_us: int) -> None:
        self._clock = clock
        self._timeline = timeline
        self.ttl_us = ttl_us
        self._requests: dict[str, Request] = {}
        self._marks = 0
        self._speech_mark: int | None = None
        self._reply_mark = -1

    # -- reported by the session --------------------------------------------------------------------------

    def note_user_speech_started(self) -> None:
        """The user began to speak; the turn that ends next began here.

        Speech-to-speech sessions report it, because there a turn's end may arrive after the model has answered it.
        """
        self._speech_mark = self._next_mark()

    def note_user_turn(self) -> None:
        """A user's message entered the context. An edit of the conversation by an agent is not a user turn."""
        mark = self._next_mark()
        self._reply_mark = mark if self._speech_mark is None else self._speech_mark
        self._speech_mark = None

    def clear(self, reason: str = "barge_in") -> None:
        """Drop every request: the user may not have heard what they would confirm."""
        if self._requests:
            self._cleared(list(self._requests), reason)

    @property
    def pending(self) -> tuple[Request, ...]:
        """The requests that can still be confirmed, oldest first."""
        return tuple([request for request in self._requests.values() if not self._is_expired(request)])

    # -- used by the engine -------------------------------------------------------------------------------

    def request(self, call_id: str, tool: RegisteredTool, arguments: dict[str, Any], epoch: int) -> None:
        """Have a gated call wait; it takes the place of an earlier request for the same action."""
        digest = call_digest(tool.spec.name, arguments)
        same = [waiting.call_id for waiting in self._requests.values() if self._is_same(waiting, call_id, digest)]
        if same:
            self._cleared(same, "replaced")
        elif len(self._requests) >= MAX_REQUESTS:
            self._cleared([next(iter(self._requests))], "crowded_out")
        now = self._clock.now
        self._requests[call_id] = Request(call_id, tool, arguments, epoch, now, self._next_mark(), digest)
        self._timeline.add("confirm.requested", epoch, call_id, tool.spec.name)

    def find(self, call_id: str, epoch: int) -> Request | Refusal:
        """The request that a confirmation made in turn ``epoch`` may take, or why it may not.

        An expired request is removed; any other refusal leaves it waiting.
        """
        request = self._requests.get(call_id)
        if request is None:
            return _refused(CONFIRM_UNKNOWN)
        if self._is_expired(request):
            self._cleared([call_id], "expired")
            return _refused(CONFIRM_EXPIRED)
        if self._is_stale(request, epoch):
            return ToolOutcome.STALE_TURN, error(ErrorKind.STALE_TURN, CONFIRM_PENDING_TOOL, CONFIRM_STALE)
        if not self._is_replied(request):
            return _refused(CONFIRM_NOT_REPLIED)
        return request

    def take(self, request: Request, call_id: str, epoch: int) -> None:
        """The confirming call ``call_id`` uses the request up."""
        del self._requests[request.call_id]
        self._timeline.add("confirm.taken", epoch, call_id, request.call_id)

    # -- the rules ----------------------------------------------------------------------------------------

    def _is_replied(self, request: Request) -> bool:
        """Whether a user turn has ended that began after the request."""
        return self._reply_mark > request.mark

    def _is_expired(self, request: Request) -> bool:
        return self._clock.now - request.made_at_us > self.ttl_us

    def _is_stale(self, request: Request, epoch: int) -> bool:
        return epoch < request.epoch

    def _is_same(self, waiting: Request, call_id: str, digest: bytes) -> bool:
        return waiting.digest == digest or waiting.call_id == call_id

    # -- bookkeeping --------------------------------------------------------------------------------------

    def _next_mark(self) -> int:
        self._marks += 1
        return self._marks

    def _cleared(self, call_ids: list[str], reason: str) -> None:
        epoch = max(self._requests[call_id].epoch for call_id in call_ids)
        for call_id in call_ids:
            del self._requests[call_id]
        self._timeline.add("confirm.cleared", epoch, call_ids, reason)


def _refused(detail: str) -> Refusal:
    return ToolOutcome.CONFIRMATION_REFUSED, error(ErrorKind.CONFIRMATION_REFUSED, CONFIRM_PENDING_TOOL, detail)
