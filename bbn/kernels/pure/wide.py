"""Programs on numbers of any size, in numpy: the same interpreter on logarithms."""

from bbn.kernels.pure.propagate import WideProgram

__all__ = ["WideProgram"]
