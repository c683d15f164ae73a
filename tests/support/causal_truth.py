"""Slow, obvious truths about causes: surgery on the full joint, paths listed one by one, sets by the definition."""

from itertools import combinations, pairwise

import networkx as nx
import numpy as np

import bbn


def random_arcs(rng, names, density):
    """Arcs of a random DAG whose order is that of the names."""
    return [(a, b) for a, b in combinations(names, 2) if rng.random() < density]


def random_hidden_causes(rng, n_observed, n_hidden, density=0.5):
    """A random DAG in which each hidden variable acts on two measured ones; the arcs and the hidden names."""
    names = [f"V{i}" for i in range(n_observed)]
    arcs = random_arcs(rng, names, density)
    hidden = [f"U{i}" for i in range(n_hidden)]
    for name in hidden:
        arcs += [(name, names[i]) for i in sorted(rng.choice(n_observed, 2, replace=False))]
    return names, hidden, arcs


def random_network(rng, arcs, names, cards=None):
    """A network with random positive tables on these arcs."""
    graph = nx.DiGraph()
    graph.add_nodes_from(names)
    graph.add_edges_from(arcs)
    variables = {n: bbn.Variable(n, [f"s{k}" for k in range((cards or {}).get(n, 2))]) for n in names}
    cpts = []
    for name in nx.topological_sort(graph):
        parents = [variables[p] for p in graph.predecessors(name)]
        shape = [p.card for p in parents]
        table = (
            rng.dirichlet(np.full(variables[name].card, 1.0), size=shape) * 0.9 + 0.1 / variables[name].card
        )
        cpts.append(bbn.CPT(variables[name], parents, table))
    return bbn.BayesianNetwork(cpts)


def joint_array(net, do=None):
    """The joint as an array over `net.names`, by multiplying tables; variables that are set keep their state alone."""
    names = list(net.names)
    joint = np.ones([net.variable(n).card for n in names])
    for name in names:
        cpt = net[name]
        axes = [names.index(v.name) for v in (*cpt.parents, cpt.variable)]
        if do and name in do:
            table, axes = np.zeros(cpt.variable.card), [names.index(name)]
            table[cpt.variable.states.index(do[name])] = 1.0
        else:
            table = cpt.table
        order = np.argsort(axes)
        shape = [1] * len(names)
        for axis in axes:
            shape[axis] = joint.shape[axis]
        joint = joint * np.transpose(table, order).reshape(shape)
    return joint


def surgery(net, targets, do=None, evidence=None):
    """P(targets | do, evidence) from the joint after cutting arcs, axes in the order of the targets."""
    names = list(net.names)
    joint = joint_array(net, do)
    index = [slice(None)] * len(names)
    for name, state in (evidence or {}).items():
        index[names.index(name)] = net.states(name).index(state)
    joint = joint[tuple(index)]
    left = [n for n in names if n not in (evidence or {})]
    axes = [left.index(t) for t in targets]
    out = joint.sum(axis=tuple(i for i in range(len(left)) if i not in axes))
    kept = [n for n in left if n in targets]
    return np.transpose(out, [kept.index(t) for t in targets]) / out.sum()


class Paths:
    """All paths between two variables of a DAG, each with what blocks and what opens it."""

    def __init__(self, graph, x, y):
        self.found = []
        skeleton = graph.to_undirected()
        for path in nx.all_simple_paths(skeleton, x, y):
            forward = [graph.has_edge(a, b) for a, b in pairwise(path)]
            colliders, others = [], set()
            for i in range(1, len(path) - 1):
                if forward[i - 1] and not forward[i]:
                    colliders.append({path[i], *nx.descendants(graph, path[i])})
                else:
                    others.add(path[i])
            self.found.append((path, all(forward), others, colliders))

    def open_given(self, given, causal=None):
        """The paths that are open, all or only those that are (not) causal."""
        return [
            path
            for path, is_causal, others, colliders in self.found
            if (causal is None or is_causal == causal)
            and not others & given
            and all(opened & given for opened in colliders)
        ]


def valid_adjustment(graph, x, y, given, paths=None):
    """The generalised criterion of Shpitser et al. (2010) for one treatment and one outcome, by its definition."""
    paths = paths or Paths(graph, x, y)
    on_way = {node for path, causal, _, _ in paths.found if causal for node in path} - {x}
    barred = on_way | {d for node in on_way for d in nx.descendants(graph, node)}
    return not barred & given and not paths.open_given(given, causal=False)


def minimal(sets):
    """The sets that hold no other of them."""
    return {s for s in sets if not any(other < s for other in sets)}


def subsets(names):
    """All subsets, the smallest first."""
    names = sorted(names)
    return [frozenset(c) for size in range(len(names) + 1) for c in combinations(names, size)]
