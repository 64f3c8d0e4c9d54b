"""A speech-to-speech session: the session as it is, with one provider where recogniser, model and voice would stand.

What differs is who decides on the user's turns (the provider, whose word of it may come late) and what the provider has
to be told when the agent is cut off. The rest, from turns and epochs to the end of the call, is `VoiceSession`'s.
Left out: the provider's side of the wire, which is a model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bargein.pipelines.agent.live import Configure
from bargein.pipelines.agent.live_line import Connect
from bargein.pipelines.response_stream import model_key
from bargein.pipelines.s2s import S2sStage
from bargein.pipelines.s2s_connection import LiveConnection, live_key
from bargein.pipelines.s2s_turns import ProviderTurns
from bargein.pipelines.s2s_voice import LiveVoice
from bargein.pipelines.session import VoiceSession, World
from bargein.pipelines.settings import SessionSettings
from bargein.pipelines.tools.registry import ToolRegistry
from bargein.pipelines.turn_detector import TurnTaking
from bargein.sim.effects.bus import EffectBus
from bargein.sim.effects.layers import LayeredBus
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.clock import Clock

__all__ = ["LiveWorld", "S2sSession"]


@dataclass(frozen=True, slots=True)
class LiveWorld(World):
    """What surrounds the agent; ``synthesizer`` says fillers and the fallback, ``transcriber`` is the provider's.

    Attributes:
        connect: what the provider is like.
    """

    connect: Connect = field(kw_only=True)


class S2sSession(VoiceSession):
    """A call through a live provider.

    Args:
        clock, bus, registry, settings, max_duration_us, layered: as for any session. On the bus somebody serves the
            live connection; the model's key is served by the session itself, which registers it.
        world: with a provider.

    Invariant: every user turn has exactly one user message, and its words are the ones the provider heard.
    """

    def __init__(
        self,
        clock: Clock,
        bus: EffectBus,
        registry: ToolRegistry,
        settings: SessionSettings,
        world: LiveWorld,
        max_duration_us: int,
        layered: LayeredBus | None = None,
    ) -> None:
        self._numbers: list[int] = []  # turns of the user's that the next user message is made of
        self._message_of: dict[int, tuple[int, tuple[int, ...]]] = {}  # turn to its message, and all turns of that
        super().__init__(clock, bus, registry, settings, world, max_duration_us, layered)
        self.timeline.watch("run.ended", self._on_run_over)

    def _build_stages(self, world: World) -> None:
        assert isinstance(world, LiveWorld)
        label = self.settings.agent.model
        self._voice = LiveVoice(self.book, world.synthesizer)
        self._connection = LiveConnection(self.bus, live_key(label), world.connect)
        self.live = S2sStage(self.clock, self.timeline, self._connection, self._voice, self, self.poke)
        self.bus.register(model_key(label), self.live)
        super()._build_stages(replace(world, synthesizer=self._voice))

    def _turn_taking(self, world: World) -> TurnTaking:
        return ProviderTurns(self._connection, self.live.users, self.live.waits)

    def start(self) -> None:
        """Connect, and set the provider's session up."""
        super().start()
        agent = self.settings.agent
        self.live.start(Configure(agent.system, self.offer.current.adverts, self._connection.answers_turns))

    # -- the user's turns, as the stage tells them --------------------------------------------------------

    def user_speaks(self) -> None:
        """Speech began; a request for confirmation that is made while it lasts is not what it replies to."""
        if not self._ending:
            self.engine.confirmations.note_user_speech_started()

    def open_turn(self, number: int) -> None:
        """The user's turn ``number`` has ended: settle what came before and answer it.

        Turns that come while the agent is still being cut become one message, like final transcripts elsewhere.
        """
        self._numbers.append(number)
        self._say_next()

    def _say_next(self) -> None:
        """The next user message holds all turns since the last one, with the words that are known by now."""
        self._next_turn = None
        final = [number for number in self._numbers if self.live.users.words_of(number) is not None]
        self.take_turn(self._words(self._numbers), final)

    def _begin_turn(self) -> None:
        super()._begin_turn()
        numbers, self._numbers = tuple(self._numbers), []
        for number in numbers:
            self._message_of[number] = (self.conversation.user_message, numbers)

    def fill_turn(self, number: int) -> None:
        """The words of a turn that has its message already have come."""
        if number in self._numbers:
            self.timeline.add("stt.final", self.epoch, number, self.live.users.words_of(number))
            self._say_next()
        elif number in self._message_of:
            mid, numbers = self._message_of[number]
            self.conversation.context.fill(mid, self._words(numbers))

    def _words(self, numbers: Sequence[int]) -> str:
        return " ".join(words for words in map(self.live.users.words_of, numbers) if words)

    # -- what the provider has to be told -----------------------------------------------------------------

    def _halt(self, cause: Cause) -> None:
        super()._halt(cause)
        if not self._ending:
            self.live.interrupted(self.conversation.context.messages)

    def _on_cut(self) -> None:
        if not self._ending:
            self.live.cut()
        super()._on_cut()

    def _on_run_over(self, row: tuple[Any, ...]) -> None:
        """Results of a batch that nothing is asked on any more, such as before a fallback."""
        if row[3] != "cancelled":
            self.live.tell_rest(self.conversation.context.messages)

    def _look(self, at_rest: object) -> None:
        """At rest, a result that missed its slot is told at once: the provider answers before a turn opens here."""
        if not (self._ending or self._halted or self.active) and self._tell_late_results():
            self.live.tell_rest(self.conversation.context.messages)
        super()._look(at_rest)

    def _ended(self) -> None:
        self._connection.close()
        super()._ended()
