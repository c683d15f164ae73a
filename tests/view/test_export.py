"""The page as one file: what it answers is what Python answers, and no name can break out of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bbn
from bbn.model.interventions import acted
from bbn.view.page.answers import density
from bbn.view.page.export import html_text
from bbn.view.page.findings import asked
from tests.view.clicking import NETWORKS, click_and_compare
from tests.view.test_explore import expect_label

EVIL = "</script><script>alert(1)</script><!--"


def opened(browser: Any, net: bbn.BayesianNetwork, path: Path) -> tuple[Any, list[str]]:
    """The exported page of a network, offline, and a list that gets its faults."""
    net.export_html(path)
    page, faults = browser.new_page(), []
    page.context.set_offline(True)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.goto(path.as_uri())
    page.get_by_text("P(evidence)").wait_for(timeout=20_000)
    return page, faults


def findings(net: bbn.BayesianNetwork, rng: np.random.Generator) -> dict[str, Any]:
    """Random evidence as a page puts it: observed, done, or a likelihood."""
    made: dict[str, Any] = {}
    for name in rng.choice(net.names, int(rng.integers(0, 6)), replace=False).tolist():
        card, kind = net.variable(name).card, rng.choice(["state", "do", "virtual"])
        made[name] = {kind: rng.random(card).tolist() if kind == "virtual" else int(rng.integers(card))}
    return made


ASK = """(evidence) => Promise.all([bbn.ask("beliefs", { evidence }), bbn.ask("mpe", { evidence })])
  .catch((error) => error.message)"""


@pytest.mark.parametrize("name", NETWORKS)
def test_the_file_answers_as_python_does(name: str, browser: Any, tmp_path: Path) -> None:
    net, rng = bbn.example(name), np.random.default_rng(5)
    page, faults = opened(browser, net, tmp_path / "net.html")
    possible = 0
    for evidence in [findings(net, rng) for _ in range(40)]:
        told = page.evaluate(ASK, evidence)
        seen = asked(net, {"evidence": evidence})
        done = acted(net, seen.do)
        try:
            expected = done.posteriors(seen.evidence)
        except bbn.ImpossibleEvidenceError:
            assert told == "the evidence has probability zero"
            continue
        possible += 1
        beliefs, best = told
        assert beliefs["log_evidence"] == pytest.approx(expected.log_evidence, abs=1e-11)
        for variable, posterior in expected.items():
            np.testing.assert_allclose(beliefs["beliefs"][variable], posterior.values, rtol=0, atol=1e-12)
        assert best["log_probability"] == pytest.approx(done.mpe(seen.evidence).log_probability, abs=1e-10)
    assert possible > 20
    assert faults == []


@pytest.mark.slow
@pytest.mark.parametrize("way", ["served", "file"])
@pytest.mark.parametrize("name", ["asia", "win95pts"])
def test_what_is_clicked_is_what_python_answers(name: str, way: str, browser: Any, tmp_path: Path) -> None:
    net = bbn.example(name)
    served = net.explore()
    page = browser.new_page()
    try:
        if way == "file":
            net.export_html(tmp_path / "net.html")
        page.goto(served.url if way == "served" else (tmp_path / "net.html").as_uri())
        page.locator("body[data-ready]").wait_for()
        possible, largest = click_and_compare(page, net, 40, seed=3)
        assert possible > 25
        assert largest < 1e-12
        if way == "served":  # what is clicked last is what Python sees
            last = asked(net, {"evidence": page.evaluate("bbn.state.evidence")})
            assert served.evidence == last.evidence
            assert served.done == last.do
            assert list(served.posteriors) == list(acted(net, last.do).posteriors(last.evidence))
    finally:
        page.close()
        served.close()


def test_several_soft_findings_hold_together_in_a_file(browser: Any, tmp_path: Path) -> None:
    net = bbn.example("alarm")
    page, _ = opened(browser, net, tmp_path / "alarm.html")
    soft = {"HR": [0.2, 0.5, 0.3], "BP": [0.6, 0.3, 0.1], "CO": [0.1, 0.1, 0.8]}
    told = page.evaluate(
        "(evidence) => bbn.ask('beliefs', { evidence })", {n: {"soft": p} for n, p in soft.items()}
    )
    for name, shares in soft.items():
        np.testing.assert_allclose(told["beliefs"][name], shares, atol=1e-11)
    given = {n: bbn.Soft(dict(zip(net.states(n), p, strict=True))) for n, p in soft.items()}
    for name, posterior in net.posteriors(given).items():
        np.testing.assert_allclose(told["beliefs"][name], posterior.values, atol=1e-12)
    wrong = page.evaluate(
        "(evidence) => bbn.ask('beliefs', { evidence }).catch((error) => error.message)",
        {"HR": {"state": 0}, "HRBP": {"soft": [0.0, 0.0, 1.0]}, "ERRLOWOUTPUT": {"state": 1}},
    )
    assert isinstance(wrong, dict) or "gives weight to a state" in wrong


def mixed() -> bbn.BayesianNetwork:
    """Two discrete variables, three numbers: one switches, one follows the other two."""
    a, b = bbn.Variable("A", ["x", "y", "z"]), bbn.Variable("B", ["on", "off"])
    first = bbn.Gaussian("U", [b], means=[0.0, 3.0], variances=[1.0, 0.5])
    second = bbn.Gaussian("V", means=-1.0, variances=2.0)
    last = bbn.Gaussian(
        "W",
        [a, first.variable, second.variable],
        means=[0.0, 1.0, 5.0],
        variances=[0.3, 0.2, 1.0],
        weights=[[1.0, 0.5], [0.0, -1.0], [2.0, 0.0]],
    )
    table = bbn.CPT(b, [a], [[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])
    return bbn.BayesianNetwork([bbn.CPT(a, table=[0.2, 0.3, 0.5]), table, first, second, last], name="mixed")


@pytest.mark.parametrize(
    "evidence",
    [
        {},
        {"W": {"number": 4.0}},
        {"W": {"number": 4.0}, "A": {"state": 1}},
        {"W": {"number": -2.0}, "U": {"do": 1.5}, "B": {"virtual": [0.2, 0.7]}},
        {"V": {"number": 0.5}, "B": {"soft": [0.3, 0.7]}, "W": {"number": 1.0}},
        {"U": {"number": 9.0}, "A": {"do": 2}},
    ],
)
def test_numbers_in_a_file_are_those_of_python(
    evidence: dict[str, Any], browser: Any, tmp_path: Path
) -> None:
    net = mixed()
    page, faults = opened(browser, net, tmp_path / "mixed.html")
    told = page.evaluate("(evidence) => bbn.ask('beliefs', { evidence })", evidence)
    seen = asked(net, {"evidence": evidence})
    expected = acted(net, seen.do).posteriors(seen.evidence)
    assert told["log_evidence"] == pytest.approx(expected.log_evidence, abs=1e-10)
    for name, posterior in expected.items():
        belief = told["beliefs"][name]
        if net.states(name):
            np.testing.assert_allclose(belief, posterior.values, atol=1e-10)
            continue
        made = density(posterior)
        for key in ("mean", "std", "low", "high"):
            assert belief[key] == pytest.approx(made[key], abs=1e-7)
        np.testing.assert_allclose(belief["density"], made["density"], atol=1e-7)
    assert faults == []


def test_the_file_is_clicked_as_the_page_is(browser: Any, tmp_path: Path) -> None:
    page, faults = opened(browser, bbn.example("asia"), tmp_path / "asia.html")
    expect_label(page, "lung = yes, 5.5%")
    page.get_by_role("button", name="xray = yes").click()
    expect_label(page, "lung = yes, 48.9%")
    assert "#e=" in page.url
    page.get_by_role("tab", name="MPE").click()
    page.get_by_text("Most probable explanation").wait_for()
    assert not page.get_by_role("tab", name="Sensitivity").is_visible()
    assert faults == []


def test_a_file_of_numbers_alone(browser: Any, tmp_path: Path) -> None:
    first = bbn.Gaussian("X", means=1.0, variances=4.0)
    net = bbn.BayesianNetwork([first, bbn.Gaussian("Y", [first.variable], 0.0, 1.0, [2.0])])
    page, faults = opened(browser, net, tmp_path / "numbers.html")
    told = page.evaluate("bbn.ask('beliefs', { evidence: { Y: { number: 3 } } })")
    assert told["beliefs"]["X"]["mean"] == pytest.approx(net.query("X", {"Y": 3.0}).mean, abs=1e-10)
    assert faults == []


def test_a_file_of_noisy_causes(browser: Any, tmp_path: Path) -> None:
    a, b, c = (bbn.Variable(name, ["yes", "no"]) for name in "ABC")
    noisy = bbn.NoisyOr(c, [a, b], {"A": 0.8, "B": 0.6}, leak=0.1)
    net = bbn.BayesianNetwork([bbn.CPT(a, table=[0.3, 0.7]), bbn.CPT(b, table=[0.2, 0.8]), noisy])
    page, _ = opened(browser, net, tmp_path / "noisy.html")
    for evidence in ({"C": {"state": 0}}, {"C": {"do": 0}}, {"C": {"soft": [0.9, 0.1]}, "A": {"state": 1}}):
        seen = asked(net, {"evidence": evidence})
        told = page.evaluate("(evidence) => bbn.ask('beliefs', { evidence })", evidence)
        for name, posterior in acted(net, seen.do).posteriors(seen.evidence).items():
            np.testing.assert_allclose(told["beliefs"][name], posterior.values, atol=1e-12)


def test_no_name_breaks_out_of_the_file(browser: Any, tmp_path: Path) -> None:
    a, b = bbn.Variable(EVIL, [EVIL, "no"]), bbn.Variable("B", ["<b>", "&amp;"])
    net = bbn.BayesianNetwork(
        [bbn.CPT(a, table=[0.25, 0.75]), bbn.CPT(b, [a], [[0.9, 0.1], [0.2, 0.8]])], name=EVIL
    )
    text = html_text(net)
    assert EVIL not in text
    assert "unsafe" not in text[: text.index("<style>")]
    assert "http-equiv" in text
    page, faults = opened(browser, net, tmp_path / "evil.html")
    expect_label(page, f"{EVIL} = no, 75.0%")
    assert faults == []


def test_what_is_too_large_is_refused_with_numbers(tmp_path: Path) -> None:
    with pytest.raises(bbn.BudgetError, match=r"cells, more than the 2,000,000"):
        bbn.example("barley").export_html(tmp_path / "x.html")
    assert list(tmp_path.iterdir()) == []
    assert len(html_text(bbn.example("alarm"))) < 500_000
