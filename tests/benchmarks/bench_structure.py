"""Structure learning against pyAgrum and pgmpy on ALARM, and Chow-Liu against a matrix product."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from time import perf_counter
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

import bbn
from bbn.data import CodedTable, as_source
from tests.benchmarks.harness import Figure, Row, Work
from tests.support.learning_data import ALARM_ORDER, sample

TITLE = "Finding the structure"
NOTES = """
Rows are drawn from ALARM. Both programs have read and coded the table before the clock starts, and no counts are kept
from round to round. K2 takes Cooper and Herskovits' order and score and at most five parents, and both give the same
arcs. Hill climbing uses the BDeu score in both programs; ours also cuts variables off and puts them back, and must
not score less. Neither makes a restart, which ours does by default. PC takes the G² test at 0.05 with at most three
conditions; pgmpy runs its three variants on text and on codes, pyAgrum its PC with and without the stable order, and
the fastest of each counts. Chow-Liu learns a tree over 1,000 binary variables from 100,000 rows; beside it is one
product of two float32 matrices of that size, which is what the mutual information of all pairs costs by linear
algebra. The rows of numbers climb the bic-g score of linear Gaussian networks with about three arcs per variable,
beside pgmpy's and PyBNesian's searches, and must not score less. GES runs with its defaults and without escapes,
which the others do not have; a figure says where it scores less. Figures against another library come from one run of
each, since the other takes minutes. PyBNesian, causal-learn and xges are not among the dependencies of the tests:
`make bench` installs them (`make peers`), and rows and figures that need them appear only where they are installed.
"""


def rows() -> Iterator[Row | Figure]:
    """All rows of the table."""
    import pyagrum as gum

    gum.setNumberOfThreads(1)
    for n_rows, target in ((3_000, 5), (100_000, 15)):
        yield k2_row(n_rows, target)
    yield hill_climb_row()
    yield from gaussian_rows()
    yield from ges_rows()
    yield chow_liu_row()
    yield pc_row()
    yield from thread_rows()


def frame(n_rows: int, seed: int = 0) -> pd.DataFrame:
    """Rows of ALARM, each column a categorical that declares the states that occur, in the order of their names."""
    columns = sample(bbn.example("alarm"), n_rows, seed)
    return pd.DataFrame({name: pd.Categorical(column) for name, column in columns.items()})


def k2_row(n_rows: int, target: float) -> Row:
    """K2 with the paper's order."""
    data = frame(n_rows)

    def run(learner: Any) -> set[tuple[str, str]]:
        names = learner.names()
        return {(names[a], names[b]) for a, b in learner.learnDAG().arcs()}

    def check() -> None:
        assert run(agrum_learner(data, "K2")) == set(bbn.k2(as_source(data), ALARM_ORDER, 5).edges)

    return Row(
        f"K2, {n_rows:,} rows, five parents",
        {"bbn": lambda source: bbn.k2(source, ALARM_ORDER, 5), "pyAgrum": {"BNLearner.useK2, learnDAG": run}},
        check,
        target,
        prepare={"bbn": lambda: as_source(data), "pyAgrum": lambda: agrum_learner(data, "K2")},
    )


def hill_climb_row() -> Row:
    """Greedy search over all DAGs."""
    data = frame(20_000)

    def check() -> None:
        learner = agrum_learner(data, "BDeu")
        names = learner.names()
        theirs = nx.DiGraph((names[a], names[b]) for a, b in learner.learnDAG().arcs())
        theirs.add_nodes_from(names)
        assert bbn.hill_climb(data, restarts=0).graph["score"] >= bbn.score(theirs, data, "bdeu")

    return Row(
        "Hill climbing, BDeu, 20,000 rows",
        {
            "bbn": lambda source: bbn.hill_climb(source, restarts=0),
            "pyAgrum": {"BNLearner.useGreedyHillClimbing, learnDAG": lambda learner: learner.learnDAG()},
        },
        check,
        8,
        prepare={"bbn": lambda: as_source(data), "pyAgrum": lambda: agrum_learner(data, "BDeu")},
        seconds=10,
    )


def gaussians(n_columns: int, n_rows: int) -> pd.DataFrame:
    """Rows of a random linear Gaussian network."""
    rng = np.random.default_rng(0)
    columns: dict[str, np.ndarray] = {}
    for i in range(n_columns):
        parents = [name for name in columns if rng.random() < 3 / n_columns]
        slopes = rng.choice([-1, 1], size=len(parents)) * rng.uniform(0.5, 1.5, size=len(parents))
        columns[f"x{i:02}"] = rng.normal(size=n_rows) + sum(
            (slope * columns[name] for slope, name in zip(slopes, parents, strict=True)), np.zeros(n_rows)
        )
    return pd.DataFrame(columns)


def is_there(*modules: str) -> bool:
    """Whether all of some optional modules can be imported."""
    return all(find_spec(module) is not None for module in modules)


def score_of(arcs: Any, data: pd.DataFrame) -> float:
    """The bic-g score of some arcs over all columns."""
    graph = nx.DiGraph(arcs)
    graph.add_nodes_from(data)
    return bbn.score(graph, data, "bic-g", continuous=list(data))


def gaussian_rows() -> Iterator[Row | Figure]:
    """Hill climbing on numbers; pgmpy gets a smaller table too, as it takes minutes for the larger."""
    yield gaussian_row("pgmpy", {"HillClimbSearch, BICGauss": pgmpy_climb}, gaussians(10, 10_000), 10)
    for n_columns in (20, 50):
        data = gaussians(n_columns, 100_000)
        if is_there("pybnesian"):
            yield gaussian_row("PyBNesian", {"hc, GaussianNetworkType": pybnesian_climb}, data, 5)
        else:
            took = seconds_of(partial(bbn.hill_climb, data, continuous=list(data), progress=False))
            yield Figure(f"Hill climbing on {n_columns} columns of numbers, 100,000 rows", f"{took:.2f} s")
    data = gaussians(20, 100_000)
    yield once(
        "Hill climbing on 20 columns of numbers, 100,000 rows: pgmpy",
        lambda: bbn.hill_climb(data, continuous=list(data), progress=False),
        lambda: score_of(pgmpy_climb(data), data),
        10,
    )


def gaussian_row(peer: str, ways: dict[str, Any], data: pd.DataFrame, target: float) -> Row:
    """Hill climbing on numbers beside another library's."""
    names = list(data)

    def check() -> None:
        ours = bbn.hill_climb(data, continuous=names).graph["score"]
        for way in ways.values():
            assert ours >= score_of(way(data), data) - 1e-6

    return Row(
        f"Hill climbing on {data.shape[1]} columns of numbers, {len(data):,} rows",
        {
            "bbn": lambda: bbn.hill_climb(data, continuous=names, progress=False),
            peer: {idiom: partial(way, data) for idiom, way in ways.items()},
        },
        check,
        target,
    )


def pgmpy_climb(data: pd.DataFrame) -> Any:
    """The arcs that pgmpy's search finds."""
    from pgmpy.estimators import BICGauss, HillClimbSearch

    return HillClimbSearch(data).estimate(scoring_method=BICGauss(data), show_progress=False).edges()


def pybnesian_climb(data: pd.DataFrame) -> Any:
    """The arcs that PyBNesian's search finds."""
    import pybnesian

    return pybnesian.hc(data, bn_type=pybnesian.GaussianNetworkType(), score="bic").arcs()


def ges_rows() -> Iterator[Row | Figure]:
    """Greedy equivalence search as it is by default, and without escapes, beside causal-learn's and XGES."""
    data, alarm = gaussians(50, 100_000), frame(20_000)
    names = list(data)
    ours = {"": {}, " without escapes": {"escapes": 0}}
    for how, options in ours.items():
        if not is_there("causallearn"):
            break
        yield once(
            f"GES{how} on 50 columns of numbers, 100,000 rows: causal-learn",
            partial(bbn.ges, data, continuous=names, progress=False, **options),
            lambda: score_of(causal_learn_ges(data.to_numpy(), names, "local_score_BIC").edges, data),
            20,
        )
        yield once(
            f"GES{how} on ALARM, BDeu, 20,000 rows: causal-learn",
            partial(bbn.ges, alarm, "bdeu", progress=False, **options),
            lambda: bbn.score(
                causal_learn_ges(codes_of(alarm), list(alarm), "local_score_BDeu"), alarm, "bdeu"
            ),
            20,
        )
    if is_there("xges"):
        xges_search(data[:100])  # compiles its loops
        for how, options in ours.items():
            yield once(
                f"GES{how} on 50 columns of numbers, 100,000 rows: xges",
                partial(bbn.ges, data, continuous=names, progress=False, **options),
                lambda: score_of(xges_search(data).edges, data),
                1,
            )


def once(work: str, ours: Work, theirs: Work, target: float) -> Figure:
    """How many times as long another library takes, of one run of each where it takes minutes; we score no less.

    `ours` gives a graph with its score, `theirs` the score of what the other library found.
    """
    start = perf_counter()
    found = ours().graph["score"]
    middle = perf_counter()
    other = theirs()
    ratio = (perf_counter() - middle) / (middle - start)
    verdict = "" if found >= other - 1e-6 else f", but scores {other - found:.3g} less"
    return Figure(work, f"{ratio:.3g}x{verdict}", f"{target:g}x")


def causal_learn_ges(values: np.ndarray, names: list[str], score: str) -> nx.DiGraph:
    """A structure of the class that causal-learn's search finds."""
    from causallearn.search.ScoreBased.GES import ges

    ends = ges(values, score)[
        "G"
    ].graph  # [i, j] is -1 and [j, i] is 1 where i → j; both are -1 where it is open
    found = nx.DiGraph()
    found.add_nodes_from(names)
    found.add_edges_from((names[i], names[j]) for i, j in np.argwhere(ends == -1))
    return bbn.to_dag(found)


def xges_search(data: pd.DataFrame) -> nx.DiGraph:
    """The structure that XGES finds."""
    import xges

    search = xges.XGES()
    search.fit(data.to_numpy(), verbose=0)
    return nx.relabel_nodes(search.get_a_dag_networkx(), dict(enumerate(data)))


def codes_of(data: pd.DataFrame) -> np.ndarray:
    """The columns of states as numbers."""
    return data.apply(lambda column: column.cat.codes.astype(int)).to_numpy()


def seconds_of(work: Work) -> float:
    """How long one run takes."""
    start = perf_counter()
    work()
    return perf_counter() - start


def chow_liu_row() -> Row:
    """A tree over 1,000 variables."""
    codes = chain(1_000, 100_000)
    matrix = codes.astype(np.float32)

    def check() -> None:
        tree = bbn.chow_liu(coded(codes))
        assert nx.is_arborescence(tree)

    return Row(
        "Chow-Liu, 1,000 variables, 100,000 rows",
        {"bbn": bbn.chow_liu, "one matrix product": lambda: matrix @ matrix.T},
        check,
        1 / 3,
        prepare={"bbn": lambda: coded(codes)},
        seconds=15,
    )


def pc_row() -> Row:
    """PC with the G² test."""
    from pgmpy.causal_discovery import PC

    data = frame(5_000)
    tables = {
        "text": data.astype(str),
        "codes": pd.DataFrame(codes_of(data), columns=list(data)),
    }

    def pgmpy(variant: str, table: pd.DataFrame) -> Any:
        options = {"ci_test": "g_sq", "significance_level": 0.05, "max_cond_vars": 3, "show_progress": False}
        n_jobs = 2 if variant == "parallel" else 1
        return PC(variant=variant, n_jobs=n_jobs, **options).fit(table)

    def pyagrum(stable: bool, learner: Any) -> Any:
        learner.usePC()
        learner.useG2Test()
        learner.setPCAlpha(0.05)
        learner.setPCMaxCondSetSize(3)
        learner.setPCStable(stable)
        return learner.learnPDAG(), learner.names()

    def check() -> None:
        true = {frozenset(edge) for edge in bbn.example("alarm").arcs}
        graph, names = pyagrum(True, agrum_learner(data, "BDeu"))
        pairs = [*graph.arcs(), *graph.edges()]
        found = {
            "bbn": bbn.pc(data, max_condition=3).edges,
            "pyAgrum": [(names[a], names[b]) for a, b in pairs],
            "pgmpy": pgmpy("stable", tables["text"]).causal_graph_.edges,
        }
        for who, edges in found.items():
            assert len({frozenset(edge) for edge in edges} & true) >= 36, who

    return Row(
        "PC, 5,000 rows, at most three conditions",
        {
            "bbn": lambda source: bbn.pc(source, max_condition=3),
            "pgmpy": {
                f"PC(variant={variant!r}) on {kind}": partial(pgmpy, variant, table)
                for variant in ("orig", "stable", "parallel")
                for kind, table in tables.items()
            },
            "pyAgrum": {
                f"BNLearner.usePC{', setPCStable(False)' * (not stable)}": partial(pyagrum, stable)
                for stable in (True, False)
            },
        },
        check,
        10,
        prepare={"bbn": lambda: as_source(data), "pyAgrum": lambda: agrum_learner(data, "BDeu")},
    )


def thread_rows() -> Iterator[Figure]:
    """Two threads against one, where there are two cores."""
    before = os.environ.get("OMP_NUM_THREADS")
    data = frame(1_000_000)
    codes = chain(1_000, 100_000)
    for work, make, run in (
        ("K2, 1,000,000 rows", lambda: as_source(data), lambda source: bbn.k2(source, ALARM_ORDER, 5)),
        (
            "Hill climbing, 1,000,000 rows",
            lambda: as_source(data),
            lambda source: bbn.hill_climb(source, escapes=0, restarts=0),
        ),
        ("Chow-Liu, 1,000 variables", lambda: coded(codes), lambda source: source.counts(pairs(source))),
    ):
        best = {"1": np.inf, "2": np.inf}
        for _ in range(3):
            for threads in best:
                os.environ["OMP_NUM_THREADS"] = threads
                source = make()
                start = perf_counter()
                run(source)
                best[threads] = min(best[threads], perf_counter() - start)
        yield Figure(f"{work}: two threads against one", f"{best['1'] / best['2']:.2f}x", "1.6x")
    if before is None:
        del os.environ["OMP_NUM_THREADS"]
    else:
        os.environ["OMP_NUM_THREADS"] = before


def pairs(source: CodedTable) -> list[tuple[str, str]]:
    """All pairs of variables, those with the same second member side by side."""
    names = [v.name for v in source.variables]
    return [(names[i], names[j]) for j in range(len(names)) for i in range(j)]


def agrum_learner(data: pd.DataFrame, score: str) -> Any:
    """A learner of pyAgrum that has read the data."""
    import pyagrum as gum

    learner = gum.BNLearner(data)
    learner.useNoPrior()
    if score == "K2":
        learner.useScoreK2()
        learner.setMaxIndegree(5)
        learner.useK2([learner.idFromName(name) for name in ALARM_ORDER])
    else:
        learner.useScoreBDeu()
        learner.useGreedyHillClimbing()
    return learner


def chain(n_variables: int, n_rows: int) -> np.ndarray:
    """Binary columns, each depending on an earlier one."""
    rng = np.random.default_rng(0)
    codes = (rng.random((n_variables, n_rows)) < 0.5).astype(np.uint8)
    for i in range(1, n_variables):
        codes[i] = np.where(rng.random(n_rows) < 0.3, codes[rng.integers(i)], codes[i])
    return codes


def coded(codes: np.ndarray) -> CodedTable:
    """The columns as a source."""
    variables = tuple(bbn.Variable(f"v{i:04}", [0, 1]) for i in range(len(codes)))
    return CodedTable(variables, {v.name: codes[i] for i, v in enumerate(variables)}, codes.shape[1])
