"""A sweep's sessions on a Dask cluster, through joblib.

The command line's ``--cluster`` uses it; Python users who have a client of their own need only
``joblib.parallel_config("dask")`` around the sweep. Left out: starting a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bargein.sim.scenario.places import ScenarioError

__all__ = ["dask_cluster"]

_PATIENCE_S = 10


@contextmanager
def dask_cluster(address: str) -> Iterator[None]:
    """Run joblib's tasks on the cluster whose scheduler is at ``address``.

    Raises:
        ScenarioError: Dask is not installed, or nothing answers there.
    """
    try:
        import distributed
    except ImportError:
        raise ScenarioError("Dask is not installed; accepted is pip install bargein[dask]") from None
    from joblib import parallel_config

    connect: Callable[..., Any] = distributed.Client
    try:
        client = connect(address, timeout=_PATIENCE_S)
    except (OSError, ValueError) as error:
        raise ScenarioError(
            f'no Dask scheduler answers at "{address}" ({error}); accepted is tcp://HOST:PORT'
        ) from None
    with client, parallel_config("dask"):
        yield
