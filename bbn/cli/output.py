"""What the commands print: rows as a table, JSON or CSV; in colour where a person looks, else in UTF-8."""

from __future__ import annotations

import codecs
import math
import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

_BARS = re.compile("[█▏▎▍▌▋▊▉]+")
_PLAIN = {"…": "...", "→": "->", "−": "-", "·": "-", "∅": "{}", "‖": "||"} | dict.fromkeys("█▉▊▋▌▍", "#")
"""What stands for a character where the terminal does not know it; the thinnest bars vanish, others are "?"."""
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


def show(text: str) -> None:
    """Print what is meant for a person, its bars in colour on a terminal."""
    print(_BARS.sub(lambda bar: coloured(bar[0], "blue", sys.stdout), text))


def note(text: str, quiet: bool = False) -> None:
    """Say on standard error what happened, unless that is not wanted."""
    if not quiet:
        print(text, file=sys.stderr)


def write(data: str | bytes) -> None:
    """Write a file's content to standard output: text as UTF-8, whatever the terminal's encoding."""
    if isinstance(data, bytes):
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
    else:
        _in_utf8()
        sys.stdout.write(data)


def print_rows(
    format: str, head: Sequence[Any], rows: Iterable[Sequence[Any]], more: dict[str, Any] | None = None
) -> None:
    """Print rows as a table, as CSV, or as one JSON object with `rows` and what else there is."""
    if format == "json":
        import json

        _in_utf8()
        keys = [str(name) for name in head]
        found = {**(more or {}), "rows": [dict(zip(keys, map(_finite, row), strict=True)) for row in rows]}
        print(json.dumps(found, ensure_ascii=False, default=_plain, indent=2))
    elif format == "csv":
        import csv

        _in_utf8()
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(rows)
    else:
        from bbn.text import grid

        show(grid([str(name) for name in head], [[_cell(value) for value in row] for row in rows]))


def _in_utf8() -> None:
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8")


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
