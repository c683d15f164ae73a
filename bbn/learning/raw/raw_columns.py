"""From raw columns to what learners take: states are coded, and numbers are read and, where wanted, cut.

A raw table is coded once, with its numbers as they are; cutting them is then a search among a few edges per value, so
cuts can be found anew in each fold of a cross-validation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bbn.core.errors import DataError, nearest
from bbn.core.frozen import Array
from bbn.data import CodedTable, code
from bbn.data.column_rules import OUT, Column
from bbn.data.columns import NO_ROWS, Decimal
from bbn.data.describe import Description, describe
from bbn.data.discretize import mdlp_cuts, quantile_cuts
from bbn.data.source import is_source
from bbn.data.streams.readers import is_many
from bbn.model.binned import Binned
from bbn.model.variable import Continuous, State, Variable

SAMPLE = 20_000
"""Rows of data larger than memory that cuts are found in, and that choices are made on."""


NO_COLUMNS = "the data have no columns; expected one row per case, and one column per variable"


class RawColumns(NamedTuple):
    """A raw table under its description, ready to be coded.

    Attributes
    ----------
    data
        The table as it came.
    description
        What each column holds, and what is done with it.
    variables
        The columns that are states, as variables.
    numbers
        The names of the columns that are numbers.
    weights
        The rows' weights, or the name of their column.
    missing
        What means missing in every column.
    """

    data: Any
    description: Description
    variables: tuple[Variable, ...]
    numbers: tuple[str, ...]
    weights: Any
    missing: Any

    def coded(self, variables: Iterable[Variable] | None = None) -> CodedTable:
        """All of the rows in memory: these variables, or those that there are, with the numbers as numbers."""
        wanted = [*self.variables, *map(Continuous, self.numbers)] if variables is None else list(variables)
        return code(
            self.data,
            wanted,
            weights=self.weights,
            missing=self.missing,
            extra="ignore",
            unseen="missing",
            decimal=self.description.decimals,
        )

    def opened(self, variables: Iterable[Variable]) -> Any:
        """The rows of data that do not fit in memory, as a source of these variables."""
        from bbn.data.streams.open import open_data

        how = {
            "weights": self.weights,
            "missing": self.missing,
            "unseen": "missing",
            "decimal": self.description.decimals,
        }
        if is_source(self.data):
            return self.data.reopened(list(variables), **how)
        return open_data(self.data, variables=list(variables), **how)

    def sample(self) -> CodedTable:
        """Some rows of data that do not fit in memory: the SAMPLE with the lowest hashes of their places."""
        from bbn.data.streams.open import open_data

        names = tuple(v.name for v in self.variables) + self.numbers
        weights = self.weights if isinstance(self.weights, str) else None
        found = open_data(self.data).fold(  # type: ignore[attr-defined]
            Sampling(self.variables, self.numbers, weights, self.missing, self.description.decimals),
            [*names, *([weights] if weights else [])],
        )
        if found is None:
            raise DataError(NO_ROWS)
        drawn: CodedTable = found.table
        return drawn


class Sample(NamedTuple):
    """Rows that were drawn, with their random numbers."""

    table: CodedTable
    order: Array

    def merge(self, other: Sample) -> Sample:
        """The rows of both with the lowest numbers, in their order."""
        order = np.concatenate([self.order, other.order])
        keep = np.sort(np.argsort(order, kind="stable")[:SAMPLE])
        a, b = self.table, other.table
        weights = None
        if a.weights is not None and b.weights is not None:
            weights = np.concatenate([a.weights, b.weights])[keep]
        return Sample(
            CodedTable(
                a.variables,
                {name: np.concatenate([own, b.codes[name]])[keep] for name, own in a.codes.items()},
                len(keep),
                weights,
                numbers={
                    name: np.concatenate([own, b.numbers[name]])[keep] for name, own in a.numbers.items()
                },
            ),
            order[keep],
        )


class Sampling(NamedTuple):
    """The task of drawing rows: a function of a batch, that can be sent to where the batch is."""

    variables: tuple[Variable, ...]
    numbers: tuple[str, ...]
    weights: str | None
    missing: Any
    decimals: Mapping[str, str]

    def __call__(self, data: Any, where: str = "", first_row: int = 0) -> Sample:
        """The rows of one batch with the lowest numbers, which depend on where the batch is from."""
        table = code(
            data,
            [*self.variables, *map(Continuous, self.numbers)],
            weights=self.weights,
            missing=self.missing,
            extra="ignore",
            unseen="missing",
            decimal=self.decimals,
        )
        place = [int.from_bytes(where.encode()[-8:].rjust(8, b"\0"), "big"), first_row]
        empty = Sample(_no_rows(table), np.empty(0))
        return empty.merge(Sample(table, np.random.default_rng(place).random(table.n_rows)))


def _no_rows(table: CodedTable) -> CodedTable:
    none = np.empty(0, dtype=np.intp)
    weights = None if table.weights is None else table.weights[none]
    codes = {name: column[none] for name, column in table.codes.items()}
    numbers = {name: column[none] for name, column in table.numbers.items()}
    return CodedTable(table.variables, codes, 0, weights, numbers=numbers)


def read_raw(
    data: Any,
    kinds: Mapping[str, str] | None,
    states: Mapping[str, Sequence[State]] | None,
    weights: Any,
    missing: Any,
    continuous: Iterable[str] = (),
    names: Sequence[str] | None = None,
    target: str | None = None,
    decimal: Decimal = None,
) -> RawColumns:
    """Describe a raw table, and say which columns are states and which are numbers.

    Parameters
    ----------
    data
        Any table, or what `bbn.open_data` takes.
    kinds, missing, decimal
        As in `bbn.describe`.
    states
        Column to its states, or to a variable; these are not described.
    weights
        The rows' weights, or the name of their column.
    continuous
        Columns that are numbers, whatever they look like.
    names
        The columns of a known structure: all of these are used, and no others.
    target
        A column that must not be left out.
    """
    told = {
        **dict.fromkeys([continuous] if isinstance(continuous, str) else continuous, "number"),
        **(kinds or {}),
    }
    told |= {name: "category" for name in states or {} if name not in told}
    own = weights if isinstance(weights, str) else None
    description = describe(data, told, weights=own, missing=missing, decimal=decimal)
    if target is not None and target == description.weights and own is None and target not in told:
        told[target] = "whole number"  # it is to be predicted, whatever its name
        description = describe(data, told, missing=missing, decimal=decimal)
    if not description.n_rows:
        raise DataError(NO_ROWS)
    if not isinstance(weights, str) and weights is not None:  # they are given, so no column holds them
        description = _without_weights(description)
    if names is not None:
        _check_columns(names, description)
        description = _only(description, names, data, missing, decimal)
    elif target is not None:
        _check_target(target, weights, told, description)
    declared = {
        name: listed if isinstance(listed, Variable) else Variable(name, listed)
        for name, listed in (states or {}).items()
    }
    found = {v.name: declared.get(v.name, v) for v in description.variables}
    if not found and not description.numbers:
        told_why = "; ".join(f"{c.name}: {c.why}" for c in description.columns[:5])
        raise DataError(
            f"no column is left to learn from ({told_why}); kinds= can say otherwise"
            if told_why
            else NO_COLUMNS
        )
    chosen = description.weights if weights is None else weights
    return RawColumns(data, description, tuple(found.values()), description.numbers, chosen, missing)


def _check_columns(names: Sequence[str], description: Description) -> None:
    """DataError for a column of a known structure that is not there, or holds nothing."""
    there = [column.name for column in description]
    for name in names:
        if name not in there:
            raise DataError(f"the structure has {name!r}, which is not a column{nearest(name, there)}")
        if not description[name].distinct and description[name].missing == description.n_rows:
            raise DataError(
                f"the structure has {name!r}, but that column has no value in any row; hidden= declares variables that "
                "were never observed, with their states"
            )


def _check_target(target: str, weights: Any, told: Mapping[str, str], description: Description) -> None:
    """DataError for a target that is not there, or that nothing could be learned of."""
    there = [column.name for column in description]
    if target not in there:
        raise DataError(f"target: the data have no column {target!r}{nearest(target, there)}")
    column = description[target]
    if (isinstance(weights, str) and weights == target) or told.get(target) == "counts":
        raise DataError(f"{target!r} is the target and the weights of the rows; it can be one of them")
    if column.kind == "constant":
        raise DataError(f"there is nothing to predict: the target {target!r} is constant ({column.why})")
    if column.use == OUT:
        raise DataError(
            f"the target {target!r} would be left out: {column.kind}, {column.why}; "
            'kinds= can say otherwise, as in {"' + target + '": "category"}'
        )


def _without_weights(description: Description) -> Description:
    """The description without a guess at weights, which are given otherwise."""
    columns = [
        c
        if c.use != "weights"
        else Column(c.name, c.kind, c.missing, c.distinct, OUT, "weights= gives others")
        for c in description
    ]
    return Description(tuple(columns), description.n_rows, description.decimals)


def _only(
    description: Description, names: Sequence[str], data: Any, missing: Any, decimal: Decimal
) -> Description:
    """The description of a known structure's columns: those that would be left out are categories, others are out."""
    there = {column.name: column for column in description}
    forced = [n for n in names if n in there and there[n].use in (OUT, "weights") and there[n].distinct]
    if forced:
        as_told = describe(data, dict.fromkeys(forced, "category"), missing=missing, decimal=decimal)
        there |= {name: as_told[name] for name in forced}
    wanted = set(names)
    columns = [
        c if c.name in wanted or c.use in (OUT, "weights") else _not_in_structure(c) for c in there.values()
    ]
    return Description(tuple(columns), description.n_rows, description.decimals)


def _not_in_structure(column: Column) -> Column:
    return Column(column.name, column.kind, column.missing, column.distinct, OUT, "not in the structure")


def is_raw(data: Any) -> bool:
    """Whether data are a table whose columns are still undecided, in memory or not."""
    return not is_source(data) or (is_many(data) and not is_source(data))


def cut_variables(
    table: CodedTable, method: str, bins: int = 5, target: str | None = None
) -> dict[str, Binned]:
    """The numbers of a table as variables cut into intervals.

    Parameters
    ----------
    table
        With its numbers as numbers.
    method
        "quantiles", or "mdlp", which cuts towards `target` and takes quantiles where that gives no cut.
    bins
        How many intervals.
    target
        A variable of the table.
    """
    found = {}
    for name, values in table.numbers.items():
        there = ~np.isnan(values)
        weights = table.weights
        if weights is not None:
            there &= weights > 0
        cuts = np.empty(0)
        if method == "mdlp" and target is not None:
            card = next(v.card for v in table.variables if v.name == target)
            known = there & (table.codes[target] < card)
            if known.any():
                own = None if weights is None else weights[known]
                cuts = mdlp_cuts(values[known], table.codes[target][known], own)
        elif there.any():
            cuts = quantile_cuts(values[there], bins, None if weights is None else weights[there])
        found[name] = Binned(name, cuts.tolist())
    return found


def cut(table: CodedTable, variables: Mapping[str, Binned]) -> CodedTable:
    """The table with its numbers cut into the intervals of these variables; numbers not among them stay numbers."""
    if not variables:
        return table
    codes = dict(table.codes)
    for name, variable in variables.items():
        values = table.numbers[name]
        own = np.searchsorted(variable.edges, values, side="right")
        own[np.isnan(values)] = variable.card
        codes[name] = own.astype(np.uint8 if variable.card <= 255 else np.uint16)
    known = (*table.variables, *variables.values())
    left = {name: values for name, values in table.numbers.items() if name not in variables}
    return CodedTable(known, codes, table.n_rows, table.weights, table.kind, left)
