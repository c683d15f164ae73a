"""Messages of common mistakes name the fault and the nearest right thing."""

from __future__ import annotations

import inspect
import pickle
import warnings

import pandas as pd
import pytest

import bbn
from bbn.core import missing_names

NET = bbn.example("asia")
A, B = bbn.Variable("A", ["yes", "no"]), bbn.Variable("B", ["yes", "no"])
MADE = [
    bbn.Variable, bbn.Binned, bbn.CPT, bbn.NoisyMax, bbn.NoisyOr, bbn.Deterministic, bbn.Gaussian, bbn.Decision,
    bbn.Utility, bbn.BayesianNetwork, bbn.DecisionNetwork, bbn.DynamicNetwork, bbn.FactorGraph, bbn.CausalGraph,
    bbn.HypothesisSpace, bbn.HMM, bbn.NaiveBayes, bbn.TAN, bbn.TextNaiveBayes, bbn.GaussianMixture,
]  # fmt: skip
ASKED = [
    bbn.BayesianNetwork.save, bbn.BayesianNetwork.joint, bbn.BayesianNetwork.do, bbn.BayesianNetwork.is_d_separated,
    bbn.BayesianNetwork.sample, bbn.BayesianNetwork.probability, bbn.CPT.noisy_or, bbn.DynamicNetwork.filter,
    bbn.DynamicNetwork.smooth, bbn.DynamicNetwork.forecast, bbn.DynamicNetwork.viterbi, bbn.DynamicNetwork.sample,
    bbn.DynamicNetwork.unroll, bbn.DecisionNetwork.save, bbn.load, bbn.fit, bbn.k2, bbn.hill_climb,
]  # fmt: skip


def misspelt(word):
    return word[:2] + word[3] + word[2] + word[4:] if len(set(word[2:4])) == 2 else word + "x"


@pytest.mark.parametrize("made", [*MADE, *ASKED], ids=lambda made: made.__qualname__)
def test_a_misspelt_keyword_is_named_with_the_right_one(made):
    taken = inspect.signature(made).parameters.values()
    keywords = [
        p.name for p in taken if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and len(p.name) > 4
    ]
    for keyword in keywords:
        with pytest.raises(TypeError, match=f"no option '{misspelt(keyword)}'; did you mean '{keyword}'"):
            made(**{misspelt(keyword): 1})


QUESTIONS = [
    lambda **options: NET.query("lung", **options),
    lambda **options: NET.query("lung", method="gibbs", **options),
    lambda **options: NET.query("lung", method="loopy", **options),
    lambda **options: NET.map(["lung"], **options),
    lambda **options: bbn.JunctionTree(NET).query("lung", **options),
    NET.posteriors,
    NET.mpe,
]


@pytest.mark.parametrize("ask", QUESTIONS)
@pytest.mark.parametrize("wrong", ["evidance", "evidnce", "Evidence", "evidences"])
def test_evidence_misspelt(ask, wrong):
    with pytest.raises(TypeError, match=f"'{wrong}'; did you mean 'evidence'"):
        ask(**{wrong: {"smoke": "yes"}})


def test_a_pair_where_a_mapping_is_expected_is_shown_as_one():
    for call in (lambda: NET.do("smoke", "yes"), lambda: NET.do(smoke="yes")):
        with pytest.raises(TypeError, match=r"write do\(\{'smoke': 'yes'\}\)"):
            call()
    with pytest.raises(TypeError, match=r"write probability\(\{'smoke': 'yes'\}\)"):
        NET.probability("smoke", "yes")


def test_a_parent_without_a_table_is_named():
    cpt = bbn.CPT(B, [A], [[0.1, 0.9], [0.2, 0.8]])
    with pytest.raises(
        bbn.ModelError, match="node 'B' has the unknown parent 'A': there is no CPT of 'A' itself"
    ):
        bbn.BayesianNetwork([cpt])
    other = bbn.CPT(bbn.Variable("Aa", ["yes", "no"]), table=[0.5, 0.5])
    with pytest.raises(bbn.ModelError, match="no CPT of 'A' itself; did you mean 'Aa'"):
        bbn.BayesianNetwork([cpt, other])
    with pytest.raises(
        bbn.ModelError, match="utility 'U' has the unknown parent 'A': there is no node of 'A'"
    ):
        bbn.DecisionNetwork([bbn.Decision("D", ["a", "b"]), bbn.Utility("U", [A], [1, 2])])


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("add_edge", "add_arc"),
        ("add_edges_from", "add_arc"),
        ("remove_edge", "remove_arc"),
        ("add_cpds", "with_cpts"),
        ("add_node", "with_cpts"),
        ("nodes", "names"),
        ("edges", "arcs"),
        ("qurey", "query"),
        ("posterior", "posteriors"),
        ("cpts", "with_cpts"),
    ],
)
def test_an_attribute_that_is_not_there_names_the_nearest(wrong, right):
    with pytest.raises(AttributeError, match=f"no attribute '{wrong}'.*did you mean '{right}'") as caught:
        getattr(NET, wrong)
    if wrong.startswith(("add", "remove")):
        assert "never changed" in str(caught.value)


def test_what_asks_whether_an_attribute_is_there_still_works():
    for net in (NET, bbn.FactorGraph(NET.factors()), bbn.CausalGraph([("a", "b")])):
        assert not hasattr(net, "add_edge")
        assert getattr(net, "_private", 3) == 3
        assert pickle.loads(pickle.dumps(net)) == net
        with pytest.raises(
            AttributeError, match=f"'{type(net).__name__}' object has no attribute 'add_edge'"
        ):
            net.add_edge("a", "b")


@pytest.mark.parametrize("wrong", ["Yes", "YES", " yes", "yess"])
def test_a_state_of_the_wrong_case_names_the_right_one(wrong):
    for ask in (
        lambda: NET.query("lung", {"smoke": wrong}),
        lambda: NET.query("smoke")[wrong],
        lambda: NET.do({"smoke": wrong}),
        lambda: NET.probability({"smoke": wrong}),
        lambda: NET.query("lung", {"smoke": bbn.OneOf(wrong)}),
        lambda: NET.query("lung", {"smoke": bbn.Virtual({wrong: 0.5, "no": 0.5})}),
    ):
        with pytest.raises(bbn.EvidenceError, match=f"'smoke' has no state '{wrong}'; did you mean 'yes'"):
            ask()


@pytest.mark.parametrize(
    "table", [[[0.5, 0.5], [-0.25, 1.25]], {"yes": [0.5, 0.5], "no": {"yes": -0.25, "no": 1.25}}]
)
def test_a_negative_probability_is_named_with_its_row(table):
    with pytest.raises(bbn.ModelError, match=r"'B', row A=no: the entry for 'yes' is -0\.25"):
        bbn.CPT(B, [A], table)
    with pytest.raises(bbn.ModelError, match=r"'B'.*link of 'A': row A=no: the entry for 'yes' is -0\.25"):
        bbn.NoisyMax(B, [A], [table])


def test_sums_past_the_largest_number_are_named_without_numpys_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for table in ([1e308, 1e308], {"yes": 1e308, "no": 1e308}):
            with pytest.raises(bbn.ModelError, match="sums to inf, expected 1"):
                bbn.CPT(A, table=table)
        with pytest.raises(bbn.EvidenceError, match="inf"):
            NET.query("lung", {"smoke": bbn.Soft({"yes": 1e308, "no": 1e308})})
        joint = pd.DataFrame({"A": ["yes", "no"], "p": [1e308, 1e308]})
        with pytest.raises(bbn.ModelError, match="sums to inf, expected 1"):
            bbn.from_pandas_joint(joint, [])


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("BayesNetwork", "BayesianNetwork"),
        ("hillclimb", "hill_climb"),
        ("naivebayes", "NaiveBayes"),
        ("TabularCPD", "CPT"),
        ("loadBN", "load"),
        ("exampel", "example"),
    ],
)
def test_a_public_name_that_is_not_there_names_the_nearest(wrong, right):
    with pytest.raises(AttributeError, match=f"'bbn' has no attribute '{wrong}'; did you mean '{right}'"):
        getattr(bbn, wrong)
    assert not hasattr(bbn, wrong)


def test_names_of_other_libraries_lead_to_public_names():
    assert set(missing_names.PUBLIC.values()) <= set(bbn.__all__)
    assert not set(missing_names.PUBLIC) & set(bbn.__all__)
    for call in missing_names.FUNCTIONS.values():
        assert hasattr(bbn, call.removeprefix("bbn.").split("(")[0])


@pytest.mark.parametrize("call", ["fit", "learn"])
def test_what_is_a_function_of_bbn_is_named_where_a_method_is_looked_for(call):
    with pytest.raises(AttributeError, match=rf"no attribute '{call}'; did you mean bbn\.{call}\("):
        getattr(NET, call)


def test_a_table_whose_columns_sum_to_1_is_to_be_transposed():
    with pytest.raises(bbn.ModelError, match=r"row A=yes: sums to 0\.3, .*; the columns do: .* transpose"):
        bbn.CPT(B, [A], [[0.1, 0.2], [0.9, 0.8]])
    with pytest.raises(bbn.ModelError, match=r"sums to 0\.3, expected 1 .*more rows.$"):
        bbn.CPT(B, [A], [[0.1, 0.2], [0.1, 0.8]])


def test_percentages_are_named():
    with pytest.raises(bbn.ModelError, match=r"sums to 100, expected 1; these are percentages"):
        bbn.CPT(A, table=[30, 70])
    with pytest.raises(bbn.ModelError, match=r"row A=yes: sums to 100, .*; these are percentages"):
        bbn.CPT(B, [A], [[30, 70], [20, 80]])


def test_saving_with_the_arguments_the_other_way_round_names_their_order(tmp_path):
    with pytest.raises(TypeError, match=r"the network comes first: save\(network, path\)"):
        bbn.save(str(tmp_path / "a.bif"), NET)
