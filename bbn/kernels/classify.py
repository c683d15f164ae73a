"""Classifying coded rows: the compiled kernels where they were built, else their numpy twins."""

try:
    from bbn.kernels._classify import add_scores, code_matrix, present
except ImportError:
    from bbn.kernels.classify_py import add_scores, code_matrix, present

__all__ = ["add_scores", "code_matrix", "present"]
