"""Results in kind: what came in as a pandas frame goes out as one, and so for every other kind of table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Kind(Protocol):
    """How to hand back one column, or several, with one value per row of the table that came in."""

    def column(self, values: NDArray[Any], name: str) -> Any:
        """One column."""

    def frame(self, columns: Mapping[Any, NDArray[Any]]) -> Any:
        """Several columns, by label."""


class Pandas:
    """A Series or a DataFrame with the index that came in."""

    def __init__(self, index: Any = None) -> None:
        self.index = index

    def column(self, values: NDArray[Any], name: str) -> Any:
        """A Series."""
        import pandas as pd

        return pd.Series(values, index=self.index, name=name)

    def frame(self, columns: Mapping[Any, NDArray[Any]]) -> Any:
        """A DataFrame."""
        import pandas as pd

        return pd.DataFrame(dict(columns), index=self.index)


class Narwhals:
    """A Series or a DataFrame of the library that came in (polars, pyarrow, …); labels become text."""

    def __init__(self, backend: Any) -> None:
        self.backend = backend

    def column(self, values: NDArray[Any], name: str) -> Any:
        """A Series of that library."""
        import narwhals as nw

        return nw.new_series(name, _listed(values), backend=self.backend).to_native()

    def frame(self, columns: Mapping[Any, NDArray[Any]]) -> Any:
        """A DataFrame of that library."""
        import narwhals as nw

        return nw.from_dict(
            {str(k): _listed(v) for k, v in columns.items()}, backend=self.backend
        ).to_native()


class ColumnDict:
    """A numpy array, or a dict of them."""

    def column(self, values: NDArray[Any], name: str) -> Any:
        """The array itself."""
        return values

    def frame(self, columns: Mapping[Any, NDArray[Any]]) -> Any:
        """A dict of arrays."""
        return dict(columns)


class RowList:
    """A list of values, or a list of dicts."""

    def column(self, values: NDArray[Any], name: str) -> Any:
        """A list."""
        return values.tolist()

    def frame(self, columns: Mapping[Any, NDArray[Any]]) -> Any:
        """One dict per row."""
        labels = list(columns)
        lists = [values.tolist() for values in columns.values()]
        return [dict(zip(labels, row, strict=True)) for row in zip(*lists, strict=True)]


class Matrix:
    """A numpy array with one axis, or with two."""

    def column(self, values: NDArray[Any], name: str) -> Any:
        """The array itself."""
        return values

    def frame(self, columns: Mapping[Any, NDArray[Any]]) -> Any:
        """One column of the array per label, in their order."""
        return np.column_stack(list(columns.values()))


def _listed(values: NDArray[Any]) -> Any:
    """Arrays of objects as lists, which every library infers a type from; others as they are."""
    return values.tolist() if values.dtype == object else values
