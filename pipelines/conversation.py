"""The conversation of a session: the context, kept to exactly what was heard.

The runner pushes what the model says when its response is complete; the caller hears it later, or never. This
keeper remembers which message is said by which response, places a filler once no call is open, and after a cut
edits the context to the words that left the playout (tool contract, "In the context, as played"). Every change is
on the timeline. Left out: the rules of validity (``agent.context``) and what was heard (``playout_book``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from json import loads

from bargein.pipelines.agent.assembly import Response
from bargein.pipelines.agent.context import Context
from bargein.pipelines.agent.messages import Message, Role, ToolCall, assistant, user
from bargein.pipelines.playout_book import PlayoutBook, Source
from bargein.pipelines.tools.results import interrupted_message
from bargein.sim.kernel.timeline import Timeline

__all__ = ["Conversation"]


class Conversation:
    """Pushes into the context and keeps it true to the ear.

    Attributes:
        context: the messages; nobody else pushes into it.
        epoch: stands on the records of its changes; the session sets it.
        user_message: number of the newest user message.
        fillers_in_context: fillers that were placed.

    Invariant: once a response is over, its message holds the words of it that were heard, and no other.
    """

    def __init__(self, timeline: Timeline, book: PlayoutBook) -> None:
        self._timeline = timeline
        self._book = book
        self._source = ""
        self._fillers: list[tuple[int, str]] = []  # spoken and not placed yet: (ordinal, text)
        self.epoch = 0
        self.user_message = -1
        self.fillers_in_context = 0
        self.context = Context(listener=self)

    # -- pushing ------------------------------------------------------------------------------------------

    def recall(self, messages: Sequence[Message]) -> None:
        """What was said in earlier calls, before anything of this one."""
        for message in messages:
            self._push_as("memory", message)

    def push_user(self, text: str) -> None:
        """The user's message, which opens a turn."""
        self.user_message = self.context.push(user(text))

    def push_response(self, ordinal: int | None, response: Response) -> None:
        """A complete response, calls included; fillers that were spoken before it are placed first."""
        self.place_fillers()
        message = response.assistant_message()
        if message is not None:
            self._push_said(ordinal if response.text else None, message, Source.ANSWER)

    def push_fallback(self, ordinal: int, text: str) -> None:
        """The fixed line that ends a turn gone wrong."""
        self.place_fillers()
        self._push_said(ordinal, assistant(text), Source.FALLBACK)

    def push_notes(self, notes: Sequence[Message]) -> None:
        """Late notes, each telling the result of one call; only while no call is open."""
        for note in notes:
            self.context.push(note)

    def filler_spoken(self, ordinal: int, text: str) -> None:
        """A filler is on its way to the ear; it is placed when no call is open."""
        self._fillers.append((ordinal, text))

    def place_fillers(self, over: bool = False) -> None:
        """Put spoken fillers into the context, each as a message of its own.

        One that is over already stands as it was heard, or not at all; one still playing is cut later if need be.

        Args:
            over: all of them are, also one that was still on its way to the speech stage.
        """
        fillers, self._fillers = self._fillers, []
        for ordinal, text in fillers:
            utterance = self._book.of_response(ordinal)
            if over or (utterance is not None and utterance.over):
                text = self._book.heard_of_response(ordinal)
            if text:
                self.fillers_in_context += 1
                self._push_said(ordinal, assistant(text), Source.FILLER)

    def _push_said(self, ordinal: int | None, message: Message, source: Source) -> None:
        mid = self._push_as(source, message)
        if ordinal is not None:
            self._book.tie(ordinal, mid)

    def _push_as(self, source: str, message: Message) -> int:
        self._source = source
        try:
            return self.context.push(message)
        finally:
            self._source = ""

    # -- keeping to what was heard ------------------------------------------------------------------------

    def close_pending(self, never_ran: Mapping[str, Message] = {}) -> tuple[ToolCall, ...]:
        """Answer the calls left open by an interruption (tool contract, item 8).

        Args:
            never_ran: by id the answers of calls of which that is known, which they keep.
        """
        return self.context.close_pending(lambda call: never_ran.get(call.id) or interrupted_message(call))

    def settle(self, streaming: int | None = None) -> None:
        """Edit the context to what was heard; nothing of what is in it is playing any more.

        Args:
            streaming: the ordinal of a response that was cut before it was complete. Its heard words become its
                message; its calls never existed.
        """
        for ordinal, mid in self._book.ties():
            self._keep_heard(ordinal, mid)
        self.place_fillers(over=True)
        if streaming is not None:
            heard = self._book.heard_of_response(streaming)
            if heard:
                self._push_as(Source.ANSWER, assistant(heard))
        for ordinal, _ in self._book.ties():
            self._book.untie(ordinal)

    def _keep_heard(self, ordinal: int, mid: int) -> None:
        self.context.truncate(mid, self._book.heard_of_response(ordinal))

    # -- on the timeline ----------------------------------------------------------------------------------

    def pushed(self, mid: int, message: Message) -> None:
        """A message was appended (`agent.context.ContextListener`)."""
        role = message.role
        if role is Role.TOOL:
            result = message.result
            assert result is not None
            kind = loads(result.content)["error"] if result.is_error else ""
            self._record(mid, role, "", [], result.call_id, kind, result.content, "")
        else:
            text = message.text
            calls = [call.id for call in message.calls]
            source = "note" if message.tells else self._source
            self._record(mid, role, text, calls, message.tells, "", text, source)

    def _record(
        self, mid: int, role: Role, text: str, calls: list[str], call: str, error: str, content: str, source: str
    ) -> None:
        sha = sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        self._timeline.add("context.pushed", self.epoch, mid, role, source, text, calls, call, error, sha)

    def truncated(self, mid: int, text: str) -> None:
        """A message was cut."""
        self._timeline.add("context.truncated", self.epoch, mid, text)

    def filled(self, mid: int, text: str) -> None:
        """The words of a user message became known."""
        self._timeline.add("context.filled", self.epoch, mid, text)

    def removed(self, mid: int) -> None:
        """A message of which nothing was heard is gone."""
        self._timeline.add("context.removed", self.epoch, mid)
