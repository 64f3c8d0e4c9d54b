"""A run as JUnit XML, which every CI service shows: each invariant and each expectation is a test case.

``bargein run --junit`` writes it; under pytest, pytest's own ``--junit-xml`` does. Times are left out: a simulated
minute is none of the build's. Left out also: the timeline; its digest is a property of the suite.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING
from xml.etree import ElementTree as Xml

from bargein.sim.lab.invariants import INVARIANTS, Violation

if TYPE_CHECKING:
    from bargein.sim.lab.result import Result

__all__ = ["junit"]

_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(result: Result) -> bytes:
    """The report, UTF-8: one suite, its cases in the order in which they are checked."""
    name = result.scenario.name
    suite = Xml.Element("testsuite", name=_text(name))
    properties = Xml.SubElement(suite, "properties")
    for key in ("seed", "tie_seed", "digest", "virtual_us"):
        value = getattr(result, key)
        if value is not None:
            Xml.SubElement(properties, "property", name=key, value=str(value))
    _invariants(suite, name, result)
    for expectation in result.expectations:
        case = Xml.SubElement(suite, "testcase", classname=_text(f"{name}.expect"), name=_text(expectation.name))
        if not expectation.ok:
            Xml.SubElement(case, "failure", message=_text(expectation.message))
    cases = suite.findall("testcase")
    counts = {"tests": len(cases)}
    for what, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        counts[what] = sum(case.find(tag) is not None for case in cases)
    for what, count in counts.items():
        suite.set(what, str(count))
    root = Xml.Element("testsuites")
    root.append(suite)
    Xml.indent(root)
    text: bytes = Xml.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _invariants(suite: Xml.Element, scenario: str, result: Result) -> None:
    """A case for each invariant, and one for a simulation that could not go on."""
    broken: dict[str, list[Violation]] = {}
    for violation in result.violations:
        broken.setdefault(violation.invariant, []).append(violation)
    expected = set(result.scenario.expect.violations)
    for name in [*(name for name in broken if name not in INVARIANTS), *INVARIANTS]:
        case = Xml.SubElement(suite, "testcase", classname=_text(f"{scenario}.invariants"), name=name)
        if name in result.check_settings.off:
            Xml.SubElement(case, "skipped", message="the scenario turns it off")
        elif name in broken and name not in expected:
            tag = "failure" if name in INVARIANTS else "error"
            found = Xml.SubElement(case, tag, message=_text(broken[name][0].message))
            found.text = _text(_lines(broken[name]))


def _lines(violations: Iterable[Violation]) -> str:
    return "\n".join(f"{violation.t} us: {violation.message}" for violation in violations)


def _text(text: str) -> str:
    """What XML can hold of a text; the rest is shown as the replacement character."""
    return _NO_XML.sub("\ufffd", text)
