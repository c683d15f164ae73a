"""HypothesisSpace: Bayes' rule over a finite set of hypotheses, and every answer that follows from it.

P(h | D) = P(D | h) P(h) / P(D) (Mitchell, *Machine Learning*, 1997, equation 6.1). The data are taken as
independent given the hypothesis, so ln P(D | h) is a sum over them; everything is kept as logarithms, and a
posterior is the prior of the data that come next. An update costs one likelihood per hypothesis and datum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bbn.core.display import BAR, Bar, Cell, Table, Tabular
from bbn.core.errors import ImpossibleEvidenceError, ModelError
from bbn.core.frozen import Array, Frozen, read_only
from bbn.core.keywords import keywords_checked
from bbn.hypotheses.description_length import Bits, DescriptionLengths
from bbn.hypotheses.likelihoods import Classifiers, Concepts, Functions, HypothesisModel, Networks, labelled
from bbn.hypotheses.weights import checked_priors, named, normalised
from bbn.model.variable import State, Variable, plain
from bbn.results.posterior import Posterior

if TYPE_CHECKING:
    from bbn.model.network import BayesianNetwork

Seed = int | np.random.Generator | None


class HypothesisSpace(Tabular, Frozen):
    """A finite set of hypotheses, each with its probability.

    Parameters
    ----------
    priors
        Hypothesis to its prior probability; they sum to 1. Anything hashable is a hypothesis.
    likelihood
        ``likelihood(h, datum)`` is P(datum | h): a probability or a density, at least 0.
    predict
        ``predict(h, x)`` is what h says of the instance x: a mapping from label to probability, or one label that
        is certain. Only `bayes_optimal` and the Gibbs classifiers need it.
    log
        Whether `likelihood` gives ln P(datum | h) instead, for data whose probability a float cannot hold.

    Attributes
    ----------
    hypotheses
        In the order given; wherever two are equally good the first of them is the answer.
    priors
        Hypothesis to P(h), before any data.
    log_evidence
        ln P(D) of the data seen so far.

    >>> space = HypothesisSpace(
    ...     {"cancer": 0.008, "no cancer": 0.992},
    ...     lambda h, test: {"cancer": {"+": 0.98, "-": 0.02}, "no cancer": {"+": 0.03, "-": 0.97}}[h][test],
    ... )
    >>> after = space.update(["+"])
    >>> round(after.probabilities["cancer"], 4), after.map(), space.ml(["+"])
    (0.2085, 'no cancer', 'cancer')
    """

    __slots__ = ("_log_likelihoods", "_model", "_priors", "hypotheses", "log_evidence")

    hypotheses: tuple[Any, ...]
    log_evidence: float
    _priors: Array
    _log_likelihoods: Array
    _model: HypothesisModel

    @keywords_checked
    def __init__(
        self,
        priors: Mapping[Any, float],
        likelihood: Callable[[Any, Any], float],
        predict: Callable[[Any, Any], Any] | None = None,
        *,
        log: bool = False,
    ) -> None:
        if not callable(likelihood):
            raise ModelError(f"likelihood must be a function of (h, datum), found {likelihood!r}")
        self._start(priors, Functions(likelihood, predict, log))

    @classmethod
    @keywords_checked
    def from_concepts(
        cls,
        concepts: Mapping[Any, Callable[[Any], bool]] | Iterable[Callable[[Any], bool]],
        priors: Mapping[Any, float] | None = None,
        noise: float = 0.0,
    ) -> HypothesisSpace:
        """Hypotheses that are boolean functions of an instance; data are pairs (instance, True or False).

        Parameters
        ----------
        concepts
            Name to function, or functions that are themselves the hypotheses.
        priors
            Hypothesis to prior; uniform unless given.
        noise
            The chance that a label in the data is wrong. With 0, the posterior is the version space.

        >>> space = HypothesisSpace.from_concepts({"even": lambda x: x % 2 == 0, "> 3": lambda x: x > 3, "all": bool})
        >>> after = space.update([(4, True), (5, True)])
        >>> after.version_space(), after.probabilities["> 3"]
        (('> 3', 'all'), 0.5)
        """
        given = named(concepts, "concepts")
        return cls._of(given, priors, Concepts(given, noise))

    @classmethod
    @keywords_checked
    def from_networks(
        cls,
        networks: Mapping[Any, BayesianNetwork] | Iterable[BayesianNetwork],
        priors: Mapping[Any, float] | None = None,
        target: str | None = None,
    ) -> HypothesisSpace:
        """Hypotheses that are networks over the same variables; data are rows, missing values summed out.

        Parameters
        ----------
        networks
            Name to network, or networks that are themselves the hypotheses.
        priors
            Hypothesis to prior; uniform unless given.
        target
            The variable that `bayes_optimal` and the Gibbs classifiers predict from a row of the others.

        >>> import bbn
        >>> coin = bbn.Variable("Coin", ["heads", "tails"])
        >>> fair, bent = (bbn.BayesianNetwork([bbn.CPT(coin, table=[p, 1 - p])]) for p in (0.5, 0.9))
        >>> space = HypothesisSpace.from_networks({"fair": fair, "bent": bent}, target="Coin")
        >>> after = space.update([{"Coin": "heads"}, {"Coin": "heads"}])
        >>> round(after.probabilities["bent"], 6), round(after.bayes_optimal({})["heads"], 6)
        (0.764151, 0.80566)
        """
        given = named(networks, "networks")
        return cls._of(given, priors, Networks(given, target))

    @classmethod
    @keywords_checked
    def from_classifiers(
        cls, classifiers: Mapping[Any, Any] | Iterable[Any], priors: Mapping[Any, float] | None = None
    ) -> HypothesisSpace:
        """Hypotheses that are fitted scikit-learn classifiers; data are pairs (instance, label).

        Parameters
        ----------
        classifiers
            Name to classifier, or classifiers that are themselves the hypotheses. One without `predict_proba` is
            certain of what it predicts.
        priors
            Hypothesis to prior; uniform unless given.
        """
        given = named(classifiers, "classifiers")
        return cls._of(given, priors, Classifiers(given))

    # Bayes' rule

    def update(self, data: Iterable[Any]) -> HypothesisSpace:
        """The space after these data: P(h | D) ∝ P(D | h) P(h). Updating one by one gives the same.

        ImpossibleEvidenceError if no hypothesis is left.

        Parameters
        ----------
        data : iterable
            One datum after the other, as the likelihood takes them.

        Returns
        -------
        HypothesisSpace
            A new space, whose priors are P(h | D).

        Raises
        ------
        ImpossibleEvidenceError
            No hypothesis is left.

        See Also
        --------
        map : The most probable hypothesis after that.
        """
        steps = self._steps(data)
        totals = steps[-1]
        with np.errstate(divide="ignore"):
            left = np.log(self._priors) + steps
        dead = np.flatnonzero(left.max(axis=1) == -np.inf)
        if len(dead):
            raise ImpossibleEvidenceError(
                f"no hypothesis of positive prior allows the data up to datum {dead[0] - 1} (counting from 0)"
            )
        return self._with(self.hypotheses, self._priors, totals, self._model)

    @property
    def priors(self) -> dict[Any, float]:
        """Hypothesis to P(h), before any data."""
        return dict(zip(self.hypotheses, self._priors.tolist(), strict=True))

    @property
    def probabilities(self) -> dict[Any, float]:
        """Hypothesis to P(h | data seen so far)."""
        return dict(zip(self.hypotheses, self._posterior().tolist(), strict=True))

    def map(self) -> Any:
        """The maximum a posteriori hypothesis, argmax P(h | D) (equation 6.2)."""
        return self.hypotheses[int(self._posterior().argmax())]

    def ml(self, data: Iterable[Any] = ()) -> Any:
        """The maximum likelihood hypothesis, argmax P(D | h) (6.3), D the data seen so far and `data`.

        Parameters
        ----------
        data : iterable, default ()
            Further data, beside those seen so far.

        Returns
        -------
        hypothesis
            The one that makes the data most probable, the first in a tie.

        See Also
        --------
        map : The same with the priors counted.
        """
        return self.hypotheses[int(self._steps(data)[-1].argmax())]

    def mdl(self, data: Iterable[Any] = ()) -> DescriptionLengths:
        """The length of each hypothesis and of the data given it, under the optimal codes (equation 6.17).

        D is the data seen so far and `data`. Shortest total first: the first is the MAP hypothesis given D.

        Parameters
        ----------
        data : iterable, default ()
            Further data, beside those seen so far.

        Returns
        -------
        DescriptionLengths
            A mapping from hypothesis to its bits and those of the data.

        See Also
        --------
        map : The hypothesis with the shortest total.

        Examples
        --------
        >>> space = HypothesisSpace({"fair": 0.75, "heads": 0.25}, lambda h, coin: 0.5 if h == "fair" else coin == "h")
        >>> lengths = space.mdl(["h", "h"])
        >>> lengths["heads"], lengths.best
        (Bits(hypothesis=2.0, data=0.0), 'heads')
        """
        with np.errstate(divide="ignore"):
            for_h = -np.log2(self._priors) + 0.0
        for_data = -self._steps(data)[-1] / math.log(2) + 0.0
        order = np.argsort(for_h + for_data, kind="stable").tolist()
        return DescriptionLengths(
            {self.hypotheses[i]: Bits(float(for_h[i]), float(for_data[i])) for i in order}
        )

    def version_space(self) -> tuple[Any, ...]:
        """The hypotheses that the data have not ruled out: those of positive probability."""
        return tuple(h for h, p in self.probabilities.items() if p > 0)

    # Classifying

    def bayes_optimal(self, x: Any) -> Posterior:
        """P(label | x, D) = Σ_h P(label | x, h) P(h | D), the posterior-weighted vote (equation 6.18).

        Parameters
        ----------
        x : object
            What to label, as `predict` takes it.

        Returns
        -------
        Posterior
            Over the labels.

        Raises
        ------
        ModelError
            The space was made without `predict`.

        See Also
        --------
        gibbs : The label of one hypothesis drawn at random.

        Examples
        --------
        >>> says = {"h1": "+", "h2": "-", "h3": "-"}
        >>> space = HypothesisSpace({"h1": 0.4, "h2": 0.3, "h3": 0.3}, lambda h, d: 1.0, lambda h, x: says[h])
        >>> space.map(), space.bayes_optimal(None).mode(), round(space.bayes_optimal(None)["-"], 12)
        ('h1', '-', 0.6)
        """
        votes: dict[State, float] = {}
        for h, p in self.probabilities.items():
            if p > 0:
                for label, share in self._says(h, x).items():
                    votes[label] = votes.get(label, 0.0) + p * share
        variable = Variable("label", list(votes))
        return Posterior((variable,), np.array(list(votes.values())), self.log_evidence)

    @keywords_checked
    def gibbs(self, x: Any, seed: Seed = None) -> Any:
        """The label that one hypothesis, drawn from P(h | D), gives x (the Gibbs classifier, section 6.8).

        Parameters
        ----------
        x : object
            What to label, as `predict` takes it.
        seed : int or numpy.random.Generator, optional
            The same seed gives the same label.

        Returns
        -------
        label
            What the hypothesis drawn says.

        Raises
        ------
        ModelError
            The space was made without `predict`.

        See Also
        --------
        voting_gibbs : Of many draws the commonest.
        """
        return self._draws(x, 1, np.random.default_rng(seed))[0]

    @keywords_checked
    def voting_gibbs(self, x: Any, n: int, seed: Seed = None) -> Any:
        """The commonest label of `n` Gibbs classifiers; it tends to the Bayes optimal one as n grows.

        Parameters
        ----------
        x : object
            What to label, as `predict` takes it.
        n : int
            How many hypotheses to draw.
        seed : int or numpy.random.Generator, optional
            The same seed gives the same label.

        Returns
        -------
        label
            The commonest.

        Raises
        ------
        ModelError
            The space was made without `predict`.

        See Also
        --------
        bayes_optimal : What it tends to.
        """
        if n < 1:
            raise ValueError(f"n is {n}; at least one hypothesis must be drawn")
        draws = self._draws(x, n, np.random.default_rng(seed))
        return max(dict.fromkeys(draws), key=draws.count)

    def _draws(self, x: Any, n: int, rng: np.random.Generator) -> list[State]:
        """Labels drawn from P(h | D) P(label | x, h): an uncertain hypothesis gives a label by its own odds."""
        drawn = rng.choice(len(self.hypotheses), size=n, p=self._posterior())
        uniforms = rng.random(n)
        said: dict[int, tuple[list[State], Array]] = {}
        labels = []
        for i, u in zip(drawn.tolist(), uniforms.tolist(), strict=True):
            if i not in said:
                says = {label: p for label, p in self._says(self.hypotheses[i], x).items() if p > 0}
                said[i] = list(says), np.cumsum(list(says.values()))
            names, sums = said[i]
            labels.append(names[int(np.searchsorted(sums[:-1], u * sums[-1], side="right"))])
        return labels

    # Looking at it

    def plot(self, data: Iterable[Any] = (), ax: Any = None, top: int = 10) -> Any:
        """Draw the posterior as `data` come in, a line per hypothesis; without data, a bar per hypothesis.

        Only the `top` hypotheses that are most probable at the end are drawn. Gives the matplotlib axes.

        Parameters
        ----------
        data : iterable, default ()
            Further data; the posterior is drawn after each.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default on new ones.
        top : int, default 10
            How many hypotheses.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
        import matplotlib.pyplot as plt

        axes = ax if ax is not None else plt.subplots()[1]
        steps = self._steps(data)
        path = np.array([normalised(self._priors, step) for step in steps])
        shown = np.argsort(-path[-1], kind="stable")[:top].tolist()
        if len(steps) == 1:
            axes.bar([str(self.hypotheses[i]) for i in shown], path[0, shown])
        else:
            for i in shown:
                axes.plot(path[:, i], label=str(self.hypotheses[i]))
            axes.set_xlabel("data seen")
            axes.legend()
        axes.set_ylabel("P(h | data)")
        axes.set_ylim(0, 1.02)
        return axes

    def __len__(self) -> int:
        return len(self.hypotheses)

    def __repr__(self) -> str:
        ranked = sorted(self.probabilities.items(), key=lambda pair: -pair[1])
        shown = ", ".join(f"{h}: {p:.6g}" for h, p in ranked[:6]) + (", …" if len(ranked) > 6 else "")
        return f"<HypothesisSpace of {len(self)}: {shown}>"

    def _table(self) -> Table:
        rows: list[list[Cell]] = [[str(h), f"{p:.6g}", Bar(p)] for h, p in self.probabilities.items()]
        return Table(["hypothesis", "probability", " " * BAR], rows)

    # Within

    def _start(self, priors: Mapping[Any, float], model: HypothesisModel) -> None:
        hypotheses, values = checked_priors(priors)
        self._fill(hypotheses, values, np.zeros(len(hypotheses)), model)

    @classmethod
    def _of(
        cls, given: Mapping[Any, Any], priors: Mapping[Any, float] | None, model: HypothesisModel
    ) -> HypothesisSpace:
        if priors is None:
            priors = dict.fromkeys(given, 1.0 / len(given))
        elif set(priors) != set(given):
            raise ModelError(f"priors are of {list(priors)}, but the hypotheses are {list(given)}")
        space = cls.__new__(cls)
        space._start(priors, model)
        return space

    @classmethod
    def _with(
        cls, hypotheses: tuple[Any, ...], priors: Array, log_likelihoods: Array, model: HypothesisModel
    ) -> HypothesisSpace:
        space = cls.__new__(cls)
        space._fill(hypotheses, priors, log_likelihoods, model)
        return space

    def _fill(
        self, hypotheses: tuple[Any, ...], priors: Array, log_likelihoods: Array, model: HypothesisModel
    ) -> None:
        with np.errstate(divide="ignore"):
            joint = np.log(priors) + log_likelihoods
        peak = joint.max()
        self._set(
            hypotheses=hypotheses,
            log_evidence=float(peak + np.log(np.exp(joint - peak).sum())) if log_likelihoods.any() else 0.0,
            _priors=read_only(priors),
            _log_likelihoods=read_only(log_likelihoods),
            _model=model,
        )

    def _steps(self, data: Iterable[Any]) -> Array:
        """ln P(data so far | h) before `data` and after each datum, shape (data + 1, hypotheses).

        The sums run in the order of the data, one addition each, so that updating datum by datum gives the same
        numbers to the last bit.
        """
        logs = self._model.log_likelihoods(self.hypotheses, data)
        return np.cumsum(np.vstack([self._log_likelihoods, logs]), axis=0)

    def _posterior(self) -> Array:
        return normalised(self._priors, self._log_likelihoods)

    def _says(self, h: Any, x: Any) -> dict[State, float]:
        """P(label | x, h), checked."""
        said = labelled(self._model.predict(h, x))
        shares = {plain(label): float(p) for label, p in said.items()}
        if not all(p >= 0 for p in shares.values()) or abs(sum(shares.values()) - 1) > 1e-6:
            raise ModelError(
                f"hypothesis {h!r} predicts {said!r} for {x!r}; expected probabilities that sum to 1"
            )
        return shares
