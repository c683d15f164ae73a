"""The memory budget: what limits may be written, and where the limit comes from."""

import os
import sys

import numpy as np
import pytest

from bbn.budget import jobs, memory_limit, parse_bytes, require_memory, require_table, show_bytes
from bbn.errors import BudgetError


@pytest.mark.parametrize(
    ("written", "size"),
    [
        *((1000, 1000), (2.5e9, 2_500_000_000), ("1000", 1000), ("2GB", 2 * 10**9), ("2 gb", 2 * 10**9)),
        *(("1.5 MiB", 3 * 2**19), ("1KiB", 1024), ("1e3 kB", 10**6), ("3T", 3 * 10**12), ("7 B", 7)),
        (float("inf"), sys.maxsize),
    ],
)
def test_sizes_with_and_without_units(written, size):
    assert parse_bytes(written) == size


@pytest.mark.parametrize("written", ["", "GB", "1.2.3", "-1", "2 XB", "0", "two", 0, -5, float("nan")])
def test_sizes_that_are_none_name_what_was_written(written):
    with pytest.raises(ValueError, match="limit: ") as caught:
        parse_bytes(written, "limit")
    assert repr(written) in str(caught.value)


def test_the_limit_is_the_argument_then_the_environment_then_half_of_memory(monkeypatch):
    monkeypatch.delenv("BBN_MEMORY_LIMIT", raising=False)
    half = memory_limit()
    assert half > 10**7
    monkeypatch.setenv("BBN_MEMORY_LIMIT", "3 MB")
    assert memory_limit() == 3_000_000
    assert memory_limit("5 kB") == 5000
    monkeypatch.setenv("BBN_MEMORY_LIMIT", "lots")
    with pytest.raises(ValueError, match="BBN_MEMORY_LIMIT: 'lots'"):
        memory_limit()


def test_a_refusal_says_how_much_and_what_to_do():
    with pytest.raises(BudgetError) as caught:
        require_memory(10**9, "the clique A, B", "observe A", "1 MB")
    assert (caught.value.needed, caught.value.limit) == (10**9, 10**6)
    for words in ("the clique A, B", "1 GB", "1 MB", "observe A", "memory_limit=", "BBN_MEMORY_LIMIT"):
        assert words in str(caught.value)
    require_memory(10**6, "just enough", limit="1 MB")
    with pytest.raises(BudgetError, match="33 axes"):
        require_table([1] * 33, "a table")


@pytest.mark.parametrize(
    ("size", "shown"),
    [(0, "0 bytes"), (1000, "1 kB"), (999_999, "1 MB"), (2**43, "8.8 TB"), (10**18, "1.00e+03 PB")],
)
def test_sizes_in_words(size, shown):
    assert show_bytes(size) == shown


@pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity"), reason="the system does not tell which cores are ours"
)
def test_threads(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert (jobs(), jobs(2), jobs(np.int64(5))) == (3, 2, 5)
    monkeypatch.setenv("OMP_NUM_THREADS", "none")
    assert jobs() == jobs(-1) == len(os.sched_getaffinity(0))
    for wrong in (0, 1.5, "2", True):
        with pytest.raises(TypeError, match="n_jobs"):
            jobs(wrong)
