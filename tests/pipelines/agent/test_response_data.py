"""Data of a whole answer is a part of its own in a run's message, and the voice message's provider data again."""

from __future__ import annotations

from typing import Any

from bargein.pipelines.agent.answers import StreamFold
from bargein.pipelines.agent.deltas import ResponseData, TextDelta
from bargein.pipelines.agent.parts import OpaquePart

SIGNED: dict[str, Any] = {"wire": "anthropic", "blocks": [{"signature": "abc"}]}


def test_data_of_the_whole_answer_is_kept_in_its_place() -> None:
    fold = StreamFold("r0", 0)
    for item in (TextDelta("Hello"), ResponseData(SIGNED), TextDelta(" there.")):
        fold.feed(item)
    assert [block.whole or block.text for block in fold.blocks] == ["Hello", OpaquePart(SIGNED), " there."]
