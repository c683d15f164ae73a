"""Learning: tables from counts, from incomplete data, and structures from scores."""
