"""Unknown keywords: a TypeError that names the nearest one that is known, the same for every public function.

Python 3.13 suggests a name by itself; `keywords_checked` does so for the versions before.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import ParamSpec, TypeVar

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
            known = inspect.signature(function).parameters
            for keyword in kwargs:
                if keyword not in known:
                    raise unknown_keyword(f"{function.__name__}()", keyword, known) from None
            raise

    return checked
