"""Effects of many causes: noisy-ORs and two-layer networks, against pyAgrum's noisy-OR nodes."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyagrum
import pytest

import bbn
from tests.benchmarks.harness import Figure, Row

TITLE = "Effects of many causes"
NOTES = """
A noisy-OR of n causes, the posterior of each cause given the effect and one cause, whose state changes. pyAgrum's node
takes n + 2 numbers to state, but its engine makes the table, and 63 causes are refused, so it is asked about up to 16;
of more our times stand alone, as do those of a diagnosis (600 diseases, 12 findings present, 40 absent) and of
explanations. pgmpy has no such node. "First" is a network that was not asked before.
"""


def rows() -> Iterator[Row | Figure]:
    """Posteriors, explanations, files."""
    for n in (8, 12, 16):
        yield _against(n)
    for n in (30, 100):
        net = _noisy_or(n)
        fresh = [partial(_read, bbn.BayesianNetwork(net.conditionals), n, 0) for _ in range(5)]
        again = [partial(_read, net, n, k % 2) for k in range(20)]
        yield Figure(f"noisy-OR of {n} causes: every posterior, first", _least(fresh))
        yield Figure(f"noisy-OR of {n} causes: every posterior, again", _least(again))
    yield from _diagnosis()
    yield from _explanations()
    yield _saved()


def _numbers(n: int) -> tuple[list[float], list[float]]:
    """Priors and links."""
    rng = np.random.default_rng(n)
    return rng.uniform(0.01, 0.2, n).tolist(), rng.uniform(0.1, 0.9, n).tolist()


def _noisy_or(n: int) -> bbn.BayesianNetwork:
    priors, links = _numbers(n)
    causes = [bbn.Variable(f"C{i}", [False, True]) for i in range(n)]
    parts = [bbn.CPT(v, table=[1 - p, p]) for v, p in zip(causes, priors, strict=True)]
    effect = bbn.NoisyOr(bbn.Variable("E", [False, True]), causes, links, leak=0.02)
    return bbn.BayesianNetwork([*parts, effect])


def _theirs(n: int) -> pyagrum.BayesNet:
    net = pyagrum.BayesNet()
    effect = net.addNoisyORCompound(pyagrum.LabelizedVariable("E", "E", 2), 0.02)
    for i, (p, link) in enumerate(zip(*_numbers(n), strict=True)):
        node = net.add(pyagrum.LabelizedVariable(f"C{i}", f"C{i}", 2))
        net.cpt(node).fillWith([1 - p, p])
        net.addWeightedArc(node, effect, 1 - 0.98 * (1 - link))  # of the cause and the leak together
    return net


def _read(net: bbn.BayesianNetwork, n: int, code: int) -> list[float]:
    """P(cause | effect, the first cause) of each other cause."""
    found = net.posteriors({"E": True, "C0": bool(code)})
    return [float(found[f"C{i}"].values[1]) for i in range(1, n)]


def _against(n: int) -> Row:
    net, engine = _noisy_or(n), pyagrum.LazyPropagation(_theirs(n))
    engine.addEvidence("E", 1)
    engine.addEvidence("C0", 0)
    ours, others = itertools.cycle([0, 1]), itertools.cycle([0, 1])

    def changed(code: int) -> list[float]:
        engine.chgEvidence("C0", code)
        engine.makeInference()
        return [float(engine.posterior(f"C{i}")[1]) for i in range(1, n)]

    def check() -> None:
        for code in (0, 1):
            assert _read(net, n, code) == pytest.approx(changed(code), abs=1e-9)

    return Row(
        f"noisy-OR of {n} causes: every posterior, again",
        {
            "bbn": lambda: _read(net, n, next(ours)),
            "pyAgrum": {"LazyPropagation, chgEvidence": lambda: changed(next(others))},
        },
        check,
    )


def _diagnosis() -> Iterator[Figure]:
    from tests.model.test_noisy_max import diagnosis

    rng = np.random.default_rng(5)
    net = diagnosis(600, 4000, 30, rng)[0]
    chosen = rng.choice(4000, 52, replace=False).tolist()
    evidence = {f"F{f}": "yes" if k < 12 else "no" for k, f in enumerate(chosen)}
    seen = net.subnetwork([*(f"D{i}" for i in range(600)), *evidence])
    what = "600 diseases, 12 findings present and 40 absent: every posterior, "

    def asked() -> object:
        return [own.values for own in seen.posteriors(evidence).values()]

    yield Figure(f"{what}first", _least([asked]))
    yield Figure(f"{what}again", _least([asked] * 5))
    whole = [partial(net.posteriors, evidence)] * 3
    yield Figure(
        "the same with 3,948 findings that nobody looked for: every posterior of them too", _least(whole)
    )


def _explanations() -> Iterator[Figure]:
    from tests.model.test_noisy_max import equal_links

    equal, _ = equal_links(np.full(100, 0.45), 0.2, 0.01)
    yield Figure("mpe, 100 equal causes of which three are on", _least([lambda: equal.mpe({"E": "yes"})] * 3))


def _saved() -> Figure:
    net = _noisy_or(12)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "net.yaml"
        net.save(path)
        return Figure("noisy-OR of 12 causes: its YAML file", f"{path.stat().st_size:,} bytes")


def _least(calls: Sequence[Callable[[], object]]) -> str:
    """The shortest of some calls."""
    took = []
    for call in calls:
        start = time.perf_counter()
        call()
        took.append(time.perf_counter() - start)
    return f"{1e3 * min(took):.3g} ms"
