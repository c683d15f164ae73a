"""SamplingReport: how far off an approximate posterior may be, and how it was reached.

The interval is Wilson's score interval (Wilson 1927) with the effective number of samples that the standard error
implies, n = p(1 − p)/se², which stays honest near 0 and 1 where p ± 1.96 se does not.
"""

from __future__ import annotations

import numpy as np

from bbn.core.frozen import Array, Frozen


class SamplingReport(Frozen):
    """What is known about the error of an approximate posterior.

    Attributes
    ----------
    std_error
        The standard error of each entry, in the shape of the posterior's values; None if it is not known, as for
        loopy belief propagation.
    ess
        The effective sample size: how many independent exact samples would be as good.
    n_samples
        The samples drawn, or for loopy belief propagation the iterations.
    acceptance_rate
        The share of samples that agree with the evidence; None where none is ever refused.
    r_hat
        The split R-hat over chains of the worst entry; None for methods without chains.
    interrupted
        Whether the run was stopped by hand before its end.
    converged
        Whether the run got where it was meant to: enough effective samples, chains that agree, the standard error that
        was asked for, messages that settled. Messages that settled may still be far off.
    reliable
        Whether the error is known, and the intervals hold as often as they say. False wherever a warning says so, and
        for loopy belief propagation on a graph with loops.
    pareto_k
        The shape of the tail of the weights; above 0.5 the standard errors are too small. None where weights are even.
    """

    __slots__ = (
        "acceptance_rate",
        "converged",
        "ess",
        "interrupted",
        "n_samples",
        "pareto_k",
        "r_hat",
        "reliable",
        "std_error",
    )

    std_error: Array | None
    ess: float | None
    n_samples: int
    acceptance_rate: float | None
    r_hat: float | None
    interrupted: bool
    converged: bool
    reliable: bool
    pareto_k: float | None

    def __init__(
        self,
        std_error: Array | None,
        ess: float | None,
        n_samples: int,
        acceptance_rate: float | None = None,
        r_hat: float | None = None,
        interrupted: bool = False,
        converged: bool = True,
        pareto_k: float | None = None,
        reliable: bool | None = None,
    ) -> None:
        if std_error is not None:
            std_error.flags.writeable = False
        self._set(
            std_error=std_error,
            ess=ess,
            n_samples=n_samples,
            acceptance_rate=acceptance_rate,
            r_hat=r_hat,
            interrupted=interrupted,
            converged=converged,
            reliable=converged if reliable is None else reliable,
            pareto_k=pareto_k,
        )

    def with_error(self, std_error: Array | None) -> SamplingReport:
        """The same report for other entries, whose standard errors these are."""
        others = {slot: getattr(self, slot) for slot in self.__slots__ if slot != "std_error"}
        return SamplingReport(std_error, **others)

    def interval(self, values: Array, level: float = 0.95) -> tuple[Array, Array]:
        """The lower and upper ends of an interval around each entry of `values` at this level of confidence."""
        if self.std_error is None or self.ess is None:
            raise ValueError("the error of this posterior is not known, so it has no interval")
        if not 0 < level < 1:
            raise ValueError(f"the level of an interval must lie between 0 and 1, found {level!r}")
        from scipy.special import ndtri

        z = float(ndtri(0.5 + level / 2))
        spread = values * (1 - values)
        inner = (spread > 0) & (self.std_error > 0)
        n = np.full(values.shape, max(float(self.ess), 1.0))
        np.divide(spread, self.std_error**2, out=n, where=inner)
        centre = (values + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * np.sqrt(spread / n + (z / (2 * n)) ** 2)
        low, high = np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)
        return np.where(values <= 0, 0.0, low), np.where(values >= 1, 1.0, high)

    def __repr__(self) -> str:
        parts = [f"{self.n_samples:,} {'samples' if self.std_error is not None else 'iterations'}"]
        if self.ess is not None:
            parts.append(f"{self.ess:,.0f} effective")
        if self.std_error is not None and self.std_error.size:
            parts.append(f"standard error at most {self.std_error.max():.2g}")
        if self.r_hat is not None:
            parts.append(f"R-hat {self.r_hat:.4g}")
        if self.interrupted:
            parts.append("interrupted")
        if not self.converged:
            parts.append("not converged")
        elif not self.reliable:
            parts.append(
                "settled, but how far off is not known" if self.std_error is None else "not reliable"
            )
        return f"<SamplingReport: {', '.join(parts)}>"
