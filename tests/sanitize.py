"""The kernels under AddressSanitizer and UndefinedBehaviorSanitizer, with Cython's bounds checks on.

    python -m tests.sanitize [SECONDS [TEXT …]]
    (or `make asan`; SECONDS are for the fuzzers, 60 unless told otherwise; with TEXT only files of that name run)

A copy of the tree under build/asan is compiled so, and the tests of kernels, engines and readers run on it, then the
fuzzers. The interpreter itself is not instrumented, so the sanitizer's library is preloaded and leaks, which are
mostly the interpreter's own, are not reported. The first wrong access ends the run with its stack.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "build" / "asan"
COPIED = (
    "bbn",
    "tests",
    "models",
    "docs",
    "setup.py",
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "LICENSE-models.txt",
)
TESTS = (
    "kernels/test_twins",
    "kernels/test_checks",
    "kernels/test_single_states",
    "kernels/test_chain",
    "kernels/test_decide",
    "kernels/test_subsets",
    "kernels/test_answers",
    "kernels/test_climb",
    "kernels/test_messages",
    "kernels/test_pieces",
    "kernels/test_regress",
    "kernels/test_structures",
    "kernels/test_triangulate",
    "kernels/test_logarithms",
    "inference/exact/test_junction_tree",
    "inference/exact/test_engines",
    "inference/exact/test_sparse_cliques",
    "inference/exact/test_sparse_maxima",
    "inference/exact/test_domain_filtering",
    "inference/exact/test_range",
    "inference/exact/test_asked_again",
    "inference/exact/test_thin",
    "inference/rows/test_predict",
    "inference/sampling/test_sample",
    "inference/sampling/test_monte_carlo",
    "learning/incomplete/test_em",
    "learning/incomplete/test_gradient",
    "learning/structure/test_score_cache",
    "classifiers/test_networks",
    "classifiers/test_gaussian_mixture",
    "learning/gaussian/test_em",
    "io/test_formats",
    "io/test_fuzz",
    "io/test_bad_files",
    "data/test_coding",
)
"""Those that reach the kernels; the others are slow under a sanitizer, and reach nothing more."""
NOT_RUN = ("kernels/test_failing_malloc", "kernels/test_numpy_tree", "kernels/test_switch")
"""Tests of kernels that say nothing here: one preloads a library of its own, one is about numpy alone, one looks at
which kernels are chosen."""
LEFT_OUT = (
    "test_nasty_files_within_time_and_memory",  # memory and time are a sanitizer's own
    "test_the_memory_of_an_elimination",
    "test_a_number_of_a_gigabyte",
    "failing_malloc",  # it preloads a library of its own
    "test_intervals_cover",  # statistics: many draws, and no code that the others miss
    "unbiased",
)


def copy_tree() -> None:
    """Copy what is built and run, with bounds checks on; files that did not change keep their build."""
    for name in COPIED:
        source = ROOT / name
        paths = [source] if source.is_file() else sorted(p for p in source.rglob("*") if p.is_file())
        for path in paths:
            if path.suffix in (".so", ".c", ".pyc"):
                continue
            target = BUILD / path.relative_to(ROOT)
            content = path.read_bytes()
            if path.suffix == ".pyx":
                content = content.replace(
                    b"boundscheck=False", b"boundscheck=True, show_performance_hints=False"
                )
            if not target.exists() or target.read_bytes() != content:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)


def library(name: str) -> str:
    """The path of a library of the compiler."""
    compiler = os.environ.get("CC", "gcc").split()[0]
    found = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True)
    return found.stdout.strip()


def main(seconds: str = "60", *texts: str) -> int:
    """Build, test, fuzz; the exit code of the first that fails."""
    if shutil.which(os.environ.get("CC", "gcc").split()[0]) is None:
        print("no compiler: nothing to do")
        return 0
    start = time.monotonic()
    copy_tree()
    plain = {**os.environ, "PYTHONPATH": str(BUILD), "BBN_SANITIZE": "1"}
    build = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    if code := subprocess.run(build, cwd=BUILD, env=plain).returncode:
        return code
    print(f"built in {time.monotonic() - start:.0f} s", flush=True)
    checked = {
        **plain,
        "LD_PRELOAD": f"{library('libasan.so')} {library('libubsan.so')}",
        "ASAN_OPTIONS": "detect_leaks=0:halt_on_error=1:allocator_may_return_null=1:detect_stack_use_after_return=1",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
        "PYTHONMALLOC": "malloc",  # so that each object is guarded
        "OMP_NUM_THREADS": "2",
    }
    probe = "from bbn import kernels; assert kernels.COMPILED, 'the kernels were not built'"
    files = [f"tests/{name}.py" for name in TESTS if not texts or any(text in name for text in texts)]
    fuzzers = () if texts else ("tests.fuzz", "tests.fuzz_models")
    skipped = " and ".join(f"not {name}" for name in LEFT_OUT)
    for command in (
        ["-c", probe],
        ["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-k", skipped, *files],
        *(["-m", fuzzer, seconds] for fuzzer in fuzzers),
    ):
        start = time.monotonic()
        if code := subprocess.run([sys.executable, *command], cwd=BUILD, env=checked).returncode:
            return code
        print(f"{' '.join(command[:3])[:60]}: {time.monotonic() - start:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
