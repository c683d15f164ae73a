"""Random variables, factors, tables and networks: Hypothesis strategies, and a plain seeded generator.

Networks have mixed numbers of states from 1 to 6, zeros and deterministic rows, parts that are not
connected, and names and states with spaces, commas, quotes and letters of many scripts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from bbn.model.cpt import CPT
from bbn.model.factor import Factor
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Variable

ODD_WORDS = (
    *(
        "A",
        "b",
        "yes",
        "no",
        "two words",
        "a,b",
        " edge ",
        "it's",
        'say "hi"',
        "ünïcödé",
        "名前",
        "🔥",
        "1",
        "1.0",
        "-0",
    ),
    *(
        "True",
        "null",
        "None",
        "NaN",
        "a=b",
        "a|b",
        "x: y",
        "{z}",
        "[0]",
        "#",
        "\\",
        "%d",
        "a\tb",
        "a\nb",
        "e\u0301",
        "\u202e",
    ),
)
STRAY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)


def words() -> st.SearchStrategy[str]:
    """Names and text states, many of them awkward."""
    return st.sampled_from(ODD_WORDS) | STRAY_TEXT


def state_lists(min_size: int = 1, max_size: int = 6) -> st.SearchStrategy[list[Any]]:
    """Lists of distinct states of one kind: text, integers or booleans."""
    texts = st.lists(words(), min_size=min_size, max_size=max_size, unique=True)
    integers = st.lists(
        st.integers(-(2**70), 2**70) | st.integers(-2, 6), min_size=min_size, max_size=max_size, unique=True
    )
    if min_size > 2:
        return texts | integers
    booleans = st.lists(st.booleans(), min_size=min_size, max_size=min(2, max_size), unique=True)
    return texts | integers | booleans


@st.composite
def variables(draw: Any, min_card: int = 1, max_card: int = 6) -> Variable:
    """One variable."""
    return Variable(draw(words()), draw(state_lists(min_card, max_card)))


@st.composite
def variable_lists(
    draw: Any, min_size: int = 0, max_size: int = 4, min_card: int = 1, max_card: int = 6
) -> list[Variable]:
    """Variables of distinct names."""
    names = draw(st.lists(words(), min_size=min_size, max_size=max_size, unique=True))
    return [Variable(name, draw(state_lists(min_card, max_card))) for name in names]


@st.composite
def factors(draw: Any, pool: list[Variable]) -> Factor:
    """A factor over some of the variables of `pool`, in any order, zeros included."""
    chosen = draw(st.permutations(pool))[: draw(st.integers(0, len(pool)))]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = rng.random([v.card for v in chosen])
    return Factor(chosen, np.where(rng.random(values.shape) < draw(st.sampled_from([0.0, 0.3])), 0.0, values))


@st.composite
def cpts(draw: Any, max_parents: int = 3) -> CPT:
    """A table with up to `max_parents` parents."""
    variable, *parents = draw(variable_lists(1, 1 + max_parents, max_card=4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return CPT(variable, parents, random_table(rng, [*(p.card for p in parents), variable.card]))


@st.composite
def networks(
    draw: Any, max_nodes: int = 6, max_cells: int = 300, min_card: int = 1, zeros: bool = True
) -> BayesianNetwork:
    """A network; its joint has at most `max_cells` states. Structure and names shrink, tables come from a seed."""
    names = draw(st.lists(words(), min_size=1, max_size=max_nodes, unique=True))
    nodes: list[Variable] = []
    cells = 1
    for name in names:
        states = draw(state_lists(min_card, max(min_card, min(6, max_cells // cells))))
        if cells * len(states) > max_cells:
            break
        cells *= len(states)
        nodes.append(Variable(name, states))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    conditionals = []
    for i, node in enumerate(nodes):
        parents = draw(st.permutations(nodes[:i]))[: draw(st.integers(0, min(i, 3)))]
        conditionals.append(
            CPT(node, parents, random_table(rng, [*(p.card for p in parents), node.card], zeros))
        )
    return BayesianNetwork(draw(st.permutations(conditionals)))


def random_table(
    rng: np.random.Generator, shape: list[int], zeros: bool = True, tiny: bool = False
) -> np.ndarray:
    """A conditional table: each row dense, with zeros, or deterministic; tiny ones have entries down to 1e-300."""
    rows, card = int(np.prod(shape[:-1])), shape[-1]
    table = rng.dirichlet(np.ones(card), rows)
    if zeros:
        gone = rng.random((rows, card)) < rng.choice([0.0, 0.4, 1.0], p=[0.6, 0.25, 0.15], size=(rows, 1))
        gone[np.arange(rows), rng.integers(card, size=rows)] = False  # one entry of each row stays
        table[gone] = 0.0
        table /= table.sum(axis=1, keepdims=True)
    if tiny:
        small = rng.random((rows, card)) < 0.4
        small[np.arange(rows), table.argmax(axis=1)] = False  # the largest of each row takes what is left
        table = np.where(small, table * 10.0 ** -rng.uniform(0, 300, (rows, card)), table)
        table /= table.sum(axis=1, keepdims=True)
    return np.asarray(table.reshape(shape))


def random_network(
    rng: np.random.Generator,
    max_nodes: int = 12,
    max_card: int = 6,
    max_cells: int = 3000,
    max_parents: int = 3,
    min_card: int = 1,
    zeros: bool = True,
    tiny: bool = False,
    singles: int = 0,
) -> BayesianNetwork:
    """A network of 1 to `max_nodes` nodes whose joint has at most `max_cells` states, conditionals shuffled.

    `singles` are so many more nodes of one state, each a root or a child of some others, and a parent of others.
    """
    wanted = int(rng.integers(1, max_nodes + 1))
    names = [str(name) for name in rng.permutation([*ODD_WORDS, *(f"n{i}" for i in range(max_nodes))])]
    nodes: list[Variable] = []
    cells = 1
    for name in names[:wanted]:
        room = max_cells // (cells * 2 ** max(0, wanted - len(nodes) - 1))
        card = int(rng.integers(min_card, max(min_card, min(max_card, room)) + 1))
        cells *= card
        nodes.append(Variable(name, _random_states(rng, card)))
    nodes += [Variable(f"single {k}", ["only"]) for k in range(singles)]
    if singles:
        nodes = [nodes[int(i)] for i in rng.permutation(len(nodes))]
    density = rng.choice([0.0, 0.3, 0.6, 1.0], p=[0.05, 0.35, 0.4, 0.2])
    conditionals = []
    for i, node in enumerate(nodes):
        count = int(rng.binomial(min(i, max_parents), density))
        parents = [nodes[int(j)] for j in rng.permutation(i)[:count]]
        conditionals.append(
            CPT(node, parents, random_table(rng, [*(p.card for p in parents), node.card], zeros, tiny))
        )
    return BayesianNetwork([conditionals[int(i)] for i in rng.permutation(len(conditionals))])


def _random_states(rng: np.random.Generator, card: int) -> list[Any]:
    kind = rng.integers(3)
    if kind == 0 and card <= 2:
        return [True, False][:card]
    if kind == 1:
        return [int(i) for i in rng.permutation(card)]
    return [str(word) for word in rng.permutation(ODD_WORDS)[:card]]
