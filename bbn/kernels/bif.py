"""Reading ordinary BIF: the compiled kernel where it was built, else (or with BBN_PURE=1) its twin."""

import os
from typing import TYPE_CHECKING

__all__ = ["COMPILED", "Scan", "scan"]

from bbn.kernels.bif_py import Scan

COMPILED = os.environ.get("BBN_PURE", "") in ("", "0")
if COMPILED and not TYPE_CHECKING:
    try:
        from bbn.kernels._bif import scan
    except ImportError:
        COMPILED = False
if TYPE_CHECKING or not COMPILED:
    from bbn.kernels.bif_py import scan
