"""A stacked bar for each turn: where the wait from the end of the caller's speech to the answer went.

Left out: how the stages are measured (``sim.lab.stages``).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from bargein.sim.kernel.durations import format_us
from bargein.sim.kernel.timeline import Record
from bargein.sim.lab.stages import STAGES, turns
from bargein.sim.report.atomic import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_latencies", "write_latencies"]

_FILL = {
    "endpoint": "#56B4E9",
    "stt": "#0072B2",
    "first_token": "#EBCFE0",
    "tools": "#D55E00",
    "llm": "#CC79A7",
    "speech": "#332288",
}
_NAME = {"stt": "STT", "first_token": "LLM first token", "llm": "LLM, the rest"}
_INK = "#222222"
_DPI = 150


def write_latencies(path: str | os.PathLike[str], records: Sequence[Record], title: str = "") -> Path:
    """Draw the stages of each turn as a PNG, whole or not at all.

    Raises:
        OSError: the file cannot be written.
    """
    buffer = BytesIO()
    draw_latencies(records, title).savefig(buffer, format="png", dpi=_DPI, metadata={"Software": None})
    return write_whole(path, buffer.getvalue())


def draw_latencies(records: Sequence[Record], title: str = "") -> Figure:
    """The stacked bars as a figure; a turn without an audible answer has an empty row that says so."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    found = turns(records)
    height = 0.5 * max(len(found), 1) + 1.55
    figure = Figure(figsize=(9.0, height), facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.1, 0.95 / height, 0.86, 1 - 1.4 / height))
    longest_s = max((turn.total_us or 0 for turn in found), default=0) / 1e6 or 1.0
    axes.set_xlim(0, longest_s * 1.15)
    axes.set_ylim(max(len(found), 1), 0)
    for row, turn in enumerate(found):
        left = 0.0
        for stage, us in turn.stages.items():
            axes.barh(row + 0.5, us / 1e6, left=left, height=0.62, color=_FILL[stage], edgecolor="white", linewidth=0.6)
            left += us / 1e6
        if turn.total_us is None:
            axes.text(
                longest_s * 0.01, row + 0.5, "no answer heard", va="center", fontsize=8, color=_INK, style="italic"
            )
        else:
            axes.text(left + longest_s * 0.01, row + 0.5, format_us(turn.total_us), va="center", fontsize=8, color=_INK)
            if turn.first_sound_us is not None and turn.first_sound_us < turn.total_us:
                at = turn.first_sound_us / 1e6
                axes.plot([at, at], [row + 0.12, row + 0.88], color=_INK, linewidth=1.4)
    axes.set_yticks([row + 0.5 for row in range(len(found))], labels=[f"turn {turn.epoch}" for turn in found])
    axes.tick_params(axis="y", length=0, labelsize=9, labelcolor=_INK)
    axes.tick_params(axis="x", labelsize=8, labelcolor=_INK, color="#999999")
    axes.grid(axis="x", color="#E2E2E2", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel("from the end of the caller's speech (s); a black bar is the first sound of the turn", fontsize=9)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color("#999999")
    if title:
        axes.set_title(title, loc="left", fontsize=12, fontweight="bold", color=_INK)
    handles = [Patch(facecolor=_FILL[stage], label=_NAME.get(stage, stage)) for stage in STAGES]
    figure.legend(handles=handles, loc="lower center", ncols=len(handles), fontsize=8, frameon=False)
    return figure
