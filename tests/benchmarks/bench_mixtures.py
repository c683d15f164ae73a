"""Gaussians against scikit-learn: the mixture's EM, and naive Bayes with real-valued columns."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn import mixture
from sklearn.naive_bayes import GaussianNB

import bbn
from tests.benchmarks.harness import Row, layouts

TITLE = "Mixtures of Gaussians"
NOTES = """
EM for a mixture of 5 Gaussians on 1,000,000 rows of 4 columns, against scikit-learn's diagonal `GaussianMixture` from
the same start, without its regularisation: first one iteration (an M step and the E step after it), then a whole run
of ten. Then `NaiveBayes(continuous=True)` against `GaussianNB` on the same rows, and both on wide tables. Both sides
use one thread (two make scikit-learn's EM slower here). bbn reads an ordinary array, row after row; scikit-learn is
given that array and one stored by columns, and the faster counts. Last, smoothing a linear-Gaussian chain of hidden
numbers, each observed through a noisy one, at two lengths: a chain four times as long should take four times as long.
"""
STEPS = 10


def rows() -> Iterator[Row]:
    """One iteration of EM, and fit and predict_proba of naive Bayes."""
    rng = np.random.default_rng(0)
    n, d, k = 1_000_000, 4, 5
    labels = rng.integers(0, k, n)
    centres = rng.normal(scale=2.0, size=(k, d))
    x = centres[labels] + rng.normal(size=(n, d))
    yield from _em(x, centres + rng.normal(scale=0.5, size=(k, d)))
    yield from _naive_bayes(x, labels)
    yield from _wide(rng)
    yield from _chains(rng)


def _wide(rng: np.random.Generator) -> Iterator[Row]:
    """Tables with many columns, where what is done once per column shows."""
    x = rng.normal(size=(300, 500))
    x[:150] += 1.0
    start = np.stack([x[:150].mean(axis=0), x[150:].mean(axis=0)])

    def ours() -> Any:
        return bbn.GaussianMixture(2, means_init=start, equal_weights=False, tol=0.0, max_iter=STEPS).fit(x)

    def check() -> None:
        np.testing.assert_allclose(ours().lower_bound_, _mixture(start, STEPS).fit(x).score(x), rtol=1e-6)

    yield Row(
        f"GaussianMixture.fit, 300 × 500, k = 2, {STEPS} iterations",
        {"bbn": ours, "scikit-learn": _mixture_fits(x, start)},
        check,
        target=1.0,
        seconds=5,
    )
    for n, d in ((1_000, 1_000), (20_000, 50)):
        table, labels = rng.normal(size=(n, d)), rng.integers(0, 3, n)
        yield _naive_bayes_fit(table, labels)


def _naive_bayes_fit(x: np.ndarray, labels: np.ndarray) -> Row:
    def check() -> None:
        ours = bbn.NaiveBayes(continuous=True).fit(x, labels).predict_proba(x)
        theirs = GaussianNB(var_smoothing=0).fit(x, labels).predict_proba(x)
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-10)

    return Row(
        f"NaiveBayes(continuous=True), fit {x.shape[0]:,} × {x.shape[1]:,}",
        {
            "bbn": lambda: bbn.NaiveBayes(continuous=True).fit(x, labels),
            "scikit-learn": _naive_bayes_fits(x, labels),
        },
        check,
        target=1.0,
        seconds=5,
    )


def _chains(rng: np.random.Generator) -> Iterator[Row]:
    """All posteriors of a hidden chain, which no other library here has."""

    def nothing() -> None:
        """The tests hold it to the smoother of Rauch, Tung and Striebel."""

    for n in (200, 800):
        parts: list[Any] = []
        for i in range(n):
            x = bbn.Gaussian(f"x{i}", [parts[-2].variable] if i else [], 0.0, 0.5, [0.95] if i else None)
            parts += [x, bbn.Gaussian(f"y{i}", [x.variable], 0.0, 0.25, [1.0])]
        net = bbn.BayesianNetwork(parts)
        evidence = {f"y{i}": float(number) for i, number in enumerate(rng.normal(size=n))}

        def ask(net: Any = net, evidence: Any = evidence) -> Any:
            return net.posteriors(evidence)

        yield Row(f"smoothing a chain of {n} hidden numbers", {"bbn": ask}, nothing, seconds=5)


def _em(x: np.ndarray, start: np.ndarray) -> Iterator[Row]:
    ours = _Ours(x, start)
    theirs = {f"GaussianMixture, {name}": _Theirs(array, start) for name, array in layouts(x).items()}

    def check() -> None:
        for _ in range(3):
            ours()
        for model in theirs.values():
            for _ in range(3):
                model()
            np.testing.assert_allclose(ours.log_likelihood() / len(x), model.log_likelihood(), atol=1e-8)

    yield Row(
        "EM, one iteration, 1,000,000 × 4, k = 5",
        {"bbn": ours, "scikit-learn": theirs},
        check,
        target=1.0,
        seconds=20,
    )
    net = _network(start)
    columns = {f"x{f}": np.ascontiguousarray(x[:, f]) for f in range(x.shape[1])}

    def whole() -> Any:
        return bbn.fit_em(net, columns, hidden=["Z"], max_iter=STEPS, tol=0.0, n_jobs=1, progress=False)

    def same() -> None:
        found = _mixture(start, STEPS).fit(x)
        np.testing.assert_allclose(whole().log_likelihood / len(x), found.score(x), atol=1e-8)

    yield Row(
        f"fit_em against GaussianMixture.fit, {STEPS} iterations and all around them",
        {
            "bbn": whole,
            "scikit-learn": _mixture_fits(x, start),
        },
        same,
        target=1.0,
        seconds=20,
    )


class _Ours:
    """One iteration: the M step, and the E step at where it leads."""

    def __init__(self, x: np.ndarray, start: np.ndarray) -> None:
        from bbn.data import code
        from bbn.learning.incomplete.em import EM
        from bbn.learning.incomplete.problem import Problem

        names = [f"x{f}" for f in range(x.shape[1])]
        table = code({name: x[:, f] for f, name in enumerate(names)}, continuous=names)
        self.problem = Problem(_network(start), table, ["Z"], None, None, [], [], 1)
        self.method = EM()
        self.point = self.problem.evaluate(self.problem.start_tables())

    def __call__(self) -> None:
        self.point, _ = self.method.step(self.problem, self.point, None)

    def log_likelihood(self) -> float:
        return self.point.log_likelihood


class _Theirs:
    """One iteration: the M step of the responsibilities at hand, and the E step after it."""

    def __init__(self, x: np.ndarray, start: np.ndarray) -> None:
        self.x = x
        self.model = _mixture(start, 1)
        self.model._initialize(x, None)
        self.bound, self.logs = self.model._e_step(x)

    def __call__(self) -> None:
        self.model._m_step(self.x, self.logs)
        self.bound, self.logs = self.model._e_step(self.x)

    def log_likelihood(self) -> float:
        return float(self.bound)


def _mixture(start: np.ndarray, steps: int) -> Any:
    k, d = start.shape
    warnings.simplefilter("ignore")
    return mixture.GaussianMixture(
        k,
        covariance_type="diag",
        reg_covar=0.0,
        tol=0.0,
        max_iter=steps,
        weights_init=np.full(k, 1 / k),
        means_init=start,
        precisions_init=np.ones((k, d)),
    )


def _mixture_fits(x: np.ndarray, start: np.ndarray) -> dict[str, Callable[[], Any]]:
    return {
        f"GaussianMixture.fit, {name}": lambda array=array: _mixture(start, STEPS).fit(array)
        for name, array in layouts(x).items()
    }


def _naive_bayes_fits(x: np.ndarray, labels: np.ndarray) -> dict[str, Callable[[], Any]]:
    return {
        f"GaussianNB, {name}": lambda array=array: GaussianNB(var_smoothing=0).fit(array, labels)
        for name, array in layouts(x).items()
    }


def _network(start: np.ndarray) -> bbn.BayesianNetwork:
    k, d = start.shape
    z = bbn.Variable("Z", list(range(k)))
    leaves = [bbn.Gaussian(f"x{f}", [z], means=start[:, f], variances=1.0) for f in range(d)]
    return bbn.BayesianNetwork([bbn.CPT(z, table=np.full(k, 1 / k)), *leaves])


def _naive_bayes(x: np.ndarray, labels: np.ndarray) -> Iterator[Row]:
    ours, theirs = (
        bbn.NaiveBayes(continuous=True).fit(x, labels),
        GaussianNB(var_smoothing=0).fit(x, labels),
    )

    def check() -> None:
        np.testing.assert_allclose(ours.predict_proba(x), theirs.predict_proba(x), rtol=1e-10, atol=1e-12)

    def nothing() -> None:
        """The probabilities were compared in the first row."""

    yield Row(
        "NaiveBayes(continuous=True), fit 1,000,000 × 4",
        {
            "bbn": lambda: bbn.NaiveBayes(continuous=True).fit(x, labels),
            "scikit-learn": _naive_bayes_fits(x, labels),
        },
        check,
        target=1.0,
        seconds=10,
    )
    yield Row(
        "NaiveBayes(continuous=True), predict_proba 1,000,000 × 4",
        {
            "bbn": lambda: ours.predict_proba(x),
            "scikit-learn": {
                f"GaussianNB, {name}": partial(theirs.predict_proba, array)
                for name, array in layouts(x).items()
            },
        },
        nothing,
        target=1.0,
        seconds=10,
    )
