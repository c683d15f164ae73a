"""Where the passes along a chain give up doubles."""

from __future__ import annotations

LOST = 1e-250
"""A step with a sum below this is given up: its numbers are too small beside each other for doubles."""
FAINT, FAINTEST = 1e-200, 1e-300
"""A possible state whose share of a step is below FAINT gives it up too, since later evidence may bring it back; so
does one whose way through the smallest entry of the matrices would end below FAINTEST."""
MOST = 1e300
"""What follows a step counts at most this for a state: only one that is impossible there can reach it."""
