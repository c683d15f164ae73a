"""Time limits of questions: a question that takes longer stops with a TimeLimitError."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from bbn.core.threads import time_limit

if TYPE_CHECKING:
    from bbn.inference.engine import Engine

Question = TypeVar("Question", bound=Callable[..., Any])


def timed(question: Question) -> Question:
    """The question, stopped with a TimeLimitError where it takes longer than the engine's or its own `time_limit`."""

    @wraps(question)
    def within(self: Engine, *args: Any, **options: Any) -> Any:
        if not options and self.time_limit is None:
            return question(self, *args)
        seconds = options.get("time_limit")
        if seconds is None:
            seconds = self.time_limit
        if seconds is None or not self.exact:
            return question(self, *args, **options)
        with time_limit(seconds):
            return question(self, *args, **options)

    return cast(Question, within)
