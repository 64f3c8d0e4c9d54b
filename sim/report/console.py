"""The story of a session for a terminal: what happened, in sentences, and its numbers in a table with a legend.

Plain text where the output is not a terminal; rich draws the tables where it is, and is imported only then. Left
out: JSON, which the command line prints.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TextIO

from bargein.sim.kernel.durations import format_us
from bargein.sim.kernel.timeline import Record
from bargein.sim.lab.metrics import METRICS

__all__ = ["metric_rows", "print_metrics", "print_story", "story"]

_SENTENCES: dict[str, Callable[[Record], str]] = {
    "session.started": lambda r: "the call begins",
    "session.ended": lambda r: f"the call ends ({r['reason']})",
    "memory.loaded": lambda r: f"the memory holds {_messages(r)} of earlier calls",
    "memory.appended": lambda r: f"the memory takes {_messages(r)} of this call",
    "memory.failed": lambda r: f"the memory fails ({r['operation']}): {r['reason']}",
    "caller.started": lambda r: f'caller: "{r["text"]}"',
    "caller.ended": lambda r: "the caller is silent",
    "caller.hung_up": lambda r: "the caller hangs up",
    "turn.ended": lambda r: f"the turn has ended ({format_us(r['t'] - r['speech_end_us'])} after the speech)",
    "turn.user": lambda r: f'turn {r["epoch"]} opens: "{r["text"]}"',
    "turn.barge_in": lambda r: f"barge-in decided ({format_us(r['t'] - r['onset_us'])} after its onset)",
    "turn.ignored": lambda r: f"speech is not taken for a barge-in: {r['reason']}",
    "turn.interrupted": lambda r: f"turn {r['epoch']} is interrupted ({r['cause']})",
    "llm.routed": lambda r: f"the request goes to {r['model']} (round {r['round']})",
    "llm.request": lambda r: f"LLM asked (round {r['round']})",
    "llm.suspended": lambda r: f"the request waits for an approval ({r['layer']}, round {r['round']})",
    "llm.withdrawn": lambda r: f"the request is given up, unsent ({r['cause']}, round {r['round']})",
    "llm.withheld": lambda r: f"the LLM's answer waits for a verdict ({r['layer']}, round {r['round']})",
    "llm.request_refused": lambda r: f"{r['provider']} would refuse the request (round {r['round']}): {r['reason']}",
    "llm.first_token": lambda r: f"LLM's first token (round {r['round']})",
    "llm.failed": lambda r: f"LLM fails (round {r['round']}): {r['reason']}",
    "run.ended": lambda r: f"the run of turn {r['epoch']} ends: {r['ending']}",
    "tool.started": lambda r: f"{r['tool']} runs as {r['call']}" + (" (side effect)" if r["side_effect"] else ""),
    "tool.suspended": lambda r: f"{r['tool']} waits for an approval as {r['call']} ({r['layer']})",
    "tool.withdrawn": lambda r: f"{r['call']} is given up, and {r['tool']} has not run ({r['cause']})",
    "tool.withheld": lambda r: f"the result of {r['call']} waits for a verdict ({r['layer']})",
    "tool.finished": lambda r: f"{r['tool']} is done: {r['status']}",
    "tool.dropped": lambda r: f"{r['tool']} is stopped ({r['cause']})",
    "tool.settled": lambda r: f"{r['call']} is answered: {r['outcome']}",
    "tool.held": lambda r: f"{r['call']} is held until the turn commits",
    "tool.late_result": lambda r: f"{r['call']} has a late result: {r['outcome']}",
    "confirm.requested": lambda r: f"{r['tool']} waits for the user's confirmation",
    "confirm.taken": lambda r: f"{r['request']} is confirmed",
    "confirm.cleared": lambda r: f"what waits for the user's confirmation is dropped ({r['reason']})",
    "link.down": lambda _: "the link to the remote agent is down",
    "link.up": lambda _: "the link to the remote agent is up again",
    "link.refused": lambda r: f"the remote agent's {r['tool'] or 'message'} is refused ({r['what']}): {r['reason']}",
    "filler.spoken": lambda r: f'filler: "{r["text"]}"' + (f" (clip {r['clip']})" if r["clip"] else ""),
    "fallback.spoken": lambda r: f'fallback: "{r["text"]}" ({r["reason"]})',
    "playout.started": lambda r: f"utterance {r['utterance']} is heard ({r['source']})",
    "playout.starved": lambda r: f"utterance {r['utterance']} waits for audio",
    "playout.ended": lambda r: f"utterance {r['utterance']} was heard whole",
    "playout.cut": lambda r: f"utterance {r['utterance']} is cut: {r['samples']} of {r['received']} samples heard",
    "context.truncated": lambda r: f'the context keeps what was heard: "{r["text"]}"',
    "context.removed": lambda r: f"message {r['message']} was never heard and is removed",
}


def _messages(record: Record) -> str:
    count = record["messages"]
    return f"{count} message{'' if count == 1 else 's'}"


def story(records: Iterable[Record]) -> list[tuple[int, str]]:
    """What happened, as ``(instant in microseconds, sentence)``; records that tell a listener nothing are left out."""
    told = []
    for record in records:
        if record["kind"] == "context.pushed":
            if record["source"] == "note":
                told.append((record["t"], f"a late note tells of {record['call']}"))
            continue
        sentence = _SENTENCES.get(record["kind"])
        if sentence is not None:
            told.append((record["t"], sentence(record)))
    return told


def metric_rows(values: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """``(name, value with its unit, definition)`` for every single number; the lists behind them are left out."""
    rows = []
    for name, (unit, about) in METRICS.items():
        value = values.get(name)
        if isinstance(value, list) or name not in values:
            continue
        shown = "-" if value is None else format_us(value) if unit == "us" else str(value)
        rows.append((name.removesuffix("_us").replace("_", " "), shown, about))
    return rows


def print_story(records: Iterable[Record], file: TextIO | None = None) -> None:
    """Print the story, one line an event, with the instant in seconds first."""
    _print(("time (s)", "what happens"), [(f"{t / 1e6:.6f}", text) for t, text in story(records)], file, right={0})


def print_metrics(values: Mapping[str, Any], file: TextIO | None = None) -> None:
    """Print the numbers of a session, each with what it measures."""
    _print(("metric", "value", "what it is"), metric_rows(values), file, right={1})


def _print(head: Sequence[str], rows: Sequence[Sequence[str]], file: TextIO | None, right: set[int]) -> None:
    file = file or sys.stdout
    if file.isatty():
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, header_style="bold", pad_edge=False)
        for column, name in enumerate(head):
            table.add_column(name, justify="right" if column in right else "left", no_wrap=column == 0)
        for row in rows:
            table.add_row(*(Text(cell) for cell in row))  # Text: brackets in what people say are no markup
        Console(file=file).print(table)
        return
    lines = [head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for line in lines:
        cells = [
            cell.rjust(widths[column]) if column in right else cell.ljust(widths[column])
            for column, cell in enumerate(line)
        ]
        file.write("  ".join(cells).rstrip() + "\n")
