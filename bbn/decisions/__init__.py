"""Decisions: policies, what information is worth, how far an answer can be trusted, and risk."""
