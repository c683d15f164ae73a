"""Adjustment sets against the definition, path by path and set by set, and against the effects themselves."""

from itertools import combinations, pairwise

import networkx as nx
import numpy as np
import pytest

import bbn
from tests.support.causal_truth import (
    Paths,
    minimal,
    random_arcs,
    random_hidden_causes,
    random_network,
    subsets,
    surgery,
    valid_adjustment,
)


def dag_of(arcs, names):
    graph = nx.DiGraph()
    graph.add_nodes_from(names)
    graph.add_edges_from(arcs)
    return graph


@pytest.mark.parametrize("seeds", [range(500), pytest.param(range(500, 2000), marks=pytest.mark.slow)])
def test_minimal_sets_equal_brute_force_on_two_thousand_graphs(seeds):
    n_sets = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 8))
        names = [f"V{i}" for i in range(n)]
        graph = dag_of(random_arcs(rng, names, float(rng.uniform(0.2, 0.6))), names)
        x, y = (str(v) for v in rng.choice(names, 2, replace=False))
        hidden = [v for v in names if v not in (x, y) and rng.random() < 0.2]
        free = [v for v in names if v not in (x, y, *hidden)]
        paths = Paths(graph, x, y)
        valid = [s for s in subsets(free) if valid_adjustment(graph, x, y, s, paths)]
        found = bbn.adjustment_sets(graph, x, y, latent=hidden)
        assert set(found) == minimal(valid), seed
        assert len(set(found)) == len(found)
        assert found == sorted(found, key=lambda s: (len(s), sorted(s)))
        for one in subsets(free)[:20]:
            check = bbn.check_adjustment(graph, x, y, one, latent=hidden)
            assert bool(check) == (one in valid)
            if check.open_path is not None:
                assert list(check.open_path.names) in paths.open_given(one, causal=False)
        # Pearl's back-door criterion
        below = nx.descendants(graph, x)
        cut = dag_of([(a, b) for a, b in graph.edges if a != x], names)
        doors = [s for s in subsets(free) if not s & below and nx.is_d_separator(cut, {x}, {y}, set(s))]
        assert set(bbn.adjustment_sets(graph, x, y, latent=hidden, criterion="back-door")) == minimal(
            doors
        ), seed
        n_sets += len(found)
    assert n_sets > 300


def test_valid_sets_give_the_effect_for_several_treatments():
    checked = 0
    for seed in range(120):
        rng = np.random.default_rng(seed)
        names, latent, arcs = random_hidden_causes(rng, 6, 2)
        picks = [str(v) for v in rng.permutation(names)]
        x, y = picks[:2], picks[2]
        net = random_network(rng, arcs, names + latent)
        for adjusted in bbn.adjustment_sets(net, x, y, latent=latent)[:3]:
            z = sorted(adjusted)
            do = dict.fromkeys(x, "s1")
            joint = surgery(net, [*x, *z, y])[1, 1]
            with_z = joint.sum(axis=-1, keepdims=True)
            weights = surgery(net, z) if z else np.ones(())
            effect = (joint / with_z * weights[..., None]).reshape(-1, 2).sum(axis=0)
            np.testing.assert_allclose(effect, surgery(net, [y], do), atol=1e-10)
            checked += 1
    assert checked > 20


def members(pattern):
    """All DAGs that a CPDAG stands for: every way to direct its edges that makes the same CPDAG."""
    edges = [(a, b) for a, b in pattern.edges if a < b and pattern.has_edge(b, a)]
    arcs = [(a, b) for a, b in pattern.edges if not pattern.has_edge(b, a)]
    for turned in np.ndindex(*(2,) * len(edges)):
        dag = dag_of(
            arcs + [(b, a) if t else (a, b) for (a, b), t in zip(edges, turned, strict=True)], pattern.nodes
        )
        if nx.is_directed_acyclic_graph(dag) and set(bbn.cpdag(dag).edges) == set(pattern.edges):
            yield dag


def test_sets_of_a_class_are_those_valid_in_every_member():
    some = none = 0
    for seed in range(250):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(3, 6))
        names = [f"V{i}" for i in range(n)]
        pattern = bbn.cpdag(dag_of(random_arcs(rng, names, 0.5), names))
        x, y = (str(v) for v in rng.choice(names, 2, replace=False))
        free = [v for v in names if v not in (x, y)]
        valid = set(subsets(free))
        for dag in members(pattern):
            paths = Paths(dag, x, y)
            valid = {s for s in valid if valid_adjustment(dag, x, y, s, paths)}
        found = bbn.adjustment_sets(pattern, x, y)
        assert set(found) == minimal(valid), (seed, sorted(pattern.edges), x, y)
        some, none = some + bool(valid), none + (not valid)
    assert some > 50
    assert none > 50


def influence_variance(net, x, y, z):
    """The asymptotic variance of the efficient estimator of E[y | do(x=s1)] − E[y | do(x=s0)] that adjusts for z."""
    z = sorted(z)
    joint = surgery(net, [*z, x, y]).reshape(-1, 2, 2)
    p_z, p_zx = joint.sum(axis=(1, 2)), joint.sum(axis=2)
    mean = joint[..., 1] / p_zx
    spread = mean * (1 - mean)
    share = p_zx / p_z[:, None]
    difference = mean[:, 1] - mean[:, 0]
    effect = p_z @ difference
    return p_z @ (spread[:, 1] / share[:, 1] + spread[:, 0] / share[:, 0]) + p_z @ (difference - effect) ** 2


def test_no_valid_set_has_less_variance_than_the_optimal_one():
    compared = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        names = [f"V{i}" for i in range(5)]
        arcs = random_arcs(rng, names, 0.6)
        graph = dag_of(arcs, names)
        x, y = "V1", "V4"
        if y not in nx.descendants(graph, x):
            continue
        net = random_network(rng, arcs, names)
        valid = [s for s in subsets(set(names) - {x, y}) if valid_adjustment(graph, x, y, s)]
        (best,) = bbn.adjustment_sets(graph, x, y, optimal=True)
        assert best in valid
        least = influence_variance(net, x, y, best)
        for other in valid:
            assert least <= influence_variance(net, x, y, other) + 1e-12, (seed, best, other)
            compared += 1
    assert compared > 100


def test_with_hidden_causes_the_optimal_set_is_the_best_of_the_minimal_ones():
    compared = 0
    for seed in range(700):
        rng = np.random.default_rng(seed)
        names, latent, arcs = random_hidden_causes(rng, 5, 2)
        net = random_network(rng, arcs, names + latent)
        x, y = "V1", "V4"
        sets = bbn.adjustment_sets(net, x, y, latent=latent)
        best = bbn.adjustment_sets(net, x, y, latent=latent, optimal=True)
        assert bool(best) == bool(sets)
        for other in sets:
            assert influence_variance(net, x, y, best[0]) <= influence_variance(net, x, y, other) + 1e-12
            compared += len(sets) > 1
    assert compared > 20


def front_door_by_definition(graph, x, y, chosen):
    """Pearl's three conditions, path by path."""
    paths = Paths(graph, x, y)
    if any(causal and not set(path) & chosen for path, causal, _, _ in paths.found):
        return False
    for m in chosen:
        if any(graph.has_edge(path[1], x) for path in Paths(graph, x, m).open_given(set())):
            return False
    cut = dag_of([(a, b) for a, b in graph.edges if a not in chosen], graph.nodes)
    return all(not Paths(cut, m, y).open_given({x}) for m in chosen)


def test_front_door_sets_equal_brute_force():
    n_found = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        names, latent, arcs = random_hidden_causes(rng, 5, 1, density=0.35)
        x, y = (names[i] for i in sorted(rng.choice(5, 2, replace=False)))
        arcs = [arc for arc in arcs if arc != (x, y)] + [("H", x), ("H", y)]
        latent.append("H")
        graph = dag_of(arcs, names + latent)
        free = [v for v in names if v not in (x, y)]
        valid = [s for s in subsets(free) if front_door_by_definition(graph, x, y, s)]
        found = bbn.front_door_sets(graph, x, y, latent=latent)
        assert set(found) == minimal(valid), seed
        n_found += sum(map(bool, found))
    assert n_found > 20


def test_instruments_by_definition():
    n_found = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        names, latent, arcs = random_hidden_causes(rng, 5, 2, density=0.4)
        graph = dag_of(arcs, names + latent)
        x, y = (str(v) for v in rng.choice(names, 2, replace=False))
        cut = dag_of([(a, b) for a, b in arcs if b != x], graph.nodes)
        below = {x, y, *nx.descendants(graph, x), *nx.descendants(graph, y)}
        found = {one.name: one.given for one in bbn.instruments(graph, x, y, latent=latent)}
        assert not below & set(found), seed
        for z in names:
            if z in below:
                continue
            above = {n for end in (z, y) for n in nx.ancestors(cut, end)}
            serve = [
                w
                for w in subsets([n for n in names if n not in below and n != z and n in above])
                if nx.is_d_separator(cut, {z}, {y}, set(w)) and not nx.is_d_separator(graph, {z}, {x}, set(w))
            ]
            assert (z in found) == bool(serve), (seed, z)
            if z in found:
                assert found[z] in serve
        n_found += len(found)
    assert n_found > 100


def disjoint_paths(n, length):
    """X → Y, and n back-door paths through `length` variables each: length^n minimal sets."""
    arcs = [("X", "Y")]
    for i in range(n):
        inner = [f"A{i:02d}{k:02d}" for k in range(length)]
        arcs += [(inner[0], "X"), *pairwise(inner), (inner[-1], "Y")]
    return arcs


@pytest.mark.parametrize(("n", "length"), [(14, 2), (20, 2), (20, 8)])
def test_a_list_of_very_many_sets_is_cut_short_and_says_so(n, length):
    arcs = disjoint_paths(n, length)
    found = bbn.adjustment_sets(arcs, "X", "Y", limit=5)
    assert len(found) == 5
    assert all(bbn.check_adjustment(arcs, "X", "Y", one) for one in found)
    with pytest.warns(bbn.LeftOutWarning, match="more than 1,000 minimal adjustment sets"):
        found = bbn.adjustment_sets(arcs, "X", "Y")
    assert len(set(found)) == 1000
    assert all(len(names) == n for names in found)
    assert all(bbn.check_adjustment(arcs, "X", "Y", one) for one in found[::100])


def test_a_smallest_set_is_among_those_listed():
    # C alone separates, but lies farthest from X: sets of 12 variables close to X are found first
    arcs = [("X", "Y")]
    for i in range(12):
        arcs += [(f"A{i:02d}", "X"), (f"B{i:02d}", f"A{i:02d}"), ("C", f"B{i:02d}")]
    arcs += [("C", "Y")]
    with pytest.warns(bbn.LeftOutWarning):
        assert bbn.adjustment_sets(arcs, "X", "Y")[0] == {"C"}


@pytest.mark.parametrize(
    ("arguments", "options", "match"),
    [
        (("X", "Q"), {}, "no variable 'Q'"),
        (("X", "X"), {}, "both treatment and outcome"),
        (("X", "Y"), {"latent": "X"}, "hidden"),
        (("X", "Y"), {"latent": ["W"]}, "no variable 'W'"),
        (("X", "Y"), {"criterion": "frontdoor"}, "unknown criterion"),
        (([], "Y"), {}, "needs a treatment"),
        (("X", "Y"), {"limit": 0}, "at least 1"),
        ((3, "Y"), {}, "name"),
    ],
)
def test_bad_questions(arguments, options, match):
    with pytest.raises(bbn.EvidenceError, match=match):
        bbn.adjustment_sets([("Z", "X"), ("Z", "Y"), ("X", "Y")], *arguments, **options)


def test_graphs_that_are_not():
    for bad in ("XY", {"X": "Y"}, 5, [("X", "Y", "Z")], [("X", 3)], nx.Graph([("X", "Y")])):
        with pytest.raises(bbn.ModelError):
            bbn.CausalGraph(bad)
    with pytest.raises(bbn.ModelError, match="cycle"):
        bbn.CausalGraph([("A", "B"), ("B", "C"), ("C", "A")])
    with pytest.raises(bbn.ModelError, match="both ways"):
        bbn.CausalGraph([("A", "B"), ("B", "A")])
    with pytest.raises(bbn.ModelError, match="itself"):
        bbn.CausalGraph([("A", "B")], confounded=[("A", "A")])


def test_projection_keeps_every_separation_of_what_is_measured():
    for seed in range(150):
        rng = np.random.default_rng(seed)
        names = [f"V{i}" for i in range(7)]
        arcs = random_arcs(rng, names, 0.35)
        hidden = [str(v) for v in rng.choice(names, 3, replace=False)]
        whole = dag_of(arcs, names)
        seen = bbn.CausalGraph(whole, latent=hidden).projected()
        assert not seen.latent
        left = [v for v in names if v not in hidden]
        assert sorted(seen.nodes) == sorted(left)
        for a, b in combinations(left, 2):
            for given in subsets([v for v in left if v not in (a, b)]):
                assert seen.is_d_separated(a, b, given) == nx.is_d_separator(whole, {a}, {b}, set(given))
            assert (a in seen.ancestors(b)) == (a == b or a in nx.ancestors(whole, b))
