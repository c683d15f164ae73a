"""Work in blocks of fixed size, each with its own seed, so that no answer depends on how many threads shared it.

Block b of stream s draws from ``SFC64(SeedSequence(root, spawn_key=(s, b)))``, and results are added up in the order
of the blocks, whichever thread finished first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from typing import Any, TypeVar

import numpy as np

from bbn.budget import jobs

BLOCK = 1 << 14
"""Rows to a block."""

Result = TypeVar("Result")


class Seeds:
    """Bit generators by stream and block, all from one seed.

    Parameters
    ----------
    seed
        An int, a numpy Generator (which is advanced), other Seeds, or None for a fresh one.

    >>> Seeds(7).bits(0, 3).random_raw() == Seeds(7).bits(0, 3).random_raw()
    True
    """

    def __init__(self, seed: Any = None) -> None:
        self.entropy: Any
        self.first_block = 0
        if isinstance(seed, Seeds):
            self.entropy, self.first_block = seed.entropy, seed.first_block
        elif isinstance(seed, np.random.Generator):
            self.entropy = [int(word) for word in seed.integers(0, 2**32, 4, dtype=np.uint32)]
        elif seed is None:
            self.entropy = np.random.SeedSequence().entropy
        elif isinstance(seed, int | np.integer) and not isinstance(seed, bool) and seed >= 0:
            self.entropy = int(seed)
        else:
            raise TypeError(f"seed must be a whole number, at least 0, or a numpy Generator, found {seed!r}")

    def from_block(self, block: int) -> Seeds:
        """The same seeds for whoever works on the blocks from this one on, and counts them from 0."""
        later = Seeds(self)
        later.first_block += block
        return later

    def bits(self, *key: int) -> np.random.SFC64:
        """The bit generator of a stream and block."""
        if self.first_block and key[0] == 0:  # the stream of the rows themselves
            key = (0, key[1] + self.first_block, *key[2:])
        return np.random.SFC64(np.random.SeedSequence(self.entropy, spawn_key=key))


@contextmanager
def worker_map(n_jobs: int | None, n_tasks: int) -> Iterator[Callable[..., Iterator[Any]]]:
    """A `map` that spreads its calls over threads and gives results in order; for use again and again."""
    workers = min(jobs(n_jobs), n_tasks)
    if workers <= 1:
        yield map
        return
    with ThreadPoolExecutor(workers) as pool:
        yield pool.map


def in_order(
    task: Callable[[int], Result], n_blocks: int | None, n_jobs: int | None
) -> Generator[Result, None, None]:
    """task(0), task(1), … in order, worked on by several threads; without end if `n_blocks` is None."""
    workers = jobs(n_jobs)
    blocks = iter(range(n_blocks) if n_blocks is not None else count())
    if workers == 1 or n_blocks == 1:
        yield from map(task, blocks)
        return
    pending: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        try:
            for block in blocks:
                pending.append(pool.submit(task, block))
                if len(pending) > 2 * workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:  # the caller has seen enough, or was interrupted
            for future in pending:
                future.cancel()
