"""The result of a sweep: a tidy table with a row for each session, in memory or in a file.

Columns are ``variant``, ``seed``, one for each varied key, then ``digest``, ``virtual_us``, ``violations``,
``error`` and the metrics. Left out: pictures (``sim.report.sweep_plots``).
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

from bargein.sim.lab.sweep.rows import MEASURES, Row, is_list
from bargein.sim.scenario.places import ScenarioError
from bargein.sim.scenario.suggest import unknown

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FORMATS", "Table", "check_format", "read_rows", "write_table"]

FORMATS = (".csv", ".parquet")
_TEXTS = ("digest", "violations", "error")
_BLOCK = 10_000


class Table:
    """Rows with named columns.

    Args:
        columns: their names.
        rows: each as long as ``columns``; or a function that reads them, called when they are first looked at.
        varied: which columns are varied keys.
        sessions: how many rows there are.
        path: the file it was written to, if it was.
    """

    def __init__(
        self,
        columns: Sequence[str],
        rows: Sequence[Row] | Callable[[], Sequence[Row]],
        varied: Sequence[str],
        sessions: int,
        path: Path | None = None,
    ) -> None:
        self.columns = tuple(columns)
        self.varied = tuple(varied)
        self.sessions = sessions
        self.path = path
        self._source = rows

    @cached_property
    def rows(self) -> Sequence[Row]:
        """All rows, variant by variant and seed by seed."""
        return self._source() if callable(self._source) else self._source

    def __len__(self) -> int:
        return self.sessions

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (dict(zip(self.columns, row, strict=True)) for row in self.rows)

    def column(self, name: str) -> list[Any]:
        """The values of one column.

        Raises:
            ScenarioError: there is none of this name.
        """
        if name not in self.columns:
            raise ScenarioError(unknown("column", name, self.columns))
        at = self.columns.index(name)
        return [row[at] for row in self.rows]

    def to_pandas(self) -> pd.DataFrame:
        """The table as a DataFrame; whole numbers stay whole where values are missing.

        Raises:
            ScenarioError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise ScenarioError("pandas is not installed; accepted is pip install pandas, or to_csv") from None
        whole = {name for name in self.columns if _is_whole(name)}
        return pd.DataFrame(
            {
                name: pd.array(self.column(name), dtype="Int64") if name in whole else self.column(name)
                for name in self.columns
            }
        )

    def to_csv(self, path: str | os.PathLike[str]) -> Path:
        """Write it as CSV, whole or not at all."""
        return write_table(Path(path), self.columns, self.rows, ".csv")

    def to_parquet(self, path: str | os.PathLike[str]) -> Path:
        """Write it as Parquet, whole or not at all.

        Raises:
            ScenarioError: pyarrow is not installed.
        """
        return write_table(Path(path), self.columns, self.rows, ".parquet")

    def __repr__(self) -> str:
        return f"<sweep of {len(self)} sessions over {', '.join(self.varied) or 'seeds'}>"


def check_format(path: Path) -> str:
    """The format that the name of a result file asks for.

    Raises:
        ScenarioError: it asks for none that is known, or for one whose library is missing.
    """
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise ScenarioError(f"{path}: a result ends in {suffix or 'nothing'}; accepted is {' or '.join(FORMATS)}")
    if suffix == ".parquet":
        _arrow()
    return suffix


def write_table(path: Path, columns: Sequence[str], rows: Iterable[Row], suffix: str) -> Path:
    """Write rows as they come, whole or not at all: they land beside the target, which then takes their name.

    Raises:
        OSError: it cannot be written; what stood there before is untouched.
    """
    write = _write_parquet if suffix == ".parquet" else _write_csv
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        temporary = Path(file.name)
        try:
            write(file, columns, iter(rows))
            file.flush()
            os.fsync(file.fileno())
            temporary.chmod(0o644)
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    return path


def read_rows(path: Path) -> list[Row]:
    """The rows of a written table; a varied value that is no whole number comes back as text."""
    if path.suffix.lower() == ".parquet":
        _, parquet = _arrow()
        found = parquet.read_table(path).to_pylist()
        return [[_value(name, value) for name, value in row.items()] for row in found]
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.reader(file)
        columns = next(reader)
        return [[_value(name, cell) for name, cell in zip(columns, row, strict=True)] for row in reader]


def _value(name: str, cell: Any) -> Any:
    if not isinstance(cell, str) or name in _TEXTS or is_list(name):
        return cell
    try:
        return int(cell) if cell else None
    except ValueError:
        return cell


def _is_whole(name: str) -> bool:
    """Whether a column holds whole numbers; a varied key may hold anything."""
    return name in ("variant", "seed", "virtual_us") or (name in MEASURES and not is_list(name))


def _write_csv(file: Any, columns: Sequence[str], rows: Iterator[Row]) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    try:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
        text.flush()
    finally:
        text.detach()


def _write_parquet(file: Any, columns: Sequence[str], rows: Iterator[Row]) -> None:
    arrow, parquet = _arrow()
    schema = arrow.schema([(name, arrow.int64() if _is_whole(name) else arrow.string()) for name in columns])
    with parquet.ParquetWriter(file, schema) as writer:
        while block := list(islice(rows, _BLOCK)):
            arrays = []
            for at, name in enumerate(columns):
                values = [row[at] for row in block]
                if not _is_whole(name):
                    values = [None if value is None else str(value) for value in values]
                arrays.append(arrow.array(values, schema.field(name).type))
            writer.write_table(arrow.table(arrays, schema=schema))


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ScenarioError("pyarrow is not installed; accepted is pip install pyarrow, or a .csv file") from None
    return pyarrow, parquet
