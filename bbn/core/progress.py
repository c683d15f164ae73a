"""Progress of long work: a bar where someone is looking, nothing elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_here = threading.local()


@contextmanager
def progress_bar(
    progress: bool | None, total: float | None, what: str, unit: str = "it"
) -> Iterator[Callable[..., object]]:
    """A function to call with the amount of work done since the last call, and by keyword what to show beside the bar.

    The keyword `title` replaces the words before the bar.

    Parameters
    ----------
    progress
        True: a bar; False: none; None: a bar on a terminal or in a notebook, once the work has taken a second.
    total
        The amount of all the work, or None if that is not known.

    >>> with progress_bar(False, 10, "counting") as advance:
    ...     advance(10, score=-12.5)
    """
    quiet = getattr(_here, "quiet", False)
    if progress is False or (progress is None and (quiet or not _someone_looks())):
        yield lambda amount, **shown: None
        return
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about widgets that are not installed: a bar of text does as well
        from tqdm.auto import tqdm

    delay = 0.0 if progress else 1.0
    with tqdm(total=total, desc=what, unit=unit, unit_scale=True, delay=delay, leave=bool(progress)) as bar:

        def advance(amount: float, title: str | None = None, **shown: object) -> None:
            if title is not None:
                bar.set_description_str(title, refresh=False)
            if shown:
                bar.set_postfix(shown, refresh=False)
            bar.update(amount)

        yield advance


@contextmanager
def parts_like(progress: bool | None) -> Iterator[None]:
    """A block of work whose parts show no bar, where `progress` is False and they leave it open."""
    before = getattr(_here, "quiet", False)
    _here.quiet = before or progress is False
    try:
        yield
    finally:
        _here.quiet = before


def _someone_looks() -> bool:
    import sys

    if "IPython" in sys.modules:
        shell = sys.modules["IPython"].get_ipython()
        if shell is not None and hasattr(shell, "kernel"):
            return True
    return sys.stderr is not None and sys.stderr.isatty()
