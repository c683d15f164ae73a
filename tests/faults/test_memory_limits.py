"""Memory that the system limits: what is too large is refused by a BudgetError, not by the system, and work goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bbn import kernels

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="limits of memory are those of Linux"),
]
ROOT = Path(__file__).parents[2]
GROUPS = Path("/sys/fs/cgroup")

WORK = """
import os, sys
import numpy as np
if sys.argv[1:]:  # the group to live in
    open(sys.argv[1], "w").write(str(os.getpid()))
import bbn
from tests.core.test_stopping import grid

asia = bbn.example("asia")
expected = asia.query("lung", {"xray": "yes"}).values.tolist()
variables = [bbn.Variable(f"x{i}", range(40)) for i in range(6)]
flat = bbn.BayesianNetwork([bbn.CPT(v, table=np.full(40, 1 / 40)) for v in variables])
rows = {f"x{i}": np.arange(40) for i in range(6)}
asked = {
    "query": lambda: grid(28).query("x0_0"),
    "posteriors": lambda: grid(28).posteriors(),
    "mpe": lambda: grid(28).mpe(),
    "joint": lambda: flat.query(flat.names),
    "elimination": lambda: grid(28).query("x0_0", method="elimination"),
    "table": lambda: bbn.fit([(f"x{i}", "x5") for i in range(5)], rows),
    "samples": lambda: asia.sample(10**10, seed=1),
    "map": lambda: grid(28).map(["x0_0", "x1_1"]),
}
for name, ask in asked.items():
    try:
        ask()
        print(name, "was answered")
    except bbn.BudgetError as error:
        assert error.needed > error.limit, error
        assert error.limit <= LIMIT, error
    except MemoryError as error:
        print(name, "ended with", type(error).__name__, error)
    assert asia.query("lung", {"xray": "yes"}).values.tolist() == expected, name
# what fits is answered
print(round(grid(16).query("x0_0").values.sum(), 9), len(asia.sample(1000, seed=1)))
"""


def limited(limit: int, group: str, before: str = "") -> subprocess.CompletedProcess[str]:
    """A process that asks for far too much, under a limit in bytes."""
    environment = {key: value for key, value in os.environ.items() if key != "BBN_MEMORY_LIMIT"}
    code = f"LIMIT = {limit}\n{before}{WORK}"
    return subprocess.run(
        [sys.executable, "-c", code, *([group] if group else [])],
        cwd=ROOT, env=environment | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip


def test_a_limit_on_addresses_is_kept_to() -> None:
    """As `ulimit -v` sets it."""
    limit = 1_500_000_000
    before = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({limit}, {limit}))\n"
    done = limited(limit, "", before)
    assert (done.returncode, done.stdout) == (0, "1.0 1000\n"), (done.stdout, done.stderr[-2000:])


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group of its own that allows 400 MB."""
    for tree, names in ((GROUPS / "memory", ("memory.limit_in_bytes",)), (GROUPS, ("memory.max",))):
        path = tree / f"bbn-test-{os.getpid()}"
        try:
            path.mkdir()
        except OSError:
            continue
        if all((path / name).exists() for name in names):
            (path / names[0]).write_text("400000000")
            break
        path.rmdir()
    else:
        pytest.skip("no control group can be made here")
    yield path
    path.rmdir()


@pytest.mark.skipif(not kernels.COMPILED, reason="the twins in numpy take more memory by the way")
def test_a_limit_of_the_control_group_is_kept_to(group: Path) -> None:
    """The system kills what takes more: the process must never get there."""
    done = limited(400_000_000, str(group / "cgroup.procs"))
    assert (done.returncode, done.stdout) == (0, "1.0 1000\n"), (done.stdout, done.stderr[-2000:])
