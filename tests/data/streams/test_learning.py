"""Every learner gives the same network from streamed data as from memory, in few passes over them."""

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import bbn
from bbn.data import open_data

N = 2500


@pytest.fixture(scope="module")
def rows():
    """Rows of a network with strong and weak arcs, as text."""
    return bbn.example("asia").sample(N, seed=5).astype(str)


@pytest.fixture(scope="module")
def holed(rows):
    rng = np.random.default_rng(8)
    return rows.mask(rng.random(rows.shape) < 0.1, None)


def stream(kind, table, folder, **options):
    """The table as a source of some kind, in batches of some size."""
    folder.mkdir(exist_ok=True)
    if kind == "csv":
        table.to_csv(folder / "rows.csv", index=False)
        return open_data(folder / "rows.csv", batch_rows=600, **options)
    if kind == "list":
        return open_data([table.iloc[i : i + 901] for i in range(0, len(table), 901)], **options)
    for i, start in enumerate(range(0, len(table), 1000)):
        part = pa.Table.from_pandas(table.iloc[start : start + 1000], preserve_index=False)
        pq.write_table(part, folder / f"part-{i}.parquet", row_group_size=300)
    if kind == "dataset":
        return open_data(pyarrow.dataset.dataset(folder), batch_rows=170, **options)
    return open_data(folder, batch_rows=int(kind.partition("-")[2] or 10**6), **options)


KINDS = ["csv", "list", "dataset", "parquet", "parquet-97"]


def arcs(graph):
    return sorted(graph.edges)


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_network_from_complete_data(kind, n_jobs, rows, tmp_path):
    source = stream(kind, rows, tmp_path / "rows", n_jobs=n_jobs)
    names = list(rows.columns)
    tree, grown, climbed = bbn.chow_liu(rows), bbn.k2(rows, names), bbn.hill_climb(rows)
    assert bbn.fit(grown, source, bbn.BDeu(1)) == bbn.fit(grown, rows, bbn.BDeu(1))
    found = bbn.chow_liu(source)
    assert (arcs(found), found.graph["information"]) == (arcs(tree), tree.graph["information"])
    for found, same in ((bbn.k2(source, names), grown), (bbn.hill_climb(source), climbed)):
        assert arcs(found) == arcs(same)  # the score is a sum of the same terms, added up in another order
        assert found.graph["score"] == pytest.approx(same.graph["score"], rel=1e-14)
    assert arcs(bbn.pc(source)) == arcs(bbn.pc(rows))
    assert arcs(bbn.tan(source, names[0])) == arcs(bbn.tan(rows, names[0]))
    for score in ("k2", "bdeu", "bic", "aic", "log-likelihood"):
        assert bbn.score(grown, source, score) == bbn.score(grown, rows, score)


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_network_from_data_with_holes(kind, n_jobs, rows, holed, tmp_path):
    source = stream(kind, holed, tmp_path / "rows", n_jobs=n_jobs)
    structure = bbn.k2(rows, list(rows.columns))
    # conjugate directions near the top hang on differences of rounding, so tables are compared before that
    for learner, steps in ((bbn.fit_em, 20), (bbn.fit_gradient, 5)):
        ours = learner(structure, source, max_iter=steps, seed=1)
        theirs = learner(structure, holed, max_iter=steps, seed=1)
        np.testing.assert_allclose(ours.log_likelihoods, theirs.log_likelihoods, rtol=1e-12)
        for name in theirs.network.names:
            np.testing.assert_allclose(ours.network[name].table, theirs.network[name].table, atol=1e-12)
    before = bbn.gradient(theirs.network, holed)
    for name, slope in bbn.gradient(theirs.network, source).items():
        np.testing.assert_allclose(slope, before[name], rtol=1e-12)


def test_hidden_variables_and_weights(rows, tmp_path):
    names = list(rows.columns)
    table = rows.assign(w=np.random.default_rng(2).random(N))
    arcs = [("H", name) for name in names[:4]]
    hidden = {"H": ["a", "b"]}
    memory = bbn.fit_em(arcs, table[[*names[:4], "w"]], hidden=hidden, seed=4, max_iter=15, weights="w")
    source = stream("parquet-97", table, tmp_path / "rows", weights="w")
    streamed = bbn.fit_em(arcs, source, hidden=hidden, seed=4, max_iter=15)
    np.testing.assert_allclose(streamed.log_likelihoods, memory.log_likelihoods, rtol=1e-12)
    for name in memory.network.names:
        np.testing.assert_allclose(
            streamed.network[name].table, memory.network[name].table, rtol=1e-12, atol=1e-12
        )


def test_gaussians_too(tmp_path):
    rng = np.random.default_rng(0)
    z = rng.integers(2, size=N)
    table = pd.DataFrame({"Z": np.array(["a", "b"])[z], "X": z + rng.normal(size=N)})
    memory = bbn.fit([("Z", "X")], table, continuous=["X"])
    source = stream("parquet-97", table, tmp_path / "rows", continuous=["X"])
    streamed = bbn.fit([("Z", "X")], source, continuous=["X"])
    np.testing.assert_allclose(streamed["X"].means, memory["X"].means, rtol=1e-12)
    np.testing.assert_allclose(streamed["X"].variances, memory["X"].variances, rtol=1e-12)


def test_a_folder_is_data_like_any_other(rows, holed, tmp_path):
    stream("parquet", rows, tmp_path / "rows")
    folder = str(tmp_path / "rows")
    structure = bbn.k2(rows, list(rows.columns))
    assert arcs(bbn.k2(folder, list(rows.columns))) == arcs(structure)
    assert bbn.fit(structure, folder, bbn.BDeu(1)) == bbn.fit(structure, rows, bbn.BDeu(1))
    assert bbn.fit(structure, f"{folder}/*.parquet", bbn.BDeu(1)) == bbn.fit(structure, rows, bbn.BDeu(1))
    for data in (sorted((tmp_path / "rows").iterdir()), pyarrow.dataset.dataset(folder)):
        assert bbn.fit(structure, data, bbn.BDeu(1)) == bbn.fit(structure, rows, bbn.BDeu(1))
    learned = bbn.learn(folder, method="chow-liu")
    assert arcs(learned.network.graph) == arcs(bbn.chow_liu(rows))
    assert "3 passes over the data" in learned.report  # states, pairs, tables


def passes(source, work):
    assert source.variables  # the states are known
    before = source.passes
    work(source)
    return source.passes - before


@pytest.mark.parametrize("max_parents", [1, 2, 3, 5])
def test_k2_takes_one_pass_per_number_of_parents(max_parents, rows, tmp_path):
    source = stream("list", rows, tmp_path)
    taken = passes(source, lambda source: bbn.k2(source, list(rows.columns), max_parents))
    most = max(d for _, d in bbn.k2(rows, list(rows.columns), max_parents).in_degree())
    assert taken == min(most + 1, max_parents)


def test_one_pass_learners(rows, holed, tmp_path):
    source = stream("list", rows, tmp_path)
    structure = bbn.chow_liu(rows)
    assert (source.passes, len(source.variables), source.passes) == (0, 8, 1)  # discovery
    assert passes(source, bbn.chow_liu) == 1
    assert passes(source, lambda s: bbn.tan(s, "asia")) == 1
    assert passes(source, lambda s: bbn.fit(structure, s, bbn.BDeu(1))) == 1
    assert passes(source, lambda s: bbn.score(structure, s)) == 1
    source = stream("list", holed, tmp_path)
    assert passes(source, lambda s: bbn.fit_em(structure, s, seed=0, max_iter=0)) == 1
    assert passes(source, lambda s: bbn.fit_em(structure, s, seed=0, max_iter=4, tol=0)) == 1 + 4


def test_hill_climbing_takes_a_pass_per_batch_of_new_families(rows, tmp_path, monkeypatch):
    from bbn.learning.structure.arc_search import ArcSearch

    batches = []
    refresh = ArcSearch.refresh

    def spied(self, children):
        listed = list(children)
        batches.append(any(self.parents[c] not in self.known[c] for c in listed))
        refresh(self, listed)

    monkeypatch.setattr(ArcSearch, "refresh", spied)
    source = stream("list", rows, tmp_path)
    taken = passes(source, bbn.hill_climb)
    assert 1 < taken <= sum(batches)
    plain = passes(source, lambda s: bbn.hill_climb(s, escapes=0))
    assert plain < taken


def test_learners_that_draw_rows_say_that_they_need_memory(rows, tmp_path):
    source = stream("list", rows, tmp_path)
    for learner in (bbn.structural_em, bbn.cross_validate, bbn.arc_strength):
        with pytest.raises(bbn.DataError, match="in memory"):
            learner(source)


def test_a_large_count_is_not_rounded():
    # 2⁵³ rows and one: more than a double counts, by way of weights that add up in batches
    total = open_data([{"A": ["x"], "w": [float(2**53)]}, *[{"A": ["x"], "w": [1.0]}] * 4], weights="w").total
    assert total == math.ldexp(1, 53) + 4
