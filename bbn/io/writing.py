"""What the writers of YAML and JSON have in common: a network's nodes in order, its states and row keys as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from bbn.core.errors import ModelError
from bbn.model.binned import Binned, interval_labels
from bbn.model.cpt import CPT
from bbn.model.decision import Decision, Utility
from bbn.model.decision_network import DecisionNetwork
from bbn.model.gaussian import Gaussian
from bbn.model.holding_state import holding
from bbn.model.network import BayesianNetwork
from bbn.model.node_notes import DESCRIPTIONS, LATENT, described, latent_names
from bbn.model.noisy_max import NoisyMax
from bbn.model.variable import State, Variable

VERSION = 1
"""The version of the format that is read and written. A file that names none is of version 1."""
RESERVED = ("name", "nodes", "slice", "version", "metadata")
"""Keys of the top level that have a meaning; metadata of these names stand in the mapping `metadata`."""


def texts(network: Any) -> tuple[dict[str, str], dict[str, str]]:
    """The texts of the top level, the name first, and the metadata whose keys are reserved there."""
    top = {"name": network.name} if network.name else {}
    said = notes(network)  # what each node says itself
    told = (
        *RESERVED,
        *({LATENT} if any(LATENT in own for own in said.values()) else ()),
        *({DESCRIPTIONS} if any("description" in own for own in said.values()) else ()),
    )
    reserved: tuple[str, ...] = RESERVED
    if isinstance(network, DecisionNetwork):
        reserved = (*RESERVED, "recall")
        told = (*told, "recall")
        if network.recall == "limited":
            top["recall"] = network.recall
    top |= {key: text for key, text in network.metadata.items() if key not in told}
    return top, {key: text for key, text in network.metadata.items() if key in reserved}


def notes(network: Any) -> dict[str, dict[str, Any]]:
    """What is written of nodes beside their numbers, by name: `description`, a text, and `latent`, true."""
    names = node_names(network)
    found: dict[str, dict[str, Any]] = {
        name: {"description": text} for name, text in described(network.metadata, names).items()
    }
    for name in latent_names(network.metadata, names) if isinstance(network, BayesianNetwork) else ():
        found.setdefault(name, {})[LATENT] = True
    return found


def node_names(network: Any) -> list[str]:
    """The names of the nodes that are written, utilities among them."""
    if not isinstance(network, DecisionNetwork):
        return list(network.names)
    return [node.variable.name if hasattr(node, "variable") else node.name for node in network.nodes]


def state_text(state: State) -> str:
    """A state as it is written.

    >>> state_text(True), state_text(3), state_text("yes")
    ('true', '3', 'yes')
    """
    return ("true" if state else "false") if isinstance(state, bool) else str(state)


def conditionals(
    network: BayesianNetwork | DecisionNetwork,
) -> Iterator[CPT | Gaussian | Decision | Utility]:
    """The network's tables, Gaussians, decisions and utilities in order; ModelError for another kind of conditional."""
    for conditional in network.nodes if isinstance(network, DecisionNetwork) else network.conditionals:
        if isinstance(conditional, Decision | Utility):
            yield conditional
            continue
        if not isinstance(conditional, CPT | Gaussian):
            raise ModelError(
                f"node {conditional.variable.name!r} is a {type(conditional).__name__}; "
                "this format holds only tables and Gaussians"
            )
        if isinstance(conditional, Gaussian) and conditional.is_point:
            raise ModelError(
                f"node {conditional.name!r} is set to {float(conditional.means):g} by do(); "
                "a file holds only Gaussians with a variance above 0"
            )
        yield conditional


def gaussian_rows(gaussian: Gaussian) -> list[dict[str, Any]]:
    """What is written of each setting of the discrete parents, in order."""
    means, variances = gaussian.means.reshape(-1).tolist(), gaussian.variances.reshape(-1).tolist()
    rows: list[dict[str, Any]] = [
        {"mean": mean, "variance": variance} for mean, variance in zip(means, variances, strict=True)
    ]
    if gaussian.continuous_parents:
        weights = gaussian.weights.reshape(len(rows), -1).tolist()
        rows = [{**row, "weights": own} for row, own in zip(rows, weights, strict=True)]
    return rows


def utility_rows(utility: Utility) -> list[Any]:
    """What is written of each setting of the discrete parents, in order: a number, or one with weights."""
    worths = utility.table.reshape(-1).tolist()
    if not utility.continuous_parents:
        return worths
    weights = utility.weights.reshape(len(worths), -1).tolist()
    return [{"utility": worth, "weights": own} for worth, own in zip(worths, weights, strict=True)]


class ChancesOfOr(NamedTuple):
    """A noisy-MAX that is a noisy-OR: each parent's probability of causing it, the leak, and what must be said."""

    links: dict[str, float]
    leak: float
    holds: dict[str, State]
    """The states that hold, by name, where their words do not tell, or tell otherwise."""


def chances_of_or(noisy: NoisyMax) -> ChancesOfOr | None:
    """The numbers of a noisy-OR if it is one and reads back bit for bit, else None."""
    variable = noisy.variable
    if variable.card != 2 or any(parent.card != 2 for parent in noisy.parents):
        return None
    strong = variable.code(noisy.strongest)
    rows = np.concatenate([*noisy.links, noisy.leak[None]])
    if (rows[:, 1 - strong] != 1.0 - rows[:, strong]).any():
        return None
    links: dict[str, float] = {}
    holds = {variable.name: noisy.strongest} if holding(variable.states) != strong else {}
    for parent, link in zip(noisy.parents, noisy.links, strict=True):
        effects = link[:, strong].tolist()
        told = holding(parent.states)
        code = told if told is not None and not effects[1 - told] else int(effects[0] == 0)
        if effects[1 - code]:
            return None
        links[parent.name] = effects[code]
        if code != told:
            holds[parent.name] = parent.states[code]
    return ChancesOfOr(links, float(noisy.leak[strong]), holds)


def nested(rows: list[str], shape: tuple[int, ...]) -> str:
    """Rows as text in nested lists of this shape."""
    for n in reversed(shape):
        rows = [f"[{', '.join(rows[i : i + n])}]" for i in range(0, len(rows), n)]
    return rows[0]


def flags(gaussian: Gaussian) -> list[str]:
    """The flags that are true."""
    return [flag for flag in ("tied_variance", "fixed_variance") if getattr(gaussian, flag)]


def key_length(states: Sequence[Sequence[str]]) -> int:
    """How many characters the keys of all rows have, for parents with these states, each joined by ", ".

    >>> key_length([["yes", "no"], ["a", "b"]])  # yes, a; yes, b; no, a; no, b
    22
    """
    n_rows = prod(map(len, states))
    texts = sum(n_rows // len(own) * sum(map(len, own)) for own in states if own)
    return texts + 2 * n_rows * (len(states) - 1)


def row_keys(parents: tuple[Variable, ...]) -> list[str] | None:
    """The keys of the rows, states joined by commas; None if a state cannot be written that way."""
    texts = [[state_text(state) for state in parent.states] for parent in parents]
    if any(
        not text or text != text.strip() or set(text) & set(",\"'\n") for column in texts for text in column
    ):
        return None
    return [", ".join(setting) for setting in product(*texts)]


def state_fields(variable: Variable) -> dict[str, list[Any]]:
    """What a node says of its states: `states`, or the cut points as `bins`, with `states` for labels of their own."""
    states: list[Any] = list(variable.states)
    if not isinstance(variable, Binned):
        return {"states": states}
    bins = [int(edge) if edge.is_integer() and abs(edge) < 2**53 else edge for edge in variable.edges]
    own = variable.states != interval_labels(variable.edges)
    return {"bins": bins, "states": states} if own else {"bins": bins}
