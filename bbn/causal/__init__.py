"""Causes: graphs with hidden causes, what may be adjusted for, identification, effects, counterfactuals."""
