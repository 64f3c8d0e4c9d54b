"""The ear: levels on the global grid, and a line's edges that are the same kept or fresh, whole or frame by frame."""

from __future__ import annotations

import numpy as np
import pytest

import bargein.models.ear as ear_module
from bargein.models.acoustics import frame_energies
from bargein.models.ear import EnergyEar
from bargein.models.vad_energy import VadEdge, VadSettings, VadState
from bargein.models.voice import speak

LINE = speak("caller", "Zebras wander home.")


def by_frames(first_sample: int, settings: VadSettings) -> list[tuple[int, VadEdge]]:
    """The edges of the line as the per-frame reference finds them, pushed frame by frame into silence."""
    ear = EnergyEar(settings)
    levels = [0] * (first_sample // 320) + [int(level) for level in ear.levels(LINE.pcm(), first_sample)] + [0] * 50
    edges = [(frame, ear.push(level)) for frame, level in enumerate(levels)]
    return [(frame, edge) for frame, edge in edges if edge is not None]


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ear_module, "_KEPT", {})


@pytest.mark.parametrize("first_sample", [0, 1, 319, 320, 16_123])
@pytest.mark.parametrize("settings", [VadSettings(), VadSettings(onset_frames=1, hangover_frames=25)])
def test_the_edges_of_a_line_are_those_of_the_frame_by_frame_reference(
    first_sample: int, settings: VadSettings
) -> None:
    ear = EnergyEar(settings)
    edges = list(ear.edges_of(LINE, first_sample))
    assert [edge.kind for _, edge in edges][:: len(edges) - 1] == ["start", "stop"]
    assert edges == by_frames(first_sample, settings)
    assert list(ear.edges_of(LINE, first_sample)) == edges


def test_edges_are_kept_by_content_place_in_the_frame_and_thresholds() -> None:
    ear = EnergyEar(VadSettings())
    early = ear.edges_of(LINE, 5)
    later = ear.edges_of(LINE, 320 * 7 + 5)
    assert [(frame - 7, edge.kind, edge.onset_frame - 7, edge.last_frame - 7) for frame, edge in later] == [
        (frame, *edge) for frame, edge in early
    ]
    assert len(ear_module._KEPT) == 1
    ear.edges_of(LINE, 6)
    EnergyEar(VadSettings(onset_frames=4)).edges_of(LINE, 5)
    assert len(ear_module._KEPT) == 3


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ear_module, "_KEPT_MOST", 3)
    for first_sample in range(8):
        EnergyEar(VadSettings()).edges_of(LINE, first_sample)
    assert len(ear_module._KEPT) <= 3


def test_asking_for_edges_leaves_the_detectors_own_state_alone() -> None:
    ear = EnergyEar(VadSettings())
    ear.push(10**12)
    before = ear.state
    ear.edges_of(LINE, 0)
    assert ear.state == before


@pytest.mark.parametrize(
    ("state", "rests"),
    [(VadState(9, False, 0), True), (VadState(9, False, 1), False), (VadState(9, True, 0), False)],
)
def test_the_ear_rests_in_silence_with_no_frame_that_speaks_against_it(state: VadState, rests: bool) -> None:
    assert EnergyEar(VadSettings()).at_rest(state) is rests


def test_levels_are_energies_on_the_global_grid() -> None:
    pcm = np.full(320, 100, dtype=np.int16)
    ear = EnergyEar(VadSettings())
    assert list(ear.levels(pcm, 320)) == [3_200_000]
    assert list(ear.levels(pcm, 3 * 320 + 80)) == [2_400_000, 800_000]
    assert list(ear.levels(LINE.pcm(), 7)) == list(frame_energies(LINE.pcm(), 7))
