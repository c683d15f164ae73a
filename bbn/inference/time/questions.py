"""What a dynamic network can be asked, as methods: `bbn.model.questions` makes them its own.

Evidence is a table with one row a step. Every method that takes many sequences takes them in the same three ways: a
long table with `sequence=` (and `time=`), a list of tables, or one table with `lengths=`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bbn.core.keywords import keywords_checked

if TYPE_CHECKING:
    from bbn.inference.time.stream import FilterState
    from bbn.results.posterior import Posterior


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
        from bbn.inference.time import filter_

        return filter_(
            self,
            evidence,
            sequence=sequence,
            time=time,
            lengths=lengths,
            method=method,
            n_particles=n_particles,
            seed=seed,
            memory_limit=memory_limit,
            time_limit=time_limit,
            n_jobs=n_jobs,
        )

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
        from bbn.inference.time import smooth

        return smooth(
            self,
            evidence,
            lag,
            sequence=sequence,
            time=time,
            lengths=lengths,
            memory_limit=memory_limit,
            time_limit=time_limit,
            n_jobs=n_jobs,
        )

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
        from bbn.inference.time import forecast

        return forecast(
            self,
            evidence,
            horizon,
            sequence=sequence,
            time=time,
            lengths=lengths,
            memory_limit=memory_limit,
            time_limit=time_limit,
            n_jobs=n_jobs,
        )

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
        from bbn.inference.time import viterbi

        return viterbi(
            self,
            evidence,
            k,
            sequence=sequence,
            time=time,
            lengths=lengths,
            memory_limit=memory_limit,
            time_limit=time_limit,
            n_jobs=n_jobs,
        )

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
        from bbn.inference.time import log_likelihood

        return log_likelihood(
            self,
            data,
            sequence=sequence,
            time=time,
            lengths=lengths,
            memory_limit=memory_limit,
            time_limit=time_limit,
            n_jobs=n_jobs,
        )

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
        from bbn.inference.time import query

        return query(self, target, evidence, **options)

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
