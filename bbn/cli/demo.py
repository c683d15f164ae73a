"""`bbn demo`: the main job in a minute, from a YAML file to answers and from rows to tables, with the code."""

from __future__ import annotations

import argparse
from time import perf_counter

import bbn
from bbn.cli.output import show


def demo(options: argparse.Namespace) -> int:
    """Load a network, ask it with and without evidence, learn it back; print what a user would type and see."""
    if options.dask:
        from bbn.cli.cluster_demo import cluster_demo

        return cluster_demo()
    start = perf_counter()
    net = bbn.example("campfire")
    _say(">>> net = bbn.load('models/campfire.yaml')", repr(net))
    _say(">>> print(net.query('ForestFire'))", str(net.query("ForestFire")))
    evidence = {"Thunder": "yes", "BusTourGroup": "yes"}
    _say(f">>> print(net.query('ForestFire', evidence={evidence}))", str(net.query("ForestFire", evidence)))
    _say(f">>> print(net.posteriors({evidence}))", str(net.posteriors(evidence)))
    best = net.mpe({"ForestFire": "yes"})
    _say(">>> net.mpe({'ForestFire': 'yes'}).states", str(best.states))
    data = net.sample(2000, seed=1)
    learned = bbn.fit(net.graph, data, prior=bbn.MEstimate(1))
    _say(
        ">>> data = net.sample(2000, seed=1)    # forget the tables, learn them back from rows\n"
        ">>> print(bbn.fit(net.graph, data, prior=bbn.MEstimate(1))['Campfire'])",
        str(learned["Campfire"]),
    )
    net = bbn.example("cancer_test")
    _say(
        "A test that is right 98 times in 100 comes back positive. Is it cancer?\n"
        ">>> print(bbn.example('cancer_test').query('Cancer', evidence={'Test': 'positive'}))",
        str(net.query("Cancer", {"Test": "positive"})),
    )
    show(f"All of this took {perf_counter() - start:.2f} s. Next: docs/getting-started.md, or `bbn --help`.")
    return 0


def _say(code: str, answer: str) -> None:
    show(f"{code}\n{answer}\n")
