"""The public names and calls, one after the other, as the README and the docs promise them."""

from __future__ import annotations

import math
import pickle
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import bbn


def test_define(tmp_path: Path) -> None:
    storm, bus = bbn.Variable("Storm", ["yes", "no"]), bbn.Variable("BusTourGroup", ["yes", "no"])
    fire = bbn.Variable("Campfire", ["yes", "no"])
    rows = {("yes", "yes"): [0.4, 0.6], ("yes", "no"): {"yes": 0.1, "no": 0.9}}
    rows |= {("no", "yes"): [0.8, 0.2], ("no", "no"): [0.2, 0.8]}
    cpt = bbn.CPT(fire, parents=[storm, bus], table=rows)
    assert cpt == bbn.CPT(fire, parents=[storm, bus], table=cpt.table)
    assert cpt == bbn.CPT(fire, parents=[storm, bus], table=cpt.to_frame())
    net = bbn.BayesianNetwork(
        [cpt, bbn.CPT(storm, table=[0.2, 0.8]), bbn.CPT(bus, table=[0.5, 0.5])], name="campfire"
    )
    assert isinstance(net.graph, nx.DiGraph)
    assert nx.is_frozen(net.graph)
    assert net.graph.nodes["Campfire"] == {"states": ("yes", "no"), "cpt": cpt}
    assert net["Campfire"] is cpt
    assert (cpt.variable, cpt.parents) == (fire, (storm, bus))
    assert not cpt.table.flags.writeable
    assert set(net.variables) == {storm, bus, fire}
    assert net.states("Campfire") == ("yes", "no")
    assert net.parents("Campfire") == ("Storm", "BusTourGroup")
    assert net.children("Storm") == ("Campfire",)
    assert set(net.markov_blanket("Storm")) == {"Campfire", "BusTourGroup"}
    assert net.is_d_separated("Storm", "BusTourGroup", [])
    assert net.with_cpts([bbn.CPT(storm, table=[0.5, 0.5])]) != net
    assert net.do({"Campfire": "yes"}).parents("Campfire") == ()
    assert net.joint().values.sum() == pytest.approx(1)
    full = {"Storm": "yes", "BusTourGroup": "no", "Campfire": "yes"}
    assert net.probability(full) == pytest.approx(0.2 * 0.5 * 0.1)
    assert net.probability({"Campfire": "yes"}) == pytest.approx(net.query("Campfire")["yes"])
    for suffix in ("yaml", "json", "bif", "xmlbif", "net", "xdsl", "bif.gz", "yaml.gz"):
        net.save(tmp_path / f"campfire.{suffix}")
        assert bbn.load(tmp_path / f"campfire.{suffix}") == net
    assert pickle.loads(pickle.dumps(net)) == net
    assert hash(net) == hash(pickle.loads(pickle.dumps(net)))
    assert isinstance(bbn.examples(), tuple)
    assert "alarm" in bbn.examples()


def test_ask() -> None:
    net = bbn.example("campfire")
    p = net.query("ForestFire", evidence={"Thunder": "yes"})
    assert p["yes"] == pytest.approx(p.to_dict()["yes"])
    assert p.mode() in net.states("ForestFire")
    assert p.entropy() > 0
    assert p.log_evidence == pytest.approx(math.log(net.probability({"Thunder": "yes"})))
    joint = net.query(["ForestFire", "Campfire"], evidence={"Thunder": "yes"})
    assert [v.name for v in joint.variables] == ["ForestFire", "Campfire"]
    assert joint.values.shape == (2, 2)
    assert isinstance(joint.mode(), tuple)
    assert joint["yes", "no"] == pytest.approx(
        joint.to_frame().set_index(["ForestFire", "Campfire"]).iloc[1, 0]
    )
    posteriors = net.posteriors({"Thunder": "yes"})
    assert set(posteriors) == set(net.names) - {"Thunder"}
    best = net.mpe({"Thunder": "yes"})
    assert best.log_probability == pytest.approx(math.log(net.probability({**best.states, "Thunder": "yes"})))
    assert net.map(["Storm", "Campfire"], {"Thunder": "yes"}).states.keys() == {"Storm", "Campfire"}
    for method in ("auto", "junction-tree", "elimination", "enumeration"):
        assert net.query("Storm", {"Thunder": "yes"}, method=method)["yes"] == pytest.approx(
            posteriors["Storm"]["yes"]
        )
    for method in ("likelihood-weighting", "gibbs", "rejection"):
        sampled = net.query("Storm", {"Thunder": "yes"}, method=method, n_samples=20_000, seed=1)
        assert abs(sampled["yes"] - posteriors["Storm"]["yes"]) < 6 * sampled.std_error.max() + 1e-9
    assert net.query("Storm", {"Thunder": "yes"}, method="loopy")["yes"] > 0
    with pytest.raises(TypeError):
        net.query("Storm", n_sample=3)
    with pytest.raises(bbn.EvidenceError):
        net.query("Storm", {"Thunder": {"yes": 0.8, "no": 0.2}})
    for name in (
        "JunctionTree",
        "VariableElimination",
        "LikelihoodWeighting",
        "GibbsSampling",
        "RejectionSampling",
    ):
        engine = getattr(bbn, name)(net)
        assert 0 < engine.query("Storm", {"Thunder": "yes"})["yes"] < 1
    soft = net.query("Thunder", {"Thunder": bbn.Soft({"yes": 0.8, "no": 0.2})})
    assert soft["yes"] == pytest.approx(0.8, abs=1e-10)
    graph = bbn.FactorGraph(net.factors())
    assert graph.log_partition() == pytest.approx(0, abs=1e-12)
    rows = net.sample(50, seed=3, missing=0.2)
    assert isinstance(rows, pd.DataFrame)
    assert rows.equals(net.sample(50, seed=3, missing=0.2))
    assert list(rows["Storm"].cat.categories) == ["yes", "no"]
    assert len(net.predict(rows, "Storm")) == 50
    assert net.predict_proba(rows, "Storm").shape == (50, 2)
    assert len(net.log_likelihood(rows)) == 50


def test_learn_tables() -> None:
    net = bbn.example("flu")
    rows = net.sample(2000, seed=1)
    for prior in (None, bbn.MEstimate(2), bbn.Dirichlet(1), bbn.BDeu(5)):
        fitted = bbn.fit(net.graph, rows, prior=prior)
        assert set(fitted.names) == set(net.names)
    assert bbn.fit(list(net.graph.edges), rows)["Sinus"].table.shape == net["Sinus"].table.shape
    holes = rows.drop(columns="Sinus")
    with pytest.raises(bbn.DataError, match="fit_em"):
        bbn.fit(net, net.sample(100, seed=2, missing=0.3))
    em = bbn.fit_em(net.graph, holes, hidden={"Sinus": ["yes", "no"]}, restarts=2, max_iter=20, seed=1)
    assert min(np.diff(em.log_likelihoods)) >= -1e-9
    assert em.network.states("Sinus") == ("yes", "no")
    assert isinstance(em.converged, bool)
    assert em.n_iter == len(em.log_likelihoods) - 1
    climbed = bbn.fit_gradient(net, holes, hidden={"Sinus": ["yes", "no"]}, max_iter=5, seed=1)
    assert min(np.diff(climbed.log_likelihoods)) >= -1e-9
    assert bbn.gradient(net, rows)["Sinus"].shape == net["Sinus"].table.shape


def test_learn_structure() -> None:
    net = bbn.example("asia")
    rows = net.sample(3000, seed=1)
    for graph in (
        bbn.k2(rows, list(net.names), max_parents=2, score="k2"),
        bbn.chow_liu(rows, root="smoke"),
        bbn.tan(rows, "lung"),
        bbn.hill_climb(rows, score="bdeu", max_parents=3, required=[("smoke", "lung")], seed=1),
    ):
        assert isinstance(graph, nx.DiGraph)
        assert isinstance(bbn.fit(graph, rows, prior=bbn.BDeu(1)), bbn.BayesianNetwork)
    for score in ("k2", "bdeu", "bic", "aic", "mdl", "log-likelihood", bbn.BDeu(10)):
        assert bbn.score(net, rows, score=score) < 0
    pattern = bbn.pc(rows, alpha=0.05)
    assert "sepsets" in pattern.graph
    compared = bbn.compare(net.graph, net.graph)
    assert not (compared.missing)
    assert not (compared.extra)
    assert not (compared.reversed)
    learned = bbn.learn(rows)
    assert isinstance(learned.network, bbn.BayesianNetwork)
    assert learned.report


def test_hypotheses() -> None:
    space = bbn.HypothesisSpace(
        {"cancer": 0.008, "none": 0.992},
        lambda h, datum: (
            {"cancer": 0.98, "none": 0.03}[h] if datum == "+" else {"cancer": 0.02, "none": 0.97}[h]
        ),
        predict=lambda h, x: {"treat": 1.0} if h == "cancer" else {"wait": 1.0},
    )
    after = space.update(["+"])
    assert after.probabilities["cancer"] == pytest.approx(0.00784 / 0.0376)
    assert after.map() == "none"
    assert space.ml(["+"]) == "cancer"
    assert space.mdl(["+"])
    assert after.bayes_optimal(None)["wait"] == pytest.approx(1 - 0.00784 / 0.0376)
    assert after.gibbs(None, seed=1) in ("treat", "wait")
    assert after.voting_gibbs(None, 101, seed=1) == "wait"


def test_errors_are_of_the_promised_kinds() -> None:
    for kind in (bbn.ModelError, bbn.EvidenceError, bbn.DataError, bbn.ParseError):
        assert issubclass(kind, bbn.BBNError)
        assert issubclass(kind, ValueError)
    assert issubclass(bbn.ImpossibleEvidenceError, bbn.EvidenceError)
    assert issubclass(bbn.BudgetError, bbn.BBNError)
    with pytest.raises(OSError, match="nowhere"):
        bbn.load("nowhere.yaml")


def test_every_public_parameter_is_documented() -> None:
    from tests.project.test_front_door import DOORS, undocumented

    absent = {name: names for name, door in DOORS.items() if (names := undocumented(*door))}
    assert not absent, f"these need Parameters entries in their docstrings: {absent}"
