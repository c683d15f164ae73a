"""Numbers as text: the compiled kernel where it was built, else (or with BBN_PURE=1) its twin."""

import os
from typing import TYPE_CHECKING

__all__ = ["COMPILED", "row_texts"]

COMPILED = os.environ.get("BBN_PURE", "") in ("", "0")
if COMPILED and not TYPE_CHECKING:
    try:
        from bbn.kernels._decimals import row_texts
    except ImportError:
        COMPILED = False
if TYPE_CHECKING or not COMPILED:
    from bbn.kernels.decimals_py import row_texts
