"""The interactive page: what its server answers and refuses, and the page itself in a real browser."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import struct
import time
from collections.abc import Iterator
from typing import Any

import pytest

import bbn
from bbn.view.page.explorer import Explorer
from bbn.view.page.server import CLIENTS


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


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/", 200), ("GET", "/nowhere", 404), ("POST", "/beliefs", 200)]
)
def test_every_answer_says_what_a_browser_may_do_with_it(
    method: str, path: str, status: int, explorer: Explorer
) -> None:
    """No code and no connection but the page's own, not kept, not guessed at, and no word of it to other sites."""
    connection = http.client.HTTPConnection(explorer.host, explorer.port, timeout=20)
    connection.request(
        method, path, b"{}" if method == "POST" else None, {"Content-Type": "application/json"}
    )
    answer = connection.getresponse()
    answer.read()
    connection.close()
    assert answer.status == status
    policy = dict(
        part.strip().split(" ", 1) for part in (answer.getheader("Content-Security-Policy") or "").split(";")
    )
    assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert answer.getheader("X-Content-Type-Options") == "nosniff"
    assert answer.getheader("Referrer-Policy") == "no-referrer"
    assert answer.getheader("Cache-Control") == "no-store"


def test_beliefs_are_those_of_the_network(explorer: Explorer) -> None:
    net = explorer.net
    evidence = {"xray": {"state": 0}, "dysp": {"virtual": [0.8, 0.2]}}
    status, told = ask(explorer, "/beliefs", {"evidence": evidence})
    assert status == 200
    expected = net.posteriors({"xray": "yes", "dysp": bbn.Virtual({"yes": 0.8, "no": 0.2})})
    assert told["log_evidence"] == expected.log_evidence
    assert told["beliefs"] == {name: p.values.tolist() for name, p in expected.items()}


def test_doing_is_not_observing(explorer: Explorer) -> None:
    net = explorer.net
    asked = {"evidence": {"dysp": {"state": 0}, "either": {"do": 0}}}
    told = ask(explorer, "/beliefs", asked)[1]
    expected = net.posteriors({"dysp": "yes"}, do={"either": "yes"})
    assert told["beliefs"]["lung"] == expected["lung"].values.tolist()
    alone = ask(explorer, "/beliefs", {"evidence": {"either": {"do": 0}}})[1]["beliefs"]["lung"]
    assert alone == pytest.approx(net.query("lung").values.tolist(), abs=1e-12)  # its causes do not feel it
    assert told["log_evidence"] == expected.log_evidence
    assert ask(explorer, "/mpe", asked)[1]["states"] == net.mpe({"dysp": "yes"}, do={"either": "yes"}).states


def raw(served: Explorer, text: str | bytes, wait: float = 10.0) -> tuple[int, Any]:
    """Send bytes as they are; the status and the answer, (0, what came) where there is none."""
    sent = text.encode("latin-1") if isinstance(text, str) else text
    sent = sent.replace(b"HOST", f"Host: 127.0.0.1:{served.port}\r\nContent-Type: application/json".encode())
    with socket.create_connection((served.host, served.port), timeout=wait) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        came = b""
        while more := connection.recv(1 << 16):
            came += more
    head, _, body = came.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 "):
        return 0, came
    assert f"Content-Length: {len(body)}".encode() in head  # one answer, and all of it
    return int(head.split()[1]), json.loads(body)


def post(headers: str, body: str = "{}") -> str:
    return f"POST /beliefs HTTP/1.1\r\nHOST\r\n{headers}\r\n\r\n{body}"


def virtual(weight: str) -> str:
    body = f'{{"evidence": {{"smoke": {{"virtual": [{weight}, 1]}}}}}}'
    return post(f"Content-Length: {len(body)}", body)


ODD = {
    "negative length": (post("Content-Length: -5"), 400),
    "length with a sign": (post("Content-Length: +2"), 400),
    "length with an underscore": (post("Content-Length: 1_0"), 400),
    "length of no digits": (post("Content-Length: two"), 400),
    "length of odd digits": (post("Content-Length: \xb2"), 400),
    "length of nothing": (post("Content-Length: "), 400),
    "two lengths": (post("Content-Length: 2\r\nContent-Length: 2"), 400),
    "two lengths that differ": (post("Content-Length: 2\r\nContent-Length: 30"), 400),
    "list of lengths": (post("Content-Length: 2, 2"), 400),
    "large length": (post(f"Content-Length: {1 << 21}"), 413),
    "length of 5,000 digits": (post("Content-Length: " + "9" * 5000), 413),
    "no length": (post("Accept: */*"), 411),
    "body too short": (post("Content-Length: 50"), 400),
    "no body": (post("Content-Length: 2", ""), 400),
    "chunks": (post("Transfer-Encoding: chunked", "2\r\n{}\r\n0\r\n\r\n"), 501),
    "chunks and a length": (post("Transfer-Encoding: chunked\r\nContent-Length: 2"), 501),
    "GET with a body": (
        "GET /model HTTP/1.1\r\nHOST\r\nContent-Length: 18\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        400,
    ),
    "not JSON": (post("Content-Length: 3", "{]}"), 400),
    "not text": (post("Content-Length: 3", "\xff\xfe\x00"), 400),
    "deep JSON": (post("Content-Length: 100000", "[" * 100_000), 400),
    "number of 5,000 digits": (virtual("1" * 5000), 400),
    "number beyond floats": (virtual("1" + "0" * 400), 400),
    "garbage": ("\x00\xff garbage\r\n\r\n", 400),
    "one word": ("GET\r\n\r\n", 400),
    "four words": ("GET / HTTP/1.1 x\r\n\r\n", 400),
    "odd version": ("GET / HTTP/1.x\r\nHOST\r\n\r\n", 400),
    "version to come": ("GET / HTTP/9.9\r\nHOST\r\n\r\n", 505),
    "version of the past": ("GET /\r\n\r\n", 400),
    "odd method": ("BREW / HTTP/1.1\r\nHOST\r\n\r\n", 501),
    "long line": (f"GET /{'a' * 70_000} HTTP/1.1\r\n\r\n", 414),
    "long header": (f"GET / HTTP/1.1\r\nX: {'a' * 70_000}\r\n\r\n", 431),
    "many headers": ("GET / HTTP/1.1\r\n" + "X: y\r\n" * 200 + "\r\n", 431),
    "header without a colon": ("GET / HTTP/1.1\r\nHOST\r\nno colon\r\n\r\n", 400),
    "odd address": ("GET http://[ HTTP/1.1\r\nHOST\r\n\r\n", 400),
    "no host": ("GET / HTTP/1.1\r\n\r\n", 400),
    "two hosts": ("GET / HTTP/1.1\r\nHOST\r\nHOST\r\n\r\n", 400),
    "control characters": ("GET /\x1b[2J HTTP/1.1\r\nHOST\r\n\r\n", 404),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_requests_are_refused_by_name_without_a_traceback(
    name: str, explorer: Explorer, capfd: pytest.CaptureFixture[str]
) -> None:
    sent, expected = ODD[name]
    status, told = raw(explorer, sent)
    assert status == expected
    assert list(told) == ["error"]
    assert told["error"]
    assert raw(explorer, post("Content-Length: 2"))[0] == 200  # and the next one is served
    assert capfd.readouterr() == ("", "")


def test_a_client_that_goes_leaves_no_traceback(
    explorer: Explorer, capfd: pytest.CaptureFixture[str]
) -> None:
    for text in (
        post("Content-Length: 2"),
        post("Content-Length: 50"),
        "GET /model HTTP/1.1\r\nHOST\r\n\r\n",
        "GE",
    ):
        connection = socket.create_connection((explorer.host, explorer.port))
        connection.setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )  # reset, not closed
        connection.sendall(text.replace("HOST", f"Host: 127.0.0.1:{explorer.port}").encode())
        connection.close()
    assert raw(explorer, post("Content-Length: 2"))[0] == 200
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("sent", ["GET / HT", "GET / HTTP/1.1\r\nX: ", post("Content-Length: 50")])
def test_a_slow_client_is_given_up(sent: str, explorer: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bbn.view.page.server.SECONDS", 0.3)
    with socket.create_connection((explorer.host, explorer.port), timeout=20) as connection:
        connection.sendall(sent.replace("HOST", f"Host: 127.0.0.1:{explorer.port}").encode())
        for _ in range(1000):  # a byte at a time, which never ends by itself
            try:
                connection.sendall(b"a")
            except ConnectionError:
                break
            time.sleep(0.02)
        else:
            pytest.fail("the server is still listening")


def test_only_so_many_are_served_at_a_time(explorer: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = [socket.create_connection((explorer.host, explorer.port), timeout=10) for _ in range(CLIENTS)]
    with socket.create_connection((explorer.host, explorer.port), timeout=10) as one_more:
        assert one_more.recv(1) == b""
    for connection in waiting:
        connection.close()
    for _ in range(200):  # their threads end a moment later
        with contextlib.suppress(ConnectionError):
            if raw(explorer, post("Content-Length: 2"))[0] == 200:
                return
        time.sleep(0.05)
    pytest.fail("nobody is served any more")


def test_a_fault_is_an_answer_too(
    explorer: Explorer, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(explorer, "answer", lambda *_: 1 / 0)
    status, told = raw(explorer, post("Content-Length: 2"))
    assert (status, told) == (500, {"error": "a fault of bbn: ZeroDivisionError: division by zero"})
    assert capfd.readouterr() == ("", "")


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
        ("/beliefs", {"evidence": {"xray": {"do": 2}}}),
        ("/beliefs", {"evidence": {"xray": {"do": 0, "state": 0}}}),
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


def test_every_panel_works_within_the_memory_limit() -> None:
    net = bbn.example("asia")
    page = Explorer(net, memory_limit="100 bytes")
    try:
        for path in ("/beliefs", "/mpe", "/explain", "/information", "/sensitivity"):
            status, told = ask(page, path, {"evidence": {"xray": {"state": 0}}, "target": "lung", "state": 0})
            assert status == 400
            assert "100 bytes" in told["error"]
    finally:
        page.close()


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
    page.get_by_label("What bars set").select_option("virtual")
    slider = page.get_by_role("slider", name="Likelihood of no")
    slider.fill("0.25")
    virtual = {"xray": "yes", "dysp": bbn.Virtual({"yes": 1.0, "no": 0.25})}
    expect_label(page, f"lung = yes, {explorer.net.query('lung', virtual)['yes']:.1%}")
    page.get_by_role("tab", name="MPE").click()
    page.get_by_role("heading", name="Most probable explanation").wait_for()
    page.get_by_label("Find", exact=True).fill("bronc")
    page.keyboard.press("Enter")
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
    stops = [press("Tab") for _ in range(10)]
    assert stops[0] == "search"
    assert stops[1:7] == ["Smaller", "Fit", "Larger", "Copy link", "Export SVG", "Export PNG"]
    assert stops[7:9] == ["Choose asia", "Node"]
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
    assert press("ArrowRight", "ArrowRight", "ArrowRight") == "MPE"
    page.get_by_role("heading", name="Most probable explanation").wait_for()
    assert press("ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowLeft") == "Sensitivity"
    assert press("Home") == "Node"
    # Finding a node.
    assert press("/") == "search"
    page.keyboard.type("tub")
    press("Enter")
    page.get_by_role("heading", name="tub").wait_for()
    assert focused(page) == "Choose tub"


def faults_of(page: Any) -> list[Any]:
    """What axe-core finds wrong with a page as it is now."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-core checks the page")
    found = axe.Axe().run(page).response["violations"]
    return [(fault["id"], fault["nodes"][0]["html"]) for fault in found]


DESK, PHONE = (1280, 800), (390, 844)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE])
def test_the_page_has_no_faults_of_accessibility(
    explorer: Explorer, browser: Any, scheme: str, size: tuple[int, int]
) -> None:
    page = browser.new_page(
        color_scheme=scheme, reduced_motion="reduce", viewport={"width": size[0], "height": size[1]}
    )
    page.goto(explorer.url)
    page.get_by_role("button", name="xray = yes").click()
    page.get_by_role("button", name="Choose either").click()
    page.get_by_role("button", name="Do yes").click()
    page.get_by_role("button", name="Choose lung").click()
    page.get_by_text("Table", exact=True).click()
    page.locator("#panel table").wait_for()
    assert faults_of(page) == []
    page.get_by_role("tab", name="Evidence").click()
    page.get_by_role("button", name="Keep").click()
    for tab in ("Evidence", "Changes", "MPE", "Explain", "Ask next", "Sensitivity"):
        page.get_by_role("tab", name=tab).click()
        page.locator("#panel table").first.wait_for()
        assert faults_of(page) == [], tab


OUTSIDE = """() => {
  const room = document.getElementById("canvas").getBoundingClientRect();
  const cards = [...document.querySelectorAll(".node .card")].map((card) => card.getBoundingClientRect());
  return [cards.length, cards.filter((card) => card.left < room.left || card.top < room.top ||
    card.right > room.right || card.bottom > room.bottom).length];
}"""
"""The number of cards, and of those that are not wholly in view."""


FITTED = ["asia", "alarm", "hailfinder", "win95pts", "andes", "mildew", "diabetes", "munin"]
"""Small, wide, high and large ones."""


@pytest.mark.slow
def test_networks_of_every_size_fit_a_desk_and_a_phone(browser: Any) -> None:
    page = browser.new_page()
    page.route("**/beliefs", lambda route: route.fulfill(json={"beliefs": {}, "log_evidence": 0.0}))
    for name in FITTED:
        net = bbn.example(name)
        served = net.explore()
        page.set_viewport_size({"width": 1280, "height": 800})
        page.goto(served.url)
        page.get_by_text("P(evidence)").wait_for()
        assert page.evaluate(OUTSIDE) == [len(net), 0], name
        page.set_viewport_size({"width": 390, "height": 844})
        page.get_by_role("button", name="Larger").click()
        page.get_by_role("button", name="Fit").click()
        assert page.evaluate(OUTSIDE) == [len(net), 0], name
        served.close()


def test_the_picture_zooms_about_the_pointer_and_pans(browser: Any) -> None:
    served = bbn.example("alarm").explore()
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(served.url)
    expect_label(page, "HR = HIGH, 81.5%")
    middle = (
        "() => (r => [r.x + r.width / 2, r.y + r.height / 2])"
        "(document.querySelector('[aria-label=\"Choose CATECHOL\"] .head').getBoundingClientRect())"
    )
    x, y = page.evaluate(middle)
    page.mouse.move(x, y)
    before = page.evaluate("bbn.picture.place.k")
    page.mouse.wheel(0, -300)  # the card under the pointer stays there
    assert page.evaluate("bbn.picture.place.k") > before * 1.3
    assert page.evaluate(middle) == pytest.approx([x, y], abs=0.5)
    page.mouse.move(20, 700)
    page.mouse.down()
    page.mouse.move(70, 720, steps=4)
    page.mouse.up()
    assert page.evaluate(middle) == pytest.approx([x + 50, y + 20], abs=0.5)
    page.mouse.move(600, 400)
    page.mouse.wheel(0, 3000)  # too small for rows: names, then dots
    assert page.evaluate("bbn.picture.level") in ("names", "dots")
    assert not page.get_by_role("button", name="HR = HIGH").is_visible()
    page.keyboard.press("/")
    page.keyboard.type("ventl")
    page.keyboard.press("Enter")  # found, and large enough to read
    assert page.evaluate("bbn.picture.level") == "cards"
    assert page.get_by_role("button", name="VENTLUNG = ZERO").is_visible()
    served.close()


def test_find_lists_names_and_states_by_parts(browser: Any) -> None:
    served = bbn.example("alarm").explore()
    page = browser.new_page()
    page.goto(served.url)
    page.get_by_text("P(evidence)").wait_for()
    page.keyboard.press("/")
    page.keyboard.type("volu")
    found = page.locator("#found li")
    names = found.all_inner_texts()
    assert sorted(names) == ["LVEDVOLUME", "STROKEVOLUME"]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert focused(page) == f"Choose {names[1]}"
    page.keyboard.press("/")
    page.keyboard.type("esoph")
    assert found.all_inner_texts() == ["INTUBATION (ESOPHAGEAL)"]
    page.get_by_label("Find", exact=True).fill("nothing like it")
    assert found.all_inner_texts() == ["nothing found"]
    served.close()


def test_evidence_is_listed_ruled_out_done_and_taken_back(explorer: Explorer, browser: Any) -> None:
    net, page = explorer.net, browser.new_page()
    page.goto(explorer.url)
    expect_label(page, "lung = yes, 5.5%")
    page.get_by_role("button", name="Choose either").click()
    page.get_by_role("button", name="Rule out no").click()
    expect_label(page, f"lung = yes, {net.query('lung', {'either': 'yes'})['yes']:.1%}")
    page.get_by_role("button", name="Do yes").click()
    expect_label(page, "lung = yes, 5.5%")
    assert page.locator(".cut").count() == 2  # the arcs from lung and tub
    page.get_by_role("tab", name="Evidence").click()
    page.get_by_role("button", name="do either = yes", exact=True).wait_for()
    page.get_by_role("tab", name="Changes").click()
    first = page.locator("#panel tr").nth(1).inner_text().split("\t")
    assert first[0].startswith("either")
    page.get_by_role("button", name="Undo").click()
    expect_label(page, f"lung = yes, {net.query('lung', {'either': 'yes'})['yes']:.1%}")
    page.get_by_role("button", name="Redo").click()
    expect_label(page, "lung = yes, 5.5%")
    page.get_by_role("tab", name="Evidence").click()
    page.get_by_role("button", name="Remove do either = yes").click()
    page.get_by_text("Nothing is observed yet").wait_for()


@pytest.mark.parametrize(
    ("fragment", "said"),
    [
        (
            "#e=%7B%22ghost%22%3A%7B%22state%22%3A0%7D%7D",
            "the link has evidence that this network does not: ghost",
        ),
        (
            "#e=%7B%22lung%22%3A%7B%22state%22%3A9%7D%7D",
            "the link has evidence that this network does not: lung",
        ),
        ("#e=nonsense", "the link holds no evidence that can be read"),
    ],
)
def test_a_bad_link_says_so(explorer: Explorer, browser: Any, fragment: str, said: str) -> None:
    page = browser.new_page()
    page.goto(explorer.url + fragment)
    page.get_by_text(said).wait_for()
    expect_label(page, "lung = yes, 5.5%")


def expect_label(page: Any, label: str) -> None:
    """Wait until a state has this label."""
    page.get_by_role("button", name=label, exact=True).wait_for(timeout=5000)
