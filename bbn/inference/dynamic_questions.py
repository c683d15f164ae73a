"""What a dynamic network can be asked, as methods: `bbn.model.questions` makes them its own.

Evidence is a table with one row a step. Every method that takes many sequences takes them in the same three ways: a
long table with `sequence=` (and `time=`), a list of tables, or one table with `lengths=`.

This file is beside the folder `time`: jedi, which many editors ask, does not look into packages of that name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bbn.core.budget import require_memory
from bbn.core.errors import DataError, EvidenceError
from bbn.core.keywords import keywords_checked
from bbn.core.threads import within
from bbn.data.streams.stream import Streamed
from bbn.inference.time import log_evidences, sequence_beliefs
from bbn.inference.time.sequences import indexed_evidence, read_sequences
from bbn.model.previous import split_name

if TYPE_CHECKING:
    from bbn.inference.time.stream import FilterState
    from bbn.results.posterior import Posterior

METHODS = ("exact", "particles")
FEWER = "observe more variables, or ask about fewer steps"


class TimeQuestions:
    """What a dynamic network answers."""

    __slots__ = ()

    @keywords_checked
    def filter(
        self: Any,
        evidence: Any,
        *,
        sequence: str | None = None,
        time: str | None = None,
        lengths: Sequence[int] | None = None,
        method: str = "exact",
        n_particles: int = 1000,
        seed: Any = None,
        memory_limit: int | float | str | None = None,
        time_limit: float | None = None,
        n_jobs: int | None = None,
    ) -> Any:
        """P(x[t] | evidence up to step t), for every variable and step.

        Parameters
        ----------
        evidence
            A table with one row a step and a column per observed variable: a DataFrame, a dict of columns, a list of
            dicts, a path. NaN and None are unobserved; a value may be a state, a number, `bbn.Virtual`, `bbn.OneOf` or
            `bbn.Not`. A list of tables is as many sequences. Data from `bbn.open_data` is filtered batch by batch.
        sequence
            The column that tells which sequence a row belongs to.
        time
            A column of whole numbers to sort the rows of a sequence by; numbers left out are unobserved steps.
        lengths
            The number of rows of each sequence, in a table where they follow each other.
        method
            "exact", or "particles" where that is too wide.
        n_particles, seed
            For particles: how many, and an int or a Generator.
        memory_limit
            Bytes, or text such as "2 GB".
        time_limit
            Seconds after which a TimeLimitError is raised; None is BBN_TIME_LIMIT, or else any time. For data from
            `bbn.open_data` it does not count.
        n_jobs
            Threads that share the sequences; None is OMP_NUM_THREADS if set, otherwise the number of cores.

        Returns
        -------
        Beliefs
            ``beliefs["Rain"]`` is an array (steps, states); of a continuous variable (steps, 2), mean and variance.
            With several sequences a dict from each one's name (its number, where it has none) to its Beliefs. For
            data from `bbn.open_data`, an iterator over such, one per batch.

        Raises
        ------
        EvidenceError
            An unknown column or state, an empty sequence, a time that is there twice.
        ImpossibleEvidenceError
            A step that contradicts those before it; the error names it.
        BudgetError
            The interface is too wide for exact work.
        TimeLimitError
            There was no answer after `time_limit` seconds.

        See Also
        --------
        smooth : given all evidence.
        start : one row at a time.

        Examples
        --------
        >>> import bbn
        >>> beliefs = bbn.example("umbrella").filter({"Umbrella": ["yes", "yes"]})
        >>> beliefs["Rain"].round(4)
        array([[0.8182, 0.1818],
               [0.8834, 0.1166]])
        """
        if method not in METHODS:
            raise EvidenceError(f"no method {method!r}; choose one of {', '.join(METHODS)}")
        with within(time_limit, FEWER):
            if isinstance(evidence, Streamed):
                from bbn.inference.time.stream import filter_batches

                return filter_batches(self, evidence, sequence, memory_limit)
            sequences = read_sequences(self, evidence, sequence, time, lengths)
            if method == "particles":
                from bbn.inference.time.particles import particle_filter

                return particle_filter(self, sequences, n_particles, seed, memory_limit)
            return sequence_beliefs(self, sequences, 0, memory_limit, n_jobs)

    @keywords_checked
    def smooth(
        self: Any,
        evidence: Any,
        lag: int | None = None,
        *,
        sequence: str | None = None,
        time: str | None = None,
        lengths: Sequence[int] | None = None,
        memory_limit: int | float | str | None = None,
        time_limit: float | None = None,
        n_jobs: int | None = None,
    ) -> Any:
        """P(x[t] | all evidence), for every variable and step.

        Parameters
        ----------
        evidence, sequence, time, lengths, memory_limit, time_limit, n_jobs
            As in `filter`.
        lag
            None for all evidence, or how many steps of evidence after t count (fixed-lag smoothing); 0 is filtering.

        Returns
        -------
        Beliefs
            As `filter` gives them.

        Raises
        ------
        EvidenceError, ImpossibleEvidenceError, BudgetError
            As in `filter`.

        See Also
        --------
        filter : given the evidence up to each step.

        Examples
        --------
        >>> import bbn
        >>> bbn.example("umbrella").smooth({"Umbrella": ["yes", "yes"]})["Rain"].round(4)
        array([[0.8834, 0.1166],
               [0.8834, 0.1166]])
        """
        if lag is not None and (isinstance(lag, bool) or not isinstance(lag, int | np.integer) or lag < 0):
            raise EvidenceError(f"lag is {lag!r}; expected None or a whole number of steps, at least 0")
        with within(time_limit, FEWER):
            sequences = read_sequences(self, evidence, sequence, time, lengths)
            return sequence_beliefs(self, sequences, lag, memory_limit, n_jobs)

    @keywords_checked
    def forecast(
        self: Any,
        evidence: Any = None,
        horizon: int = 1,
        *,
        sequence: str | None = None,
        time: str | None = None,
        lengths: Sequence[int] | None = None,
        memory_limit: int | float | str | None = None,
        time_limit: float | None = None,
        n_jobs: int | None = None,
    ) -> Any:
        """P(x[t] | evidence) for the `horizon` steps that follow the evidence.

        Parameters
        ----------
        evidence, sequence, time, lengths, memory_limit, time_limit, n_jobs
            As in `filter`; None forecasts from the start.
        horizon
            How many steps, at least 1.

        Returns
        -------
        Beliefs
            ``beliefs["Rain"]`` is an array (horizon, states); its steps are numbered on from the evidence.

        See Also
        --------
        filter, smooth

        Examples
        --------
        >>> import bbn
        >>> bbn.example("umbrella").forecast({"Umbrella": ["yes", "yes"]}, 2)["Rain"].round(4)
        array([[0.6533, 0.3467],
               [0.5613, 0.4387]])
        """
        if isinstance(horizon, bool) or not isinstance(horizon, int | np.integer) or horizon < 1:
            raise EvidenceError(f"horizon is {horizon!r}; expected a whole number of steps, at least 1")
        with within(time_limit, FEWER):
            sequences = read_sequences(self, evidence, sequence, time, lengths)
            steps = sequences.n_steps + int(horizon) * len(sequences.names)
            cells = sum(v.card + 1 for v in self.variables) * steps
            require_memory(8 * cells, f"beliefs of {steps:,} steps", "forecast fewer steps", memory_limit)
            longer = sequences.extended({v.name: v.card for v in self.variables}, int(horizon))
            return sequence_beliefs(self, longer, 0, memory_limit, n_jobs, last=int(horizon))

    @keywords_checked
    def viterbi(
        self: Any,
        evidence: Any,
        k: int | None = None,
        *,
        sequence: str | None = None,
        time: str | None = None,
        lengths: Sequence[int] | None = None,
        memory_limit: int | float | str | None = None,
        time_limit: float | None = None,
        n_jobs: int | None = None,
    ) -> Any:
        """The most probable path: the states of all variables in all steps together, given the evidence.

        Parameters
        ----------
        evidence, sequence, time, lengths, memory_limit, time_limit, n_jobs
            As in `filter`.
        k
            None for the best path, or how many of the best to list.

        Returns
        -------
        Path
            ``path["Rain"]`` lists the states, one a step; `path.log_probability` is ln P(path, evidence). With `k` a
            list, best first; with several sequences a dict of such. Continuous variables that were not observed are
            integrated out.

        See Also
        --------
        smooth : the most probable state of each step by itself.

        Examples
        --------
        >>> import bbn
        >>> path = bbn.example("umbrella").viterbi({"Umbrella": ["yes", "yes", "no", "yes", "yes"]})
        >>> path["Rain"]
        ['yes', 'yes', 'no', 'yes', 'yes']
        """
        from bbn.inference.time.best_paths import best_paths

        if k is not None and (isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1):
            raise EvidenceError(f"k must be a positive whole number, found {k!r}")
        with within(time_limit, FEWER):
            sequences = read_sequences(self, evidence, sequence, time, lengths)
            found = best_paths(self, sequences, k, memory_limit)
        return dict(zip(sequences.names, found, strict=True)) if sequences.several else found[0]

    @keywords_checked
    def log_likelihood(
        self: Any,
        data: Any,
        *,
        sequence: str | None = None,
        time: str | None = None,
        lengths: Sequence[int] | None = None,
        memory_limit: int | float | str | None = None,
        time_limit: float | None = None,
        n_jobs: int | None = None,
    ) -> Any:
        """ln P(sequence) of each sequence, what is not observed summed out; -inf where one is impossible.

        Parameters
        ----------
        data, sequence, time, lengths, memory_limit, time_limit, n_jobs
            As `evidence` in `filter`.

        Returns
        -------
        float or Series
            A number for one table; with several sequences a Series by sequence.

        Examples
        --------
        >>> import bbn
        >>> round(bbn.example("umbrella").log_likelihood({"Umbrella": ["yes", "yes"]}), 6)
        -1.045546
        """
        with within(time_limit, FEWER):
            sequences = read_sequences(self, data, sequence, time, lengths, error=DataError)
            logs = log_evidences(self, sequences, memory_limit, n_jobs)
        if not sequences.several:
            return float(logs[0])
        import pandas as pd

        index = pd.Index(sequences.names, name=sequence or "sequence")
        return pd.Series(logs, index=index, name="log_likelihood")

    def query(self: Any, target: str, evidence: Any = None, **options: Any) -> Posterior:
        """The posterior of one variable in one step, given findings by name and step.

        Parameters
        ----------
        target
            A variable and its step, "Rain[3]"; a static variable by its name.
        evidence
            Such names to findings.
        options
            Those of `smooth`.

        Examples
        --------
        >>> import bbn
        >>> round(bbn.example("umbrella").query("Rain[1]", {"Umbrella[0]": "yes"})["yes"], 4)
        0.6273
        """
        name, at = split_name(target) if isinstance(target, str) else (target, None)
        self.variable(name)
        if name in self.static and at is None:
            at = 0
        elif at is None or at < 0 or name in self.static:
            raise EvidenceError(
                f"the target {target!r} does not say which step; write {name + '[0]'!r} for the first"
            )
        last = max((split_name(key)[1] or 0 for key in evidence or {} if isinstance(key, str)), default=0)
        beliefs = self.smooth(indexed_evidence(self, evidence, max(at, last) + 1), **options)
        if name in self.continuous:
            raise EvidenceError(
                f"{name!r} is continuous; smooth(evidence)[{name!r}] holds its mean and variance in each step"
            )
        answer: Posterior = beliefs.at(at, name)
        return answer

    @keywords_checked
    def start(self: Any, likelihoods: str | Sequence[str] = ()) -> FilterState:
        """The belief before any evidence: a filter that takes one row at a time and forgets the rows it has seen.

        Parameters
        ----------
        likelihoods
            Variables between others, neither passed on to the next slice nor without children, that rows will give
            `bbn.Virtual` findings of.

        Returns
        -------
        FilterState

        Examples
        --------
        >>> import bbn
        >>> state = bbn.example("umbrella").start()
        >>> state = state.update({"Umbrella": "yes"})
        >>> state["Rain"].round(4)
        array([0.8182, 0.1818])
        """
        from bbn.inference.time.stream import start

        return start(self, likelihoods)

    @keywords_checked
    def sample(self: Any, length: int, n: int | None = None, seed: Any = None) -> Any:
        """Sequences drawn from the dynamic network.

        Parameters
        ----------
        length
            Steps of each sequence.
        n
            How many sequences; None draws one and leaves out the column that numbers them.
        seed
            An int or a Generator; the same seed gives the same sequences.

        Returns
        -------
        DataFrame
            One row a step: the column "sequence" (numbers from 0) where `n` is given, then one per variable,
            categorical with the declared states; the index numbers the steps. Questions and learners take it with
            ``sequence="sequence"``.

        Examples
        --------
        >>> import bbn
        >>> bbn.example("umbrella").sample(5, n=2, seed=0).shape
        (10, 3)
        """
        from bbn.inference.time.sample import sample

        return sample(self, length, n, seed)
