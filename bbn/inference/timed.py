"""Time limits of questions: one that takes longer, or several together, stop with a TimeLimitError."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from bbn.core.errors import BudgetError
from bbn.core.threads import time_limit, within

if TYPE_CHECKING:
    from bbn.inference.engine import Engine

Question = TypeVar("Question", bound=Callable[..., Any])


def timed(question: Question) -> Question:
    """The question, stopped with a TimeLimitError where it takes longer than the engine's or its own `time_limit`.

    Where the system gives no more memory it ends in a BudgetError.
    """

    @wraps(question)
    def limited(self: Engine, *args: Any, **options: Any) -> Any:
        try:
            if not options and self.time_limit is None:
                return question(self, *args)
            seconds = options.get("time_limit")
            if seconds is None:
                seconds = getattr(options.get("budget"), "seconds", None)
            if seconds is None:
                seconds = self.time_limit
            if seconds is None or not self.exact:
                return question(self, *args, **options)
            with time_limit(seconds):
                return question(self, *args, **options)
        except MemoryError as error:
            raise BudgetError(
                "the question needs more memory than there is; free some, or set a lower memory_limit= or "
                "BBN_MEMORY_LIMIT, which refuses such work before it starts"
            ) from error

    return cast(Question, limited)


def together(method: str, options: Mapping[str, Any]) -> AbstractContextManager[None]:
    """A block of questions with these options: an exact engine's `time_limit` bounds all of them together."""
    from bbn.inference import engine_class

    return within(options.get("time_limit")) if engine_class(method).exact else nullcontext()
