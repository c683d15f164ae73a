"""Work on a Dask cluster, or on Dask's own threads: submit it, wait for it, say what happened in the user's words.

Dask does the scheduling, the transport and the retries, and recovers from lost workers. Added here is what the user
needs to know: a cluster without workers is an error instead of an endless wait, and a lost worker is one warning.
"""

from __future__ import annotations

import time
from concurrent.futures import CancelledError
from importlib.util import find_spec
from typing import Any

from bbn.core.errors import ClusterError, WorkerLostWarning, warn_user
from bbn.core.extras import needed_by

PATIENCE = 60.0
"""Seconds without any worker before the work is given up, unless Dask's own no-workers-timeout says otherwise."""
LOOK = 1.0
"""Seconds between two looks at whether there are workers."""


class Cluster:
    """Where Dask's work runs.

    Parameters
    ----------
    client
        A `distributed.Client`, a cluster, or a scheduler's address such as "tcp://10.0.0.1:8786"; None is the client
        that is current, or else Dask's scheduler in this process.
    """

    def __init__(self, client: Any = None) -> None:
        self.client = _connected(client)
        self._seen: set[str] = set()
        self._told = False

    def run(self, work: Any) -> Any:
        """The value of one Delayed."""
        if self.client is None:
            import dask

            return dask.compute(work)[0]
        from distributed.scheduler import KilledWorker

        if self.client.status != "running":
            raise ClusterError(f"the connection to the scheduler of the cluster is {self.client.status}")
        self._seen |= self._workers()
        future = self.client.compute(work)
        try:
            self._wait(future)
            return future.result()
        except KilledWorker as error:
            died = error.allowed_failures + 1
            raise ClusterError(
                f"workers died while they worked on a partition, {died} of them on the same one; if they ran out of "
                "memory, make the partitions smaller or the workers larger"
            ) from error
        except CancelledError as error:
            raise ClusterError("the scheduler of the cluster has gone, and the work with it") from error
        finally:
            if future.status == "pending":
                future.cancel()
            self._tell_of_lost_workers()

    def _workers(self) -> set[str]:
        """The addresses of the workers there are; none where the scheduler has gone."""
        if self.client.status != "running":
            return set()
        try:
            return set(self.client.nthreads())
        except OSError:
            return set()

    def _wait(self, future: Any) -> None:
        """Wait until the work is done or has failed; ClusterError if there is no worker for too long."""
        patience = _patience()
        last_seen = time.monotonic()
        while future.status == "pending":
            try:
                future.exception(timeout=min(LOOK, patience))  # which waits until there is one, or none
            except TimeoutError:
                now = time.monotonic()
                if self._workers():
                    last_seen = now
                elif now - last_seen >= patience:
                    raise ClusterError(
                        f"the cluster has had no worker for {now - last_seen:.0f} s; start some "
                        "(client.wait_for_workers waits for them), or raise distributed.scheduler.no-workers-timeout"
                    ) from None

    def _tell_of_lost_workers(self) -> None:
        """Warn, once, that a worker was lost without being asked to stop."""
        gone = self._seen - self._workers()
        self._seen -= gone
        if self._told or self.client.status != "running":
            return
        if any(_died(self.client.get_events(worker)) for worker in sorted(gone)):
            self._told = True
            warn_user(
                "a worker of the cluster was lost; its part was done again on the others and the answer is the same "
                "(said once)",
                WorkerLostWarning,
            )


def _connected(client: Any) -> Any:
    """A client, however the cluster was named, or None where there is none."""
    if client is None and find_spec("distributed") is None:
        return None
    with needed_by("a cluster", "'bbn[dask]'"):
        from distributed import Client
    if client is None:
        try:
            return Client.current()
        except ValueError:  # there is none: Dask's scheduler in this process
            return None
    if not isinstance(client, Client):
        try:
            client = Client(client, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise ClusterError(
                f"no Dask scheduler answers at {client!r}: {error}; expected a Client, a cluster or an address such as "
                "'tcp://10.0.0.1:8786'"
            ) from error
    if client.asynchronous:
        raise ClusterError(
            "the client is asynchronous; a learner waits for its answers, so pass a plain Client"
        )
    return client


def _patience() -> float:
    import dask
    from dask.utils import parse_timedelta

    chosen = dask.config.get("distributed.scheduler.no-workers-timeout", None)
    return PATIENCE if chosen is None else float(parse_timedelta(chosen, "s"))


def _died(events: Any) -> bool:
    """Whether a worker's events say that it was lost without being asked to stop."""
    return any(
        event.get("action") == "remove-worker" and not event.get("expected", True)
        for _, event in events
        if isinstance(event, dict)
    )
