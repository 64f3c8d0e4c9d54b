"""The verification scenarios through a live provider: the same instants, answers, counters and contexts as in text.

The wire takes no time here, so that the tables of the text shapes hold to the microsecond; ``test_wire`` shows the
messages themselves, with a wire that takes its time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from bargein import sim
from tests.sessions.verification.scripts import SCENARIOS, TTFT_US, Shape, seen

PROVIDERS = ("realtime", "gemini_live")


@dataclass(frozen=True)
class LiveShape(Shape):
    """A live response: its calls come with its first event, all at once."""

    def response_us(self, *arguments: dict[str, Any], words: int = 0, ttft_us: int = TTFT_US) -> int:
        return ttft_us


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_live_provider_gives_the_table_of_the_text_shapes(name: str, provider: str) -> None:
    data, wanted = SCENARIOS[name](LiveShape(provider, {}, None))

    run = seen(sim.run({**data, "s2s": {"provider": provider, "latency": "0ms"}}))

    run["counters"] = {key: value for key, value in run["counters"].items() if not key.startswith("s2s.")}
    assert run == wanted
