"""The swim-lane picture of a session: who spoke, what ran, what was cut, and the waits in between.

Matplotlib's object interface on the Agg canvas, so no window and no global state; imported when a picture is drawn.
The palette (Okabe and Ito's, with an indigo) is told apart by colour-blind readers, and hatching says what was not
heard. Left out: what is shown (``lanes``).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bargein.sim.kernel.durations import format_us
from bargein.sim.kernel.timeline import Record
from bargein.sim.report.atomic import write_whole
from bargein.sim.report.lanes import LANES, Bar, Lanes, Look, Wait, lanes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw", "write_picture"]

_FILL = {
    Look.CALLER: "#0072B2",
    Look.VOICED: "#56B4E9",
    Look.FIRST_TOKEN: "#EBCFE0",
    Look.STREAM: "#CC79A7",
    Look.WAITING: "#DADADA",
    Look.READ_ONLY: "#009E73",
    Look.SIDE_EFFECT: "#D55E00",
    Look.TAIL: "#F6CFB5",
    Look.FILLER: "#E69F00",
    Look.BOT: "#332288",
    Look.UNHEARD: "#FFFFFF",
}
_HATCH = {Look.TAIL: "////", Look.UNHEARD: "xxxx"}
_EDGE = {Look.TAIL: "#D55E00", Look.UNHEARD: "#9A9A9A"}
_DARK_TEXT = {Look.FIRST_TOKEN, Look.FILLER, Look.VOICED, Look.TAIL, Look.WAITING}
_MARK = {Look.TURN_ENDED: ("v", "#222222"), Look.NOTE: ("D", "#222222")}
_LINE: dict[Look, Any] = {Look.BARGE_IN: (0, (4, 3)), Look.CUT: "solid"}
_INK = "#222222"
_WAITS = "waits"
_FONT_PT = 8.0
_BAR_HEIGHT = 0.62
_DPI = 150


def write_picture(path: str | os.PathLike[str], records: Sequence[Record], title: str = "") -> Path:
    """Draw a session's timeline as a PNG, whole or not at all.

    Raises:
        OSError: the file cannot be written.
    """
    buffer = BytesIO()
    draw(records, title).savefig(buffer, format="png", dpi=_DPI, metadata={"Software": None})
    return write_whole(path, buffer.getvalue())


def draw(records: Sequence[Record], title: str = "") -> Figure:
    """The picture as a figure, for a notebook or a file of another kind. Its width grows with the session."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    shown = lanes(records)
    seconds = max(shown.end_us / 1e6, 1.0) * 1.01
    plot_width = min(max(9.0, 1.35 * seconds), 48.0)
    scale = _Scale(plot_width * 72 / seconds)
    wait_rows = _pack([(wait.start_us, wait.end_us, wait.label) for wait in shown.waits], scale)
    tops, height_rows = _layout(shown, max(wait_rows, default=0) + 1)
    left, right, top, bottom = 0.85, 0.7, 0.75 if shown.lines else 0.5, 1.2  # inches round the axes
    width = plot_width + left + right
    height = 0.42 * height_rows + top + bottom
    figure = Figure(figsize=(width, height), facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_axes((left / width, bottom / height, 1 - (left + right) / width, 1 - (top + bottom) / height))
    axes.set_xlim(0, seconds)
    axes.set_ylim(height_rows, 0)
    _backdrop(axes, tops, height_rows, seconds)
    for bar in shown.bars:
        _draw_bar(axes, bar, tops[bar.lane] + bar.row, scale)
    for mark in shown.marks:
        shape, colour = _MARK[mark.look]
        y = tops[mark.lane] + mark.row + 0.5
        axes.plot([mark.at_us / 1e6], [y], shape, color=colour, markersize=6, markeredgecolor="white", zorder=6)
    _draw_lines(axes, shown, tops[_WAITS], scale)
    for wait, row in zip(shown.waits, wait_rows, strict=True):
        _draw_wait(axes, wait, tops[_WAITS] + row)
    if title:
        axes.set_title(title, loc="left", fontsize=12, color=_INK, pad=22 if shown.lines else 8, fontweight="bold")
    _legend(figure, shown)
    return figure


@dataclass(frozen=True, slots=True)
class _Scale:
    """How wide a second is on paper, in points."""

    pt_per_s: float

    def pt(self, us: int) -> float:
        return us / 1e6 * self.pt_per_s


def _pack(labelled: Sequence[tuple[int, int, str]], scale: _Scale) -> list[int]:
    """A row for each span, so that neither spans nor the labels centred on them touch within a row."""
    rows: list[float] = []
    places = []
    for start_us, end_us, label in labelled:
        middle, half = scale.pt(start_us + end_us) / 2, max(scale.pt(end_us - start_us), _width_pt(label)) / 2
        row = next((row for row, until in enumerate(rows) if until < middle - half), len(rows))
        rows[row : row + 1] = [middle + half + 6]
        places.append(row)
    return places


def _layout(shown: Lanes, wait_rows: int) -> tuple[dict[str, int], int]:
    """The first row of each lane, and how many rows there are."""
    tops, row = {}, 0
    for lane in LANES:
        tops[lane] = row
        row += shown.rows(lane)
    tops[_WAITS] = row
    return tops, row + wait_rows


def _backdrop(axes: Axes, tops: dict[str, int], height_rows: int, seconds: float) -> None:
    from matplotlib.ticker import MaxNLocator

    edges = [*tops.values(), height_rows]
    for top, bottom in zip(edges[::2], edges[1::2], strict=False):
        axes.axhspan(top, bottom, color="#F5F5F5", zorder=0, linewidth=0)
    axes.set_yticks([(edges[at] + edges[at + 1]) / 2 for at in range(len(tops))], labels=list(tops))
    axes.tick_params(axis="y", length=0, labelsize=9, labelcolor=_INK)
    axes.tick_params(axis="x", labelsize=8, labelcolor=_INK, color="#999999")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=max(8, int(seconds) + 2), steps=[1, 2, 5, 10]))
    axes.grid(axis="x", color="#E2E2E2", linewidth=0.6, zorder=0.5)
    axes.set_xlabel("virtual time (s)", fontsize=9, color=_INK)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color("#999999")


def _draw_bar(axes: Axes, bar: Bar, row: int, scale: _Scale) -> None:
    start, length = bar.start_us / 1e6, (bar.end_us - bar.start_us) / 1e6
    axes.barh(
        row + 0.5,
        length,
        left=start,
        height=_BAR_HEIGHT,
        color=_FILL[bar.look],
        edgecolor=_EDGE.get(bar.look, "white"),
        hatch=_HATCH.get(bar.look),
        linewidth=0.6,
        zorder=3,
    )
    room_pt = scale.pt(bar.end_us - bar.start_us) - 6
    text = bar.short if bar.short and _width_pt(bar.label) > room_pt else _fit(bar.label, room_pt)
    if text:
        colour = _INK if bar.look in _DARK_TEXT else "white"
        middle = start + length / 2
        axes.text(middle, row + 0.5, text, ha="center", va="center", fontsize=_FONT_PT, color=colour, zorder=5)


def _fit(text: str, room_pt: float) -> str:
    """The text, or as much of it as has room, with an ellipsis; nothing when not even three letters fit."""
    text = text.replace("$", r"\$")  # a dollar would begin a formula
    if not text or _width_pt(text) <= room_pt:
        return text
    for end in range(len(text) - 1, 2, -1):
        short = text[:end].rstrip(" ,.\\") + "…"
        if _width_pt(short) <= room_pt:
            return short
    return ""


@cache
def _width_pt(text: str) -> float:
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=_FONT_PT)
    return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0])


def _draw_lines(axes: Axes, shown: Lanes, bottom: int, scale: _Scale) -> None:
    """A decision is named to the left of its line and a cut to the right, where no name stands already."""
    taken: list[tuple[float, float]] = []
    for line in shown.lines:
        style = _LINE[line.look]
        at = line.at_us / 1e6
        axes.plot([at, at], [0, bottom], color=_INK, linewidth=1.1, linestyle=style, zorder=2)
        decided = line.look is Look.BARGE_IN
        text = f"{'barge-in' if decided else 'cut'} {format_us(line.at_us)}"
        left = scale.pt(line.at_us) + (-3 - _width_pt(text) if decided else 3)
        span = (left, left + _width_pt(text))
        if all(span[1] + 4 < other[0] or span[0] > other[1] + 4 for other in taken):
            taken.append(span)
            x = span[0] / scale.pt_per_s
            axes.text(x, -0.12, text, ha="left", va="bottom", fontsize=_FONT_PT, color=_INK)


def _draw_wait(axes: Axes, wait: Wait, row: int) -> None:
    start, end, y = wait.start_us / 1e6, wait.end_us / 1e6, row + 0.72
    axes.plot([start, end], [y, y], color=_INK, linewidth=1.0, zorder=5)
    axes.plot([start, end], [y, y], "|", color=_INK, markersize=5, zorder=5)
    middle = (start + end) / 2
    axes.text(middle, y - 0.14, wait.label, ha="center", va="bottom", fontsize=_FONT_PT, color=_INK, zorder=6)


def _legend(figure: Figure, shown: Lanes) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    used = {bar.look for bar in shown.bars} | {mark.look for mark in shown.marks} | {line.look for line in shown.lines}
    handles: list[Any] = []
    for look in Look:
        if look not in used:
            continue
        if look in _FILL:
            handles.append(
                Patch(facecolor=_FILL[look], edgecolor=_EDGE.get(look, _FILL[look]), hatch=_HATCH.get(look), label=look)
            )
        elif look in _MARK:
            shape, colour = _MARK[look]
            handles.append(Line2D([], [], marker=shape, color=colour, linestyle="none", markersize=6, label=look))
        else:
            handles.append(Line2D([], [], color=_INK, linewidth=1.1, linestyle=_LINE[look], label=look))
    if handles:
        columns = min(len(handles), 5)
        figure.legend(handles=handles, loc="lower center", ncols=columns, fontsize=8, frameon=False, borderaxespad=0.5)
