"""Approximate inference: forward sampling, rejection, weighting, importance, Gibbs, loopy propagation."""
