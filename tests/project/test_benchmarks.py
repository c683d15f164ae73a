"""The machinery of the benchmarks: other libraries run by their fastest idiom, and the page says what was measured."""

import time

import numpy as np
import pytest

import bbn
from tests.benchmarks import __main__ as bench
from tests.benchmarks import against
from tests.benchmarks.harness import Row, measure
from tests.support import oracle


def test_a_library_needs_its_idioms_named():
    with pytest.raises(ValueError, match="name the idioms of pyAgrum"):
        Row("work", {"bbn": lambda: None, "pyAgrum": lambda: None}, lambda: None)


def test_the_fastest_idiom_counts_and_is_named():
    idioms = {"slow": lambda: time.sleep(0.02), "fast": lambda: None, "slower": lambda: time.sleep(0.03)}
    seconds, chosen = measure(
        Row("work", {"bbn": lambda: None, "pgmpy": idioms}, lambda: None, units=2, seconds=0)
    )
    assert chosen == {"pgmpy": "fast"}
    assert seconds["pgmpy"] < 0.01


def test_the_check_comes_first():
    def fail():
        raise AssertionError("they differ")

    with pytest.raises(AssertionError, match="they differ"):
        measure(Row("work", {"bbn": lambda: pytest.fail("timed before it was checked")}, fail))


CASES = {
    "the same nodes observed": [
        {"xray": "yes", "smoke": "no"},
        {"xray": "no", "smoke": "no"},
        {"xray": "no", "smoke": "yes"},
    ],
    "other nodes each time": [
        {"xray": "yes"},
        {"xray": "no", "smoke": "yes"},
        {"dysp": "yes", "smoke": "no"},
    ],
}


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("last", [0, 1, 2])
def test_every_idiom_of_pyagrum_gives_the_posterior_of_the_last_case(kind, last):
    pytest.importorskip("pyagrum")
    from tests.benchmarks import pyagrum_idioms

    net = bbn.example("asia")
    cases = CASES[kind][last + 1 :] + CASES[kind][: last + 1]
    idioms = pyagrum_idioms.sweeps(bbn.to_pyagrum(net), cases, ["lung"])
    assert len(idioms) >= 9
    assert any("chgEvidence" in idiom for idiom in idioms)
    expected = oracle.posterior(net, ["lung"], cases[-1])
    pyagrum_idioms.check(idioms, {"lung": np.array([expected[(state,)] for state in net.states("lung")])})


def test_the_page_is_made_of_the_results():
    assert bench.page(bench.benchmarks()) == bench.PAGE.read_text()


def test_the_table_names_each_idiom():
    row = {
        "work": "w",
        "seconds": {"bbn": 1.0, "pyAgrum": 3.0},
        "target": None,
        "against": "pyAgrum",
        "idioms": {"pyAgrum": "chgEvidence"},
    }
    assert "| w | 1 s | 3 s, 3x |  | pyAgrum: chgEvidence |" in bench.timed_table([row])


CHECKOUT = """
import time
from types import SimpleNamespace as Row

def compute(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass

def rows():
    for work, seconds in {rows}:
        yield Row(work=work, contenders={{"bbn": lambda s=seconds: compute(s)}}, prepare={{}}, each={{}}, units=2)
    yield Row(work="a figure", value="3 MB")
{last}
"""


def checkout(root, rows, last=""):
    """A folder with one module of benchmarks, which computes for as long as it is told."""
    folder = root / "tests" / "benchmarks"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "bench_busy.py").write_text(CHECKOUT.format(rows=rows, last=last))
    return root


def test_two_checkouts_are_compared_row_by_row(tmp_path, monkeypatch, capfd):
    new = checkout(tmp_path / "new", [("only here", 0.0), ("slower", 0.03), ("faster", 0.01)])
    old = checkout(
        tmp_path / "old", [("slower", 0.01), ("gone", 0.0), ("faster", 0.03)], last="    missing()"
    )
    monkeypatch.setattr(against, "ROOT", new)
    monkeypatch.setattr(against, "SAVED", tmp_path / "build" / "against.tsv")
    monkeypatch.setattr(against, "ROUNDS", 2)
    assert against.compare(old, ["busy"]) == 0
    head, *lines = [
        line.split("\t") for line in (tmp_path / "build" / "against.tsv").read_text().splitlines()
    ]
    assert head == ["new/old", "new s", "old s", "row"]
    assert [line[3] for line in lines] == [
        "busy: slower",
        "busy: faster",
    ]  # the worst first, and only what both have
    for ratio, ours, theirs, _ in lines:
        assert float(ratio) == pytest.approx(float(ours) / float(theirs), rel=1e-2)
    assert float(lines[0][1]) >= 0.015  # per piece: two in each call
    assert "ends early" in capfd.readouterr().err
    assert against.compare(old, ["busy:fast"]) == 0
    assert "slower" not in (tmp_path / "build" / "against.tsv").read_text()
