"""Allocations of the kernels made to fail, one after the other: a MemoryError, and the next call is right again.

A library preloaded before the C library's own refuses the nth request that comes from a kernel's code.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bbn.kernels import COMPILED

ROOT = Path(__file__).parents[2]

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);

static __thread long left = -1;   /* requests until one is refused; -1: none is */
static __thread long refused = 0;

void bbn_refuse(long nth) { left = nth, refused = 0; }
long bbn_refused(void) { left = -1; return refused; }

static int refuse(void *caller) {
    Dl_info info;
    if (left < 0 || !dladdr(caller, &info) || !info.dli_fname || !strstr(info.dli_fname, "bbn/kernels/"))
        return 0;
    if (left-- > 0) return 0;
    refused = 1;
    return 1;
}
void *malloc(size_t n) { return refuse(__builtin_return_address(0)) ? 0 : __libc_malloc(n); }
void *calloc(size_t n, size_t m) { return refuse(__builtin_return_address(0)) ? 0 : __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { return refuse(__builtin_return_address(0)) ? 0 : __libc_realloc(p, n); }
"""

DRIVER = """
import ctypes
import sys
import numpy as np
import bbn
from bbn import JunctionTree
from bbn.inference.exact.problem import flatten
from bbn.io import dumps
from bbn import kernels

shim = ctypes.CDLL(sys.argv[1])
shim.bbn_refused.restype = ctypes.c_long
net = bbn.example("alarm")
flat = flatten(net)
rows = net.sample(50, seed=1, missing=0.3)
n = 4200
scope = np.column_stack([np.arange(n - 2), np.arange(1, n - 1), np.arange(2, n)]).ravel()
cross = np.random.default_rng(0).integers(0, n, 400)
large = (
    np.full(n, 2),
    np.concatenate([np.arange(0, 3 * (n - 2) + 1, 3), 3 * (n - 2) + np.arange(2, 401, 2)]),
    np.concatenate([scope, cross]),
    0,
)
text = dumps(net, "bif").encode()
evidence = {"HR": "LOW"}

def lists(arrays):
    return [array.tolist() for array in arrays]

def posteriors():
    engine = JunctionTree(net)
    one = engine.query("CO", evidence).values.tolist()
    return one, [p.values.tolist() for p in engine.posteriors(evidence).values()]

def pieces():
    elimination = kernels.triangulate.eliminate(flat.cards, flat.scope_ptr, flat.scope, 3)
    better = kernels.pieces.Pieces(flat.cards[None].astype(float), flat.scope_ptr, flat.scope, *elimination)
    better.improve(20)
    return lists(better.elimination())

work = {
    "posteriors": posteriors,
    "best": lambda: JunctionTree(net).mpe(evidence).log_probability,
    "rows": lambda: JunctionTree(net).rows({"HR": np.array([0, 1, 2, 3] * 9)}, 36, ["CO"]).values.tolist(),
    "small graph": lambda: lists(kernels.triangulate.eliminate(flat.cards, flat.scope_ptr, flat.scope, 1)),
    "large graph": lambda: lists(kernels.triangulate.eliminate(*large)),
    "pieces": pieces,
    "gradient": lambda: bbn.gradient(net, rows, n_jobs=1)["HR"].tolist(),
    "gibbs": lambda: net.query("CO", evidence, method="gibbs", n_samples=200, seed=1, n_jobs=1).values.tolist(),
    "bif": lambda: [node[3].tolist() for node in kernels.bif.scan(text)[3]],
    "decimals": lambda: kernels.decimals.row_texts(np.linspace(0.1, 0.9, 12), 3, " ", ";"),
}
total = 0
for name, run in work.items():
    right = run()
    nth = 0
    while True:
        shim.bbn_refuse(nth)
        try:
            answer = run()
        except (MemoryError, bbn.BudgetError):
            answer = None
        refused = shim.bbn_refused()
        assert answer == right or (refused and answer is None), (name, nth)
        if not refused:
            break
        assert run() == right, (name, nth)
        nth += 1 + nth // 8  # each of the first eight, then fewer and fewer
        total += 1
    print(name, nth, flush=True)
print("refused", total)
"""


@pytest.mark.slow
@pytest.mark.skipif(not COMPILED, reason="the kernels are not compiled")
@pytest.mark.skipif(sys.platform != "linux", reason="needs a C library whose malloc can be replaced")
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_every_failing_malloc_is_a_memory_error(tmp_path):
    source, library, driver = tmp_path / "shim.c", tmp_path / "shim.so", tmp_path / "driver.py"
    source.write_text(SHIM)
    driver.write_text(DRIVER)
    built = subprocess.run(
        ["gcc", "-shared", "-fPIC", "-O1", "-fno-builtin", str(source), "-o", str(library), "-ldl"],
        capture_output=True,
        text=True,
    )
    if built.returncode:
        pytest.skip(f"the shim cannot be built: {built.stderr[:200]}")
    done = subprocess.run(
        [sys.executable, str(driver), str(library)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert int(done.stdout.split()[-1]) > 50
