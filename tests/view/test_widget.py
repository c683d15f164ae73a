"""The page in a notebook: the widget's traits, its messages, and the page in a frame driven through them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import bbn
from bbn.view.page import assets

pytest.importorskip("anywidget", reason="the widget is an optional extra")


@pytest.fixture
def page() -> Any:
    return bbn.example("asia").explore()


def sent_by(widget: Any, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the widget sends to its page from now on."""
    sent: list[dict[str, Any]] = []
    monkeypatch.setattr(widget, "send", sent.append)
    return sent


def test_clicks_are_followed_by_evidence_and_posteriors(page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    net, sent = page.net, sent_by(page.widget, monkeypatch)
    seen: list[Any] = []
    page.observe(lambda change: seen.append(change["new"]), "evidence")
    evidence = {"xray": {"state": 0}, "dysp": {"soft": [0.7, 0.3]}, "smoke": {"do": 1}}
    page.widget._asked(
        None, {"id": "a-1", "path": "beliefs", "body": {"evidence": evidence, "current": True}}, []
    )
    given = {"xray": "yes", "dysp": bbn.Soft({"yes": 0.7, "no": 0.3})}
    assert page.evidence == page.widget.evidence == given
    assert seen == [given]
    assert page.done == page.widget.done == {"smoke": "no"}
    expected = net.posteriors(given, do={"smoke": "no"})
    assert page.posteriors["lung"] == expected["lung"]
    (answer,) = sent
    assert answer["id"] == "a-1"
    np.testing.assert_allclose(answer["told"]["beliefs"]["lung"], expected["lung"].values, atol=1e-12)


def test_evidence_set_in_python_goes_to_the_page(page: Any) -> None:
    page.evidence = {"xray": "no", "dysp": bbn.Not("no")}
    assert page.widget.findings == {"xray": {"state": 1}, "dysp": {"virtual": [1.0, 0.0]}}
    page.widget.evidence = {"lung": "yes"}  # the trait does too
    assert page.evidence == {"lung": "yes"}
    assert page.widget.findings == {"lung": {"state": 0}}
    with pytest.raises(bbn.EvidenceError, match="xra"):
        page.evidence = {"xra": "yes"}
    assert page.evidence == {"lung": "yes"}


def test_posteriors_are_a_trait(page: Any) -> None:
    seen: list[Any] = []
    page.observe(lambda change: seen.append(change["new"]["lung"]["yes"]), "posteriors")
    page.evidence = {"xray": "yes"}
    assert seen == [pytest.approx(page.net.query("lung", {"xray": "yes"})["yes"], abs=1e-12)]


def test_bad_messages_get_an_error(page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = sent_by(page.widget, monkeypatch)
    for content in (None, "beliefs", {"path": 3}):
        page.widget._asked(None, content, [])
    assert sent == []
    for path, body in (
        ("nothing", {}),
        ("beliefs", {"evidence": {"ghost": {"state": 0}}}),
        ("edit", {"op": "undo"}),
    ):
        page.widget._asked(None, {"id": 1, "path": path, "body": body}, [])
        assert sent.pop()["error"]


def test_no_port_is_opened_for_a_widget(page: Any) -> None:
    assert "application/vnd.jupyter.widget-view+json" in page._repr_mimebundle_()[0]
    assert page._server is None


def test_without_anywidget_the_file_is_shown_in_a_frame(page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "bbn.view.page.widget", None)
    shown = page._repr_mimebundle_()["text/html"]
    assert shown.startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    assert "sandbox=" in shown
    large = bbn.example("barley").explore()  # too large for a file: from the server
    assert f'src="{large.url}"' in large._repr_html_()
    large.close()


HOST = """async ([code, page]) => {
  const { default: widget } = await import("data:text/javascript," + encodeURIComponent(code));
  const state = { page, findings: {} }, heard = {};
  const model = {
    get: (key) => state[key], set: (key, value) => { state[key] = value; },
    save_changes: () => saved(JSON.stringify(state.findings)),
    on: (name, act) => { heard[name] = act; }, off: () => {},
    send: async (data) => heard["msg:custom"](JSON.parse(await asked(JSON.stringify(data)))),
  };
  window.fromPython = (findings) => { state.findings = findings; heard["change:findings"](); };
  widget.render({ model, el: document.body });
}"""
"""A notebook's part, in few words: it renders the widget and passes messages on."""


def test_the_widget_in_a_browser(page: Any, browser: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    widget, tab = page.widget, browser.new_page(viewport={"width": 1100, "height": 700})
    sent = sent_by(widget, monkeypatch)
    saved: list[Any] = []

    def asked(text: str) -> str:
        widget._asked(None, json.loads(text), [])
        return json.dumps(sent.pop())

    tab.expose_function("asked", asked)
    tab.expose_function("saved", lambda text: saved.append(json.loads(text)))
    tab.evaluate(HOST, [assets.text("widget.js"), widget.page])
    frame = tab.frame_locator("iframe")
    frame.get_by_role("button", name="lung = yes, 5.5%").wait_for()
    frame.get_by_role("button", name="xray = yes").click()
    frame.get_by_role("button", name="lung = yes, 48.9%").wait_for()
    assert page.evidence == {"xray": "yes"}
    assert saved[-1] == {"xray": {"state": 0}}
    tab.evaluate("fromPython({ smoke: { state: 0 } })")
    frame.get_by_role("button", name="lung = yes, 10.0%").wait_for()
    assert page.evidence == {"smoke": "yes"}
    frame.get_by_role("tab", name="Sensitivity").click()
    frame.get_by_text("xray = no) by table entry").wait_for()
