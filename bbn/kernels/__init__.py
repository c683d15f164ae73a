"""The hot loops, on plain arrays; each compiled, with a twin in numpy or plain Python that gives the same answers.

``COMPILED`` says which are in use. The twins serve where the extensions are not built, and everywhere if the
environment variable BBN_PURE is set to 1.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

__all__ = [
    "BLOCK",
    "COMPILED",
    "Program",
    "WideProgram",
    "cells",
    "eliminate",
    "lay_out",
    "pack_factors",
    "reduce_scopes",
    "run_rows",
    "total_cells",
]

COMPILED = os.environ.get("BBN_PURE", "") in ("", "0")
if COMPILED and not TYPE_CHECKING:
    try:
        from bbn.kernels._batch import BLOCK, run_rows
        from bbn.kernels._layout import lay_out, pack_factors, reduce_scopes
        from bbn.kernels._propagate import Program
        from bbn.kernels._triangulate import cells, eliminate, total_cells
        from bbn.kernels._wide import WideProgram
    except ImportError:
        COMPILED = False
if TYPE_CHECKING or not COMPILED:
    from bbn.kernels.batch_np import BLOCK, run_rows
    from bbn.kernels.layout_py import lay_out, pack_factors, reduce_scopes
    from bbn.kernels.propagate_np import Program, WideProgram
    from bbn.kernels.triangulate_py import cells, eliminate, total_cells
