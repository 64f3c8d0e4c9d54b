"""Files in which anything at all was changed are refused with one sentence, or mean what they meant."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bargein import sim
from bargein.sim.effects.checkpoint import Checkpoint
from bargein.sim.effects.documents import DocumentError
from bargein.sim.effects.log import EffectLog
from bargein.sim.lab.checkpoints import When, take_checkpoint
from bargein.sim.scenario.build import Plan

_, LOG, SAVED = take_checkpoint(Plan(sim.load("clip_overtaking")), When.parse("filler.due"))
READERS = {"log": (EffectLog, LOG.to_bytes()), "checkpoint": (Checkpoint, SAVED.to_bytes())}


@pytest.mark.parametrize("kind", READERS)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_bytes_that_were_replaced_removed_or_put_in(kind: str, data: st.DataObject) -> None:
    reader, raw = READERS[kind]
    at = data.draw(st.integers(0, len(raw) - 1))
    removed = data.draw(st.integers(0, 40))
    put_in = data.draw(st.one_of(st.binary(max_size=12), st.sampled_from([b"{}", b"[", b"1e9", b"null", b"\n", b'"'])))
    changed = raw[:at] + put_in + raw[at + removed :]
    told, meant = "", b""
    try:
        meant = reader.from_bytes(changed, "a.file").to_bytes()
    except DocumentError as problem:
        told = str(problem)
    assert meant == raw or (told.startswith("a.file") and "\n" not in told)


@pytest.mark.parametrize("kind", READERS)
def test_a_file_that_ends_anywhere_too_soon(kind: str) -> None:
    reader, raw = READERS[kind]
    for length in range(0, len(raw) - 1, 97):
        with pytest.raises(DocumentError):
            reader.from_bytes(raw[:length], "a.file")
