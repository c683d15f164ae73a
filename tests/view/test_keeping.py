"""What the page must not lose or make up: evidence, odd names, edits, cases, beliefs not known, the printed page."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bbn
from bbn.view.page import assets
from tests.view.clicking import click_and_compare
from tests.view.test_explore import expect_label
from tests.view.test_explore_more import choose, opened

__all__ = ["opened"]
ODD = ["constructor", "__proto__", "toString", "hasOwnProperty", "valueOf", "__defineGetter__", "length"]
STATES = ["toString", "__proto__", "constructor"]

HOST = """async ([code, page, findings]) => {
  const { default: widget } = await import("data:text/javascript," + encodeURIComponent(code));
  const state = { page, findings }, heard = {};
  const model = {
    get: (key) => state[key], set: (key, value) => { state[key] = value; },
    save_changes: () => saved(JSON.stringify(state.findings)),
    on: (name, act) => { heard[name] = act; }, off: () => {},
    send: async (data) => heard["msg:custom"](JSON.parse(await asked(JSON.stringify(data)))),
  };
  widget.render({ model, el: document.body });
}"""


@pytest.fixture
def notebook(browser: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Any], Any]]:
    """Show an explorer's widget as a notebook does; the tab."""
    pytest.importorskip("anywidget", reason="the widget is an optional extra")
    tabs: list[Any] = []

    def show(explorer: Any) -> Any:
        widget, tab = explorer.widget, browser.new_page(viewport={"width": 1100, "height": 700})
        tabs.append(tab)
        sent: list[Any] = []
        monkeypatch.setattr(widget, "send", sent.append)

        def asked(text: str) -> str:
            widget._asked(None, json.loads(text), [])
            return json.dumps(sent.pop())

        def saved(text: str) -> None:
            widget.findings = json.loads(text)

        tab.expose_function("asked", asked)
        tab.expose_function("saved", saved)
        tab.evaluate(HOST, [assets.text("widget.js"), widget.page, widget.findings])
        return tab

    yield show
    for tab in tabs:
        tab.close()


def test_a_notebook_starts_with_the_evidence_set_in_python(notebook: Any) -> None:
    page = bbn.example("asia").explore()
    page.evidence, page.done = {"xray": "yes"}, {"smoke": "no"}
    for _ in range(2):  # a second view of the same widget does not erase it either
        frame = notebook(page).frame_locator("iframe")
        expected = page.net.query("lung", {"xray": "yes"}, do={"smoke": "no"})["yes"]
        frame.get_by_role("button", name=f"lung = yes, {expected:.1%}").wait_for()
        assert (page.evidence, page.done) == ({"xray": "yes"}, {"smoke": "no"})
        assert page.widget.findings == {"xray": {"state": 0}, "smoke": {"do": 1}}


def test_a_notebook_shows_the_network_as_it_was_edited(notebook: Any) -> None:
    page = bbn.example("asia").explore(edit=True)
    notebook(page)
    page.answer("edit", {"op": "rename", "name": "smoke", "to": "tobacco"})
    frame = notebook(page).frame_locator("iframe")
    frame.get_by_role("button", name="tobacco = yes, 50.0%").wait_for()


def odd_network() -> bbn.BayesianNetwork:
    """A chain of nodes and states whose names mean something to JavaScript."""
    rng = np.random.default_rng(3)
    variables = [bbn.Variable(name, STATES) for name in ODD]
    cpts = [bbn.CPT(variables[0], table=rng.dirichlet(np.ones(3)))]
    for parent, child in pairwise(variables):
        cpts.append(bbn.CPT(child, [parent], rng.dirichlet(np.ones(3), size=3)))
    return bbn.BayesianNetwork(cpts, "constructor")


@pytest.mark.parametrize("way", ["served", "file"])
def test_names_that_mean_something_to_javascript(way: str, opened: Any, browser: Any, tmp_path: Path) -> None:
    net = odd_network()
    if way == "served":
        _, page = opened(net)
    else:
        net.export_html(tmp_path / "net.html")
        page = browser.new_page()
        page.goto((tmp_path / "net.html").as_uri())
        page.locator("body[data-ready]").wait_for()
    possible, largest = click_and_compare(page, net, 60, seed=2)
    assert possible > 40
    assert largest < 1e-9
    page.get_by_role("button", name="Clear evidence").click()
    choose(page, "__proto__")
    page.get_by_role("button", name="Observe toString").click()
    expected = net.query("length", {"__proto__": "toString"})["constructor"]
    expect_label(page, f"length = constructor, {expected:.1%}")
    page.get_by_role("tab", name="Evidence").click()
    page.get_by_label("Name of the case").fill("__proto__")
    page.get_by_role("button", name="Keep", exact=True).click()
    page.get_by_role("button", name="Clear evidence").click()
    page.get_by_role("button", name="Open __proto__").click()
    expect_label(page, f"length = constructor, {expected:.1%}")
    page.get_by_role("tab", name="MPE").click()
    page.get_by_role("heading", name="Most probable explanation").wait_for()
    page.get_by_role("button", name="Undo").click()
    expect_label(page, f"length = constructor, {net.query('length')['constructor']:.1%}")
    page.reload()
    page.locator("body[data-ready]").wait_for()


def evidence(page: Any) -> Any:
    return page.evaluate("bbn.settled().then(() => bbn.state.evidence)")


def test_a_rename_keeps_evidence_cases_and_what_was_typed(opened: Any) -> None:
    _, page = opened(bbn.example("asia"), edit=True)
    page.get_by_role("button", name="smoke = yes").click()
    page.get_by_role("tab", name="Evidence").click()
    page.get_by_label("Name of the case").fill("smoker")
    page.get_by_role("button", name="Keep", exact=True).click()
    page.get_by_role("tab", name="Changes").click()
    page.get_by_role("button", name="Pin what is now").click()
    choose(page, "smoke")
    page.get_by_text("Table", exact=True).click()
    page.get_by_label("P(yes)").fill("0.9")
    page.get_by_label("Name", exact=True).fill("tobacco")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Choose tobacco").wait_for()
    assert evidence(page) == {"tobacco": {"state": 0}}
    expect_label(page, "lung = yes, 10.0%")
    page.get_by_text("sum 1.4").wait_for()
    assert page.get_by_label("P(yes)").input_value() == "0.9"
    assert page.evaluate("bbn.state.cases") == {"smoker": {"tobacco": {"state": 0}}}
    assert page.evaluate("[bbn.state.reference.label, bbn.state.reference.beliefs.lung[0]]") == [
        "what was pinned",
        pytest.approx(0.1),
    ]
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("button", name="Choose smoke").wait_for()
    assert evidence(page) == {"smoke": {"state": 0}}
    assert page.evaluate("bbn.state.cases") == {"smoker": {"smoke": {"state": 0}}}
    page.get_by_role("button", name="Redo").click()
    page.get_by_role("button", name="Choose tobacco").wait_for()
    assert evidence(page) == {"tobacco": {"state": 0}}


def test_a_node_that_comes_back_brings_its_evidence(opened: Any) -> None:
    served, page = opened(bbn.example("asia"), edit=True)
    page.get_by_role("button", name="xray = yes").click()
    choose(page, "xray")
    page.get_by_role("button", name="Remove this node").click()
    page.get_by_role("button", name="Choose xray").wait_for(state="detached")
    assert evidence(page) == {}
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("button", name="Choose xray").wait_for()
    assert evidence(page) == {"xray": {"state": 0}}
    assert served.net == bbn.example("asia")


def test_a_reload_keeps_edits_their_history_cases_places_and_what_was_typed(opened: Any) -> None:
    served, page = opened(bbn.example("asia"), edit=True)
    page.get_by_role("button", name="xray = yes").click()
    page.get_by_role("tab", name="Evidence").click()
    page.get_by_role("button", name="Keep", exact=True).click()
    page.get_by_label("Use xray = yes").uncheck()
    choose(page, "smoke")
    page.get_by_label("Name", exact=True).fill("tobacco")
    page.keyboard.press("Enter")
    title = page.get_by_role("button", name="Choose tobacco")
    title.focus()
    for _ in range(5):
        page.keyboard.press("Alt+ArrowRight")
    page.get_by_text("Table", exact=True).click()
    page.get_by_label("P(yes)").fill("0.9")
    place = page.evaluate("[...bbn.state.places]")
    assert place[0][0] == "tobacco"
    page.reload()
    page.locator("body[data-ready]").wait_for()
    page.get_by_role("button", name="Choose tobacco").wait_for()
    assert page.evaluate("[...bbn.state.places]") == place
    assert page.evaluate("bbn.state.cases") == {"Case 1": {"xray": {"state": 0}}}
    assert page.evaluate("bbn.state.suspended") == {"xray": {"state": 0}}
    choose(page, "tobacco")
    page.get_by_text("Table", exact=True).click()
    page.get_by_text("sum 1.4").wait_for()
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("button", name="Choose smoke").wait_for()
    assert served.net == bbn.example("asia")
    page.get_by_role("button", name="Redo").click()
    title.wait_for()
    assert "tobacco" in served.net.names


def test_moved_cards_stay_where_they_are(opened: Any) -> None:
    _, page = opened(bbn.example("asia"), edit=True)
    title = page.get_by_role("button", name="Choose dysp")
    title.focus()
    for _ in range(9):
        page.keyboard.press("Alt+ArrowRight")
    place = page.evaluate("bbn.state.places.get('dysp')")
    end = """() => { const line = document.querySelector("[data-parent=bronc][data-child=dysp] .arc");
      const arc = line.getPointAtLength(1e6);
      const card = [...document.querySelectorAll(".node")].find((one) => one.textContent.includes("dysp"));
      const { e, f } = card.transform.baseVal.consolidate().matrix; return [arc.x - e, arc.y - f]; }"""
    ends = page.evaluate(end)
    choose(page, "xray")
    page.get_by_label("Show around xray").select_option("family")
    page.get_by_label("Show around xray").select_option("all")
    assert page.evaluate(end) == pytest.approx(ends, abs=0.1)
    page.get_by_role("button", name="Add node").click()
    expect_label(page, "Node1 = yes, 50.0%")
    assert page.evaluate(end) == pytest.approx(ends, abs=0.1)
    assert page.evaluate("bbn.state.places.get('dysp')") == place


SHARES = """() => [...document.querySelectorAll("#canvas .node")]
  .filter((card) => card.getAttribute("data-kind") === "")
  .flatMap((card) => [...card.querySelectorAll(".state")])
  .map((row) => [row.querySelectorAll("text")[1].textContent, row.querySelector(".share").getAttribute("width")])"""


@pytest.mark.parametrize("way", ["served", "file"])
def test_impossible_evidence_leaves_no_beliefs(way: str, opened: Any, browser: Any, tmp_path: Path) -> None:
    net = bbn.example("asia")
    if way == "served":
        served, page = opened(net)
    else:
        net.export_html(tmp_path / "net.html")
        page = browser.new_page()
        page.goto((tmp_path / "net.html").as_uri())
        page.locator("body[data-ready]").wait_for()
    page.get_by_role("button", name="lung = yes").click()
    expect_label(page, f"dysp = yes, {net.query('dysp', {'lung': 'yes'})['yes']:.1%}")
    page.get_by_role("button", name="either = no").click()
    expect_label(page, "dysp = yes, unknown")
    expect_label(page, "lung = yes, 100%")  # what is observed still is
    shown = page.evaluate(SHARES)
    assert len(shown) == 12
    assert all(one == ["–", "0"] for one in shown)
    choose(page, "dysp")
    assert page.locator("#panel .states .number").all_inner_texts() == ["–", "–"]
    if way == "served":
        assert served.evidence == {"lung": "yes", "either": "no"}
        with pytest.raises(bbn.ImpossibleEvidenceError):
            _ = served.posteriors
    page.get_by_role("tab", name="Changes").click()
    page.get_by_text("Nothing is known now").wait_for()
    page.get_by_role("button", name="either = no").click()
    expect_label(page, f"dysp = yes, {net.query('dysp', {'lung': 'yes'})['yes']:.1%}")


CUT_OFF = """() => {
  const clips = (one) => ["hidden", "auto", "scroll", "clip"].includes(getComputedStyle(one).overflowX);
  const inside = (box, out) => box.left >= out.left - 1 && box.right <= out.right + 1 && box.top >= out.top - 1
    && box.bottom <= out.bottom + 1;
  const seen = (one) => {
    const box = one.getBoundingClientRect(), paper = document.documentElement.getBoundingClientRect();
    for (let up = one.parentElement; up; up = up.parentElement) {
      if (clips(up) && !inside(box, up.getBoundingClientRect())) return false;
    }
    return inside(box, { left: 0, top: paper.top, right: innerWidth, bottom: paper.bottom });
  };
  const shown = (one) => one.getBoundingClientRect().width;
  const all = [...document.querySelectorAll("#canvas .node, #panel tr, #panel li")].filter(shown);
  return [all.length, all.filter((one) => !seen(one)).map((one) => one.textContent)];
}"""


@pytest.mark.parametrize("name", ["asia", "alarm", "hailfinder"])
def test_nothing_is_cut_off_on_paper(name: str, opened: Any) -> None:
    net = bbn.example(name)
    _, page = opened(net)
    largest = max(net.names, key=lambda one: net[one].table.size)
    choose(page, largest)
    page.get_by_text("Table", exact=True).click()
    page.get_by_role("row").nth(1).wait_for()
    page.get_by_role("button", name="Larger").click()
    before = page.evaluate("bbn.picture.place.toString()")
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 718, "height": 1047})  # A4 within its margins, at 96 to the inch
    for _ in range(50):  # the picture is fitted when the page has been told of its size
        count, cut = page.evaluate(CUT_OFF)
        if not cut:
            break
        page.wait_for_timeout(100)
    assert count >= len(net)
    assert cut == []
    cards = page.locator("#canvas .node").all()
    boxes = [card.bounding_box() for card in cards]
    assert all(box["width"] > 0 for box in boxes)
    assert page.locator("#canvas .state").count() == sum(len(net.states(one)) for one in net.names)
    picture = page.locator("#canvas .picture").bounding_box()
    assert picture["height"] <= 1047  # on one page
    assert page.get_by_role("button", name="Undo").is_hidden()
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.emulate_media(media="screen")
    page.set_viewport_size({"width": 1280, "height": 800})
    page.wait_for_function(f"bbn.picture.view.getAttribute('transform') === {json.dumps(before)}")
