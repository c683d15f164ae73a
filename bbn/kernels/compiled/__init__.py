"""The compiled kernels, in Cython; see the README of `bbn.kernels`."""
