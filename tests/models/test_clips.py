"""Clips: a store that does not change, what it has, and what it only announces."""

from __future__ import annotations

from bargein.models.clips import RenderedClips
from bargein.models.tts import spoken

TEXTS = {"one_moment": "One moment, please.", "hold_on": "Hold on."}


def test_a_clip_is_the_phrase_in_the_agents_voice_at_16_khz() -> None:
    store = RenderedClips(TEXTS, "agent")
    assert store.has("one_moment")
    assert store.clip("one_moment") == (spoken("agent", "One moment, please."), 16_000)


def test_an_unknown_key_is_not_there() -> None:
    store = RenderedClips(TEXTS, "agent")
    assert (store.has("goodbye"), store.clip("goodbye")) == (False, None)


def test_a_missing_clip_cannot_be_had_and_the_others_can() -> None:
    store = RenderedClips(TEXTS, "agent", frozenset({"hold_on"}))
    assert (store.has("hold_on"), store.clip("hold_on"), store.has("one_moment")) == (False, None, True)


def test_a_store_may_be_of_another_rate() -> None:
    clip = RenderedClips(TEXTS, "agent", rate_hz=8_000).clip("hold_on")
    assert clip is not None
    assert clip[1] == 8_000


def test_a_store_does_not_change_with_what_it_was_made_of() -> None:
    texts = dict(TEXTS)
    store = RenderedClips(texts, "agent")
    texts.clear()
    assert store.has("hold_on")
