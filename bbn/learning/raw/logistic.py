"""Naive Bayes whose numbers are trained to predict: logistic regression, written as a network.

Naive Bayes with tables, and Gaussians whose variance does not depend on the class, gives

    ln P(y | x) = b_y + Σ_i w_y(x_i) + const,        w_y(x_i) = w_yi x_i  for a number,

which is multinomial logistic regression on the columns' states and numbers; every such regression is such a network
(Roos et al. 2005, On discriminative Bayesian network classifiers and logistic regression). So `b` and `w` maximise the
conditional likelihood of the target, with a quadratic penalty on `w`. Adding the same c_i(x_i) for every class changes
no prediction. Of all networks that predict the same, iterative scaling finds the one whose columns have the shares,
means and variances of the data, one column after the other.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from bbn.core.frozen import Array
from bbn.data import CodedTable
from bbn.learning.raw.target_structures import naive_bayes
from bbn.model.cpt import CPT, Conditional
from bbn.model.gaussian import Gaussian
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Continuous, Variable

SWEEPS = 200
"""The most rounds over the columns in which their shares are matched."""
MATCHED = 1e-9
"""Rounds end when no share, and no mean in units of its spread, moves by more than this."""
LEAST_SHARE = 0.5
"""Rows that a state is taken to have at least, so that no share is zero."""


class _Numbers(NamedTuple):
    """The means and standard deviations of the columns of numbers."""

    names: tuple[str, ...]
    means: Array
    spreads: Array


def logistic_network(
    coded: CodedTable, target: str, strength: float, linear: bool = False
) -> tuple[BayesianNetwork, Any]:
    """The network that predicts the target as logistic regression does, and its graph.

    Parameters
    ----------
    coded
        The rows; columns that are still numbers become Gaussians. A missing value tells nothing.
    target
        The variable to predict; rows without it are left out.
    strength
        One over the weight of the penalty, as scikit-learn's `C`; smaller is smoother.
    linear
        Whether states that are whole numbers have weights in proportion to them, rather than one weight each.
    """
    own = next(v for v in coded.variables if v.name == target)
    others = tuple(v for v in coded.variables if v.name != target)
    classes = coded.codes[target].astype(np.intp)
    rows = np.flatnonzero(classes < own.card)
    classes = classes[rows]
    mass = np.ones(len(rows)) if coded.weights is None else np.asarray(coded.weights, float)[rows]
    numbers = _numbers(coded, rows, mass)
    shares = [_shares(coded.codes[v.name][rows], v, mass) for v in others]
    bases = [_basis(v, share, linear) for v, share in zip(others, shares, strict=True)]
    design = _design(coded, others, bases, numbers, rows)
    bias, weights = _fitted(design, classes, own.card, mass, strength)
    graph = naive_bayes([target, *(v.name for v in others), *numbers.names], target)
    starts = np.cumsum([0, *(basis.shape[1] for basis in bases)]).tolist()
    tables = [weights[:, a:b] @ basis.T for (a, b), basis in zip(pairwise(starts), bases, strict=True)]
    slopes = weights[:, starts[-1] :]
    prior, tables, centres, variances = _matched(bias, tables, slopes, shares)
    found: list[Conditional] = [CPT(own, table=prior)]
    found += [CPT(v, [own], table) for v, table in zip(others, tables, strict=True)]
    for j, name in enumerate(numbers.names):
        means = numbers.means[j] + numbers.spreads[j] * (centres[j] + variances[j] * slopes[:, j])
        spread = np.full(own.card, variances[j] * numbers.spreads[j] ** 2)
        none = np.zeros((own.card, 0))
        found.append(Gaussian.trusted(Continuous(name), (own,), means, spread, none, True, False))
    return BayesianNetwork(found), graph


def _numbers(coded: CodedTable, rows: Any, mass: Array) -> _Numbers:
    names = tuple(coded.numbers)
    means, spreads = np.zeros(len(names)), np.ones(len(names))
    for j, name in enumerate(names):
        values = coded.numbers[name][rows]
        there = ~np.isnan(values)
        if there.any():
            means[j] = np.average(values[there], weights=mass[there])
            spread = np.sqrt(np.average((values[there] - means[j]) ** 2, weights=mass[there]))
            spreads[j] = spread if spread > 0 else 1.0
    return _Numbers(names, means, spreads)


def _basis(variable: Variable, shares: Array, linear: bool) -> Array:
    """What each state adds to the columns of the regression: one of its own, or the number that it is."""
    states = variable.states
    if not linear or variable.card < 3 or not all(type(state) is int for state in states):
        return np.eye(variable.card)
    values = np.array(states, dtype=float)
    middle = float(shares @ values)
    spread = float(np.sqrt(shares @ (values - middle) ** 2))
    return (values - middle)[:, None] / (spread or 1.0)


def _design(
    coded: CodedTable, others: tuple[Variable, ...], bases: list[Array], numbers: _Numbers, rows: Any
) -> Any:
    """A sparse matrix: what the states add, then the numbers in units of their spread; 0 where one is missing."""
    from scipy import sparse

    parts = []
    for variable, basis in zip(others, bases, strict=True):
        codes = coded.codes[variable.name][rows].astype(np.intp)
        there = np.flatnonzero(codes < variable.card)
        ones = np.ones(len(there))
        own = sparse.csr_matrix((ones, (there, codes[there])), shape=(len(rows), variable.card))
        parts.append(own if basis.shape[1] == variable.card else own @ sparse.csr_matrix(basis))
    if numbers.names:
        columns = [
            (coded.numbers[name][rows] - mean) / spread for name, mean, spread in zip(*numbers, strict=True)
        ]
        parts.append(sparse.csr_matrix(np.nan_to_num(np.column_stack(columns), nan=0.0)))
    return sparse.hstack(parts, format="csr") if parts else sparse.csr_matrix((len(rows), 0))


def _fitted(design: Any, classes: Any, card: int, mass: Array, strength: float) -> tuple[Array, Array]:
    """b (classes) and w (classes, columns) of the highest penalised conditional likelihood, by L-BFGS."""
    from scipy.optimize import minimize

    n, p = design.shape
    rows = np.arange(n)
    transposed = design.T.tocsr()

    def loss(flat: Array) -> tuple[float, Array]:
        found = flat.reshape(card, p + 1)
        scores = np.asarray(design @ found[:, 1:].T) + found[:, 0]
        scores -= scores.max(axis=1, keepdims=True)
        p_class = np.exp(scores)
        total = p_class.sum(axis=1, keepdims=True)
        value = float(mass @ (np.log(total[:, 0]) - scores[rows, classes]))
        off = p_class / total
        off[rows, classes] -= 1.0
        off *= mass[:, None]
        slope = np.empty_like(found)
        slope[:, 0] = off.sum(axis=0)
        slope[:, 1:] = np.asarray(transposed @ off).T + found[:, 1:] / strength
        return value + 0.5 / strength * float((found[:, 1:] ** 2).sum()), slope.ravel()

    start = np.zeros((card, p + 1))
    counts = np.bincount(classes, mass, minlength=card) + LEAST_SHARE
    start[:, 0] = np.log(counts / counts.sum())
    best = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 500})
    found = best.x.reshape(card, p + 1)
    return found[:, 0], found[:, 1:]


def _shares(codes: Any, variable: Variable, mass: Array) -> Array:
    """How often each state occurs, among the rows that have one; never zero."""
    there = codes < variable.card
    counts = np.bincount(codes[there].astype(np.intp), mass[there], minlength=variable.card)
    counts = np.maximum(counts, LEAST_SHARE)
    return np.asarray(counts / counts.sum())


def _matched(
    bias: Array, tables: list[Array], slopes: Array, shares: list[Array]
) -> tuple[Array, list[Array], Array, Array]:
    """P(class), P(state | class), and per number the centre and the variance, in units of its spread.

    The weights stay. What all classes have in common is chosen so that each column has the given shares, and each
    number has mean 0 and variance 1. Mean of a class: centre + variance · slope.
    """
    n_numbers = slopes.shape[1]
    common = [np.log(own) for own in shares]
    centres, variances = np.zeros(n_numbers), np.ones(n_numbers)
    found = [_softmax(w + c) for w, c in zip(tables, common, strict=True)]
    logs = [_log_total(w + c) for w, c in zip(tables, common, strict=True)]
    for _ in range(SWEEPS):
        moved = 0.0
        prior = _prior(bias, logs, slopes, centres, variances)
        for i, (w, own) in enumerate(zip(tables, shares, strict=True)):
            now = prior @ found[i]
            moved = max(moved, float(np.abs(now - own).max()))
            common[i] = common[i] + np.log(own / np.maximum(now, 1e-300))
            found[i] = _softmax(w + common[i])
            logs[i] = _log_total(w + common[i])
            prior = _prior(bias, logs, slopes, centres, variances)
        for j in range(n_numbers):
            middle = float(prior @ slopes[:, j])
            apart = float(prior @ (slopes[:, j] - middle) ** 2)
            variance = 1.0 if apart < 1e-12 else (np.sqrt(1.0 + 4.0 * apart) - 1.0) / (2.0 * apart)
            moved = max(moved, abs(float(centres[j] + variances[j] * middle)), abs(variance - variances[j]))
            centres[j], variances[j] = -variance * middle, variance
            prior = _prior(bias, logs, slopes, centres, variances)
        if moved < MATCHED:
            break
    return prior / prior.sum(), found, centres, variances


def _prior(bias: Array, logs: list[Array], slopes: Array, centres: Array, variances: Array) -> Array:
    """P(class) under which the network predicts as the weights do.

    A number adds w x − (mean² − centre²) / (2 variance) = w x − w centre − variance w² / 2, so these are given back.
    """
    total = bias + sum(logs, np.zeros(len(bias)))
    total = total + slopes @ centres + 0.5 * (slopes**2) @ variances
    return np.asarray(_softmax(total[None])[0])


def _softmax(logs: Array) -> Array:
    found = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def _log_total(logs: Array) -> Array:
    top = logs.max(axis=1)
    return np.asarray(top + np.log(np.exp(logs - top[:, None]).sum(axis=1)))
