"""What questions give back: posteriors, assignments, mixtures of Gaussians, and how sure a sampler is of them."""
