"""Structures from data: scores, searches, tests of independence, and the constraints on them."""
