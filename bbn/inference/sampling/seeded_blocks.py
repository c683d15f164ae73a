"""Work in blocks of fixed size, each with its own seed, so that no answer depends on how many threads shared it.

Block b of stream s draws from ``SFC64(SeedSequence(root, spawn_key=(s, b)))``, and results are added up in the order
of the blocks, whichever thread finished first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

BLOCK = 1 << 14
"""Rows to a block."""


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
        """The same seeds for a worker that starts at this block and counts its blocks from 0."""
        later = Seeds(self)
        later.first_block += block
        return later

    def bits(self, *key: int) -> np.random.SFC64:
        """The bit generator of a stream and block."""
        if self.first_block and key[0] == 0:  # the stream of the rows themselves
            key = (0, key[1] + self.first_block, *key[2:])
        return np.random.SFC64(np.random.SeedSequence(self.entropy, spawn_key=key))
