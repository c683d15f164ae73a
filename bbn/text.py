"""Plain-text tables and bars, for everything that prints itself."""

from __future__ import annotations

from collections.abc import Sequence

BAR = 20
"""The length of a bar for probability 1, in characters."""


def grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with a rule under its head; columns that hold only numbers are set flush right.

    >>> print(grid(["state", "p"], [["yes", "0.25"], ["no", "0.5"]]))
    state     p
    -----  ----
    yes    0.25
    no      0.5
    """
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    right = [_is_numeric([row[i] for row in rows]) for i in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.rjust(width) if flush else cell.ljust(width)
            for cell, width, flush in zip(cells, widths, right, strict=True)
        )
        return "  ".join(padded).rstrip()

    return "\n".join([line(head), line(["-" * width for width in widths]), *map(line, rows)])


def bar(share: float, length: int = BAR) -> str:
    """A bar for a probability, in eighths of a character.

    >>> bar(0.5, 4)
    '██'
    """
    eighths = round(max(0.0, min(1.0, share)) * length * 8)
    whole, part = divmod(eighths, 8)
    return "█" * whole + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[part]


def _is_numeric(cells: Sequence[str]) -> bool:
    """Whether a column holds numbers, and nothing besides but empty cells."""
    return any(cells) and all(_is_number(cell) for cell in cells if cell)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
