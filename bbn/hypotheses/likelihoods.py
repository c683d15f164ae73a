"""What a space of hypotheses asks of them: ln P(datum | h) for a batch of data, and what h predicts.

Four kinds: functions given by the user, boolean concepts, networks, and fitted scikit-learn classifiers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from bbn.core.errors import DataError, ModelError
from bbn.core.frozen import Array

if TYPE_CHECKING:
    from bbn.model.network import BayesianNetwork


class HypothesisModel(Protocol):
    """How hypotheses of one kind meet data."""

    def log_likelihoods(self, hypotheses: Sequence[Any], data: Iterable[Any]) -> Array:
        """ln P(datum | h), shape (data, hypotheses)."""

    def predict(self, h: Any, x: Any) -> Any:
        """What h says of x: a mapping from label to probability, or a label."""


@dataclass(frozen=True, eq=True)
class Functions:
    """Hypotheses known by two functions of the user's."""

    likelihood: Callable[[Any, Any], float]
    says: Callable[[Any, Any], Any] | None
    log: bool

    def log_likelihoods(self, hypotheses: Sequence[Any], data: Iterable[Any]) -> Array:
        """ln of `likelihood`, each value checked."""
        logs = [[self._log(h, datum) for h in hypotheses] for datum in listed(data)]
        return np.array(logs, dtype=np.float64).reshape(len(logs), len(hypotheses))

    def predict(self, h: Any, x: Any) -> Any:
        """`says`, if there is one."""
        if self.says is None:
            raise ModelError(
                "this space was made without predict=, a function (h, x) -> {label: probability}"
            )
        return self.says(h, x)

    def _log(self, h: Any, datum: Any) -> float:
        value = float(self.likelihood(h, datum))
        if self.log:
            if math.isnan(value) or value == math.inf:
                raise ModelError(f"ln P({datum!r} | {h!r}) is {value}; expected a number or -inf")
            return value
        if not (math.isfinite(value) and value >= 0):
            raise ModelError(f"P({datum!r} | {h!r}) is {value}; expected a finite number, at least 0")
        return math.log(value) if value else -math.inf


@dataclass(frozen=True, eq=True)
class Concepts:
    """Hypotheses that are boolean functions; data are pairs (instance, label)."""

    concepts: Mapping[Any, Callable[[Any], bool]]
    noise: float

    def __post_init__(self) -> None:
        if not 0 <= self.noise < 0.5:
            raise ModelError(f"noise is {self.noise}; expected at least 0 and less than 0.5")

    def log_likelihoods(self, hypotheses: Sequence[Any], data: Iterable[Any]) -> Array:
        """ln(1 − noise) where the concept agrees with the label, ln noise where it does not."""
        instances, labels = pairs(data)
        for i, label in enumerate(labels):
            if not isinstance(label, bool | np.bool_):
                raise DataError(f"datum {i}: the label is {label!r}; a concept's labels are True and False")
        agree = [
            [bool(self.concepts[h](x)) == y for h in hypotheses]
            for x, y in zip(instances, labels, strict=True)
        ]
        with np.errstate(divide="ignore"):
            right, wrong = np.log1p(-self.noise), np.log(self.noise)
        matrix = np.array(agree, dtype=bool).reshape(len(labels), len(hypotheses))
        return np.asarray(np.where(matrix, right, wrong))

    def predict(self, h: Any, x: Any) -> dict[bool, float]:
        """What the concept says, for certain: `noise` is in the data, not in the concept."""
        says = bool(self.concepts[h](x))
        return {True: float(says), False: float(not says)}


@dataclass(frozen=True, eq=True)
class Networks:
    """Hypotheses that are networks; data are rows."""

    networks: Mapping[Any, BayesianNetwork]
    target: str | None

    def __post_init__(self) -> None:
        first, *others = self.networks.values()
        own = {v.name: set(v.states) for v in first.variables}
        for network in others:
            if {v.name: set(v.states) for v in network.variables} != own:
                raise ModelError(
                    f"the networks must have the same variables and states; one has {sorted(own)}, "
                    f"another {sorted(network.names)}"
                )
        if self.target is not None:
            first.variable(self.target)

    def log_likelihoods(self, hypotheses: Sequence[Any], data: Any) -> Array:
        """ln P(row | network), missing values summed out."""
        rows = list(data) if isinstance(data, Iterator) else data
        if isinstance(rows, list | tuple) and not rows:
            return np.empty((0, len(hypotheses)))
        return np.column_stack(
            [np.asarray(self.networks[h].log_likelihood(rows), dtype=np.float64) for h in hypotheses]
        )

    def predict(self, h: Any, x: Mapping[str, Any]) -> dict[Any, float]:
        """The posterior of the target given the rest of the row."""
        if self.target is None:
            raise ModelError("this space was made without target=, the variable to predict")
        evidence = {name: value for name, value in x.items() if name != self.target}
        return self.networks[h].query(self.target, evidence).to_dict()


@dataclass(frozen=True, eq=True)
class Classifiers:
    """Hypotheses that are fitted scikit-learn classifiers; data are pairs (instance, label)."""

    classifiers: Mapping[Any, Any]

    def log_likelihoods(self, hypotheses: Sequence[Any], data: Iterable[Any]) -> Array:
        """ln P(label | instance, classifier)."""
        instances, labels = pairs(data)
        logs = np.full((len(labels), len(hypotheses)), -np.inf)
        if not labels:
            return logs
        table = _table(instances)
        for j, h in enumerate(hypotheses):
            probabilities, classes = self._probabilities(h, table)
            column = {label: k for k, label in enumerate(classes)}
            own = [column.get(label, -1) for label in labels]
            known = np.array(own) >= 0
            with np.errstate(divide="ignore"):
                logs[known, j] = np.log(probabilities[known, np.array(own)[known]])
        return logs

    def predict(self, h: Any, x: Any) -> dict[Any, float]:
        """Its `predict_proba`."""
        probabilities, classes = self._probabilities(h, _table([x]))
        return dict(zip(classes, probabilities[0].tolist(), strict=True))

    def _probabilities(self, h: Any, table: Any) -> tuple[Array, list[Any]]:
        classifier = self.classifiers[h]
        classes = classifier.classes_.tolist()
        if hasattr(classifier, "predict_proba"):
            return np.asarray(classifier.predict_proba(table)), classes
        predicted = np.asarray(classifier.predict(table))
        return (predicted[:, None] == classifier.classes_[None, :]).astype(np.float64), classes


def listed(data: Any) -> list[Any]:
    """The data one by one; rows of a DataFrame are dicts. DataError where it looks like one datum alone.

    >>> listed(["+", "-"])
    ['+', '-']
    """
    if isinstance(data, Mapping) or (isinstance(data, str | bytes) and len(data) != 1):
        raise DataError(f"data must be a list of data, found {data!r}; a single datum is written [datum]")
    if hasattr(data, "columns"):
        import narwhals as nw

        frame: Any = nw.from_native(data, eager_only=True)
        return list(frame.iter_rows(named=True))
    try:
        return list(data)
    except TypeError:
        raise DataError(
            f"data must be a list of data, found {data!r}; a single datum is written [datum]"
        ) from None


def pairs(data: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    """Data that are (instance, label) as two lists."""
    instances, labels = [], []
    for i, datum in enumerate(listed(data)):
        if not (isinstance(datum, tuple | list) and len(datum) == 2):
            raise DataError(f"datum {i} is {datum!r}; expected a pair (instance, label)")
        instances.append(datum[0])
        labels.append(datum[1])
    return instances, labels


def labelled(said: Any) -> Mapping[Any, float]:
    """A prediction as a mapping from label to probability; a bare label is certain.

    >>> labelled("+")
    {'+': 1.0}
    """
    return said if isinstance(said, Mapping) else {said: 1.0}


def _table(instances: list[Any]) -> Any:
    """Instances as scikit-learn takes them: a DataFrame of mappings, otherwise an array."""
    if isinstance(instances[0], Mapping):
        import pandas as pd

        return pd.DataFrame(instances)
    return np.asarray(instances)
