"""A data source: what learners ask of data, and how whatever a user passes becomes one.

A source offers two calls. `counts(families)` answers a batch of contingency tables; `reduce(f)` applies f to each
block of coded rows and adds up what it returns. Both add up over rows, so a source may be a table in memory, a folder
of files or a cluster, and learners are the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, NamedTuple, NoReturn, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bbn.core.errors import DataError, nearest
from bbn.core.frozen import Array
from bbn.data.columns import NO_ROWS, read_table
from bbn.data.error_places import located
from bbn.model.variable import Continuous, State, Variable

Family = Sequence[str]
"""Names of variables, one per axis of the table that is asked for."""


NO_NUMBERS: Mapping[str, Array] = {}


class Block(NamedTuple):
    """Some coded rows. The code equal to a variable's card means missing; a variable not in `codes` is hidden."""

    codes: Mapping[str, NDArray[Any]]
    weights: Array
    """How many rows of the data each row stands for."""
    numbers: Mapping[str, Array] = NO_NUMBERS
    """The columns of continuous variables, NaN where missing."""

    @property
    def n_rows(self) -> int:
        """The number of rows in the block."""
        return len(self.weights)


@runtime_checkable
class DataSource(Protocol):
    """What learners ask of data."""

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The discrete variables that have a column."""

    @property
    def n_rows(self) -> int:
        """The number of rows."""

    @property
    def total(self) -> float:
        """The sum of the rows' weights."""

    @property
    def incomplete(self) -> tuple[str, ...]:
        """The names of the variables with a missing value in some row."""

    def counts(self, families: Sequence[Family]) -> Sequence[NDArray[Any]]:
        """One contingency table per family, axes in the family's order; rows that miss one of it are left out.

        Parameters
        ----------
        families : sequence of tuple of str
            Each the names of a table's variables, in the order of its axes.

        Returns
        -------
        sequence of ndarray
            One table per family.
        """

    def reduce(self, f: Callable[[Block], Sequence[Array]]) -> list[Array]:
        """The sums over blocks of the arrays that f returns for each.

        Parameters
        ----------
        f : callable
            Takes a block of coded rows, gives arrays; each time as many, of the same shapes.

        Returns
        -------
        list of ndarray
            Their sums.
        """


def is_source(data: Any) -> bool:
    """Whether data are a source. Asks the class, since the source itself may have to read data to answer."""
    return all(callable(getattr(type(data), name, None)) for name in ("counts", "reduce"))


def complete_data(source: DataSource, columns: Iterable[str], found: str, way_out: str) -> DataSource:
    """The source, checked to miss no value in these columns.

    DataError if one is missing: at once where that is known, else in the pass that meets it, so no extra pass is made.

    Parameters
    ----------
    source
        The data.
    columns
        The columns to look at.
    found, way_out
        The message, "{}" for the columns that miss values; and what to do then.
    """
    later: Any = getattr(source, "completed", None)
    if later is not None and not source.discovered:  # type: ignore[attr-defined]
        view: DataSource = later(way_out)
        return view
    wanted = set(columns)
    holes = [name for name in source.incomplete if name in wanted]
    if holes:
        more = f" (and {len(holes) - 1} more columns)" if len(holes) > 1 else ""
        raise DataError(f"{found.format(repr(holes[0]) + more)}; {way_out}")
    return source


def as_source(
    data: Any,
    variables: Iterable[Variable] | None = None,
    *,
    names: Sequence[str] | None = None,
    states: Mapping[str, Sequence[State]] | None = None,
    hidden: Iterable[str] = (),
    all_missing: str = "raise",
    **options: Any,
) -> DataSource:
    """`data` as a source for a learner: itself if it is one, else coded, checked to hold rows and values.

    The parameters are those of `code`. DataError for an empty table, or a column without any value that is not
    named in `hidden` (unless `all_missing="allow"`).
    """
    if is_source(data):
        _refuse_options(options)
        if hasattr(data, "require_rows"):  # it counts them when it reads them
            data.require_rows()
        elif not data.n_rows:
            raise DataError(NO_ROWS)
        if options.get("absent") == "allow" and variables is not None:
            there = {*(v.name for v in data.variables), *continuous_columns(data)}
            variables = [v for v in variables if v.name in there]
        view: Any = getattr(data, "viewed", None)
        if view is not None:  # it codes as it reads, so it can take the states in another order
            own = {v.name: v for v in variables or ()}
            wanted = own if variables is not None else names
            viewed: DataSource = view(
                wanted, {**(states or {}), **own}, hidden, options.get("continuous", ())
            )
            return viewed
        return _checked_source(data, variables, names, hidden, options.get("continuous", ()))
    from bbn.data.coding import code
    from bbn.data.streams.readers import is_many

    if is_many(data):
        options.pop("extra", None)  # only the columns that are wanted are opened
        from bbn.data.streams.open import open_for

        return open_for(data, variables, names, states, hidden, **options)

    raw = read_table(data)
    with located(str(data) if isinstance(data, str | PathLike) else ""):
        if not raw.n_rows:
            raise DataError(NO_ROWS)
        table = code(raw, variables, names=names, states=states, hidden=hidden, **options)
    for name, column in table.numbers.items() if all_missing == "raise" else ():
        if np.isnan(column).all():
            raise DataError(f"column {name!r} holds no number at all; leave it out of the structure")
    for variable in table.variables if all_missing == "raise" else ():
        if table.codes[variable.name].min() == variable.card:
            raise DataError(
                f"column {variable.name!r} holds no value at all; if it was never observed, say "
                f"hidden={{{variable.name!r}: {list(variable.states)}}}"
            )
    return table


def _refuse_options(options: Mapping[str, Any]) -> None:
    """DataError for an option about reading that comes too late: a source has been read."""
    for name in ("weights", "missing", "decimal"):
        value = options.get(name)
        if value is not None and not (isinstance(value, Sequence | set | frozenset) and not len(value)):
            raise DataError(
                f"{name}= comes too late for data that are coded already; say it where they are read"
            )


def continuous_columns(source: DataSource) -> tuple[str, ...]:
    """The names of a source's columns of numbers; a source without `continuous` has none."""
    return tuple(getattr(source, "continuous", ()))


def _refuse_number(name: str, own: Mapping[str, Variable]) -> NoReturn:
    """DataError about a column that is to be numbers, but was coded otherwise, or is not there."""
    if name in own:
        raise DataError(f"the data give {name!r} states, but it is continuous: code it as such (continuous=)")
    raise DataError(f"the data have no column {name!r}{nearest(name, own)}")


def _checked_source(
    source: DataSource,
    variables: Iterable[Variable] | None,
    names: Sequence[str] | None,
    hidden: Iterable[str],
    continuous: Iterable[str] | None,
) -> DataSource:
    """A ready source, if it has every variable that is wanted."""
    own = {v.name: v for v in source.variables}
    numeric = continuous_columns(source)
    unseen = set(hidden)
    wanted = {v.name: v for v in variables} if variables is not None else dict.fromkeys(names or ())
    numbers = {
        *(numeric if continuous is None else continuous),
        *(name for name, v in wanted.items() if isinstance(v, Continuous)),
    }
    for name in sorted(numbers - {*wanted, *numeric}):
        _refuse_number(name, own)
    for name, variable in wanted.items():
        if name in unseen or (name in numbers and name in numeric):
            continue
        if name in own and name in numbers:
            _refuse_number(name, own)
        if name in numeric:
            raise DataError(f"the data give {name!r} numbers, but it is not continuous; continuous= says so")
        if name not in own:
            raise DataError(f"the data have no column {name!r}{nearest(name, own)}")
        if variable is not None and own[name] != variable:
            raise DataError(
                f"the data give {name!r} the states {list(own[name].states)}, but it has {list(variable.states)}"
            )
    return source
