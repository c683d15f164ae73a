"""The hot loops, on plain arrays: each compiled, with a pure twin that gives the same answers.

Each module of `compiled` has a twin of the same name in `pure`. Callers write ``kernels.count.count_families(...)`` and
get one of the two: the compiled one where they were built; otherwise, or with BBN_PURE=1 in the environment, the twin.

It is all or none. Each kernel is loaded when it is first used; if one was not built though others were, or cannot be
loaded, a RuntimeWarning says why, once, and all are their twins from then on.
"""

from __future__ import annotations

import os
import warnings
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the twins carry the types
    from bbn.kernels.pure import answers as answers
    from bbn.kernels.pure import batch as batch
    from bbn.kernels.pure import bif as bif
    from bbn.kernels.pure import chain as chain
    from bbn.kernels.pure import classify as classify
    from bbn.kernels.pure import climb as climb
    from bbn.kernels.pure import coding as coding
    from bbn.kernels.pure import consistency as consistency
    from bbn.kernels.pure import count as count
    from bbn.kernels.pure import decide as decide
    from bbn.kernels.pure import decimals as decimals
    from bbn.kernels.pure import expect as expect
    from bbn.kernels.pure import explain as explain
    from bbn.kernels.pure import gaussians as gaussians
    from bbn.kernels.pure import layout as layout
    from bbn.kernels.pure import messages as messages
    from bbn.kernels.pure import pieces as pieces
    from bbn.kernels.pure import propagate as propagate
    from bbn.kernels.pure import recode as recode
    from bbn.kernels.pure import regress as regress
    from bbn.kernels.pure import sample as sample
    from bbn.kernels.pure import score as score
    from bbn.kernels.pure import structures as structures
    from bbn.kernels.pure import subsets as subsets
    from bbn.kernels.pure import triangulate as triangulate
    from bbn.kernels.pure import wide as wide

    COMPILED: bool
    """Whether the kernels are the compiled ones, as far as is known: `why_pure` loads all to find out."""

KERNELS = (
    "answers",
    "batch",
    "bif",
    "chain",
    "classify",
    "climb",
    "coding",
    "consistency",
    "count",
    "decide",
    "decimals",
    "expect",
    "explain",
    "gaussians",
    "layout",
    "messages",
    "pieces",
    "propagate",
    "recode",
    "regress",
    "sample",
    "score",
    "structures",
    "subsets",
    "triangulate",
    "wide",
)
PURE = os.environ.get("BBN_PURE", "") not in ("", "0")


FOLDER = "bbn.kernels.compiled"

_fault: str | None = None
"""Why the compiled kernels are not used, though some were built."""


def select(name: str) -> ModuleType:
    """The kernels of this name: the compiled ones, or their twins where those were not built or PURE is set."""
    if not PURE and _fault is None and _built():
        try:
            return import_module(f"{FOLDER}.{name}")
        except Exception as error:  # a build for another numpy is a ValueError
            _fall_back(f"the compiled kernel {name!r} cannot be loaded ({type(error).__name__}: {error})")
    return import_module(f"bbn.kernels.pure.{name}")


def why_pure() -> str | None:
    """Why the kernels are not the compiled ones, None if all of them are; each is loaded to find out.

    >>> why_pure() in (None, "BBN_PURE is set", "no compiled ones here")
    True
    """
    if PURE:
        return "BBN_PURE is set"
    for name in KERNELS:
        if not select(name).__name__.startswith(FOLDER):
            break
    else:
        return None
    return _fault or "no compiled ones here"


@cache
def _built() -> bool:
    """Whether all compiled kernels were built; where only some of them were, that is told."""
    missing = [name for name in KERNELS if find_spec(f"{FOLDER}.{name}") is None]
    if missing and len(missing) < len(KERNELS):
        _fall_back(f"of the compiled kernels {', '.join(map(repr, missing))} are missing")
    return not missing


def _fall_back(fault: str) -> None:
    """Tell why the compiled kernels are not used, and forget those that are."""
    global _fault
    _fault = fault
    for name in (*KERNELS, "COMPILED"):
        globals().pop(name, None)
    warnings.warn(
        f"{fault}: bbn runs on its numpy kernels, which are many times slower; build or install it anew",
        RuntimeWarning,
        stacklevel=4,
    )


def __getattr__(name: str) -> Any:
    value: Any
    if name in KERNELS:
        value = select(name)
    elif name == "COMPILED":
        value = select("propagate").__name__.startswith(FOLDER)
    else:
        raise AttributeError(f"module 'bbn.kernels' has no attribute {name!r}")
    globals()[name] = value
    return value
