"""The E step of Gaussian families: the compiled kernel where it was built, else (or with BBN_PURE=1) its twin."""

import os
from typing import TYPE_CHECKING

__all__ = ["COMPILED", "add_log_densities", "add_moments", "normalise"]

COMPILED = os.environ.get("BBN_PURE", "") in ("", "0")
if COMPILED and not TYPE_CHECKING:
    try:
        from bbn.kernels._gaussians import add_log_densities, add_moments, normalise
    except ImportError:
        COMPILED = False
if TYPE_CHECKING or not COMPILED:
    from bbn.kernels.gaussians_py import add_log_densities, add_moments, normalise
