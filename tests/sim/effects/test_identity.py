"""Canonical form, stable hash, handler keys and differences."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bargein.sim.effects.identity import (
    KeyParts,
    canonical,
    differences,
    key_parts,
    memory_key,
    model_key,
    stable_hash,
    tool_key,
    written,
)

SPEC = {"model": "m", "tools": ["b", "a"], "limits": {"rounds": 6, "share": 0.5}, "text": "für \u2028"}


def test_the_canonical_form_sorts_keys_and_keeps_lists_and_characters() -> None:
    assert canonical(SPEC).decode() == (
        '{"limits":{"rounds":6,"share":0.5},"model":"m","text":"für \u2028","tools":["b","a"]}'
    )


def test_the_written_form_keeps_the_order_of_keys() -> None:
    assert written({"b": 1, "a": {"d": 2, "c": 3}}) == b'{"b":1,"a":{"d":2,"c":3}}'


def test_half_a_surrogate_pair_is_written_as_its_escape() -> None:
    assert canonical("\ud83d") == b'"\\ud83d"'


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, object()])
def test_what_is_not_plain_data_has_no_canonical_form(value: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        canonical(value)


def test_the_hash_does_not_depend_on_the_order_of_insertion() -> None:
    assert stable_hash(SPEC) == stable_hash(dict(reversed(SPEC.items()))) == "b10fc2393a07caf2"


@pytest.mark.parametrize(
    "other", [{**SPEC, "model": "n"}, {**SPEC, "tools": ["a", "b"]}, {**SPEC, "more": None}, {**SPEC, "limits": {}}]
)
def test_the_hash_is_another_for_any_other_value(other: dict[str, object]) -> None:
    assert stable_hash(other) != stable_hash(SPEC)


def test_an_int_and_a_float_hash_apart_and_so_do_true_and_one() -> None:
    assert len({stable_hash(1), stable_hash(1.0), stable_hash(True), stable_hash("1")}) == 4


def test_the_hash_is_the_same_in_another_process_with_another_hash_seed() -> None:
    code = f"from bargein.sim.effects.identity import stable_hash; print(stable_hash({SPEC!r}), end='')"
    for seed in ("1", "77"):
        ran = subprocess.run([sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True)
        assert ran.stdout == stable_hash(SPEC)


# -- keys -----------------------------------------------------------------------------------------------------


def test_keys_have_the_pinned_forms() -> None:
    assert model_key("golden", "default") == "golden/model:default"
    assert tool_key("golden", "add", 0) == "golden/tool:add#0"
    assert memory_key("golden") == "golden/memory"


owners = st.text(st.characters(exclude_characters="/", exclude_categories=["Cs"]), min_size=1, max_size=8)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


@given(owners, names, st.integers(0, 999))
def test_a_key_is_read_back_into_its_parts(owner: str, name: str, number: int) -> None:
    assert key_parts(model_key(owner, name)) == KeyParts(owner, "model", name, None)
    assert key_parts(tool_key(owner, name, number)) == KeyParts(owner, "tool", name, number)
    assert key_parts(memory_key(owner)) == KeyParts(owner, "memory", "", None)
    assert key_parts(f"{owner}/retrieve:context#1") == KeyParts(owner, "retrieve", "context", 1)


@pytest.mark.parametrize(
    "key", ["", "golden", "/memory", "golden/model:", "golden/tool:add", "golden/tool:add#01", "a/x:y"]
)
def test_a_malformed_key_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match=r"is no handler key; accepted are owner/model:label"):
        key_parts(key)


# -- differences ----------------------------------------------------------------------------------------------


def test_every_difference_is_named_by_its_place() -> None:
    recorded = {"a": 1, "b": {"c": [1, {"d": "x"}]}, "gone": None, "long": "y" * 100}
    found = {"a": True, "b": {"c": [1, {"d": "z"}, 3]}, "new": [], "long": ""}
    assert list(differences(recorded, found)) == [
        "a: recorded was 1, found true",
        'b.c[1].d: recorded was "x", found "z"',
        "b.c[2]: recorded was nothing, found 3",
        "gone: recorded was null, found nothing",
        f'long: recorded was "{"y" * 56}..., found ""',
        "new: recorded was nothing, found []",
    ]
    assert list(differences(1, 2, "seed")) == ["seed: recorded was 1, found 2"]
    assert list(differences(recorded, recorded)) == []
