"""Unknown keywords: a TypeError that names the nearest one that is known, the same for every public function.

Python 3.13 suggests a name by itself; `keywords_checked` does so for the versions before.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from bbn.core.errors import nearest

P = ParamSpec("P")
R = TypeVar("R")


def unknown_keyword(where: str, keyword: str, known: Iterable[str]) -> TypeError:
    """The error for a keyword that does not exist.

    Parameters
    ----------
    where : str
        What was called, as the message begins, such as "fit()" or "method 'gibbs'".
    keyword : str
        The keyword that was given.
    known : iterable of str
        The keywords that there are.

    >>> raise unknown_keyword("fit()", "prioir", ["prior", "weights"])
    Traceback (most recent call last):
    TypeError: fit() has no option 'prioir'; did you mean 'prior'?
    """
    return TypeError(f"{where} has no option {keyword!r}{nearest(keyword, known)}")


def keywords_checked(function: Callable[P, R]) -> Callable[P, R]:
    """The function, with a TypeError that names the nearest keyword where one is unknown.

    The keywords are compared only after a call has failed, so a good call costs only one more function call.

    Parameters
    ----------
    function
        One whose keywords are all named in its signature.

    >>> @keywords_checked
    ... def fit(data, prior=None):
    ...     return data
    >>> fit([1], prioir=2)
    Traceback (most recent call last):
    TypeError: fit() has no option 'prioir'; did you mean 'prior'?
    """

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except TypeError:
            fault = _fault(function, args, kwargs)
            if fault is None:
                raise
            raise fault from None

    return checked


def _fault(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> TypeError | None:
    """What is wrong with a call: an unknown keyword, or one pair where a mapping is expected; None if it is neither."""
    own = [p for p in inspect.signature(function).parameters.values() if p.name not in ("self", "cls")]
    if any(p.kind is p.VAR_KEYWORD for p in own):
        return None
    *_, name = function.__qualname__.removesuffix(".__init__").split(".")
    args = args[len(inspect.signature(function).parameters) - len(own) :]
    takes_mapping = len(own) == 1 and str(own[0].annotation).startswith(("Mapping", "Interventions"))
    if takes_mapping and len(args) == 2 and isinstance(args[0], str):
        return TypeError(f"{name}() takes a mapping: write {name}({{{args[0]!r}: {args[1]!r}}})")
    known = [p.name for p in own]
    for keyword, value in kwargs.items():
        if keyword not in known:
            error = unknown_keyword(f"{name}()", keyword, known)
            if takes_mapping and "did you mean" not in str(error):
                return TypeError(f"{name}() takes a mapping: write {name}({{{keyword!r}: {value!r}}})")
            return error
    return None
