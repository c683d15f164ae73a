"""BayesianNetwork: structure, edits and probabilities against the joint, by brute force."""

import copy
import math
import pickle
from itertools import combinations, pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bbn.core.errors import BudgetError, EvidenceError, ModelError
from bbn.model.cpt import CPT
from bbn.model.factor import Factor
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Variable
from tests.support import oracle
from tests.support.strategies import networks, random_network

YES_NO = ["yes", "no"]
S, B, C = Variable("Storm", YES_NO), Variable("Bus", YES_NO), Variable("Campfire", YES_NO)
CAMP = BayesianNetwork(
    [
        CPT(C, [S, B], [[[0.4, 0.6], [0.1, 0.9]], [[0.8, 0.2], [0.2, 0.8]]]),
        CPT(B, table=[0.5, 0.5]),
        CPT(S, table=[0.2, 0.8]),
    ],
    name="camp",
    metadata={"source": "Mitchell 1997"},
)


def by_name(net):
    """The joint as {frozenset of (name, state)}: the same whatever the order of the nodes."""
    return {frozenset(zip(net.names, x, strict=True)): p for x, p in oracle.joint(net).items()}


def close(left, right):
    assert left.keys() == right.keys()
    for x, p in left.items():
        assert p == pytest.approx(right[x], rel=1e-12, abs=1e-15)


def numbers(net):
    """The tables alone, in the order of the nodes."""
    return [net[name].table.tolist() for name in net.names]


# structure


@given(networks(max_nodes=8))
def test_order_parents_and_children(net):
    """Every parent comes before its children; parents and children mirror each other and the graph."""
    assert len(net) == len(net.names) == len(net.variables) == len(set(net.names))
    for i, name in enumerate(net.names):
        assert name in net
        assert net.variable(name) is net.variables[i] is net[name].variable
        assert net.states(name) == net.graph.nodes[name]["states"] == net.variables[i].states
        assert net.graph.nodes[name]["cpt"] is net[name]
        assert net.parents(name) == tuple(p.name for p in net[name].parents)
        assert all(net.names.index(p) < i for p in net.parents(name))
        assert sorted(net.children(name)) == sorted(n for n in net.names if name in net.parents(n))
        assert sorted(net.graph.predecessors(name)) == sorted(net.parents(name))
    assert sorted(net.arcs) == sorted(net.graph.edges)
    assert nx.is_directed_acyclic_graph(net.graph)
    assert nx.is_frozen(net.graph)
    assert net.n_parameters == sum(net[n].table[..., 1:].size for n in net.names)


@given(networks(min_card=2, zeros=False), st.data())
def test_markov_blanket_shields_a_node_from_all_others(net, data):
    """The theorem: given its blanket a node is independent of the rest, and no smaller blanket separates."""
    name = data.draw(st.sampled_from(net.names))
    blanket = net.markov_blanket(name)
    assert name not in blanket
    rest = set(net.names) - {name, *blanket}
    if rest:
        assert net.is_d_separated(name, rest, blanket)
    for member in blanket:
        assert not net.is_d_separated(name, member, set(blanket) - {member})


def test_d_separation_is_independence_in_the_numbers():
    """d-separated pairs are independent in the joint (soundness); in dense random tables the others are not."""
    rng = np.random.default_rng(3)
    separated = connected = 0
    for _ in range(40):
        net = random_network(rng, max_nodes=6, max_card=3, max_cells=300, min_card=2, zeros=False)
        joint = net.joint()
        for x, y in combinations(net.names, 2):
            others = [n for n in net.names if n not in (x, y)]
            given_names = [n for n in others if rng.random() < 0.4]
            z = set(given_names)
            pxyz = joint.sum_out([n for n in others if n not in z])
            left = pxyz * pxyz.sum_out([x, y])
            right = pxyz.sum_out(x) * pxyz.sum_out(y)
            gap = np.abs(left.values - right.permute(left.names).values).max() / left.values.max()
            assert net.is_d_separated(x, y, given_names) == (gap < 1e-10), (x, y, given_names, gap)
            separated += gap < 1e-10
            connected += gap >= 1e-10
    assert separated > 50
    assert connected > 50


def test_d_separation_of_the_three_shapes():
    a, b, c = (Variable(n, YES_NO) for n in "abc")
    chain = BayesianNetwork([CPT.uniform(a), CPT.uniform(b, [a]), CPT.uniform(c, [b])])
    fork = BayesianNetwork([CPT.uniform(b), CPT.uniform(a, [b]), CPT.uniform(c, [b])])
    collider = BayesianNetwork([CPT.uniform(a), CPT.uniform(c), CPT.uniform(b, [a, c])])
    for net in (chain, fork):
        assert not net.is_d_separated("a", "c")
        assert net.is_d_separated("a", "c", "b")
    assert collider.is_d_separated("a", "c")
    assert not collider.is_d_separated("a", "c", ["b"])
    with pytest.raises(EvidenceError, match="no variable 'z'"):
        chain.is_d_separated("a", "z")


# probabilities


@given(networks())
def test_joint_and_probability_of_a_full_assignment(net):
    """∏ P(x_i | parents), and the same cell of the joint; all of them sum to 1."""
    joint = net.joint()
    assert joint.names == net.names
    slow = oracle.joint(net)
    assert math.fsum(slow.values()) == pytest.approx(1, abs=1e-12)
    for x, p in slow.items():
        assert net.probability(dict(zip(net.names, x, strict=True))) == pytest.approx(
            p, rel=1e-12, abs=1e-300
        )
        assert joint[x] == pytest.approx(p, rel=1e-12, abs=1e-300)


@settings(max_examples=50)
@given(networks(), st.data())
def test_probability_of_a_partial_assignment_sums_out_the_rest(net, data):
    names = data.draw(st.lists(st.sampled_from(net.names), unique=True))
    x = {name: data.draw(st.sampled_from(net.states(name))) for name in names}
    assert net.probability(x) == pytest.approx(oracle.evidence_probability(net, x), rel=1e-12, abs=1e-15)


def test_probability_reads_none_as_unobserved_and_names_faults():
    assert CAMP.probability({"Storm": "yes", "Bus": None, "Campfire": None}) == pytest.approx(0.2, abs=1e-15)
    assert CAMP.probability({}) == pytest.approx(1, abs=1e-15)
    with pytest.raises(EvidenceError, match="'Bus' has no state 'maybe'"):
        CAMP.probability({"Storm": "yes", "Bus": "maybe", "Campfire": "no"})
    with pytest.raises(EvidenceError, match="did you mean 'Storm'"):
        CAMP.probability({"Strom": "yes"})


def test_joint_is_guarded_and_the_limit_can_be_set():
    with pytest.raises(BudgetError, match="64 bytes, more than the limit of 10 bytes"):
        CAMP.joint(memory_limit=10)
    assert isinstance(CAMP.joint(memory_limit="1 kB"), Factor)


# interventions


@given(networks(), st.data())
def test_do_is_the_truncated_factorisation(net, data):
    """P(x | do(s)) = ∏ P(x_i | parents) over the nodes not set, where x agrees with s, else 0 (Pearl 2009, 3.10)."""
    names = data.draw(st.lists(st.sampled_from(net.names), unique=True))
    setting = {name: data.draw(st.sampled_from(net.states(name))) for name in names}
    after = net.do(setting)
    for x, p in oracle.joint(after).items():
        state = dict(zip(after.names, x, strict=True))
        expected = float(all(state[n] == s for n, s in setting.items()))
        for name in net.names:
            if name not in setting:
                expected *= net[name].row(*(state[p] for p in net.parents(name)))[state[name]]
        assert p == pytest.approx(expected, rel=1e-12, abs=1e-300)
    assert all(after.parents(name) == () for name in setting)


def test_do_differs_from_seeing():
    """Setting a child tells nothing of its parent; seeing it does."""
    assert oracle.posterior(CAMP.do({"Campfire": "yes"}), ["Storm"])["yes",] == pytest.approx(0.2, abs=1e-15)
    assert oracle.posterior(CAMP, ["Storm"], {"Campfire": "yes"})["yes",] == pytest.approx(
        0.05 / 0.45, abs=1e-15
    )


# edits


@given(networks(), st.data())
def test_add_arc_keeps_the_joint(net, data):
    pairs = [
        (a, b)
        for a, b in combinations(net.names, 2)  # in topological order, so no cycle
        if a not in net.parents(b)
    ]
    if pairs:
        parent, child = data.draw(st.sampled_from(pairs))
        after = net.add_arc(parent, child)
        assert after.parents(child) == (*net.parents(child), parent)
        close(by_name(after), by_name(net))


@given(networks(), st.data())
def test_remove_arc_averages_the_rows_over_the_parent(net, data):
    if net.arcs:
        parent, child = data.draw(st.sampled_from(net.arcs))
        weights = data.draw(st.none() | st.just({s: 1.0 + i for i, s in enumerate(net.states(parent))}))
        after = net.remove_arc(parent, child, weights)
        assert after.parents(child) == tuple(p for p in net.parents(child) if p != parent)
        shares = weights or dict.fromkeys(net.states(parent), 1.0)
        for setting in oracle.product(*(net.states(p) for p in after.parents(child))):
            x = dict(zip(after.parents(child), setting, strict=True))
            rows = {s: net[child].row(*(({**x, parent: s})[p] for p in net.parents(child))) for s in shares}
            for state in net.states(child):
                expected = sum(w * rows[s][state] for s, w in shares.items()) / sum(shares.values())
                assert after[child].row(*setting)[state] == pytest.approx(expected, abs=1e-14)
        assert {n: after[n] for n in after.names if n != child} == {
            n: net[n] for n in net.names if n != child
        }


@given(networks(), st.data())
def test_removing_an_added_arc_gives_the_network_back(net, data):
    pairs = [(a, b) for a, b in combinations(net.names, 2) if a not in net.parents(b)]
    if pairs:
        parent, child = data.draw(st.sampled_from(pairs))
        after = net.add_arc(parent, child).remove_arc(parent, child)
        assert sorted(after.arcs) == sorted(net.arcs)
        for name in net.names:
            np.testing.assert_allclose(after[name].table, net[name].table, rtol=0, atol=1e-15)


@given(networks(), st.data())
def test_subnetwork_is_the_marginal_over_the_nodes_and_their_ancestors(net, data):
    names = data.draw(st.lists(st.sampled_from(net.names), min_size=1, unique=True))
    small = net.subnetwork(names)
    assert set(small.names) == set(names).union(*(nx.ancestors(net.graph, n) for n in names))
    slow = oracle.posterior(net, list(small.names))
    close(oracle.joint(small), slow)


@given(networks(), st.data())
def test_rename_and_relabel_keep_the_numbers(net, data):
    """Swapped names and swapped states are no special case; renaming back gives an equal network."""
    turned = dict(zip(net.names, data.draw(st.permutations(net.names)), strict=True))
    after = net.rename(turned)
    assert [after[turned[n]].table.tolist() for n in net.names] == numbers(net)
    assert [after.parents(turned[n]) for n in net.names] == [
        tuple(turned[p] for p in net.parents(n)) for n in net.names
    ]
    assert after.rename({new: old for old, new in turned.items()}) == net
    name = data.draw(st.sampled_from(net.names))
    swapped = dict(zip(net.states(name), data.draw(st.permutations(net.states(name))), strict=True))
    after = net.relabel(name, swapped)
    assert after.states(name) == tuple(swapped[s] for s in net.states(name))
    assert numbers(after) == numbers(net)
    assert after.relabel(name, {new: old for old, new in swapped.items()}) == net


def test_rename_and_relabel_by_hand():
    net = CAMP.rename({"Storm": "Tempest"}).relabel("Tempest", {"yes": True, "no": False})
    assert net.parents("Campfire") == ("Tempest", "Bus")
    assert net["Campfire"].row(True, "no") == {"yes": 0.1, "no": 0.9}
    assert (net.name, dict(net.metadata)) == ("camp", {"source": "Mitchell 1997"})


def test_with_cpts_replaces_adds_and_leaves_the_old_network_alone():
    extra = Variable("Fire", YES_NO)
    after = CAMP.with_cpts([CPT(S, table=[1, 0]), CPT(extra, [C], [[0.5, 0.5], [0, 1]])])
    assert after["Storm"].table.tolist() == [1, 0]
    assert after.children("Campfire") == ("Fire",)
    assert CAMP["Storm"].table.tolist() == [0.2, 0.8]
    assert CAMP.children("Campfire") == ()
    assert CAMP.with_cpts([]) == CAMP.do({}) == CAMP.rename({}) == CAMP


@given(networks())
def test_from_graph_gives_the_network_back(net):
    """Nodes that carry a CPT, or states and a table with the parents in the order of the arcs."""
    assert BayesianNetwork.from_graph(net.graph) == net
    plain = nx.DiGraph()
    for name in net.names:
        plain.add_node(name, states=list(net.states(name)), table=net[name].table.tolist())
    plain.add_edges_from(net.arcs)
    assert BayesianNetwork.from_graph(plain) == net


def test_from_graph_takes_the_order_of_parents_from_an_attribute():
    graph = nx.DiGraph([("Bus", "Campfire"), ("Storm", "Campfire")])
    for name in CAMP.names:
        graph.nodes[name].update(states=YES_NO, table=CAMP[name].table)
    graph.nodes["Campfire"]["parents"] = ["Storm", "Bus"]
    assert BayesianNetwork.from_graph(graph) == CAMP
    graph.nodes["Campfire"]["parents"] = ["Storm"]
    with pytest.raises(ModelError, match="does not match its arcs"):
        BayesianNetwork.from_graph(graph)


# the value


@given(networks(), st.data())
def test_equality_is_of_the_model(net, data):
    """Not of the order of the nodes, the name or the metadata; any changed number makes a difference."""
    twin = BayesianNetwork(data.draw(st.permutations(net.conditionals)), name="other", metadata={"a": "b"})
    assert twin == net
    assert hash(twin) == hash(net)
    for name in net.names:
        shifted = np.roll(net[name].table, 1, axis=-1)  # each row a distribution still
        changed = net.with_cpts([CPT(net.variable(name), net[name].parents, shifted)])
        assert (changed == net) == np.array_equal(shifted, net[name].table)


@given(networks())
def test_pickle_and_copy_keep_the_value_and_the_locks(net):
    net = BayesianNetwork(net.conditionals, name="n", metadata={"source": "here"})
    for twin in (pickle.loads(pickle.dumps(net)), copy.deepcopy(net), copy.copy(net)):
        assert twin == net
        assert hash(twin) == hash(net)
        assert (twin.name, twin.names, dict(twin.metadata)) == (net.name, net.names, dict(net.metadata))
        for name in twin.names:
            assert not twin[name].table.flags.writeable
            assert twin[name].parents == tuple(twin.variable(p) for p in twin.parents(name))


def test_it_is_frozen():
    with pytest.raises(AttributeError, match="frozen"):
        CAMP.name = "other"
    with pytest.raises(TypeError):
        CAMP.metadata["source"] = "other"
    with pytest.raises(nx.NetworkXError, match="Frozen"):
        CAMP.graph.add_edge("Storm", "Bus")
    with pytest.raises(TypeError):
        CAMP["Storm"] = CPT.uniform(S)


def test_a_conditional_need_not_be_a_table():
    """Anything with a variable and parents stands in a network; what needs a table says so."""

    class Leaf:
        def __init__(self, variable, parents):
            self.variable, self.parents = variable, tuple(parents)

    leaf = Leaf(Variable("X", [0, 1]), [C])
    net = CAMP.with_cpts([leaf])
    assert net.parents("X") == ("Campfire",)
    assert net["X"] is leaf
    assert net.subnetwork(["Campfire"]) == CAMP
    with pytest.raises(ModelError, match="'X' is a Leaf"):
        net.joint()
    with pytest.raises(ModelError, match="'X' is a Leaf"):
        net.add_arc("Storm", "X")


def test_a_long_chain_is_built_checked_and_printed_without_recursion():
    nodes = [Variable(f"n{i}", YES_NO) for i in range(10_000)]
    chain = [CPT(nodes[0], table=[0.5, 0.5])]
    chain += [CPT(b, [a], [[0.9, 0.1], [0.2, 0.8]]) for a, b in pairwise(nodes)]
    net = BayesianNetwork(reversed(chain))
    assert net.names[0] == "n0"
    assert net.names[-1] == "n9999"
    assert pickle.loads(pickle.dumps(net)) == net
    assert repr(net) == "<BayesianNetwork: 10000 nodes, 9999 arcs>"
    with pytest.raises(ModelError, match=r"a cycle: n0 → n1 → .* → n0 \(10000 nodes\)$"):
        BayesianNetwork([*chain[1:], CPT(nodes[0], [nodes[-1]], [[0.9, 0.1], [0.2, 0.8]])])
