"""The packaged audio is what its manifest, its list of lines and its script say."""

from __future__ import annotations

import ctypes.util
import json
from hashlib import sha256
from importlib.resources import files
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
import soundfile

from bargein.audio_fixtures import make_fixtures
from bargein.models.acoustics import rms
from bargein.models.fixtures import packaged

FOLDER = Path(str(files("bargein.audio_fixtures")))
MANIFEST = json.loads((FOLDER / "manifest.json").read_text(encoding="utf-8"))


def test_the_manifest_lists_the_lines_and_the_files_that_are_there() -> None:
    assert [(line["voice"], line["text"]) for line in MANIFEST["lines"]] == list(make_fixtures.lines())
    assert sorted(line["file"] for line in MANIFEST["lines"]) == sorted(
        f"audio/{path.name}" for path in (FOLDER / "audio").iterdir()
    )


def test_each_file_has_the_hash_format_and_licence_it_states() -> None:
    for line in MANIFEST["lines"]:
        file = FOLDER / line["file"]
        assert sha256(file.read_bytes()).hexdigest() == line["flac_sha256"]
        info = soundfile.info(file)
        assert (info.format, info.subtype, info.channels) == ("FLAC", "PCM_16", 1)
        assert (info.samplerate, info.frames) == (line["rate_hz"], line["samples"]) == (16000, line["samples"])
        assert line["licence"] == MANIFEST["licence"] == "CC0-1.0"


def test_each_line_is_as_loud_as_speech_and_trimmed_to_20_ms() -> None:
    for line in packaged():
        pcm = line.pcm()
        assert abs(rms(pcm) - 3277) <= 3, line.text
        assert abs(pcm[:400]).max() > 58, line.text  # -55 dBFS
        assert abs(pcm[-400:]).max() > 58, line.text


def test_silence_is_cut_to_20_ms_at_the_edges_and_120_ms_inside() -> None:
    silent = np.repeat([True, False, True, False, True, False, True], [1000, 7, 3000, 7, 1900, 7, 1000])
    kept = make_fixtures._kept(silent)
    assert np.flatnonzero(np.diff(kept)).tolist() == [679, 1966, 3046, 6240]
    assert int(kept.sum()) == 320 + 7 + 1920 + 7 + 1900 + 7 + 320


def test_words_take_time_in_order() -> None:
    for line in packaged():
        assert min(word.end - word.start for word in line.words) >= 400, line.text  # 25 ms, the shortest "A"
        gaps = [after.start - before.end for before, after in zip(line.words, line.words[1:], strict=False)]
        assert all(0 <= gap <= 2080 for gap in gaps), line.text  # 120 ms and two windows of 5 ms


def test_the_script_makes_the_same_samples_again() -> None:
    if ctypes.util.find_library("espeak-ng") is None:
        pytest.skip("libespeak-ng, which makes the fixtures, is not installed")
    if make_fixtures.synthesiser() != MANIFEST["synthesiser"]:
        pytest.skip(f"the fixtures were made by {MANIFEST['synthesiser']}, here is {make_fixtures.synthesiser()}")
    line = next(line for line in packaged() if line.text == "Yes, please.")
    with get_context("spawn").Pool(1) as pool:
        spoken = pool.apply(make_fixtures.render, [(line.voice, line.text)])
    assert spoken.pcm.tolist() == line.pcm().tolist()
    assert spoken.spans == [(word.start, word.end) for word in line.words]
