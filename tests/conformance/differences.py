"""Two JSON bodies compared, and the table of differences that are no fault.

A difference is a place, what we send and what was recorded. Each that is justified has a kind of `KINDS`; all
others count as different. Left out: judging by file; every rule here is about a kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from json import dumps, loads
from typing import Any

from tests.conformance.evidence import Evidence

__all__ = ["KINDS", "Difference", "differences"]

KINDS = {
    "client_default": "the recording client always writes these members, with null, nothing in them or one fixed value "
    "that the provider takes as its default; we leave them out",
    "text_form": "a text and a list with one part of that text are the same content",
    "argument_spelling": "a call's arguments are an object; where the wire carries them as text, its spelling is free",
    "provider_data_kept": "we carry back a member that the provider sent, and the recording client lost it",
    "tool_order": "we offer tools in the order of their names, so that equal requests are equal bytes",
    "program_edit": "the recorded program stepped in before it went on (repaired or dropped a call, quoted the answer "
    "by itself, said more or offered other tools); the same is done to our context or run",
}

ABSENT = object()

CLIENT_DEFAULTS: tuple[tuple[str, Any], ...] = (
    ("parts.*.thought", False),
    ("systemInstruction.role", "model"),
    ("messages.*.prefix", False),
    ("tool_calls.*.index", 0),
    ("input.*.status", "completed"),  # of a call's output, which the provider never sees incomplete
    ("tools.*.strict", False),
    ("function.strict", False),
)
"""Ends of a place, and the value that stands there."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two bodies part; ``kind`` is empty where nothing justifies it."""

    place: str
    ours: Any
    recorded: Any
    kind: str = ""

    def __str__(self) -> str:
        shown = [
            "nothing" if each is ABSENT else dumps(each, ensure_ascii=False) for each in (self.ours, self.recorded)
        ]
        return f"{self.place}: {shown[0][:200]} for {shown[1][:200]}"


def differences(ours: Any, recorded: Any, answers: Evidence, path: tuple[Any, ...] = ()) -> Iterator[Difference]:
    """Every difference, justified or not.

    Args:
        answers: what the answers so far held, in which a member that we kept has to stand.
    """
    if type(ours) is dict and type(recorded) is dict:
        for key in sorted({*ours, *recorded}):
            here = (*path, key)
            if key not in ours:
                yield _left_out(recorded[key], here)
            elif key not in recorded or (recorded[key] is None and ours[key] is not None):
                yield _kept(ours[key], recorded.get(key, ABSENT), answers, here)
            else:
                yield from differences(ours[key], recorded[key], answers, here)
    elif type(ours) is list and type(recorded) is list and len(ours) == len(recorded):
        if path and path[-1] in ("tools", "functionDeclarations") and _names(ours) != _names(recorded):
            if sorted(_names(ours)) != sorted(_names(recorded)):
                yield Difference(_place(path), ours, recorded)
                return
            yield Difference(_place(path), _names(ours), _names(recorded), "tool_order")
            recorded = sorted(recorded, key=_name)
        for at, (left, right) in enumerate(zip(ours, recorded, strict=True)):
            yield from differences(left, right, answers, (*path, at))
    elif not _same(ours, recorded):
        yield Difference(_place(path), ours, recorded, _spelling(ours, recorded, path))


def _same(ours: Any, recorded: Any) -> bool:
    return bool(ours == recorded) and (type(ours) is bool) == (type(recorded) is bool)


def _left_out(value: Any, path: tuple[Any, ...]) -> Difference:
    default = value is None or any(_ends(path, end) and _same(value, each) for end, each in CLIENT_DEFAULTS)
    empty = type(value) in (dict, list) and not value
    nulls = type(value) is dict and all(each is None for each in value.values())
    return Difference(_place(path), ABSENT, value, "client_default" if default or empty or nulls else "")


def _kept(value: Any, recorded: Any, answers: Evidence, path: tuple[Any, ...]) -> Difference:
    in_history = path[0] in ("messages", "input", "contents") and answers.holds(path[-1], value)
    return Difference(_place(path), value, recorded, "provider_data_kept" if in_history else "")


def _spelling(ours: Any, recorded: Any, path: tuple[Any, ...]) -> str:
    if path and path[-1] == "arguments" and type(ours) is str and type(recorded) is str:
        try:
            return "argument_spelling" if _same(loads(ours), loads(recorded)) else ""
        except ValueError:
            return ""
    texts = [_one_text(each) for each in (ours, recorded)]
    return "text_form" if texts[0] is not None and texts[0] == texts[1] else ""


def _one_text(content: Any) -> str | None:
    if type(content) is list and len(content) == 1 and type(content[0]) is dict and set(content[0]) <= {"type", "text"}:
        content = content[0].get("text")
    return content if type(content) is str else None


def _names(tools: list[Any]) -> list[str]:
    return [_name(each) for each in tools]


def _name(tool: dict[str, Any]) -> str:
    return str(tool.get("name") or (tool.get("function") or {}).get("name"))


def _ends(path: tuple[Any, ...], end: str) -> bool:
    steps = end.split(".")
    tail = path[-len(steps) :]
    return len(tail) == len(steps) and all(
        want == have or (want == "*" and type(have) is int) for want, have in zip(steps, tail, strict=True)
    )


def _place(path: tuple[Any, ...]) -> str:
    return ".".join(str(step) for step in path)
