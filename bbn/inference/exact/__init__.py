"""Exact inference: junction tree and its plans, elimination, enumeration, explanations, expected counts."""
