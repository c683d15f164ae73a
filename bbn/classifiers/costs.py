"""Deciding by expected cost: the class c of least Σ_t P(t | x) cost(t, c), t being the true one.

With equal costs for every mistake it is the most probable class (Duda, Hart and Stork 2001, section 2.2).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbn.core.errors import nearest, shown
from bbn.core.frozen import Array, numbers
from bbn.model.variable import plain


def cost_matrix(costs: Any, classes: NDArray[Any]) -> Array:
    """The cost of each mistake, shape (true class, predicted class), from a mapping or an array.

    Parameters
    ----------
    costs : mapping or array
        (true class, predicted class) to cost, those left out being 0 where the two agree and 1 where they do not; or
        an array with the classes in order on both axes. Finite numbers; a negative one is a gain.
    classes : array
        The classes, in order.

    >>> cost_matrix({("ill", "well"): 50}, np.array(["ill", "well"]))
    array([[ 0., 50.],
           [ 1.,  0.]])
    """
    n = len(classes)
    if isinstance(costs, Mapping):
        labels = [plain(label) for label in classes]
        matrix = 1.0 - np.eye(n)
        for pair, cost in costs.items():
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise ValueError(f"costs: expected (true class, predicted class), found {shown(pair)}")
            place = []
            for label in map(plain, pair):
                if label not in labels:
                    raise ValueError(f"costs: {shown(label)} is not a class{nearest(label, labels)}")
                place.append(labels.index(label))
            matrix[tuple(place)] = _number(cost)
        return matrix
    try:
        matrix = numbers(costs)
    except (TypeError, ValueError):
        raise ValueError(f"costs must be a mapping or an array of numbers, found {shown(costs)}") from None
    if matrix.shape != (n, n):
        raise ValueError(
            f"costs: expected shape {(n, n)}, a row for each true class and a column for each predicted one, "
            f"found {matrix.shape}"
        )
    if not np.isfinite(matrix).all():
        raise ValueError("costs: expected finite numbers")
    return matrix


def _number(cost: object) -> float:
    try:
        number = float(cost)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = float("nan")
    if not np.isfinite(number):
        raise ValueError(f"costs: expected a finite number, found {shown(cost)}")
    return number
