"""Looking the rows of a column up: the compiled kernel where it was built, else its numpy twin."""

from typing import TYPE_CHECKING

from bbn.kernels import COMPILED

if TYPE_CHECKING or not COMPILED:
    from bbn.kernels.recode_py import present, recode
else:
    try:
        from bbn.kernels._recode import present, recode
    except ImportError:
        from bbn.kernels.recode_py import present, recode

__all__ = ["present", "recode"]
