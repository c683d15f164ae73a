"""The hot loops, on plain arrays: each compiled, with a pure twin that gives the same answers.

Each module of `compiled` has a twin of the same name in `pure`. Callers write ``kernels.count.count_families(...)`` and
get one of the two: the compiled one where it was built; otherwise, or with BBN_PURE=1 in the environment, the twin.
"""

from __future__ import annotations

import os
from importlib import import_module
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
    """Whether exact inference, and so all else unless a build failed halfway, runs compiled."""

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


def select(name: str) -> ModuleType:
    """The kernels of this name: the compiled ones, or their twins where those were not built or PURE is set."""
    if not PURE:
        try:
            return import_module(f"bbn.kernels.compiled.{name}")
        except ImportError:
            pass
    return import_module(f"bbn.kernels.pure.{name}")


def __getattr__(name: str) -> Any:
    value: Any
    if name in KERNELS:
        value = select(name)
    elif name == "COMPILED":
        value = select("propagate").__name__.startswith("bbn.kernels.compiled")
    else:
        raise AttributeError(f"module 'bbn.kernels' has no attribute {name!r}")
    globals()[name] = value
    return value
