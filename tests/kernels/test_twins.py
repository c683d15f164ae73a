"""The kernels of exact inference, compiled and plain, against the joint written out by numpy.

Each question is put to the compiled kernels, where they were built, and to the junction tree in numpy: elimination
orders must be equal word for word, answers equal to those of the joint to 1e-11.
"""

from __future__ import annotations

import importlib
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bbn.kernels.contracts import tape
from bbn.kernels.pure import junction_tree as TREE


def twins(name: str) -> list[Any]:
    """The kernels of this name: the pure ones, then the compiled ones, those that there are."""
    found = []
    for kind in ("pure", "compiled"):
        try:
            found.append(importlib.import_module(f"bbn.kernels.{kind}.{name}"))
        except ImportError:
            continue
    return found


ELIMINATE = twins("triangulate")
LAYOUT = twins("layout")
PROPAGATE = twins("propagate")
BATCH = twins("batch")
compiled_alone = pytest.mark.skipif(not PROPAGATE, reason="the kernels are not compiled")


def numpy_program(plan: Any) -> Any:
    """The junction tree in numpy of a plan, whatever would run it."""
    model, question = plan.factors, plan.question
    return TREE.Program(
        *(model.cards, model.scope_ptr, model.scope, model.table_ptr, model.tables),
        *(plan.needed.factors, plan.needed.role, plan.elimination, question.targets, plan.layout.out),
        question.maximise,
    )


class Model:
    """Random factors: cards 1 to 5, zeros, parts that are not connected, sometimes undirected.

    Every tenth model is larger, so that its cliques are swept in several slabs, and another one has long rows.
    """

    def __init__(self, seed: int) -> None:
        rng = self.rng = np.random.default_rng(seed)
        usual = tape.STREAM, tape.STREAM_AGAIN, tape.STREAM_TREE
        self.limits = (usual, (1, 1, 1), (8, 60, 100))[
            seed % 3
        ]  # from how many cells on cliques are not stored
        large = seed % 10 == 9
        long = seed % 10 == 4
        n = 7 if large else 4 if long else int(rng.integers(1, 9))
        self.n = n
        sizes = [5, 6] if large else [3, 12, 13, 18, 23] if long else [1, 2, 2, 3, 3, 4, 5]
        self.cards = rng.choice(sizes, n).astype(np.int64)
        self.scopes = []
        self.arrays = []
        for v in range(n):
            parents = rng.permutation(v)[: rng.integers(3, 6) if large else rng.integers(0, 4)].tolist()
            scope = [*parents, v]
            table = rng.random([self.cards[u] for u in scope]) ** 2
            table[rng.random(table.shape) < 0.15] = 0.0
            total = table.sum(-1, keepdims=True)
            self.scopes.append(scope)
            self.arrays.append(np.where(total > 0, table / np.where(total > 0, total, 1), 1 / self.cards[v]))
        self.heads = np.full(n, -1, np.int64) if rng.random() < 0.2 else np.arange(n, dtype=np.int64)
        self.scope_ptr = np.cumsum([0, *map(len, self.scopes)]).astype(np.int64)
        self.scope = np.array([v for scope in self.scopes for v in scope], np.int64)
        self.table_ptr = np.cumsum([0, *(a.size for a in self.arrays)]).astype(np.int64)
        self.tables = np.concatenate([a.ravel() for a in self.arrays])

    def joint(self) -> np.ndarray:
        whole = np.ones(self.cards)
        for scope, array in zip(self.scopes, self.arrays, strict=True):
            shape = [self.cards[v] if v in scope else 1 for v in range(self.n)]
            whole = whole * np.transpose(array, np.argsort(scope)).reshape(shape)
        return whole

    def vector(self, v: int, values: np.ndarray) -> np.ndarray:
        return values.reshape([-1 if u == v else 1 for u in range(self.n)])

    def plan(self, role: np.ndarray, targets: list[int], goal: int, rule: int = 0) -> tuple[Any, Any]:
        """The factors that matter and an elimination, on which both twins must agree word for word."""
        sliced, likelihood = np.flatnonzero(role == tape.SLICED), np.flatnonzero(role == tape.LIKELIHOOD)
        made = []
        for eliminate, layout in zip(ELIMINATE, LAYOUT, strict=True):
            roles, factors, ptr, scope = layout.reduce_scopes(
                self.scope_ptr,
                self.scope,
                self.heads,
                self.n,
                sliced.tolist(),
                likelihood.tolist(),
                tape.MASKED in role,
                targets,
                goal != tape.QUERY,
            )
            assert np.array_equal(roles, role)
            made.append((factors, *eliminate.eliminate(self.cards, ptr, scope, rule)))
        for other in made[1:]:
            assert all(np.array_equal(one, two) for one, two in zip(made[0], other, strict=True))
        return made[0][0], made[0][1:]

    def lay_out(self, role: np.ndarray, targets: list[int], goal: int, rule: int = 0) -> tape.Layout:
        """The layout of the compiled kernels."""
        factors, elimination = self.plan(role, targets, goal, rule)
        arrays = self.cards, self.scope_ptr, self.scope, self.table_ptr, factors, role, elimination
        store = bool((role == tape.SLICED).sum() % 2)
        return LAYOUT[-1].lay_out(
            *arrays, targets, goal, store, (tape.SLAB, tape.THIN_SLAB, 4)[self.n % 3], self.limits
        )

    def programs(
        self, role: np.ndarray, targets: list[int], goal: int, rule: int = 0, maximise: bool = False
    ) -> list[tuple[Any, np.ndarray]]:
        """The programs of the compiled kernels and of numpy, and where each has its marginals."""
        factors, elimination = self.plan(role, targets, goal, rule)
        held = np.isin(np.arange(self.n), elimination[0]) & (goal == tape.MARGINALS)
        ends = np.cumsum(np.where(held, self.cards, 0))
        out = np.where(held, ends - self.cards, -1)
        arrays = self.cards, self.scope_ptr, self.scope, self.table_ptr, self.tables
        made = [(TREE.Program(*arrays, factors, role, elimination, targets, out, maximise), out)]
        for module in PROPAGATE:
            layout = self.lay_out(role, targets, goal, rule)
            made.append((module.Program(self.cards, self.tables, layout, maximise), layout.out))
        return made


def random_role(model: Model) -> tuple[np.ndarray, dict[int, int], dict[int, np.ndarray]]:
    role = np.zeros(model.n, np.int64)
    hard: dict[int, int] = {}
    likelihoods: dict[int, np.ndarray] = {}
    for v, u in enumerate(model.rng.random(model.n)):
        if u < 0.3:
            hard[v], role[v] = int(model.rng.integers(model.cards[v])), tape.SLICED
        elif u < 0.45:
            likelihoods[v], role[v] = model.rng.random(model.cards[v]), tape.LIKELIHOOD
    if model.rng.random() < 0.3:
        role[:] = tape.MASKED
    return role, hard, likelihoods


@pytest.mark.parametrize("seed", range(150))
def test_marginals_and_logs_are_those_of_the_joint(seed):
    model = Model(seed)
    role, hard, likelihoods = random_role(model)
    weights = model.joint()
    for v, code in hard.items():
        weights = weights * model.vector(v, np.eye(model.cards[v])[code])
    for v, values in likelihoods.items():
        weights = weights * model.vector(v, values)
    total = weights.sum()
    free = [v for v in range(model.n) if v not in hard]
    targets = [int(v) for v in model.rng.permutation(free)[: model.rng.integers(0, 4)]]
    for asked in (None, targets):
        goal = tape.MARGINALS if asked is None else tape.QUERY
        rule = int(model.rng.integers(4))
        for program, starts in model.programs(role, asked or [], goal, rule):
            for _ in range(2):  # the second run reuses the first one's memory
                out, log = program.run(hard.items(), likelihoods.items())
                if total == 0:
                    assert log == -math.inf
                    continue
                assert log == pytest.approx(math.log(total), abs=1e-11)
                if asked is None:
                    for v in free:
                        others = tuple(u for u in range(model.n) if u != v)
                        at = starts[v]
                        exact = weights.sum(others) / total
                        assert np.abs(out[at : at + model.cards[v]] - exact).max() < 1e-11
                elif targets:
                    kept = weights.sum(tuple(u for u in range(model.n) if u not in targets)) / total
                    exact = np.transpose(kept, np.argsort(np.argsort(targets)))
                    assert np.abs(out - exact.ravel()).max() < 1e-11


@compiled_alone
def test_long_tapes_of_small_cards_outlive_what_wrote_them():
    """A chain of variables of two to four states: each marginal is the last one times a stochastic matrix."""
    rng = np.random.default_rng(5)
    cards = rng.choice([2, 3, 4], 300).astype(np.int64)
    steps = [rng.dirichlet(np.ones(cards[v]), cards[v - 1] if v else 1) for v in range(300)]
    scopes = [[v - 1, v] if v else [v] for v in range(300)]
    ptr = np.cumsum([0, *map(len, scopes)]).astype(np.int64)
    scope = np.array([v for members in scopes for v in members], np.int64)
    table_ptr = np.cumsum([0, *(step.size for step in steps)]).astype(np.int64)
    tables = np.concatenate([step.ravel() for step in steps])
    elimination = ELIMINATE[0].eliminate(cards, ptr, scope, 0)
    role, factors = np.zeros(300, np.int64), np.arange(300)
    question = cards, ptr, scope, table_ptr, factors, role, elimination, [], tape.MARGINALS, True
    for write in LAYOUT[-1:]:
        layout, *others = [write.lay_out(*question) for _ in range(5)]
        words = layout.once.copy()
        assert words.size > 4096
        del others
        others = [write.lay_out(*question) for _ in range(5)]  # where the others were
        assert np.array_equal(layout.once, words)
        assert all(np.array_equal(words, other.once) for other in others)
        for module in PROPAGATE:
            out, log = module.Program(cards, tables, layout).run()
            assert log == pytest.approx(0.0, abs=1e-11)
            exact = np.ones(1)
            for v, step in enumerate(steps):
                exact = exact @ step
                assert np.abs(out[layout.out[v] : layout.out[v] + cards[v]] - exact).max() < 1e-11


@pytest.mark.parametrize("seed", range(60))
def test_maxima_are_those_of_the_joint(seed):
    model = Model(seed)
    role, hard, _ = random_role(model)
    role[role == tape.LIKELIHOOD] = tape.FREE
    weights = model.joint()
    for v, code in hard.items():
        weights = weights * model.vector(v, np.eye(model.cards[v])[code])
    for program, _ in model.programs(role, [], tape.COLLECTED, maximise=True):
        if hasattr(program, "ranked"):
            ranked, log = program.ranked(hard.items())
            first = next(ranked, None)
            assert first is None if log == -math.inf else weights[tuple(first[0])] == weights.max()
        else:
            log = program.collect(hard.items())[2]
        assert log == pytest.approx(math.log(weights.max()) if weights.max() > 0 else -math.inf, abs=1e-11)


@compiled_alone
@pytest.mark.parametrize("seed", range(100))
def test_rows_are_answered_as_one_by_one(seed):
    model = Model(seed)
    role = np.zeros(model.n, np.int64)
    for v, u in enumerate(model.rng.random(model.n)):
        role[v] = tape.SLICED if u < 0.3 else tape.LIKELIHOOD if u < 0.5 else tape.FREE
    columns = np.flatnonzero(role)
    rows = int(model.rng.choice([1, 5, 33, 70]))
    room = model.cards[columns] + (role[columns] == tape.LIKELIHOOD)
    codes = (model.rng.random((rows, len(columns))) * room).astype(np.int32)
    free = np.flatnonzero(role != tape.SLICED)
    everything = bool(model.rng.random() < 0.6)
    targets = [] if everything else [int(v) for v in model.rng.permutation(free)[: model.rng.integers(0, 3)]]
    layout = model.lay_out(role, targets, tape.MARGINALS if everything else tape.QUERY)
    answers = []
    for propagate, batch in zip(PROPAGATE, BATCH, strict=True):
        program = propagate.Program(model.cards, model.tables, layout)
        out, logs = np.empty((rows, layout.out_size)), np.empty(rows)
        batch.run_rows(
            model.tables,
            layout,
            program.base,
            program.once_out,
            program.once_log,
            model.cards,
            columns,
            codes,
            out,
            logs,
        )
        for i in range(rows):
            observed = dict(zip(columns.tolist(), codes[i].tolist(), strict=True))
            hard = [(v, code) for v, code in observed.items() if code < model.cards[v]]
            one, log = program.run(hard)
            assert logs[i] == pytest.approx(log, abs=1e-11)
            if log > -math.inf:
                assert np.abs(out[i] - one).max(initial=0) < 1e-12
        answers.append(np.where(np.isfinite(logs)[:, None], out, 0.0))
    for other in answers[1:]:
        assert np.abs(answers[0] - other).max(initial=0) < 1e-12


@pytest.mark.parametrize("rule", range(4))
def test_elimination_orders_agree_on_larger_graphs(rule):
    rng = np.random.default_rng(rule)
    for n in (1, 5, 63, 64, 65, 200):
        scopes = [rng.permutation(n)[: rng.integers(1, 4)] for _ in range(2 * n)]
        ptr = np.cumsum([0, *map(len, scopes)]).astype(np.int64)
        scope = np.concatenate(scopes).astype(np.int64)
        cards = rng.integers(1, 6, n).astype(np.int64)
        kept = (rng.random(n) < 0.1).astype(np.int64)
        for hold in (None, kept):
            results = [m.eliminate(cards, ptr, scope, rule, hold) for m in ELIMINATE]
            for other in results[1:]:
                for one, two in zip(results[0], other, strict=True):
                    assert np.array_equal(one, two)
            if hold is None:
                cells = [m.cells(cards, *results[0]) for m in ELIMINATE]
                assert all(np.array_equal(cells[0], other) for other in cells)
                totals = [m.total_cells(cards, *results[0]) for m in ELIMINATE]
                assert totals == pytest.approx([cells[0].sum()] * len(totals), rel=1e-12)


def random_scopes(rng: np.random.Generator, n: int, most: int, local: int) -> tuple[np.ndarray, np.ndarray]:
    """Scopes of up to `most` variables that are near one another, as offsets and members; some repeat a variable."""
    scopes = []
    for v in range(n):
        near = v + rng.integers(-local, local + 1, rng.integers(0, most))
        scopes.append([v, *np.clip(near, 0, n - 1)])
    ptr = np.cumsum([0, *map(len, scopes)]).astype(np.int64)
    return ptr, np.concatenate(scopes).astype(np.int64)


@pytest.mark.skipif(len(ELIMINATE) < 2, reason="needs the compiled kernels")
@pytest.mark.parametrize("rule", range(4))
def test_large_graphs_are_eliminated_as_their_bits_would_be(rule):
    """Past 4,096 variables the compiled kernel keeps lists of neighbours; the twin has bits at any size."""
    rng = np.random.default_rng(rule)
    n = int(rng.integers(4200, 5000))
    ptr, scope = random_scopes(rng, n, 3, 12)
    cards = rng.integers(1, 5, n).astype(np.int64)
    kept = (rng.random(n) < 0.01).astype(np.int64)
    hub = np.column_stack([np.full(60, 17), rng.integers(0, n, 60)]).ravel()  # one with many neighbours
    scope = np.concatenate([scope, hub])
    ptr = np.concatenate([ptr, ptr[-1] + np.arange(2, 122, 2)])
    for hold, most in ((None, math.inf), (kept, math.inf), (None, 50.0)):
        one, two = (m.eliminate(cards, ptr, scope, rule, hold, most) for m in ELIMINATE)
        assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


@pytest.mark.skipif(len(ELIMINATE) < 2, reason="needs the compiled kernels")
def test_the_memory_of_an_elimination_grows_with_the_edges():
    """A chain of 100,000 variables with shortcuts, whose bit map would take 1.25 GB, in a process of 400 MB."""
    code = """
import resource
import numpy as np
from bbn.kernels.compiled.triangulate import eliminate
n = 100_000
scope = np.column_stack([np.arange(n - 2), np.arange(1, n - 1), np.arange(2, n)]).ravel()
ptr = np.arange(0, 3 * (n - 2) + 1, 3)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
order, ends, near = eliminate(np.full(n, 2), ptr, scope, 0)
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
assert sorted(order.tolist()) == list(range(n)) and np.diff(ends).max() == 2
assert grown < 40_000, grown  # kB
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120, cwd=Path(__file__).parents[2])


def test_ten_thousand_factors_on_one_variable_do_not_underflow():
    n = 10_000
    cards = np.full(n + 1, 2, np.int64)
    scope = np.array([[0, v] for v in range(1, n + 1)]).ravel()
    scope_ptr = np.arange(0, 2 * n + 1, 2, dtype=np.int64)
    tables = np.tile([0.01, 0.99, 0.0101, 0.9899], n)
    table_ptr = np.arange(0, 4 * n + 1, 4, dtype=np.int64)
    heads = np.full(n, -1, np.int64)
    role, factors, ptr, reduced = LAYOUT[0].reduce_scopes(
        scope_ptr, scope, heads, n + 1, range(1, n + 1), (), False, [0], False
    )
    elimination = ELIMINATE[0].eliminate(cards, ptr, reduced, 0)
    arrays = cards, scope_ptr, scope, table_ptr
    nowhere = np.full(n + 1, -1)
    programs = [TREE.Program(*arrays, tables, factors, role, elimination, [0], nowhere)]
    for module in PROPAGATE:
        plan = LAYOUT[-1].lay_out(*arrays, factors, role, elimination, [0], tape.QUERY)
        programs.append(module.Program(cards, tables, plan))
    for program in programs:
        out, log = program.run([(v, 0) for v in range(1, n + 1)])
        one, two = n * math.log(0.01), n * math.log(0.0101)
        exact = two + math.log1p(math.exp(one - two))
        assert log == pytest.approx(exact, rel=1e-12)
        assert out[0] == pytest.approx(math.exp(one - exact), rel=1e-9)


@compiled_alone
@pytest.mark.parametrize("seed", range(12))
def test_children_of_large_cliques_hang_low_and_the_tree_stays_a_junction_tree(seed):
    """A clique of 8 × 8 × 8 × 8 with small tables around it: each is a child of the smallest clique that holds it."""
    rng = np.random.default_rng(seed)
    cards = np.array([8, 8, 8, 8, *[4] * 8], np.int64)
    scopes = [[0, 1, 2, 3], [0, 1, 2, 4]]
    scopes += [[*sorted(rng.permutation([0, 1, 2])[: 1 + k % 2].tolist()), 5 + k] for k in range(7)]
    tables = [rng.random([cards[v] for v in scope]) for scope in scopes]
    operands = [x for scope, table in zip(scopes, tables, strict=True) for x in (table, scope)]
    exact = np.einsum(*operands, [0], optimize=True)
    for eliminate, layout, propagate in zip(ELIMINATE[-1:], LAYOUT[-1:], PROPAGATE, strict=True):
        sizes, scope_ptr, scope, table_ptr, flat, heads = layout.pack_factors(
            cards.tolist(), [v for scope in scopes for v in scope], tables, False
        )
        role, factors, ptr, reduced = layout.reduce_scopes(
            scope_ptr, scope, heads, len(cards), (), (), True, (), True
        )
        elimination = eliminate.eliminate(sizes, ptr, reduced, 0)
        plan = layout.lay_out(
            sizes, scope_ptr, scope, table_ptr, factors, role, elimination, (), tape.MARGINALS
        )
        cliques = [set(part.tolist()) for part in np.split(plan.axes, plan.axes_ptr[1:-1])]
        children = [0] * len(cliques)
        for c, p in enumerate(plan.parent.tolist()):
            if p >= 0:
                children[p] += 1
                shared = plan.axes[plan.axes_ptr[c] : plan.axes_ptr[c] + plan.separator[c]].tolist()
                assert set(shared) == cliques[c] & cliques[p]
        for v in range(len(cards)):  # as many links as holders less one: the holders are connected
            held = [c for c, clique in enumerate(cliques) if v in clique]
            assert sum(plan.parent[c] in held for c in held) == len(held) - 1
        assert children[cliques.index({0, 1, 2, 3})] == 1
        out, _ = propagate.Program(sizes, flat, plan).run()
        assert np.abs(out[plan.out[0] : plan.out[0] + 8] - exact / exact.sum()).max() < 1e-12
