"""One switch between the compiled kernels and their pure twins."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bbn import kernels

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "bbn" / "kernels"
PROBE = "from bbn import kernels; print(*(getattr(kernels, name).__name__ for name in kernels.KERNELS))"


def in_use(pure: str) -> list[str]:
    """The modules that a new process gets."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "BBN_PURE": pure}
    run = subprocess.run(
        [sys.executable, "-c", PROBE], env=environment, capture_output=True, text=True, check=True
    )
    return run.stdout.split()


def test_the_variable_reaches_the_twin_of_every_kernel():
    assert in_use("1") == [f"bbn.kernels.pure.{name}" for name in kernels.KERNELS]


@pytest.mark.skipif(not kernels.COMPILED, reason="the kernels are not compiled")
@pytest.mark.parametrize("unset", ["", "0"])
def test_without_it_every_kernel_is_compiled(unset):
    assert in_use(unset) == [f"bbn.kernels.compiled.{name}" for name in kernels.KERNELS]


def test_every_kernel_is_listed_and_has_both_files():
    pure = {path.stem for path in (FOLDER / "pure").glob("*.py")} - {"__init__"}
    compiled = {path.stem for path in (FOLDER / "compiled").glob("*.pyx")}
    assert set(kernels.KERNELS) <= pure & compiled
    # what has a file on both sides is a kernel, unless only other kernels use it
    assert pure & compiled - set(kernels.KERNELS) == {"forest"}


@pytest.mark.parametrize("name", kernels.KERNELS)
def test_twins_offer_what_the_library_uses(name):
    used = {
        function
        for path in (ROOT / "bbn").rglob("*.py")
        for function in re.findall(rf"\bkernels\.{name}\.(\w+)", path.read_text())
    }
    assert used
    for twin in ("compiled", "pure"):
        try:
            module = importlib.import_module(f"bbn.kernels.{twin}.{name}")
        except ImportError:
            assert not kernels.COMPILED
            continue
        assert not {function for function in used if not hasattr(module, function)}


def test_no_other_name_is_found():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        kernels.nothing  # noqa: B018


def test_nothing_imports_a_twin_but_the_twins():
    for path in (ROOT / "bbn").rglob("*.py"):
        if "pure" not in path.parts and path != FOLDER / "__init__.py":
            assert "kernels.pure" not in path.read_text(), path
            assert "kernels.compiled" not in path.read_text(), path
