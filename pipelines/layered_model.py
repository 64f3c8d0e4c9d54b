"""The agent's requests on their way through layers: denied, patched, kept waiting, or their answers judged.

A session with layers sends its requests by this in place of the plain `ModelPort` (run contract, section 9.6). A
request counts as sent when its handler is asked: one that was denied, or withdrawn while it waited for an approval,
was never sent, and the first token of one that waited is timed from the approval on. A denial ends the turn as a
failure of the model does; so does a layer that stops the stream, or that puts a failure in the place of the answer.
What was spoken by then was spoken: text goes out as it comes, and a verdict on the whole comes after it.

Left out: which request is sent (``response_stream``), and what layers decide (``sim.effects.decisions``).
"""

from __future__ import annotations

from collections.abc import Callable

from bargein.pipelines.agent.request import AgentSettings, Request
from bargein.pipelines.asked import Asked
from bargein.pipelines.response_stream import ModelPort, ResponseStream
from bargein.pipelines.round_metrics import TurnRecorder
from bargein.pipelines.speaker import Speaker
from bargein.pipelines.steering import Steering
from bargein.pipelines.tools.offer import Offer, Offered
from bargein.sim.effects.bus import EffectBus, EffectKind, Outcome
from bargein.sim.effects.decisions import Ask, Layer
from bargein.sim.effects.layers import LayeredBus
from bargein.sim.kernel.cancel import Cause
from bargein.sim.kernel.timeline import Timeline

__all__ = ["LayeredModelPort", "RequestWitness"]


class RequestWitness:
    """Has the timeline told how far one request has come (``dispatches.Witness``).

    Args:
        send: called with the request as it is sent.
    """

    __slots__ = ("_send", "_stream", "_timeline")

    def __init__(self, timeline: Timeline, stream: ResponseStream, send: Callable[[Request], object]) -> None:
        self._timeline = timeline
        self._stream = stream
        self._send = send

    def suspended(self, layer: Layer) -> None:
        self._timeline.add("llm.suspended", self._stream.epoch, self._stream.round, layer.name)

    def served(self, ask: Ask) -> None:
        if type(ask.payload) is not Request:
            raise TypeError(
                f"a layer around {ask.key} asks for a {type(ask.payload).__name__}; accepted is the request that was "
                "asked for with other fields, as by dataclasses.replace(ask.payload, temperature=...)"
            )
        self._send(ask.payload)

    def answered(self, outcome: Outcome) -> None:
        """The stream tells that itself, by its end."""

    def withheld(self, layer: Layer) -> None:
        self._timeline.add("llm.withheld", self._stream.epoch, self._stream.round, layer.name)

    def withdrawn(self, cause: Cause) -> None:
        self._timeline.add("llm.withdrawn", self._stream.epoch, self._stream.round, cause.value)


class LayeredModelPort(ModelPort):
    """Sends the agent's requests through layers.

    Args:
        layered: the bus seen through them; the rest is as for any port.
    """

    def __init__(
        self,
        layered: LayeredBus,
        timeline: Timeline,
        bus: EffectBus,
        agent: AgentSettings,
        offer: Offer,
        recorder: TurnRecorder,
        speaker: Speaker,
        steering: Steering,
    ) -> None:
        super().__init__(timeline, bus, agent, offer, recorder, speaker, steering)
        self._layered = layered

    def _send(self, stream: ResponseStream, key: str, request: Request) -> Asked:
        def send(request: Request) -> None:
            if request.tools != stream.offered.adverts:  # a response is judged by what its request was sent with
                stream.offered = Offered(request.tools, frozenset([each.name for each in request.tools]))
            self._sent(stream, request)

        return self._layered.dispatch(
            EffectKind.COMPLETION,
            key,
            request,
            scope=f"t{stream.epoch}",
            on_item=stream.on_delta,
            on_landed=_nobody,
            witness=RequestWitness(self.timeline, stream, send),
        )


def _nobody(_: Asked) -> None:
    """Whoever waits for the response says so later."""
