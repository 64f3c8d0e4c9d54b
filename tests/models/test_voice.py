"""The synthetic voice, and who speaks what."""

from __future__ import annotations

from hashlib import sha256

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bargein.models.acoustics import rms
from bargein.models.fixtures import find
from bargein.models.recordings import Word
from bargein.models.vad_energy import EnergyVad, VadState
from bargein.models.voice import speak, synthesize

LINE = "Well, the bus is late. Try the tram?"


def test_a_packaged_line_is_spoken_by_its_recording_and_another_by_the_synthetic_voice() -> None:
    assert speak("caller", "Stop, stop.") == find("caller", "Stop, stop.")
    assert speak("agent", " Stop, stop.") == synthesize("agent", " Stop, stop.")


def test_a_word_lasts_by_its_letters_and_a_pause_by_its_mark() -> None:
    ms = 16
    assert synthesize("agent", "Well, at 2. See?").words == (
        Word("Well,", 0, 215 * ms),
        Word(" at", 315 * ms, 460 * ms),
        Word(" 2.", 460 * ms, 570 * ms),
        Word(" See?", 730 * ms, 875 * ms),
    )


def test_spaces_around_a_text_change_its_spelling_and_not_its_sound() -> None:
    bare, spaced = synthesize("agent", LINE), synthesize("agent", f" {LINE} ")
    assert spaced.text == f" {LINE} "
    assert (spaced.content, spaced.length) == (bare.content, bare.length)
    assert spaced.pcm() is bare.pcm()


def test_the_sound_is_pinned_and_belongs_to_its_content_key() -> None:
    line = synthesize("caller", LINE)
    assert line.content.startswith("13ca3851466c65e5")
    assert sha256(line.pcm().astype("<i2").tobytes()).hexdigest().startswith("23f0473869cb4a13")


def test_caller_and_agent_speak_at_once_as_loud_but_not_as_high() -> None:
    pitches = []
    for voice in ("caller", "agent"):
        pcm = synthesize(voice, "aaaa").pcm()
        assert abs(rms(pcm) - 3277) <= 2
        spectrum = np.abs(np.fft.rfft(pcm, 16000))
        pitches.append(int(spectrum[80:300].argmax()) + 80)
    assert pitches == [123, 229]


@pytest.mark.parametrize("voice", ["caller", "agent"])
def test_the_detector_hears_a_line_as_one_stretch(voice: str) -> None:
    energies = synthesize(voice, LINE).frame_energies(13)
    edges, _ = EnergyVad().settle(energies, VadState(), len(energies) + 20)
    assert [edge.kind for _, edge in edges] == ["start", "stop"]


@pytest.mark.parametrize("voice", ["caller", "agent"])
def test_no_silence_inside_a_sentence_reaches_150_ms(voice: str) -> None:
    vad = EnergyVad()
    for sentence in (LINE.split(".")[0], "One, two; three: four, strengths, and twelfths."):
        quiet = synthesize(voice, sentence).frame_energies(0) < vad.off
        longest = max((len(run) for run in "".join("q" if one else " " for one in quiet).split()), default=0)
        assert longest * 20 < 150


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(["caller", "agent"]), st.text(max_size=12))
def test_any_text_can_be_said(voice: str, text: str) -> None:
    line = synthesize(voice, text)
    assert "".join(word.text for word in line.words) == text
    assert len(line.pcm()) == line.length
    assert (line.length > 0) == bool(text.strip())


@pytest.mark.parametrize(
    ("text", "samples"),
    [("予約", 3520), ("Ağrı", 4640), ("...", 1760), ("👍", 1760), ("42", 3520), ("  ", 0), ("", 0)],
)
def test_other_scripts_and_signs_take_time_and_spaces_take_none(text: str, samples: int) -> None:
    line = synthesize("agent", text)
    assert (line.length, len(line.pcm())) == (samples, samples)


def test_an_unknown_voice_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^there is no voice 'robot'; the voices are caller, agent$"):
        speak("robot", "Hi")
