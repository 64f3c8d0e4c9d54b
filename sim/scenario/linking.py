"""Connecting a session to the remote agent of its scenario.

``build.Plan.open`` calls it once a session. Left out: what either end does (``bargein.models.remote`` and
``remote_agent``).
"""

from __future__ import annotations

from bargein.models.links import Link
from bargein.models.remote import RemoteTools
from bargein.models.remote_agent import RemoteAgent
from bargein.models.tools import ScriptedTool
from bargein.pipelines.session import VoiceSession
from bargein.sim.kernel.streams import Streams
from bargein.sim.scenario.remote import Remote
from bargein.sim.scenario.templates import fill

__all__ = ["connect"]


def connect(remote: Remote, session: VoiceSession, streams: Streams) -> RemoteAgent:
    """Put the agent on its link; what it says comes while the session runs."""
    clock = session.clock
    link = Link(clock, session.timeline, remote.link, streams.stream)
    bodies = {
        name: ScriptedTool(clock, tool.run, fill, streams.stream(f"remote/{name}"))
        for name, tool in remote.tools.items()
    }
    agent = RemoteAgent(
        clock, link, remote.specs, bodies, remote.accept_at_us, [(each.at_us, each.offer) for each in remote.set]
    )
    link.start(RemoteTools(clock, session.timeline, link, session.offer), agent)
    agent.start()
    return agent
