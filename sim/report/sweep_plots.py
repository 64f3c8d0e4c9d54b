"""Pictures of a sweep: what a filler's delay trades, distributions of latencies, a heat map, paired differences.

Each takes a sweep's table and gives a matplotlib figure; `write_figure` makes a PNG of one. Left out: the numbers
themselves (``sim.lab.sweep.stats``).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bargein.sim.kernel.durations import format_us
from bargein.sim.lab.sweep.rows import MEASURES
from bargein.sim.lab.sweep.stats import amount, ecdf, filler_trade, means, paired
from bargein.sim.lab.sweep.table import Table
from bargein.sim.report.atomic import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_ecdf", "draw_fillers", "draw_heat_map", "draw_paired", "write_figure"]

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#332288", "#666666")
_INK = "#222222"
_DPI = 150


def write_figure(path: str | os.PathLike[str], figure: Figure) -> Path:
    """Write a figure as a PNG, whole or not at all.

    Raises:
        OSError: the file cannot be written.
    """
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=_DPI, metadata={"Software": None})
    return write_whole(path, buffer.getvalue())


def draw_fillers(
    table: Table, delay: str = "agent.filler.delay", beyond_us: Sequence[int] = (1_000_000, 2_000_000, 3_000_000)
) -> Figure:
    """What the filler's delay trades: dead air against answers that wait and fillers that were not needed.

    Args:
        delay: the varied key.
        beyond_us: how much dead air is too much; a line for each.

    Raises:
        ScenarioError: the table does not have the columns.
    """
    figure, (silent, wait, vain) = _figure(3)
    for colour, bound_us in zip(_COLOURS, beyond_us, strict=False):
        points = filler_trade(table, delay, bound_us)
        xs = _positions([point.delay for point in points])
        shares = [100 * point.silent for point in points]
        silent.plot(xs, shares, marker="o", markersize=4, color=colour, label=f"beyond {format_us(bound_us)}")
    points = filler_trade(table, delay)
    places = _positions([point.delay for point in points])
    for axes in (silent, wait, vain):
        _delay_axis(axes, places, [point.delay for point in points])
    _dress(silent, "calls with dead air", "share of calls (%)", share=True)
    silent.legend(fontsize=8, frameon=False)
    waited = [(x, point.wait_us) for x, point in zip(places, points, strict=True) if point.wait_us is not None]
    for which, name, style in ((0, "median", "-"), (1, "95th percentile", "--")):
        ys = [wait_us[which] / 1e6 for _, wait_us in waited]
        wait.plot([x for x, _ in waited], ys, style, marker="o", markersize=4, color=_COLOURS[1], label=name)
    _dress(wait, "a ready answer waits for its filler", "wait (s)")
    wait.set_ylim(bottom=-0.02 * max(wait.get_ylim()[1], 0.1))  # so that a line along zero is seen
    if waited:
        wait.legend(fontsize=8, frameon=False)
    vained = [(x, point.in_vain) for x, point in zip(places, points, strict=True) if point.in_vain is not None]
    vain.plot([x for x, _ in vained], [100 * each for _, each in vained], marker="o", markersize=4, color=_COLOURS[2])
    _dress(vain, "fillers answered within 500 ms", "share of fillers (%)", share=True)
    return figure


def draw_ecdf(
    table: Table, metrics: Sequence[str] = ("response_latency_us", "stop_latency_us"), by: str | None = None
) -> Figure:
    """The distribution of durations: for each the share of calls that stay within it.

    Args:
        by: a varied key; a line for each of its values, else one for all sessions.

    Raises:
        ScenarioError: the table does not have the columns.
    """
    figure, all_axes = _figure(len(metrics))
    groups = table.column(by) if by is not None else ["all calls"] * len(table)
    for axes, metric in zip(all_axes, metrics, strict=True):
        values: dict[Any, list[int]] = {of: [] for of in groups}
        for of, value in zip(groups, table.column(metric), strict=True):
            if value is not None:
                values[of].append(value)
        for number, (of, found) in enumerate(values.items()):
            if found:
                xs, shares = ecdf(found)
                colour = _COLOURS[number % len(_COLOURS)]
                ys = [0.0, *(100 * share for share in shares)]
                axes.step([xs[0] / 1e6, *(x / 1e6 for x in xs)], ys, where="post", color=colour, label=str(of))
        _dress(axes, metric.removesuffix("_us").replace("_", " "), "share of calls (%)", share=True)
        axes.set_xlabel("within (s)", fontsize=9)
        if any(values.values()):
            axes.legend(fontsize=8, title_fontsize=8, frameon=False, loc="lower right", title=by)
        else:
            axes.text(0.5, 0.5, "no call has one", transform=axes.transAxes, ha="center", style="italic", color=_INK)
    return figure


def draw_heat_map(table: Table, across: str, up: str, value: str = "violations") -> Figure:
    """The mean of a column over two varied keys, such as the instant of a barge-in and a tool's latency.

    Raises:
        ScenarioError: the table does not have the columns.
    """
    import numpy as np

    xs, ys, cells = means(table, across, up, value)
    figure, (axes,) = _figure(1, width=max(6.0, 0.7 * len(xs) + 3), height=max(3.5, 0.45 * len(ys) + 2))
    scale = 1e6 if MEASURES.get(value, ("",))[0] == "us" else 1.0
    shown = np.array([[np.nan if cell is None else cell / scale for cell in row] for row in cells], dtype=float)
    image = axes.imshow(shown, origin="lower", aspect="auto", cmap="viridis", interpolation="nearest")
    axes.set_xticks(range(len(xs)), labels=[str(x) for x in xs], rotation=45 if len(xs) > 6 else 0, fontsize=8)
    axes.set_yticks(range(len(ys)), labels=[str(y) for y in ys], fontsize=8)
    axes.set_xlabel(across, fontsize=9)
    axes.set_ylabel(up, fontsize=9)
    bar = figure.colorbar(image, ax=axes)
    bar.set_label(f"mean {value.removesuffix('_us').replace('_', ' ')}{' (s)' if scale > 1 else ''}", fontsize=9)
    bar.ax.tick_params(labelsize=8)
    return figure


def draw_paired(table: Table, metric: str, baseline: int = 0) -> Figure:
    """Each variant's mean difference from the baseline on the same callers, with its 95 % interval.

    Args:
        baseline: the variant's number.

    Raises:
        ScenarioError: the table does not have the column.
    """
    found = paired(table, metric, baseline)
    figure, (axes,) = _figure(1, width=8.0, height=0.4 * max(len(found), 1) + 1.8)
    scale = 1e6 if MEASURES.get(metric, ("",))[0] == "us" else 1.0
    axes.axvline(0, color="#999999", linewidth=1)
    for row, each in enumerate(found):
        if each.mean is None or each.low is None or each.high is None:
            axes.text(0, row, " fewer than two pairs", va="center", fontsize=8, style="italic", color=_INK)
            continue
        axes.plot([each.low / scale, each.high / scale], [row, row], color=_COLOURS[0], linewidth=2)
        axes.plot([each.mean / scale], [row], "o", color=_COLOURS[0])
    axes.set_yticks(range(len(found)), labels=[f"{each.label}  (n = {each.pairs})" for each in found], fontsize=8)
    axes.set_ylim(len(found) - 0.5 if found else 0.5, -0.5)
    name = metric.removesuffix("_us").replace("_", " ")
    _dress(axes, f"{name}: difference from {_variant_label(table, baseline)}, same callers", "")
    axes.set_xlabel(f"mean difference{' (s)' if scale > 1 else ''}, 95 % interval", fontsize=9)
    return figure


def _variant_label(table: Table, variant: int) -> str:
    """A variant's values, as `paired` labels those that it compares."""
    if variant not in table.column("variant"):
        return f"variant {variant}"
    at = table.column("variant").index(variant)
    return ", ".join(str(table.column(name)[at]) for name in table.varied) or f"variant {variant}"


def _figure(panels: int, width: float | None = None, height: float = 3.6) -> tuple[Figure, list[Axes]]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width or max(6.0, 4.2 * panels), height), facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    return figure, [figure.add_subplot(1, panels, at + 1) for at in range(panels)]


def _dress(axes: Axes, title: str, label: str, *, share: bool = False) -> None:
    axes.set_title(title, loc="left", fontsize=10, fontweight="bold", color=_INK)
    axes.set_ylabel(label, fontsize=9)
    axes.tick_params(labelsize=8, labelcolor=_INK, color="#999999")
    axes.grid(color="#E2E2E2", linewidth=0.6)
    axes.set_axisbelow(True)
    if share:
        axes.set_ylim(-2, 102)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _positions(values: Sequence[Any]) -> list[float]:
    """Where values stand along an axis: durations in seconds, or one after another where some are none."""
    numbers = [amount(value) for value in values]
    if any(number is None for number in numbers):
        return [float(at) for at in range(len(values))]
    return [float(number or 0) / 1e6 for number in numbers]


def _delay_axis(axes: Axes, places: Sequence[float], values: Sequence[Any]) -> None:
    axes.set_xlabel("filler delay (s)", fontsize=9)
    if any(amount(value) is None for value in values):
        axes.set_xticks(list(places), labels=[str(value) for value in values])
        axes.set_xlabel("filler delay", fontsize=9)
