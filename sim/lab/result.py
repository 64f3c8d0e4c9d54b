"""What a session came to: its timeline, and everything that is read from it when asked for.

A result is cheap to make and lazy: metrics, violations and expectations are computed on first use, so that a
sweep pays only for what it looks at. Left out: drawing and writing, which call ``sim.report``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bargein.pipelines.tools.orphans import call_digest
from bargein.sim.effects.bus import EffectKind
from bargein.sim.kernel.errors import SimulationStopped, VoidRun
from bargein.sim.kernel.timeline import Record
from bargein.sim.lab.invariants import CheckSettings, ToolFacts, Violation, check
from bargein.sim.lab.metrics import Metrics, metrics, tool_summary
from bargein.sim.scenario.expectations import Expectation, check_expectations

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from bargein.sim.scenario.build import Opened
    from bargein.sim.scenario.model import Scenario

__all__ = ["Result"]


class Result:
    """One run of a scenario.

    Attributes:
        scenario: what was run.
        seed: of its random streams; tie_seed: of the order of ties, or ``None`` for the written order.
        timeline: the record of everything that happened.
        stopped: why the simulation could not go on, or ``None`` when the session came to its end. A ``VoidRun`` has
            the exception of the stage that raised as its cause.
        notes: what was converted on the way in.
        earlier: what was run before a record of the timeline, by its number, where a session was resumed with other
            values; ``None`` where it was one scenario throughout.
    """

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        tie_seed: int | None,
        opened: Opened,
        stopped: SimulationStopped | VoidRun | None,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.scenario = scenario
        self.seed = seed
        self.tie_seed = tie_seed
        self.stopped = stopped
        self.notes = notes
        self.earlier: tuple[Scenario, int] | None = None
        self.timeline = opened.session.timeline
        self.opened = opened

    # -- what happened ------------------------------------------------------------------------------------

    @cached_property
    def records(self) -> list[Record]:
        """The timeline as records."""
        return list(self.timeline)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the timeline's canonical text."""
        return self.timeline.digest()

    @property
    def virtual_us(self) -> int:
        """How long the session lasted on its own clock."""
        return int(self.timeline.rows[-1][0])

    @property
    def context(self) -> list[dict[str, Any]]:
        """The conversation at the end, as plain messages."""
        return [message.to_dict() for message in self.opened.session.conversation.context]

    @property
    def heard(self) -> list[str]:
        """What the caller heard of the agent: the words of each utterance that was heard, in order."""
        texts = [utterance.heard_text() for utterance in self.opened.session.book.utterances]
        return [text for text in texts if text]

    @property
    def effects(self) -> list[dict[str, Any]]:
        """Every effect that was dispatched, in order."""
        bus = self.opened.session.bus
        opened = enumerate(bus.connections, start=len(bus.log))
        return [*(each.as_dict() for each in bus.log), *({**each.as_dict(), "id": at} for at, each in opened)]

    @cached_property
    def tools(self) -> dict[str, dict[str, Any]]:
        """For each tool how often it ran and how its calls were answered."""
        return tool_summary(self.records)

    @cached_property
    def metrics(self) -> Metrics:
        """The session's numbers; `METRICS` says what each means."""
        return metrics(self.records)

    @property
    def counters(self) -> dict[str, dict[str, int]]:
        """The stages' own counters, by stage."""
        from dataclasses import asdict

        from bargein.pipelines.s2s_session import S2sSession

        session = self.opened.session
        return {
            "tools": asdict(session.engine.stats()),
            "llm": {**asdict(session.runner.stats), "fillers_in_context": session.conversation.fillers_in_context},
            "tts": asdict(session.tts.stats),
            "timeline": asdict(session.recorder.stats),
            **({"s2s": asdict(session.live.stats)} if isinstance(session, S2sSession) else {}),
        }

    # -- whether it was right -----------------------------------------------------------------------------

    @cached_property
    def check_settings(self) -> CheckSettings:
        """What was promised in this session, for the invariants."""
        session = self.opened.session
        identities = {
            effect.payload.call_id: call_digest(effect.payload.tool, effect.payload.arguments).hex()
            for effect in session.bus.log
            if effect.kind is EffectKind.TOOL_CALL
        }
        if session.layered is not None:  # a repeat is one of what the model asks for, whatever layers make of it
            calls = [call for message in session.conversation.context for call in message.calls]
            identities |= {call.id: call_digest(call.name, call.arguments).hex() for call in calls}
        promised = _promised(self.scenario, identities)
        if self.earlier is None:
            return promised
        scenario, changed_at = self.earlier
        return replace(promised, before=_promised(scenario, identities), changed_at=changed_at)

    @cached_property
    def violations(self) -> list[Violation]:
        """Which invariants do not hold; a simulation that could not go on is the first of them."""
        found = check(self.records, self.check_settings)
        if self.stopped is not None:
            name = "crash" if isinstance(self.stopped, VoidRun) else type(self.stopped).__name__.lower()
            found.insert(0, Violation(name, self.virtual_us, str(self.stopped), len(self.records) - 1))
        return found

    @cached_property
    def expectations(self) -> list[Expectation]:
        """What the scenario expects, and whether it came so; a caller line that was never said is one too."""
        outcomes: dict[str, dict[str, Any]] = {
            name: {"runs": summary["runs"], "outcomes": []} for name, summary in self.tools.items()
        }
        for record in self.records:
            if record["kind"] == "tool.settled":
                outcomes[record["tool"]]["outcomes"].append(record["outcome"])
        found = check_expectations(
            self.scenario.expect,
            self.records,
            context=self._flat_context(),
            heard=self.heard,
            tools=outcomes,
            metrics=self.metrics,
            violations=[violation.invariant for violation in self.violations],
        )
        for number in self.opened.caller.unsaid:
            after = self.scenario.caller[number - 1].after
            assert after is not None
            message = f"found none of {after.match.describe()} (number {after.nth}); wanted one, for the line to follow"
            found.append(Expectation(f"caller[{number - 1}].after", False, message))
        return found

    def _flat_context(self) -> list[dict[str, Any]]:
        flat = []
        for message in self.context:
            error = ""
            text = message.get("text", "")
            if message["role"] == "tool":
                text = message["content"]
                if message["is_error"]:
                    from json import loads

                    error = loads(text)["error"]
            calls = [call["name"] for call in message.get("tool_calls", ())]
            flat.append({"role": message["role"], "text": text, "error": error, "calls": calls})
        return flat

    @property
    def unexpected_violations(self) -> list[Violation]:
        """Violations that the scenario does not announce."""
        expected = set(self.scenario.expect.violations)
        return [violation for violation in self.violations if violation.invariant not in expected]

    @property
    def ok(self) -> bool:
        """Whether every invariant and every expectation held."""
        return not self.unexpected_violations and all(expectation.ok for expectation in self.expectations)

    # -- leaving ------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """The object that ``bargein run --json`` prints."""
        return {
            "scenario": self.scenario.name,
            "seed": self.seed,
            "tie_seed": self.tie_seed,
            "digest": self.digest,
            "virtual_us": self.virtual_us,
            "events": len(self.records),
            "violations": [
                {"invariant": each.invariant, "t": each.t, "message": each.message} for each in self.violations
            ],
            "expectations": [{"name": each.name, "ok": each.ok, "message": each.message} for each in self.expectations],
            "metrics": self.metrics,
            "tools": self.tools,
            "counters": self.counters,
            "notes": list(self.notes),
        }

    def sound(self) -> tuple[NDArray[np.int16], NDArray[np.int16]]:
        """The call as two int16 arrays at 16 kHz, equally long: the caller, and the agent as heard."""
        from bargein.sim.report.sound import caller_track, heard_track

        length = -(-self.virtual_us * 2 // 125)
        return caller_track(self.opened.caller.said, length), heard_track(self.opened.session.book.utterances, length)

    def write_wav(self, path: str | os.PathLike[str]) -> Path:
        """Write the call as a stereo WAV: the caller on channel 0, the agent as heard on channel 1."""
        from bargein.sim.report.wav import write_wav

        caller, agent = self.sound()
        return write_wav(path, caller=caller, agent=agent)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """The swim-lane picture: written as PNG where a path is given, else returned as a matplotlib figure."""
        from bargein.sim.report.picture import draw, write_picture

        return (
            draw(self.records, self.scenario.name)
            if path is None
            else write_picture(path, self.records, self.scenario.name)
        )

    def plot_latencies(self, path: str | os.PathLike[str] | None = None) -> Any:
        """The stages of each turn, stacked: as a PNG, or as a matplotlib figure."""
        from bargein.sim.report.latency_plot import draw_latencies, write_latencies

        return (
            draw_latencies(self.records, self.scenario.name)
            if path is None
            else write_latencies(path, self.records, self.scenario.name)
        )

    def __repr__(self) -> str:
        state = "ok" if self.ok else "failed"
        return f"<{self.scenario.name}, seed {self.seed}: {state}, {len(self.records)} events, {self.digest[:12]}>"


def _promised(scenario: Scenario, identities: Mapping[str, str]) -> CheckSettings:
    """What a scenario promises, for the invariants."""
    agent = scenario.agent
    facts = {
        spec.name: ToolFacts(spec.side_effect, spec.repeatable, spec.confirm, spec.filler_after_us)
        for spec in scenario.all_specs
    }
    return CheckSettings(
        fillers=agent.filler.enabled,
        filler_delay_us=None if agent.filler.per_tool else agent.filler.delay_us,
        tools=facts,
        orphan_window_us=agent.engine.orphan_window_us,
        confirm_ttl_us=agent.engine.confirm_ttl_us,
        identities=identities,
        off=frozenset(scenario.invariants.off),
    )
