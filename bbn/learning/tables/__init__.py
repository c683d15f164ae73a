"""Tables from complete data: counts, priors, and the one formula that joins them."""
