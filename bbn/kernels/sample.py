"""Sampling: the compiled kernels where they were built, else their numpy twins (always, if BBN_PURE is 1)."""

import os

try:
    if os.environ.get("BBN_PURE", "") not in ("", "0"):
        raise ImportError
    from bbn.kernels._sample import accumulate, forward, gibbs
except ImportError:
    from bbn.kernels.sample_np import accumulate, forward, gibbs

__all__ = ["accumulate", "forward", "gibbs"]
