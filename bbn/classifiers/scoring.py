"""ln P(class, attributes) of many rows under a network, for every class.

Where a row is complete this is a sum of look-ups, one per table: ln P(x) = Σ ln P(x_i | parents). Rows with missing
values go through the junction tree, which sums them out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbn import kernels
from bbn.core.frozen import Array
from bbn.inference.exact.junction_tree import JunctionTree
from bbn.model.network import BayesianNetwork

LOOK_UP = 65535
"""The most settings of a table's variables, the class apart, that are looked up by one code."""


class Scorer:
    """A network prepared to classify.

    Parameters
    ----------
    net
        The network.
    target
        The class variable.
    """

    def __init__(self, net: BayesianNetwork, target: str) -> None:
        self.net = net
        self.target = target
        self.attributes = [name for name in net.names if name != target]
        self._families: list[list[str]] = []
        rows = []
        for name in net.names:
            members = [v.name for v in (*net[name].parents, net[name].variable)]
            with np.errstate(divide="ignore"):
                logs = np.log(net[name].table)
            if target in members:
                logs = np.moveaxis(logs, members.index(target), -1)
                members.remove(target)
            else:
                logs = np.repeat(logs[..., None], net.variable(target).card, axis=-1)
            self._families.append(members)
            rows.append(logs.reshape(-1, net.variable(target).card))
        self._ptr = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        self._tables = np.ascontiguousarray(np.vstack(rows))
        self._look_up = max(map(len, rows)) <= LOOK_UP

    def log_joint(self, codes: Mapping[str, NDArray[Any]], n_rows: int) -> Array:
        """ln P(class, attributes), shape (rows, classes); the code equal to a variable's card means missing."""
        holes = np.zeros(n_rows, dtype=bool)
        for name in self.attributes:
            holes |= codes[name] == self.net.variable(name).card
        if not self._look_up:
            holes[:] = True
        scores = np.zeros((n_rows, self.net.variable(self.target).card))
        if not holes.any():
            kernels.classify.add_scores(self._columns(codes, n_rows), self._ptr, self._tables, scores)
            return scores
        complete, incomplete = np.flatnonzero(~holes), np.flatnonzero(holes)
        some = np.zeros((len(complete), scores.shape[1]))
        columns = self._columns({name: codes[name][complete] for name in self.attributes}, len(complete))
        kernels.classify.add_scores(columns, self._ptr, self._tables, some)
        scores[complete] = some
        scores[incomplete] = self._summed_out({name: codes[name][incomplete] for name in self.attributes})
        return scores

    def _columns(self, codes: Mapping[str, NDArray[Any]], n_rows: int) -> list[NDArray[Any]]:
        """One code per table and row: the setting of its variables, the class apart."""
        return [self._setting(members, codes, n_rows) for members in self._families]

    def _setting(
        self, members: Sequence[str], codes: Mapping[str, NDArray[Any]], n_rows: int
    ) -> NDArray[Any]:
        if len(members) == 1:
            return np.ascontiguousarray(codes[members[0]])
        index = np.zeros(n_rows, dtype=np.uint16)
        for name in members:
            index *= np.uint16(self.net.variable(name).card)
            index += codes[name]
        return index

    def _summed_out(self, codes: Mapping[str, NDArray[Any]]) -> Array:
        """ln P(class | evidence) + ln P(evidence) from the junction tree."""
        n_rows = len(codes[self.attributes[0]])
        answers = JunctionTree(self.net).rows(codes, n_rows, [self.target])
        posterior = answers.values.reshape(n_rows, -1)
        impossible = answers.log_evidence == -np.inf
        with np.errstate(divide="ignore", invalid="ignore"):
            scores = np.log(posterior) + answers.log_evidence[:, None]
        scores[impossible] = -np.inf
        return np.asarray(scores)
