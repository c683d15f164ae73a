"""The tables "coming from pgmpy" and "coming from pyAgrum": both columns run, and give the same answers."""

from __future__ import annotations

import logging
import warnings

import numpy as np
import pytest

import bbn

EVIDENCE = {"Thunder": "yes"}


@pytest.fixture(scope="module")
def net() -> bbn.BayesianNetwork:
    return bbn.example("campfire")


def test_pgmpy_column(net, tmp_path):
    pytest.importorskip("pgmpy", reason="pgmpy is the other column")
    logging.getLogger("pgmpy").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    from pgmpy.estimators import HillClimbSearch
    from pgmpy.factors.discrete import TabularCPD
    from pgmpy.inference import VariableElimination
    from pgmpy.models import DiscreteBayesianNetwork
    from pgmpy.readwrite import BIFReader

    # Axes: the child's states are pgmpy's rows, and the last axis here.
    cpd = TabularCPD("C", 2, [[0.4, 0.1, 0.8, 0.2], [0.6, 0.9, 0.2, 0.8]], ["S", "B"], [2, 2])
    storm, bus, fire = (bbn.Variable(name, ["yes", "no"]) for name in "SBC")
    table = cpd.get_values().T.reshape(2, 2, 2)
    assert bbn.CPT(fire, [storm, bus], table).table.tolist() == net["Campfire"].table.tolist()

    m = bbn.to_pgmpy(net)
    assert isinstance(m, DiscreteBayesianNetwork)
    assert m.check_model()
    assert bbn.from_pgmpy(m) == net
    engine = VariableElimination(m)
    phi = engine.query(["ForestFire"], evidence=EVIDENCE, show_progress=False)
    assert phi.get_value(ForestFire="yes") == pytest.approx(net.query("ForestFire", EVIDENCE)["yes"])
    doubt = TabularCPD("Thunder", 2, [[0.8], [0.2]], state_names={"Thunder": ["yes", "no"]})
    phi = engine.query(["ForestFire"], virtual_evidence=[doubt], show_progress=False)
    virtual = {"Thunder": bbn.Virtual({"yes": 0.8, "no": 0.2})}
    assert phi.get_value(ForestFire="yes") == pytest.approx(net.query("ForestFire", virtual)["yes"])
    best = engine.map_query(["Storm", "Campfire"], evidence=EVIDENCE, show_progress=False)
    assert best == net.map(["Storm", "Campfire"], EVIDENCE).states
    assert set(m.do(["Campfire"]).edges) == set(net.do({"Campfire": "yes"}).graph.edges)

    data = net.sample(500, seed=1)
    rows = data[["Thunder", "BusTourGroup"]].head(3).astype(str)
    predicted = m.predict(rows)["Storm"].tolist()
    assert predicted == list(net.predict(rows, "Storm"))
    assert len(m.simulate(10, evidence=EVIDENCE, seed=1, show_progress=False)) == 10
    text = data.astype(str)
    other = bbn.BayesianNetwork([bbn.CPT.uniform(v) for v in net.variables]).graph.copy()
    other.add_edges_from(HillClimbSearch(text).estimate(scoring_method="bic-d", show_progress=False).edges)
    assert bbn.score(bbn.hill_climb(data, score="bic"), data, "bic") >= bbn.score(other, data, "bic") - 1e-6
    net.save(tmp_path / "x.bif")
    assert bbn.from_pgmpy(BIFReader(str(tmp_path / "x.bif")).get_model()).names


def test_pyagrum_column(net, tmp_path):
    gum = pytest.importorskip("pyagrum", reason="pyAgrum is the other column")
    bn = bbn.to_pyagrum(net)
    assert bbn.from_pyagrum(bn) == net
    ie = gum.LazyPropagation(bn)
    ie.setEvidence(EVIDENCE)
    ie.makeInference()
    assert ie.posterior("ForestFire").toarray() == pytest.approx(net.query("ForestFire", EVIDENCE).values)
    ie.addJointTarget({"Storm", "Campfire"})
    joint = ie.jointPosterior({"Storm", "Campfire"})
    ours = net.query(["Storm", "Campfire"], EVIDENCE)
    assert joint[{"Storm": 0, "Campfire": 1}] == pytest.approx(ours["yes", "no"])
    assert np.log(ie.evidenceProbability()) == pytest.approx(ours.log_evidence)
    ie = gum.LazyPropagation(bn)
    ie.addEvidence("Thunder", [0.8, 0.2])
    virtual = {"Thunder": bbn.Virtual({"yes": 0.8, "no": 0.2})}
    assert ie.posterior("ForestFire").toarray() == pytest.approx(net.query("ForestFire", virtual).values)
    ie = gum.LazyPropagation(bn)
    ie.setEvidence(EVIDENCE)
    best, bits = ie.mpeLog2Posterior()
    ours = net.mpe(EVIDENCE)
    assert {name: state for name, state in best.todict(True).items() if name not in EVIDENCE} == ours.states
    posterior = ours.log_probability - net.query("Storm", EVIDENCE).log_evidence
    assert bits * np.log(2) == pytest.approx(posterior)

    path = tmp_path / "rows.csv"
    net.sample(5000, seed=1).to_csv(path, index=False)
    learner = gum.BNLearner(str(path), bn)
    fitted = bbn.from_pyagrum(learner.learnParameters(bn.dag()))
    assert fitted["Campfire"].table == pytest.approx(bbn.fit(net, path)["Campfire"].table, abs=1e-9)
    # Its BIF reader keeps single precision; ours keeps every digit.
    net.save(tmp_path / "x.bif")
    theirs = bbn.from_pyagrum(gum.loadBN(str(tmp_path / "x.bif")))
    assert bbn.load(tmp_path / "x.bif") == net != theirs
