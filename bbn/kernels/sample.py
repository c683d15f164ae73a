"""Sampling: the compiled kernels where they were built, else their numpy twins."""

try:
    from bbn.kernels._sample import accumulate, forward, gibbs
except ImportError:
    from bbn.kernels.sample_np import accumulate, forward, gibbs

__all__ = ["accumulate", "forward", "gibbs"]
