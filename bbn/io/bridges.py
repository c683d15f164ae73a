"""Bridges to other libraries: pgmpy, pyAgrum, networkx and pandas, each imported only when it is needed.

Tables are handed over as numbers, not through files, so they cross bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from bbn.core.budget import require_table
from bbn.core.errors import ModelError
from bbn.core.extras import needed_by
from bbn.core.frozen import Array
from bbn.core.keywords import keywords_checked
from bbn.io.number_tables import tables
from bbn.model.cpt import CPT
from bbn.model.decision_network import DecisionNetwork
from bbn.model.network import BayesianNetwork
from bbn.model.table_input import sums_of
from bbn.model.variable import State, Variable, plain

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd


@keywords_checked
def from_pgmpy(model: Any) -> BayesianNetwork:
    """A pgmpy DiscreteBayesianNetwork as a network; states keep their names and kinds.

    Parameters
    ----------
    model : pgmpy DiscreteBayesianNetwork
        The model to take over.

    Returns
    -------
    BayesianNetwork
        The network.

    Raises
    ------
    ModelError
        The model is incomplete, or its tables do not fit.

    See Also
    --------
    to_pgmpy : The way back.

    Examples
    --------
    >>> from_pgmpy(to_pgmpy(BayesianNetwork([CPT(Variable("Coin", ["heads", "tails"]), table=[0.5, 0.5])])))
    <BayesianNetwork: 1 node, 0 arcs>
    """
    given = {cpd.variable: cpd for cpd in model.get_cpds()}
    missing = [node for node in model.nodes() if node not in given]
    if missing:
        raise ModelError(f"the pgmpy model has no CPD for {missing[0]!r}; it needs one for each node")
    variables = {name: Variable(name, list(map(plain, cpd.state_names[name]))) for name, cpd in given.items()}
    conditionals = []
    for name, cpd in given.items():
        for parent in cpd.variables[1:]:
            if parent not in variables:
                raise ModelError(f"the pgmpy CPD of {name!r} has the parent {parent!r}, which has no CPD")
            if tuple(map(plain, cpd.state_names[parent])) != variables[parent].states:
                raise ModelError(
                    f"the pgmpy CPD of {name!r} lists other states of {parent!r} than its own CPD"
                )
        table = np.moveaxis(np.asarray(cpd.values, dtype=np.float64), 0, -1)
        conditionals.append(CPT(variables[name], [variables[parent] for parent in cpd.variables[1:]], table))
    return BayesianNetwork(conditionals, str(getattr(model, "name", None) or ""))


@keywords_checked
def to_pgmpy(network: BayesianNetwork) -> Any:
    """The network as a pgmpy DiscreteBayesianNetwork.

    Parameters
    ----------
    network : BayesianNetwork
        The network to hand over.

    Returns
    -------
    pgmpy DiscreteBayesianNetwork
        The model; needs pgmpy.

    Raises
    ------
    ModelError
        The network has continuous variables.

    See Also
    --------
    from_pgmpy : The way back.
    """
    with needed_by("a network of pgmpy", "pgmpy"):
        from pgmpy.factors.discrete import TabularCPD
        from pgmpy.models import DiscreteBayesianNetwork

    model = DiscreteBayesianNetwork()
    model.name = network.name
    model.add_nodes_from(network.names)
    model.add_edges_from(network.arcs)
    for cpt in tables(network):
        family = (cpt.variable, *cpt.parents)
        model.add_cpds(
            TabularCPD(
                cpt.name,
                cpt.variable.card,
                cpt.table.reshape(-1, cpt.variable.card).T,
                evidence=[parent.name for parent in cpt.parents],
                evidence_card=[parent.card for parent in cpt.parents],
                state_names={variable.name: list(variable.states) for variable in family},
            )
        )
    return model


@keywords_checked
def from_pyagrum(model: Any) -> BayesianNetwork:
    """A pyAgrum BayesNet as a network; labels are strings, the values of integer and range variables integers.

    Parameters
    ----------
    model : pyagrum BayesNet or InfluenceDiagram
        The model to take over.

    Returns
    -------
    BayesianNetwork
        The network; of an InfluenceDiagram, a DecisionNetwork, with limited memory where a decision forgets something.

    See Also
    --------
    to_pyagrum : The way back.
    """
    if type(model).__name__ == "InfluenceDiagram":
        from bbn.io.pyagrum_decisions import from_influence_diagram

        found: Any = from_influence_diagram(model)
        return found  # type: ignore[no-any-return]
    variables = {}
    for node in sorted(model.nodes()):
        own = model.variable(node)
        labels = own.labels()
        numeric = type(own).__name__ in ("IntegerVariable", "RangeVariable") or own.varType() in (2, 4)
        variables[own.name()] = Variable(
            own.name(), [int(text) for text in labels] if numeric else list(labels)
        )
    conditionals = []
    for name, variable in variables.items():
        table = model.cpt(name)
        parents = [variables[parent] for parent in table.names[1:]]
        axes = [
            *range(len(parents) - 1, -1, -1),
            len(parents),
        ]  # pyAgrum's array has the last parent's axis first
        conditionals.append(CPT(variable, parents, table.toarray().transpose(axes)))
    title = model.property("name") if "name" in model.properties() else ""
    return BayesianNetwork(conditionals, title)


@keywords_checked
def to_pyagrum(network: BayesianNetwork | DecisionNetwork) -> Any:
    """The network as a pyAgrum BayesNet; increasing integer states stay integers, all others become labels.

    Parameters
    ----------
    network : BayesianNetwork or DecisionNetwork
        The network to hand over.

    Returns
    -------
    pyagrum BayesNet or InfluenceDiagram
        The model; needs pyagrum.

    Raises
    ------
    ModelError
        The network has continuous variables.

    See Also
    --------
    from_pyagrum : The way back.
    """
    if isinstance(network, DecisionNetwork):
        from bbn.io.pyagrum_decisions import to_influence_diagram

        return to_influence_diagram(network)
    with needed_by("a network of pyAgrum", "pyagrum"):
        pyagrum: Any = import_module("pyagrum")
    cpts = [CPT.trusted(cpt.variable, cpt.parents, cpt.table) for cpt in tables(network)]
    model = pyagrum.BayesNet(network.name)
    for variable in network.variables:
        if _is_increasing(variable.states):
            own = pyagrum.IntegerVariable(variable.name, variable.name, list(variable.states))
        else:
            own = pyagrum.LabelizedVariable(variable.name, variable.name, list(map(str, variable.states)))
        model.add(own)
    for parent, child in network.arcs:
        model.addArc(parent, child)
    for cpt in cpts:
        axes = [*range(len(cpt.parents) - 1, -1, -1), len(cpt.parents)]
        model.cpt(cpt.name).fillWith(cpt.table.transpose(axes).ravel().tolist())
    return model


def _is_increasing(states: tuple[State, ...]) -> bool:
    """Whether the states are integers that pyAgrum keeps as they are: in order and of 32 bits."""
    numbers = [state for state in states if type(state) is int and abs(state) < 2**31]
    return len(numbers) == len(states) and numbers == sorted(numbers)


@keywords_checked
def to_networkx(network: BayesianNetwork) -> nx.DiGraph[str]:
    """The network as a networkx graph of its own, free to be changed; nodes carry "states" and "cpt".

    `BayesianNetwork.from_graph` is the way back.

    Parameters
    ----------
    network : BayesianNetwork
        The network.

    Returns
    -------
    networkx.DiGraph
        A copy of `network.graph` that is not frozen.

    See Also
    --------
    BayesianNetwork.from_graph : The way back.

    Examples
    --------
    >>> coin = BayesianNetwork([CPT(Variable("Coin", ["heads", "tails"]), table=[0.5, 0.5])])
    >>> to_networkx(coin).nodes["Coin"]["states"]
    ('heads', 'tails')
    """
    import networkx as nx

    return nx.DiGraph(network.graph)


@keywords_checked
def from_pandas_joint(
    joint: pd.Series[float] | pd.DataFrame,
    structure: nx.DiGraph[str] | Iterable[tuple[str, str]],
    values: str | None = None,
) -> BayesianNetwork:
    """A network of the given structure whose tables are the conditionals of a joint table.

    The network's joint is the given one if the structure's independences hold in it, else the nearest to it
    (in Kullback-Leibler divergence) among those where they do.

    Parameters
    ----------
    joint
        A series whose index levels are the variables, or a frame with a column for each variable and one of
        probabilities. Combinations that are absent have probability 0. States come in the order in which they
        first appear, or in that of the categories of a categorical.
    structure
        A DAG over the variables, or its edges.
    values
        The column of probabilities; the last one if not given.

    A row of a table whose parents' states have probability 0 is not determined, and made uniform.

    >>> import pandas as pd
    >>> joint = pd.DataFrame({"A": [0, 0, 1, 1], "B": [0, 1, 0, 1], "p": [0.125, 0.375, 0.25, 0.25]})
    >>> from_pandas_joint(joint, [("A", "B")])["B"].row(0)
    {0: 0.25, 1: 0.75}
    """
    import pandas as pd

    frame = joint.rename("probability").reset_index() if isinstance(joint, pd.Series) else joint
    values = values or str(frame.columns[-1])
    if values not in frame.columns:
        raise ModelError(f"the joint table has no column {values!r}; it has {list(frame.columns)}")
    columns = [column for column in frame.columns if column != values]
    variables = {column: Variable(column, _states_of(frame[column])) for column in columns}
    array = _joint_array(frame, list(variables.values()), values)
    parents = _parents_of(structure, variables)
    axis = {column: i for i, column in enumerate(columns)}
    conditionals = []
    for name, variable in variables.items():
        family = [*parents[name], name]
        others = tuple(i for column, i in axis.items() if column not in family)
        order = [sorted(axis[member] for member in family).index(axis[member]) for member in family]
        marginal = array.sum(axis=others).transpose(order)
        totals = marginal.sum(axis=-1, keepdims=True)
        table = np.where(totals > 0, marginal / np.where(totals > 0, totals, 1.0), 1.0 / variable.card)
        conditionals.append(CPT(variable, [variables[parent] for parent in parents[name]], table))
    return BayesianNetwork(conditionals)


def _states_of(column: pd.Series[Any]) -> list[Any]:
    listed = column.cat.categories if hasattr(column, "cat") else column.unique()
    return [plain(state) for state in listed]


def _joint_array(frame: pd.DataFrame, variables: list[Variable], values: str) -> Array:
    """The joint as an array with an axis per variable."""
    cards = [variable.card for variable in variables]
    require_table(cards, "the joint table", "give a smaller one")
    entries = frame[values].to_numpy(dtype=np.float64)
    if not (np.isfinite(entries).all() and (entries >= 0).all()):
        raise ModelError(f"column {values!r} of the joint table must hold numbers of at least 0")
    total = float(sums_of(entries))
    if abs(total - 1.0) > 1e-6:
        raise ModelError(f"the joint table sums to {total:.9g}, expected 1")
    codes = [[variable.code(plain(state)) for state in frame[variable.name]] for variable in variables]
    array = np.zeros(cards)
    np.add.at(array, tuple(codes), entries)
    return array


def _parents_of(
    structure: nx.DiGraph[str] | Iterable[tuple[str, str]], variables: dict[str, Variable]
) -> dict[str, list[str]]:
    nodes = list(getattr(structure, "nodes", ()))
    edges = list(structure.edges() if hasattr(structure, "edges") else structure)
    for name in (*nodes, *(end for edge in edges for end in edge)):
        if name not in variables:
            raise ModelError(f"the structure has the node {name!r}, the joint table only {list(variables)}")
    return {name: [parent for parent, child in edges if child == name] for name in variables}
