"""Libraries that only some uses need: where one is missing, the error says what needs it and how to install it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needed_by(what: str, install: str) -> Iterator[None]:
    """A block of imports; a module that is not there is an error with the line that installs it.

    Parameters
    ----------
    what : str
        What needs the modules: the beginning of the sentence.
    install : str
        What pip is to install, quoted for a shell.

    Raises
    ------
    ModuleNotFoundError
        A module is missing.

    Examples
    --------
    >>> with needed_by("a cluster", "'bbn[dask]'"):
    ...     import no_such_module
    Traceback (most recent call last):
    ModuleNotFoundError: a cluster needs no_such_module, which is not installed: pip install 'bbn[dask]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "a module").partition(".")[0]
        raise ModuleNotFoundError(
            f"{what} needs {missing}, which is not installed: pip install {install}", name=error.name
        ) from None
