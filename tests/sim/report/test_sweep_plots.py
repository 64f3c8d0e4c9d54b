"""Pictures of sweeps: what is drawn, read back from the figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bargein import sim
from bargein.sim.lab.sweep.table import Table
from bargein.sim.report.sweep_plots import draw_ecdf, draw_fillers, draw_heat_map, draw_paired, write_figure

DELAY = "agent.filler.delay"
LATENCY = "tools.order_status.latency"


@pytest.fixture(scope="module")
def table() -> Table:
    return sim.sweep("slow_tool_filler", {DELAY: ["1.2s", "400ms"], LATENCY: ["1s", "3s"]}, 2)


def _lines(axes: Any) -> list[tuple[list[float], list[float]]]:
    return [([float(x) for x in line.get_xdata()], [float(y) for y in line.get_ydata()]) for line in axes.lines]


def test_the_filler_trade_has_a_panel_for_each_of_its_sides(table: Table) -> None:
    silent, wait, vain = draw_fillers(table, beyond_us=(1_500_000,)).axes
    assert _lines(silent) == [([0.4, 1.2], [50.0, 100.0])]
    assert [xs for xs, _ in _lines(wait)] == [[0.4, 1.2], [0.4, 1.2]]
    assert _lines(vain) == [([0.4, 1.2], [0.0, 0.0])]


def test_delays_that_are_no_durations_stand_one_after_another() -> None:
    columns = (DELAY, "dead_air_us", "answer_wait_us", "fillers_heard", "fillers_in_vain")
    silent = draw_fillers(Table(columns, [["per_tool", 1, None, 0, 0], ["1s", 1, None, 0, 0]], (DELAY,), 2)).axes[0]
    assert [label.get_text() for label in silent.get_xticklabels()] == ["1s", "per_tool"]


def test_a_distribution_has_a_line_for_each_value_and_says_where_there_is_none(table: Table) -> None:
    response, stop = draw_ecdf(table, by=DELAY).axes
    assert [line.get_label() for line in response.lines] == ["1.2s", "400ms"]
    assert [ys[-1] for _, ys in _lines(response)] == [100.0, 100.0]
    assert [text.get_text() for text in stop.texts] == ["no call has one"]
    legend = response.get_legend()
    assert legend is not None
    assert legend.get_title().get_text() == DELAY


def test_the_heat_map_has_a_cell_for_each_pair(table: Table) -> None:
    axes = draw_heat_map(table, LATENCY, DELAY, "fillers").axes[0]
    assert axes.images[0].get_array().tolist() == [[0.0, 1.0], [1.0, 1.0]]  # type: ignore[union-attr]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1s", "3s"]


def test_paired_differences_have_their_intervals(table: Table) -> None:
    axes = draw_paired(table, "response_latency_us").axes[0]
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ["1.2s, 3s  (n = 2)", "400ms, 1s  (n = 2)", "400ms, 3s  (n = 2)"]
    assert len(axes.lines) == 1 + 2 * 3


def test_paired_differences_name_the_variant_that_they_are_taken_from(table: Table) -> None:
    title = draw_paired(table, "response_latency_us", baseline=2).axes[0].get_title(loc="left")
    assert title == "response latency: difference from 400ms, 1s, same callers"


def test_a_figure_is_written_as_a_png(table: Table, tmp_path: Path) -> None:
    path = write_figure(tmp_path / "p.png", draw_paired(table, "dead_air_us"))
    assert path.read_bytes().startswith(b"\x89PNG")
