"""Loopy belief propagation, in numpy: messages between factors and variables, each summing to 1.

factor f to variable x:   μ(x) = Σ over f's other variables y of f(x, y) ∏ ν(y)
variable x to factor f:   ν(x) = local(x) ∏ μ(x) over x's other factors
"""

from __future__ import annotations

import math

import numpy as np

from bbn.kernels.contracts.checks import check_doubles, check_shape
from bbn.kernels.contracts.messages import FactorGraphArrays, Layout, laid_out
from bbn.kernels.contracts.types import Floats
from bbn.kernels.watch import check


def settle(
    graph: FactorGraphArrays, messages: Floats, max_iter: int, tol: float, damping: float, flooding: bool
) -> tuple[int, bool]:
    """Pass messages until none changes by more than `tol`; the number of iterations, and whether they settled.

    An iteration goes through the factors and back, each sending from the newest messages; with `flooding` all send at
    once. `damping` is the share of the old message that is kept. `messages` hold what to start from, and are replaced.
    """
    at = laid_out(graph, messages)
    there = range(len(graph.scope_ptr) - 1)
    order = list(there) if flooding else [*there, *reversed(there)]
    for n_iter in range(1, max_iter + 1):
        change = 0.0
        known = messages.copy() if flooding else messages
        for f in order:
            check()
            for edge, message in _outgoing(graph, at, known, f):
                part = slice(at.message[edge], at.message[edge + 1])
                new = (1 - damping) * message + damping * known[part]
                change = max(change, float(np.abs(new - known[part]).max()))
                messages[part] = new
        if change <= tol:
            return n_iter, True
    return max_iter, False


def beliefs(graph: FactorGraphArrays, messages: Floats, found: Floats) -> float:
    """Write each variable's belief, laid out as `local` is; the Bethe approximation of ln Σ ∏ factors.

    That is Σ_f ln Z_f + Σ_x ln Z_x − Σ_fx ln Z_fx; −inf if it is zero.
    """
    at = laid_out(graph, messages)
    check_doubles(found)
    check_shape("found", found, len(graph.local))
    total = 0.0
    zero = False
    for v in range(len(graph.cards)):
        product, log_scale = _product(graph, at, messages, v)
        z = float(product.sum())
        found[at.state[v] : at.state[v + 1]] = product / z if z > 0 else 0.0
        total += log_scale + (math.log(z) if z > 0 else 0.0)
        zero = zero or z <= 0
    for f in range(len(graph.scope_ptr) - 1):
        edges, values, incoming = _around(graph, at, messages, f)
        for axis, message in enumerate(incoming):
            values = values * message.reshape([-1 if a == axis else 1 for a in range(values.ndim)])
        parts = [float(values.sum())]
        for edge, message in zip(edges, incoming, strict=True):
            parts.append(float(message @ messages[at.message[edge] : at.message[edge + 1]]))
        zero = zero or min(parts) <= 0
        if not zero:
            total += math.log(parts[0]) - math.fsum(map(math.log, parts[1:]))
    return -math.inf if zero else total


def incoming(graph: FactorGraphArrays, messages: Floats, found: Floats) -> None:
    """Write the messages of variables to factors, laid out as `messages` are."""
    at = laid_out(graph, messages)
    check_doubles(found)
    check_shape("found", found, len(messages))
    for f in range(len(graph.scope_ptr) - 1):
        edges, _, around = _around(graph, at, messages, f)
        for edge, message in zip(edges, around, strict=True):
            found[at.message[edge] : at.message[edge + 1]] = message


def _outgoing(graph: FactorGraphArrays, at: Layout, messages: Floats, f: int) -> list[tuple[int, Floats]]:
    """The messages of a factor to its variables, by edge."""
    edges, values, incoming = _around(graph, at, messages, f)
    new = []
    for axis, edge in enumerate(edges):
        weighed = values
        for other, message in enumerate(incoming):
            if other != axis:
                weighed = weighed * message.reshape([-1 if a == other else 1 for a in range(values.ndim)])
        new.append((edge, _normalised(weighed.sum(axis=tuple(a for a in range(values.ndim) if a != axis)))))
    return new


def _around(
    graph: FactorGraphArrays, at: Layout, messages: Floats, f: int
) -> tuple[range, Floats, list[Floats]]:
    """The edges of a factor, its table, and the messages of its variables to it."""
    edges = range(int(graph.scope_ptr[f]), int(graph.scope_ptr[f + 1]))
    variables = graph.scope[edges.start : edges.stop].tolist()
    values = graph.tables[at.table[f] : at.table[f + 1]].reshape(graph.cards[variables])
    incoming = [
        _normalised(_product(graph, at, messages, v, without=e)[0])
        for v, e in zip(variables, edges, strict=True)
    ]
    return edges, values, incoming


def _product(
    graph: FactorGraphArrays, at: Layout, messages: Floats, v: int, without: int = -1
) -> tuple[Floats, float]:
    """The product of the messages to a variable and its own weights, scaled to a maximum of 1; the ln of the scale."""
    product = graph.local[at.state[v] : at.state[v + 1]]
    log_scale = 0.0
    for edge in at.around[at.around_ptr[v] : at.around_ptr[v + 1]].tolist():
        if edge != without:
            product = product * messages[at.message[edge] : at.message[edge + 1]]
            top = float(product.max())
            if not top > 0:
                return np.zeros(len(product)), 0.0
            product, log_scale = product / top, log_scale + math.log(top)
    return product, log_scale


def _normalised(values: Floats) -> Floats:
    """The values divided by their sum; zeros stay zeros."""
    total = values.sum()
    return np.asarray(values / total) if total > 0 else values
