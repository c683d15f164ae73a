"""What GES must give on any data, by brute force over every structure of four variables, and whatever the computer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from itertools import combinations, permutations
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import bbn
from tests.support.every_dag import dags
from tests.support.learning_data import sample

NAMES = "abcd"
KINDS = {"states": "", "numbers": "abcd", "both": "cd"}
SCORES = {"states": ["bic", "bdeu", "aic"], "numbers": ["bic-g", "bge"], "both": ["bic-cg", "aic-cg"]}


@cache
def structures(numbers):
    """Every DAG in which no number is a parent of a variable with states: its graph, and what its class shares."""
    found = {}
    for parents in dags(4).tolist():
        arcs = [(NAMES[p], NAMES[c]) for c, mask in enumerate(parents) for p in range(4) if mask >> p & 1]
        if all(p not in numbers or c in numbers for p, c in arcs):
            graph = nx.DiGraph(arcs)
            graph.add_nodes_from(NAMES)
            skeleton = frozenset(frozenset(arc) for arc in arcs)
            colliders = frozenset(
                (frozenset(pair), c)
                for c in NAMES
                for pair in combinations(sorted(graph.predecessors(c)), 2)
                if frozenset(pair) not in skeleton
            )
            found[frozenset(arcs)] = skeleton, colliders
    return found


def drawn(rng, numbers):
    """Rows of a random model of four variables, those that are numbers after the others."""
    columns = {}
    for name in NAMES:
        total = sum(
            (rng.normal() * values for values in columns.values() if rng.random() < 0.6), np.zeros(150)
        )
        noise = rng.normal(size=150)
        columns[name] = total + noise if name in numbers else (total + noise > 0).astype(float)
    return {name: values if name in numbers else values.astype(int) for name, values in columns.items()}


def all_scores(data, numbers, score):
    """The score of every structure, from the terms of its families."""
    terms = {}
    for child in NAMES:
        others = [p for p in NAMES if p != child and (child in numbers or p not in numbers)]
        for size in range(len(others) + 1):
            for parents in combinations(others, size):
                graph = nx.DiGraph((p, child) for p in parents)
                graph.add_nodes_from(NAMES)
                terms[child, frozenset(parents)] = bbn.family_scores(
                    graph, data, score, continuous=list(numbers)
                )[child]
    return {
        arcs: sum(terms[c, frozenset(p for p, child in arcs if child == c)] for c in NAMES)
        for arcs in structures(numbers)
    }


@pytest.mark.parametrize("escapes", [None, 0])
@pytest.mark.parametrize(("kind", "score"), [(kind, score) for kind in KINDS for score in SCORES[kind]])
def test_a_whole_class_that_no_operator_raises(kind, score, escapes):
    numbers = KINDS[kind]
    known = structures(numbers)
    for seed in range(25):
        data = drawn(np.random.default_rng(seed), numbers)
        if kind == "both" and np.bincount(2 * data["a"] + data["b"], minlength=4).min() < 5:
            continue  # a search leaves families alone that have too few rows in some setting
        found = bbn.ges(data, score, continuous=list(numbers), escapes=escapes)
        edges = set(found.edges)
        # the members are those with its edges and v-structures, and together they have just the arcs of the result
        member = frozenset(bbn.to_dag(found).edges)
        members = [arcs for arcs in known if known[arcs] == known[member]]
        assert set().union(*members) == edges
        scores = all_scores(data, numbers, score)
        for arcs in members:
            assert scores[arcs] == pytest.approx(found.graph["score"], rel=1e-10)
            # an operator leads to the class of a member with one arc more, less, or turned around
            for p, c in permutations(NAMES, 2):
                for near in (arcs | {(p, c)}, arcs - {(p, c)}, arcs - {(p, c)} | {(c, p)}):
                    assert scores.get(near, -np.inf) <= found.graph["score"] + 1e-7


def learned():
    """The classes found in states and in numbers, as sorted arcs."""
    rng = np.random.default_rng(5)
    numbers = rng.normal(size=(400, 12)) @ np.triu(rng.random((12, 12)) < 0.3, 1) + rng.normal(size=(400, 12))
    found = {"numbers": bbn.ges({f"x{i:02}": column for i, column in enumerate(numbers.T)})}
    for name, n, score in (("asia", 300, "bdeu"), ("child", 300, "bic"), ("insurance", 300, "bdeu")):
        found[name] = bbn.ges(sample(bbn.example(name), n, 3), score)
    return {key: sorted([a, b] for a, b in graph.edges) for key, graph in found.items()}


@pytest.mark.parametrize("environment", [{"BBN_PURE": "1"}, {"PYTHONHASHSEED": "5"}], ids=str)
def test_kernels_and_hash_seeds_do_not_matter(environment):
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import json; from {__name__} import learned; print(json.dumps(learned()))",
        ],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    here = learned()
    assert json.loads(done.stdout) == here
    assert all(len(edges) > 3 for edges in here.values())


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_columns_does_not_matter(kind):
    rng = np.random.default_rng(6)
    if kind == "states":
        data = sample(bbn.example("insurance"), 400, 6)
        data |= {f"{name} again": data[name] for name in list(data)[:3]}  # ties
    else:
        data = drawn(rng, KINDS[kind])
        data |= {f"{name}2": data[name] + rng.normal(size=150) for name in KINDS[kind]}
    names = [name for name in data if np.asarray(data[name]).dtype.kind == "f"]
    truth = set(bbn.ges(data, continuous=names).edges)
    for _ in range(4):
        other = {name: data[name] for name in rng.permutation(list(data)).tolist()}
        assert set(bbn.ges(other, continuous=names).edges) == truth
