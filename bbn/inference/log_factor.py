"""LogFactor: a factor whose values are logarithms, so that a product of any length stays in range.

Products become sums, and sums ln Σ exp, taken about the largest term; ln 0 is -inf. It costs an exponential a cell and
a few of the last digits, and needs no scaling anywhere: elimination and enumeration are written with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from bbn.core.frozen import Array
from bbn.kernels.logarithms import log_sum, pieces
from bbn.model.factor import Factor, aligned


class LogFactor(Factor):
    """The logarithms of a table over variables.

    >>> from bbn import Variable
    >>> coin = Variable("Coin", ["heads", "tails"])
    >>> half = LogFactor.of(Factor([coin], [1e-300, 3e-300]))
    >>> (half * half).shares()[0].round(12).tolist()
    [0.1, 0.9]
    """

    __slots__ = ()

    @classmethod
    def of(cls, factor: Factor) -> LogFactor:
        """The logarithms of a factor."""
        with np.errstate(divide="ignore"):
            return cls.trusted(factor.variables, np.log(factor.values))

    def __mul__(self, other: Factor) -> LogFactor:
        variables, left, right = aligned(self, other, "product")
        shape = tuple(v.card for v in variables)
        left, right = np.broadcast_to(left, shape), np.broadcast_to(right, shape)
        values = np.empty(shape)
        for piece in pieces(shape):
            np.add(left[piece], right[piece], out=values[piece])
        return LogFactor.trusted(variables, values)

    @classmethod
    def product(cls, factors: Sequence[Factor]) -> LogFactor:
        """The product of any number of factors; nothing is allocated but that."""
        variables = tuple({v.name: v for factor in factors for v in factor.variables}.values())
        position = {v.name: axis for axis, v in enumerate(variables)}
        values = np.zeros([v.card for v in variables])
        for factor in factors:
            places = [position[name] for name in factor.names]
            along = [1] * len(variables)
            for axis, v in zip(places, factor.variables, strict=True):
                along[axis] = v.card
            own = np.broadcast_to(factor.values.transpose(np.argsort(places)).reshape(along), values.shape)
            for piece in pieces(values.shape):
                values[piece] += own[piece]
        return cls.trusted(variables, values)

    def sum_out(self, names: str | Iterable[str]) -> LogFactor:
        """The factor with these variables summed away."""
        axes, kept = self._split(names)
        return LogFactor.trusted(kept, log_sum(self.values, axes)) if axes else self

    def shares(self) -> tuple[Array, float]:
        """The values as shares of their total, and the logarithm of that, -inf (and zeros) if all are zero."""
        total = float(log_sum(self.values, tuple(range(self.values.ndim))))
        if total == -np.inf:
            return np.zeros(self.values.shape), total
        shares = np.empty(self.values.shape)
        with np.errstate(under="ignore"):
            for piece in pieces(shares.shape):
                np.subtract(self.values[piece], total, out=shares[piece])
                np.exp(shares[piece], out=shares[piece])
            whole = shares.sum()
            for piece in pieces(shares.shape):
                shares[piece] /= whole
        return shares, total
