"""The data seam: any table → coded columns → counts. Learners and batch queries never touch a DataFrame.

    code(data, variables=None, *, names=None, states=None, missing=(), unseen="raise", weights=None,
         absent="raise", extra="raise", hidden=(), continuous=()) -> CodedTable

turns pandas, polars, pyarrow, a dict of columns, a list of dicts, a numpy array with names ``(array, names)`` or a
path to a CSV or Parquet file into small unsigned integers. In a column of a variable with `card` states the code
of a state is its position and **the code `card` means missing**; the dtype is uint8 up to 255 states, otherwise uint16.
Columns of continuous variables are in `table.numbers` instead: float64, **NaN means missing**.

A batch query wants ``code(data, net.variables, absent="allow", extra="ignore")``: `table.codes` holds only the columns
that are there, and `table.kind` gives results back in the kind that came in.
"""

from bbn.data.coded_table import CodedTable
from bbn.data.coding import code
from bbn.data.discretize import Discretizer, discretize
from bbn.data.kinds import Kind
from bbn.data.source import Block, DataSource, as_source, complete_data, continuous_columns
from bbn.data.streams.open import open_data

__all__ = [
    "Block",
    "CodedTable",
    "DataSource",
    "Discretizer",
    "Kind",
    "as_source",
    "code",
    "complete_data",
    "continuous_columns",
    "discretize",
    "open_data",
]
