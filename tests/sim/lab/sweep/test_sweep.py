"""Sweeps: the same callers for every variant, the same table however it was made, nothing finished is lost."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bargein import sim
from bargein.sim.cli import main
from bargein.sim.lab.sweep import run as run_module
from bargein.sim.lab.sweep.journal import Journal
from bargein.sim.lab.sweep.rows import DEFAULT_METRICS
from bargein.sim.scenario.places import ScenarioError

DELAY = "agent.filler.delay"
LATENCY = "tools.order_status.latency"
LOGNORM = {"dist": "lognorm", "median": "1.5s", "p95": "4s"}
RANDOM = {LATENCY: LOGNORM}
VARY: dict[str, Any] = {DELAY: ["400ms", "1.2s"]}
FEW = ("response_latency_us", "fillers")


def _sweep(**more: Any) -> Any:
    return sim.sweep("slow_tool_filler", VARY, 8, set=RANDOM, metrics=FEW, **more)


def test_a_row_for_each_session_variant_by_variant() -> None:
    table = sim.sweep("slow_tool_filler", VARY, [4, 2], metrics=FEW)
    assert table.columns == ("variant", "seed", DELAY, "digest", "virtual_us", "violations", "error", *FEW)
    runs = [sim.run("slow_tool_filler", seed=seed, set={DELAY: delay}) for delay in VARY[DELAY] for seed in (4, 2)]
    assert table.rows == [
        [number // 2, seed, delay, run.digest, run.virtual_us, "", "", *(run.metrics[name] for name in FEW)]
        for number, (seed, delay, run) in enumerate(
            zip((4, 2, 4, 2), ("400ms", "400ms", "1.2s", "1.2s"), runs, strict=True)
        )
    ]


def test_every_variant_meets_the_same_world() -> None:
    table = sim.sweep("slow_tool_filler", VARY, 6, set=RANDOM, metrics=["tool_duration_us"])
    durations = table.column("tool_duration_us")
    assert durations[:6] == durations[6:]
    assert len(dict.fromkeys(durations)) == 6


def test_every_single_number_is_measured_unless_one_chooses() -> None:
    table = sim.sweep("slow_tool_filler", seeds=1)
    assert table.columns[6:] == DEFAULT_METRICS
    assert "response_latencies_us" not in table.columns


def test_a_list_of_numbers_is_one_cell() -> None:
    table = sim.sweep("chained_lookups", seeds=1, metrics=["llm_ttfts_us"])
    assert table.column("llm_ttfts_us") == ["350000 350000 350000 350000"]


def test_a_session_that_the_script_does_not_fit_is_a_row_that_says_so() -> None:
    data = sim.load("slow_tool_filler").to_dict()
    del data["llm"][1]
    table = sim.sweep(data, seeds=1, metrics=["turns"])
    assert table.column("turns") == [None]
    assert "the script has 1 round" in table.column("error")[0]


def test_workers_and_chunks_change_nothing(small_chunks: int) -> None:
    alone = _sweep()
    assert _sweep(workers=2).rows == alone.rows
    assert [list(row) for row in _sweep(workers=2, backend="threading").rows] == alone.rows
    assert alone.column("seed") == [*range(8), *range(8)]


def test_a_surrounding_joblib_backend_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    import joblib

    used: list[Any] = []
    plain = joblib.Parallel

    def watched(**given: Any) -> Any:
        used.append(given)
        return plain(**given)

    monkeypatch.setattr(joblib, "Parallel", watched)
    with joblib.parallel_config("threading", n_jobs=2):
        rows = _sweep().rows
    assert [(each["n_jobs"], each["backend"]) for each in used] == [(None, None)]
    assert rows == _sweep().rows
    assert len(used) == 1


# -- files ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_holds_the_same_table(suffix: str, tmp_path: Path, small_chunks: int) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    measured = ("stop_latency_us", "llm_ttfts_us", "tool_durations_us", "tts_ttfbs_us")
    table = sim.sweep("slow_tool_filler", VARY, 8, metrics=measured, out=tmp_path / f"t.{suffix}")
    assert table.rows == sim.sweep("slow_tool_filler", VARY, 8, metrics=measured).rows
    assert [path.name for path in tmp_path.iterdir()] == [f"t.{suffix}"]


def test_pandas_has_whole_numbers(small_chunks: int) -> None:
    pd = pytest.importorskip("pandas", reason="to_pandas needs pandas")
    table = sim.sweep("slow_tool_filler", VARY, 2, metrics=["stop_latency_us", "fillers"])
    frame = table.to_pandas()
    assert frame["fillers"].tolist() == [1, 1, 1, 1]
    assert frame["stop_latency_us"].isna().all()
    assert str(frame["stop_latency_us"].dtype) == "Int64"
    assert frame[DELAY].tolist() == ["400ms", "400ms", "1.2s", "1.2s"]
    assert isinstance(frame, pd.DataFrame)


def _stop_after(sessions: int, error: BaseException) -> Any:
    def tell(done: int, total: int) -> None:
        if done >= sessions:
            raise error

    return tell


def test_a_stopped_sweep_goes_on_and_ends_with_the_same_file(tmp_path: Path, small_chunks: int) -> None:
    whole, parts = tmp_path / "whole.csv", tmp_path / "parts.csv"
    _sweep(out=whole)
    with pytest.raises(KeyboardInterrupt) as stopped:
        _sweep(out=parts, progress=_stop_after(6, KeyboardInterrupt()))
    partial = tmp_path / "parts.csv.partial"
    assert stopped.value.__notes__ == [
        f"stopped; 6 of 16 sessions are kept in {partial}, and the same sweep started again goes on from there"
    ]
    assert not parts.exists()
    told: list[tuple[int, int]] = []
    _sweep(out=parts, progress=lambda done, total: told.append((done, total)))
    assert told == [(6, 16), (9, 16), (12, 16), (15, 16), (16, 16)]
    assert parts.read_bytes() == whole.read_bytes()
    assert not partial.exists()


@pytest.mark.parametrize("lost", [1, 5])
def test_a_line_that_was_cut_off_is_run_again(lost: int, tmp_path: Path, small_chunks: int) -> None:
    whole, parts = tmp_path / "whole.csv", tmp_path / "parts.csv"
    _sweep(out=whole)
    with pytest.raises(KeyboardInterrupt):
        _sweep(out=parts, progress=_stop_after(9, KeyboardInterrupt()))
    partial = tmp_path / "parts.csv.partial"
    partial.write_bytes(partial.read_bytes()[:-lost])
    told: list[int] = []
    _sweep(out=parts, progress=lambda done, _: told.append(done))
    assert told[0] == 6
    assert parts.read_bytes() == whole.read_bytes()


def test_another_sweep_is_not_mixed_in(tmp_path: Path, small_chunks: int) -> None:
    out = tmp_path / "t.csv"
    with pytest.raises(KeyboardInterrupt):
        _sweep(out=out, progress=_stop_after(6, KeyboardInterrupt()))
    with pytest.raises(ScenarioError, match="it holds a sweep of other sessions that was stopped; accepted is another"):
        sim.sweep("slow_tool_filler", VARY, 9, set=RANDOM, metrics=FEW, out=out)
    assert _sweep(out=out).sessions == 16


def test_a_full_disk_keeps_what_was_finished(
    tmp_path: Path, small_chunks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "t.csv"
    keep = Journal.keep

    def full(self: Journal, number: int, rows: list[Any]) -> None:
        if number == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
        keep(self, number, rows)

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "keep", full)
        with pytest.raises(ScenarioError) as stopped:
            _sweep(out=out)
    assert stopped.value.sentences == (
        f"{out}.partial: no space left on device; 6 of 16 sessions are kept in {out}.partial, and the same sweep "
        "started again goes on from there",
    )
    told: list[int] = []
    _sweep(out=out, progress=lambda done, _: told.append(done))
    assert told[0] == 6


def test_a_write_that_fails_half_way_leaves_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path / "j", "s")
    journal.keep(0, [[1]])

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            journal.keep(1, [[2]])
    journal.keep(2, [[3]])
    journal.close()
    again = Journal(tmp_path / "j", "s")
    assert (sorted(again.done), list(again.rows())) == ([0, 2], [[1], [3]])
    again.close()


def test_a_failing_result_leaves_the_old_one_and_the_journal(
    tmp_path: Path, small_chunks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "t.csv"
    out.write_text("old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("bargein.sim.lab.sweep.table.os.replace", full)
        with pytest.raises(ScenarioError, match="no space left on device; 16 of 16 sessions are kept"):
            _sweep(out=out)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.csv", "t.csv.partial"]
    assert out.read_text() == "old"
    told: list[int] = []
    _sweep(out=out, progress=lambda done, _: told.append(done))
    assert told == [16]


def _die(chunk: Any) -> Any:
    os._exit(1)


def test_a_worker_that_dies_is_one_sentence(tmp_path: Path, small_chunks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "t.csv"
    run_chunks = run_module.run_chunks

    class TerminatedWorkerError(Exception):
        pass

    def dying(*given: Any) -> Iterator[Any]:
        for number, each in enumerate(run_chunks(*given)):
            if number == 3:
                raise TerminatedWorkerError
            yield each

    with monkeypatch.context() as patch:
        patch.setattr(run_module, "run_chunks", dying)
        with pytest.raises(ScenarioError) as stopped:
            _sweep(out=out)
    assert str(stopped.value).startswith("a worker died (TerminatedWorkerError); 9 of 16 sessions are kept in ")
    assert _sweep(out=out).rows == _sweep().rows


def test_a_process_that_is_killed_is_one_sentence(small_chunks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bargein.sim.lab.sweep.tasks.run_chunk", _die)
    with pytest.raises(ScenarioError) as stopped:
        _sweep(workers=2)
    assert str(stopped.value) == (
        "a worker died (TerminatedWorkerError); 0 of 16 sessions were done and are not kept; accepted is a file to "
        "keep them"
    )


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"metrics": ["dead_ai"]}, 'unknown metric "dead_ai"; the nearest known one is "dead_air_us"'),
        ({"metrics": []}, "no metrics are given; accepted is one or more"),
        ({"seeds": 0}, "seeds is 0; accepted is 1 or more"),
        ({"seeds": []}, "seeds are none, or not whole numbers"),
        ({"seeds": [1.5]}, "seeds are none, or not whole numbers"),
        ({"out": "t.txt"}, "t.txt: a result ends in .txt; accepted is .csv or .parquet"),
        ({"out": "nowhere/t.csv"}, "nowhere/t.csv.partial: no such file or directory; none of 100 sessions was kept"),
    ],
)
def test_bad_input_is_one_sentence(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        sim.sweep("slow_tool_filler", **given)
    assert len(refused.value.sentences) == 1
    assert sentence in str(refused.value)


# -- memory -----------------------------------------------------------------------------------------------


def test_memory_stays_flat() -> None:
    import gc
    import tracemalloc

    from bargein.sim.lab.sweep.tasks import Chunk, run_chunk

    scenario = sim.load("slow_tool_filler")

    def some(number: int) -> None:
        run_chunk(Chunk(number, ((0, scenario, tuple(range(40))),), FEW))

    some(0)
    tracemalloc.start()
    some(1)
    gc.collect()
    before, _ = tracemalloc.get_traced_memory()
    some(2)
    some(3)
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 50_000  # bytes, after 80 sessions of about 100 kB each


# -- the command ------------------------------------------------------------------------------------------


def _command(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["sweep", *arguments])
    code = left.value.code
    assert isinstance(code, int)
    return code


def test_the_command_prints_csv(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("slow_tool_filler", "--vary", f"{DELAY}=1s,5s", "--seeds", "1", "--metric", "fillers")
    assert _command(*arguments) == 0
    out, err = capsys.readouterr()
    digests = [sim.run("slow_tool_filler", seed=0, set={DELAY: delay}).digest for delay in ("1s", "5s")]
    lines = out.splitlines()
    assert lines[0] == f"variant,seed,{DELAY},digest,virtual_us,violations,error,fillers"
    assert [line.split(",")[3] for line in lines[1:]] == digests
    assert [line.split(",")[-1] for line in lines[1:]] == ["1", "0"]
    assert err == ""


def test_the_command_writes_a_file_and_pictures(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out, plots = tmp_path / "t.csv", tmp_path / "plots"
    vary = ("--vary", f"{DELAY}=1s,5s", "--vary", f"{LATENCY}=1s,3s")
    assert _command("slow_tool_filler", *vary, "--seeds", "2", "--out", str(out), "--plots", str(plots)) == 0
    assert sorted(path.name for path in plots.iterdir()) == [
        "fillers.png",
        "heat_map.png",
        "latencies.png",
        "paired.png",
    ]
    assert capsys.readouterr().out == ""


def test_ctrl_c_ends_the_command_with_a_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def stop(chunk: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("bargein.sim.lab.sweep.tasks.run_chunk", stop)
    assert _command("slow_tool_filler", "--seeds", "2", "--out", str(tmp_path / "t.csv")) == 130
    assert capsys.readouterr().err == (
        "stopped; none of 2 sessions was kept; accepted is a place that can be written\n"
    )


def test_a_cluster_that_is_not_there_is_one_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = pytest.importorskip("distributed", reason="a cluster needs bargein[dask]")

    def absent(*_: object, **__: object) -> None:
        raise OSError("Timed out")

    monkeypatch.setattr(distributed, "Client", absent)
    assert _command("slow_tool_filler", "--cluster", "tcp://127.0.0.1:1") == 2
    assert capsys.readouterr().err == (
        'no Dask scheduler answers at "tcp://127.0.0.1:1" (Timed out); accepted is tcp://HOST:PORT\n'
    )
