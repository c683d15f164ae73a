"""Sampling and Monte Carlo inference against pyAgrum, on alarm."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import bbn
from tests.benchmarks.harness import Figure, Row

TITLE = "Sampling and approximate inference"
NOTES = """
Times are per row, or per sample. A Gibbs sample is a sweep, which redraws every variable; one iteration of pyAgrum's
redraws one. Both compute all posteriors, unless the row asks for one: then bbn draws only what can matter. Two
threads share the work on one network and give the same numbers as one. pyAgrum's samplers run with their own period
between checks of the stopping rule and with a period of a thousand samples, and the faster counts; its rows stay in
its own database and are not turned into a table.
"""

EVIDENCE = {"HRBP": "HIGH", "CVP": "LOW"}
TARGET = "LVFAILURE"
N_ROWS = 1_000_000
N_SAMPLES = 2_000_000
N_THEIRS = 20_000
PERIOD = 1_000


def rows() -> Iterator[Row | Figure]:
    """All rows of the table."""
    import pyagrum as gum

    gum.setNumberOfThreads(1)
    warnings.simplefilter("ignore", bbn.BBNWarning)
    yield sample_row()
    yield engine_row(
        "likelihood weighting, all posteriors", "likelihood-weighting", gum.WeightedSampling, 400
    )
    yield engine_row(
        "likelihood weighting, one posterior", "likelihood-weighting", gum.WeightedSampling, 400, TARGET
    )
    yield engine_row("Gibbs sampling, all posteriors", "gibbs", gum.GibbsSampling, 200)
    yield engine_row("Gibbs sampling, one posterior", "gibbs", gum.GibbsSampling, 200, TARGET)
    yield from (loopy_row(name) for name in ("win95pts", "hailfinder", "munin1"))
    yield from thread_rows()
    yield memory_figure()


def sample_row() -> Row:
    """A million rows into a table."""
    import pyagrum as gum

    net = bbn.example("alarm")
    converted = bbn.to_pyagrum(net)
    generator = gum.BNDatabaseGenerator(converted)
    n_theirs = N_ROWS // 20

    def check() -> None:
        drawn = net.sample(N_ROWS, seed=1, n_jobs=1)
        exact = net.posteriors()
        for name in net.names:
            share = np.bincount(drawn[name].cat.codes, minlength=net.variable(name).card) / N_ROWS
            np.testing.assert_allclose(share, exact[name].values, rtol=0, atol=0.003)

    def draw() -> Any:
        generator.drawSamples(n_theirs)
        return converted  # the generator does not keep its network alive

    return Row(
        f"alarm, {N_ROWS:,} rows sampled",
        {
            "bbn": lambda: net.sample(N_ROWS, seed=1, n_jobs=1),
            "pyAgrum": {"BNDatabaseGenerator.drawSamples": draw},
        },
        check,
        target=40,
        units=N_ROWS,
        each={"pyAgrum": n_theirs},
    )


def engine_row(
    work: str, method: str, theirs: Callable[..., Any], target: float, name: str | None = None
) -> Row:
    """Samples per second of one method."""
    net = bbn.example("alarm")
    converted = bbn.to_pyagrum(net)
    exact = net.posteriors(EVIDENCE)

    def ours(n: int = N_SAMPLES) -> Any:
        options: dict[str, Any] = {"method": method, "n_samples": n, "seed": 1, "n_jobs": 1}
        return net.posteriors(EVIDENCE, **options) if name is None else net.query(name, EVIDENCE, **options)

    def run_theirs(period: int | None) -> Any:
        inference = theirs(converted)
        if period is not None:
            inference.setPeriodSize(period)
        inference.setEvidence(EVIDENCE)
        inference.setMaxIter(N_THEIRS)
        inference.setEpsilon(1e-300)
        inference.setMinEpsilonRate(1e-300)
        inference.setMaxTime(1e6)
        inference.makeInference()
        assert inference.nbrIterations() >= N_THEIRS - 1, inference.messageApproximationScheme()
        return inference

    def check() -> None:
        answers = ours()
        values = answers[TARGET] if name is None else answers
        np.testing.assert_allclose(values.values, exact[TARGET].values, rtol=0, atol=0.02)
        for idiom in idioms.values():
            idiom()  # raises unless all its samples are drawn

    idioms = {
        f"{theirs.__name__}, its own period": partial(run_theirs, None),
        f"{theirs.__name__}, setPeriodSize({PERIOD})": partial(run_theirs, PERIOD),
    }
    contenders = {"bbn": ours, "pyAgrum": idioms}
    return Row(f"alarm, {work}", contenders, check, target, units=N_SAMPLES, each={"pyAgrum": N_THEIRS})


def loopy_row(name: str) -> Row:
    """All posteriors by loopy propagation; both pass messages until these settle, pyAgrum's at its own tolerance."""
    import pyagrum as gum

    net = bbn.example(name)
    converted = bbn.to_pyagrum(net)
    row = net.sample(1, seed=0).iloc[0]
    seen = {n: row[n] for n in [n for n in net.names if not net.children(n)][:5]}

    def ours() -> Any:
        return bbn.LoopyBeliefPropagation(net).posteriors(seen)

    def run_theirs() -> Any:
        inference = gum.LoopyBeliefPropagation(converted)
        inference.setEvidence({n: net.variable(n).code(state) for n, state in seen.items()})
        inference.makeInference()
        return inference

    def check() -> None:
        answers, inference = ours(), run_theirs()
        for n, p in answers.items():
            np.testing.assert_allclose(p.values, inference.posterior(n).toarray(), rtol=0, atol=1e-3)

    contenders = {"bbn": ours, "pyAgrum": {"LoopyBeliefPropagation": run_theirs}}
    return Row(f"{name}, loopy propagation, five leaves observed", contenders, check, target=3)


def thread_rows() -> Iterator[Row]:
    """Two threads against one, ours both."""
    net = bbn.example("alarm")
    works: dict[str, Callable[[int], Any]] = {
        "5,000,000 rows sampled": lambda n: net.sample(5 * N_ROWS, seed=1, n_jobs=n, as_codes=True),
        "likelihood weighting": lambda n: net.posteriors(
            EVIDENCE, method="likelihood-weighting", n_samples=N_SAMPLES, seed=1, n_jobs=n
        ),
        "Gibbs sampling": lambda n: net.posteriors(
            EVIDENCE, method="gibbs", n_samples=N_SAMPLES, seed=1, n_jobs=n
        ),
    }
    for what, work in works.items():

        def check(work: Callable[[int], Any] = work) -> None:
            one, two = work(1), work(2)
            for name in one:
                left, right = (getattr(answer[name], "values", answer[name]) for answer in (one, two))
                assert np.array_equal(left, right)

        contenders = {"bbn": lambda work=work: work(2), "bbn, one thread": lambda work=work: work(1)}
        yield Row(f"alarm, {what}, two threads", contenders, check, target=1.8)


def memory_figure() -> Figure:
    """The peak of a process that streams many rows."""
    script = (
        "import resource, bbn\n"
        "net = bbn.example('alarm')\n"
        "next(iter(net.sample(100_000, seed=1, chunks=100_000)))\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "for chunk in net.sample(20_000_000, seed=1, chunks=100_000): pass\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return Figure(
        "alarm, 20,000,000 rows in chunks of 100,000: growth of the peak memory after the first chunk",
        f"{float(out.stdout):.0f} MB",
        "flat",
    )
