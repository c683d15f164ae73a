"""The hot loops, on plain arrays, compiled; and what serves without a compiler.

Each module of KERNELS has a twin of the same name in `pure` that gives the same answers. Callers write
``kernels.count.count_families(...)`` and get one of the two: the compiled one where they were built; otherwise, or with
BBN_PURE=1 in the environment, the twin. The planner and the interpreters of junction trees, in COMPILED_ONLY, have no
twins: where `kernels.COMPILED` is false, one tree in numpy, ``kernels.junction_tree``, answers all that they do.

It is all or none. Each kernel is loaded when it is first used; if one was not built though others were, or cannot be
loaded, a RuntimeWarning says why, once, and what is asked from then on runs without compiled ones.
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
    from bbn.kernels.pure import bif as bif
    from bbn.kernels.pure import chain as chain
    from bbn.kernels.pure import classify as classify
    from bbn.kernels.pure import climb as climb
    from bbn.kernels.pure import coding as coding
    from bbn.kernels.pure import count as count
    from bbn.kernels.pure import decide as decide
    from bbn.kernels.pure import decimals as decimals
    from bbn.kernels.pure import expect as expect
    from bbn.kernels.pure import gaussians as gaussians
    from bbn.kernels.pure import junction_tree as junction_tree
    from bbn.kernels.pure import layout as layout
    from bbn.kernels.pure import messages as messages
    from bbn.kernels.pure import recode as recode
    from bbn.kernels.pure import regress as regress
    from bbn.kernels.pure import sample as sample
    from bbn.kernels.pure import score as score
    from bbn.kernels.pure import structures as structures
    from bbn.kernels.pure import subsets as subsets
    from bbn.kernels.pure import triangulate as triangulate

    batch: Any
    consistency: Any
    explain: Any
    pieces: Any
    propagate: Any
    wide: Any
    COMPILED: bool
    """Whether the kernels are the compiled ones, as far as is known: `why_pure` loads all to find out."""

KERNELS = (
    "answers",
    "bif",
    "chain",
    "classify",
    "climb",
    "coding",
    "count",
    "decide",
    "decimals",
    "expect",
    "gaussians",
    "layout",
    "messages",
    "recode",
    "regress",
    "sample",
    "score",
    "structures",
    "subsets",
    "triangulate",
)
"""Those that are compiled and have a twin; of `layout` the twin has what prepares a plan, not the tapes."""
COMPILED_ONLY = ("batch", "consistency", "explain", "pieces", "propagate", "wide")
PURE_ONLY = ("junction_tree",)
PURE = os.environ.get("BBN_PURE", "") not in ("", "0")


FOLDER = "bbn.kernels.compiled"

_fault: str | None = None
"""Why the compiled kernels are not used, though some were built."""


def select(name: str) -> ModuleType:
    """The kernels of this name: the compiled ones, or their twins where those were not built or PURE is set."""
    if name not in PURE_ONLY and not PURE and _fault is None and _built():
        try:
            return import_module(f"{FOLDER}.{name}")
        except Exception as error:  # a build for another numpy is a ValueError
            _fall_back(f"the compiled kernel {name!r} cannot be loaded ({type(error).__name__}: {error})")
    if name in COMPILED_ONLY:
        raise ImportError(f"the kernel {name!r} is there only compiled, and {why_pure()}; ask once more")
    return import_module(f"bbn.kernels.pure.{name}")


def _loads(name: str) -> bool:
    """Whether the compiled kernel of this name serves."""
    try:
        return select(name).__name__.startswith(FOLDER)
    except ImportError:
        return False


def why_pure() -> str | None:
    """Why the kernels are not the compiled ones, None if all of them are; each is loaded to find out.

    >>> why_pure() in (None, "BBN_PURE is set", "no compiled ones here")
    True
    """
    if PURE:
        return "BBN_PURE is set"
    for name in (*KERNELS, *COMPILED_ONLY):
        if not _loads(name):
            break
    else:
        return None
    return _fault or "no compiled ones here"


@cache
def _built() -> bool:
    """Whether all compiled kernels were built; where only some of them were, that is told."""
    names = sorted((*KERNELS, *COMPILED_ONLY))
    missing = [name for name in names if find_spec(f"{FOLDER}.{name}") is None]
    if missing and len(missing) < len(names):
        _fall_back(f"of the compiled kernels {', '.join(map(repr, missing))} are missing")
    return not missing


def _fall_back(fault: str) -> None:
    """Tell why the compiled kernels are not used, and forget those that are."""
    global _fault
    _fault = fault
    for name in (*KERNELS, *COMPILED_ONLY, "COMPILED"):
        globals().pop(name, None)
    warnings.warn(
        f"{fault}: bbn runs on its numpy kernels, which are many times slower; build or install it anew",
        RuntimeWarning,
        stacklevel=4,
    )


def __getattr__(name: str) -> Any:
    value: Any
    if name == "COMPILED":
        value = _loads("layout") and _loads("propagate")  # what every junction tree needs
    elif name in KERNELS or name in COMPILED_ONLY or name in PURE_ONLY:
        value = select(name)
    else:
        raise AttributeError(f"module 'bbn.kernels' has no attribute {name!r}")
    globals()[name] = value
    return value
