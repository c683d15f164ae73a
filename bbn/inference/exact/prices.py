"""Prices: what work costs, in one unit.

All choices compare nominal seconds: what the reference machine takes by this table, so that the same question has the
same plan on any machine. `make calibrate` measures the table anew, beside these numbers.
"""

from __future__ import annotations

CELL = 0.8e-9
"""A cell of a tree in a run of one goal: about four steps of a sweep."""
RUN = 16e-6
"""A run more of a plan whose values change by likelihoods, beside its cells: reading them, scaling, the answer."""
PLAN_FACTOR, PLAN_ENTRY = 240e-9, 0.8e-9
"""Making a plan for new values on an order that is known: for each factor, and for each entry of the tables."""
PIECE = 4.8e-6
"""Ordering a piece of an elimination anew."""
ORDER_STEP, ORDER_PAIR = 8e-6, 8e-9
"""Eliminating all variables once more: in any case, and for each pair of neighbours of an eliminated variable."""
WHOLE_TREE = 1.6e-6
"""The run of a network's whole tree up to which masking evidence on it is cheaper than compiling another tree."""
FILTERED = 240e-6
"""The run from which it is looked for states that cannot occur; see `domain_filtering`."""
MERGED = 8e-3
"""The run from which it is looked for variables that fix each other; see `variable_merging`."""
CASES = 240.0
"""The most that all cases of a question may take, as foreseen on an order that was looked for briefly."""
BUCKET_CELL = 8e-9
"""A cell of a product of logarithms, summed or maximised: ten cells of a run."""
VISIT = 11.2e-9
"""An entry of a table or message that a row plan looks at: 14 cells of a run; 8 to 25 in real networks."""
