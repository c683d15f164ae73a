"""The formats there are, and `load` and `save`, which choose one by suffix, by name or by content.

To add a format, write one file and one line:

1. ``bbn/io/formats/<name>.py`` with ``read(source, strict)`` and ``write(network)``:

   - ``read(source: Source, strict: bool) -> BayesianNetwork``. `source.text` is the decoded text,
     `source.data` the raw bytes (for XML parsers). Raise faults with ``source.fail(message, offset)`` (an
     offset into `source.text`) or ``raise source.error(message, line, column)``. Describe the nodes as
     `RawNode` values and hand them to ``bbn.io.build.build(source, nodes, ...)``, which checks names,
     parents, shapes, entries and row sums (the policy for rows that do not quite sum to 1 is in
     `bbn.io.row_sums`) and makes the network.
   - ``write(network: BayesianNetwork) -> str``: the whole text. Warn `LossyFormatWarning` about what is lost.

2. a `Format` line in `FORMATS` below: its name, its module, its suffixes (each also as ``.gz``, for free),
   a regular expression that matches the start of such a file (searched in the first 4,000 characters),
   by which a file without a known suffix is recognised, a title, and the memory that reading takes for a word
   (``tests/io/test_load.py`` measures it).

Formats are imported when first used. The tests that run over `FORMATS` pick a new one up by themselves.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from bbn.core.atomic import write_bytes
from bbn.core.errors import ModelError, ParseError, nearest
from bbn.core.keywords import keywords_checked
from bbn.io.source_text import OversizedFileError, Source, pack
from bbn.model.dynamic_network import DynamicNetwork

if TYPE_CHECKING:
    from bbn.model.decision_network import DecisionNetwork
    from bbn.model.network import BayesianNetwork


@dataclass(frozen=True)
class Format:
    """One file format: how it is called, where its reader and writer are, how it is recognised.

    `word_bytes` is the memory that reading takes at most for each word of a file.
    """

    name: str
    module: str
    suffixes: tuple[str, ...]
    pattern: str
    title: str
    word_bytes: int

    @property
    def read(self) -> Callable[[Source, bool], Any]:
        """The reader: ``read(source, strict)``."""
        reader: Callable[[Source, bool], Any] = import_module(self.module).read
        return reader

    @property
    def write(self) -> Callable[[Any], str]:
        """The writer: ``write(network)``, the whole text."""
        writer: Callable[[Any], str] = import_module(self.module).write
        return writer


FORMATS: tuple[Format, ...] = (
    Format(
        "yaml",
        "bbn.io.formats.yaml",
        (".yaml", ".yml"),
        r"(?:^|\r)(?:nodes|slice)[ \t]*:",
        "bbn's own, in YAML",
        400,
    ),
    Format("json", "bbn.io.formats.json", (".json",), r"\A\s*\{", "bbn's own, in JSON", 300),
    Format(
        "bif",
        "bbn.io.formats.bif",
        (".bif",),
        r"^\s*(?:network|variable|probability)\b[^;{}]*\{",
        "interchange format",
        160,
    ),
    Format(
        "xmlbif",
        "bbn.io.formats.xmlbif",
        (".xmlbif", ".bifxml", ".xml"),
        r"<BIF\b|<!DOCTYPE\s+BIF\b",
        "the same, in XML",
        240,
    ),
    Format(
        "net",
        "bbn.io.formats.net",
        (".net", ".hugin"),
        r"^\s*(?:net|discrete|node|potential)\b[^;{}]*\{",
        "Hugin",
        240,
    ),
    Format("xdsl", "bbn.io.formats.xdsl", (".xdsl",), r"<smile\b", "GeNIe and SMILE", 240),
    Format("uai", "bbn.io.formats.uai", (".uai",), r"\A\s*(?:BAYES|MARKOV)\b", "UAI competitions", 420),
)


WITH_DECISIONS = ("yaml", "json", "xdsl", "net")
"""The formats that hold decision networks."""


@keywords_checked
def load(path: str | os.PathLike[str], format: str | None = None, strict: bool = False) -> BayesianNetwork:
    """Read a network from a file.

    Parameters
    ----------
    path
        The file; any format may be packed as ``.gz``.
    format
        The name of the format where the suffix does not tell it. With neither, the content decides.
    strict
        Refuse rows that are off 1 by more than 1e-9, instead of renormalising those off by 1e-2 or less.

    Raises
    ------
    OSError
        The path cannot be opened.
    ParseError
        The content is not a network; the error has `path`, `line` and `column`.

    >>> import bbn
    >>> bbn.load("models/campfire.yaml").name
    'campfire'
    """
    chosen = find_format(format) if format is not None else None
    return _read(Source.open(path), chosen, strict)


def loads(
    text: str | bytes, format: str | None = None, strict: bool = False, path: str | None = None
) -> BayesianNetwork:
    """Read a network from text (or the bytes of a file), as `load` does; `path` is what errors call it.

    >>> loads("nodes: {Coin: {states: [heads, tails], table: [0.5, 0.5]}}").names
    ('Coin',)
    """
    chosen = find_format(format) if format is not None else None
    return _read(Source(text.encode() if isinstance(text, str) else text, path), chosen, strict)


@keywords_checked
def save(
    network: BayesianNetwork | DecisionNetwork | DynamicNetwork,
    path: str | os.PathLike[str],
    format: str | None = None,
) -> None:
    """Write a network to a file, in the format of its suffix or `format`; packed if it ends in ``.gz``.

    The file is replaced at once when everything is written and on the disk: a failure leaves the old one as it was.

    Parameters
    ----------
    network : BayesianNetwork or FactorGraph
        What to write; a factor graph as .uai.
    path : path
        The file.
    format : str, optional
        "yaml", "json", "bif", "xmlbif", "net", "xdsl" or "uai"; by default that of the suffix.

    Raises
    ------
    ValueError
        The suffix or format is unknown.
    OSError
        The file cannot be written.

    See Also
    --------
    load : The way back.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> net = loads("nodes: {Coin: {states: [heads, tails], table: [0.5, 0.5]}}")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(net, Path(folder, "coin.bif"))
    ...     load(Path(folder, "coin.bif")) == net
    True
    """
    if not isinstance(path, str | os.PathLike):
        right = (
            "; the network comes first: save(network, path)" if isinstance(network, str | os.PathLike) else ""
        )
        raise TypeError(f"save: path must be the path of a file, found {path!r}{right}")
    name = os.fspath(path)
    chosen = find_format(format) if format is not None else _by_suffix(name)
    if chosen is None:
        raise ValueError(
            f"{name!r} has no suffix of a known format; use one of {_known_suffixes()}, or format="
        )
    data = _text(chosen, network).encode()
    write_bytes(name, pack(data) if name.lower().endswith(".gz") else data)


def dumps(network: BayesianNetwork | DecisionNetwork, format: str = "yaml") -> str:
    """Write a network as text in the named format.

    >>> net = loads("nodes: {Coin: {states: [heads, tails], table: [0.5, 0.5]}}")
    >>> loads(dumps(net, "json")) == net
    True
    """
    return _text(find_format(format), network)


def find_format(name: str) -> Format:
    """The format called `name`; ValueError with the nearest name if there is none."""
    wanted = name.lower().removeprefix(".")
    for format in FORMATS:
        if wanted == format.name or f".{wanted}" in format.suffixes:
            return format
    raise ValueError(f"unknown format {name!r}{nearest(name, [format.name for format in FORMATS])}")


def _text(format: Format, network: Any) -> str:
    if isinstance(network, DynamicNetwork):
        if format.name not in ("yaml", "json"):
            raise ModelError(
                f"{format.name} does not hold dynamic networks; .yaml and .json do, or unroll(steps) first"
            )
    elif not hasattr(network, "conditionals") and format.name != "uai":
        raise ModelError(
            f"{format.name} holds networks, not a {type(network).__name__}; UAI holds factor graphs too"
        )
    if hasattr(network, "decisions") and format.name not in WITH_DECISIONS:
        raise ModelError(
            f"{format.name} holds no decisions and utilities; use one of {', '.join(WITH_DECISIONS)}"
        )
    text = format.write(network)
    if not text.isascii() or "\\" in text:  # else every name stands there as it is
        _require_characters(network)
    return text


def _require_characters(network: Any) -> None:
    """ModelError if a text is not made of characters: half a surrogate pair can be written, but not read."""
    metadata = getattr(network, "metadata", {})
    named = [
        ("the network's name", network.name),
        *((f"metadata {key!r}", key + metadata[key]) for key in metadata),
    ]
    for variable in network.variables:
        named.append((f"the name of variable {variable.name!r}", variable.name))
        named += [(f"a state of variable {variable.name!r}", state) for state in variable.states]
    for what, text in named:
        try:
            if isinstance(text, str):
                text.encode()
        except UnicodeEncodeError as error:
            raise ModelError(
                f"{what} cannot be written: {text[:40]!r} holds {text[error.start]!r}, half a surrogate pair, "
                "which is not a character"
            ) from None


def _read(source: Source, format: Format | None, strict: bool) -> BayesianNetwork:
    chosen = format or _by_suffix(source.path or "", source)
    if chosen is not None:
        return _read_as(chosen, source, strict)
    suffix = os.path.splitext((source.path or "").lower().removesuffix(".gz"))[1]
    try:
        chosen = _by_content(source, FORMATS)
        if chosen is None:
            raise source.error("cannot tell the format of this file")
        return _read_as(chosen, source, strict)
    except OversizedFileError:
        raise
    except ParseError as error:
        if chosen is not None and not suffix:
            raise
        unread = f"this format is not read ({suffix}); " if suffix else ""
        taken = f"taken for {chosen.name}, which it resembles: " if chosen is not None else ""
        ways = f"give a file that is read its suffix ({_known_suffixes()}) or say format="
        told = source.error(f"{unread}{taken}{error.message}; {ways}", error.line, error.column)
        told.problems = error.problems
        raise told from None


def _read_as(format: Format, source: Source, strict: bool) -> BayesianNetwork:
    source.require_room(format.word_bytes)
    return cast("BayesianNetwork", format.read(source, strict))


def _by_suffix(path: str, source: Source | None = None) -> Format | None:
    """The format of this suffix; where several share it, the one the content looks like, otherwise the first."""
    name = path.lower().removesuffix(".gz")
    sharing = tuple(format for format in FORMATS if name.endswith(format.suffixes))
    if len(sharing) > 1 and source is not None:
        return _by_content(source, sharing) or sharing[0]
    return sharing[0] if sharing else None


def _by_content(source: Source, formats: tuple[Format, ...]) -> Format | None:
    start = source.text[:4000]
    return next((format for format in formats if re.search(format.pattern, start, re.MULTILINE)), None)


def _known_suffixes() -> str:
    return ", ".join(suffix for format in FORMATS for suffix in format.suffixes)
