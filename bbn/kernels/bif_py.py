"""Reading ordinary BIF, without a compiler: every file goes to the general reader."""

from __future__ import annotations

from bbn.kernels.types import Floats

Scan = tuple[str, int, list[tuple[str, tuple[str, ...], tuple[str, ...], Floats, int]]]


def scan(data: bytes) -> Scan | None:
    """What a BIF file written in the ordinary way says; None for any other, which the general reader takes.

    Returns
    -------
    The network's name, where the comments at the head of the file end, and for each table the variable's name, its
    states, its parents' names, the entries (parents' axes first, in C order) and where it starts. Numbers are not
    negative and finite; nothing else about them has been checked.
    """
    return None
