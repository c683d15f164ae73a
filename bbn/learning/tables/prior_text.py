"""A prior written as text, as the command line takes it: "bdeu:10", "laplace"."""

from __future__ import annotations

from typing import Any

from bbn.core.errors import DataError, nearest
from bbn.learning.tables.priors import BDeu, Dirichlet, MEstimate, Prior


def parse_prior(text: str) -> Prior | None:
    """A prior from text: "none" or "mle", "laplace", "m-estimate:2", "dirichlet:0.5", "bdeu:10".

    >>> parse_prior("bdeu:10")
    BDeu(equivalent_sample_size=10.0)
    """
    word, _, number = text.strip().lower().partition(":")
    makers: dict[str, Any] = {
        "bdeu": BDeu,
        "dirichlet": Dirichlet,
        "laplace": lambda alpha=1.0: Dirichlet(alpha),
        "m-estimate": MEstimate,
        "mle": lambda: None,
        "none": lambda: None,
    }
    if word not in makers:
        raise DataError(f"unknown prior {text!r}{nearest(word, makers)}")
    try:
        made: Prior | None = makers[word](*([float(number)] if number else []))
    except (TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"prior {text!r}: expected a number after the colon, as in 'bdeu:10'") from None
    return made
