"""Row plans: laws of their trees, and states that cannot occur left out, against sums over the joint table."""

from __future__ import annotations

import importlib
import itertools
import math

import networkx as nx
import numpy as np
import pytest

import bbn
from bbn import kernels
from bbn.data import Block, code
from bbn.inference.rows import expected_counts, row_plan
from bbn.inference.rows.expected_counts import EntryGradient, Expectation, by_name, flat_tables
from bbn.inference.rows.row_plan import Families
from bbn.kernels.contracts.tree import Tree
from tests.inference.exact.test_sparse_cliques import banded_network
from tests.learning.incomplete.test_em import random_network, slow_expected_counts, slow_m_step

EXPECT = [
    importlib.import_module(f"bbn.kernels.{kind}.expect")
    for kind in (("compiled", "pure") if kernels.COMPILED else ("pure",))
]

LARGE = pytest.mark.skipif(not kernels.COMPILED, reason="water has ten million entries for each row")


@pytest.fixture
def eager(monkeypatch):
    """Plans without impossible states are made wherever they have no more entries, however short the passes."""
    for name in ("LOOKING", "LOOKING_TABLE", "LOOKING_ENTRY", "MAKING"):
        monkeypatch.setattr(expected_counts, name, -1.0)


def random_families(rng: np.random.Generator) -> Families:
    """Scopes over up to ten variables of one to four states, in one part or several; a variable may be in none."""
    n = int(rng.integers(1, 11))
    cards = rng.integers(1, 5, n)
    sizes = rng.integers(1, min(n, 4) + 1, rng.integers(1, 25))
    return Families.of(cards, [rng.permutation(n)[:size].tolist() for size in sizes])


def cliques_of(tree: Tree) -> list[list[int]]:
    return [part.tolist() for part in np.split(tree.axes, tree.axes_ptr[1:-1])]


def streams_of(tree: Tree, c: int) -> list[tuple[int, list[int]]]:
    """Where each table and message of a clique begins, and its strides."""
    own = range(tree.stream_ptr[c], tree.stream_ptr[c + 1])
    ends = tree.stride_ptr
    return [(int(tree.base[s]), tree.strides[ends[s] : ends[s + 1]].tolist()) for s in own]


def parents_of(tree: Tree) -> list[int]:
    """Who reads the message of each clique; -1 of a root."""
    sender = {streams_of(tree, c)[-1][0]: c for c in range(len(tree.separator)) if tree.separator[c] >= 0}
    parents = [-1] * len(tree.separator)
    for c in range(len(parents)):
        first = tree.n_factors[c]
        for base, _ in streams_of(tree, c)[first : first + tree.n_children[c]]:
            parents[sender[base]] = c
    return parents


@pytest.mark.parametrize("seed", range(30))
def test_trees_keep_the_laws_of_junction_trees(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    for _ in range(20):
        monkeypatch.setattr(row_plan, "MOST_TERMS", int(rng.integers(2, 9)))
        families = random_families(rng)
        plan = row_plan.row_plan(families)
        tree, cards = plan.tree, families.cards
        cliques, parents = cliques_of(tree), parents_of(tree)
        assert all(p < c for c, p in enumerate(parents))
        assert [p < 0 for p in parents] == (tree.separator < 0).tolist()
        # running intersection: the cliques of a variable hang together, and what a clique shares comes first
        for c, p in enumerate(parents):
            shared = cliques[c][: max(int(tree.separator[c]), 0)]
            assert p < 0 or set(shared) == set(cliques[c]) & set(cliques[p])
        for v in range(len(cards)):
            holders = [c for c, clique in enumerate(cliques) if v in clique]
            assert sum(parents[c] not in holders for c in holders) <= 1
        # each table is read once, where all of its variables are, in its own order
        read = {}
        for c, clique in enumerate(cliques):
            assert tree.n_factors[c] + tree.n_children[c] <= row_plan.MOST_TERMS
            for base, strides in streams_of(tree, c)[: tree.n_factors[c]]:
                assert base not in read
                read[base] = {v: step for v, step in zip(clique, strides, strict=True) if step}
        assert sorted(read) == families.table_ptr[:-1].tolist()
        for f, scope in enumerate(families.scopes):
            steps = np.cumprod([1, *cards[scope[:0:-1]]])[::-1].tolist()
            assert read[int(families.table_ptr[f])] == dict(zip(scope, steps, strict=True))
        # messages lie end to end
        ends = [
            math.prod(cards[cliques[c][: tree.separator[c]]].tolist())
            for c, p in enumerate(parents)
            if p >= 0
        ]
        starts = sorted(streams_of(tree, c)[-1][0] for c, p in enumerate(parents) if p >= 0)
        assert tree.message_size == sum(ends)
        assert len(set(starts)) == len(starts)
        # and the price is what it says
        sizes = [math.prod(cards[clique].tolist()) for clique in cliques]
        streams = np.diff(tree.stream_ptr).tolist()
        assert plan.cells == sum(sizes)
        assert plan.visits == sum(size * n for size, n in zip(sizes, streams, strict=True))


def spanning_trees(graph: nx.Graph):
    """All spanning trees of a connected graph."""
    for edges in itertools.combinations(graph.edges, len(graph) - 1):
        tree = nx.Graph(edges)
        tree.add_nodes_from(graph)
        if nx.is_connected(tree):
            yield tree


def test_no_junction_tree_of_the_cliques_has_messages_that_meet_fewer_cells():
    """A spanning tree is a junction tree where it shares most variables (Jensen and Jensen 1994); all are tried."""
    rng, seen = np.random.default_rng(0), 0
    while seen < 60:
        families = random_families(rng)
        cliques = row_plan._cliques(families)
        graph = nx.Graph()
        graph.add_nodes_from(range(len(cliques)))
        size = [math.prod(families.cards[clique.axes].tolist()) for clique in cliques]
        for a, b in itertools.combinations(range(len(cliques)), 2):
            if cliques[a].held & cliques[b].held:
                graph.add_edge(a, b, shared=len(cliques[a].held & cliques[b].held), met=size[a] + size[b])
        if not 3 <= len(cliques) <= 6 or not nx.is_connected(graph) or graph.size() == len(cliques) - 1:
            continue
        prices = [
            (
                -sum(graph.edges[edge]["shared"] for edge in tree.edges),
                sum(graph.edges[edge]["met"] for edge in tree.edges),
            )
            for tree in spanning_trees(graph)
        ]
        holders = [
            np.array([c for c, clique in enumerate(cliques) if v in clique.held], np.intp)
            for v in range(len(families.cards))
        ]
        roots = row_plan._hung(cliques, np.array(size, float), holders)
        assert len(roots) == 1
        number = {id(clique): c for c, clique in enumerate(cliques)}
        edges = [(number[id(c)], number[id(other)]) for c in cliques for other in c.below]
        found = -sum(graph.edges[e]["shared"] for e in edges), sum(graph.edges[e]["met"] for e in edges)
        assert found == min(prices)
        seen += len(set(prices)) > 1


def weights_of(net: bbn.BayesianNetwork, tables: np.ndarray) -> np.ndarray:
    """The product of these tables, one axis for each variable."""
    place = {v.name: k for k, v in enumerate(net.variables)}
    operands = []
    for name, table in by_name(net, tables).items():
        operands += [table, [place[p] for p in (*net.parents(name), name)]]
    return np.einsum(*operands, list(range(len(place))))


def counts_of(net: bbn.BayesianNetwork, tables: np.ndarray, block: Block) -> tuple[dict, np.ndarray]:
    """The expected counts of each family and ln P of each row; an impossible one adds nothing."""
    joint = weights_of(net, tables)
    place = {v.name: k for k, v in enumerate(net.variables)}
    counts = {name: np.zeros(net[name].table.shape) for name in net.names}
    logs = np.full(block.n_rows, -np.inf)
    for i, weight in enumerate(block.weights):
        seen = tuple(
            slice(None)
            if block.codes[v.name][i] == v.card
            else slice(block.codes[v.name][i], block.codes[v.name][i] + 1)
            for v in net.variables
        )
        here = np.zeros_like(joint)
        here[seen] = joint[seen]
        total = here.sum()
        if total > 0:
            logs[i] = math.log(total)
            for name in net.names:
                family = [place[p] for p in (*net.parents(name), name)]
                counts[name] += weight / total * np.einsum(here, list(range(joint.ndim)), family)
    return counts, logs


def random_block(net: bbn.BayesianNetwork, rng: np.random.Generator, n: int = 4) -> Block:
    """Rows with gaps, most of them possible."""
    sampled = code(net.sample(n, seed=int(rng.integers(10**6))), net.variables)
    share, noise = rng.random(), rng.choice([0.0, 0.1])
    codes = {}
    for v in net.variables:
        column = np.where(rng.random(n) < noise, rng.integers(0, v.card, n), sampled.codes[v.name])
        codes[v.name] = np.where(rng.random(n) < share, v.card, column).astype(np.int32)
    return Block(codes, rng.uniform(0.5, 2.0, n))


def assert_counts(
    expectation: Expectation, net: bbn.BayesianNetwork, tables: np.ndarray, block: Block
) -> None:
    truth, logs = counts_of(net, tables, block)
    gradient, found = expectation.block(tables, block)
    np.testing.assert_allclose(found, logs, rtol=0, atol=1e-10)
    for name, counts in by_name(net, tables * gradient).items():
        np.testing.assert_allclose(counts, truth[name], rtol=0, atol=1e-10)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("seed", range(20))
def test_counts_without_impossible_states_step_after_step(seed, monkeypatch):
    """Zeros that are filled and zeros that come, by one expectation; impossible rows among the others; both kernels."""
    rng = np.random.default_rng([7, seed])
    made = impossible = 0
    for _ in range(30):
        net = banded_network(rng) if rng.random() < 0.5 else random_network(rng, 6, zeros=True)
        block = random_block(net, rng)
        given = flat_tables(net)
        filled = np.where(rng.random(given.size) < 0.3, rng.random(given.size), given)
        fewer = np.where(rng.random(given.size) < 0.15, 0.0, given)
        for kernel in EXPECT:
            monkeypatch.setattr(kernels, "expect", kernel)
            expectation = Expectation(net, 1)
            expectation.counts = True
            for tables in (given, filled, given, fewer, given):
                assert_counts(expectation, net, tables, block)
                made += expectation._chosen is not None and expectation._chosen[1].left is not None
                impossible += np.isneginf(counts_of(net, tables, block)[1]).any()
    assert made >= 50
    assert impossible >= 10


def chain() -> tuple[bbn.BayesianNetwork, Block]:
    """A → B → C, in which B is never 2; three rows that say nothing of B."""
    a, b, c = (bbn.Variable(name, [0, 1, 2]) for name in "ABC")
    tables = [[0.2, 0.3, 0.5]], [[0.4, 0.6, 0.0]] * 3, [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.8, 0.1, 0.1]]
    net = bbn.BayesianNetwork(
        [bbn.CPT(a, [], tables[0][0]), bbn.CPT(b, [a], tables[1]), bbn.CPT(c, [b], tables[2])]
    )
    codes = {"A": np.array([0, 1, 3]), "B": np.array([3, 3, 3]), "C": np.array([1, 3, 2])}
    return net, Block({name: own.astype(np.int32) for name, own in codes.items()}, np.ones(3))


@pytest.mark.usefixtures("eager")
def test_the_slope_at_a_zero_is_not_lost_unless_its_table_is_held():
    """ln P(row) is ln of a sum that is linear in each entry, so a step from 0 tells the slope."""
    net, block = chain()
    tables = flat_tables(net)
    expectation = Expectation(net, 1)
    gradient, logs = expectation.block(tables, block)
    zero = 3 + 2  # P(B=2 | A=0)
    moved = tables.copy()
    moved[zero] = 1.0
    step = np.exp(expectation.block(moved, block)[1] - logs) - 1.0
    assert gradient[zero] == pytest.approx(step.sum(), rel=1e-12)
    assert step.sum() > 0.1
    held = Expectation(net, 1)
    held.held = np.zeros(tables.size, bool)
    held.held[3:12] = True
    slopes, found = held.block(tables, block)
    assert held._chosen[1].left.domain.tolist() == [True, True, True, True, True, False, True, True, True]
    np.testing.assert_allclose(found, logs, rtol=1e-12)
    np.testing.assert_allclose(slopes[~held.held], gradient[~held.held], rtol=1e-12)


@pytest.mark.usefixtures("eager")
def test_slopes_where_some_tables_are_held_are_those_of_all_states():
    """Zeros of the tables that are not held rule nothing out."""
    rng, made = np.random.default_rng(9), 0
    for _ in range(150):
        net = banded_network(rng) if rng.random() < 0.5 else random_network(rng, 6, zeros=True)
        block, tables = random_block(net, rng), flat_tables(net)
        truth, logs = Expectation(net, 1).block(tables, block)
        expectation = Expectation(net, 1)
        expectation.held = held = np.zeros(tables.size, bool)
        for own in by_name(net, held).values():
            own[...] = rng.random() < 0.5
        slopes, found = expectation.block(tables, block)
        np.testing.assert_allclose(found, logs, rtol=0, atol=1e-10)
        np.testing.assert_allclose(slopes[~held], truth[~held], rtol=1e-9, atol=1e-9)
        made += expectation._chosen is not None and expectation._chosen[1].left is not None
    assert made >= 40


@pytest.mark.usefixtures("eager")
def test_states_that_a_function_rules_out_are_left_out_of_gradients():
    """A function that never gives 2 has no entries of its own; the slopes of all others are those of its table."""
    a, b, c = (bbn.Variable(name, [0, 1, 2]) for name in "ABC")
    other = bbn.Variable("D", [0, 1])
    low = bbn.Deterministic(b, [a, other], "min")
    first, last = (
        bbn.CPT(a, [], [0.2, 0.3, 0.5]),
        bbn.CPT(c, [b], [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.8, 0.1, 0.1]]),
    )
    second = bbn.CPT(other, [], [0.6, 0.4])
    net = bbn.BayesianNetwork([first, second, low, last])
    plain = bbn.BayesianNetwork([first, second, low.to_cpt(), last])
    data = {"A": [0, None, 2], "B": [None, None, 1], "C": [1, 2, None], "D": [None, 1, None]}
    slopes = EntryGradient(net, 1)
    slopes.expectation(slopes.tables, code(data, net.variables))
    assert slopes.expectation._chosen[1].left is not None
    found, truth = bbn.gradient(net, data), bbn.gradient(plain, data)
    assert set(found) == {"A", "C", "D"}
    for name, own in found.items():
        np.testing.assert_allclose(own, truth[name], rtol=1e-12)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("seed", range(40))
def test_em_from_tables_with_zeros_equals_brute_force_step_by_step(seed):
    """With pseudo-counts a zero is filled by the first step, without it stays; rows without mass become uniform."""
    rng = np.random.default_rng([8, seed])
    net = random_network(rng, 5, zeros=True)
    frame = net.sample(int(rng.integers(1, 12)), seed=seed, missing=0.4)
    rows = [
        {k: None if s != s or s is None else s for k, s in row.items()} for row in frame.to_dict("records")
    ]
    hidden = [name for name in net.names if all(row[name] is None for row in rows)]
    alpha = [0.0, 0.5][seed % 2]
    slow, logs = net, []
    for _ in range(4):
        counts, log_likelihood = slow_expected_counts(slow, rows)
        logs.append(log_likelihood)
        slow = slow_m_step(slow, counts, alpha)
    fast = bbn.fit_em(net, rows, hidden, bbn.Dirichlet(alpha) if alpha else None, max_iter=4, tol=-np.inf)
    np.testing.assert_allclose(fast.log_likelihoods[:4], logs, rtol=1e-9, atol=1e-9)
    for name in net.names:
        np.testing.assert_allclose(fast.network[name].table, slow[name].table, atol=1e-9)


@pytest.mark.usefixtures("eager")
def test_rows_with_a_state_that_cannot_occur_are_counted_as_impossible():
    net, _ = chain()
    data = {"A": [0, 0, 1, None], "B": [2, None, 2, 1], "C": [None, 1, 0, 2]}
    with pytest.raises(bbn.ImpossibleEvidenceError, match="2 rows of the data have probability 0"):
        bbn.fit_em(net, data)


@LARGE
def test_the_plan_is_kept_while_the_states_that_are_left_stay(monkeypatch):
    net = bbn.example("water")
    made = []
    make = expected_counts.filtered_plan
    monkeypatch.setattr(expected_counts, "filtered_plan", lambda *given: made.append(given) or make(*given))
    data = code(net.sample(100, seed=0, missing=0.3), net.variables)
    bbn.fit_em(net, data, max_iter=12, tol=-np.inf)
    assert (
        len(made) == 2
    )  # those of the network, and those of the first step, which leaves out what no row calls for
    assert (made[0][1] != made[1][1]).any()
    made.clear()
    bbn.fit_em(net, data, prior=bbn.Dirichlet(1.0), max_iter=5, tol=-np.inf)
    assert len(made) == 1  # the zeros are gone after the first step
    made.clear()
    bbn.fit_gradient(net, data, max_iter=1, tol=-np.inf)
    assert not made


@LARGE
def test_em_fits_where_only_the_states_that_can_occur_do(monkeypatch):
    """A row of water that says next to nothing: gradients look at each cell, counts at those that may be."""
    net = bbn.example("water")
    data = code(net.sample(20, seed=3, missing=0.9), net.variables)
    free = bbn.fit_em(net, data, max_iter=2, tol=-np.inf)
    monkeypatch.setenv("BBN_MEMORY_LIMIT", "8MB")
    limited = bbn.fit_em(net, data, max_iter=2, tol=-np.inf)
    np.testing.assert_allclose(limited.log_likelihoods, free.log_likelihoods, rtol=1e-12)
    with pytest.raises(bbn.BudgetError, match="most incomplete row"):
        bbn.gradient(net, data)


def test_family_marginals_are_the_joint_of_the_states_that_can_occur():
    net = bbn.example("water")
    found = expected_counts.family_marginals(net)
    for name in ("C_NI_12_15", "CNOD_12_30", "CKNI_12_45"):
        joint = net.query([*net.parents(name), name]).values
        np.testing.assert_allclose(found[name], joint, atol=1e-12)
