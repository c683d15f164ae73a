"""Scores and tests of batches of families: the compiled kernels where they were built, else their numpy twins."""

from typing import TYPE_CHECKING

from bbn.kernels import COMPILED

if TYPE_CHECKING or not COMPILED:
    from bbn.kernels.structure_py import independence, log_dirichlets, log_likelihoods, observed_rows
else:
    try:
        from bbn.kernels._structure import independence, log_dirichlets, log_likelihoods, observed_rows
    except ImportError:
        from bbn.kernels.structure_py import independence, log_dirichlets, log_likelihoods, observed_rows

__all__ = ["independence", "log_dirichlets", "log_likelihoods", "observed_rows"]
