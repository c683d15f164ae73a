"""Work on several threads, in order, that can be stopped: by Ctrl-C, by an error elsewhere, or when its time is up.

Compiled loops ask now and then whether to go on (`bbn.kernels.watch`). The thread that waits for others passes its
watches on to them, and calls them off when it leaves for whatever reason.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from numbers import Real
from typing import Any, ParamSpec, TypeVar

from bbn.core.budget import environment, jobs
from bbn.core.errors import BudgetError, TimeLimitError
from bbn.kernels.watch import Watch, check, current, watched_by

_TIME_LIMIT: Any = os.environ.encodekey("BBN_TIME_LIMIT")

STOPS = (KeyboardInterrupt, TimeLimitError)
"""What ends a search or a climb that gives back the best so far."""
REASONS = ("interrupted", "time_limit")
"""How results name them."""
INSTEAD = 'observe more variables, or choose a sampling method such as method="likelihood-weighting"'

Item = TypeVar("Item")
Result = TypeVar("Result")
Parameters = ParamSpec("Parameters")


def in_order(
    work: Callable[[Item], Result], items: Iterable[Item], n_jobs: int | None = None
) -> Generator[Result, None, None]:
    """The result of `work` on each item, in order, by several threads; items are taken only a few ahead."""
    workers = jobs(n_jobs)
    if workers == 1:
        for item in items:
            check()
            yield work(item)
        return
    pending: deque[Future[Result]] = deque()
    with _pool(workers) as submit:
        for item in items:
            pending.append(submit(work, item))
            if len(pending) > workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


@contextmanager
def worker_map(
    n_jobs: int | None, n_tasks: int, take_part: bool = False
) -> Iterator[Callable[..., Iterable[Any]]]:
    """A `map` that spreads its calls over threads and gives results in order; for use again and again.

    With `take_part` the calling thread does the first of no more tasks than workers itself, which saves a thread: for
    short work, as Ctrl-C is heard after it.
    """
    workers = min(jobs(n_jobs), n_tasks)
    if workers <= 1:
        yield map
        return
    with _pool(workers) as submit:

        def spread(work: Callable[..., Any], *items: Iterable[Any]) -> list[Any]:
            listed = list(zip(*items, strict=False))
            own = listed[:1] if take_part and len(listed) <= workers else []
            futures = [submit(work, *arguments) for arguments in listed[len(own) :]]
            return [work(*arguments) for arguments in own] + [future.result() for future in futures]

        yield spread


@contextmanager
def time_limit(seconds: float, instead: str = INSTEAD) -> Iterator[None]:
    """Let work in this block, and in threads that it starts, take at most `seconds` seconds."""
    if isinstance(seconds, bool) or not isinstance(seconds, Real) or not seconds > 0:
        raise ValueError(f"time_limit is {seconds!r}; expected a number of seconds, above 0")

    def late() -> TimeLimitError:
        return TimeLimitError(f"no answer after time_limit={seconds:g} seconds; allow more time, {instead}")

    with watched_by(Watch(seconds, late)):
        yield


def within(seconds: float | None, instead: str = INSTEAD) -> AbstractContextManager[None]:
    """A block of work that may take the seconds given, else those of BBN_TIME_LIMIT, else any time.

    >>> with within(60):
    ...     check()
    """
    seconds = default_time_limit(seconds)
    return nullcontext() if seconds is None else time_limit(seconds, instead)


class _Whole(Watch):
    """Stops nothing: says that what it watches is of no use unless it is whole."""


def all_or_nothing() -> AbstractContextManager[None]:
    """A block of work that is of no use in part: a search in it that is stopped raises, and gives no best so far."""
    return watched_by(_Whole())


def reason_of(stop: BaseException) -> str:
    """What stopped a search that gives its best so far: "interrupted" or "time_limit".

    Inside `all_or_nothing` it does not give it: what stopped it is raised again.
    """
    if any(isinstance(watch, _Whole) for watch in current()):
        raise stop
    return REASONS[isinstance(stop, TimeLimitError)]


def limited(
    instead: str,
) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """A decorator: the keyword `time_limit` of a function, or else BBN_TIME_LIMIT, bounds the time that a call takes.

    `instead` says what a caller may do but allow more time. Where the memory that there is does not suffice after all,
    that is a BudgetError too, and says the same.

    >>> @limited("search among fewer variables")
    ... def search(data, *, time_limit=None):
    ...     return check()
    >>> search([], time_limit=-1)
    Traceback (most recent call last):
    ValueError: time_limit is -1; expected a number of seconds, above 0
    """

    def decorate(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        @wraps(function)
        def bounded(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
            seconds: Any = kwargs.get("time_limit")
            try:
                with within(seconds, instead):
                    return function(*args, **kwargs)
            except MemoryError as error:
                what = f"{function.__name__} needs more memory than there is"
                raise BudgetError(f"{what}; free some, {instead}") from error

        return bounded

    return decorate


def default_time_limit(seconds: float | None, exact: bool = True) -> float | None:
    """The seconds that a call may take: those given, else BBN_TIME_LIMIT, else None, any time.

    >>> default_time_limit(5.0)
    5.0
    """
    if seconds is not None or not exact or _TIME_LIMIT not in environment:
        return seconds
    text = os.environ["BBN_TIME_LIMIT"]
    if not text:
        return None
    try:
        limit = float(text)
    except ValueError:
        limit = -1.0
    if not limit > 0:
        raise ValueError(f"BBN_TIME_LIMIT is {text!r}; expected a number of seconds, above 0")
    return limit


@contextmanager
def _pool(workers: int) -> Iterator[Callable[..., Future[Any]]]:
    """A function that starts work on a thread; all of it stops when the block is left early."""
    watch = Watch()
    watches = (*current(), watch)

    def watched(work: Callable[..., Any], *items: Any) -> Any:
        with watched_by(*watches):
            check()
            return work(*items)

    with ThreadPoolExecutor(workers) as pool:
        try:
            yield lambda work, *items: pool.submit(watched, work, *items)
        except BaseException:  # KeyboardInterrupt, or the caller has seen enough
            watch.stop()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
