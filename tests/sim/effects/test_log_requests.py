"""What is asked of a handler of the program's own may be any plain data, and comes out of a log as it went in."""

from __future__ import annotations

from typing import Any

import pytest

from bargein.sim.effects.bus import EffectKind
from bargein.sim.effects.documents import DocumentError
from bargein.sim.effects.identity import stable_hash
from bargein.sim.effects.log import EffectRecord, Step

ASKED: list[Any] = ["look", "", ["a", 1], [], 7, 0.5, True, None, {"of": "it"}, {}]


def line(request: Any) -> dict[str, Any]:
    step = Step(0, 0, ["land"])
    custom = str(EffectKind.CUSTOM)
    made = EffectRecord(0, "x:look", custom, None, "r1", 0, 0, request, stable_hash(request), [], "ok", "seen", [step])
    return made.to_dict()


@pytest.mark.parametrize("request_", ASKED, ids=repr)
def test_it_is_read_back_equal(request_: Any) -> None:
    found = EffectRecord.from_dict(line(request_), "a.log:2", 0).request
    assert (type(found), found) == (type(request_), request_)


@pytest.mark.parametrize("request_", ASKED, ids=repr)
def test_another_one_in_its_place_is_noticed(request_: Any) -> None:
    edited = {**line(request_), "request": "something else"}
    with pytest.raises(DocumentError, match=r"^a\.log:2\.request: it does not fit its hash [0-9a-f]{16}; it was edit"):
        EffectRecord.from_dict(edited, "a.log:2", 0)


def test_one_that_is_missing_is_told() -> None:
    cut = line("look")
    del cut["request"]
    with pytest.raises(DocumentError, match=r"^a\.log:2: request is missing; it was cut off or edited$"):
        EffectRecord.from_dict(cut, "a.log:2", 0)
