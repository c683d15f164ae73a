"""Acting: `do=` in every question against surgery on the joint, and the network that is kept."""

import subprocess
import sys

import numpy as np
import pytest

import bbn
from tests.support.causal_truth import random_arcs, random_network, surgery


def random_case(seed):
    rng = np.random.default_rng(seed)
    names = [f"V{i}" for i in range(5)]
    net = random_network(rng, random_arcs(rng, names, 0.6), names, {"V2": 3})
    x, y, e = (str(v) for v in rng.permutation(names)[:3])
    return net, {x: net.states(x)[-1]}, y, {e: net.states(e)[0]}


@pytest.mark.parametrize("seed", range(20))
def test_every_question_takes_do(seed):
    net, do, y, evidence = random_case(seed)
    truth = surgery(net, [y], do, evidence)
    np.testing.assert_allclose(net.query(y, evidence, do=do).values, truth, atol=1e-12)
    np.testing.assert_allclose(net.query(y, evidence, "elimination", do=do).values, truth, atol=1e-12)
    np.testing.assert_allclose(net.posteriors(evidence, do=do)[y].values, truth, atol=1e-12)
    assert net.map([y], evidence, do=do)[y] == net.states(y)[int(truth.argmax())]
    cut = net.do(do)
    assert net.mpe(evidence, do=do) == cut.mpe(evidence)
    assert net.mpe(evidence, k=2, do=do) == cut.mpe(evidence, k=2)
    assert net.sample(50, evidence, seed=1, do=do).equals(cut.sample(50, evidence, seed=1))
    rows = net.sample(30, seed=2)
    seen = rows[[*evidence]]
    np.testing.assert_allclose(
        net.predict_proba(seen, y, do=do).to_numpy(), cut.predict_proba(seen, y).to_numpy(), atol=1e-12
    )
    assert net.predict(seen, y, do=do).equals(cut.predict(seen, y))
    np.testing.assert_allclose(net.log_likelihood(seen, do=do), cut.log_likelihood(seen))


def test_columns_of_what_is_set_are_not_read(tmp_path):
    net = bbn.example("asia")
    rows = net.sample(200, seed=3)[["smoke", "xray"]]
    expected = net.do({"smoke": "yes"}).predict_proba(rows[["xray"]], "lung")
    found = net.predict_proba(rows, "lung", do={"smoke": "yes"})
    np.testing.assert_allclose(found.to_numpy(), expected.to_numpy())
    coded = bbn.data.code(rows, [net.variable("smoke"), net.variable("xray")])
    again = net.predict_proba(coded, "lung", do={"smoke": "yes"})
    np.testing.assert_allclose(np.column_stack([again[s] for s in net.states("lung")]), expected.to_numpy())
    rows.to_csv(tmp_path / "rows.csv", index=False)
    to = net.predict_proba(str(tmp_path / "rows.csv"), "lung", do={"smoke": "yes"}, to=tmp_path / "out.csv")
    np.testing.assert_allclose(np.loadtxt(to, delimiter=",", skiprows=1), expected.to_numpy())


def test_a_distribution_averages_the_states():
    net = bbn.example("asia")
    mixed = net.query("lung", {"xray": "yes"}, do={"smoke": {"yes": 0.3, "no": 0.7}})
    joint = np.zeros(2)
    for state, p in (("yes", 0.3), ("no", 0.7)):
        one = surgery(net, ["lung", "xray"], {"smoke": state})
        joint += p * one[:, net.states("xray").index("yes")]
    np.testing.assert_allclose(mixed.values, joint / joint.sum(), atol=1e-12)


def test_a_policy_looks_at_what_its_arguments_are_named_after():
    net = bbn.example("asia")
    truth = np.zeros(2)
    p_asia = dict(zip(net.states("asia"), net.query("asia").values, strict=True))
    for state, p in p_asia.items():
        smokes = "no" if state == "yes" else "yes"
        truth += p * surgery(net, ["dysp"], {"smoke": smokes}, {"asia": state})
    for policy in (
        lambda asia: "no" if asia == "yes" else "yes",
        lambda asia: {"no": 1.0} if asia == "yes" else {"yes": 1},
    ):
        np.testing.assert_allclose(net.query("dysp", do={"smoke": policy}).values, truth, atol=1e-12)
    cpt = bbn.CPT(
        net.variable("smoke"), [net.variable("asia")], {"yes": {"yes": 0, "no": 1}, "no": {"yes": 1, "no": 0}}
    )
    np.testing.assert_allclose(net.query("dysp", do={"smoke": cpt}).values, truth, atol=1e-12)
    positional = net.do({"either": lambda a, b: "yes" if "yes" in (a, b) else "no"})
    assert positional == net  # what asia's own table says


def test_numbers_are_set_too():
    x = bbn.Gaussian("X", means=1.0, variances=2.0)
    y = bbn.Gaussian("Y", [x.variable], means=0.5, variances=1.0, weights=[3.0])
    net = bbn.BayesianNetwork([x, y])
    assert net.query("Y", do={"X": 2.0}).mean == pytest.approx(6.5)
    assert net.query("X", {"Y": 100.0}, do={"X": 2.0}).mean == pytest.approx(2.0)
    spread = net.query("Y", do={"X": bbn.Gaussian("X", means=0.0, variances=4.0)})
    assert (spread.mean, spread.variance) == pytest.approx((0.5, 37.0))


def test_evidence_is_taken_after_the_act():
    """Asked about those who were seen to do x, or about what follows once we make them: two different answers."""
    net = bbn.example("burglary")
    seen = net.query("Burglary", {"Alarm": "yes"})["yes"]
    done = net.query("Burglary", do={"Alarm": "yes"})["yes"]
    assert done == pytest.approx(net.query("Burglary")["yes"])
    assert seen > 100 * done
    with pytest.raises(bbn.ImpossibleEvidenceError):
        net.query("Burglary", {"Alarm": "no"}, do={"Alarm": "yes"})


def test_the_network_is_kept_and_asked_again():
    net = bbn.example("asia")
    first = net._acted({"smoke": "yes"})
    assert net._acted({"smoke": "yes"}) is first
    assert net._acted({"smoke": "no"}) is not first
    assert net._acted({"smoke": {"yes": 0.5, "no": 0.5}}) is net._acted({"smoke": {"yes": 0.5, "no": 0.5}})
    assert net._acted({}) is net
    assert net._acted(None) is net
    for i in range(300):
        net.query("lung", do={"smoke": {"yes": i / 300, "no": 1 - i / 300}})
    assert len(net.memo["do"]) <= 128
    number = bbn.BayesianNetwork([bbn.CPT(bbn.Variable("B", [False, True]), table=[0.5, 0.5])])
    assert number.query("B", do={"B": True})[True] == 1.0
    with pytest.raises(bbn.EvidenceError):  # True is kept, 1 is still not a state
        number.query("B", do={"B": 1})


@pytest.mark.parametrize(
    ("do", "error", "match"),
    [
        ({"smok": "yes"}, bbn.EvidenceError, "did you mean 'smoke'"),
        ({"smoke": "maybe"}, bbn.EvidenceError, "no state 'maybe'"),
        ({"smoke": {"yes": 0.4}}, bbn.EvidenceError, "sum to 0.4"),
        ({"smoke": {"yes": 2, "no": -1}}, bbn.EvidenceError, "from 0 to 1"),
        ({"smoke": {"yes": float("nan"), "no": 1}}, bbn.EvidenceError, "from 0 to 1"),
        ({"smoke": lambda lung: "yes"}, bbn.ModelError, "cycle"),
        ({"smoke": lambda a, b: "yes"}, bbn.EvidenceError, "arguments a, b"),
        ("smoke", bbn.EvidenceError, "mapping"),
        (
            {"smoke": bbn.CPT(bbn.Variable("lung", ["yes", "no"]), table=[1, 0])},
            bbn.EvidenceError,
            "another variable",
        ),
    ],
)
def test_bad_acts(do, error, match):
    with pytest.raises(error, match=match):
        bbn.example("asia").query("lung", do=do)


def test_a_factor_graph_has_nothing_to_cut():
    graph = bbn.FactorGraph(bbn.example("asia").factors())
    with pytest.raises(bbn.EvidenceError, match="needs a network"):
        graph.query("lung", do={"smoke": "yes"})


def run(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "bbn", *arguments], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_the_command_line_takes_do(tmp_path):
    from bbn.cli import main

    net = bbn.example("asia")
    code, out, _ = run("query", "asia", "lung", "-e", "xray=yes", "--do", "smoke=yes", "--format", "csv")
    assert code == 0
    assert float(out.splitlines()[1].split(",")[1]) == pytest.approx(
        net.query("lung", {"xray": "yes"}, do={"smoke": "yes"})["yes"]
    )
    rows = tmp_path / "rows.csv"
    assert main(["sample", "asia", "-n", "20", "--do", "smoke=no", "--seed", "1", "-o", str(rows)]) == 0
    assert "yes" not in {line.split(",")[1] for line in rows.read_text().splitlines()[1:]}
    answers = tmp_path / "answers.csv"
    assert (
        main(["predict", "asia", str(rows), "--target", "lung", "--do", "smoke=yes", "-o", str(answers)]) == 0
    )
    assert main(["mpe", "asia", "--do", "smoke=yes:0.2,no:0.8"]) == 0
    assert main(["query", "asia", "lung", "--do", "smoke=perhaps"]) == 1
    assert main(["query", "asia", "lung", "--do", "smoke=yes", "smoke=no"]) == 1


@pytest.mark.parametrize("suffix", ["yaml", "json", "bif"])
def test_files_say_which_variables_are_hidden(tmp_path, suffix):
    text = """
nodes:
  'U, 1':
    states: [a, b]
    table: [0.5, 0.5]
    latent: true
  X: {states: [a, b], table: [1, 0], latent: false}
"""
    source = tmp_path / "net.yaml"
    source.write_text(text)
    net = bbn.load(source)
    assert net.latent == ("U, 1",)
    assert bbn.CausalGraph(net).latent == ("U, 1",)
    assert net.rename({"U, 1": "H"}).latent == ("H",)
    path = tmp_path / f"again.{suffix}"
    net.save(path)
    assert bbn.load(path).latent == ("U, 1",)
    if suffix == "yaml":
        assert "latent: true" in path.read_text()
    source.write_text(text.replace("true", "perhaps"))
    with pytest.raises(bbn.ParseError, match="'latent' must be true or false"):
        bbn.load(source)
