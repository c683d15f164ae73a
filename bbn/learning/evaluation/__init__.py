"""How good is what was learned: comparing structures, cross-validation, strength of arcs."""
