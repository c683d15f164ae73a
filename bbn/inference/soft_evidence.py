"""Soft evidence: likelihoods under which some marginals are the ones asked for.

Iterative proportional fitting (Deming and Stephan 1940) multiplies one variable's likelihood after the other by
(wanted / current) marginal. The limit is the distribution nearest to the start, in the sense of Kullback and
Leibler, among those with these marginals (Csiszár 1975). It may be slow to come, so the last stretch is Newton's
method on the convex function whose minimum it is: f(θ) = ln Σ_x P(x) exp(Σ_i θ_i(x_i)) − Σ_i wanted_i · θ_i, where
θ = ln λ; its gradient is current − wanted marginals, its Hessian the covariance of the states' indicators.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from bbn.core.budget import MAX_AXES
from bbn.core.errors import ImpossibleEvidenceError
from bbn.core.frozen import Array
from bbn.kernels.watch import check
from bbn.model.evidence import Evidence, Findings

TOLERANCE = 1e-11
"""Fitting ends when every marginal is within this of the one asked for."""
SWEEPS = 50
NEWTON_STEPS = 100
JOINT_CELLS = 1 << 18
"""Soft findings whose joint has at most JOINT_CELLS cells are fitted on it, more of them by repeated queries."""
QUERY_SWEEPS = 2000

Joint = Callable[[tuple[str, ...], Findings], tuple[Array, float]]
"""Names and findings to the joint posterior of the names, and ln P(findings)."""


def fit_soft(
    joint: Joint, findings: Findings, evidence: Evidence, impossible: Callable[[Findings], Exception]
) -> Findings:
    """The findings with the soft ones as likelihoods under which each marginal is the one asked for.

    Those keep the total mass, so ln P of the result stays that of the hard and virtual part.

    Parameters
    ----------
    joint
        What answers queries.
    findings, evidence
        All the evidence, checked and as it was given.
    impossible
        The error for findings of probability zero.
    """
    names, wanted = tuple(findings.soft), list(findings.soft.values())
    given = {name: evidence[name] for name in names}
    firm = Findings(findings.hard, findings.likelihood, {})
    for name, want in findings.soft.items():
        has, log_evidence = joint((name,), firm)
        if log_evidence == -math.inf:
            raise impossible(firm)
        if (want[has == 0] > 0).any():
            raise ImpossibleEvidenceError(
                f"soft evidence on {name!r} gives weight to a state that the other findings exclude",
                {name: given[name]},
            )
    if math.prod(map(len, wanted)) <= JOINT_CELLS and len(names) <= MAX_AXES:
        likelihoods, off = fit_marginals(joint(names, firm)[0], wanted)
    else:
        likelihoods, off = _fit_by_queries(joint, firm, names, wanted)
    if off > TOLERANCE:
        raise ImpossibleEvidenceError(
            f"the soft findings on {', '.join(names)} cannot hold together: "
            f"at the end of the fitting a marginal is still off by {off:.2g}",
            given,
        )
    return Findings(firm.hard, {**firm.likelihood, **dict(zip(names, likelihoods, strict=True))}, {})


def _fit_by_queries(
    joint: Joint, firm: Findings, names: tuple[str, ...], wanted: list[Array]
) -> tuple[list[Array], float]:
    """As `fit_marginals`, for more soft findings than have a joint: one query per finding and sweep."""
    likelihoods = {name: np.ones(len(want)) for name, want in zip(names, wanted, strict=True)}
    for _ in range(QUERY_SWEEPS):
        off = 0.0
        for name, want in zip(names, wanted, strict=True):
            check()
            has, log_evidence = joint((name,), Findings(firm.hard, {**firm.likelihood, **likelihoods}, {}))
            if log_evidence == -math.inf:
                return [], math.inf
            off = max(off, float(np.abs(has - want).max()))
            ratio = np.divide(want, has, out=np.zeros_like(want), where=has > 0)
            with np.errstate(over="ignore"):
                likelihoods[name] = likelihoods[name] * ratio
            if not np.isfinite(likelihoods[name]).all():
                return [], math.inf
        if off <= TOLERANCE:
            break
    return list(likelihoods.values()), off


def fit_marginals(joint: Array, wanted: Sequence[Array]) -> tuple[list[Array], float]:
    """The likelihood on each axis under which `joint` has the wanted marginals, and how far off it still is.

    `joint` sums to 1, and so does it with the likelihoods. Where nothing fits, the error is above `TOLERANCE`.

    >>> likelihoods, _ = fit_marginals(np.array([[0.5, 0.0], [0.1, 0.4]]), [np.array([0.8, 0.2])])
    >>> likelihoods
    [array([1.6, 0.4])]
    """
    current = joint
    likelihoods = [np.ones(len(want)) for want in wanted]
    if lacking := _lacking(joint, wanted):
        return likelihoods, lacking
    for _ in range(SWEEPS):
        check()
        off = 0.0
        for axis, want in enumerate(wanted):
            has = marginal(current, (axis,))
            off = max(off, float(np.abs(has - want).max()))
            ratio = np.divide(want, has, out=np.zeros_like(want), where=has > 0)
            with np.errstate(over="ignore"):
                likelihoods[axis] = likelihoods[axis] * ratio
            current = weigh(current, axis, ratio)
        if off <= TOLERANCE and all(np.isfinite(x).all() for x in likelihoods):
            return likelihoods, off
    return _newton(joint, wanted, likelihoods)


def marginal(joint: Array, axes: tuple[int, ...]) -> Array:
    """The sum over all other axes."""
    return np.asarray(joint.sum(axis=tuple(i for i in range(joint.ndim) if i not in axes)))


def weigh(joint: Array, axis: int, weights: Array) -> Array:
    """The joint multiplied along one axis."""
    return np.asarray(joint * weights.reshape([-1 if i == axis else 1 for i in range(joint.ndim)]))


def _lacking(joint: Array, wanted: Sequence[Array]) -> float:
    """The largest weight asked for of a state that what is asked for of the others excludes; 0 if there is none."""
    for axis, want in enumerate(wanted):
        joint = weigh(joint, axis, (want > 0).astype(float))
    return max(
        float(want[marginal(joint, (axis,)) == 0].max(initial=0.0)) for axis, want in enumerate(wanted)
    )


def _newton(joint: Array, wanted: Sequence[Array], start: list[Array]) -> tuple[list[Array], float]:
    """Newton's method with a backtracking line search, from likelihoods found by sweeping."""
    free: list[NDArray[np.bool_]] = [want > 0 for want in wanted]
    target: Array = np.concatenate([want[f] for want, f in zip(wanted, free, strict=True)])
    ends = np.cumsum([f.sum() for f in free])[:-1]

    def likelihoods(theta: Array) -> list[Array]:
        parts = [np.zeros(len(f)) for f in free]
        for part, f, t in zip(parts, free, np.split(theta, ends), strict=True):
            part[f] = np.exp(t)
        return parts

    def tilted(theta: Array) -> tuple[Array, float, Array]:
        """The joint under θ, f(θ) and its gradient."""
        current = joint
        for axis, weights in enumerate(likelihoods(theta)):
            current = weigh(current, axis, weights)
        total = float(current.sum())
        current = current / total
        has = np.concatenate([marginal(current, (axis,))[f] for axis, f in enumerate(free)])
        return current, float(np.log(total) - theta @ target), has - target

    with np.errstate(all="ignore"):  # a step too far is not finite, and is halved
        theta: Array = np.concatenate(
            [np.log(np.clip(s[f], 1e-300, 1e300)) for s, f in zip(start, free, strict=True)]
        )
        current, value, gradient = tilted(theta)
        for _ in range(NEWTON_STEPS):
            off = float(np.abs(gradient).max())
            if off <= TOLERANCE or not math.isfinite(off):
                break
            step = np.linalg.lstsq(_covariance(current, free), gradient, rcond=1e-15)[0]
            size = 1.0
            while size > 1e-6:
                current, new_value, new_gradient = tilted(theta - size * step)
                fell = new_value <= value - 1e-4 * size * (gradient @ step)
                if fell or np.abs(new_gradient).max() <= 0.5 * off:
                    break
                size /= 2
            else:
                break
            theta, value, gradient = theta - size * step, new_value, new_gradient
        found = likelihoods(theta)
        found[0] = found[0] / np.exp(value + theta @ target)
    off = off if math.isfinite(off) else math.inf
    fits = off <= TOLERANCE and all(np.isfinite(x).all() for x in found)
    return found, off if fits or off > TOLERANCE else np.inf


def _covariance(joint: Array, free: list[NDArray[np.bool_]]) -> Array:
    """The covariance of the indicators of all free states of all axes."""
    has = [marginal(joint, (axis,))[f] for axis, f in enumerate(free)]
    rows = [
        [
            np.diag(has[a]) if a == b else marginal(joint, (a, b))[np.ix_(free[a], free[b])]
            for b in range(a, len(free))
        ]
        for a in range(len(free))
    ]
    blocks = [
        [rows[a][b - a] if a <= b else rows[b][a - b].T for b in range(len(free))] for a in range(len(free))
    ]
    flat = np.concatenate(has)
    return np.asarray(np.block(blocks) - np.outer(flat, flat))
