"""The types that kernels take and give."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Int32s: TypeAlias = npt.NDArray[np.int32]

Pairs: TypeAlias = Iterable[tuple[int, int]]
"""Hard evidence: variables and codes."""
Vectors: TypeAlias = Iterable[tuple[int, Floats]]
"""Likelihoods: variables and a number for each of their states."""

Scan: TypeAlias = tuple[str, int, bool, list[tuple[str, tuple[str, ...], tuple[str, ...], Floats, int]]]
"""What `bif.scan` reads; its docstring names the parts."""

MIN_FILL, WEIGHTED_MIN_FILL, MIN_WEIGHT, MIN_NEIGHBOURS = range(4)
"""Rules by which `triangulate.eliminate` chooses what to eliminate next."""
Reader: TypeAlias = tuple[int, type, dict[Any, int]]
"""The number of a variable, the type of its states, and each state's code."""
