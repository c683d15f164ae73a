"""What the writers of YAML and JSON have in common: a network's tables in order, its states and row keys as text."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from bbn.cpt import CPT
from bbn.errors import ModelError
from bbn.network import BayesianNetwork
from bbn.variable import State


def state_text(state: State) -> str:
    """A state as it is written.

    >>> state_text(True), state_text(3), state_text("yes")
    ('true', '3', 'yes')
    """
    return ("true" if state else "false") if isinstance(state, bool) else str(state)


def tables(network: BayesianNetwork) -> Iterator[CPT]:
    """The network's tables in order; ModelError if a conditional is of another kind."""
    for variable in network.variables:
        conditional: Any = network[variable.name]
        if not isinstance(conditional, CPT):
            raise ModelError(
                f"node {variable.name!r} is a {type(conditional).__name__}; this format holds only tables"
            )
        yield conditional


def row_keys(cpt: CPT) -> list[str] | None:
    """The keys of the rows, states joined by commas; None if a state cannot be written that way."""
    texts = [[state_text(state) for state in parent.states] for parent in cpt.parents]
    if any(
        not text or text != text.strip() or set(text) & set(",\"'\n") for column in texts for text in column
    ):
        return None
    return [", ".join(setting) for setting in product(*texts)]
