"""Networks with continuous variables: components that are jointly Gaussian, mixed into the discrete engine."""
