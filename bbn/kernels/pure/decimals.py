"""Numbers as text that reads back bit for bit."""

from __future__ import annotations

import numpy as np

from bbn.kernels.contracts.checks import check_doubles, check_numbers
from bbn.kernels.contracts.types import Floats


def row_texts(values: Floats, card: int, separator: str, end: str) -> list[str]:
    """Each run of `card` values as text, as `repr` writes them, with the separator between them and the end after.

    Parameters
    ----------
    values
        One-dimensional, contiguous; as many as there are rows times `card`.
    card
        At least 1.
    separator, end
        ASCII.
    """
    check_doubles(values)
    check_numbers("f", 1, values)
    if card < 1 or len(values) % card:
        raise ValueError(f"{len(values)} values are not rows of {card}")
    numbers = values.tolist()
    if np.signbit(values).any():  # -0.0 equals 0.0 and would share its text
        texts = map(repr, numbers)
    else:
        texts = map({number: repr(number) for number in set(numbers)}.__getitem__, numbers)
    return [separator.join(row) + end for row in zip(*[texts] * card, strict=True)]
