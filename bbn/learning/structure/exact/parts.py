"""Parts of a search: variables that may form cycles with each other, and the time left for them."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

import numpy as np

from bbn.core.frozen import Array
from bbn.kernels import watch
from bbn.learning.structure.constraints import members
from bbn.learning.structure.exact.local_scores import LocalScores


class Timer:
    """How long a search may go on."""

    def __init__(self, seconds: float | None) -> None:
        self.deadline = math.inf if seconds is None else time.monotonic() + seconds

    def left(self) -> float:
        """Seconds until time is up."""
        return self.deadline - time.monotonic()

    def within(self, seconds: float) -> Timer:
        """A timer that ends after some seconds, or with this one."""
        return Timer(min(seconds, self.left()))

    def watched(self) -> AbstractContextManager[None]:
        """Let kernels raise TimeoutError when time is up."""
        return watch.watched_by(watch.Watch(None if math.isinf(self.deadline) else self.left(), TimeoutError))

    def check(self) -> None:
        """Raise TimeoutError when time is up, and let Ctrl-C through."""
        watch.check()
        if self.left() < 0:
            raise TimeoutError


class SearchPart(NamedTuple):
    """Variables that may form cycles, and their sets of parents among each other, best first.

    Of the sets that agree within the part only the best is kept; `wholes` are those sets with parents elsewhere.
    """

    members: list[int]
    masks: list[list[int]]
    """For each member its sets; bit k stands for the k-th member."""
    values: list[Array]
    wholes: list[list[int]]

    @classmethod
    def of(cls, scores: LocalScores, part: list[int]) -> SearchPart:
        """The part of some variables."""
        place = {i: 1 << k for k, i in enumerate(part)}
        inside = sum(1 << i for i in part)
        masks: list[list[int]] = []
        values, wholes = [], []
        for i in part:
            best: dict[int, tuple[float, int]] = {}
            for mask, value in scores.sets[i]:
                best.setdefault(sum(place[p] for p in members(mask & inside)), (value, mask))
            masks.append(list(best))
            values.append(np.array([value for value, _ in best.values()]))
            wholes.append([mask for _, mask in best.values()])
        return cls(part, masks, values, wholes)

    def full_sets(self, chosen: Sequence[int]) -> list[int]:
        """The chosen sets with their parents outside the part, as masks of all variables."""
        return [own[k] for own, k in zip(self.wholes, chosen, strict=True)]
