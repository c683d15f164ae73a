"""What the commands print: rows as a table, JSON or CSV; in colour on a terminal, otherwise in UTF-8.

Names and texts come from files that anyone may have written. What would steer a terminal is printed as an escape: in
everything meant for a person always, and in data (CSV, a network's text) where they go to a terminal. Commands print
only through the functions of this module.
"""

from __future__ import annotations

import argparse
import codecs
import math
import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from bbn.core.display import grid, not_a_formula, visible

_BARS = re.compile("[█▏▎▍▌▋▊▉]+")
_PLAIN = {"…": "...", "→": "->", "−": "-", "·": "-", "∅": "{}", "‖": "||"} | dict.fromkeys("█▉▊▋▌▍", "#")
"""What stands for a character where the terminal does not know it; the thinnest bars vanish, others are "?"."""
_JSON_UNSEEN = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What JSON may hold as it is, but a terminal should not be sent."""
_COLOURS = {"blue": "\x1b[34m", "red": "\x1b[31m", "yellow": "\x1b[33m", "green": "\x1b[32m"}


def prepare(stream: Any) -> None:
    """Let a stream print any text, whatever encoding the terminal has."""
    codecs.register_error("bbn", _stand_in)
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="bbn")


def coloured(text: str, colour: str, stream: TextIO) -> str:
    """The text in a colour if `stream` is a terminal that takes it; NO_COLOR (no-color.org) turns colours off."""
    dull = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not stream.isatty()
    return text if dull else f"{_COLOURS[colour]}{text}\x1b[0m"


def show(text: str, flush: bool = False) -> None:
    """Print what is meant for a person, its bars in colour on a terminal."""
    said = visible(text, keep="\n\t")
    print(_BARS.sub(lambda bar: coloured(bar[0], "blue", sys.stdout), said), flush=flush)


def note(text: str, quiet: bool = False) -> None:
    """Say on standard error what happened, unless that is not wanted."""
    if not quiet:
        print(visible(text, keep="\n\t"), file=sys.stderr)


def complain(head: str, colour: str, text: str, before: str = "") -> None:
    """Say on standard error what is wrong, after a word in colour."""
    print(f"{before}{coloured(head, colour, sys.stderr)} {visible(text)}", file=sys.stderr)


def write(data: str | bytes) -> None:
    """Write a file's content to standard output: text as UTF-8, whatever the terminal's encoding."""
    if isinstance(data, bytes):
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
    else:
        in_utf8().write(data)


def print_rows(
    options: argparse.Namespace,
    head: Sequence[Any],
    rows: Iterable[Sequence[Any]],
    more: dict[str, Any] | None = None,
) -> None:
    """Print rows as `--format` wants: as a table, as CSV, or as one JSON object with `rows` and what else there is."""
    if options.format == "json":
        import json

        keys = [str(name) for name in head]
        found = {**(more or {}), "rows": [dict(zip(keys, map(_finite, row), strict=True)) for row in rows]}
        text = json.dumps(found, ensure_ascii=False, default=_plain, indent=2)
        in_utf8().write(_JSON_UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n")
    elif options.format == "csv":
        import csv

        cell = not_a_formula if options.escape_formulas else _same
        writer = csv.writer(in_utf8(), lineterminator="\n")
        writer.writerow(map(cell, head))
        writer.writerows(map(cell, row) for row in rows)
    else:
        show(grid([str(name) for name in head], [[_cell(value) for value in row] for row in rows]))


class _Visible:
    """A terminal that shows control characters as escapes."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write text, escaped."""
        self.stream.write(visible(text, keep="\n\t"))
        return len(text)

    def flush(self) -> None:
        """Write out what is buffered."""
        self.stream.flush()


def in_utf8() -> Any:
    """Standard output for data: in UTF-8, and as it is unless a person looks."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8")
    return _Visible(sys.stdout) if sys.stdout.isatty() else sys.stdout


def _same(value: Any) -> Any:
    return value


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else "" if value is None else str(value)


def _finite(value: Any) -> Any:
    """JSON has no word for what is not a finite number."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _plain(value: Any) -> Any:
    """numpy's numbers as Python's, for JSON."""
    return value.item()


def _stand_in(error: UnicodeError) -> tuple[str, int]:
    """An error handler of codecs: plain characters for those that an encoding lacks."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(_PLAIN.get(c, "" if c in "▏▎" else "?") for c in text), error.end
