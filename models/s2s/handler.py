"""Who serves a live connection on the effect bus: a provider that comes to be when the connection is opened.

A session whose connection is answered by somebody else, such as a log, has no provider at all. Left out: the provider
(``provider``).
"""

from __future__ import annotations

from collections.abc import Callable

from bargein.models.latency import Latency
from bargein.models.llm_script import Choose
from bargein.models.s2s.provider import ScriptedLive
from bargein.models.s2s.server import LiveServer, ScriptedCalls
from bargein.pipelines.agent.request import Request
from bargein.sim.effects.bus import Effect
from bargein.sim.kernel.cancel import Cause

__all__ = ["LiveHandler"]


class LiveHandler:
    """Serves the one connection of a session (``effects.Handler``).

    Args:
        make: makes the provider at the other end of an effect.
        script: how it answers.

    Attributes:
        provider: what was made; ``None`` before the connection is opened, and where somebody else serves it.
    """

    def __init__(self, make: Callable[[Effect, ScriptedCalls], ScriptedLive], script: ScriptedCalls) -> None:
        self._make = make
        self._script = script
        self.provider: ScriptedLive | None = None

    @property
    def requests(self) -> list[Request]:
        """What the provider held when it began each response."""
        return [] if self.provider is None else self.provider.server.requests

    @property
    def server(self) -> LiveServer:
        """The provider's server; once the connection is open."""
        assert self.provider is not None
        return self.provider.server

    def serve(self, effect: Effect) -> Callable[[Cause], object]:
        """Make the provider, and have it hear what is said on the connection."""
        self.provider = provider = self._make(effect, self._script)
        effect.listen(provider.take)
        return lambda _: provider.stop()

    def adopt(self, choose: Choose, ttft: Latency) -> None:
        """Answer otherwise, from the next response on."""
        self._script.choose, self._script.ttft = choose, ttft
