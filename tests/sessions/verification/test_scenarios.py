"""The six verification scenarios, run in every shape on the whole pipeline, with nothing left to a range."""

from __future__ import annotations

from typing import Any

import pytest

from bargein import sim
from bargein.pipelines.tools.side_effects import SideEffects
from bargein.sim.effects.bus import EffectBus, EffectKind
from tests.sessions.verification.scripts import SCENARIOS, SHAPES, Shape, seen

CELLS = [(name, shape) for name in SCENARIOS for shape in SHAPES]
cells = pytest.mark.parametrize(("name", "shape"), CELLS, ids=[f"{name}-{shape}" for name, shape in CELLS])


def test_every_scenario_has_a_cell_in_every_shape() -> None:
    assert {name.split()[0] for name in SCENARIOS} == {"S1", "S2", "S3", "S4", "S5", "S6"}
    assert {"plain", "interleaved"} <= set(SHAPES)
    assert len(CELLS) == len(set(CELLS)) == len(SCENARIOS) * len(SHAPES)


@cells
def test_the_run_is_exactly_what_the_scenario_decides(name: str, shape: str) -> None:
    data, wanted = SCENARIOS[name](SHAPES[shape])

    assert seen(sim.run(data)) == wanted


@pytest.mark.parametrize("shape", SHAPES)
def test_calls_of_one_response_have_all_started_before_the_first_has_finished(shape: str) -> None:
    result = sim.run(SCENARIOS["S1"](SHAPES[shape])[0])

    kinds = [r["kind"] for r in result.records if r["kind"] in ("tool.started", "tool.finished")]
    assert kinds == ["tool.started"] * 3 + ["tool.finished"] * 3


@pytest.mark.parametrize("shape", SHAPES)
def test_every_request_of_a_chain_holds_the_results_so_far(shape: str) -> None:
    result = sim.run(SCENARIOS["S2"](SHAPES[shape])[0])

    roles = [[str(message.role) for message in request.messages] for request in result.opened.model.requests]
    exchange = ["assistant", "tool"]
    assert roles == [["user", *exchange * rounds] for rounds in range(4)]


@cells
def test_one_request_too_many_fails_every_cell(name: str, shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dispatch = EffectBus.dispatch

    def once_more(self: EffectBus, kind: EffectKind, *args: Any, **keys: Any) -> Any:
        if kind is EffectKind.COMPLETION and any(effect.kind is kind for effect in self.log):
            dispatch(self, kind, *args, **{**keys, "on_item": None, "on_landed": lambda effect: None})
        return dispatch(self, kind, *args, **keys)

    monkeypatch.setattr(EffectBus, "dispatch", once_more)
    data, wanted = SCENARIOS[name](SHAPES[shape])
    rounds = data["llm"]["rounds"]
    data["llm"]["rounds"] = [rounds[0], *(each for each in rounds[1:] for _ in range(2))]  # answered alike both times

    run = seen(sim.run(data))

    assert run["asked"] == 2 * len(wanted["requests"]) - 1
    assert {**run, "asked": 0} == {**wanted, "asked": 0}  # nothing else shows it
    assert run != wanted


@pytest.mark.parametrize("shape", SHAPES)
def test_without_the_repeat_rule_a_second_booking_appears(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SideEffects, "_repeated", lambda self, slot, digest: None)
    data, wanted = SCENARIOS["S3"](SHAPES[shape])

    run = seen(sim.run(data))

    assert run != wanted
    assert [content for _, _, content in (m for m in run["context"] if m[0] == "tool")] == [
        '{"booking":"BK-1001"}',
        '{"booking":"BK-1002"}',
    ]
    assert "effect_once" in [each.invariant for each in run["violations"]]


def test_interleaved_fragments_take_one_delta_each() -> None:
    arguments = ({"city": "Izmir"}, {"city": "Ankara"}, {"city": "Istanbul"})  # 16, 17 and 19 bytes

    assert SHAPES["plain"].response_us(*arguments) == 350_000 + 2 * 20_000
    assert SHAPES["interleaved"].response_us(*arguments) == 350_000 + 7 * 20_000
    assert isinstance(SHAPES["interleaved"], Shape)
