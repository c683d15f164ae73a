"""Coding and counting: the compiled kernels where they were built, else their numpy twins."""

try:
    from bbn.kernels._count import count, factorize_objects, factorize_text, merge_rows  # type: ignore[import-not-found]
except ImportError:
    from bbn.kernels.count_py import count, factorize_objects, factorize_text, merge_rows

__all__ = ["count", "factorize_objects", "factorize_text", "merge_rows"]
