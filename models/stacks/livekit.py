"""LiveKit's own AgentSession on the virtual clock, unmodified, with models standing in for the services it calls.

`hold` runs one call: frames come from the caller's microphone, sound goes to an ear that plays in virtual time, and
the session decides for itself when a turn has ended, when it was interrupted and when a tool runs. There is no room,
no job and no network. Left out: LiveKit's turn-detection and noise-cancelling models, which are its cloud's; silence
ends a turn, and the words it believes were heard are its own guess.

The services behind LiveKit's interfaces are in ``livekit_services``. Needs the extra ``livekit``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from livekit import rtc
from livekit.agents import Agent, AgentSession, ConversationItemAddedEvent
from livekit.agents.llm import ChatMessage, RawFunctionTool, ToolError, function_tool
from livekit.agents.voice import io

from bargein.models.stacks.livekit_services import Detector, Model, Recogniser, Voice, sleep_us
from bargein.models.stacks.loop import ClockLoop, clock_as_time
from bargein.models.stacks.surroundings import Surroundings
from bargein.pipelines.tools.invocation import IdempotencyKey, ToolCallContext, ToolInvocation
from bargein.pipelines.tools.spec import ToolSpec
from bargein.sim.effects.bus import Effect, EffectKind, Status
from bargein.sim.kernel.cancel import CancelToken, Cause
from bargein.sim.kernel.clock import Limits, Order, Timer
from bargein.sim.kernel.errors import SimulationStopped
from bargein.sim.kernel.frames import (
    FRAME_SAMPLES,
    FRAME_US,
    SAMPLE_RATE_HZ,
    next_boundary_us,
    samples_to_us,
    us_to_samples,
)

__all__ = ["hold"]

_LOOK_EVERY_US = 100_000
"""How often one looks whether the call is over."""
_TO_CLOSE = 100_000
"""Events that a session which was stopped may still take to close."""
_TO_CLOSE_S = 10
"""Virtual seconds that a session whose call is over may take to close."""


def hold(around: Surroundings) -> None:
    """Run one call of a LiveKit agent, from connect to its quiet end; what happens is on ``around.timeline``.

    Raises:
        SimulationStopped: nothing is left to happen, or a bound of the clock was reached.
    """
    clock = around.clock
    with clock_as_time(clock), _without_remarks(), asyncio.Runner(loop_factory=lambda: ClockLoop(clock)) as runner:
        try:
            runner.run(_call(around))
        except SimulationStopped:
            clock.limits = Limits(clock.processed + _TO_CLOSE)  # its tasks are cancelled, and want to be heard
            raise
    around.end()


async def _call(around: Surroundings) -> None:
    agent = around.agent
    session: AgentSession[None] = AgentSession(
        vad=Detector(around),
        stt=Recogniser(around),
        llm=Model(around),
        tts=Voice(around),
        turn_handling={
            "turn_detection": "vad",
            "endpointing": {"mode": "fixed", "min_delay": agent.min_silence_us / 1e6, "max_delay": 3.0},
            "interruption": {
                "mode": "vad",
                "min_duration": agent.min_speech_us / 1e6,
                "resume_false_interruption": False,
            },
            "preemptive_generation": {"enabled": False},
        },
        max_tool_steps=agent.max_tool_rounds,
        tts_text_transforms=None,
        user_away_timeout=None,
        aec_warmup_duration=None,
        session_close_transcript_timeout=0.0,
    )
    ear = Ear(around)
    session.input.audio = Microphone(around)
    session.output.audio = ear

    @session.on("conversation_item_added")
    def _(event: ConversationItemAddedEvent) -> None:
        if isinstance(event.item, ChatMessage) and event.item.role == "user":
            around.turn(event.item.id, event.item.text_content or "")

    await session.start(Agent(instructions=agent.system, tools=[_tool(around, *each) for each in agent.tools]))
    around.start()
    while not around.look(ear.silent):
        await sleep_us(_LOOK_EVERY_US)
    try:
        async with asyncio.timeout(_TO_CLOSE_S):
            await session.aclose()
    except TimeoutError:
        pass  # it waits for a tool that never returns; its tasks are cancelled with the loop


@contextmanager
def _without_remarks() -> Iterator[None]:
    """LiveKit logs what is meant here (no room, no cloud's models) and what the timeline tells (a tool that fails)."""
    log = logging.getLogger("livekit.agents")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


class Microphone(io.AudioInput):
    """The caller's microphone: each frame comes when its last sample has."""

    def __init__(self, around: Surroundings) -> None:
        super().__init__(label="caller")
        self._around = around

    async def __anext__(self) -> rtc.AudioFrame:
        clock = self._around.clock
        number = clock.now // FRAME_US
        await sleep_us((number + 1) * FRAME_US - clock.now)
        return rtc.AudioFrame(self._around.frame(number), SAMPLE_RATE_HZ, 1, FRAME_SAMPLES)


class Ear(io.AudioOutput):
    """Plays what it is given in virtual time, from frame boundaries, and stops on one when it is told to clear."""

    def __init__(self, around: Surroundings) -> None:
        super().__init__(label="ear", capabilities=io.AudioOutputCapabilities(pause=False), sample_rate=SAMPLE_RATE_HZ)
        self._around = around
        self._number = -1
        self._received = 0
        self._played_until_us = 0  # when the last sample received will have left
        self._begins: Timer | None = None
        self._ends: Timer | None = None
        self._playing = False
        self._complete = False

    @property
    def silent(self) -> bool:
        """Whether nothing is playing or about to be."""
        return not self._playing

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        await super().capture_frame(frame)
        clock = self._around.clock
        if not self._playing:
            self._playing, self._complete = True, False
            self._number += 1
            self._received = 0
            self._played_until_us = next_boundary_us(clock.now)
            self._begins = clock.call_at(self._played_until_us, Order.PLAYOUT, self._begin)
        self._received += frame.samples_per_channel
        self._played_until_us = max(self._played_until_us, clock.now) + samples_to_us(frame.samples_per_channel)
        self._arm()

    def flush(self) -> None:
        super().flush()
        self._complete = self._playing
        self._arm()

    def clear_buffer(self) -> None:
        if self._playing:
            self._complete = False
            self._arm(next_boundary_us(self._around.clock.now))

    def _begin(self, _: object) -> None:
        around = self._around
        around.timeline.add("playout.started", around.epoch, self._number, "answer", us_to_samples(around.clock.now))
        self.on_playback_started(created_at=around.clock.now / 1e6)

    def _arm(self, cut_at_us: int | None = None) -> None:
        if self._ends is not None:
            self._ends.cancel()
            self._ends = None
        if cut_at_us is not None:
            self._ends = self._around.clock.call_at(cut_at_us, Order.PLAYOUT, self._end, True)
        elif self._complete:
            at_us = max(self._around.clock.now, self._played_until_us)
            self._ends = self._around.clock.call_at(at_us, Order.PLAYOUT, self._end, False)

    def _end(self, cut: bool) -> None:
        around = self._around
        left = us_to_samples(max(0, self._played_until_us - around.clock.now))
        heard = self._received - min(left, self._received)
        self._playing = False
        if self._begins is not None:
            self._begins.cancel()
        if cut:
            around.timeline.add("playout.cut", around.epoch, self._number, heard, self._received)
        else:
            around.timeline.add("playout.ended", around.epoch, self._number, heard)
        self.on_playback_finished(playback_position=heard / SAMPLE_RATE_HZ, interrupted=cut)


def _tool(around: Surroundings, spec: ToolSpec, key: str) -> RawFunctionTool[..., Any]:
    """A tool of the scenario as LiveKit's own kind; its body is the one that our engine would run."""
    count = 0

    async def body(raw_arguments: dict[str, object]) -> Any:
        nonlocal count
        call = f"{spec.name}#{count}"
        count += 1
        landed: asyncio.Future[Effect] = asyncio.get_running_loop().create_future()
        context = ToolCallContext(
            "livekit",
            around.epoch,
            call,
            CancelToken(call),
            IdempotencyKey("livekit", around.epoch, call),
            around.clock,
        )
        effect = around.bus.dispatch(
            EffectKind.TOOL_CALL,
            key,
            ToolInvocation(call, spec.name, dict(raw_arguments), context),
            scope=f"t{around.epoch}",
            on_landed=_teller(landed),
        )
        around.timeline.add("tool.started", around.epoch, call, spec.name, spec.side_effect, effect.id)
        try:
            await landed
        except asyncio.CancelledError:
            effect.cancel(Cause.BARGE_IN)
            around.timeline.add("tool.dropped", around.epoch, call, spec.name, Cause.BARGE_IN)
            raise
        assert effect.outcome is not None
        around.timeline.add("tool.finished", around.epoch, call, spec.name, str(effect.outcome.status))
        if effect.outcome.status is not Status.OK:
            raise ToolError(str(effect.outcome.value))
        return effect.outcome.value

    schema = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
    return function_tool(body, raw_schema=schema)


def _teller(landed: asyncio.Future[Effect]) -> Callable[[Effect], None]:
    def tell(effect: Effect) -> None:
        if not landed.done():
            landed.set_result(effect)

    return tell
