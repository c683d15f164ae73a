"""The twins of the compiled kernels, in numpy and plain Python; see the README of `bbn.kernels`."""
