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


def test_what_is_only_compiled_is_refused_without_and_what_is_only_plain_is_always_there(monkeypatch):
    assert kernels.junction_tree.__name__ == "bbn.kernels.pure.junction_tree"
    monkeypatch.setattr(kernels, "PURE", True)
    for name in kernels.COMPILED_ONLY:
        with pytest.raises(ImportError, match=f"{name!r} is there only compiled, and BBN_PURE is set"):
            kernels.select(name)


@pytest.mark.skipif(not kernels.COMPILED, reason="the kernels are not compiled")
@pytest.mark.parametrize("unset", ["", "0"])
def test_without_it_every_kernel_is_compiled(unset):
    assert in_use(unset) == [f"bbn.kernels.compiled.{name}" for name in kernels.KERNELS]


def test_every_kernel_is_listed_and_has_both_files():
    pure = {path.stem for path in (FOLDER / "pure").glob("*.py")} - {"__init__"}
    compiled = {path.stem for path in (FOLDER / "compiled").glob("*.pyx")}
    # what has a file on both sides is a kernel, unless only other kernels use it
    assert pure & compiled - set(kernels.KERNELS) == {"forest"}
    assert set(kernels.KERNELS) <= pure & compiled
    assert set(kernels.COMPILED_ONLY) <= compiled - pure
    assert set(kernels.PURE_ONLY) == pure - compiled - {"best_assignments"}


@pytest.mark.parametrize("name", kernels.KERNELS)
def test_twins_offer_what_the_library_uses(name):
    used = {
        function
        for path in (ROOT / "bbn").rglob("*.py")
        for function in re.findall(rf"\bkernels\.{name}\.(\w+)", path.read_text())
    }
    assert used
    for twin in ("compiled", "pure"):
        if twin == "pure":
            used -= {"lay_out"}  # tapes are for compiled interpreters
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


BREAK = """
import sys, warnings, importlib.abc
broken = {broken!r}
class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name in broken:
            return importlib.machinery.ModuleSpec(name, self)
    def create_module(self, spec):
        {error}
    def exec_module(self, module):
        pass
sys.meta_path.insert(0, Finder())
warnings.simplefilter("always")
import bbn
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    net = bbn.example("asia")
    before = net.query("lung", {{"xray": "yes"}})["yes"]
    bbn.fit_em(net.graph, net.sample(20, seed=0).mask(net.sample(20, seed=1) == "yes"), max_iter=2)
    after = bbn.JunctionTree(net).query("lung", {{"xray": "yes"}})["yes"]
assert abs(before - after) < 1e-12
print(*(f"{{w.category.__name__}}: {{w.message}}" for w in told if issubclass(w.category, RuntimeWarning)), sep="\\n")
print(bbn.kernels.COMPILED, {{getattr(bbn.kernels, name).__name__.split(".")[2] for name in bbn.kernels.KERNELS}})
from bbn.cli import main
main(["--version"])
"""


@pytest.mark.skipif(not kernels.COMPILED, reason="the kernels are not compiled")
@pytest.mark.parametrize(
    "error",
    ['raise ImportError("undefined symbol: bbn_popcount")', 'raise ValueError("numpy.dtype size changed")'],
)
@pytest.mark.parametrize("broken", ["expect", "propagate", "arrays"])
def test_one_that_cannot_be_loaded_is_told_once_and_all_fall_back(broken, error):
    script = BREAK.format(broken=[f"bbn.kernels.compiled.{broken}"], error=error)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "BBN_PURE": ""}
    run = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    lines = run.stdout.splitlines()
    cause = error.split('"')[1]
    assert len(lines) == 3, run.stdout + run.stderr
    assert lines[0].startswith("RuntimeWarning: the compiled kernel")
    assert cause in lines[0]
    assert lines[1] == "False {'pure'}"
    assert cause in lines[2]


@pytest.mark.skipif(not kernels.COMPILED, reason="the kernels are not compiled")
def test_a_build_that_ended_halfway_is_told():
    script = (
        "import importlib.util, warnings\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name: None if name.endswith(('.expect', '.count')) else find(name)\n"
        "from bbn import kernels\n"
        "with warnings.catch_warnings(record=True) as told:\n"
        "    warnings.simplefilter('always')\n"
        "    print(kernels.layout.__name__, kernels.COMPILED, kernels.count.__name__)\n"
        "print(*(w.message for w in told))\n"
        "print(kernels.why_pure())\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "BBN_PURE": ""}
    run = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    first, told, why = run.stdout.splitlines()
    assert first == "bbn.kernels.pure.layout False bbn.kernels.pure.count"
    assert told.startswith(
        "of the compiled kernels 'count', 'expect' are missing: bbn runs on its numpy kernels"
    )
    assert why == "of the compiled kernels 'count', 'expect' are missing"


def test_the_version_says_why_there_are_no_compiled_ones(monkeypatch):
    monkeypatch.setattr(kernels, "PURE", True)
    assert kernels.why_pure() == "BBN_PURE is set"
