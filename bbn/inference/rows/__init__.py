"""Many rows at once: posteriors, predictions and likelihoods of tables in memory, streams and clusters."""
