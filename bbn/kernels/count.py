"""Coding columns and merging rows: the compiled kernels where they were built, else (or with BBN_PURE=1) the twins."""

import os
from typing import TYPE_CHECKING

__all__ = ["COMPILED", "factorize_objects", "factorize_text", "merge_rows"]

COMPILED = os.environ.get("BBN_PURE", "") in ("", "0")
if COMPILED and not TYPE_CHECKING:
    try:
        from bbn.kernels._count import factorize_objects, factorize_text, merge_rows
    except ImportError:
        COMPILED = False
if TYPE_CHECKING or not COMPILED:
    from bbn.kernels.count_py import factorize_objects, factorize_text, merge_rows
