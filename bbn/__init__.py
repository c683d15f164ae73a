"""bbn: Bayesian belief networks."""
