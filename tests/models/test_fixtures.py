"""Finding packaged recordings."""

from __future__ import annotations

import pickle
import subprocess
import sys
from functools import partial

import pytest

from bargein.models import fixtures
from bargein.models.fixtures import FixtureError, find, packaged
from bargein.models.recordings import Word


def test_a_line_is_found_by_voice_and_text_and_spelt_as_asked() -> None:
    found = find("agent", " Done.")
    assert found is not None
    assert (found.text, found.voice, found.words) == (" Done.", "agent", (Word(" Done.", 0, found.length),))
    assert found.content == find("agent", "Done.").content  # type: ignore[union-attr]
    assert find("caller", "Done.") is None
    assert find("agent", "done.") is None


def test_every_packaged_line_decodes_to_its_length_and_content() -> None:
    from hashlib import sha256

    for line in packaged():
        assert line.pcm().shape == (line.length,)
        assert sha256(line.pcm().astype("<i2").tobytes()).hexdigest() == line.content


def test_finding_a_line_decodes_nothing() -> None:
    program = (
        "import sys; from bargein.models.fixtures import find;"
        "assert find('caller', 'Stop, stop.').words; print('soundfile' in sys.modules, 'scipy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"


def test_samples_are_decoded_once_and_read_only() -> None:
    line = find("caller", "Stop, stop.")
    assert line is not None
    assert line.pcm() is line.pcm()
    assert not line.pcm().flags.writeable
    assert pickle.loads(pickle.dumps(line)) == line


def test_audio_that_contradicts_the_manifest_is_a_broken_installation() -> None:
    line = find("caller", "Stop, stop.")
    assert line is not None
    assert isinstance(line.source, partial)
    file = line.source.args[0]
    with pytest.raises(FixtureError) as broken:
        fixtures._decode(file, line.length + 1)
    assert str(broken.value) == (
        f"{file}: shape ({line.length},) at 16000 Hz found where the manifest says {line.length + 1} samples"
        " of mono at 16000 Hz; install bargein again"
    )
