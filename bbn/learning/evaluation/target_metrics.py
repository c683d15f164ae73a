"""How good predicted probabilities of a target are: log loss, Brier score, accuracy, area under the curve, calibration.

    log loss   mean of −ln p(true state)                                  Brier   mean of Σ_k (p_k − [k is true])²
    AUC        the chance that a row in a state gets a higher probability of it than a row that is not (Hanley & McNeil
               1982); of several states the mean over them, each against the rest

All are over rows whose target is known, with their weights.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bbn.core.frozen import Array

METRICS = ("log loss", "Brier", "accuracy", "AUC")
BINS = 10
"""The number of equal parts of 0 to 1 into which calibration groups probabilities."""


class Calibration(NamedTuple):
    """Rows grouped by the probability that was predicted for each state.

    Attributes
    ----------
    predicted
        The mean probability of each group.
    observed
        The share of the group in which the state was the true one.
    weight
        The weight of each group.
    """

    predicted: tuple[float, ...]
    observed: tuple[float, ...]
    weight: tuple[float, ...]


def target_metrics(p: Array, true: Any, weights: Array) -> dict[str, float]:
    """The metrics of predicted probabilities.

    Parameters
    ----------
    p
        (rows, states), each row sums to 1.
    true
        The code of the true state of each row.
    weights
        One per row.

    >>> target_metrics(np.array([[0.8, 0.2], [0.4, 0.6]]), np.array([0, 1]), np.ones(2))["accuracy"]
    1.0
    """
    picked = p[np.arange(len(true)), true]
    hot = np.zeros_like(p)
    hot[np.arange(len(true)), true] = 1.0
    return {
        "log loss": float(np.average(-np.log(np.maximum(picked, 1e-300)), weights=weights)),
        "Brier": float(np.average(((p - hot) ** 2).sum(axis=1), weights=weights)),
        "accuracy": float(np.average(p.argmax(axis=1) == true, weights=weights)),
        "AUC": _area(p, true, weights),
    }


def _area(p: Array, true: Any, weights: Array) -> float:
    """The mean area under the curve of the states that occur, each against the rest; NaN where only one occurs."""
    areas = []
    for state in range(p.shape[1]):
        inside = true == state
        if not inside.any() or inside.all():
            continue
        values, position = np.unique(p[:, state], return_inverse=True)
        held = np.bincount(position, weights * inside, minlength=len(values))
        rest = np.bincount(position, weights * ~inside, minlength=len(values))
        below = np.cumsum(rest) - rest / 2  # ties count half
        areas.append(float((held * below).sum() / (held.sum() * rest.sum())))
    return float(np.mean(areas)) if areas else float("nan")


def calibration(p: Array, true: Any, weights: Array) -> Calibration:
    """Predicted against observed, over all states; of two states the second alone, as the first mirrors it."""
    states = range(1, 2) if p.shape[1] == 2 else range(p.shape[1])
    chance = np.concatenate([p[:, state] for state in states])
    happened = np.concatenate([(true == state).astype(np.float64) for state in states])
    weight = np.tile(weights, len(states))
    group = np.minimum((chance * BINS).astype(np.intp), BINS - 1)
    total = np.bincount(group, weight, minlength=BINS)
    there = total > 0
    predicted = np.bincount(group, weight * chance, minlength=BINS)[there] / total[there]
    observed = np.bincount(group, weight * happened, minlength=BINS)[there] / total[there]
    return Calibration(tuple(predicted.tolist()), tuple(observed.tolist()), tuple(total[there].tolist()))
