"""The page as one file: what it answers is what Python answers, and no name can break out of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bbn
from bbn.model.interventions import acted
from bbn.view.page.export import html_text
from bbn.view.page.findings import asked as as_asked
from tests.view.test_explore import BROWSER_OPTIONS, CHROMIUM, expect_label

EVIL = "</script><script>alert(1)</script><!--"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        opened = play.chromium.launch(executable_path=CHROMIUM, args=BROWSER_OPTIONS)
        yield opened
        opened.close()


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


ASK = """(evidence) => {
  return Promise.all([bbn.ask("beliefs", { evidence }), bbn.ask("mpe", { evidence })]).catch((error) => error.message);
}"""


@pytest.mark.parametrize("name", ["asia", "alarm", "hailfinder", "win95pts"])
def test_the_file_answers_as_python_does(name: str, browser: Any, tmp_path: Path) -> None:
    net, rng = bbn.example(name), np.random.default_rng(5)
    page, faults = opened(browser, net, tmp_path / "net.html")
    asked = [findings(net, rng) for _ in range(60)]
    possible = 0
    for evidence, told in zip(asked, page.evaluate(ASK, asked), strict=True):
        acted, given = _asked(net, {"evidence": evidence})
        try:
            expected = acted.posteriors(given)
        except bbn.ImpossibleEvidenceError:
            assert told == "the evidence has probability zero"
            continue
        possible += 1
        beliefs, best = told
        assert beliefs["log_evidence"] == pytest.approx(expected.log_evidence, abs=1e-11)
        for variable, posterior in expected.items():
            np.testing.assert_allclose(beliefs["beliefs"][variable], posterior.values, rtol=0, atol=1e-12)
        assert best["log_probability"] == pytest.approx(acted.mpe(given).log_probability, abs=1e-10)
    assert possible > 20
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
