"""PC against a perfect oracle of independence, CPDAGs against classes found by enumeration."""

from __future__ import annotations

import math
from itertools import combinations, permutations, product

import networkx as nx
import numpy as np
import pytest
from scipy import stats

import bbn
from bbn.core.errors import DataError, ModelError, NoMemberWarning
from bbn.kernels import score as kernels
from bbn.kernels.pure import score as twin
from bbn.learning.structure import pc as module
from bbn.learning.structure.constraints import Constraints
from bbn.model.equivalence import close_under_meek, cpdag, to_dag
from tests.support.learning_data import random_dag, random_data, sample


def with_oracle(dag, monkeypatch, max_condition=None):
    """PC when tests never err: they are d-separation in the true DAG."""

    def oracle(source, test):
        def p_values(tests):
            return np.array([float(nx.is_d_separator(dag, {x}, {y}, set(given))) for x, y, given in tests])

        return p_values

    monkeypatch.setattr(module, "independence_test", oracle)
    return bbn.pc({name: [0, 1] for name in dag}, max_condition=max_condition)


def v_structures(dag):
    return {
        (frozenset((a, b)), c)
        for c in dag
        for a, b in combinations(list(dag.predecessors(c)), 2)
        if not dag.has_edge(a, b) and not dag.has_edge(b, a)
    }


def members(graph):
    """All DAGs of a class, by trying every direction of every undirected edge."""
    fixed = [(a, b) for a, b in graph.edges if not graph.has_edge(b, a)]
    free = sorted({tuple(sorted(e)) for e in graph.edges if graph.has_edge(e[1], e[0])})
    for choice in product([False, True], repeat=len(free)):
        dag = nx.DiGraph(fixed)
        dag.add_nodes_from(graph)
        dag.add_edges_from((b, a) if turn else (a, b) for (a, b), turn in zip(free, choice, strict=True))
        if nx.is_directed_acyclic_graph(dag):
            yield dag


@pytest.mark.parametrize("seed", range(200))
def test_a_perfect_oracle_gives_the_true_class(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    dag = random_dag(rng, int(rng.integers(2, 9)), rng.choice([0.2, 0.35, 0.5]))
    learned = with_oracle(dag, monkeypatch)
    assert set(learned.edges) == set(cpdag(dag).edges)
    for pair, given in learned.graph["sepsets"].items():
        x, y = pair
        assert nx.is_d_separator(dag, {x}, {y}, set(given))
    assert len(learned.graph["sepsets"]) == math.comb(len(dag), 2) - dag.number_of_edges()


@pytest.mark.parametrize("seed", range(60))
def test_a_cpdag_directs_exactly_what_all_equivalent_dags_share(seed):
    rng = np.random.default_rng(seed)
    dag = random_dag(rng, int(rng.integers(2, 6)), 0.6)
    skeleton = {frozenset(edge) for edge in dag.edges}
    edges = sorted(map(sorted, skeleton))
    alike = []
    for choice in product([False, True], repeat=len(edges)):
        other = nx.DiGraph()
        other.add_nodes_from(dag)
        other.add_edges_from((b, a) if turn else (a, b) for (a, b), turn in zip(edges, choice, strict=True))
        if nx.is_directed_acyclic_graph(other) and v_structures(other) == v_structures(dag):
            alike.append(set(other.edges))
    assert set(cpdag(dag).edges) == set.union(*alike)
    member = to_dag(cpdag(dag))
    assert set(member.edges) in alike
    assert set(cpdag(member).edges) == set(cpdag(dag).edges)


def test_what_is_known_before_is_carried_on_by_the_fourth_rule():
    # a – b, a – c, a – d, d → c → b: only rule 4 directs a – b
    graph = nx.DiGraph()
    graph.add_edges_from([("d", "c"), ("c", "b")])
    for x in "bcd":
        graph.add_edges_from([("a", x), (x, "a")])
    close_under_meek(graph)
    assert graph.has_edge("a", "b")
    assert not graph.has_edge("b", "a")


class TestToDag:
    def test_a_class_without_a_member_warns(self):
        square = nx.DiGraph()
        for a, b in [("A", "B"), ("B", "C"), ("C", "D"), ("D", "A")]:
            square.add_edges_from([(a, b), (b, a)])
        with pytest.warns(NoMemberWarning, match="1 more v-structure"):
            dag = bbn.to_dag(square)
        assert nx.is_directed_acyclic_graph(dag)
        assert len(v_structures(dag)) == 1

    def test_a_cycle_is_refused(self):
        with pytest.raises(ModelError, match="cycle"):
            bbn.to_dag(nx.DiGraph([("A", "B"), ("B", "C"), ("C", "A")]))

    def test_a_dag_is_itself(self):
        dag = nx.DiGraph([("A", "B"), ("C", "B")])
        assert set(bbn.to_dag(dag).edges) == set(dag.edges)


class TestTests:
    @pytest.mark.parametrize("seed", range(10))
    def test_unconditional_tests_equal_scipy(self, seed):
        rng = np.random.default_rng(seed)
        data = random_data(rng, 200, rng.integers(2, 5, size=2).tolist())
        table = np.zeros((max(data["A"]) + 1, max(data["B"]) + 1))
        for a, b in zip(data["A"], data["B"], strict=True):
            table[a, b] += 1
        for test, power in (("g2", "log-likelihood"), ("chi2", "pearson"), ("mi", "log-likelihood")):
            expected = stats.chi2_contingency(table, correction=False, lambda_=power).pvalue
            source = module.complete_source(data, "test")
            p = module.independence_test(source, test)([("A", "B", ())])
            assert p[0] == pytest.approx(expected, rel=1e-9, abs=1e-300)

    @pytest.mark.parametrize("seed", range(10))
    def test_conditional_tests_are_sums_over_slices(self, seed):
        rng = np.random.default_rng(seed)
        data = random_data(rng, 60, [3, 2, 3, 2])
        columns = {name: np.array(column) for name, column in data.items()}
        for power in ("pearson", "log-likelihood"):
            statistic, freedom = 0.0, 0
            for c in range(3):
                for d in range(2):
                    rows = (columns["C"] == c) & (columns["D"] == d)
                    table = np.zeros((3, 2))
                    np.add.at(table, (columns["A"][rows], columns["B"][rows]), 1)
                    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
                    if min(table.shape, default=0) > 1:
                        result = stats.chi2_contingency(table, correction=False, lambda_=power)
                        statistic, freedom = statistic + result.statistic, freedom + result.dof
            source = module.complete_source(data, "test")
            p = module.independence_test(source, "chi2" if power == "pearson" else "g2")(
                [("A", "B", ("C", "D"))]
            )
            assert p[0] == pytest.approx(stats.chi2.sf(statistic, freedom) if freedom else 1.0, rel=1e-9)

    def test_compiled_kernels_equal_their_twins(self):
        rng = np.random.default_rng(0)
        firsts, cards = rng.integers(1, 5, size=(2, 30))
        ptr = np.concatenate([[0], np.cumsum(firsts * cards * rng.integers(1, 6, size=30))])
        counts = np.where(rng.random(ptr[-1]) < 0.5, 0, rng.integers(0, 50, size=ptr[-1]))
        for cells in (counts, counts * 0.7):
            for pearson in (False, True):
                fast = kernels.independence(cells, ptr, firsts, cards, pearson)
                slow = twin.independence(cells, ptr, firsts, cards, pearson)
                np.testing.assert_allclose(fast[0], slow[0], rtol=1e-9, atol=1e-9)
                np.testing.assert_array_equal(fast[1], slow[1])

    def test_about_alpha_of_independent_pairs_are_joined(self):
        rng = np.random.default_rng(1)
        data = {f"v{i:02}": rng.integers(3, size=2000).tolist() for i in range(40)}
        graph = bbn.pc(data, alpha=0.05, max_condition=0)
        joined = graph.number_of_edges() - sum(graph.has_edge(b, a) for a, b in graph.edges) // 2
        assert 0.02 < joined / math.comb(40, 2) < 0.08


def test_the_class_of_a_known_network():
    net = bbn.example("cancer")
    strong = net.with_cpts(
        [
            bbn.CPT(
                net.variable("Cancer"),
                net["Cancer"].parents,
                [[[0.9, 0.1], [0.4, 0.6]], [[0.3, 0.7], [0.02, 0.98]]],
            ),
            bbn.CPT(net.variable("Pollution"), (), [0.5, 0.5]),
        ]
    )
    graph = bbn.pc(sample(strong, 20_000, 0))
    assert bbn.compare(graph, cpdag(strong.graph)).shd == 0


class TestColliders:
    def test_one_wrong_test_does_not_make_an_arrow(self, monkeypatch):
        # x → z → y, and a test that takes x and y for independent, which they are given z alone
        p = {(): 0.06, ("z",): 0.9}

        def nearly(source, test):
            return lambda tests: np.array(
                [p[given] if (x, y) == ("x", "y") else 0.0 for x, y, given in tests]
            )

        monkeypatch.setattr(module, "independence_test", nearly)
        graph = bbn.pc({name: [0, 1] for name in "xyz"})
        assert graph.graph["sepsets"] == {frozenset("xy"): ()}
        assert set(graph.edges) == {("x", "z"), ("z", "x"), ("z", "y"), ("y", "z")}

    def test_many_neighbours_vote_by_whole_sizes(self):
        near = [[*range(2, 22)], [*range(2, 12)], *([] for _ in range(20))]
        voters = module._voters(near, 0, 1, None)
        assert len(voters) == len(set(voters)) <= module.VOTERS
        assert {len(given) for given in voters} == {0, 1, 2}
        assert len(voters) == 1 + 20 + math.comb(20, 2)
        assert {len(given) for given in module._voters(near, 0, 1, 1)} == {0, 1}

    @pytest.mark.parametrize("seed", [0, 1])
    def test_arrows_of_known_networks(self, seed):
        for name, most in (("sachs", 0), ("hepar2", 88)):
            net = bbn.example(name)
            graph = bbn.pc(net.sample(5000, seed=seed), continuous=())
            assert bbn.compare(graph, cpdag(net.graph)).shd <= most

    def test_interrupting_the_vote_keeps_the_first_separating_sets(self, monkeypatch):
        data = sample(bbn.example("asia"), 2000, 1)
        whole = bbn.pc(data)

        def vote(*args):
            def p_values(tests):
                raise KeyboardInterrupt

            return real(args[0], args[1], p_values, *args[3:])

        real = module._vote
        monkeypatch.setattr(module, "_vote", vote)
        graph = bbn.pc(data)
        assert graph.graph["interrupted"]
        assert {frozenset(edge) for edge in graph.edges} == {frozenset(edge) for edge in whole.edges}


def test_the_order_of_columns_does_not_matter():
    data = sample(bbn.example("asia"), 2000, 1)
    graphs = [
        bbn.pc({name: data[name] for name in names}) for names in list(permutations(sorted(data), 8))[::5000]
    ]
    assert len({frozenset(graph.edges) for graph in graphs}) == 1
    assert all(graph.graph["sepsets"] == graphs[0].graph["sepsets"] for graph in graphs)


def test_fit_refuses_a_cpdag_and_takes_a_member():
    data = sample(bbn.example("burglary"), 30_000, 1)
    graph = bbn.pc({name: data[name] for name in ("Alarm", "JohnCalls")})
    assert graph.number_of_edges() == 2
    with pytest.raises(ModelError, match="to_dag"):
        bbn.fit(graph, {name: data[name] for name in graph})
    assert len(bbn.fit(bbn.to_dag(graph), {name: data[name] for name in graph}).arcs) == 1


class TestConstraints:
    data = sample(bbn.example("asia"), 3000, 2)

    def test_they_are_honoured(self):
        graph = bbn.pc(
            self.data,
            required=[("smoke", "asia")],
            forbidden=[("smoke", "lung"), ("lung", "smoke"), ("bronc", "smoke")],
        )
        assert graph.has_edge("smoke", "asia")
        assert not graph.has_edge("asia", "smoke")
        assert not graph.has_edge("smoke", "lung")
        assert not graph.has_edge("lung", "smoke")
        assert graph.has_edge("smoke", "bronc")
        assert not graph.has_edge("bronc", "smoke")

    def test_tiers(self):
        tiers = [["dysp", "xray"], ["smoke", "asia", "bronc", "lung", "tub", "either"]]
        graph = bbn.pc(self.data, tiers=tiers)
        assert not any(a in tiers[1] and b in tiers[0] for a, b in graph.edges)

    def test_errors(self):
        with pytest.raises(ValueError, match="alpha is 2"):
            bbn.pc(self.data, alpha=2)
        with pytest.raises(ValueError, match="did you mean 'chi2'"):
            bbn.pc(self.data, test="chi")
        with pytest.raises(ModelError, match="cycle"):
            bbn.pc(self.data, required=[("smoke", "lung"), ("lung", "smoke")])
        with pytest.raises(DataError, match="structural_em"):
            bbn.pc({"A": [0, None], "B": [0, 1]})


def test_interrupting_gives_what_was_found_so_far(monkeypatch):
    data = sample(bbn.example("asia"), 2000, 1)
    whole = module.independence_test

    def impatient(source, test):
        inner = whole(source, test)

        def p_values(tests):
            if any(given for _, _, given in tests):
                raise KeyboardInterrupt
            return inner(tests)

        return p_values

    monkeypatch.setattr(module, "independence_test", impatient)
    graph = bbn.pc(data)
    assert graph.graph["interrupted"]
    assert all(given == () for given in graph.graph["sepsets"].values())


def test_constraints_find_cycles():
    variables = [bbn.Variable(name, [0, 1]) for name in "ABCD"]
    with pytest.raises(ModelError, match="cycle"):
        Constraints(variables, required=[("A", "B"), ("B", "C"), ("C", "D"), ("D", "A")])
    Constraints(variables, required=[("A", "B"), ("B", "C"), ("A", "C"), ("C", "D")])


class TestRedundantColumns:
    """Identifiers and copies are set apart, told, and change nothing about the others."""

    states = sample(bbn.example("asia"), 1000, 5)

    @staticmethod
    def numbers():
        z = np.random.default_rng(3).normal(size=(300, 4))
        b = z[:, 0] + z[:, 1]
        return {"a": z[:, 0], "b": b, "c": z[:, 2], "d": b + z[:, 2] + z[:, 3]}

    @pytest.mark.parametrize("name", ["AAA", "zzz"])
    @pytest.mark.parametrize("share", [1, 0.7])
    def test_an_identifier_stays_alone(self, name, share):
        rng = np.random.default_rng(0)
        n = len(self.states["asia"])
        identifier = rng.permutation(np.minimum(np.arange(n), int(share * n)))
        data = {**self.states, name: [f"id{i}" for i in identifier]}
        with pytest.warns(bbn.RedundantColumnsWarning, match=f"'{name}'"):
            graph = bbn.pc(data)
        assert set(graph.edges) == set(bbn.pc(self.states).edges)
        assert not list(nx.all_neighbors(graph, name))

    @pytest.mark.parametrize("column", ["tub", "either", "smoke", "dysp"])
    def test_a_copy_of_states_hangs_on_its_column(self, column):
        """One to one, under other names of the states."""
        data = {**self.states, "zzz": [f"was {s}" for s in self.states[column]]}
        with pytest.warns(bbn.RedundantColumnsWarning, match=f"'zzz' of '{column}'"):
            graph = bbn.pc(data)
        plain = set(bbn.pc(self.states).edges)
        assert {arc for arc in graph.edges if "zzz" not in arc} == plain
        assert set(nx.all_neighbors(graph, "zzz")) == {column}

    def test_a_copy_of_numbers_hangs_on_its_column(self):
        data = self.numbers()
        with pytest.warns(bbn.RedundantColumnsWarning, match="'z' of 'b'"):
            graph = bbn.pc({**data, "z": 3 - 2.5 * data["b"]})
        assert {arc for arc in graph.edges if "z" not in arc} == set(bbn.pc(data).edges)
        assert set(nx.all_neighbors(graph, "z")) == {"b"}

    def test_a_copy_of_a_collider_is_below_it(self):
        data = self.numbers()
        plain = bbn.pc(data)
        assert {("b", "d"), ("c", "d")} <= set(plain.edges)
        with pytest.warns(bbn.RedundantColumnsWarning):
            graph = bbn.pc({**data, "z": -data["d"]})
        assert ("d", "z") in graph.edges
        assert ("z", "d") not in graph.edges

    def test_required_arcs_keep_a_column_in(self):
        data = {**self.states, "zzz": self.states["tub"]}
        graph = bbn.pc(data, required=[("tub", "zzz")])
        assert ("tub", "zzz") in graph.edges

    def test_a_forbidden_pair_is_not_joined(self):
        data = {**self.states, "zzz": self.states["tub"]}
        with pytest.warns(bbn.RedundantColumnsWarning):
            graph = bbn.pc(data, forbidden=[("tub", "zzz"), ("zzz", "tub")])
        assert not list(nx.all_neighbors(graph, "zzz"))

    def test_ordinary_data_warn_of_nothing(self, recwarn):
        bbn.pc(self.states)
        bbn.pc(self.numbers())
        assert not recwarn
