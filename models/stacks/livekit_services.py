"""The models behind LiveKit's interfaces: detector, recogniser, model and voice of one session.

Each forwards to the model that stands in the same place around our own pipeline. Left out: retries, usage figures and
interim transcripts; nothing is billed, and a final is all that the script has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from json import JSONDecodeError, loads
from typing import Any

from livekit.agents import APIError, llm, stt, tts, vad
from livekit.agents.types import DEFAULT_API_CONNECT_OPTIONS, APIConnectOptions

from bargein.models.stacks.surroundings import Surroundings
from bargein.models.tts import Piece
from bargein.pipelines.agent.deltas import CallDelta, TextDelta
from bargein.pipelines.agent.messages import Message, Role, Text, ToolCall, assistant, tool_answer
from bargein.pipelines.agent.request import Advert, Request
from bargein.sim.effects.bus import Effect, EffectKind, Status
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.frames import FRAME_US, SAMPLE_RATE_HZ

__all__ = ["Detector", "Model", "Recogniser", "Voice", "sleep_us"]

_ONCE = APIConnectOptions(max_retry=0)


def sleep_us(us: int) -> Awaitable[None]:
    """To wait for: ``us`` microseconds of virtual time."""
    return asyncio.sleep(us / 1_000_000)


# -- hearing ----------------------------------------------------------------------------------------------------


class Detector(vad.VAD):
    """The detector: its edges come from outside, on their instants."""

    def __init__(self, around: Surroundings) -> None:
        super().__init__(capabilities=vad.VADCapabilities(update_interval=FRAME_US / 1e6))
        self._around = around

    def stream(self) -> vad.VADStream:
        return _DetectorStream(self, self._around)


class _DetectorStream(vad.VADStream):
    def __init__(self, detector: Detector, around: Surroundings) -> None:
        super().__init__(detector)
        self._around = around
        self._onset_us: int | None = None
        around.listener = self

    async def _main_task(self) -> None:
        """While somebody speaks, say so with every frame: LiveKit measures an interruption by it."""
        async for _ in self._input_ch:
            if self._onset_us is not None:
                self._send(vad.VADEventType.INFERENCE_DONE, self._onset_us, self._around.clock.now, 0)

    def speech_started(self, onset_us: int) -> None:
        self._onset_us = onset_us
        self._send(vad.VADEventType.START_OF_SPEECH, onset_us, self._around.clock.now, 0)

    def speech_stopped(self, onset_us: int, end_us: int) -> None:
        self._onset_us = None
        self._send(vad.VADEventType.END_OF_SPEECH, onset_us, end_us, self._around.clock.now - end_us)

    def _send(self, kind: vad.VADEventType, onset_us: int, until_us: int, silence_us: int) -> None:
        if self._event_ch.closed:
            return
        now_us = self._around.clock.now
        spoken = (until_us - onset_us) / 1e6
        event = vad.VADEvent(
            type=kind,
            samples_index=now_us * 2 // 125,
            timestamp=now_us / 1e6,
            speech_duration=spoken,
            silence_duration=silence_us / 1e6,
            probability=0.0 if silence_us else 1.0,
            speaking=kind is not vad.VADEventType.END_OF_SPEECH,
            raw_accumulated_speech=0.0 if silence_us else spoken,
            raw_accumulated_silence=silence_us / 1e6,
        )
        self._event_ch.send_nowait(event)


class Recogniser(stt.STT[Any]):
    """The recogniser: finals only, each some time after its stretch of speech."""

    def __init__(self, around: Surroundings) -> None:
        super().__init__(capabilities=stt.STTCapabilities(streaming=True, interim_results=False))
        self._around = around

    async def _recognize_impl(self, *_: Any, **__: Any) -> stt.SpeechEvent:
        raise NotImplementedError("this recogniser streams")

    def stream(self, **_: Any) -> stt.RecognizeStream:
        return _RecogniserStream(self, self._around)


class _RecogniserStream(stt.RecognizeStream):
    def __init__(self, recogniser: Recogniser, around: Surroundings) -> None:
        super().__init__(stt=recogniser, conn_options=_ONCE)
        around.on_final = self._say

    async def _run(self) -> None:
        """Sound needs no work: the script knows the words."""
        async for _ in self._input_ch:
            pass

    def _say(self, text: str) -> None:
        if not self._event_ch.closed:
            said = stt.SpeechData(language="en", text=text, confidence=1.0)  # type: ignore[arg-type]
            self._event_ch.send_nowait(stt.SpeechEvent(stt.SpeechEventType.FINAL_TRANSCRIPT, alternatives=[said]))


# -- answering --------------------------------------------------------------------------------------------------


class Model(llm.LLM[Any]):
    """The scripted model: each request goes over the bus, and its deltas come back as they do there."""

    def __init__(self, around: Surroundings) -> None:
        super().__init__()
        self.around = around
        self.rounds: dict[int, int] = {}  # requests so far, by turn

    def chat(
        self,
        *,
        chat_ctx: llm.ChatContext,
        tools: list[llm.Tool] | None = None,
        conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS,
        **_: Any,
    ) -> llm.LLMStream:
        return _ModelStream(self, chat_ctx=chat_ctx, tools=tools or [], conn_options=_ONCE)


class _ModelStream(llm.LLMStream):
    _llm: Model

    async def _run(self) -> None:
        model, around = self._llm, self._llm.around
        for item in self._chat_ctx.items:
            if item.type == "message" and item.role == "user":
                around.turn(item.id, item.text_content or "")  # LiveKit tells of it only later
        epoch = around.epoch
        number = model.rounds.get(epoch, 0)
        model.rounds[epoch] = number + 1
        adverts = [Advert(spec.name, spec.description, spec.parameters) for spec, _ in around.agent.tools]
        request = Request(messages_of(self._chat_ctx), tuple(adverts))
        around.timeline.add("llm.request", epoch, number, len(around.bus.log), len(request.messages), len(adverts))
        landed: asyncio.Future[Effect] = asyncio.get_running_loop().create_future()
        calls: dict[int, list[CallDelta]] = {}
        chars = 0

        def on_item(delta: Any) -> None:
            nonlocal chars
            if type(delta) is TextDelta:
                if not chars:
                    around.timeline.add("llm.first_token", epoch, number)
                chars += len(delta.text)
                self._send(llm.ChoiceDelta(role="assistant", content=delta.text))
            elif type(delta) is CallDelta:
                calls.setdefault(delta.index, []).append(delta)

        try:
            effect = around.bus.dispatch(
                EffectKind.COMPLETION,
                around.agent.model_key,
                request,
                scope=f"t{epoch}",
                on_item=on_item,
                on_landed=lambda effect: None if landed.done() else landed.set_result(effect),
            )
        except Exception as fault:
            around.fail(fault)
            raise
        try:
            await landed
        except asyncio.CancelledError:
            effect.cancel(Cause.BARGE_IN)
            raise
        assert effect.outcome is not None
        if effect.outcome.status is not Status.OK:
            around.timeline.add("llm.failed", epoch, number, str(effect.outcome.value))
            raise APIError(str(effect.outcome.value), retryable=False)
        if calls:
            self._send(llm.ChoiceDelta(role="assistant", tool_calls=[_call(parts) for parts in calls.values()]))
        around.timeline.add("llm.done", epoch, number, "tool_calls" if calls else "stop", len(calls), chars)

    def _send(self, delta: llm.ChoiceDelta) -> None:
        if not self._event_ch.closed:
            self._event_ch.send_nowait(llm.ChatChunk(id="scripted", delta=delta))


def _call(parts: list[CallDelta]) -> llm.FunctionToolCall:
    """A call, from its fragments."""
    name = next(part.name for part in parts if part.name)
    call_id = next((part.id for part in parts if part.id), f"call_{parts[0].index}")
    return llm.FunctionToolCall(name=name, arguments="".join(part.arguments for part in parts), call_id=call_id)


def messages_of(context: llm.ChatContext) -> tuple[Message, ...]:
    """LiveKit's conversation as messages of ours, for a script that reads what it is asked."""
    found: list[Message] = []
    for item in context.items:
        if item.type == "message":
            role = {"user": Role.USER, "assistant": Role.ASSISTANT}.get(item.role, Role.SYSTEM)
            found.append(Message(role, (Text(item.text_content or ""),)))
        elif item.type == "function_call":
            found.append(assistant("", (ToolCall(item.call_id, item.name, _arguments(item.arguments)),)))
        elif item.type == "function_call_output":
            found.append(tool_answer(item.call_id, item.output, item.is_error))
    return tuple(found)


def _arguments(text: str) -> dict[str, Any]:
    try:
        value = loads(text or "{}")
    except JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


# -- speaking ---------------------------------------------------------------------------------------------------


class Voice(tts.TTS[Any]):
    """The voice: sentence by sentence, each context on its own."""

    def __init__(self, around: Surroundings) -> None:
        super().__init__(capabilities=tts.TTSCapabilities(streaming=True), sample_rate=SAMPLE_RATE_HZ, num_channels=1)
        self.around = around
        self.contexts = 0

    def synthesize(self, text: str, *, conn_options: APIConnectOptions = _ONCE) -> tts.ChunkedStream:
        return self._synthesize_with_stream(text, conn_options=conn_options)

    def stream(self, *, conn_options: APIConnectOptions = _ONCE) -> tts.SynthesizeStream:
        return _VoiceStream(self)


class _VoiceStream(tts.SynthesizeStream):
    _tts: Voice

    def __init__(self, voice: Voice) -> None:
        super().__init__(tts=voice, conn_options=_ONCE)

    async def _run(self, output_emitter: tts.AudioEmitter) -> None:
        voice, around = self._tts, self._tts.around
        number, voice.contexts = voice.contexts, voice.contexts + 1
        epoch = around.epoch
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        samples = 0

        def on_audio(_: int, piece: Piece) -> None:
            nonlocal samples
            if not samples:
                around.timeline.add("tts.first_byte", epoch, number)
            samples += piece.length
            output_emitter.push(piece.pcm().tobytes())

        def on_end(_: int) -> None:
            if not ended.done():
                ended.set_result(None)

        output_emitter.initialize(
            request_id=f"context {number}",
            sample_rate=SAMPLE_RATE_HZ,
            num_channels=1,
            mime_type="audio/pcm",
            stream=True,
        )
        output_emitter.start_segment(segment_id=f"context {number}")
        around.timeline.add("tts.opened", epoch, number, number, "answer", None)
        context = around.world.synthesizer.open(number, on_audio, on_end)
        try:
            async for token in self._input_ch:
                if isinstance(token, str):
                    self._mark_started()
                    context.say(token)
            context.flush()
            await ended
        except asyncio.CancelledError:
            context.cancel()
            around.timeline.add("tts.dropped", epoch, number, "interrupted")
            raise
        around.timeline.add("tts.ended", epoch, number, samples)
        output_emitter.end_segment()
