"""Who serves each tool of a scenario: the program's own Python, a packaged application, or the script.

``build.Plan`` makes one for a scenario and asks it once for each session, whose control the tools of one session
need, and once more where a session that was resumed goes on with other tools of the program's. Left out: the
declarations, which ``Scenario.specs`` has, and how each of the three runs (``bargein.models``).
"""

from __future__ import annotations

from collections.abc import Mapping

from bargein.models.apps.builtin import BuiltinTools
from bargein.models.python_tools import SessionControl, Tools
from bargein.models.tools import ScriptedTool
from bargein.pipelines.session import VoiceSession
from bargein.sim.effects.bus import Handler
from bargein.sim.effects.recording import Recorder
from bargein.sim.kernel.streams import Streams
from bargein.sim.scenario.model import Scenario
from bargein.sim.scenario.templates import fill

__all__ = ["Bodies"]


class Bodies:
    """The bodies of a scenario's tools.

    Args:
        own: the tools that the program brings.
        keys: where the calls of each tool go on the effect bus, by name; every tool is among them.
    """

    def __init__(self, scenario: Scenario, own: Tools | None, keys: Mapping[str, str]) -> None:
        self._scripted = scenario.tools
        self._own = own
        self._own_names = frozenset(spec.name for spec in scenario.own_tools)
        self._keys = keys
        packaged = any(tool.builtin for tool in scenario.tools.values())
        self._packaged = BuiltinTools(scenario.session.starts_at) if packaged else None

    def serve(self, session: VoiceSession, streams: Streams, recorder: Recorder | None = None) -> dict[str, Handler]:
        """Register a body for each tool on the session's bus.

        Args:
            recorder: sees what the bodies do, where the session is recorded.

        Returns:
            The bodies by the tools' names.
        """
        clock = session.clock if recorder is None else recorder.clock
        control: SessionControl = session if recorder is None else recorder.control(session)
        own = None if self._own is None else self._own.for_session(control)
        packaged = None if self._packaged is None else self._packaged.for_session(control)
        bodies: dict[str, Handler] = {}
        for name, key in self._keys.items():
            body: Handler
            if own is not None and name in self._own_names:
                body = own.handler(name, clock)
            else:
                tool = self._scripted[name]
                if packaged is not None and tool.builtin is not None:
                    body = packaged.handler(tool.builtin, clock)
                else:
                    body = ScriptedTool(clock, tool.run, fill, streams.stream(f"tool/{name}"))
            bodies[name] = body
            session.bus.register(key, body)
        return bodies

    def replace(self, session: VoiceSession, recorder: Recorder) -> dict[str, Handler]:
        """Have the program's own tools serve the calls that the session dispatches from now on.

        Returns:
            Their bodies by the tools' names.

        Raises:
            ValueError: the session has no tool of that name.
        """
        if self._own is None:
            return {}
        own = self._own.for_session(recorder.control(session))
        bodies: dict[str, Handler] = {
            name: own.handler(name, recorder.clock) for name in self._keys if name in self._own_names
        }
        for name, body in bodies.items():
            session.bus.replace(self._keys[name], body)
        return bodies
