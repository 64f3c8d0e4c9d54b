"""The energy detector: its thresholds, and three faces that agree."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bargein.models.fixtures import packaged
from bargein.models.recordings import Recording
from bargein.models.vad_energy import (
    EnergyVad,
    VadEdge,
    VadSettings,
    VadState,
    decided_at_us,
    energy_threshold,
)

ON, OFF = energy_threshold(-40), energy_threshold(-46)
LEVELS = st.lists(st.sampled_from([0, OFF - 1, OFF, ON - 1, ON, 10**9]), max_size=60)
SETTINGS = st.builds(
    VadSettings,
    onset_frames=st.integers(1, 4),
    hangover_frames=st.integers(1, 6),
    off_db=st.sampled_from([-40, -46]),
)
CALLER_LINES = [recording for recording in packaged() if recording.voice == "caller"]


def array(levels: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(levels, dtype=np.int64)


def pushed(vad: EnergyVad, levels: list[int]) -> list[tuple[int, VadEdge]]:
    vad.state = VadState()
    edges = [(frame, vad.push(level)) for frame, level in enumerate(levels)]
    return [(frame, edge) for frame, edge in edges if edge is not None]


def test_a_threshold_is_the_smallest_whole_energy_that_reaches_the_level() -> None:
    assert energy_threshold(0) == 320 * 32768**2
    assert energy_threshold(-40) == 34359739  # 320 * 32768**2 / 10**4 = 34359738.368
    assert energy_threshold("-46 dB") == 8630777


def test_speech_starts_after_two_loud_frames_and_stops_after_ten_quiet_ones() -> None:
    vad = EnergyVad()
    levels = [0, ON, ON - 1, ON, ON, OFF, *[OFF - 1] * 9, OFF, *[OFF - 1] * 10, ON]
    expected = [(4, VadEdge("start", 3, 4)), (25, VadEdge("stop", 16, 15))]
    assert pushed(vad, levels) == expected
    assert vad.state == VadState(next_frame=27, speaking=False, run=1)
    assert vad.scan(array(levels), VadState()) == (expected, vad.state)


def test_a_decision_falls_at_the_end_of_its_frame() -> None:
    assert decided_at_us(4) == 100_000


@given(SETTINGS, LEVELS, st.lists(st.integers(0, 60), max_size=5))
def test_scanning_in_any_pieces_gives_what_pushing_each_frame_gives(
    settings: VadSettings, levels: list[int], cuts: list[int]
) -> None:
    vad = EnergyVad(settings)
    expected = pushed(vad, levels)
    bounds = [0, *sorted(min(cut, len(levels)) for cut in cuts), len(levels)]
    state, edges = VadState(), []
    for begin, end in pairwise(bounds):
        found, state = vad.scan(array(levels[begin:end]), state)
        edges += found
    assert (edges, state) == (expected, vad.state)


@given(SETTINGS, LEVELS, st.integers(0, 60), st.integers(0, 20))
def test_settling_is_scanning_up_to_a_cut_or_through_the_silence_after(
    settings: VadSettings, levels: list[int], known: int, more: int
) -> None:
    vad = EnergyVad(settings)
    known = min(known, len(levels) // 2)
    early, state = vad.scan(array(levels[:known]), VadState())
    late, settled = vad.settle(array(levels[known:]), state, known + more)
    expected = pushed(vad, [*levels, *[0] * 80][: known + more])
    assert (early + late, settled) == (expected, vad.state)


def test_levels_beyond_the_cut_are_not_heard() -> None:
    assert EnergyVad().settle(array([0, ON, ON, ON]), VadState(), 2) == ([], VadState(2, False, 1))


def test_a_cut_before_what_is_decided_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^frame 6 lies before frame 7, which is yet to be decided$"):
        EnergyVad().settle(array([]), VadState(7), 6)


def test_settling_through_an_hour_of_silence_finds_the_stop() -> None:
    assert EnergyVad().settle(array([]), VadState(100, True, 3), 180_000) == (
        [(106, VadEdge("stop", 97, 96))],
        VadState(180_000, False, 0),
    )


def test_what_is_decided_is_plain_numbers() -> None:
    edges, state = EnergyVad().scan(array([ON] * 3 + [0] * 12), VadState())
    values = [value for frame, edge in edges for value in (frame, *edge)]
    assert [type(value) for value in values] == [int, str, int, int] * 2
    assert [type(value) for value in state] == [int, bool, int]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            VadSettings(off_db=-39),
            r"^the thresholds must keep 1 <= off <= on, not off=43256348 and on=34359739$",
        ),
        (VadSettings(onset_frames=0), r"are 1 or more, not onset_frames=0 and hangover_frames=10$"),
        (VadSettings(hangover_frames=0), r"are 1 or more, not onset_frames=2 and hangover_frames=0$"),
        (VadSettings(on_db="high"), r"^'high' is no level"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: VadSettings, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EnergyVad(settings)


@pytest.mark.parametrize("line", CALLER_LINES, ids=lambda line: line.text)
def test_each_packaged_line_of_the_caller_is_one_stretch_of_speech(line: Recording) -> None:
    vad = EnergyVad()
    for offset in (0, 1, 107, 160, 319):
        energies = line.frame_energies(offset)
        edges, _ = vad.settle(energies, VadState(), len(energies) + 20)
        assert [edge.kind for _, edge in edges] == ["start", "stop"]
        assert edges[0][0] <= 3
        assert len(energies) - 4 <= edges[1][1].last_frame + 1 <= len(energies)
