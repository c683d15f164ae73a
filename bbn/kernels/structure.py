"""Scores of batches of families: the compiled kernels where they were built, else their numpy twins."""

try:
    from bbn.kernels._structure import log_dirichlets, log_likelihoods, observed_rows
except ImportError:
    from bbn.kernels.structure_py import log_dirichlets, log_likelihoods, observed_rows

__all__ = ["log_dirichlets", "log_likelihoods", "observed_rows"]
