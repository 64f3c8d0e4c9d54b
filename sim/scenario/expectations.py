"""Whether a run came out as its scenario expects, one verdict for each thing expected.

The lab calls it after a run with the timeline and what was derived from it; it knows nothing of the stages. A
message says what was found and what was wanted, also where they agree.
Left out: the invariants, which hold for every scenario; ``bargein.sim.lab`` checks those.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bargein.sim.kernel.durations import format_us
from bargein.sim.scenario.expected import Expect, MessageExpectation, Range
from bargein.sim.scenario.moments import EventExpectation
from bargein.sim.scenario.schema import show
from bargein.sim.scenario.suggest import unknown

__all__ = ["Expectation", "check_expectations"]


@dataclass(frozen=True, slots=True)
class Expectation:
    """One thing expected: its key in the scenario, whether it is so, and what was found and wanted."""

    name: str
    ok: bool
    message: str


def check_expectations(
    expect: Expect,
    records: Sequence[Mapping[str, Any]],
    *,
    context: Sequence[Mapping[str, Any]],
    heard: Sequence[str],
    tools: Mapping[str, Mapping[str, Any]],
    metrics: Mapping[str, Any],
    violations: Sequence[str] = (),
) -> list[Expectation]:
    """A verdict for each thing that the scenario expects, in the order of its keys.

    Args:
        expect: what is expected.
        records: the timeline, in order.
        context: the final messages as ``{role, text, error, calls}``; a first system message is passed over.
        heard: what the caller heard, utterance by utterance.
        tools: for each tool ``{runs: int, outcomes: [name, ...]}``.
        metrics: the session's metrics by name; a duration is microseconds, and its name ends in ``_us``.
        violations: the names of the invariants that were broken.
    """
    return [
        *_tools(expect, tools),
        *(_event(each, index, records) for index, each in enumerate(expect.events)),
        *_order(expect, records),
        *_counts(expect, records),
        *_context(expect.context, context),
        *_heard(expect.heard, heard),
        *_spoken(expect.spoken, records),
        *(_metric(name, bounds, metrics) for name, bounds in expect.metrics.items()),
        *_violations(expect.violations, violations),
    ]


def _equal(name: str, found: Any, wanted: Any) -> Expectation:
    return Expectation(name, found == wanted, f"found {_text(found)}; wanted {_text(wanted)}")


def _text(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_text(each) for each in value)}]"
    return show(value)


def _tools(expect: Expect, tools: Mapping[str, Mapping[str, Any]]) -> Iterator[Expectation]:
    for tool, runs in expect.tool_runs.items():
        yield _equal(f"tool_runs.{tool}", tools.get(tool, {}).get("runs", 0), runs)
    for tool, outcomes in expect.outcomes.items():
        yield _equal(f"outcomes.{tool}", list(tools.get(tool, {}).get("outcomes", ())), list(outcomes))


def _event(wanted: EventExpectation, index: int, records: Sequence[Mapping[str, Any]]) -> Expectation:
    name = f"events[{index}]"
    what = wanted.match.describe()
    times = [record["t"] for record in records if wanted.match.fits(record)]
    if len(times) < wanted.nth:
        return Expectation(name, False, f"found {len(times)} of {what}; wanted at least {wanted.nth}")
    at_us = times[wanted.nth - 1]
    found = f"found {what} number {wanted.nth} at {format_us(at_us)}"
    if wanted.at_us is not None:
        return Expectation(name, at_us == wanted.at_us, f"{found}; wanted at {format_us(wanted.at_us)}")
    if wanted.between_us is not None:
        low_us, high_us = wanted.between_us
        between = f"between {format_us(low_us)} and {format_us(high_us)}"
        return Expectation(name, low_us <= at_us <= high_us, f"{found}; wanted {between}")
    return Expectation(name, True, f"{found}; wanted at any time")


def _order(expect: Expect, records: Sequence[Mapping[str, Any]]) -> Iterator[Expectation]:
    """Each after the one before it; taking the first that fits finds an order if there is one."""
    if not expect.order:
        return
    position = 0
    for index, match in enumerate(expect.order):
        ahead = next((at for at in range(position, len(records)) if match.fits(records[at])), None)
        if ahead is None:
            before = f" after {expect.order[index - 1].describe()}" if index else ""
            message = f"found no {match.describe()}{before}; wanted it as number {index + 1}"
            yield Expectation("order", False, message)
            return
        position = ahead + 1
    yield Expectation("order", True, f"found all {len(expect.order)} events in this order; wanted the same")


def _counts(expect: Expect, records: Sequence[Mapping[str, Any]]) -> Iterator[Expectation]:
    counted = Counter(record["kind"] for record in records)
    for kind, bounds in expect.counts.items():
        found = counted[kind]
        yield Expectation(f"counts.{kind}", bounds.holds(found), f"found {found}; wanted {_bounds(bounds, str)}")


def _context(
    wanted: Sequence[MessageExpectation] | None, messages: Sequence[Mapping[str, Any]]
) -> Iterator[Expectation]:
    if wanted is None:
        return
    found = list(messages[1:] if messages and messages[0].get("role") == "system" else messages)
    if len(found) != len(wanted):
        roles = _text([str(message.get("role")) for message in found])
        yield Expectation(
            "context", False, f"found {len(found)} messages {roles}; wanted {_text([each.role for each in wanted])}"
        )
        return
    for index, (message, each) in enumerate(zip(found, wanted, strict=True)):
        yield _message(f"context[{index}]", message, each)


def _message(name: str, message: Mapping[str, Any], wanted: MessageExpectation) -> Expectation:
    text = str(message.get("text") or "")
    pairs: list[tuple[str, Any, Any]] = [("role", message.get("role"), wanted.role)]
    if wanted.text is not None:
        pairs.append(("text", text, wanted.text))
    if wanted.error is not None:
        pairs.append(("error", message.get("error") or "", wanted.error))
    if wanted.calls is not None:
        pairs.append(("calls", list(message.get("calls") or ()), list(wanted.calls)))
    wrong = [(key, found, value) for key, found, value in pairs if found != value]
    for key, found, value in wrong[:1]:
        return Expectation(name, False, f"found {key} {_text(found)}; wanted {_text(value)}")
    if wanted.contains is not None and wanted.contains not in text:
        return Expectation(name, False, f"found text {_text(text)}; wanted {_text(wanted.contains)} in it")
    return Expectation(name, True, f"found {message.get('role')} {_text(text)}; wanted the same")


def _heard(wanted: tuple[str, ...] | str | None, heard: Sequence[str]) -> Iterator[Expectation]:
    """Spaces around an utterance are no matter: they belong to how sentences were cut."""
    found = [each.strip() for each in heard if each.strip()]
    if isinstance(wanted, str):
        yield _equal("heard", " ".join(found), wanted.strip())
    elif wanted is not None:
        yield _equal("heard", found, [each.strip() for each in wanted])


def _spoken(wanted: tuple[str, ...] | None, records: Sequence[Mapping[str, Any]]) -> Iterator[Expectation]:
    if wanted is None:
        return
    pushed = (r["text"] for r in records if r["kind"] == "context.pushed" and r["role"] == "assistant")
    yield _equal("spoken", [text.strip() for text in pushed if text.strip()], [each.strip() for each in wanted])


def _metric(name: str, bounds: Range, metrics: Mapping[str, Any]) -> Expectation:
    key = name if name in metrics else f"{name}_us"
    title = f"metrics.{name}"
    if key not in metrics:
        return Expectation(title, False, f"found none; {unknown('metric', name, metrics)}")
    shown = format_us if key.endswith("_us") else str
    value = metrics[key]
    values = list(value) if isinstance(value, list | tuple) else [value]
    if not values or None in values:
        return Expectation(title, False, f"found nothing measured; wanted {_bounds(bounds, shown)}")
    message = f"found {', '.join(shown(each) for each in values)}; wanted {_bounds(bounds, shown)}"
    return Expectation(title, all(bounds.holds(each) for each in values), message)


def _bounds(bounds: Range, shown: Any) -> str:
    if bounds.is_ is not None:
        return str(shown(bounds.is_))
    low = f"at least {shown(bounds.min)}" if bounds.min is not None else ""
    high = f"at most {shown(bounds.max)}" if bounds.max is not None else ""
    return " and ".join(part for part in (low, high) if part)


def _violations(wanted: tuple[str, ...], found: Sequence[str]) -> Iterator[Expectation]:
    if wanted:
        yield _equal("violations", sorted(set(found)), sorted(wanted))
