"""Execute the notebooks and write their outputs back in place: ``make notebooks``.

A notebook runs in a folder of its own and is written as it came, without what differs from one machine to the next:
kernel names, timings, and in how many pieces its output arrived. One with a cell tagged ``parameters`` says
``FAST = False`` there; the tests run it with True, over fewer callers. Left out: what a notebook must show; its own
assertions say it, and a failing one leaves its file as it was.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from nbclient import NotebookClient

from bargein.sim.report.atomic import write_whole

__all__ = ["FOLDER", "execute", "notebooks", "tidy", "write"]

FOLDER = Path(__file__).parent
_KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
_QUIET = ["--IPKernelApp.log_level=40"]
_TIMEOUT_S = 600


def notebooks() -> list[Path]:
    """The notebooks, in the order in which they are read."""
    return sorted(FOLDER.glob("*.ipynb"))


def execute(path: Path, folder: Path, *, fast: bool = False) -> Any:
    """The notebook with the outputs of a run in ``folder``.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell raised; the message shows cell and traceback.
    """
    notebook = nbformat.read(path, as_version=4)
    if fast:
        for cell in notebook.cells:
            if "parameters" in cell.metadata.get("tags", []):
                cell.source = cell.source.replace("FAST = False", "FAST = True")
    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(
        notebook, timeout=_TIMEOUT_S, resources=resources, record_timing=False, extra_arguments=_QUIET
    )
    # Programs that notebooks start print more where they find themselves on a CI server; pytest is one.
    client.execute(env={name: value for name, value in os.environ.items() if name not in ("CI", "BUILD_NUMBER")})
    return tidy(notebook)


def tidy(notebook: Any) -> Any:
    """The notebook, changed: the same for the same sources and outputs, whoever ran it where."""
    notebook.metadata = nbformat.from_dict({"kernelspec": _KERNEL, "language_info": {"name": "python"}})
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number:02d}"
        cell.metadata = nbformat.from_dict({key: cell.metadata[key] for key in ("tags",) if key in cell.metadata})
        if cell.cell_type == "code":
            cell.outputs = _joined(cell.outputs)
    return notebook


def write(notebook: Any, path: Path) -> None:
    """Write it, whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    nbformat.validate(notebook)
    write_whole(path, (nbformat.writes(notebook).rstrip("\n") + "\n").encode())


def _joined(outputs: list[Any]) -> list[Any]:
    """Neighbouring pieces of one stream as one: where it was torn depends on how busy the machine was."""
    joined: list[Any] = []
    for output in outputs:
        last = joined[-1] if joined else None
        if last is not None and output.output_type == last.output_type == "stream" and output.name == last.name:
            last.text += output.text
        else:
            joined.append(output)
    return joined


def main(names: list[str]) -> None:
    """Execute these files, or all."""
    for path in [Path(name) for name in names] or notebooks():
        print(f"executing {path.name}", flush=True)
        with TemporaryDirectory() as folder:
            write(execute(path, Path(folder)), path)


if __name__ == "__main__":
    main(sys.argv[1:])
