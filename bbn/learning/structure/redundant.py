"""Columns that tests of independence are misled by: identifiers, and copies of other columns.

Given a column that tells almost all rows apart nothing is left to vary, so every pair seems independent; given its copy
a column is constant, so the two seem independent of everything else. Both contradict faithfulness, on which reading a
graph off tests rests (Spirtes, Glymour and Scheines 2000, section 3.8; Luo 2006 for relations that are functions).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import NamedTuple

import numpy as np

from bbn.core.errors import RedundantColumnsWarning, warn_user
from bbn.data import DataSource, continuous_columns
from bbn.learning.structure.gaussian_scores import MomentScores

FEWEST = 10
"""Of no more rows no column is set apart, as anything may be equal by chance; no identifier has so few states."""
SAME = 1e-12
"""Numbers whose correlation is nearer to ±1 than this are copies of each other."""


class Redundant(NamedTuple):
    """Identifiers with the number of their states, and each copy with the column that it is a copy of."""

    identifiers: dict[str, int]
    copies: dict[str, str]

    def warn(self, n_rows: int) -> None:
        """Say what is set apart, and why."""
        if self.identifiers:
            listed = ", ".join(f"{name!r} ({n:,} values)" for name, n in self.identifiers.items())
            warn_user(
                f"identifiers are left without edges, as given one of them nothing varies: {listed} in {n_rows:,} "
                "rows; drop them, or group their values",
                RedundantColumnsWarning,
            )
        if self.copies:
            listed = ", ".join(f"{name!r} of {kept!r}" for name, kept in self.copies.items())
            warn_user(
                f"copies are joined to the column that they are a copy of alone, as either separates the other from "
                f"everything: {listed}; drop them",
                RedundantColumnsWarning,
            )


def redundant_columns(source: DataSource, names: Iterable[str]) -> Redundant:
    """Which of these columns are identifiers, and which copies of one before them."""
    cards = {v.name: v.card for v in source.variables}
    order = list(names)
    if source.n_rows <= FEWEST:
        return Redundant({}, {})
    states = [name for name in order if name in cards]
    counts = {
        name: np.sort(own[own > 0])
        for name, own in zip(states, source.counts([(name,) for name in states]), strict=True)
    }
    identifiers = {
        name: len(own) for name, own in counts.items() if len(own) > max(source.n_rows / 2, FEWEST)
    }
    copies: dict[str, str] = {}
    alike: dict[bytes, list[str]] = {}  # copies have the same counts, in some order
    for name, own in counts.items():
        if name in identifiers or len(own) < 2:
            continue
        group = alike.setdefault(own.tobytes(), [])
        for kept, table in zip(group, source.counts([(kept, name) for kept in group]), strict=True):
            if np.count_nonzero(table) == len(own):
                copies[name] = kept
                break
        else:
            group.append(name)
    numeric = set(continuous_columns(source))
    pairs = list(combinations([name for name in order if name in numeric], 2))
    if pairs:
        r = MomentScores(source).partial_correlations([(x, y, ()) for x, y in pairs])
        for k in np.flatnonzero(np.abs(r) >= 1 - SAME).tolist():
            x, y = pairs[k]
            if x not in copies:
                copies.setdefault(y, x)
    return Redundant(identifiers, copies)
