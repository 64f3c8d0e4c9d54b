"""Asking the model ahead of the turn, on a guess at what the user has said (tool contract, item 7).

When the transcript is there and the silence is not yet long enough, a speculative session asks already. Nothing is
spoken and the context is not touched; read-only calls of the response run, side effects are held by the engine. If
the turn then is what was guessed, the run takes the guess up; if the user goes on, or the context changes first, it
was in vain. Left out: whether to guess at all, which is a setting of the session.
"""

from __future__ import annotations

from collections.abc import Sequence

from bargein.pipelines.agent.assembly import Response
from bargein.pipelines.agent.messages import Message, ToolCall, user
from bargein.pipelines.asked import Asked
from bargein.pipelines.conversation import Conversation
from bargein.pipelines.response_stream import ModelPort, ResponseStream
from bargein.pipelines.tools.engine import ToolEngine
from bargein.pipelines.tools.speculation import Speculation
from bargein.sim.kernel.cancel import CancelToken, Cause
from bargein.sim.kernel.timeline import Timeline

__all__ = ["Guess", "Guesses"]


class Guess:
    """A run begun before its turn.

    Attributes:
        token: the turn's, if it comes to that; the calls it started hold it.
        response: once it is complete.
        speculation: its calls, as far as they could be carried out.
    """

    __slots__ = ("epoch", "response", "speculation", "stream", "text", "token")

    def __init__(self, epoch: int, text: str, stream: ResponseStream) -> None:
        self.epoch = epoch
        self.text = text
        self.stream = stream
        self.token = CancelToken(f"turn {epoch}, by speculation")
        self.response: Response | None = None
        self.speculation: Speculation | None = None


class Guesses:
    """At most one guess at a time."""

    def __init__(self, timeline: Timeline, model: ModelPort, conversation: Conversation, engine: ToolEngine) -> None:
        self._timeline = timeline
        self._model = model
        self._conversation = conversation
        self._engine = engine
        self._guess: Guess | None = None

    def make(self, epoch: int, text: str) -> None:
        """Ask the model now for the turn ``epoch``, in which the user seems to have said ``text``."""
        self.drop("other words")
        self._timeline.add("speculation.started", epoch, text)
        messages: Sequence[Message] = [*self._conversation.context.messages, user(text)]
        guess = self._guess = Guess(epoch, text, self._model.ask(epoch, 0, messages, live=False))
        guess.stream.watch(lambda effect: self._landed(guess, effect))

    def _landed(self, guess: Guess, effect: Asked) -> None:
        """The response is complete before its turn is: carry out what may be carried out."""
        if guess is not self._guess or guess.stream.failure is not None:
            return
        guess.response = guess.stream.response(self._conversation.context)
        if guess.response.calls:
            guess.speculation = self._engine.speculate(
                guess.response.calls,
                guess.epoch,
                guess.token,
                withheld=guess.stream.withheld(guess.response.calls),
                denied=guess.stream.denied,
            )

    def held_calls(self) -> list[ToolCall]:
        """The side effects that wait for the turn that was guessed."""
        guess = self._guess
        return [] if guess is None or guess.speculation is None else guess.speculation.held_calls()

    def take(self, epoch: int, text: str) -> Guess | None:
        """The guess for this turn, if there is one and it was right; it goes on as the turn's own run."""
        guess, self._guess = self._guess, None
        if guess is None:
            return None
        if guess.epoch != epoch or guess.text != text:
            self._discard(guess, "other words")
            return None
        self._timeline.add("speculation.committed", epoch)
        return guess

    def drop(self, reason: str) -> None:
        """What was guessed is not so: nothing of it is kept but its round in the budget."""
        guess, self._guess = self._guess, None
        if guess is not None:
            self._discard(guess, reason)

    def _discard(self, guess: Guess, reason: str) -> None:
        self._timeline.add("speculation.discarded", guess.epoch, reason)
        if guess.speculation is not None:
            guess.speculation.discard()
        guess.stream.effect.cancel(Cause.DISCARDED)
        guess.token.cancel(Cause.DISCARDED)
