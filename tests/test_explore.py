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


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_the_page_in_a_browser(explorer: Explorer) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=CHROMIUM,
            args=[
                "--no-sandbox",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
            ],
        )
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
        browser.close()


def expect_label(page: Any, label: str) -> None:
    """Wait until a state has this label."""
    page.get_by_role("button", name=label, exact=True).wait_for(timeout=5000)
