"""Files that are written whole or not at all, and the recording of a call."""

from __future__ import annotations

import os

import numpy as np
import pytest
import soundfile

from bargein.sim.report.atomic import write_whole
from bargein.sim.report.wav import write_wav


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "out.txt"
    path.write_bytes(b"old and longer")
    assert write_whole(path, b"new") == path
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_is_as_readable_as_any_other(tmp_path):
    (tmp_path / "plain").write_bytes(b"")
    written = write_whole(tmp_path / "out", b"")
    assert written.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_failed_write_leaves_what_was_there(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError) as caught:
        write_whole(tmp_path / "folder", b"new")
    assert caught.value.filename == str(tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
    with pytest.raises(FileNotFoundError) as caught:
        write_whole(tmp_path / "absent" / "out", b"new")
    assert caught.value.filename == str(tmp_path / "absent" / "out")


def test_a_link_stays_one_and_the_file_behind_it_is_replaced(tmp_path):
    (tmp_path / "kept").mkdir()
    link, file = tmp_path / "link", tmp_path / "kept" / "out"
    link.symlink_to(file)
    assert write_whole(link, b"made") == link
    assert write_whole(link, b"new") == link
    assert link.is_symlink()
    assert file.read_bytes() == b"new"
    assert list((tmp_path / "kept").iterdir()) == [file]


def test_a_pipe_is_written_into_and_stays_one(tmp_path):
    """As a device is: a file in the place of ``/dev/null`` breaks the machine."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    end = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)  # a read of nothing fails, and does not wait
    try:
        assert write_whole(pipe, b"new") == pipe
        assert os.read(end, 8) == b"new"
    finally:
        os.close(end)
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_recording_has_the_caller_left_and_the_agent_right(tmp_path):
    caller, agent = np.array([1, -2, 32_767], np.int16), np.array([-32_768], np.int16)
    path = write_wav(tmp_path / "call.wav", caller=caller, agent=agent)
    samples, rate = soundfile.read(path, dtype="int16")
    assert rate == 16_000
    assert samples.tolist() == [[1, -32_768], [-2, 0], [32_767, 0]]
    assert soundfile.info(path).subtype == "PCM_16"


def test_the_same_call_is_the_same_file(tmp_path):
    side = np.arange(320, dtype=np.int16)
    first = write_wav(tmp_path / "a.wav", caller=side, agent=side).read_bytes()
    assert write_wav(tmp_path / "b.wav", caller=side, agent=side).read_bytes() == first
    assert len(first) == 44 + 320 * 4


@pytest.mark.parametrize(
    ("caller", "message"),
    [
        (np.zeros(3), "caller has float64 samples of shape (3,); accepted is one channel of int16"),
        (np.zeros((3, 2), np.int16), "caller has int16 samples of shape (3, 2); accepted is one channel of int16"),
    ],
)
def test_samples_of_another_kind_are_refused(tmp_path, caller, message):
    with pytest.raises(TypeError) as caught:
        write_wav(tmp_path / "call.wav", caller=caller, agent=np.zeros(0, np.int16))
    assert caught.value.args == (message,)
    assert list(tmp_path.iterdir()) == []
