"""Any column as levels: its distinct values, and which one each row has.

Every later step looks at the few distinct values alone, so no Python code runs per row. pandas is imported only for
pandas data.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn import kernels
from bbn.core.errors import DataError

Ints = NDArray[np.integer[Any]]


class Levels(NamedTuple):
    """A column as its distinct values and one index into them per row, −1 where missing."""

    codes: Ints
    values: list[Any]
    declared: bool = False
    """Whether the values are a categorical's, in declared order, used or not."""
    decimal: str = ""
    """What is known of the decimal mark of text; see `text_values.chosen_form`."""


class NestedValuesError(DataError):
    """A column holds values that cannot be compared, such as lists."""


def column_levels(column: Any) -> Levels:
    """The levels of one column: a list, a numpy array, or a Series of some library."""
    if isinstance(column, np.ndarray):
        return _numpy_levels(column)
    library = type(column).__module__.partition(".")[0]
    if library == "pandas":
        return _pandas_levels(column)
    if library in ("polars", "pyarrow", "narwhals"):
        import narwhals as nw

        return _narwhals_levels(nw.from_native(column, series_only=True, pass_through=True))
    return _object_levels(np.fromiter(column, dtype=object, count=len(column)))


def readable_levels(column: Any) -> Levels:
    """The levels of one column; values that cannot be compared, such as lists, as their text."""
    try:
        return column_levels(column)
    except NestedValuesError:
        return text_levels(column)


def text_levels(column: Any) -> Levels:
    """The levels of the texts of a column's values."""
    texts = [None if value is None else str(value) for value in plain_list(column)]
    return column_levels(texts)


def plain_list(column: Any) -> list[Any]:
    """The values of a column, of whatever library, as Python's own."""
    for name in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, name):
            return list(getattr(column, name)())
    return list(column)


def _object_levels(array: NDArray[Any]) -> Levels:
    try:
        return Levels(*kernels.coding.factorize_objects(array))
    except TypeError:
        row = next((i for i, value in enumerate(array) if not isinstance(value, Hashable)), 0)
        raise NestedValuesError(
            f"row {row} of a column holds {array[row]!r}; expected one plain value"
        ) from None


def _pandas_levels(column: Any) -> Levels:
    """The levels of a Series, an Index, or an array of pandas' own such as a Categorical."""
    import pandas as pd

    series: Any = column if isinstance(column, pd.Series | pd.Index) else pd.Series(column, copy=False)
    array: Any = series.array
    if isinstance(series.dtype, pd.CategoricalDtype):
        return Levels(array.codes, array.categories.tolist(), declared=True)
    if isinstance(series.dtype, np.dtype):
        return _numpy_levels(series.to_numpy())
    if isinstance(series.dtype, pd.ArrowDtype) or getattr(series.dtype, "storage", None) == "pyarrow":
        return arrow_levels(array.__arrow_array__())
    codes, values = pd.factorize(array)
    return Levels(codes, values.tolist())


def arrow_levels(array: Any) -> Levels:
    """The levels of a pyarrow Array or ChunkedArray."""
    import pyarrow as pa

    kind = array.type
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    declared = pa.types.is_dictionary(kind)
    if isinstance(kind, pa.BaseExtensionType):  # such as pandas' intervals
        return _pandas_levels(array.to_pandas())
    if not text and not declared:
        try:
            array = array.dictionary_encode()
        except pa.ArrowNotImplementedError:
            raise NestedValuesError(
                f"a column holds values of type {kind}; expected text, whole numbers or truth values"
            ) from None
    if isinstance(array, pa.ChunkedArray):
        if not text and array.num_chunks > 1:
            array = array.unify_dictionaries()
        array = array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
    if text:
        return _text_levels(array, np.int32 if pa.types.is_string(kind) else np.int64)
    indices = array.indices
    if indices.null_count:
        indices = indices.cast(pa.int32()).fill_null(-1)
    own = array.dictionary
    values = own.to_pandas() if isinstance(own.type, pa.BaseExtensionType) else own.to_pylist()
    return Levels(indices.to_numpy(zero_copy_only=False), list(values), declared)


def _text_levels(array: Any, width: type[Any]) -> Levels:
    """The levels of a pyarrow array of text, from its buffers: validity, offsets, bytes."""
    if not len(array):
        return Levels(np.empty(0, dtype=np.int32), [])
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, dtype=width)[array.offset : array.offset + len(array) + 1]
    codes, values = kernels.coding.factorize_text(ends, np.frombuffer(data or b"", dtype=np.uint8))
    if array.null_count:
        valid = array.is_valid().to_numpy(zero_copy_only=False)
        return Levels(*_used(np.where(valid, codes, len(values)), [*values, None]))
    return Levels(codes, values)


def _narwhals_levels(series: Any) -> Levels:
    import narwhals as nw

    try:
        if series.dtype in (nw.Int128, nw.UInt128):  # which neither Arrow nor numpy knows
            return _object_levels(np.array(series.to_list(), dtype=object))
        return arrow_levels(series.to_arrow())
    except ModuleNotFoundError:  # polars without pyarrow
        return _numpy_levels(series.to_numpy())


def _numpy_levels(array: NDArray[Any]) -> Levels:
    if array.ndim != 1:
        raise DataError(f"a column has shape {array.shape}; expected one value per row")
    if np.ma.isMaskedArray(array):
        levels = _numpy_levels(np.ma.getdata(array))
        return levels._replace(codes=np.where(np.ma.getmaskarray(array), -1, levels.codes))
    kind = array.dtype.kind
    if kind == "b":
        return Levels(array.view(np.uint8), [False, True])
    if kind in "iu":
        return _integer_levels(array)
    if kind == "f":
        return _float_levels(array)
    if kind in "mM":  # numpy turns nanoseconds into integers; as times they are refused
        array = array.astype(f"{kind}8[us]")
    return _object_levels(array.astype(object, copy=False))


def _integer_levels(array: NDArray[Any]) -> Levels:
    if not len(array):
        return Levels(np.empty(0, dtype=np.int64), [])
    low, high = int(array.min()), int(array.max())
    if high - low >= 1 << 16:
        values, codes = np.unique(array, return_inverse=True)
        return Levels(codes, values.tolist())
    offsets = array.astype(np.uint64)
    offsets -= np.uint64(low % 2**64)  # modulo 2⁶⁴, so exact for every type of integer
    return Levels(*_used(offsets.view(np.int64), range(low, high + 1)))


def _used(codes: Ints, values: Sequence[Any]) -> tuple[Ints, list[Any]]:
    """The levels that occur at all, in order."""
    present = np.bincount(codes, minlength=len(values)) > 0
    if present.all():
        return codes, list(values)
    return (np.cumsum(present) - 1)[codes], [
        value for value, there in zip(values, present, strict=True) if there
    ]


def _float_levels(array: NDArray[Any]) -> Levels:
    """Integers that became floats, as they do where a value is missing, come back as integers."""
    missing = np.isnan(array)
    some = bool(missing.any())
    if missing.all():
        return Levels(np.full(len(array), -1), [])
    filled = np.where(missing, array[np.argmin(missing)], array) if some else array
    if np.abs(filled).max() < 2**53:
        whole = filled.astype(np.int64)
        if (whole == filled).all():
            levels = _integer_levels(whole)
            return levels._replace(codes=np.where(missing, -1, levels.codes)) if some else levels
    values, codes = np.unique(array, return_inverse=True)  # a NaN among the values means missing
    return Levels(codes, values.tolist())
