"""Gaussian conditionals from data: moments, estimates, and the E and M steps of incomplete data."""
