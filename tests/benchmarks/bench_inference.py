"""Exact inference against pyAgrum and pgmpy, on the standard networks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import bbn
from bbn.inference.exact.domain_filtering import DomainFilter
from bbn.inference.exact.problem import Question, Values, relevant
from bbn.inference.exact.tree_plan import plan_tree
from bbn.kernels.contracts.tape import MARGINALS
from tests.benchmarks import pyagrum_idioms
from tests.benchmarks.harness import Figure, Row
from tests.support.pedigrees import pedigree, phenotypes

TITLE = "Exact inference"
NOTES = """
pyAgrum gets exactly the same tables, and its engines are kept warm except in "first query". All its exact engines
(LazyPropagation, ShaferShenoyInference, and VariableElimination for one target) and all its ways to set new values
(`setEvidence`, which starts afresh, `updateEvidence`, and `chgEvidence` for the values that differ) are tried first;
the fastest counts. More threads do not make it faster here. Its answers stay its own tensors; they are not turned
into numpy arrays. "All posteriors" observes a tenth of the nodes and cycles through up to 16 different cases of
values, drawn from the network; the time is per case. "One target" does the same for one posterior: once with the same
few nodes observed, most of them irrelevant to it, so that an engine that is told only what changed has little to do,
and once with all leaves observed. "First query" includes everything that a program does with a network it has just
loaded: triangulation, compilation, one answer. Batches are timed per row. "Without compiled kernels" is the same work
as "all posteriors" in a process of its own with BBN_PURE=1, where numpy serves.

### What bounds the large networks

A cell of a clique is a double. In the tables below it is read and written by steps (multiply by a factor, add to a
message), so "million steps" counts cells times steps. On the machine named, one core, AVX2: multiplying cells in
place takes 0.062 ns a cell in the first two levels of cache (an L2 block of 256 kB as well as one of 16 kB; 0.040
ns with AVX-512), 0.09 to 0.15 ns in the third, 0.57 ns in memory; reading them takes 0.033, 0.11 to 0.14 and 0.38
ns (21 GB/s). Copying to other memory takes 0.94 ns (26 GB/s, the line that is fetched to be overwritten counted). A
byte that the process never touched costs far more: 2.8 µs a page of 4 kB, 5.4 ns a cell, on this virtual machine.

| all posteriors | million steps | MB of cells read and written | the steps in L2 | the bytes | measured |
|---|---|---|---|---|---|
| diabetes, every clique stored | 17.8 | 90, and 24 fetched | 1.1 ms | 4.2 ms | 4.1 ms |
| diabetes, large cliques made twice | 25.1 | 17 | 1.6 ms | 0.7 ms | 3.3 ms |
| barley, every clique stored | 1.8 | 8.4, from the third level | 0.11 ms | 0.1 ms | 0.25 ms |
| mildew | 0.44 | 1.2 | 0.03 ms | 0.02 ms | 0.02 ms |
| munin, the values of one case | 5.5 | 15, from the third level | 0.34 ms | 0.2 ms | 0.9 to 1.4 ms |
| link, the values of one case | 2.0 | 6.7, from the third level | 0.12 ms | 0.1 ms | 0.3 ms |

Diabetes was bound by memory to the last byte, so its cliques are no longer stored: a run makes them on its way up
and again on its way down, from the product of what evidence cannot change, which is kept over its own variables
alone. Barley's cliques fit the third level of cache, where making them again takes longer than reading them; what
is left there are rows of five to ten cells, at 0.1 to 0.2 ns a step. In long rows a whole sweep is one pass in
registers, at 0.05 ns a step, below the bound for steps taken one by one (mildew). On munin and link half of a call
and more is not arithmetic on cells: the states that the evidence leaves, an order, a layout and the answers are
made anew for new values.

Tried, and not kept: storing nothing in small trees (barley 0.8 times as fast); rows in one pass where they are
shorter than twelve cells (0.8 to 1 times); overlapping the last vector of a row in that pass (the next row waits
for it); multiplying beforehand for cliques that are gone through once (mildew's first query 0.8 times). Open: to
keep the constant factors of a clique one by one where their product has all its variables (diabetes would store 5
MB in place of 20), and to find bands in a kernel (300 ms now, after 24 runs; the runs after it take 1.3 to 2 ms).
"""

WARM = {
    "alarm": 25, "hailfinder": 25, "win95pts": 25, "andes": 80, "pigs": 80, "munin": 80,
    "mildew": 120, "diabetes": 30, "barley": 8, "link": 500,
}  # fmt: skip
SMALL = {
    "asia",
    "cancer",
    "earthquake",
    "survey",
    "sachs",
    "child",
    "insurance",
    "alarm",
    "hailfinder",
    "hepar2",
    "win95pts",
}
PURE = ("alarm", "hailfinder", "andes")
N_VALUES = 16
SLOW = {"munin": 4, "diabetes": 4, "link": 2}
"""Networks on which a case takes pyAgrum up to a second, and how many are asked."""


def rows() -> Iterator[Row | Figure]:
    """All rows of the table."""
    import pyagrum as gum

    gum.setNumberOfThreads(1)
    for name, target in WARM.items():
        yield warm_row(name, target)
    yield water_row()
    for name in PURE:
        yield pure_row(name)
    for name in bbn.examples():
        if "/" not in name and isinstance(bbn.example(name), bbn.BayesianNetwork):
            yield first_row(name)
    yield from single_rows()
    yield from batch_rows()
    yield pgmpy_row()
    yield from figures()
    yield from pedigree_figures()
    yield large_pedigree_figure()


def warm_row(name: str, target: float) -> Row:
    """All posteriors, new values for the same observed nodes."""
    net = bbn.example(name)
    cases = evidence_sets(net, 0.1, SLOW.get(name, N_VALUES))
    theirs = all_posteriors(net, cases, slow=name in SLOW)

    def ours() -> None:
        for case in cases:
            for posterior in net.posteriors(case).values():
                posterior.values  # noqa: B018  # reading it is the work

    def check() -> None:
        answers = net.posteriors(cases[-1])
        pyagrum_idioms.check(theirs, {node: answers[node].values for node in hidden(net, cases[-1])})

    return Row(
        f"all posteriors, {name}",
        {"bbn": ours, "pyAgrum": theirs},
        check,
        target,
        units=len(cases),
        seconds=4,
    )


def water_row() -> Row:
    """All posteriors without evidence on water, whose tables are mostly zeros, by engines just made."""
    import pyagrum as gum

    net = bbn.example("water")
    bn = bbn.to_pyagrum(net)

    def ours(fresh: bbn.BayesianNetwork) -> dict[str, np.ndarray]:
        return {name: posterior.values for name, posterior in fresh.posteriors().items()}

    def theirs(kind: type) -> list[Any]:
        engine = kind(bn)
        engine.makeInference()
        return [engine.posterior(name) for name in net.names]

    def fresh() -> bbn.BayesianNetwork:
        return bbn.BayesianNetwork(net.conditionals, net.name)

    def check() -> None:
        answers = ours(fresh())
        for idiom in idioms.values():
            for name, tensor in zip(net.names, idiom(), strict=True):
                np.testing.assert_allclose(answers[name], tensor.toarray(), rtol=0, atol=1e-9)

    engines = (gum.LazyPropagation, gum.ShaferShenoyInference)
    idioms = {engine.__name__: partial(theirs, engine) for engine in engines}
    work = "all posteriors without evidence, water, first answer"
    return Row(work, {"bbn": ours, "pyAgrum": idioms}, check, 50, prepare={"bbn": fresh})


PURE_WORKER = """
import json, sys
import bbn
from bbn.kernels import COMPILED
assert not COMPILED
net = bbn.example(sys.argv[1])
cases = json.loads(sys.stdin.readline())
for line in sys.stdin:
    for case in cases:
        answers = {name: p.values for name, p in net.posteriors(case).items()}
    if line.strip() == "tell":
        print(json.dumps({name: values.tolist() for name, values in answers.items()}), flush=True)
    else:
        print("done", flush=True)
"""


def pure_row(name: str) -> Row:
    """All posteriors of a batch of cases in numpy, in a process without compiled kernels."""
    net = bbn.example(name)
    cases = evidence_sets(net, 0.1, N_VALUES)
    theirs = all_posteriors(net, cases)
    worker = subprocess.Popen(
        [sys.executable, "-c", PURE_WORKER, name],
        env={**os.environ, "BBN_PURE": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def ask(line: str) -> str:
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write(line + "\n")
        worker.stdin.flush()
        return worker.stdout.readline()

    assert worker.stdin is not None
    worker.stdin.write(json.dumps(cases) + "\n")

    def check() -> None:
        answers = json.loads(ask("tell"))
        pyagrum_idioms.check(theirs, {node: answers[node] for node in hidden(net, cases[-1])})

    return Row(
        f"all posteriors without compiled kernels, {name}",
        {"bbn": lambda: ask("run"), "pyAgrum": theirs},
        check,
        2,
        units=len(cases),
        seconds=4,
    )


def first_row(name: str) -> Row:
    """The first query on a network just loaded."""
    import pyagrum as gum

    net = bbn.example(name)
    (case,) = evidence_sets(net, 0.1, 1)
    target = next(v.name for v in reversed(net.variables) if v.name not in case)
    bn = bbn.to_pyagrum(net)

    def ours(fresh: bbn.BayesianNetwork) -> np.ndarray:
        return fresh.query(target, case).values

    def theirs(engine: type) -> Any:
        inference = engine(bn)
        inference.setEvidence(case)
        inference.addTarget(target)
        inference.makeInference()
        return inference.posterior(target)

    def check() -> None:
        for idiom in idioms.values():
            np.testing.assert_allclose(ours(fresh()), idiom().toarray(), rtol=0, atol=1e-9)

    def fresh() -> bbn.BayesianNetwork:
        return bbn.BayesianNetwork(net.conditionals, net.name)

    engines = (gum.LazyPropagation, gum.ShaferShenoyInference, gum.VariableElimination)
    idioms = {f"{engine.__name__}, addTarget": partial(theirs, engine) for engine in engines}
    return Row(
        f"first query, {name}",
        {"bbn": ours, "pyAgrum": idioms},
        check,
        2.0 if name in SMALL else 1.0,
        prepare={"bbn": fresh},
        seconds=1.5,
    )


def single_rows() -> Iterator[Row]:
    """One target, after the first time, on alarm."""
    net = bbn.example("alarm")
    few = evidence_sets(net, 0.1, N_VALUES)
    leaves = [v.name for v in net.variables if not net.children(v.name)]
    table = sampled(net, N_VALUES, leaves, 0.0, seed=7)
    target = "HYPOVOLEMIA"
    for observed, cases in (("a tenth", few), ("all leaves", table.to_dict("records"))):
        theirs = pyagrum_idioms.sweeps(bbn.to_pyagrum(net), cases, [target])

        def ours(cases: list[dict[str, Any]] = cases) -> np.ndarray:
            for case in cases:
                values = net.query(target, case).values
            return values

        def check(ours: Any = ours, theirs: Any = theirs) -> None:
            pyagrum_idioms.check(theirs, {target: ours()})

        work = f"one target, alarm, {observed} observed, warm"
        yield Row(work, {"bbn": ours, "pyAgrum": theirs}, check, 20, units=len(cases))


def batch_rows() -> Iterator[Row]:
    """predict_proba of one target over a table."""
    net = bbn.example("alarm")
    leaves = [v.name for v in net.variables if not net.children(v.name)]
    target = "HYPOVOLEMIA"
    n, n_theirs = 10_000, 200
    for share in (0.0, 0.3):
        table = sampled(net, n, leaves, share, seed=7)
        head = table.head(n_theirs).astype(object)
        records = head.where(head.notna(), None).to_dict("records")
        cases = [{name: value for name, value in row.items() if value is not None} for row in records]
        theirs = pyagrum_idioms.sweeps(bbn.to_pyagrum(net), cases, [target])

        def ours(table: Any = table) -> Any:
            return net.predict_proba(table, target, n_jobs=1)

        def check(ours: Callable[[], Any] = ours, theirs: Any = theirs) -> None:
            pyagrum_idioms.check(theirs, {target: np.asarray(ours())[n_theirs - 1]})

        holes = f", {share:.0%} missing" if share else ""
        yield Row(
            f"predict_proba, alarm, leaves observed{holes}, per row",
            {"bbn": ours, "pyAgrum": theirs},
            check,
            400,
            units=n,
            each={"pyAgrum": n_theirs},
        )


def pgmpy_row() -> Row:
    """pgmpy on a small network, for scale."""
    from pgmpy.inference import BeliefPropagation, VariableElimination

    net = bbn.example("asia")
    model = bbn.to_pgmpy(net)
    eliminates, propagates = VariableElimination(model), BeliefPropagation(model)
    propagates.calibrate()
    case = {"xray": "yes", "dysp": "yes"}
    orders = {
        f"VariableElimination, elimination_order={order!r}": partial(
            eliminates.query, ["lung"], case, elimination_order=order, show_progress=False
        )
        for order in ("greedy", "MinFill")
    }
    calibrated = partial(propagates.query, ["lung"], case, show_progress=False)
    idioms = {**orders, "BeliefPropagation, calibrated": calibrated}

    def check() -> None:
        for idiom in idioms.values():
            np.testing.assert_allclose(net.query("lung", case).values, idiom().values, atol=1e-9)

    return Row("one target, asia, warm", {"bbn": lambda: net.query("lung", case), "pgmpy": idioms}, check)


def figures() -> Iterator[Figure]:
    """What pyAgrum does not finish, and the whole process."""
    link = bbn.example("link")
    start = time.perf_counter()
    link.posteriors()
    yield Figure("first query, link without evidence", f"{time.perf_counter() - start:.2f} s", "under 5 s")
    munin1 = bbn.example("munin1")
    cases = evidence_sets(munin1, 0.1, N_VALUES)
    munin1.posteriors(cases[0])
    start = time.perf_counter()
    for case in cases:
        munin1.posteriors(case)
    took = (time.perf_counter() - start) / len(cases)
    yield Figure("all posteriors, munin1, new values each time", f"{1000 * took:.1f} ms", "at most 200 ms")
    start = time.perf_counter()
    try:
        munin1.posteriors()
        outcome = "answered"
    except bbn.BudgetError:
        outcome = "BudgetError"
    yield Figure(
        "munin1 without evidence",
        f"{outcome} after {time.perf_counter() - start:.2f} s",
        "an answer or BudgetError",
    )
    question = "import bbn; bbn.load('models/campfire.yaml').query('ForestFire', {'Thunder': 'yes'})"
    base, whole = best_process("import numpy, networkx"), best_process(question)
    yield Figure(
        "import, load campfire.yaml, first query: whole process over `import numpy, networkx`",
        f"{whole - base:+.3f} s ({whole:.3f} s against {base:.3f} s)",
        "0.2 s more at most",
    )


PEDIGREES = ((12, 3, 2, 6), (14, 3, 2, 6), (16, 3, 2, 6), (14, 3, 3, 5), (20, 3, 3, 8))
"""People, loci, alleles, and among how many people matings take place."""


def pedigree_figures() -> Iterator[Figure]:
    """Linkage networks of random pedigrees, three fifths of the phenotypes seen, new values each time."""
    for people, loci, alleles, near in PEDIGREES:
        net = pedigree(people, loci, 1, alleles=alleles, near=near)
        cases = phenotypes(net, 0.6, 1, N_VALUES)
        engine = bbn.JunctionTree(net)
        number = engine.flat.number
        shape = Question(frozenset(number[name] for name in cases[0]), goal=MARGINALS)
        dense = plan_tree(engine.flat, shape, once=True).cells
        filters, cells = DomainFilter(engine.flat), []
        needed = relevant(engine.flat, shape).factors
        for case in cases:
            hard = [(number[k], net.variable(k).code(v)) for k, v in case.items()]
            domain = filters.domain(Values(hard, (), 0.0))
            assert domain is not None
            cells.append(plan_tree(filters.filtered(domain, needed)[0], shape).cells)
        engine.posteriors(cases[0])
        start = time.perf_counter()
        for case in cases:
            engine.posteriors(case)
        took = (time.perf_counter() - start) / len(cases)
        yield Figure(
            f"pedigree of {people} people, {loci} loci, {alleles} alleles: all posteriors",
            f"{1000 * took:.1f} ms; {dense:.2g} cells with all states, {np.mean(cells):.2g} with those that can occur",
        )


def large_pedigree_figure() -> Figure:
    """A linkage network that only fits once variables that fix each other are one: its first answer."""
    net = pedigree(30, 4, 1, alleles=3, near=10)
    case = phenotypes(net, 0.6, 1)[0]
    start = time.process_time()
    net.posteriors(case, memory_limit="8GB")
    took = time.process_time() - start
    return Figure(
        "pedigree of 30 people, 4 loci, 3 alleles, 8 GB: all posteriors, first", f"{took:.1f} s", "120 s"
    )


def best_process(code: str) -> float:
    """Seconds of a whole Python process, the least of seven."""
    times = []
    for _ in range(7):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        times.append(time.perf_counter() - start)
    return min(times)


def all_posteriors(
    net: bbn.BayesianNetwork, cases: list[dict[str, Any]], slow: bool = False
) -> dict[str, Callable[[], Any]]:
    """pyAgrum's ways to every posterior of these cases."""
    return pyagrum_idioms.sweeps(bbn.to_pyagrum(net), cases, hidden(net, cases[0]), slow)


def hidden(net: bbn.BayesianNetwork, case: dict[str, Any]) -> list[str]:
    """The variables that are not observed."""
    return [name for name in net.names if name not in case]


def evidence_sets(net: bbn.BayesianNetwork, share: float, n: int) -> list[dict[str, Any]]:
    """Up to n cases, no two alike, of values of some nodes, drawn from the network so that they are possible."""
    rng = np.random.default_rng(11)
    names = list(net.names)
    chosen = sorted(rng.choice(len(names), max(1, round(share * len(names))), replace=False).tolist())
    table = sampled(net, 50 * n, [names[i] for i in chosen], 0.0, seed=12).drop_duplicates().head(n)
    return [{name: str(value) for name, value in row.items()} for row in table.to_dict("records")]


def sampled(net: bbn.BayesianNetwork, n: int, columns: list[str], share_missing: float, seed: int) -> Any:
    """Rows drawn from the network, by plain ancestral sampling, some values hidden."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    codes: dict[str, np.ndarray] = {}
    for name in net.names:
        cpt = net[name]
        rows = cpt.table[tuple(codes[p.name] for p in cpt.parents)]
        rows = np.broadcast_to(rows, (n, cpt.variable.card))
        codes[name] = (rng.random((n, 1)) > rows.cumsum(axis=1)[:, :-1]).sum(axis=1)
    table = pd.DataFrame({name: np.array(net.states(name), dtype=object)[codes[name]] for name in columns})
    return table.mask(rng.random(table.shape) < share_missing) if share_missing else table
