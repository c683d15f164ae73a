"""The networks that ship with the package, by name, offline.

They lie in `models/` beside the package in a source tree, and inside the package (`_models`) when it is installed.
"""

from __future__ import annotations

import gzip
import re
from functools import lru_cache
from itertools import islice, takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from bbn.core.errors import nearest
from bbn.core.keywords import keywords_checked

if TYPE_CHECKING:
    from bbn.model.network import BayesianNetwork


@keywords_checked
def examples() -> tuple[str, ...]:
    """The names of the networks that ship with the package.

    >>> "campfire" in examples()
    True
    """
    return tuple(_paths())


@keywords_checked
def example(name: str) -> BayesianNetwork:
    """The network of this name among those that ship with the package.

    Parameters
    ----------
    name : str
        One of `bbn.examples()`.

    Returns
    -------
    BayesianNetwork
        The network, read from the file that ships with the package.

    Raises
    ------
    ValueError
        There is no such example; the error names the nearest.

    See Also
    --------
    examples : The names there are.

    Examples
    --------
    >>> net = example("burglary")
    >>> net.children("Alarm")
    ('JohnCalls', 'MaryCalls')
    """
    paths = _paths()
    if name not in paths:
        raise ValueError(f"there is no example {name!r}{nearest(name, paths)}")
    from bbn.io.registry import load

    return load(paths[name])


def summary(name: str) -> str:
    """The first sentence of an example's description, from the head of its file: no table is read.

    >>> summary("alarm")
    'A logical alarm reduction mechanism: the monitoring of patients in intensive care.'
    """
    from bbn.io.registry import loads

    path = _paths()[name]
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        head = list(takewhile(lambda line: not line.startswith(_NODES), islice(file, _LONGEST_HEAD)))
    if ".bif" in path.suffixes:
        told = next((line for line in head if line.startswith(_BIF_TEXT)), _BIF_TEXT)
        text = told.removeprefix(_BIF_TEXT).strip()
    else:
        stand_in = "nodes: {x: {states: [x], table: [1]}}\n"
        text = loads("".join(head) + stand_in, "yaml").metadata.get("description", "")
    return re.split(r"(?<=[.?!])\s", text, maxsplit=1)[0]


_NODES = ("nodes:", "slice:", "network ", "variable ")
_LONGEST_HEAD = 100
_BIF_TEXT = "// description = "


@lru_cache(maxsize=1)
def _paths() -> dict[str, Path]:
    from bbn.io.registry import FORMATS

    suffixes = tuple(suffix + end for format in FORMATS for suffix in format.suffixes for end in ("", ".gz"))
    package = Path(__file__).parent.parent
    folder = next(
        (f for f in (package / "_models", package.parent / "models") if f.is_dir()), package / "_models"
    )
    files = [path for path in folder.glob("*") if path.name.endswith(suffixes)]
    return {path.name.split(".")[0]: path for path in sorted(files, key=lambda path: path.name)}
