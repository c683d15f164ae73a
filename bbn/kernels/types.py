"""The array types that kernels take and give."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Int32s: TypeAlias = npt.NDArray[np.int32]
