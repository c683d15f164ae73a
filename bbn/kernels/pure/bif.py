"""Reading ordinary BIF, without a compiler: every file goes to the general reader."""

from __future__ import annotations

from bbn.kernels.contracts.types import Scan


def scan(data: bytes) -> Scan | None:
    """What a BIF file written in the ordinary way says; None for any other, which the general reader takes.

    Returns
    -------
    The network's name; where the comments at the head of the file end; whether every row sums to 1 within 9e-10; and
    for each table the variable's name, its states, its parents' names, the entries (parents' axes first, in C order)
    and where it starts. Every variable has one table, with the right number of entries, finite and not negative, and
    distinct parents among the variables. That the states are distinct and the arcs make no cycle is not checked.
    """
    return None
