"""Recordings: their invariants, and a user's own files."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import soundfile

from bargein.models.recordings import AudioError, Recording, Word, load, recording_of, spread_words

TONE = (np.arange(16000) % 40 * 400 - 8000).astype(np.int16)
ACCEPTED = "; a WAV or FLAC file of at most 10 minutes is accepted"


def made(*words: Word, text: str = "Hi you", length: int = 10) -> Recording:
    return Recording(text, "caller", words, length, "0" * 64, lambda: np.zeros(length, dtype=np.int16))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_words_are_spread_by_their_letters() -> None:
    assert spread_words("Hello to you", 100) == (
        Word("Hello", 0, 50),
        Word(" to", 50, 70),
        Word(" you", 70, 100),
    )
    assert spread_words("", 100) == ()
    assert spread_words(" ", 100) == (Word(" ", 0, 100),)


def test_words_that_contradict_their_recording_are_refused() -> None:
    made(Word("Hi", 0, 4), Word(" you", 6, 10))
    with pytest.raises(ValueError, match=r"must spell its text 'Hi you'$"):
        made(Word("Hi", 0, 4), Word("you", 6, 10))
    with pytest.raises(ValueError, match=r"starts before sample 4 or ends before it starts$"):
        made(Word("Hi", 0, 4), Word(" you", 3, 10))
    with pytest.raises(ValueError, match=r"ends at sample 9, its recording at 10$"):
        made(Word("Hi", 0, 4), Word(" you", 4, 9))


def test_the_spaces_around_a_text_can_be_respelt_and_nothing_else() -> None:
    recording = made(Word("Hi", 0, 4), Word(" you", 4, 10))
    respelt = recording.spelling(" Hi you ")
    assert respelt.words == (Word(" Hi", 0, 4), Word(" you ", 4, 10))
    assert (respelt.text, respelt.content, respelt.source) == (
        " Hi you ",
        recording.content,
        recording.source,
    )
    with pytest.raises(ValueError, match=r"^a recording of 'Hi you' does not say 'Hi me'$"):
        recording.spelling("Hi me")


def test_samples_are_read_only_even_after_a_trip_to_another_process() -> None:
    recording = recording_of(TONE, "Hi you")
    for copy in (recording, pickle.loads(pickle.dumps(recording))):
        assert copy == recording
        assert copy.pcm().tolist() == TONE.tolist()
        with pytest.raises(ValueError, match="read-only"):
            copy.pcm()[0] = 1


def test_energies_are_kept_by_recording_and_offset() -> None:
    recording = recording_of(TONE, "Hi you")
    again = recording_of(TONE, "Hi you")
    assert recording.frame_energies(3) is again.frame_energies(3)
    assert len(recording.frame_energies(3)) == 51
    assert len(recording.frame_energies(0)) == 50


@pytest.mark.parametrize("name", ["a.wav", "a.flac"])
def test_a_file_in_the_house_format_is_taken_to_the_sample(here: Path, name: str) -> None:
    soundfile.write(name, TONE, 16000)
    recording, notes = load(name, "Hello there")
    assert notes == ()
    assert recording.pcm().tolist() == TONE.tolist()
    assert recording.words == (Word("Hello", 0, 8000), Word(" there", 8000, 16000))
    assert (recording.voice, recording.text, recording.length) == ("caller", "Hello there", 16000)


def test_the_same_samples_have_the_same_content_key_whatever_the_container(here: Path) -> None:
    soundfile.write("a.wav", TONE, 16000)
    soundfile.write("b.flac", TONE, 16000)
    soundfile.write("c.wav", TONE / 32768, 16000, subtype="FLOAT")
    keys = {load(name, "Hi")[0].content for name in ("a.wav", "b.flac", "c.wav")}
    assert keys == {recording_of(TONE, "Other words").content}


def test_stereo_is_mixed_and_said_so(here: Path) -> None:
    soundfile.write("two.wav", np.array([[3, 4], [-3, -4], [100, -100]], dtype=np.int16), 16000)
    recording, notes = load("two.wav", "Hi")
    assert recording.pcm().tolist() == [4, -3, 0]  # halves go up
    assert notes == ("stereo: channel mix taken",)


@pytest.mark.parametrize("rate", [8000, 22050, 44100, 48000])
def test_another_rate_is_resampled_and_said_so(here: Path, rate: int) -> None:
    from scipy.signal import resample_poly

    tone = np.rint(8000 * np.sin(2 * np.pi * 440 / rate * np.arange(rate // 2))).astype(np.int16)
    soundfile.write("r.wav", tone, rate)
    recording, notes = load("r.wav", "Hi")
    assert notes == (f"{rate} Hz: resampled to 16000 Hz",)
    assert recording.length == 8000
    exact = resample_poly(tone.astype(np.float64), 16000, rate)
    assert np.abs(recording.pcm() - exact).max() < 0.51


def test_resampling_pins_its_samples(here: Path) -> None:
    soundfile.write("r.wav", np.array([0, 0, 0, 30000, 0, 0, 0, -30000, 0], dtype=np.int16), 48000)
    assert load("r.wav", "Hi")[0].pcm().tolist() == [-1045, 11994, -8254]


def test_a_silent_file_is_taken_and_said_so(here: Path) -> None:
    soundfile.write("s.wav", np.zeros(100, dtype=np.int16), 16000)
    assert load("s.wav", "Hi")[1] == ("silent: every sample is 0",)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("call/missing.wav", "no such file or directory"),
        ("folder", "is a directory"),
        ("nothing.wav", "the file is empty"),
        ("text.wav", "not audio that can be read (format not recognised)"),
        ("text.raw", "not audio that can be read (format not recognised)"),
        ("no_samples.wav", "audio of 0 samples found"),
        ("song.ogg", "OGG audio found"),
        ("long.flac", "601 seconds of audio found"),
        ("nan.wav", "samples that are no numbers found"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_what_is_accepted(here: Path, name: str, found: str) -> None:
    Path("folder").mkdir()
    Path("nothing.wav").touch()
    Path("text.wav").write_text("not audio " * 50)
    Path("text.raw").write_text("not audio")
    if name == "no_samples.wav":
        soundfile.write(name, TONE[:0], 16000)
    elif name == "song.ogg":
        soundfile.write(name, TONE, 16000)
    elif name == "long.flac":
        soundfile.write(name, np.zeros(4000 * 601, dtype=np.int16), 4000)
    elif name == "nan.wav":
        soundfile.write(name, np.array([0.0, np.nan]), 16000, subtype="FLOAT")
    with pytest.raises(AudioError) as refused:
        load(name, "Hi")
    assert str(refused.value) == f"{name}: {found}{ACCEPTED}"


def test_an_absurd_rate_is_refused(here: Path) -> None:
    soundfile.write("slow.wav", TONE, 2000)
    with pytest.raises(AudioError, match=r"^slow.wav: a rate of 2000 Hz found; 4000 to 192000 Hz is accepted$"):
        load("slow.wav", "Hi")
