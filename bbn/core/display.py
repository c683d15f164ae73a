"""Tables and bars for everything that shows itself: as plain text where it is printed, as HTML in a notebook."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

BAR = 20
"""The length of a bar for probability 1, in characters."""
MOST = 60
"""The most rows of a table that are shown in a notebook."""


_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""How a formula begins, for one spreadsheet or another."""


_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What steers a terminal instead of being seen on it: control characters, those that turn the direction of text
around, and halves of surrogate pairs."""


class Bar(NamedTuple):
    """A cell that shows a number from 0 to 1 as a bar."""

    share: float


Cell = str | Bar


class Table(NamedTuple):
    """Rows under their heads, with a line above and one below.

    >>> print(Table(["state", "p", ""], [["yes", "0.25", Bar(0.25)], ["no", "0.5", Bar(0.5)]], "P(Rain)"))
    P(Rain)
    state     p
    -----  ----  ----------
    yes    0.25  █████
    no      0.5  ██████████
    """

    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    title: str = ""
    note: str = ""

    def __str__(self) -> str:
        rows = [[bar(cell.share) if isinstance(cell, Bar) else cell for cell in row] for row in self.rows]
        parts = (visible(self.title), grid(self.head, rows), visible(self.note, keep="\n"))
        return "\n".join(part for part in parts if part)

    @property
    def html(self) -> str:
        """The table for a notebook: names escaped, numbers flush right, bars drawn, long tables cut."""
        from html import escape

        columns = [[row[i] for row in self.rows] for i in range(len(self.head))]
        sides = [
            "right" if _is_numeric([c for c in column if isinstance(c, str)]) else "left"
            for column in columns
        ]

        def cell(value: Cell, side: str) -> str:
            if isinstance(value, Bar):
                width = 10 * max(0.0, min(1.0, value.share))
                inner = f"<div style='background:#4878a8;height:0.8em;width:{width:.3f}em'></div>"
                return f"<td style='text-align:left;min-width:10em' aria-hidden='true'>{inner}</td>"
            return f"<td style='text-align:{side}'>{escape(value)}</td>"

        heads = [
            f"<th scope='col' style='text-align:{side}'>{escape(name)}</th>" if name.strip() else "<td></td>"
            for name, side in zip(self.head, sides, strict=True)
        ]
        body = "".join(
            f"<tr>{''.join(cell(*pair) for pair in zip(row, sides, strict=True))}</tr>"
            for row in self.rows[:MOST]
        )
        caption = (
            f"<caption style='text-align:left;font-weight:bold'>{escape(self.title)}</caption>"
            if self.title
            else ""
        )
        left_out = f"… {len(self.rows) - MOST} more rows" if len(self.rows) > MOST else ""
        notes = "".join(f"<div>{escape(note)}</div>" for note in (left_out, self.note) if note)
        return f"<table>{caption}<thead><tr>{''.join(heads)}</tr></thead><tbody>{body}</tbody></table>{notes}"


class Tabular:
    """What shows itself as the table that `_table` gives."""

    __slots__ = ()

    def _table(self) -> Table:
        raise NotImplementedError

    def __str__(self) -> str:
        return str(self._table())

    def _repr_html_(self) -> str:
        return self._table().html


def grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with a rule under its head; columns that hold only numbers are set flush right.

    >>> print(grid(["state", "p"], [["yes", "0.25"], ["no", "0.5"]]))
    state     p
    -----  ----
    yes    0.25
    no      0.5
    """
    head, rows = list(map(visible, head)), [list(map(visible, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    right = [_is_numeric([row[i] for row in rows]) for i in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.rjust(width) if flush else cell.ljust(width)
            for cell, width, flush in zip(cells, widths, right, strict=True)
        )
        return "  ".join(padded).rstrip()

    return "\n".join([line(head), line(["-" * width for width in widths]), *map(line, rows)])


def visible(text: str, keep: str = "") -> str:
    """Text that is safe to print: control characters are written as escapes, except those in `keep`.

    >>> print(visible("a\\x1b[2Jb"))
    a\\x1b[2Jb
    """
    return _UNSEEN.sub(lambda match: match[0] if match[0] in keep else repr(match[0])[1:-1], text)


def not_a_formula(cell: Any) -> Any:
    """The cell, with ' before its text if a spreadsheet would take it for a formula; any other is unchanged.

    >>> not_a_formula("=1+1"), not_a_formula("yes"), not_a_formula(-1)
    ("'=1+1", 'yes', -1)
    """
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def counted(n: int, what: str) -> str:
    """A number of things, in words.

    >>> counted(1, "arc"), counted(1200, "row")
    ('1 arc', '1,200 rows')
    """
    return f"{n:,} {what}{'s' * (n != 1)}"


def bar(share: float, length: int = BAR) -> str:
    """A bar for a probability, in eighths of a character.

    >>> bar(0.5, 4)
    '██'
    """
    eighths = round(max(0.0, min(1.0, share)) * length * 8)
    whole, part = divmod(eighths, 8)
    return "█" * whole + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[part]


def _is_numeric(cells: Sequence[str]) -> bool:
    """Whether a column holds only numbers and empty cells."""
    return any(cells) and all(_is_number(cell) for cell in cells if cell)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
