"""A sweep on a real Dask cluster of two worker processes gives the table that one process gives."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from bargein import sim
from bargein.sim.lab.sweep.cluster import dask_cluster

distributed = pytest.importorskip("distributed", reason="a cluster needs bargein[dask]")

VARY = {
    "agent.filler.delay": ["400ms", "1.2s"],
    "tools.order_status.latency": ["1s", {"dist": "gamma", "mean": "2s", "sd": "1s"}],
}
SEEDS = 200

pytestmark = pytest.mark.filterwarnings("default")  # of Dask's own


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A scheduler and two worker processes, which are started again when they die."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1", silence_logs=50
    ) as running:
        yield running


@pytest.fixture(scope="module")
def alone() -> Any:
    return sim.sweep("slow_tool_filler", VARY, SEEDS).rows


def test_the_same_table_as_one_process(cluster: Any, alone: Any) -> None:
    with dask_cluster(cluster.scheduler_address):
        assert sim.sweep("slow_tool_filler", VARY, SEEDS).rows == alone


def test_a_killed_worker_changes_nothing(cluster: Any, alone: Any) -> None:
    killed: list[int] = []
    with distributed.Client(cluster.scheduler_address) as client:
        workers = client.run(os.getpid)

    def kill(done: int, total: int) -> None:
        if done and not killed:
            killed.append(next(iter(workers.values())))
            os.kill(killed[0], signal.SIGKILL)

    with dask_cluster(cluster.scheduler_address):
        assert sim.sweep("slow_tool_filler", VARY, SEEDS, progress=kill).rows == alone
    assert len(killed) == 1
