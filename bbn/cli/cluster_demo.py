"""`bbn demo --dask`: learning on a Dask cluster of two worker processes on this machine, one of which is killed."""

from __future__ import annotations

import os
import signal
import tempfile
import warnings
from pathlib import Path
from time import perf_counter
from typing import Any

import bbn
from bbn.cli.output import show
from bbn.core.extras import needed_by

N_ROWS = 1_000_000


def cluster_demo() -> int:
    """Draw rows on the workers, learn from them there, lose a worker and learn the same; print what was done."""
    with needed_by("the demo of a cluster", "'bbn[dask]'"):
        from distributed import Client, LocalCluster
    net = bbn.example("alarm")
    with (
        tempfile.TemporaryDirectory() as scratch,
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster,
        Client(cluster) as client,
    ):
        show(f"A cluster: {len(client.nthreads())} workers, scheduler at {cluster.scheduler_address}\n")
        folder = Path(scratch, "rows")
        _timed(
            f">>> net.sample({N_ROWS:,}, seed=1, to='rows', client=client)",
            lambda: net.sample(N_ROWS, seed=1, to=folder, client=client),
        )
        source: Any = _timed(
            ">>> source = bbn.open_data('rows', client=client)", lambda: bbn.open_data(folder, client=client)
        )
        fitted = _timed(
            ">>> fitted = bbn.fit(net, source, bbn.BDeu(1))", lambda: bbn.fit(net, source, bbn.BDeu(1))
        )
        _timed(">>> tree = bbn.chow_liu(source)", lambda: bbn.chow_liu(source))
        victim = min(client.run(os.getpid).values())
        show(f"Now worker process {victim} is killed.\n")
        os.kill(victim, signal.SIGKILL)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", bbn.BBNWarning)
            again = _timed(
                ">>> bbn.fit(net, source, bbn.BDeu(1)) == fitted", lambda: bbn.fit(net, source, bbn.BDeu(1))
            )
        for warning in caught:
            show(f"{warning.category.__name__}: {warning.message}")
        show(f"The same network as before: {again == fitted}. Passes over the data: {source.passes}.")
        show("Next: docs/cluster.md, or your own cluster: `bbn learn rows/ --dask tcp://scheduler:8786`.")
    return 0


def _timed(code: str, work: Any) -> Any:
    start = perf_counter()
    result = work()
    show(f"{code}\n{result!r}, {perf_counter() - start:.2f} s\n")
    return result
