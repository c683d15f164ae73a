"""What callers and both kinds of kernels agree on: the arrays, the tape, the moves, and the checks at the entry."""
