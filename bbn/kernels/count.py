"""Coding and counting: the compiled kernels where they were built, else their numpy twins."""

try:
    from bbn.kernels._count import count, factorize_objects, merge_rows  # type: ignore[import-not-found]
except ImportError:
    from bbn.kernels.count_py import count, factorize_objects, merge_rows

__all__ = ["count", "factorize_objects", "merge_rows"]
