"""Peak memory: measured in a process of its own, and held to what was foretold and to the limit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MEASURE = '''
import re
import sys
import threading

import numpy as np

import bbn
from bbn.cpt import CPT
from bbn.inference.plan import Question, price
from bbn.kernels.tape import MARGINALS
from bbn.network import BayesianNetwork
from bbn.variable import Variable


def status(key):
    with open("/proc/self/status") as file:
        return int(re.search(key + r":\\s+(\\d+) kB", file.read())[1]) * 1024


def peak(work):
    """The most memory that was resident during a call, beside what was resident before it; and its answer."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # forget the highest mark so far
    before = status("VmRSS")
    try:
        answer = work()
    except bbn.BudgetError as error:
        answer = error
    return status("VmHWM") - before, answer


def pairs(rng, n, card, depth):
    """A chain in which each variable has the `depth` ones before it as parents."""
    variables = [Variable(f"x{i}", range(card)) for i in range(n)]
    cpts = []
    for i, v in enumerate(variables):
        parents = variables[max(0, i - depth) : i]
        table = rng.random([p.card for p in parents] + [card])
        cpts.append(CPT(v, parents, table / table.sum(axis=-1, keepdims=True)))
    return BayesianNetwork(cpts)


def foretold(net, evidence=()):
    """What all posteriors given these variables are said to take."""
    engine = bbn.JunctionTree(net)
    sliced = frozenset(engine.flat.number[name] for name in evidence)
    return int(price(engine.flat, Question(sliced, goal=MARGINALS)).bytes)


rng = np.random.default_rng(5)
bbn.example("asia").posteriors({"smoke": "yes"})
'''
SLACK = 3_000_000
"""What an interpreter may take by the way: modules that are loaded late, stacks of threads."""

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="the system does not tell the highest mark of memory"
)


def run(code: str) -> list[float]:
    """The numbers that a process prints; its addresses are bounded, lest a failing test take the machine down."""
    guard = "import resource; resource.setrlimit(resource.RLIMIT_AS, (8_000_000_000, 8_000_000_000))\n"
    done = subprocess.run(
        [sys.executable, "-c", guard + MEASURE + code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=300,
        # glibc keeps up to 64 MB of freed blocks for each thread: its memory, not ours
        env={**os.environ, "MALLOC_ARENA_MAX": "1"},
    )
    assert done.returncode == 0, done.stderr
    return [float(word) for word in done.stdout.split()]


@pytest.mark.parametrize("asked", ["posteriors({'x3': 1})", "query('x20', {'x3': 1})", "mpe()"])
def test_a_junction_tree_takes_what_was_foretold(asked):
    used, foretold = run(f"""
from bbn.inference import plan
prices = []
real = plan.price
plan.price = lambda *args: prices.append(real(*args)) or prices[-1]
net = pairs(rng, 24, 6, 5)
used, _ = peak(lambda: (engine := bbn.JunctionTree(net), engine.{asked}))
print(used, prices[-1].bytes)
""")
    assert foretold > 8_000_000
    assert foretold / 1.3 < used < 1.2 * foretold + SLACK


def test_threads_that_share_an_engine_stay_within_its_limit():
    used, answers = run("""
net = pairs(rng, 24, 6, 5)
limit = int(1.5 * max(foretold(net, [f"x{i}"]) for i in range(3, 7)))
engine = bbn.JunctionTree(net, memory_limit=limit)
answers = []
def work(i):
    for j in range(3):
        answers.append(engine.posteriors({f"x{3 + (i + j) % 4}": 1})["x20"])
def all_at_once():
    threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
    [t.start() for t in threads]
    [t.join() for t in threads]
used, _ = peak(all_at_once)
print(used / limit, len(answers))
""")
    assert answers == 48
    assert used < 1.2


def test_plans_that_are_kept_stay_within_the_limit():
    used, kept = run("""
net = pairs(rng, 24, 6, 4)
limit = 3 * max(foretold(net, [f"x{i}", f"x{i + 1}"]) for i in range(20))
engine = bbn.JunctionTree(net, memory_limit=limit)
used, _ = peak(lambda: [engine.posteriors({f"x{i}": 1, f"x{i + 1}": 0}) for i in range(20)])
print(used / limit, len(engine._plans._plans))
""")
    assert 1 <= kept < 20
    assert used < 1.2


if __name__ == "__main__":
    print(run(sys.stdin.read()))
