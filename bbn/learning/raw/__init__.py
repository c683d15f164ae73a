"""Learning from raw columns: read them, choose how numbers are modelled, search, fit."""
