"""The most probable explanations, alone and against pyAgrum where it finds them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

import bbn
from tests.benchmarks.bench_inference import N_VALUES, SLOW, evidence_sets
from tests.benchmarks.harness import Row

TITLE = "Most probable explanations"
NOTES = """
A tenth of the nodes are observed, with up to 16 different cases of values in turn; the time is per case, and each
answer's probability is checked by that of the whole assignment. pyAgrum's only engine with `mpe`, LazyPropagation, ends
in an error ("Empty tensor") as soon as something is observed on these networks, and on most of them without evidence
too; so it is compared on the two largest on which it answers, without evidence.
"""
OBSERVED = ("alarm", "andes", "mildew", "diabetes", "munin", "water", "barley")
PLAIN = ("sachs", "mildew")


def rows() -> Iterator[Row]:
    """All rows of the table."""
    for name in OBSERVED:
        for k in (1, 5):
            yield observed_row(name, k)
    for name in PLAIN:
        yield plain_row(name)


def observed_row(name: str, k: int) -> Row:
    """The k best, new values for the same observed nodes."""
    net = bbn.example(name)
    cases = evidence_sets(net, 0.1, SLOW.get(name, N_VALUES))
    engine = bbn.JunctionTree(net)

    def ours() -> None:
        for case in cases:
            engine.mpe(case, k)

    def check() -> None:
        for _ in range(60):  # as an engine that is asked often
            ours()
        for case in cases:
            answers = engine.mpe(case, k)
            logs = [one.log_probability for one in answers]
            assert logs == sorted(logs, reverse=True)
            for one in answers:
                whole = engine.log_evidence({**case, **one.states})
                np.testing.assert_allclose(one.log_probability, whole, rtol=0, atol=1e-9)

    what = "best explanation" if k == 1 else f"{k} best explanations"
    return Row(f"{what}, {name}", {"bbn": ours}, check, units=len(cases), seconds=2)


def plain_row(name: str) -> Row:
    """The best without evidence, by engines just made: one that is kept gives the same answer again."""
    import pyagrum as gum

    gum.setNumberOfThreads(1)
    net = bbn.example(name)
    bn = bbn.to_pyagrum(net)

    def theirs() -> Any:
        return gum.LazyPropagation(bn).mpeLog2Posterior()

    def check() -> None:
        best = net.mpe()
        states, log2 = theirs()
        np.testing.assert_allclose(best.log_probability, log2 * math.log(2), rtol=0, atol=1e-9)
        found = {key: net.states(key)[code] for key, code in states.todict().items()}
        np.testing.assert_allclose(math.log(net.probability(found)), best.log_probability, rtol=0, atol=1e-9)

    return Row(
        f"best explanation without evidence, {name}, first answer",
        {"bbn": lambda fresh: fresh.mpe(), "pyAgrum": {"LazyPropagation, mpeLog2Posterior": theirs}},
        check,
        prepare={"bbn": lambda: bbn.BayesianNetwork(net.conditionals, net.name)},
    )
