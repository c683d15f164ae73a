"""Exact inference against pyAgrum and pgmpy, on the standard networks."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import bbn
from tests.benchmarks.harness import Figure, Row

TITLE = "Exact inference"
NOTES = """
pyAgrum is the better of its LazyPropagation and ShaferShenoyInference on each row, on one thread, its tables handed
over exactly. "All posteriors" observes a tenth of the nodes, with new values each time (drawn from the network), and
reads every posterior. "First query" includes everything a program does on a network it has just loaded:
triangulation, compilation, one answer. Batches are given per row. "Without compiled kernels" is the same work as "all
posteriors" in a process of its own with BBN_PURE=1, where the numpy twins serve.
"""

WARM = {
    "alarm": 25, "hailfinder": 25, "win95pts": 25, "andes": 80, "pigs": 80, "munin": 20,
    "mildew": 8, "diabetes": 8, "barley": 8, "link": 200,
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


def rows() -> Iterator[Row | Figure]:
    """All rows of the table."""
    import pyagrum as gum

    gum.setNumberOfThreads(1)
    for name, target in WARM.items():
        yield warm_row(name, target)
    for name in PURE:
        yield pure_row(name)
    for name in bbn.examples():
        if "/" not in name:
            yield first_row(name)
    yield single_row()
    yield from batch_rows()
    yield pgmpy_row()
    yield from figures()


def warm_row(name: str, target: float) -> Row:
    """All posteriors, new values for the same observed nodes."""
    net = bbn.example(name)
    cases = evidence_sets(net, 0.1, N_VALUES)
    theirs = better_pyagrum(net, cases)
    turn = {"bbn": 0, "pyAgrum": 0}

    def next_case(who: str) -> dict[str, Any]:
        turn[who] += 1
        return cases[turn[who] % len(cases)]

    def ours() -> None:
        for posterior in net.posteriors(next_case("bbn")).values():
            posterior.values  # noqa: B018  # reading it is the work

    def check() -> None:
        for case in cases[:2]:
            answers, expected = net.posteriors(case), theirs(case)
            for node, values in expected.items():
                np.testing.assert_allclose(answers[node].values, values, rtol=0, atol=1e-9)

    return Row(
        f"all posteriors, {name}",
        {"bbn": ours, "pyAgrum": lambda: theirs(next_case("pyAgrum"))},
        check,
        target,
        seconds=4,
    )


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
    """All posteriors of a batch of cases by the numpy twins, in a process where they serve."""
    net = bbn.example(name)
    cases = evidence_sets(net, 0.1, N_VALUES)
    theirs = better_pyagrum(net, cases)
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

    def check() -> None:
        assert worker.stdin is not None
        worker.stdin.write(json.dumps(cases) + "\n")
        answers = json.loads(ask("tell"))
        for node, values in theirs(cases[-1]).items():
            np.testing.assert_allclose(answers[node], values, rtol=0, atol=1e-9)

    def everything() -> None:
        for case in cases:
            theirs(case)

    return Row(
        f"all posteriors without compiled kernels, {name}",
        {"bbn": lambda: ask("run"), "pyAgrum": everything},
        check,
        2,
        units=N_VALUES,
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

    def theirs(engine: type) -> np.ndarray:
        inference = engine(bn)
        inference.setEvidence(case)
        inference.addTarget(target)
        inference.makeInference()
        return inference.posterior(target).toarray()

    def check() -> None:
        np.testing.assert_allclose(ours(fresh()), theirs(gum.LazyPropagation), rtol=0, atol=1e-9)

    def fresh() -> bbn.BayesianNetwork:
        return bbn.BayesianNetwork(net.conditionals, net.name)

    def lazy() -> type:
        return gum.LazyPropagation

    return Row(
        f"first query, {name}",
        {"bbn": ours, "pyAgrum": theirs},
        check,
        2.0 if name in SMALL else 1.0,
        prepare={"bbn": fresh, "pyAgrum": lazy},
        seconds=1.5,
    )


def single_row() -> Row:
    """One target, after the first time, on alarm."""
    import pyagrum as gum

    net = bbn.example("alarm")
    cases = evidence_sets(net, 0.1, N_VALUES)
    target = next(v.name for v in net.variables if v.name not in cases[0])
    inference = gum.LazyPropagation(bbn.to_pyagrum(net))
    inference.setEvidence(cases[0])
    inference.addTarget(target)
    turn = [0, 0]

    def ours() -> np.ndarray:
        turn[0] += 1
        return net.query(target, cases[turn[0] % N_VALUES]).values

    def theirs() -> np.ndarray:
        turn[1] += 1
        inference.setEvidence(cases[turn[1] % N_VALUES])
        inference.makeInference()
        return inference.posterior(target).toarray()

    def check() -> None:
        for _ in range(N_VALUES):
            np.testing.assert_allclose(ours(), theirs(), rtol=0, atol=1e-9)

    return Row("one target, alarm, warm", {"bbn": ours, "pyAgrum": theirs}, check, 20)


def batch_rows() -> Iterator[Row]:
    """predict_proba of one target over a table."""
    import pyagrum as gum

    net = bbn.example("alarm")
    leaves = [v.name for v in net.variables if not net.children(v.name)]
    target = "HYPOVOLEMIA"
    n, n_theirs = 10_000, 200
    inference = gum.LazyPropagation(bbn.to_pyagrum(net))
    inference.addTarget(target)
    for share in (0.0, 0.3):
        table = sampled(net, n, leaves, share, seed=7)
        cases = [
            {name: value for name, value in row.items() if value is not None}
            for row in table.head(n_theirs)
            .astype(object)
            .where(table.head(n_theirs).notna(), None)
            .to_dict("records")
        ]

        def theirs(cases: list[dict[str, Any]] = cases) -> np.ndarray:
            answers = []
            for case in cases:
                inference.setEvidence(case)
                inference.makeInference()
                answers.append(inference.posterior(target).toarray())
            return np.array(answers)

        def ours(table: Any = table) -> Any:
            return net.predict_proba(table, target, n_jobs=1)

        def check(ours: Callable[[], Any] = ours, theirs: Callable[[], Any] = theirs) -> None:
            np.testing.assert_allclose(np.asarray(ours())[:n_theirs], theirs(), rtol=0, atol=1e-9)

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
    from pgmpy.inference import VariableElimination

    net = bbn.example("asia")
    theirs = VariableElimination(bbn.to_pgmpy(net))
    case = {"xray": "yes", "dysp": "yes"}

    def check() -> None:
        np.testing.assert_allclose(
            net.query("lung", case).values,
            theirs.query(["lung"], case, show_progress=False).values,
            atol=1e-9,
        )

    return Row(
        "one target, asia, warm",
        {
            "bbn": lambda: net.query("lung", case),
            "pgmpy": lambda: theirs.query(["lung"], case, show_progress=False),
        },
        check,
    )


def figures() -> Iterator[Figure]:
    """What pyAgrum does not finish, and the whole process."""
    link = bbn.example("link")
    start = time.perf_counter()
    link.posteriors()
    yield Figure("first query, link without evidence", f"{time.perf_counter() - start:.2f} s", "under 5 s")
    munin1 = bbn.example("munin1")
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


def best_process(code: str) -> float:
    """Seconds of a whole Python process, the least of seven."""
    times = []
    for _ in range(7):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        times.append(time.perf_counter() - start)
    return min(times)


def better_pyagrum(
    net: bbn.BayesianNetwork, cases: list[dict[str, Any]]
) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The faster of pyAgrum's two exact engines on these cases, as evidence → {node: posterior}."""
    import pyagrum as gum

    bn = bbn.to_pyagrum(net)
    best, fastest = math.inf, None
    for kind in (gum.LazyPropagation, gum.ShaferShenoyInference):
        inference = kind(bn)

        def answer(case: dict[str, Any], inference: Any = inference) -> dict[str, Any]:
            inference.setEvidence(case)
            inference.makeInference()
            return {
                v.name: inference.posterior(v.name).toarray() for v in net.variables if v.name not in case
            }

        answer(cases[0])
        start = time.perf_counter()
        answer(cases[1])
        took = time.perf_counter() - start
        if took < best:
            best, fastest = took, answer
        if took > 30:
            break
    assert fastest is not None
    return fastest


def evidence_sets(net: bbn.BayesianNetwork, share: float, n: int) -> list[dict[str, Any]]:
    """Values of a random tenth of the nodes, drawn from the network so that they are possible."""
    rng = np.random.default_rng(11)
    names = list(net.names)
    chosen = sorted(rng.choice(len(names), max(1, round(share * len(names))), replace=False).tolist())
    table = sampled(net, n, [names[i] for i in chosen], 0.0, seed=12)
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
