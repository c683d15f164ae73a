"""What a network can be asked about rows of data, as methods: predictions, likelihoods, and rows drawn from it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from bbn.core.keywords import keywords_checked
from bbn.model.options import MemoryLimit, Order, Seed

if TYPE_CHECKING:
    import pandas as pd

    from bbn.model.evidence import Evidence
    from bbn.model.interventions import Interventions


class RowQuestions:
    """What a network says about tables of data."""

    __slots__ = ()

    @keywords_checked
    def predict(
        self: Any,
        data: Any,
        target: str,
        *,
        do: Interventions | None = None,
        impossible: Literal["raise", "nan"] = "raise",
        n_jobs: int | None = None,
        memory_limit: MemoryLimit = None,
        time_limit: float | None = None,
        order: Order = "auto",
        to: str | os.PathLike[str] | None = None,
        client: Any = None,
    ) -> Any:
        """Return the most probable state of `target` for each row of data.

        Parameters
        ----------
        data : table
            pandas, polars, pyarrow, a dict of columns, a list of dicts, a path to CSV or Parquet, or what
            `bbn.open_data` opened. Columns that are absent and values that are missing are unobserved; the target's own
            column is ignored, and so are columns that are not variables of the network.
        target : str
            The variable to predict.
        do : mapping, optional
            What is done to variables before a row is observed, as in `query`. The columns of variables that are set
            are not read: they tell what was, not what is done.
        impossible : {"raise", "nan"}, default "raise"
            What to do with a row that the network gives probability zero: raise an error that names it, or answer
            with a missing value.
        n_jobs : int, optional
            Threads, −1 for one per core; by default OMP_NUM_THREADS if set, otherwise one per core.
        memory_limit : int, float or str, optional
            The most bytes that the work may take, such as ``"2 GB"``; by default BBN_MEMORY_LIMIT, or half of the
            memory there is.
        time_limit : float, optional
            The most seconds that a table, or a batch of a larger one, may take; TimeLimitError beyond, before the start
            where it would take far longer. By default BBN_TIME_LIMIT, or any time.
        budget : Budget, optional
            Seconds and bytes as one value, in place of `time_limit` and `memory_limit`.
        order : str, default "auto"
            The rule that chooses the elimination order, as in `query`.
        to : path, optional
            Write the answers as they come: to a .parquet, .csv or .tsv file, or to a folder of Parquet files.
        client : dask.distributed.Client or str, optional
            A Dask cluster that does the work, or its scheduler's address.

        Returns
        -------
        column, iterator or Path
            A column of states of the kind of the data (pandas gives a Series, a dict or list an array), the first of
            equals; of a continuous target the posterior mean. Data that `bbn.open_data` opened, a folder or a pattern
            of files give an iterator over such columns, one per batch; Dask's data and `client` a Dask Series; `to`
            its path.

        Raises
        ------
        EvidenceError
            The target is unknown.
        DataError
            A value is not a state of its variable.
        ImpossibleEvidenceError
            A row has probability zero, unless ``impossible="nan"``.
        BudgetError
            The work would need more memory than allowed. TimeLimitError, a kind of it: more time.

        See Also
        --------
        predict_proba : The probabilities of all states.
        query : The same for one case.

        Examples
        --------
        >>> import bbn
        >>> cases = {"JohnCalls": ["yes", "no"], "MaryCalls": ["yes", None]}
        >>> bbn.example("burglary").predict(cases, "Alarm").tolist()
        ['yes', 'no']
        """
        limits: Any = {"memory_limit": memory_limit, "time_limit": time_limit, "n_jobs": n_jobs}
        where: Any = {"to": to, "client": client, "order": order, **limits}
        return _answer("predict", self, do, data, target, impossible=impossible, **where)

    @keywords_checked
    def predict_proba(
        self: Any,
        data: Any,
        target: str,
        *,
        do: Interventions | None = None,
        impossible: Literal["raise", "nan"] = "raise",
        n_jobs: int | None = None,
        memory_limit: MemoryLimit = None,
        time_limit: float | None = None,
        order: Order = "auto",
        to: str | os.PathLike[str] | None = None,
        client: Any = None,
    ) -> Any:
        """Return the posterior of `target` for each row of data, one column per state.

        Parameters
        ----------
        data : table
            As in `predict`.
        target : str
            The variable to predict, a discrete one.
        do : mapping, optional
            What is done to variables before a row is observed, as in `predict`.
        impossible : {"raise", "nan"}, default "raise"
            What to do with a row of probability zero: raise an error that names it, or answer with NaN.
        n_jobs : int, optional
            Threads, as in `predict`.
        memory_limit : int, float or str, optional
            The most bytes that the work may take, as in `predict`.
        time_limit : float, optional
            The most seconds that a table, or a batch of a larger one, may take; TimeLimitError beyond, before the start
            where it would take far longer. By default BBN_TIME_LIMIT, or any time.
        budget : Budget, optional
            Seconds and bytes as one value, in place of `time_limit` and `memory_limit`.
        order : str, default "auto"
            The rule that chooses the elimination order, as in `query`.
        to : path, optional
            Where to write the answers as they come, as in `predict`.
        client : dask.distributed.Client or str, optional
            A Dask cluster that does the work, as in `predict`.

        Returns
        -------
        table, iterator or Path
            A table of the kind of the data, one column per state, named after it; an iterator over such tables, a Dask
            DataFrame or a path where `predict` gives one.

        Raises
        ------
        EvidenceError, DataError, ImpossibleEvidenceError, BudgetError, TimeLimitError
            As in `predict`; EvidenceError also for a continuous target, which has no states.

        See Also
        --------
        predict : The most probable state alone.
        query : The same for one case.

        Examples
        --------
        >>> import bbn
        >>> cases = {"JohnCalls": ["yes", None], "MaryCalls": ["yes", "no"]}
        >>> answers = bbn.example("burglary").predict_proba(cases, "Burglary")
        >>> {state: p.round(4).tolist() for state, p in answers.items()}
        {'yes': [0.2842, 0.0003], 'no': [0.7158, 0.9997]}
        """
        limits: Any = {"memory_limit": memory_limit, "time_limit": time_limit, "n_jobs": n_jobs}
        where: Any = {"to": to, "client": client, "order": order, **limits}
        return _answer("predict_proba", self, do, data, target, impossible=impossible, **where)

    @keywords_checked
    def log_likelihood(
        self: Any,
        data: Any,
        *,
        do: Interventions | None = None,
        n_jobs: int | None = None,
        memory_limit: MemoryLimit = None,
        time_limit: float | None = None,
        order: Order = "auto",
        to: str | os.PathLike[str] | None = None,
        client: Any = None,
    ) -> Any:
        """Return ln P(row) for each row of data, missing values summed out.

        Parameters
        ----------
        data : table
            As in `predict`; columns that are absent are summed out too.
        do : mapping, optional
            What is done to variables before a row is observed, as in `predict`.
        n_jobs : int, optional
            Threads, as in `predict`.
        memory_limit : int, float or str, optional
            The most bytes that the work may take, as in `predict`.
        time_limit : float, optional
            The most seconds that a table, or a batch of a larger one, may take; TimeLimitError beyond, before the start
            where it would take far longer. By default BBN_TIME_LIMIT, or any time.
        budget : Budget, optional
            Seconds and bytes as one value, in place of `time_limit` and `memory_limit`.
        order : str, default "auto"
            The rule that chooses the elimination order, as in `query`.
        to : path, optional
            Where to write the answers as they come, as in `predict`.
        client : dask.distributed.Client or str, optional
            A Dask cluster that does the work, as in `predict`.

        Returns
        -------
        column, iterator or Path
            A column of numbers of the kind of the data, −inf where a row is impossible; with continuous variables
            among the columns they are log densities. An iterator over such columns, a Dask Series or a path where
            `predict` gives one.

        Raises
        ------
        DataError, BudgetError, TimeLimitError
            As in `predict`.

        See Also
        --------
        bbn.score : A structure's score on data.
        BayesianNetwork.probability : The probability of one assignment.

        Examples
        --------
        >>> import bbn
        >>> bbn.example("burglary").log_likelihood({"JohnCalls": ["yes", "no"]}).round(4).tolist()
        [-2.9538, -0.0535]
        """
        limits: Any = {"memory_limit": memory_limit, "time_limit": time_limit, "n_jobs": n_jobs}
        where: Any = {"to": to, "client": client, "order": order, **limits}
        return _answer("log_likelihood", self, do, data, **where)

    @overload
    def sample(
        self: Any,
        n: int,
        evidence: Evidence | None = None,
        seed: Seed = None,
        missing: float | Mapping[str, float] = 0.0,
        *,
        do: Interventions | None = None,
        to: None = None,
        client: None = None,
        as_codes: Literal[False] = False,
        chunks: None = None,
        n_jobs: int | None = None,
        memory_limit: MemoryLimit = None,
        time_limit: float | None = None,
        progress: bool | None = None,
    ) -> pd.DataFrame: ...
    @overload
    def sample(
        self: Any,
        n: int,
        evidence: Evidence | None = None,
        seed: Seed = None,
        missing: float | Mapping[str, float] = 0.0,
        *,
        do: Interventions | None = None,
        to: str | os.PathLike[str],
        client: Any = None,
        as_codes: bool = False,
        chunks: int | bool | None = None,
        n_jobs: int | None = None,
        memory_limit: MemoryLimit = None,
        time_limit: float | None = None,
        progress: bool | None = None,
    ) -> Path: ...
    @overload
    def sample(
        self: Any,
        n: int,
        evidence: Evidence | None = None,
        seed: Seed = None,
        missing: float | Mapping[str, float] = 0.0,
        *,
        do: Interventions | None = None,
        to: str | os.PathLike[str] | None = None,
        client: Any = None,
        as_codes: bool = False,
        chunks: int | bool | None = None,
        n_jobs: int | None = None,
        memory_limit: MemoryLimit = None,
        time_limit: float | None = None,
        progress: bool | None = None,
    ) -> Any: ...

    @keywords_checked
    def sample(
        self: Any,
        n: int,
        evidence: Evidence | None = None,
        seed: Seed = None,
        missing: float | Mapping[str, float] = 0.0,
        *,
        do: Interventions | None = None,
        to: str | os.PathLike[str] | None = None,
        client: Any = None,
        as_codes: bool = False,
        chunks: int | bool | None = None,
        n_jobs: int | None = None,
        memory_limit: MemoryLimit = None,
        time_limit: float | None = None,
        progress: bool | None = None,
    ) -> Any:
        """Return a table of `n` rows drawn from the network given evidence.

        Parameters
        ----------
        n : int
            The number of rows.
        evidence : mapping, optional
            Variable name to finding, as in `query`; rows are exact draws given it where the junction tree fits in
            memory, and else resampled by weight, with an AccuracyWarning.
        seed : int or numpy.random.Generator, optional
            The same seed gives the same rows, whatever `n_jobs`, `to` and `client` are.
        missing : float or mapping, default 0.0
            The share of values to hide, completely at random: of all columns, or by column.
        do : mapping, optional
            What is done to variables before rows are drawn, as in `query`.
        to : path, optional
            Write the rows as they are drawn: to a .parquet, .csv or .tsv file, or to a folder of Parquet files.
        client : dask.distributed.Client or str, optional
            A Dask cluster that draws the rows, or its scheduler's address.
        as_codes : bool, default False
            Give a dict of arrays of state codes, −1 where missing; continuous variables are numbers there too.
        chunks : int or bool, optional
            Give an iterator over tables of this many rows (True leaves the number to the library), so that memory
            stays flat; with `to`, the rows that are written at a time.
        n_jobs : int, optional
            Threads, −1 for one per core; by default OMP_NUM_THREADS if set, otherwise one per core.
        memory_limit : int, float or str, optional
            The most bytes that the work may take, as in `query`.
        time_limit : float, optional
            The most seconds, TimeLimitError beyond, or once the first rows tell that all of them take far longer. By
            default BBN_TIME_LIMIT, or any time. Not with `chunks`, unless with `to`, nor with `client`.
        budget : Budget, optional
            Seconds and bytes as one value, in place of `time_limit` and `memory_limit`.
        progress : bool, optional
            Whether to show a progress bar; by default on a terminal and in a notebook.

        Returns
        -------
        pandas.DataFrame
            One column per variable, in topological order: categorical, its categories the declared states, or of
            numbers. With `as_codes` a dict of arrays, with `chunks` an iterator, with `client` a Dask DataFrame, with
            `to` the path that was written.

        Raises
        ------
        EvidenceError, ImpossibleEvidenceError
            As in `query`.
        BudgetError
            The rows, or what they are drawn from, would need more memory than allowed. TimeLimitError, a kind of it:
            more time.

        See Also
        --------
        bbn.fit : Learn the tables from rows like these.

        Examples
        --------
        >>> import bbn
        >>> rows = bbn.example("campfire").sample(1000, {"Storm": "yes"}, seed=7, missing={"Thunder": 0.5})
        >>> rows.shape, rows["Storm"].unique().tolist()
        ((1000, 6), ['yes'])
        """
        net = self._acted(do)
        options: dict[str, Any] = {
            "as_codes": as_codes,
            "chunks": chunks,
            "n_jobs": n_jobs,
            "memory_limit": memory_limit,
            "time_limit": time_limit,
            "progress": progress,
        }
        if client is not None:
            from bbn.inference.rows.cluster import sample_on

            return sample_on(client, net, n, evidence, seed, missing, to=to, **options)
        if to is not None:
            from bbn.inference.rows.streaming import sample_to

            return sample_to(net, to, n, evidence, seed, missing, **options)
        from bbn.inference.sampling.sample import sample

        return sample(net, n, evidence, seed, missing, **options)


def _answer(question: str, net: Any, do: Interventions | None, *asked: Any, **options: Any) -> Any:
    """The answers to rows; columns of variables that are set tell what was, not what is done, and are not read."""
    from bbn.inference.rows.streaming import answer

    return answer(question, net._acted(do), *asked, unread=tuple(do or ()), **options)
