"""What results show in a notebook: tables of HTML in which no name can be anything but text."""

from __future__ import annotations

import pickle
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import bbn
from bbn.core.display import MOST, Bar, Table

EVIL = "<script>alert('&\"')</script>"


class Reader(HTMLParser):
    """The cells of a table by row, and every tag that occurs; a tag left open is an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.tags: set[str] = set()
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def evil_network() -> bbn.BayesianNetwork:
    a, b = bbn.Variable(EVIL, [EVIL, "no"]), bbn.Variable("B", ["<b>", "&amp;"])
    return bbn.BayesianNetwork(
        [bbn.CPT(a, table=[0.25, 0.75]), bbn.CPT(b, [a], [[0.9, 0.1], [0.2, 0.8]])], name=EVIL
    )


def results() -> dict[str, Any]:
    net = evil_network()
    data = net.sample(40, seed=1)
    holes = net.sample(40, seed=1, missing=0.2)
    given = {"B": "<b>"}
    space = bbn.HypothesisSpace({EVIL: 0.5, "h": 0.5}, lambda h, d: 0.25 if h == "h" else 0.5)
    return {
        "posterior": net.query(EVIL, given),
        "joint": net.query([EVIL, "B"]),
        "sampled": net.query(EVIL, given, "likelihood-weighting", n_samples=5000, seed=1),
        "posteriors": net.posteriors(),
        "none left": net.posteriors({EVIL: "no", "B": "<b>"}),
        "assignment": net.mpe(given),
        "table": net["B"],
        "factor": net.joint(),
        "scalar": bbn.Factor([], np.array(0.5)),
        "explanation": net.explain(EVIL, given),
        "sensitivity": net.sensitivity(EVIL, given),
        "information": net.information(EVIL),
        "fit": bbn.fit_em(net, holes, prior=bbn.BDeu(1), restarts=2, seed=1),
        "learned": bbn.learn(data),
        "comparison": bbn.compare([(EVIL, "B"), ("C", "D")], [("B", EVIL), ("E", "C")]),
        "cross-validation": bbn.cross_validate(data, "chow-liu", k=2, seed=1),
        "strength": bbn.arc_strength(data, "chow-liu", n=3, seed=1),
        "hypotheses": space,
        "lengths": space.mdl([1, 1]),
    }


RESULTS = results()


@pytest.mark.parametrize("name", RESULTS)
def test_names_are_text_and_nothing_else(name):
    html = RESULTS[name]._repr_html_()
    read = Reader(html)
    assert read.tags <= {"table", "caption", "thead", "tbody", "tr", "th", "td", "div", "pre"}
    assert "script>" not in html


def test_the_numbers_are_those_of_the_result():
    posterior = RESULTS["posterior"]
    head, *rows = Reader(posterior._repr_html_()).rows
    assert head == [EVIL, "probability", ""]
    assert [row[:2] for row in rows] == [[state, f"{posterior[state]:.6g}"] for state in (EVIL, "no")]
    head, *rows = Reader(RESULTS["table"]._repr_html_()).rows
    assert head == [EVIL, "<b>", "&amp;"]
    assert rows == [[EVIL, "0.9", "0.1"], ["no", "0.2", "0.8"]]
    read = Reader(RESULTS["information"]._repr_html_())
    assert [row[0] for row in read.rows[1:]] == list(RESULTS["information"])


def test_a_bar_is_as_long_as_its_number():
    html = Table(["p", ""], [["0.25", Bar(0.25)], ["0", Bar(0.0)], ["inf", Bar(float("inf"))]]).html
    assert re.findall(r"height:0.8em;width:([\d.]+)em", html) == ["2.500", "0.000", "10.000"]


def test_long_tables_are_cut_in_notebooks_and_whole_in_print():
    table = Table(["n"], [[str(i)] for i in range(MOST + 5)])
    assert len(Reader(table.html).rows) == 1 + MOST
    assert "… 5 more rows" in table.html
    assert len(str(table).splitlines()) == 2 + MOST + 5


def test_print_and_notebook_hold_the_same_cells():
    for name in ("posterior", "joint", "posteriors", "table", "explanation", "hypotheses"):
        printed = str(RESULTS[name])
        for row in Reader(RESULTS[name]._repr_html_()).rows:
            for cell in row:
                assert cell in printed


def test_information_is_still_a_dict():
    bits = RESULTS["information"]
    assert bits == dict(bits)
    assert pickle.loads(pickle.dumps(bits)) == bits
    assert str(bits).split()[:2] == ["variable", "bits"]
