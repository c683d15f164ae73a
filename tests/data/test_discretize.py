"""Cutting columns of numbers into intervals."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import bbn
from bbn.data.discretize import METHODS


def test_equal_width_quantiles_and_k_means_are_what_they_say():
    x = np.concatenate([np.linspace(0, 1, 90), np.linspace(8, 10, 10)])
    np.testing.assert_allclose(
        bbn.discretize({"X": x}, bins=4, method="equal-width").cuts["X"], [2.5, 5, 7.5]
    )
    cut = bbn.discretize({"X": x}, bins=4)
    counts = pd.Series(cut.data["X"]).value_counts()
    assert counts.tolist() == [25] * 4
    (middle,) = bbn.discretize({"X": x}, bins=2, method="k-means").cuts["X"]
    # Lloyd's fixed point on the line: the cut is midway between the means of its two sides.
    assert middle == pytest.approx((x[x < middle].mean() + x[x >= middle].mean()) / 2)
    assert 1 < middle < 8


def test_k_means_agrees_with_scikit_learn():
    from sklearn.cluster import KMeans

    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(m, 0.3, 100) for m in (0, 4, 9)])
    theirs = np.sort(KMeans(3, n_init=5, random_state=0).fit(x[:, None]).cluster_centers_.ravel())
    cuts = bbn.discretize({"X": x}, bins=3, method="k-means").cuts["X"]
    np.testing.assert_allclose(cuts, (theirs[1:] + theirs[:-1]) / 2, atol=1e-6)


def test_mdlp_finds_the_cuts_that_predict_and_none_in_noise():
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 10, 600)
    y = np.where(x < 3, "a", np.where(x < 7, "b", "a"))
    noise = rng.uniform(0, 1, 600)
    cut = bbn.discretize({"X": x, "N": noise, "Y": y}, method="mdlp", target="Y")
    np.testing.assert_allclose(cut.cuts["X"], [3, 7], atol=0.1)
    assert len(cut.cuts["N"]) == 0
    assert set(cut.data["N"]) == {"any"}


def slow_mdlp(x, y):
    """Fayyad and Irani's recursion, straight from the paper, on lists."""
    from math import log2

    def entropy(labels):
        return -sum(
            (labels.count(c) / len(labels)) * log2(labels.count(c) / len(labels)) for c in set(labels)
        )

    pairs = sorted(zip(x, y, strict=True), key=lambda p: p[0])
    labels = [c for _, c in pairs]
    best = None
    for i in range(1, len(pairs)):
        if pairs[i][0] > pairs[i - 1][0]:
            e = (i * entropy(labels[:i]) + (len(labels) - i) * entropy(labels[i:])) / len(labels)
            if best is None or e < best[0] - 1e-12:
                best = (e, i)
    if best is None:
        return []
    e, i = best
    left, right, n = labels[:i], labels[i:], len(labels)
    k, k1, k2 = len(set(labels)), len(set(left)), len(set(right))
    delta = log2(3**k - 2) - (k * entropy(labels) - k1 * entropy(left) - k2 * entropy(right))
    if entropy(labels) - e <= (log2(n - 1) + delta) / n:
        return []
    values = [v for v, _ in pairs]
    return [*slow_mdlp(values[:i], left), (values[i - 1] + values[i]) / 2, *slow_mdlp(values[i:], right)]


def test_mdlp_equals_the_paper_s_recursion():
    rng = np.random.default_rng(2)
    for _ in range(30):
        n = int(rng.integers(2, 80))
        x = rng.integers(0, 12, n) / 4
        y = (x * 2 + rng.integers(0, 3, n)).astype(int) % 3
        cut = bbn.discretize({"X": x, "Y": y}, ["X"], method="mdlp", target="Y")
        np.testing.assert_allclose(cut.cuts["X"], slow_mdlp(x.tolist(), y.tolist()))


def test_cuts_are_kept_and_applied_to_new_data():
    train = pd.DataFrame({"X": np.linspace(0, 1, 200), "K": ["a", "b"] * 100})
    cut = bbn.discretize(train, bins=2)
    assert list(cut.cuts) == ["X"]
    new = cut.apply(pd.DataFrame({"X": [-5.0, np.nan, 0.5, 7.0]}))
    low, high = cut.states("X")
    assert new["X"].tolist() == [low, np.nan, high, high] or pd.isna(new["X"].iloc[1])
    assert new["X"].cat.categories.tolist() == [low, high]
    assert new["X"].cat.ordered
    assert train["X"].dtype == float
    again = pickle.loads(pickle.dumps(cut))
    assert again == cut
    assert hash(again) == hash(cut)


def test_a_value_at_a_cut_lies_to_its_right():
    cut = bbn.Discretizer({"X": [1.0, 2.0]})
    assert cut.states("X") == ("<1", "1..2", ">=2")
    assert cut.apply({"X": [0.5, 1.0, 1.5, 2.0]})["X"].tolist() == ["<1", "1..2", "1..2", ">=2"]


@pytest.mark.parametrize("method", METHODS)
def test_every_kind_comes_back_in_kind(method, tmp_path):
    x = np.linspace(0, 1, 120)
    y = ["a" if v < 0.4 else "b" for v in x]
    options = {"mdlp": {"target": "Y"}, "structure": {"structure": [("Y", "X")]}}.get(method, {})
    frame = pd.DataFrame({"X": x, "Y": y})
    frame.to_csv(tmp_path / "d.csv", index=False)
    expected = bbn.discretize(frame, method=method, bins=3, **options).data["X"].astype(object).tolist()
    for data in (
        pl.from_pandas(frame),
        pa.Table.from_pandas(frame),
        {"X": x, "Y": y},
        frame.to_dict("records"),
        (frame.to_numpy(object), ["X", "Y"]),
        str(tmp_path / "d.csv"),
    ):
        made = bbn.discretize(data, method=method, bins=3, **options)
        assert bbn.data.code(made.data, extra="ignore", names=["X"]).n_rows == 120
        if isinstance(data, tuple | list | dict):
            assert type(made.data) is type(data)
        elif not isinstance(data, str):
            assert type(made.data).__module__.split(".")[0] == type(data).__module__.split(".")[0]
        column = (
            made.data[0][:, 0]
            if isinstance(data, tuple)
            else [row["X"] for row in made.data]
            if isinstance(data, list)
            else made.data["X"]
        )
        assert [str(v) for v in column] == expected


def test_the_result_can_be_learned_from():
    rng = np.random.default_rng(0)
    x = rng.normal(size=500)
    y = np.where(x + rng.normal(size=500) > 0, "up", "down")
    with pytest.raises(bbn.DataError, match=r"bbn\.discretize"):
        bbn.fit([("Y", "X")], {"X": x, "Y": y})
    cut = bbn.discretize({"X": x, "Y": y}, bins=3)
    net = bbn.fit([("Y", "X")], cut.data)
    assert set(net.states("X")) == set(cut.states("X"))


def test_faults():
    with pytest.raises(ValueError, match="unknown method"):
        bbn.discretize({"X": [1.0]}, method="magic")
    with pytest.raises(ValueError, match="target="):
        bbn.discretize({"X": [1.0]}, method="mdlp")
    with pytest.raises(ValueError, match="bins"):
        bbn.discretize({"X": [1.0]}, bins=0)
    with pytest.raises(bbn.DataError, match="'abc'"):
        bbn.discretize({"X": [1.0, "abc"]}, ["X"])
    with pytest.raises(bbn.DataError, match="no column 'Z'"):
        bbn.discretize({"X": [1.0]}, ["Z"])
    with pytest.raises(bbn.DataError, match="no value"):
        bbn.discretize({"X": [None, None]}, ["X"])
    with pytest.raises(bbn.DataError, match="ascending"):
        bbn.Discretizer({"X": [2.0, 1.0]})
    assert len(bbn.discretize({"X": [3.0, 3.0]}, ["X"]).cuts["X"]) == 0
