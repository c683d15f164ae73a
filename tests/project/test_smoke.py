"""A little of everything, each test where one dependency is at work: what `make oldest` runs on their oldest versions.

Truth is a textbook's number, arithmetic by hand, or the dependency itself; everything runs in seconds.
"""

import math
import os
import pickle
import shutil
import sysconfig
import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import bbn
from bbn.cli import main
from bbn.kernels import COMPILED
from tests.support import oracle

NET = bbn.example("asia")
NAMES = list(NET.names)


@pytest.fixture(scope="module")
def rows():
    return NET.sample(400, seed=1)


def test_exact_answers_are_those_of_the_joint():
    evidence = {"xray": "yes", "smoke": bbn.Virtual({"yes": 0.9, "no": 0.3})}
    expected = oracle.posterior(NET, ["lung"], evidence)
    for method in ("junction-tree", "elimination"):
        values = NET.query("lung", evidence, method=method).values
        np.testing.assert_allclose(values, [expected[("yes",)], expected[("no",)]], rtol=1e-12)
    assert pickle.loads(pickle.dumps(NET)) == NET


def test_networkx_takes_the_graph_and_gives_one():
    assert nx.is_directed_acyclic_graph(NET.graph)
    assert set(NET.graph.edges) == set(NET.arcs)
    learned = bbn.fit(nx.DiGraph([("a", "b")]), {"a": ["x", "y"], "b": ["x", "y"]}, bbn.BDeu(1))
    assert learned.arcs == (("a", "b"),)


@pytest.mark.parametrize("format", [format.name for format in bbn.io.FORMATS])
def test_every_format_there_and_back(format):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bbn.LossyFormatWarning)
        again = bbn.io.loads(bbn.io.dumps(NET, format), format)
    for mine, theirs in zip(NET.conditionals, again.conditionals, strict=True):
        np.testing.assert_allclose(theirs.table, mine.table, rtol=1e-9)


def test_pandas_counts_what_fit_counts(rows):
    shares = rows["smoke"].value_counts(normalize=True)
    fitted = bbn.fit(NET.graph, rows, bbn.MEstimate(0.0))
    np.testing.assert_allclose(fitted["smoke"].table, [shares[s] for s in fitted.states("smoke")], rtol=1e-12)
    text = bbn.fit(NET.graph, rows.astype(str), bbn.MEstimate(0.0), states={n: NET.states(n) for n in NAMES})
    assert text["smoke"] == fitted["smoke"]


def test_every_kind_of_table_gives_the_same_counts(rows):
    columns = {name: rows[name].astype(str).tolist() for name in NAMES}
    tables = {"dict": columns}
    for name in ("polars", "pyarrow"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                module = __import__(name)
            except ModuleNotFoundError:
                continue
        tables[name] = (module.DataFrame if name == "polars" else module.table)(columns)
    states = {name: NET.states(name) for name in NAMES}
    first, *others = (bbn.fit(NET.graph, table, bbn.BDeu(1), states=states) for table in tables.values())
    assert all(other == first for other in others)


def test_learning_structures_and_hidden_variables(rows):
    assert set(bbn.k2(rows, NAMES, 2).nodes) == set(NAMES)
    assert nx.is_arborescence(bbn.chow_liu(rows))
    assert nx.is_directed_acyclic_graph(bbn.hill_climb(rows))
    assert set(bbn.pc(rows, max_condition=1).nodes) == set(NAMES)
    fit = bbn.fit_em(NET, rows.drop(columns="tub"), hidden=["tub"], max_iter=5)
    assert np.all(np.diff(fit.log_likelihoods) > -1e-9)


def test_samples_have_the_shares_of_the_network():
    drawn = NET.sample(20_000, seed=3)
    for name in NAMES:
        share = (drawn[name] == "yes").mean()
        assert share == pytest.approx(NET.query(name)["yes"], abs=0.02)
    evidence, options = {"dysp": "yes"}, {"method": "likelihood-weighting", "n_samples": 20_000, "seed": 1}
    assert NET.query("smoke", evidence, **options)["yes"] == pytest.approx(
        NET.query("smoke", evidence)["yes"], abs=0.02
    )


def test_gaussians_are_conditioned_as_by_hand():
    x = bbn.Gaussian("x", means=1.0, variances=4.0)
    y = bbn.Gaussian("y", [x.variable], means=0.5, variances=1.0, weights=[2.0])
    net = bbn.BayesianNetwork([x, y])
    found = net.query("x", {"y": 4.0})
    assert found.mean == pytest.approx(1 + 8 / 17 * (4 - 2.5))
    assert found.std**2 == pytest.approx(4 - 64 / 17)
    assert net.log_likelihood({"x": [1.0], "y": [2.5]}) == pytest.approx(-math.log(2 * math.pi * 2))


def test_the_picture_is_drawn(tmp_path):
    NET.plot({"xray": "yes"}).save(tmp_path / "net.svg")
    assert "<svg" in (tmp_path / "net.svg").read_text()
    pytest.importorskip("matplotlib")
    NET.plot().save(tmp_path / "net.png")
    assert (tmp_path / "net.png").read_bytes().startswith(b"\x89PNG")


def test_parquet_there_and_back(rows, tmp_path):
    pytest.importorskip("pyarrow")
    NET.sample(400, seed=1, to=tmp_path / "rows")
    assert bbn.fit(NET.graph, bbn.open_data(tmp_path / "rows"), bbn.BDeu(1)) == bbn.fit(
        NET.graph, rows, bbn.BDeu(1)
    )
    read = pd.read_parquet(tmp_path / "rows" / "part-00000.parquet")
    assert read.astype(str).equals(rows.astype(str)[read.columns])


def test_classifiers_are_those_of_scikit_learn():
    bayes = pytest.importorskip("sklearn.naive_bayes")
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline

    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (300, 4)), rng.integers(0, 2, 300)
    ours, theirs = bbn.NaiveBayes(m=3).fit(X, y), bayes.CategoricalNB(alpha=1).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-10)
    assert len(cross_val_score(make_pipeline(bbn.NaiveBayes()), X, y, cv=3)) == 3
    words = bbn.TextNaiveBayes(min_count=1, drop_top=0).fit(["good fine", "bad poor"] * 3, [1, 0] * 3)
    assert words.predict(["fine", "poor"]).tolist() == [1, 0]


def test_dask_counts_the_same(rows):
    pytest.importorskip("dask")
    import dask
    import dask.dataframe as dd

    with dask.config.set(scheduler="synchronous"):
        source = bbn.open_data(dd.from_pandas(rows, npartitions=3))
        assert bbn.fit(NET.graph, source, bbn.BDeu(1)) == bbn.fit(NET.graph, rows, bbn.BDeu(1))


def test_progress_bars_do_not_disturb(rows, capsys):
    bbn.fit_em(NET, rows.drop(columns="tub"), hidden=["tub"], max_iter=2, progress=True)
    assert capsys.readouterr().out == ""


def test_the_command_line(capsys):
    assert main(["query", "asia", "lung", "-e", "xray=yes", "--format", "csv"]) == 0
    told = capsys.readouterr().out
    assert float(told.splitlines()[1].split(",")[1]) == pytest.approx(
        NET.query("lung", {"xray": "yes"})["yes"]
    )


def test_compiled_kernels_are_used_unless_told_otherwise():
    if os.environ.get("BBN_PURE"):
        assert not COMPILED
    elif sysconfig.get_config_var("CC") and shutil.which(sysconfig.get_config_var("CC").split()[0]):
        assert COMPILED
    else:
        pytest.skip("there is no compiler")
