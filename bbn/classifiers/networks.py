"""TAN and BayesNetClassifier: classifiers whose attributes may depend on each other.

Naive Bayes takes the attributes as independent given the class. TAN adds a tree among them (Friedman, Geiger and
Goldszmidt, "Bayesian network classifiers", 1997); BayesNetClassifier takes any structure, any learner of one, or
averages over several: P(class | x, D) = Σ_G P(class | x, G, D) P(G | D), the Bayes optimal answer over structures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbn.classifiers.costs import cost_matrix
from bbn.classifiers.encoding import Codes
from bbn.classifiers.estimator import UNLABELLED, AttributePrior, NetworkClassifier
from bbn.classifiers.scoring import Scorer
from bbn.core.errors import DataError, ModelError, nearest
from bbn.core.frozen import Array
from bbn.core.keywords import keywords_checked
from bbn.core.threads import all_or_nothing
from bbn.data.coded_table import CodedTable
from bbn.hypotheses.space import HypothesisSpace
from bbn.learning.incomplete.em import fit_em
from bbn.learning.structure.chow_liu import chow_liu, tan
from bbn.learning.structure.constraints import ranked, tie_of
from bbn.learning.structure.hill_climb import hill_climb
from bbn.learning.structure.k2 import k2
from bbn.learning.structure.score_cache import score
from bbn.learning.structure.structure import read_structure
from bbn.learning.tables.fit import network_from_counts
from bbn.learning.tables.priors import MEstimate
from bbn.model.network import BayesianNetwork


def _k2(data: CodedTable, target: str) -> Any:
    """K2 with the class before the attributes, in the order of the columns, and at most two parents."""
    return k2(
        data, [target, *(v.name for v in data.variables if v.name != target)], max_parents=2, progress=False
    )


def naive(data: CodedTable, target: str) -> list[tuple[str, str]]:
    """The structure of naive Bayes: the class is the one parent of every attribute."""
    return [(target, v.name) for v in data.variables if v.name != target]


LEARNERS: dict[str, Callable[[CodedTable, str], Any]] = {
    "naive": naive,
    "tan": tan,
    "chow-liu": lambda data, target: chow_liu(data, target),
    "k2": _k2,
    "hill-climb": lambda data, target: hill_climb(data, progress=False),
}
"""Learners of a structure by name; each is given the coded examples and the name of the class."""


AVERAGED = 30
"""Structures that are drawn with ``average="posterior"``."""


class BayesNetClassifier(NetworkClassifier):
    """A classifier that is any Bayesian network over the class and the attributes.

    Parameters
    ----------
    structure
        A DiGraph, a list of arcs (parent, child) or a network, over the columns' names and the class's: the name of y
        where it has one, otherwise "class". Columns that are not in it are left out. With `averaging`, a list of such.
    learner
        Where there is no structure: "naive", "tan" (the default), "chow-liu", "k2", "hill-climb", or a function of the
        examples (a data source, which every learner of bbn takes) and the name of the class, which gives a structure.
        With `averaging`, a list of such.
    averaging
        None, or the score ("bdeu", "k2", "bic", …) that stands for ln P(data | structure): the predictions of several
        structures are then averaged, each weighted by its posterior probability.
    average
        None, or "posterior": predictions are averaged over AVERAGED structures drawn from their posterior
        (`bbn.arc_posterior` under BDeu, at most three parents each), which is Bayes optimal in the textbook's sense.
    m, p
        The m-estimate of P(attribute | parents); see `NaiveBayes`. A class without parents is never smoothed.
    bins
        How many intervals a column of numbers is cut into, at its quantiles; None cuts it towards the class.
    kinds
        Column to its kind, where you know better than `bbn.describe`; see `bbn.learn`.
    costs
        None to predict the most probable class. Else what mistakes cost, and the class of least expected cost is
        predicted: a mapping from (true class, predicted class) to a number, where those left out cost 0 if the two
        agree and 1 if not; or an array of shape (true classes, predicted classes), in the order of `classes_`.

    Attributes
    ----------
    network_
        The BayesianNetwork; of several, the most probable.
    networks_
        All of them.
    space_
        With `averaging`, the HypothesisSpace over the structures, by position.
    classes_
        The labels, sorted.

    Notes
    -----
    Missing values, of attributes and of labels, are allowed. Only complete examples take part in learning the
    structure; the tables are then learned from all by EM. In classifying, missing values are summed out.

    >>> from bbn.datasets import play_tennis
    >>> days = play_tennis()
    >>> X, y = days.drop(columns="PlayTennis"), days["PlayTennis"]
    >>> arcs = [("PlayTennis", "Outlook"), ("PlayTennis", "Wind"), ("Outlook", "Wind")]
    >>> model = BayesNetClassifier(structure=arcs).fit(X, y)
    >>> model.network_.parents("Wind"), round(model.score(X, y), 4)
    (('PlayTennis', 'Outlook'), 0.8571)
    """

    networks_: list[BayesianNetwork]
    space_: HypothesisSpace

    @keywords_checked
    def __init__(
        self,
        structure: Any = None,
        learner: Any = None,
        averaging: str | None = None,
        *,
        average: str | None = None,
        m: float = 1.0,
        p: Mapping[str, Any] | None = None,
        bins: int | None = None,
        kinds: Mapping[str, str] | None = None,
        costs: Any = None,
    ) -> None:
        self.structure = structure
        self.learner = learner
        self.averaging = averaging
        self.average = average
        self.m = m
        self.p = p
        self.bins = bins
        self.kinds = kinds
        self.costs = costs

    @keywords_checked
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BayesNetClassifier:
        """Learn the structure, unless it is given, and the tables.

        Parameters
        ----------
        X : table
            One row per example: a DataFrame, an array or any other table, with the columns of `fit`.
            Missing values are unobserved.
        y : array
            The class of each row; missing ones are allowed.
        sample_weight : array, optional
            The weight of each row.

        Returns
        -------
        BayesNetClassifier
            Itself.

        Raises
        ------
        DataError
            The table and the labels do not fit each other.
        ModelError
            The structure does not fit the table.
        """
        examples = self._examples(X, y, sample_weight)
        if self.costs is not None:
            cost_matrix(self.costs, self.classes_)
        self.encoder_ = self._learned_encoder(examples)
        target, variables = self.class_variable_, self.encoder_.variables
        codes = dict(zip((v.name for v in variables), self.encoder_.codes(examples.table), strict=True))
        dtype = np.uint8 if target.card <= 255 else np.uint16
        codes[target.name] = np.where(examples.labels == UNLABELLED, target.card, examples.labels).astype(
            dtype
        )
        data = CodedTable((*variables, target), codes, len(examples.labels), examples.weights)
        structures = self._structures(data)
        self.networks_ = [self._tables_of(structure, data) for structure in structures]
        weights = self._weigh(structures, data)
        with np.errstate(divide="ignore"):
            self._log_weights = np.log(weights)
        self.network_ = self.networks_[int(ranked(self._log_weights, tie_of(data.total))[0])]
        self._scorers = [Scorer(net, target.name) for net in self.networks_]
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row; with `costs`, the one of least expected cost.

        Parameters
        ----------
        X : table
            One row per example, with the columns of `fit`. Missing values are unobserved.

        Returns
        -------
        ndarray
            One class per row; in a tie, the first.

        Raises
        ------
        ImpossibleEvidenceError
            A row is impossible under every class.
        """
        if self.costs is None:
            return super().predict(X)
        return np.asarray(self.classes_[self.expected_costs(X).argmin(axis=1)])

    def expected_costs(self, X: Any) -> Array:
        """What each prediction would cost on average, shape (rows, classes); without `costs`, 1 − P(class | row).

        Parameters
        ----------
        X : table
            One row per example, with the columns of `fit`. Missing values are unobserved.

        Returns
        -------
        ndarray
            Shape (rows, classes), in the order of `classes_`.

        Raises
        ------
        ImpossibleEvidenceError
            A row is impossible under every class.
        """
        shares = self.predict_proba(X)  # checks that the classifier is fitted
        return shares @ cost_matrix({} if self.costs is None else self.costs, self.classes_)

    def _structures(self, data: CodedTable) -> list[Any]:
        """The structures given, or learned from the complete examples."""
        if self.structure is not None:
            if self.learner is not None:
                raise ValueError("give a structure or a learner, not both")
            return _listed(self.structure) if self.averaging is not None else [self.structure]
        if self.average is not None:
            return self._drawn(data)
        learner = "tan" if self.learner is None else self.learner
        learners = _listed(learner) if self.averaging is not None else [learner]
        complete = _complete(data)
        with all_or_nothing():
            return [_learner(one)(complete, self.class_variable_.name) for one in learners]

    def _drawn(self, data: CodedTable) -> list[Any]:
        """Structures drawn from their posterior given the complete examples."""
        from bbn.learning.evaluation.arc_posterior import arc_posterior

        if self.average != "posterior":
            raise ValueError(f"average is {self.average!r}; expected 'posterior' or None")
        if self.learner is not None or self.averaging is not None:
            raise ValueError(
                "average='posterior' draws the structures itself: leave out learner and averaging"
            )
        return list(arc_posterior(_complete(data), max_parents=3, progress=False).sample(AVERAGED, seed=0))

    def _tables_of(self, structure: Any, data: CodedTable) -> BayesianNetwork:
        """The network of one structure: the m-estimate of its counts, or EM where values are missing."""
        shape = read_structure(structure)
        own = {v.name: v for v in data.variables}
        for name in shape.names:
            if name not in own:
                raise ModelError(f"the structure has {name!r}, which is not a column{nearest(name, own)}")
        target = self.class_variable_.name
        if target not in shape.parents:
            raise ModelError(
                f"the structure does not have the class {target!r}{nearest(target, shape.names)}"
            )
        prior = MEstimate(self.m, self.p)
        prior.check_names(tuple(own))
        smoothing = prior if shape.parents[target] else AttributePrior(prior, target)
        net = network_from_counts(
            {name: tuple(own[p] for p in parents) for name, parents in shape.parents.items()},
            {name: own[name] for name in shape.names},
            dict(zip(shape.names, data.counts(shape.families), strict=True)),
            smoothing,
        )
        if any(name in shape.parents for name in data.incomplete):
            with all_or_nothing():
                return fit_em(net, _columns(data, shape.names), prior=smoothing, progress=False).network
        return net

    def _weigh(self, structures: Sequence[Any], data: CodedTable) -> Array:
        """P(structure | data) of each, from a uniform prior."""
        if self.averaging is None:
            return np.full(len(structures), 1.0 / len(structures))
        complete = _complete(data)
        scores = [score(_everywhere(s, data), complete, self.averaging) for s in structures]
        uniform = dict.fromkeys(range(len(scores)), 1.0 / len(scores))
        self.space_ = HypothesisSpace(uniform, _entry, log=True).update([scores])
        return np.array(list(self.space_.probabilities.values()))

    def _log_joint(self, columns: list[Codes]) -> Array:
        codes = dict(zip((v.name for v in self.encoder_.variables), columns, strict=True))
        total: Array | None = None
        for scorer, log_weight in zip(self._scorers, self._log_weights, strict=True):
            if log_weight > -np.inf:
                part = log_weight + scorer.log_joint(codes, len(columns[0]))
                total = part if total is None else np.logaddexp(total, part)
        assert total is not None
        return total


class TAN(BayesNetClassifier):
    """Tree-augmented naive Bayes: naive Bayes plus the best tree among the attributes given the class.

    Parameters
    ----------
    m, p
        The m-estimate of P(attribute | class, its parent in the tree); see `NaiveBayes`.
    bins
        How many intervals a column of numbers is cut into, at its quantiles; None cuts it towards the class.
    kinds
        Column to its kind, where you know better than `bbn.describe`; see `bbn.learn`.
    costs
        What mistakes cost; see `BayesNetClassifier`.

    Attributes
    ----------
    network_
        The BayesianNetwork: the class, and each attribute given the class and at most one other attribute.
    classes_
        The labels, sorted.

    >>> X = [[0, 0], [1, 1], [0, 1], [1, 0]] * 5
    >>> y = ["same", "same", "different", "different"] * 5
    >>> TAN().fit(X, y).predict([[1, 1], [1, 0]])
    array(['same', 'different'], dtype='<U9')
    """

    @keywords_checked
    def __init__(
        self,
        m: float = 1.0,
        p: Mapping[str, Any] | None = None,
        *,
        bins: int | None = None,
        kinds: Mapping[str, str] | None = None,
        costs: Any = None,
    ) -> None:
        super().__init__(m=m, p=p, bins=bins, kinds=kinds, costs=costs)


def _entry(i: int, scores: Sequence[float]) -> float:
    """ln P(data | structure i), where the data are told by what each structure says of them."""
    return scores[i]


def _learner(given: Any) -> Callable[[CodedTable, str], Any]:
    if callable(given):
        return given  # type: ignore[no-any-return]  # as documented
    if given not in LEARNERS:
        raise ValueError(f"learner is {given!r}{nearest(given, LEARNERS)}")
    return LEARNERS[given]


def _listed(given: Any) -> list[Any]:
    if isinstance(given, list | tuple) and given:
        return list(given)
    raise ValueError(f"averaging needs a list of structures or of learners, found {given!r}")


def _complete(data: CodedTable) -> CodedTable:
    """The examples without a missing value."""
    keep = np.ones(data.n_rows, dtype=bool)
    for v in data.variables:
        keep &= data.codes[v.name] < v.card
    if keep.all():
        return data
    if not keep.any():
        raise DataError(
            "every example misses a value; a structure is learned from complete examples: give one"
        )
    rows = np.flatnonzero(keep)
    codes = {name: column[rows] for name, column in data.codes.items()}
    return CodedTable(data.variables, codes, len(rows), None if data.weights is None else data.weights[rows])


def _columns(data: CodedTable, names: Sequence[str]) -> CodedTable:
    """Some columns of the examples."""
    variables = tuple(v for v in data.variables if v.name in names)
    return CodedTable(variables, {v.name: data.codes[v.name] for v in variables}, data.n_rows, data.weights)


def _everywhere(structure: Any, data: CodedTable) -> Any:
    """A structure with every column a node, so that the scores of several are of the same data."""
    import networkx as nx

    shape = read_structure(structure)
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(v.name for v in data.variables)
    graph.add_edges_from((p, child) for child, parents in shape.parents.items() for p in parents)
    return graph
