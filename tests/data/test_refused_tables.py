"""Tables that no learner can take are refused by all of them, in the same words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import bbn

ARCS = [("a", "b")]
LEARNERS = {
    "learn": bbn.learn,
    "learn, known structure": lambda d: bbn.learn(d, ARCS),
    "learn, sequence": lambda d: bbn.learn(d, sequence="a"),
    "hill_climb": bbn.hill_climb,
    "k2": lambda d: bbn.k2(d, ["a", "b"]),
    "chow_liu": bbn.chow_liu,
    "tan": lambda d: bbn.tan(d, "a"),
    "pc": bbn.pc,
    "ges": bbn.ges,
    "exact_search": bbn.exact_search,
    "structural_em": bbn.structural_em,
    "arc_posterior": bbn.arc_posterior,
    "arc_strength": lambda d: bbn.arc_strength(d, ARCS),
    "fit": lambda d: bbn.fit(ARCS, d),
    "fit_em": lambda d: bbn.fit_em(ARCS, d),
    "fit_gradient": lambda d: bbn.fit_gradient(ARCS, d),
    "score": lambda d: bbn.score(ARCS, d),
    "cross_validate": lambda d: bbn.cross_validate(d, ARCS),
    "discretize": bbn.discretize,
    "effect": lambda d: bbn.effect(d, ARCS, "a", "b"),
    "check_independences": lambda d: bbn.check_independences(ARCS, d),
    "NaiveBayes": lambda d: bbn.NaiveBayes().fit(d, ["x"] * len(d)),
    "TAN": lambda d: bbn.TAN().fit(d, ["x"] * len(d)),
    "BayesNetClassifier": lambda d: bbn.BayesNetClassifier().fit(d, ["x"] * len(d)),
    "GaussianMixture": lambda d: bbn.GaussianMixture().fit(d),
    "HMM": lambda d: bbn.HMM().fit(d),
}


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("data", [pd.DataFrame(), pd.DataFrame({"a": [], "b": []})], ids=["empty", "no rows"])
def test_an_empty_table_has_no_rows(learner, data):
    with pytest.raises(bbn.DataError, match=r"^the data have no rows; expected one row per case"):
        LEARNERS[learner](data)


@pytest.mark.parametrize("learner", [*LEARNERS, "describe"])
def test_columns_with_several_levels_of_names(learner):
    columns = pd.MultiIndex.from_product([["a", "b"], ["x", "y"]])
    data = pd.DataFrame(np.arange(40).reshape(10, 4) % 3, columns=columns)
    with pytest.raises(bbn.DataError, match=r"MultiIndex of 2 levels, such as \('a', 'x'\)") as refused:
        ({"describe": bbn.describe} | LEARNERS)[learner](data)
    way_out = str(refused.value).partition("data.columns = ")[2]
    data.columns = eval(way_out, {"data": data})
    assert list(data.columns) == ["a_x", "a_y", "b_x", "b_y"]
    assert set(bbn.learn(data).network.names) <= set(data.columns)
