"""Greedy elimination asks whether to go on, in the bit map and in lists of neighbours."""

from __future__ import annotations

import numpy as np
import pytest

from bbn import kernels
from bbn.kernels.contracts.types import MIN_FILL, MIN_WEIGHT
from bbn.kernels.watch import Stopped, Watch, watched_by
from bbn.model.graphs import flat_scopes


@pytest.mark.skipif(not kernels.COMPILED, reason="the twins in Python hear Ctrl-C by themselves")
@pytest.mark.parametrize("rule", [MIN_FILL, MIN_WEIGHT])
@pytest.mark.parametrize(("n", "hubs"), [(1500, 300), (20_000, 500)])
def test_a_long_elimination_can_be_stopped(n: int, hubs: int, rule: int) -> None:
    rng = np.random.default_rng(0)
    scopes = [[v, *(n - hubs + rng.choice(hubs, 6, replace=False)).tolist()] for v in range(n - hubs)]
    ptr, scope = flat_scopes(scopes)
    watch = Watch()
    watch.stop()
    with pytest.raises(Stopped), watched_by(watch):
        kernels.triangulate.eliminate(np.full(n, 2, np.int64), ptr, scope, rule)
