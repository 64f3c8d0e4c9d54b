"""Numbers over sessions, on small tables that one can reckon by hand."""

from __future__ import annotations

from typing import Any

import pytest

from bargein import sim
from bargein.sim.lab.sweep.fillers import filler_metrics
from bargein.sim.lab.sweep.stats import Difference, TradePoint, amount, ecdf, filler_trade, means, paired, quantile
from bargein.sim.lab.sweep.table import Table
from bargein.sim.scenario.places import ScenarioError

DELAY = "agent.filler.delay"


def _table(columns: tuple[str, ...], rows: list[list[Any]], *varied: str) -> Table:
    return Table(columns, rows, varied, len(rows))


def test_quantiles_are_values_that_occurred() -> None:
    values = [50, 10, 40, 20, 30]
    assert [quantile(values, share) for share in (0, 0.2, 0.21, 0.5, 0.95, 1)] == [10, 10, 20, 30, 50, 50]


def test_the_share_of_values_up_to_each() -> None:
    assert ecdf([30, 10, 20, 20]) == ([10, 20, 20, 30], [0.25, 0.5, 0.75, 1.0])


def test_the_trade_of_a_fillers_delay() -> None:
    columns = (DELAY, "dead_air_us", "answer_wait_us", "fillers_heard", "fillers_in_vain")
    rows: list[list[Any]] = [
        ["2s", 2_500_000, None, 0, 0],
        ["2s", None, None, 0, 0],
        ["400ms", 500_000, 300_000, 1, 1],
        ["400ms", 2_000_001, 900_000, 3, 0],
    ]
    assert filler_trade(_table(columns, rows, DELAY)) == [
        TradePoint("400ms", 0.5, (300_000, 900_000), 0.25),
        TradePoint("2s", 0.5, None, None),
    ]


def test_differences_are_of_sessions_with_the_same_seed() -> None:
    rows = [
        [0, 1, "a", 10],
        [0, 2, "a", 20],
        [0, 3, "a", None],
        [0, 4, "a", 1],
        [1, 2, "b", 26],
        [1, 1, "b", 12],
        [1, 3, "b", 9],
    ]
    (found,) = paired(_table(("variant", "seed", "k", "m"), rows, "k"), "m")
    # differences 2 and 6: mean 4, standard error 2, and t(1 degree, 97.5 %) is 12.7062
    assert (found.label, found.pairs, found.mean) == ("b", 2, 4.0)
    assert found.low == pytest.approx(4 - 2 * 12.7062, abs=1e-3)
    assert found.high == pytest.approx(4 + 2 * 12.7062, abs=1e-3)


def test_one_pair_has_no_interval() -> None:
    rows = [[0, 1, "a", 10], [1, 1, "b", 12]]
    found = paired(_table(("variant", "seed", "k", "m"), rows, "k"), "m")
    assert found == [Difference("b", 1, None, None, None)]


def test_means_over_two_keys_count_broken_invariants() -> None:
    rows = [["x1", "y1", "a b"], ["x1", "y1", ""], ["x2", "y1", "a"], ["x2", "y2", None]]
    xs, ys, cells = means(_table(("x", "y", "violations"), rows, "x", "y"), "x", "y", "violations")
    assert (xs, ys, cells) == (["x1", "x2"], ["y1", "y2"], [[1.0, 1.0], [None, None]])


def test_a_column_that_is_not_there_is_named_with_the_nearest() -> None:
    with pytest.raises(ScenarioError, match='unknown column "variants"; the nearest known one is "variant"'):
        _table(("variant", "seed"), []).column("variants")


def test_varied_values_as_numbers() -> None:
    assert [amount(value) for value in ("1.2s", 3, "never", True)] == [1_200_000, 3, None, None]


@pytest.mark.parametrize(
    ("latency", "expected"),
    [
        # the clip plays from 3.5 s to 4.807438 s; the answer is ready 350 ms after the tool, which starts at 2.29 s
        (
            "1.5s",
            {"fillers_heard": 1, "fillers_in_vain": 0, "filler_leads_us": [640_000], "answer_waits_us": [667_438]},
        ),
        (
            "1.3s",
            {"fillers_heard": 1, "fillers_in_vain": 1, "filler_leads_us": [440_000], "answer_waits_us": [867_438]},
        ),
        ("4s", {"fillers_heard": 1, "fillers_in_vain": 0, "filler_leads_us": [3_140_000], "answer_waits_us": [0]}),
        ("1s", {"fillers_heard": 0, "fillers_in_vain": 0, "filler_leads_us": [], "answer_waits_us": []}),
    ],
)
def test_a_filler_against_its_answer(latency: str, expected: dict[str, Any]) -> None:
    result = sim.run("slow_tool_filler", set={"tools.order_status.latency": latency})
    found = filler_metrics(result.records)
    assert {name: found[name] for name in expected} == expected
    leads = expected["filler_leads_us"]
    assert found["filler_lead_us"] == (leads[0] if leads else None)


def test_an_answer_that_was_ready_before_its_filler_began_waited_for_all_of_it() -> None:
    found = filler_metrics(sim.run("clip_overtaking").records)
    assert found["filler_leads_us"] == [0]
    assert found["answer_waits_us"] == [9_327_438 - 5_960_000]


def test_the_first_answer_after_a_filler_is_the_one_that_it_holds_back() -> None:
    data = sim.load("slow_tool_filler").to_dict()
    again = {"text": "Still looking.", "calls": [{"order_status": {"order": "B-2"}}]}
    data["llm"].insert(1, again)
    data["tools"]["order_status"]["latency"] = "1.5s"
    data["agent"]["filler"]["delay"] = "1.2s"
    data["expect"] = {}
    result = sim.run(data)
    assert [row[3] for row in result.timeline.rows if row[1] == "llm.request"] == [0, 1, 2]
    assert filler_metrics(result.records)["filler_leads_us"][0] == 640_000  # type: ignore[index]
