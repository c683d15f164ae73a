"""The interactive page: what its server answers and refuses, and the page itself in a real browser."""

from __future__ import annotations

import http.client
import json
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

import bbn
from bbn.view.explore import Explorer

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture
def explorer() -> Iterator[Explorer]:
    served = bbn.example("asia").explore()
    yield served
    served.close()


def ask(served: Explorer, path: str, body: Any, **headers: str) -> tuple[int, dict[str, Any]]:
    """Post a question; the status and the answer."""
    connection = http.client.HTTPConnection(served.host, served.port, timeout=20)
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request("POST", path, text, {"Content-Type": "application/json", **headers})
    answer = connection.getresponse()
    told = json.loads(answer.read())
    connection.close()
    return answer.status, told


def test_it_listens_on_loopback_alone(explorer: Explorer) -> None:
    assert explorer.server.server_address[0] == "127.0.0.1"


def test_beliefs_are_those_of_the_network(explorer: Explorer) -> None:
    net = explorer.net
    evidence = {"xray": {"state": 0}, "dysp": {"virtual": [0.8, 0.2]}}
    status, told = ask(explorer, "/beliefs", {"evidence": evidence})
    assert status == 200
    expected = net.posteriors({"xray": "yes", "dysp": bbn.Virtual({"yes": 0.8, "no": 0.2})})
    assert told["log_evidence"] == expected.log_evidence
    assert told["beliefs"] == {name: p.values.tolist() for name, p in expected.items()}


def test_panels_are_those_of_the_network(explorer: Explorer) -> None:
    net = explorer.net
    evidence = {"xray": {"state": 0}}
    assert ask(explorer, "/mpe", {"evidence": evidence})[1]["states"] == net.mpe({"xray": "yes"}).states
    (step,) = ask(explorer, "/explain", {"evidence": evidence, "target": "lung"})[1]["steps"]
    assert step == {"finding": "xray = yes", "alone": net.explain("lung", {"xray": "yes"}).steps[0].alone}
    bits = ask(explorer, "/information", {"evidence": evidence, "target": "lung"})[1]["bits"]
    assert bits == [list(pair) for pair in net.information("lung", {"xray": "yes"}).items()]
    entries = ask(explorer, "/sensitivity", {"evidence": evidence, "target": "lung", "state": 0})[1][
        "entries"
    ]
    assert (
        entries[0]["derivative"]
        == net.sensitivity("lung", {"xray": "yes"}, state="yes").largest(1)[0].derivative
    )


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/beliefs", []),
        ("/beliefs", b"{"),
        ("/beliefs", b"[" * 5000),
        ("/beliefs", {"evidence": 3}),
        ("/beliefs", {"evidence": {"nobody": {"state": 0}}}),
        ("/beliefs", {"evidence": {"xray": {"state": 2}}}),
        ("/beliefs", {"evidence": {"xray": {"state": True}}}),
        ("/beliefs", {"evidence": {"xray": {"state": -1}}}),
        ("/beliefs", {"evidence": {"xray": "yes"}}),
        ("/beliefs", {"evidence": {"xray": {"virtual": [1]}}}),
        ("/beliefs", {"evidence": {"xray": {"virtual": [0, 0]}}}),
        ("/beliefs", b'{"evidence": {"xray": {"virtual": [NaN, 1]}}}'),
        ("/beliefs", {"evidence": {"lung": {"state": 0}, "either": {"state": 1}}}),
        ("/explain", {"target": ["lung"]}),
        ("/sensitivity", {"target": "lung", "state": "yes"}),
    ],
)
def test_bad_questions_get_an_error_that_says_why(explorer: Explorer, path: str, body: Any) -> None:
    status, told = ask(explorer, path, body)
    assert status == 400
    assert told["error"]
    assert ask(explorer, "/beliefs", {"evidence": {}})[0] == 200


def test_other_hosts_pages_are_refused(explorer: Explorer) -> None:
    assert ask(explorer, "/beliefs", {}, Host="evil.example")[0] == 403
    assert ask(explorer, "/beliefs", {}, Host=f"evil.example:{explorer.port}")[0] == 403
    assert ask(explorer, "/beliefs", {}, Origin="http://evil.example")[0] == 403
    assert ask(explorer, "/beliefs", {}, Origin="null")[0] == 403
    assert ask(explorer, "/beliefs", {}, **{"Content-Type": "text/plain"})[0] == 415
    assert ask(explorer, "/beliefs", {}, Origin=f"http://127.0.0.1:{explorer.port}")[0] == 200
    assert ask(explorer, "/nothing", {})[0] == 404
    assert ask(explorer, "/beliefs", b"{}", **{"Content-Length": str(1 << 30)})[0] == 413


def test_work_past_the_memory_budget_is_refused() -> None:
    served = bbn.example("asia").explore(memory_limit=10)
    try:
        status, told = ask(served, "/beliefs", {"evidence": {}})
        assert status == 400
        assert "more than the limit of 10 bytes" in told["error"]
    finally:
        served.close()


BROWSER_OPTIONS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        opened = play.chromium.launch(executable_path=CHROMIUM, args=BROWSER_OPTIONS)
        yield opened
        opened.close()


def test_the_page_in_a_browser(explorer: Explorer, browser: Any) -> None:
    page = browser.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.goto(explorer.url)
    lung = page.get_by_role("button", name="lung = yes")
    expect_label(page, "lung = yes, 5.5%")
    page.get_by_role("button", name="xray = yes").click()  # a click observes
    expect_label(page, "lung = yes, 48.9%")
    assert page.get_by_role("button", name="xray = yes").get_attribute("aria-pressed") == "true"
    assert "xray" in page.url
    smoke = page.get_by_role("button", name="smoke = yes")
    smoke.focus()
    page.keyboard.press("Enter")  # the keyboard too
    expect_label(page, "lung = yes, 64.6%")
    page.get_by_role("button", name="Undo").click()
    expect_label(page, "lung = yes, 48.9%")
    page.get_by_role("button", name="Choose dysp").click()
    slider = page.get_by_role("slider", name="Likelihood of no")
    slider.fill("0.25")
    virtual = {"xray": "yes", "dysp": bbn.Virtual({"yes": 1.0, "no": 0.25})}
    expect_label(page, f"lung = yes, {explorer.net.query('lung', virtual)['yes']:.1%}")
    page.get_by_role("tab", name="MPE").click()
    page.get_by_text("Most probable explanation").wait_for()
    page.get_by_label("Find").fill("bronc")
    page.get_by_label("Find").dispatch_event("change")
    page.get_by_role("tab", name="Explain").click()
    page.get_by_text("What moved bronc").wait_for()
    page.get_by_role("tab", name="Ask next").click()
    page.get_by_text("What would tell most about bronc").wait_for()
    page.get_by_role("tab", name="Sensitivity").click()
    page.get_by_text("by table entry").wait_for()
    with page.expect_download() as download:
        page.get_by_role("button", name="Export SVG").click()
    assert "<svg" in download.value.path().read_text()
    shared = page.url
    page.goto("about:blank")
    page.goto(shared)  # a link carries its evidence
    expect_label(page, f"lung = yes, {explorer.net.query('lung', virtual)['yes']:.1%}")
    page.get_by_role("button", name="Clear evidence").click()
    expect_label(page, "lung = yes, 5.5%")
    assert lung.is_visible()
    assert faults == []


def focused(page: Any) -> str:
    """What has the focus: its name for those who hear the page, or its words."""
    read = "(e => e.getAttribute('aria-label') || e.textContent || e.id)(document.activeElement)"
    return " ".join(page.evaluate(read).split())


def test_the_page_by_keyboard_alone(explorer: Explorer, browser: Any) -> None:
    page = browser.new_page()
    page.goto(explorer.url)
    expect_label(page, "lung = yes, 5.5%")

    def press(*keys: str) -> str:
        for key in keys:
            page.keyboard.press(key)
        return focused(page)

    # Tab passes the controls in reading order; the picture and the panels' tabs are one stop each.
    stops = [press("Tab") for _ in range(9)]
    assert stops[0] == "search"
    assert stops[1:6] == ["Smaller", "Fit", "Larger", "Copy link", "Export SVG"]
    assert stops[6:8] == ["Choose asia", "Node"]
    assert press("Shift+Tab", "Shift+Tab") == "Choose asia"
    # In the picture: arrows, Enter and Space, Escape; the stop that was left is the stop to come back to.
    assert press("ArrowDown").startswith("asia = yes, 1.0%")
    assert press("ArrowRight") == "Choose smoke"
    assert press("ArrowLeft", "ArrowUp") == "Choose asia"
    assert press("End") == "Choose dysp"
    press("ArrowDown", "Enter")
    expect_label(page, "dysp = yes, 100%")
    assert page.get_by_role("button", name="dysp = yes").get_attribute("aria-pressed") == "true"
    assert press("Tab") == "Node"
    assert press("Shift+Tab").startswith("dysp = yes")
    press("Escape")
    expect_label(page, "dysp = yes, 43.6%")
    press("Space")
    expect_label(page, "dysp = yes, 100%")
    press("Control+z")
    expect_label(page, "dysp = yes, 43.6%")
    # Where the focus is can be seen.
    assert (
        page.evaluate("getComputedStyle(document.activeElement.querySelector('.hit')).strokeWidth") == "2.5px"
    )
    # The tabs: arrows and Home.
    press("Tab")
    assert press("ArrowRight") == "MPE"
    page.get_by_text("Most probable explanation").wait_for()
    assert press("ArrowLeft", "ArrowLeft") == "Sensitivity"
    assert press("Home") == "Node"
    # Finding a node.
    assert press("/") == "search"
    page.keyboard.type("tub")
    press("Enter")
    page.get_by_role("heading", name="tub").wait_for()
    assert focused(page) == "Choose tub"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_has_no_faults_of_accessibility(explorer: Explorer, browser: Any, scheme: str) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-core checks the page"
    ).Axe()
    page = browser.new_page(color_scheme=scheme, reduced_motion="reduce")
    page.goto(explorer.url)
    page.get_by_role("button", name="xray = yes").click()
    page.get_by_role("button", name="Choose lung").click()
    for tab in ("Node", "MPE", "Explain", "Ask next", "Sensitivity"):
        page.get_by_role("tab", name=tab).click()
        page.locator("#panel table").wait_for()
        found = axe.run(page).response["violations"]
        assert found == [], [(fault["id"], fault["nodes"][0]["html"]) for fault in found]


def expect_label(page: Any, label: str) -> None:
    """Wait until a state has this label."""
    page.get_by_role("button", name=label, exact=True).wait_for(timeout=5000)
