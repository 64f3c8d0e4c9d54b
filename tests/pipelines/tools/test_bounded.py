"""Sizes and cuts of JSON and text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bargein.pipelines.tools.bounded import NotJson, canonical_json, cut, json_prefix, json_size, to_json

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT | st.integers(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_the_size_is_that_of_the_compact_text(value):
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    size = len(text.encode())
    assert to_json(value) == text
    assert json_size(value, 10_000) == size
    assert json_size(value, size) == size
    assert json_size(value, size - 1) > size - 1


@given(JSON, st.integers(0, 40))
def test_a_prefix_is_the_start_of_the_text_and_covers_the_limit(value, limit):
    text, prefix = to_json(value), json_prefix(value, limit)
    assert text.startswith(prefix)
    assert prefix == text or len(prefix.encode()) > limit


@given(TEXT, st.integers(3, 40))
def test_a_cut_fits_and_keeps_whole_characters(text, limit):
    shown = cut(text, limit)
    assert len(shown.encode()) <= limit
    if len(text.encode()) <= limit:
        assert shown == text
    else:
        assert text.startswith(shown.removesuffix("…"))
        assert shown.endswith("…")
        assert len(shown.encode()) > limit - 4


def test_a_cut_shorter_than_its_marker_is_a_plain_cut():
    assert cut("abcdef", 2, "...[truncated]") == "ab"


def test_a_lone_surrogate_is_replaced_wherever_text_leaves():
    assert cut("a\ud800b", 64) == "a?b"


class Counting(list):
    def __init__(self, items):
        super().__init__(items)
        self.read = 0

    def __iter__(self):
        for item in super().__iter__():
            self.read += 1
            yield item


def test_size_and_prefix_stop_reading_at_the_limit():
    huge = Counting([["x" * 50] for _ in range(100_000)])
    assert json_size(["start", huge], 1_000) > 1_000
    assert huge.read == 1
    assert len(json_prefix(huge, 1_000)) < 1_100
    assert huge.read < 30
    narrow = Counting([["x" * 500] for _ in range(100)])
    assert json_size(narrow, 1_000) > 1_000
    assert narrow.read == 3


@pytest.mark.parametrize("value", [object(), {1, 2}, float("nan"), {"a": float("inf")}, b"x", {(1, 2): 3}])
def test_what_has_no_json_text_is_refused(value):
    with pytest.raises(NotJson):
        json_size(value, 1_000)


def test_canonical_text_ignores_key_order_only():
    assert canonical_json({"b": [1, 2], "a": 1}) == canonical_json({"a": 1, "b": [1, 2]}) == '{"a":1,"b":[1,2]}'
    assert canonical_json({"a": 1}) != canonical_json({"a": 1.0})
