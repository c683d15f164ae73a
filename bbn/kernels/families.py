"""Counting batches of families: the compiled kernels where they were built, else their numpy twins."""

from typing import TYPE_CHECKING

from bbn.kernels import COMPILED

if TYPE_CHECKING or not COMPILED:
    from bbn.kernels.families_py import bitmaps, count_families, worth_bitmaps
else:
    try:
        from bbn.kernels._families import bitmaps, count_families, worth_bitmaps
    except ImportError:
        from bbn.kernels.families_py import bitmaps, count_families, worth_bitmaps

__all__ = ["bitmaps", "count_families", "worth_bitmaps"]
