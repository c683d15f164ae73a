"""The seams of the library, on random networks and data with awkward names: engines, scores and sources of data.

What comes back from files is in tests/io (`test_a_network_comes_back_bit_for_bit`, for each format).
"""

from __future__ import annotations

import math
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bbn
from bbn.data import code, open_data
from bbn.inference import ENGINES
from tests.support import oracle
from tests.support.strategies import networks, words

EXACT = ("junction-tree", "elimination", "enumeration")


@st.composite
def questions(draw: Any) -> tuple[bbn.BayesianNetwork, dict[str, Any], int]:
    """A network of at most 8 variables, evidence on some of them that can occur, and a seed."""
    net = draw(networks(max_nodes=8, max_cells=400))
    seed = draw(st.integers(0, 2**32 - 1))
    row = net.sample(1, seed=seed, as_codes=True)
    seen = draw(st.lists(st.sampled_from(net.names), max_size=2, unique=True))
    return net, {name: net.states(name)[int(row[name][0])] for name in seen}, seed


@pytest.mark.parametrize("method", ENGINES)
@settings(max_examples=80)
@given(question=questions())
def test_every_engine_agrees_with_enumeration(method: str, question: Any) -> None:
    net, evidence, seed = question
    options: dict[str, Any] = {} if method in EXACT else {"seed": seed, "n_samples": 4000}
    if method == "loopy":
        if not nx.is_forest(net.graph.to_undirected()):
            return  # an approximation, whose error is not known
        options = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bbn.BBNWarning)
        try:
            answers = net.posteriors(evidence, method=method, **options)
        except bbn.ImpossibleEvidenceError:
            assert method not in (*EXACT, "loopy")  # no sample agreed with the evidence
            assert oracle.evidence_probability(net, evidence) < 0.01
            return
    for name, answer in answers.items():
        expected = oracle.posterior(net, [name], evidence)
        assert expected is not None
        truth = np.array([expected[(s,)] for s in net.states(name)])
        if method in EXACT or method == "loopy":
            np.testing.assert_allclose(answer.values, truth, rtol=1e-9, atol=1e-12)
        elif answer.reliable:
            assert (answer.values[truth == 0] == 0).all()
            common = (truth * answer.ess > 25) & ((1 - truth) * answer.ess > 25)
            assert (np.abs(answer.values - truth)[common] < 7 * answer.std_error[common]).all()


@st.composite
def tables(draw: Any, max_rows: int = 60) -> pd.DataFrame:
    """Rows of text, of two to five columns with awkward names and two to four states each, all of which occur."""
    names = draw(st.lists(words(), min_size=2, max_size=5, unique=True))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(8, max_rows))
    columns: dict[str, list[str]] = {}
    before = np.zeros(n, int)
    for name in names:
        states = [f"{name} {k}" for k in range(draw(st.integers(2, 4)))]
        codes = np.where(rng.random(n) < 0.5, rng.integers(len(states), size=n), before % len(states))
        codes[: len(states)] = range(len(states))
        columns[name], before = [states[c] for c in codes], codes
    return pd.DataFrame(columns, dtype=object)


def family_score(rows: pd.DataFrame, parents: list[str], child: str, score: str) -> float:
    """A family's term by the definition, from a count of the rows in plain Python (Koller, Friedman 2009, 18.3)."""
    seen = Counter(zip(*(rows[name] for name in [*parents, child]), strict=True))
    cards = [rows[name].nunique() for name in [*parents, child]]
    settings_, card, term = math.prod(cards[:-1]), cards[-1], 0.0
    states = sorted(set(rows[child]))
    for setting in {key[:-1] for key in seen}:
        counts = [seen[(*setting, state)] for state in states]
        total = sum(counts)
        if score in ("k2", "bdeu"):
            alpha = 1.0 if score == "k2" else 1 / (settings_ * card)
            term += math.lgamma(alpha * card) - math.lgamma(alpha * card + total)
            term += sum(math.lgamma(alpha + c) - math.lgamma(alpha) for c in counts)
        else:
            term += sum(c * math.log(c / total) for c in counts if c)
    free = settings_ * (card - 1)
    return term - {"bic": free * math.log(len(rows)) / 2, "aic": free}.get(score, 0.0)


SEARCHES = {
    "hill_climb": lambda rows, score: bbn.hill_climb(rows, score, max_parents=3),
    "tabu": lambda rows, score: bbn.hill_climb(rows, score, tabu=5, seed=0, max_parents=3),
    "ges": lambda rows, score: bbn.ges(rows, score),
    "exact_search": lambda rows, score: bbn.exact_search(rows, score, max_parents=3),
    "k2": lambda rows, score: bbn.k2(rows, list(rows), score=score, max_parents=3),
}


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("score", ["bic", "bdeu", "k2", "aic", "log-likelihood"])
@settings(max_examples=15)
@given(rows=tables())
def test_what_is_learned_scores_the_sum_of_its_families(search: str, score: str, rows: pd.DataFrame) -> None:
    if search == "ges" and score in ("k2",):
        return  # which scores members of an equivalence class differently
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bbn.BBNWarning)
        found = SEARCHES[search](rows, score)
        dag = bbn.to_dag(found)
    expected = sum(family_score(rows, sorted(dag.predecessors(v)), v, score) for v in rows)
    assert bbn.score(dag, rows, score) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert found.graph["score"] == pytest.approx(expected, rel=1e-9, abs=1e-9)
    if search == "exact_search":  # no other structure that was found is better
        for other in ("hill_climb", "k2"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", bbn.BBNWarning)
                least = SEARCHES[other](rows, score).graph["score"]
            assert least <= expected + 1e-6


def sources(rows: pd.DataFrame, variables: list[bbn.Variable], folder: Path) -> Iterator[tuple[str, Any]]:
    """The same rows as every kind of source; holes are None."""
    lists = {name: column.tolist() for name, column in rows.items()}
    yield "columns", code(lists, variables=variables)
    yield "frame", code(rows, variables=variables)
    yield "records", code(rows.to_dict("records"), variables=variables)
    if not any("\0" in name for name in lists):  # which polars takes, but cannot give away
        frame = pl.DataFrame(lists, schema=dict.fromkeys(lists, pl.String))
        yield "polars", code(frame, variables=variables)
    arrow = pa.table({name: pa.array(values, pa.string()) for name, values in lists.items()})
    yield "arrow", code(arrow, variables=variables)
    pieces = [rows.iloc[start : start + 7] for start in range(0, len(rows), 7)]
    yield "pieces", open_data(pieces, variables=variables)
    yield "pieces, anew each pass", open_data(lambda: iter(pieces), variables=variables)
    (folder / "parts").mkdir()
    for number, start in enumerate(range(0, len(rows), 20)):
        pq.write_table(arrow.slice(start, 20), folder / "parts" / f"{number}.parquet", row_group_size=6)
    yield "parquet folder", open_data(folder / "parts", variables=variables, batch_rows=5)
    rows.to_csv(folder / "rows.csv", index=False)
    yield "csv", open_data(folder / "rows.csv", variables=variables, batch_rows=9)
    rows.to_csv(folder / "rows.tsv.gz", index=False, sep="\t")
    yield "packed tsv", open_data(folder / "rows.tsv.gz", variables=variables)


@settings(max_examples=15)
@given(rows=tables(), holes=st.integers(0, 2**32 - 1))
def test_every_source_counts_the_same(rows: pd.DataFrame, holes: int) -> None:
    variables = [bbn.Variable(name, sorted(set(column))) for name, column in rows.items()]
    rows = rows.mask(np.random.default_rng(holes).random(rows.shape) < 0.1, None).astype(object)
    rows = rows.where(rows.notna(), None)
    names = list(rows)
    families = [(name,) for name in names] + [(names[0], names[1]), (names[-1], names[0])] + [tuple(names)]
    expected = []
    for family in families:
        seen = Counter(zip(*(rows[name] for name in family), strict=True))
        states = [sorted(next(v for v in variables if v.name == name).states) for name in family]
        expected.append([seen[key] for key in product(*states)])
    with tempfile.TemporaryDirectory() as folder:
        for kind, source in sources(rows, variables, Path(folder)):
            counted = [np.asarray(table).ravel().tolist() for table in source.counts(families)]
            assert counted == expected, kind
            assert (source.n_rows, source.total) == (len(rows), len(rows)), kind
            assert set(source.incomplete) == {name for name in names if rows[name].isna().any()}, kind
            summed = source.reduce(lambda block: [np.bincount(block.codes[names[0]], block.weights, 5)])
            own = [*expected[0], int(rows[names[0]].isna().sum())]
            assert summed[0].tolist() == own + [0.0] * (5 - len(own)), kind
