"""Causes: questions with an intervention, identification, and effects from a million rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import bbn
from tests.benchmarks.harness import Figure, Row
from tests.causal.test_effect import DESIGNS

TITLE = "Causes"
NOTES = """
A warm question with `do=` is timed against the same question without it: the network with its arcs cut is kept with
its plan, so the two should cost the same. `identify` runs on a random graph of 100 variables with hidden causes,
formula included, and should take under a second. `effect` on 1,000,000 rows of asia, three estimators and their
intervals, is timed against a `fit` and two questions of the fitted network. Then pyAgrum's front door and ours, from
the graph to the number. The last rows say how often 95 % intervals hold the truth, on 500 simulated tables of each
design; two standard errors are 2 %.
"""


def rows() -> Iterator[Row | Figure]:
    """Warm interventions, identification, effects."""
    for name, x, y, e in (("asia", "smoke", "dysp", "xray"), ("alarm", "INTUBATION", "BP", "HR")):
        yield _warm(name, x, y, e)
    yield _identify()
    yield _effect()
    yield _front_door()
    yield from _coverage()


def _warm(name: str, x: str, y: str, e: str) -> Row:
    net = bbn.example(name)
    do, seen = {x: net.states(x)[0]}, {e: net.states(e)[0]}

    def acting() -> object:
        return net.query(y, seen, do=do)

    def seeing() -> object:
        return net.query(y, seen)

    def check() -> None:
        np.testing.assert_allclose(acting().values, net.do(do).query(y, seen).values)

    return Row(
        f"{name}: P({y} | do({x}), {e}), warm", {"bbn": acting, "the same without do": seeing}, check, 0.5
    )


def _identify() -> Row:
    rng = np.random.default_rng(0)
    names = [f"V{i:03d}" for i in range(100)]
    arcs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 : i + 6] if rng.random() < 0.5]
    pairs = [(names[i], names[i + 3]) for i in range(0, 90, 4)]

    def ours() -> object:
        graph = bbn.CausalGraph(arcs, confounded=pairs)
        return bbn.identify(graph, "V099", do="V050").formula

    def a_second() -> None:
        import time

        time.sleep(1.0)

    def check() -> None:
        assert "P(V099 | do(V050)) = " in str(ours())

    return Row("identify, 100 variables, 23 hidden causes", {"bbn": ours, "one second": a_second}, check, 1.0)


def _effect() -> Row:
    net = bbn.example("asia")
    data = net.sample(1_000_000, seed=1)

    def ours() -> object:
        return bbn.effect(data, net, "smoke", "dysp")

    def by_hand() -> object:
        fitted = bbn.fit(net, data)
        return [fitted.query("dysp", do={"smoke": s})["yes"] for s in ("yes", "no")]

    def check() -> None:
        one, other = by_hand()
        np.testing.assert_allclose(float(ours().average_effect), one - other, atol=1e-12)

    contenders = {"bbn": ours, "a fit and two questions": by_hand}
    return Row("effect on 1,000,000 rows, three estimators with intervals", contenders, check, 0.3, seconds=5)


def _front_door() -> Row:
    import pyagrum as gum

    model = gum.fastBN("X->M->Y;X->Y")
    gum.initRandom(1)
    model.generateCPTs()
    causal = gum.CausalModel(model, [("U", ["X", "Y"])], False)
    net = bbn.from_pyagrum(model)
    graph = bbn.CausalGraph([("X", "M"), ("M", "Y")], confounded=[("X", "Y")])
    value = net.states("X")[0]

    def ours() -> object:
        return bbn.identify(graph, "Y", do="X").evaluate(net, {"X": value}).values

    def theirs() -> object:
        return gum.causalImpact(causal, on="Y", doing="X", values={"X": str(value)})[1].toarray()

    def check() -> None:
        np.testing.assert_allclose(ours(), theirs(), atol=1e-6)

    return Row("front door: identify and evaluate", {"bbn": ours, "pyAgrum": {"causalImpact": theirs}}, check)


def _coverage() -> Iterator[Figure]:
    for design, (make, graph, truth, options) in DESIGNS.items():
        hits: dict[str, int] = {}
        for seed in range(500):
            found = bbn.effect(
                make(np.random.default_rng(seed)), graph, "X", "Y", seed=seed, n_draws=300, **options
            )
            for method, one in found.estimates.items():
                inside = one.average_effect.low <= truth <= one.average_effect.high
                hits[method] = hits.get(method, 0) + inside
        told = ", ".join(f"{method} {count / 5:.1f} %" for method, count in hits.items())
        yield Figure(f"intervals of 95 %, {design}", told, "93 to 97 %")
