"""Causal graphs: arcs, hidden causes, paths, and what separates variables."""
