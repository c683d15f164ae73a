"""The page in a browser: bars, cases, focus, tables, kinds of networks, edits, phones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import bbn
from bbn.io import loads
from bbn.view.cards import _percent
from bbn.view.page.explorer import Explorer
from tests.view.test_explore import DESK, PHONE, ask, expect_label, faults_of
from tests.view.test_export import mixed

Opened = tuple[Explorer, Any]


@pytest.fixture
def opened(browser: Any) -> Iterator[Callable[..., Opened]]:
    """Open the page of a network; faults of its scripts fail the test."""
    made: list[Opened] = []
    faults: list[str] = []

    def open_page(net: Any, size: tuple[int, int] = DESK, edit: bool = False, **how: Any) -> Opened:
        served = net.explore(edit=True) if edit else net.explore()
        page = browser.new_page(
            viewport={"width": size[0], "height": size[1]},
            reduced_motion="reduce",
            accept_downloads=True,
            **how,
        )
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
        page.goto(served.url)
        page.locator("body[data-ready]").wait_for()
        made.append((served, page))
        return served, page

    yield open_page
    for served, page in made:
        page.close()
        served.close()
    assert [fault for fault in faults if "400" not in fault] == []


def choose(page: Any, name: str) -> None:
    page.get_by_role("button", name=f"Choose {name}", exact=True).click()


def test_a_bar_is_dragged_to_what_one_believes(opened: Any) -> None:
    served, page = opened(bbn.example("asia"))
    bars = page.get_by_role("button", name="bronc = yes").locator(".pull")
    box = bars.bounding_box()
    page.mouse.move(box["x"] + 3, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 5, steps=3)
    page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + 5, steps=3)
    page.mouse.up()
    page.evaluate("bbn.settled()")
    (share, rest) = page.evaluate("bbn.state.evidence")["bronc"]["soft"]
    assert share == pytest.approx(0.8, abs=0.02)
    assert share + rest == pytest.approx(1)
    expected = served.net.query("smoke", {"bronc": bbn.Soft({"yes": share, "no": rest})})["yes"]
    expect_label(page, f"smoke = yes, {expected:.1%}")
    page.keyboard.press("Control+z")  # one drag is one step
    expect_label(page, "bronc = yes, 45.0%")
    assert page.get_by_role("button", name="Undo").is_disabled()


def test_bars_in_the_panel_set_beliefs_and_likelihoods(opened: Any) -> None:
    served, page = opened(bbn.example("asia"))
    choose(page, "dysp")
    page.get_by_role("slider", name="Belief in yes").fill("0.9")
    soft = bbn.Soft({"yes": 0.9, "no": 0.1})
    expect_label(page, f"lung = yes, {served.net.query('lung', {'dysp': soft})['yes']:.1%}")
    page.get_by_role("button", name="Take back").click()
    expect_label(page, "dysp = yes, 43.6%")
    page.get_by_label("What bars set").select_option("virtual")
    page.get_by_role("slider", name="Likelihood of no").fill("0.2")
    virtual = bbn.Virtual({"yes": 1.0, "no": 0.2})
    expect_label(page, f"lung = yes, {served.net.query('lung', {'dysp': virtual})['yes']:.1%}")
    assert served.evidence == {"dysp": virtual}


def test_cases_are_kept_compared_saved_and_read(opened: Any, tmp_path: Path) -> None:
    served, page = opened(bbn.example("asia"))
    net = served.net
    page.get_by_role("button", name="xray = yes").click()
    page.get_by_role("tab", name="Evidence").click()
    page.get_by_label("Name of the case").fill("A")
    page.get_by_role("button", name="Keep").click()
    page.get_by_role("checkbox", name="Use xray = yes").uncheck()  # switched off, and on again
    expect_label(page, "lung = yes, 5.5%")
    page.get_by_role("checkbox", name="Use xray = yes").check()
    expect_label(page, "lung = yes, 48.9%")
    page.get_by_role("button", name="Clear evidence").click()
    page.get_by_role("button", name="smoke = yes").click()
    page.get_by_role("button", name="Compare with A").click()
    page.get_by_role("tab", name="Changes").click()  # smoke = yes now, against the case A
    rows = [row.inner_text().split("\t") for row in page.locator("#panel tbody tr").all()]
    told = {row[0]: (row[1], row[2]) for row in rows}
    before, now = net.query("lung", {"xray": "yes"})["yes"], net.query("lung", {"smoke": "yes"})["yes"]
    assert told["lung = yes"] == (f"{before:.1%}", f"{now:.1%}")
    assert rows[0][0].startswith("xray")  # the largest first
    page.get_by_role("tab", name="Evidence").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save to a file").click()
    saved = json.loads(download.value.path().read_text())
    assert saved == {"network": "asia", "cases": {"A": {"xray": {"state": "yes"}}}}
    saved["cases"] |= {
        "B": {"dysp": {"soft": {"yes": 0.7, "no": 0.3}}},
        "C": {"ghost": {"state": "yes"}, "tub": {"do": "no"}},
    }
    file = tmp_path / "cases.json"
    file.write_text(json.dumps(saved))
    _, other = opened(net)
    other.get_by_role("tab", name="Evidence").click()
    other.get_by_label("Open cases").set_input_files(file)
    other.get_by_text("case C has evidence that this network does not: ghost").wait_for()
    other.get_by_role("button", name="Open B").click()
    soft = {"dysp": bbn.Soft({"yes": 0.7, "no": 0.3})}
    expect_label(other, f"lung = yes, {net.query('lung', soft)['yes']:.1%}")
    file.write_text("{}")
    other.get_by_label("Open cases").set_input_files(file)
    other.get_by_text("the file holds no cases that can be read").wait_for()


def test_focus_shows_a_node_and_its_surroundings(opened: Any) -> None:
    served, page = opened(bbn.example("alarm"))
    net = served.net

    def shown() -> set[str]:
        labels = page.locator(".node:not([display=none]) > .title").all()
        return {str(label.get_attribute("aria-label")).removeprefix("Choose ") for label in labels}

    choose(page, "CATECHOL")
    around = page.get_by_label("Show around CATECHOL")
    around.select_option("family")
    assert shown() == {"CATECHOL", *net.parents("CATECHOL"), *net.children("CATECHOL")}
    around.select_option("blanket")
    assert shown() == {"CATECHOL", *net.markov_blanket("CATECHOL")}
    around.select_option("2")
    wide = {
        n
        for a in (*net.parents("CATECHOL"), *net.children("CATECHOL"))
        for n in (a, *net.parents(a), *net.children(a))
    }
    assert shown() == wide
    page.get_by_role("button", name="Fit").click()
    assert page.get_by_role("button", name="Choose CATECHOL").is_visible()
    page.get_by_role("button", name="Show all").click()
    assert shown() == set(net.names)


def test_descriptions_are_found_and_shown(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    told = "An infection of the lungs <b>"
    monkeypatch.setattr("bbn.view.page.model.descriptions", lambda net: {"tub": told})
    _, page = opened(bbn.example("asia"))
    page.keyboard.press("/")
    page.keyboard.type("infection")
    assert page.locator("#found li").all_inner_texts() == [f"tub: {told}"]
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="tub").wait_for()
    assert page.locator("#panel .description").inner_text() == told


def test_tables_are_searched_and_follow_the_evidence(opened: Any) -> None:
    served, page = opened(bbn.example("alarm"))
    choose(page, "CATECHOL")
    page.get_by_text("Table", exact=True).click()
    page.get_by_text("54 of 54 rows").wait_for()
    page.get_by_label("Find rows").fill("tpr=low sao2=high")
    page.get_by_text("6 of 54 rows").wait_for()
    row = page.locator("#panel tbody tr").last.inner_text().split("\t")
    parents = [p.name for p in served.net["CATECHOL"].parents]
    given = dict(zip(parents, row, strict=False))
    cells = served.net["CATECHOL"].row(*(given[name] for name in parents))
    assert [float(cell) for cell in row[len(parents) :]] == pytest.approx(list(cells.values()), abs=1e-4)
    page.get_by_label("Find rows").fill("")
    page.get_by_role("button", name="INSUFFANESTH = TRUE").click()
    choose(page, "CATECHOL")
    page.get_by_text("27 of 54 rows").wait_for()  # a large table: those that agree
    page.get_by_label("rows that agree with the evidence").uncheck()
    page.get_by_text("54 of 54 rows").wait_for()


def test_scissors_cut_the_arcs_of_what_is_done(opened: Any) -> None:
    _, page = opened(bbn.example("asia"))
    choose(page, "either")
    page.get_by_role("button", name="Do yes").click()
    expect_label(page, "either = yes, 100%")
    cut = page.locator(".link.cut")
    assert sorted(str(link.get_attribute("data-parent")) for link in cut.all()) == ["lung", "tub"]
    assert page.locator(".scissors").count() == 2
    page.get_by_role("button", name="Observe yes").click()
    page.locator(".scissors").first.wait_for(state="detached")


def test_numbers_are_entered_and_dragged(opened: Any) -> None:
    served, page = opened(mixed())
    net = served.net
    choose(page, "W")
    page.get_by_role("spinbutton", name="Number").fill("4")
    page.get_by_role("button", name="Observe this number").click()
    expect_label(page, f"A = y, {net.query('A', {'W': 4.0})['y']:.1%}")
    assert served.evidence == {"W": 4.0}
    box = page.locator(".density .pull").bounding_box()
    page.mouse.move(box["x"] + 20, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 20, steps=4)
    page.mouse.up()
    page.evaluate("bbn.settled()")
    number = page.evaluate("bbn.state.evidence.W.number")
    low, high = net.query("W").interval(0.998)
    assert number == pytest.approx(low + 0.75 * (high - low), abs=0.02 * (high - low))
    expect_label(page, f"A = z, {_percent(net.query('A', {'W': number})['z'])}")
    page.get_by_role("button", name="Do this number").click()
    page.evaluate("bbn.settled()")
    assert served.done == {"W": number}
    expect_label(page, "A = z, 50.0%")
    assert faults_of(page) == []


def test_choices_show_what_they_are_worth(opened: Any) -> None:
    served, page = opened(bbn.example("oil_wildcatter"))
    dn = served.net
    expect_label(page, "Test = yes, expected utility 22.5")
    page.get_by_text("expected utility 22.5,").wait_for()
    page.get_by_role("button", name="Test = yes").click()
    page.get_by_role("button", name="Seismic = none").click()
    given = {"Test": "yes", "Seismic": "none"}
    worth = {s: dn.expected_utility({"Drill": s}, given) for s in ("yes", "no")}
    for choice, value in worth.items():
        expect_label(page, f"Drill = {choice}, expected utility {float(f'{value:.4g}'):g}")
    choose(page, "Drill")
    assert page.locator("li.best .label").inner_text() == dn.solve(given).policy["Drill"]["yes", "none"]
    choose(page, "Profit")
    page.get_by_text("Table", exact=True).click()
    page.get_by_text("6 of 6 rows").wait_for()
    assert faults_of(page) == []


def test_slices_of_time_are_listed(opened: Any) -> None:
    served, page = opened(bbn.example("umbrella"))
    page.get_by_role("button", name="Umbrella[0] = yes").click()
    page.evaluate("bbn.settled()")
    choose(page, "Rain[0]")
    rows = [
        row.inner_text().split("\t")[:2]
        for row in page.get_by_role("table", name="Rain over time").locator("tbody tr").all()
    ]
    shares = served.net.posteriors({"Umbrella[0]": "yes"})
    assert rows == [[str(t), f"{shares[f'Rain[{t}]']['yes']:.1%}"] for t in range(6)]


def test_edits_are_new_networks_and_go_back(opened: Any) -> None:
    net = bbn.example("asia")
    served, page = opened(net, edit=True)
    choose(page, "smoke")
    page.get_by_text("Table", exact=True).click()
    cell, put = page.get_by_label("P(yes)"), page.get_by_role("button", name="Set", exact=True)
    cell.fill("0.8")
    page.get_by_text("sum 1.3").wait_for()  # a row sums to one
    assert put.is_disabled()
    page.get_by_label("P(no)").fill("0.2")
    put.click()
    expect_label(page, "smoke = yes, 80.0%")
    expect_label(page, f"lung = yes, {0.8 * 0.1 + 0.2 * 0.01:.1%}")
    page.get_by_label("Name", exact=True).fill("tobacco")
    page.keyboard.press("Enter")
    expect_label(page, "tobacco = yes, 80.0%")
    page.get_by_role("button", name="Add node").click()
    expect_label(page, "Node1 = yes, 50.0%")
    page.get_by_label("New parent").select_option("xray")
    page.locator('.link[data-parent="xray"][data-child="Node1"]').wait_for(state="attached")
    assert served.net.parents("Node1") == ("xray",)
    assert faults_of(page) == []
    page.get_by_label("New parent").select_option("asia")
    page.get_by_role("button", name="Remove arc from xray").click()
    page.locator('.link[data-parent="xray"][data-child="Node1"]').wait_for(state="detached")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save YAML").click()
    assert loads(download.value.path().read_text(), "yaml") == served.net
    page.get_by_role("button", name="Remove this node").click()
    page.get_by_role("button", name="Choose Node1").wait_for(state="detached")
    for _ in range(7):
        page.get_by_role("button", name="Undo").click()
        page.evaluate("bbn.settled()")
    expect_label(page, "smoke = yes, 50.0%")
    assert served.net == net == bbn.example("asia")


ARC_END = """() => {
  const arc = document.querySelector("[data-parent=bronc][data-child=dysp] .arc"), end = arc.getPointAtLength(1e6);
  return new DOMPoint(end.x, end.y).matrixTransform(arc.getScreenCTM()).x;
}"""


def test_cards_are_moved_and_keep_their_arcs(opened: Any) -> None:
    _, page = opened(bbn.example("asia"), edit=True)
    title = page.get_by_role("button", name="Choose dysp")
    before = title.bounding_box()
    page.mouse.move(before["x"] + 30, before["y"] + 8)
    page.mouse.down()
    page.mouse.move(before["x"] + 130, before["y"] - 32, steps=4)
    page.mouse.up()
    after = title.bounding_box()
    assert (after["x"] - before["x"], after["y"] - before["y"]) == pytest.approx((100, -40), abs=1)
    title.focus()
    page.keyboard.press("Alt+ArrowRight")
    assert title.bounding_box()["x"] > after["x"]
    end = page.evaluate(ARC_END)
    moved = title.bounding_box()
    assert end == pytest.approx(moved["x"] + moved["width"] / 2, abs=1)


def test_edits_are_refused_unless_asked_for() -> None:
    plain, edited = bbn.example("asia").explore(), bbn.example("asia").explore(edit=True)
    try:
        row = {"op": "row", "name": "smoke", "codes": [], "values": [0.1, 0.9]}
        assert ask(plain, "/edit", row)[0] == ask(plain, "/yaml", {})[0] == 404
        assert plain.net == bbn.example("asia")
        for bad in (
            {},
            {"op": "burn"},
            {"op": "undo"},
            {"op": "rename", "name": "smoke", "to": "lung"},
            {"op": "rename", "name": "ghost", "to": "x"},
            {"op": "rename", "name": "smoke", "to": ""},
            {**row, "values": [0.5, 0.6]},
            {**row, "values": [0.5]},
            {**row, "codes": [0]},
            {**row, "name": "lung", "codes": [7]},
            {"op": "add_node", "name": "smoke", "states": ["a"]},
            {"op": "add_node", "name": "x", "states": []},
            {"op": "add_node", "name": "x", "states": ["a", "a"]},
            {"op": "add_arc", "parent": "dysp", "child": "dysp"},
            {"op": "add_arc", "parent": "xray", "child": "lung"},
            {"op": "remove_arc", "parent": "asia", "child": "dysp"},
            {"op": "remove_node", "name": "ghost"},
        ):
            status, told = ask(edited, "/edit", bad)
            assert (status, bool(told["error"])) == (400, True), bad
            assert edited.net == bbn.example("asia")
        assert ask(edited, "/edit", row)[0] == 200
        assert edited.net["smoke"].table.tolist() == [0.1, 0.9]
    finally:
        plain.close()
        edited.close()


TOO_SMALL = """() => [...document.querySelectorAll("button, input, select, summary, a")]
  .filter((e) => e.offsetParent && !e.classList.contains("visually-hidden") && e.type !== "checkbox")
  .map((e) => [e.id || e.textContent || e.type, e.getBoundingClientRect()])
  .filter(([, b]) => b.height < 44 || b.width < 44)
  .map(([name, b]) => `${name} ${b.width}x${b.height}`)"""
SIDEWAYS = """() => ["html", "header", "aside", "#panel"].filter((e) => document.querySelector(e).scrollWidth
  > document.querySelector(e).clientWidth + 1)"""


@pytest.mark.parametrize("scale", [1, 2])
def test_phones_have_room_for_fingers(opened: Any, scale: int) -> None:
    _, page = opened(bbn.example("asia"), PHONE, has_touch=True)
    page.evaluate(f"document.documentElement.style.fontSize = '{16 * scale}px'")
    page.get_by_role("button", name="Choose lung").tap()  # a tap opens the sheet
    page.get_by_role("button", name="Observe yes").tap()
    expect_label(page, "lung = yes, 100%")
    page.get_by_role("button", name="More").tap()
    assert page.get_by_role("button", name="Copy link").is_visible()
    assert page.evaluate(TOO_SMALL) == []
    for tab in ("Node", "Evidence", "Changes", "MPE", "Ask next"):
        page.get_by_role("tab", name=tab).tap()
        page.locator("#panel h2").first.wait_for()
        assert page.evaluate(TOO_SMALL) == []
        assert page.evaluate(SIDEWAYS) == [], tab
    page.get_by_role("button", name="More").tap()
    page.get_by_role("button", name="Clear evidence").tap()
    expect_label(page, "lung = yes, 5.5%")
    row = page.get_by_role("button", name="smoke = yes")
    row.tap()  # too small for a finger: its panel opens
    page.get_by_role("heading", name="smoke").wait_for()
    assert page.evaluate("bbn.state.evidence") == {}
    page.get_by_role("button", name="Close the panel").tap()
    assert not page.locator("#panel").is_visible()


def test_text_of_twice_the_size_fits_a_desk(opened: Any) -> None:
    _, page = opened(bbn.example("asia"))
    page.evaluate("document.documentElement.style.fontSize = '32px'")
    choose(page, "lung")
    page.get_by_text("Table", exact=True).click()
    page.locator("#panel table").wait_for()
    assert page.evaluate(SIDEWAYS) == []
    assert page.locator("#canvas").bounding_box()["height"] > 300


def test_a_link_goes_to_another_port_and_to_a_file(opened: Any, tmp_path: Path) -> None:
    net = bbn.example("asia")
    _, page = opened(net)
    page.get_by_role("button", name="xray = yes").click()
    expect_label(page, "lung = yes, 48.9%")
    fragment = page.url[page.url.index("#") :]
    _, other = opened(net)
    other.evaluate(f"location.hash = {fragment!r}")  # pasted into a page that is open
    expect_label(other, "lung = yes, 48.9%")
    net.export_html(tmp_path / "asia.html")
    other.goto((tmp_path / "asia.html").as_uri() + fragment)
    expect_label(other, "lung = yes, 48.9%")
