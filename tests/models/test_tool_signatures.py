"""A function's annotations become the JSON Schema of a tool's arguments."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

import pytest

from bargein.models.tool_signatures import parameters_of, takes_context
from bargein.pipelines.tools.spec import SpecError

if TYPE_CHECKING:
    from nowhere import Imagined

ACCEPTED = "accepted is str, int, float, bool, list, dict, Literal, Optional or a union of these; or give parameters="


def properties(function: Any) -> dict[str, Any]:
    return parameters_of(function, "t")["properties"]


def test_plain_types_are_required_arguments_and_nothing_else_is_allowed() -> None:
    def book(day: str, people: int, price: float, sure: bool, extras: list, more: dict) -> None: ...

    assert parameters_of(book, "book") == {
        "type": "object",
        "properties": {
            "day": {"type": "string"},
            "people": {"type": "integer"},
            "price": {"type": "number"},
            "sure": {"type": "boolean"},
            "extras": {"type": "array"},
            "more": {"type": "object"},
        },
        "additionalProperties": False,
        "required": ["day", "people", "price", "sure", "extras", "more"],
    }


def test_a_default_makes_an_argument_optional() -> None:
    def book(day: str, people: int = 2, *, note: str = "") -> None: ...

    assert parameters_of(book, "book")["required"] == ["day"]
    assert "required" not in parameters_of(lambda: None, "none")


def test_nested_choices_unions_and_descriptions() -> None:
    def f(
        day: Literal["fri", 6, True, None],
        old: Optional[str],  # noqa: UP045
        new: int | None,
        either: list[int] | dict[str, bool],
        people: Annotated[int, "how many", {"minimum": 1}],
        anything: Any,
    ) -> None: ...

    assert properties(f) == {
        "day": {"enum": ["fri", 6, True, None]},
        "old": {"type": ["string", "null"]},
        "new": {"type": ["integer", "null"]},
        "either": {
            "anyOf": [
                {"type": "array", "items": {"type": "integer"}},
                {"type": "object", "additionalProperties": {"type": "boolean"}},
            ]
        },
        "people": {"type": "integer", "description": "how many", "minimum": 1},
        "anything": {},
    }


def test_the_context_is_no_argument_and_its_annotation_is_not_read() -> None:
    def f(day: str, *, ctx: Imagined) -> Imagined: ...

    assert list(properties(f)) == ["day"]
    assert takes_context(f)
    assert not takes_context(lambda day: day)


def test_methods_and_wrapped_functions_are_read_too() -> None:
    class Shop:
        def buy(self, what: str) -> None: ...

    @functools.wraps(Shop.buy)
    def wrapped(*args: Any, **kwargs: Any) -> None: ...

    assert list(properties(Shop().buy)) == ["what"]
    assert properties(functools.partial(wrapped, Shop())) == {"what": {"type": "string"}}


def no_annotation(day): ...  # type: ignore[no-untyped-def]
def positional(day: str, /) -> None: ...
def many(*days: str) -> None: ...
def keywords(**days: str) -> None: ...
def of_bytes(day: bytes) -> None: ...
def by_number(day: dict[int, str]) -> None: ...
def missing(day: Imagined) -> None: ...


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (no_annotation, f"tool t: parameter day has no annotation; {ACCEPTED}"),
        (positional, "tool t: parameter day is positional-only; accepted is one that is passed by its name"),
        (many, "tool t: parameter days is variadic positional; accepted is one that is passed by its name"),
        (keywords, "tool t: parameter days is variadic keyword; accepted is one that is passed by its name"),
        (of_bytes, f"tool t: parameter day: bytes has no JSON form; {ACCEPTED}"),
        (by_number, f"tool t: parameter day: dict has no JSON form; {ACCEPTED}"),
        (missing, f"tool t: an annotation cannot be read (name 'Imagined' is not defined); {ACCEPTED}"),
    ],
)
def test_what_has_no_schema_is_refused_in_a_sentence(function: Any, sentence: str) -> None:
    with pytest.raises(SpecError) as refused:
        parameters_of(function, "t")
    assert str(refused.value) == sentence
