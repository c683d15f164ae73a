"""Identification examples that other libraries publish: their verdicts, and the value against surgery on a full model.

The graphs are those of y0's collection of examples (which gives its sources: Pearl 2009, Shpitser and Pearl 2008, Pearl
and Mackenzie 2018), of the Python package causaleffect, and of pyAgrum's notebooks on "The Book of Why".
"""

import numpy as np
import pytest

import bbn
from tests.support.causal_truth import random_network, surgery

# name: (arcs, two-headed arcs, outcome, do, given, whether it is identified)
PUBLISHED = {
    "y0 back door": ("Z>X Z>Y X>Y", "", "Y", "X", "", True),
    "y0 front door": ("X>Z Z>Y", "X-Y", "Y", "X", "", True),
    "y0 front door, back door": ("X>Z Z>Y W>X W>Y", "", "Y", "X", "", True),
    "y0 instrument": ("Z>X X>Y", "X-Y", "Y", "X", "", False),
    "y0 napkin": ("Z2>Z1 Z1>X X>Y", "Z2-X Z2-Y", "Y", "X", "", True),
    "y0 M graph": ("X>Y", "X-Z Y-Z", "Y", "X", "", True),
    "y0 line 1": ("Z>Y", "", "Y", "", "", True),
    "y0 line 2": ("Z>Y Y>X", "Z-X", "Y", "X", "", True),
    "y0 line 3": ("Z>X X>Y", "Z-X", "Y", "X", "", True),
    "y0 line 4": ("X>M Z>X Z>Y M>Y", "Z-X M-Y", "Y", "X", "", True),
    "y0 line 5, the bow": ("X>Y", "X-Y", "Y", "X", "", False),
    "y0 line 6": ("X>Y X>Z Z>Y", "X-Z", "Y", "X Z", "", True),
    "y0 line 7": ("X>Y1 W1>X", "W1-Y1", "Y1", "X W1", "", True),
    "y0 figure 6a": ("X>Z Z>Y", "X-Z", "Y", "X", "Z", True),
    "causaleffect 7": ("Z>Y X>Z W>X W>Z", "X-Y", "Y", "X", "Z", True),
    "Book of Why, p. 213, z": ("W>Z Z>X X>Y", "W-X W-Y", "Y", "Z", "", True),
    "Book of Why, p. 213, w": ("W>Z Z>X X>Y", "W-X W-Y", "X", "W", "", True),
    "Book of Why, p. 213, x": ("W>Z Z>X X>Y", "W-X W-Y", "Y", "X", "", True),
}


def read(arcs, pairs):
    return bbn.CausalGraph(
        [a.split(">") for a in arcs.split()], confounded=[p.split("-") for p in pairs.split()]
    )


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_examples(name):
    arcs, pairs, outcome, do, given, identified = PUBLISHED[name]
    graph = read(arcs, pairs)
    outcome, do, given = outcome.split(), do.split(), given.split()
    if not identified:
        with pytest.raises(bbn.NotIdentifiableError):
            bbn.identify(graph, outcome, do=do, given=given)
        return
    estimand = bbn.identify(graph, outcome, do=do, given=given)
    rng = np.random.default_rng(len(name))
    hidden = [f"U{i}" for i in range(len(graph.confounded))]
    all_arcs = [
        *graph.arcs,
        *((h, end) for h, pair in zip(hidden, graph.confounded, strict=True) for end in pair),
    ]
    net = random_network(rng, all_arcs, [*hidden, *graph.nodes])
    values, seen = dict.fromkeys(do, "s1"), dict.fromkeys(given, "s0")
    found = estimand.evaluate(net, values, seen).values
    np.testing.assert_allclose(found, surgery(net, outcome, values, seen), atol=1e-12)


def test_the_sets_that_pyagrum_names_on_the_page_213_of_the_book_of_why():
    graph = read("W>Z Z>X X>Y", "W-X W-Y")
    assert frozenset({"W"}) in bbn.adjustment_sets(graph, "Z", "Y")
    assert frozenset({"Z"}) in bbn.front_door_sets(graph, "W", "X")
    assert bbn.adjustment_sets(graph, "X", "Y") == []
    assert bbn.front_door_sets(graph, "X", "Y") == []
