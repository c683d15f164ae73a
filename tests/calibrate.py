"""`make calibrate`: the prices of exact inference (`bbn/inference/exact/prices.py`), measured on this machine.

Each price is measured by work of its kind on networks that ship, and printed beside the one that is kept, divided by
how much faster or slower this machine goes through cells. Ends with status 1 where one is off by more than a factor of
two beyond that: then its choices are made by a wrong price.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

import bbn
from bbn import kernels
from bbn.inference.exact import prices
from bbn.inference.exact.domain_filtering import DomainFilter
from bbn.inference.exact.elimination_orders import triangulate
from bbn.inference.exact.executor import open_plan
from bbn.inference.exact.problem import Question, Values, flatten, relevant
from bbn.inference.exact.tree_plan import plan_on, plan_tree
from bbn.kernels.contracts.tape import MARGINALS
from bbn.model.graphs import ORDERS

OFF = 4.0
"""How far a price may be off beside the machine's own speed."""
NOTHING = Values((), (), 0.0)


def seconds(work: Callable[[], object], least: float = 0.2) -> float:
    """The quickest of runs of at least so many seconds together."""
    best, spent = float("inf"), 0.0
    while spent < least:
        begun = time.process_time()
        work()
        took = time.process_time() - begun
        best, spent = min(best, took), spent + max(took, 1e-4)
    return best


def cell() -> float:
    """A cell of a tree in a run of all posteriors, the median over networks of large cliques."""
    found = []
    for name in ("barley", "munin1", "andes", "pigs"):
        flat = flatten(bbn.example(name))
        leaves = frozenset(range(0, len(flat.cards), 10))
        plan = plan_tree(flat, Question(leaves, goal=MARGINALS))
        executor = open_plan(plan)
        hard = [(v, 0) for v in sorted(leaves)]
        found.append(seconds(lambda executor=executor, hard=hard: executor.run(hard)) / plan.cells)  # type: ignore[misc]
    return float(np.median(found))


def making() -> tuple[float, float]:
    """Filtering and laying out on a known order: for each factor, and for each entry (least squares over networks)."""
    rows, took = [], []
    for name in ("water", "mildew", "munin1", "diabetes", "link", "pigs"):
        flat = flatten(bbn.example(name))
        question = Question(goal=MARGINALS)
        needed = relevant(flat, question)
        order = triangulate(flat.cards, needed.ptr, needed.scope, "min-fill")
        filters = DomainFilter(flat)

        def work(filters=filters, needed=needed, question=question, order=order):  # type: ignore[no-untyped-def]
            model, _ = filters.filtered(filters.domain(NOTHING), needed.factors)
            smaller = kernels.triangulate.induced(model.cards, [], *order.elimination)
            cells = kernels.triangulate.total_cells(model.cards, *smaller)
            own = needed._replace(factors=np.arange(len(model.heads)))
            plan_on(model, question, own, order._replace(elimination=smaller, cells=cells), True)

        rows.append([len(flat.heads), flat.tables.size])
        took.append(seconds(work))
    weights = 1 / np.array(took)
    fitted, *_ = np.linalg.lstsq(np.array(rows) * weights[:, None], np.ones(len(rows)), rcond=None)
    return float(max(fitted[0], 1e-12)), float(max(fitted[1], 1e-12))


def piece() -> float:
    """Ordering a piece of an elimination anew."""
    flat = flatten(bbn.example("munin1"))
    needed = relevant(flat, Question(goal=MARGINALS))
    order = triangulate(flat.cards, needed.ptr, needed.scope, "min-fill")
    pieces = kernels.pieces.Pieces(
        flat.cards[None].astype(float), needed.ptr, needed.scope, *order.elimination
    )
    return seconds(lambda: pieces.improve(200)) / 200


def order_pair() -> float:
    """Eliminating all variables once more, for each pair of neighbours of an eliminated variable."""
    found = []
    for name in ("munin1", "link", "andes"):
        flat = flatten(bbn.example(name))
        needed = relevant(flat, Question(goal=MARGINALS))
        given = flat.cards, needed.ptr, needed.scope
        sizes = np.diff(ORDERS["min-fill"](*given)[1]).astype(float) + 2
        found.append(seconds(lambda given=given: ORDERS["min-fill"](*given)) / float(sizes @ sizes))  # type: ignore[misc]
    return float(np.median(found))


def main() -> int:
    """Print kept and measured prices."""
    own = cell()
    speed = own / prices.CELL
    factor, entry = making()
    measured = {
        "CELL": own,
        "PLAN_FACTOR": factor,
        "PLAN_ENTRY": entry,
        "PIECE": piece(),
        "ORDER_PAIR": order_pair(),
    }
    print(f"this machine takes {speed:.2f} times the reference for a cell")
    print(f"{'price':<12} {'kept':>10} {'measured':>10} {'over':>6}")
    off = []
    for name, found in measured.items():
        kept = getattr(prices, name)
        over = found / kept / speed
        print(f"{name:<12} {kept:10.3g} {found:10.3g} {over:6.2f}")
        if not 1 / OFF <= over <= OFF:
            off.append(name)
    if off:
        print(f"off by more than a factor of {OFF:g}: {', '.join(off)}")
    return bool(off)


if __name__ == "__main__":
    sys.exit(main())
