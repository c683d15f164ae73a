"""The memory budget: what limits may be written, and where the limit comes from."""

import math
import os
import sys
import threading

import numpy as np
import pytest

from bbn.core import budget
from bbn.core.budget import (
    Ledger,
    Room,
    control_group_limit,
    jobs,
    memory_limit,
    parse_bytes,
    require_memory,
    require_table,
    show_bytes,
)
from bbn.core.errors import BudgetError, TimeLimitError
from bbn.core.threads import time_limit


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


def make_groups(folder, limits, name):
    """A tree of control groups: a folder with a limit per level, from the root down."""
    for part, limit in limits:
        folder = folder / part
        folder.mkdir(parents=True, exist_ok=True)
        if limit is not None:
            (folder / name).write_text(f"{limit}\n")


@pytest.mark.parametrize("tree", ["", "unified"])
def test_the_least_limit_on_the_way_up_from_the_process_counts_in_version_2(tmp_path, tree):
    (tmp_path / "own").write_text("0::/outer/middle/inner\n")
    levels = [("", "max"), ("outer", 3000), ("middle", 2000), ("inner", "max")]
    make_groups(tmp_path / "fs" / tree, levels, "memory.max")
    assert control_group_limit(tmp_path / "own", tmp_path / "fs") == 2000
    (tmp_path / "fs" / tree / "outer" / "memory.max").write_text("1000\n")
    assert control_group_limit(tmp_path / "own", tmp_path / "fs") == 1000


def test_the_least_limit_on_the_way_up_from_the_process_counts_in_version_1(tmp_path):
    (tmp_path / "own").write_text("7:cpu,cpuacct:/job\n4:memory:/job/step\n0::/\n")
    levels = [("", 2**63 - 4096), ("job", 5000), ("step", 7000)]
    make_groups(tmp_path / "fs" / "memory", levels, "memory.limit_in_bytes")
    make_groups(tmp_path / "fs" / "cpu", [("", None), ("job", 10)], "memory.limit_in_bytes")
    assert control_group_limit(tmp_path / "own", tmp_path / "fs") == 5000


def test_a_container_that_sees_its_group_as_the_root_is_limited_by_that(tmp_path):
    make_groups(tmp_path / "fs" / "memory", [("", 6000)], "memory.limit_in_bytes")
    for path in ("/docker/0123", "/../.."):
        (tmp_path / "own").write_text(f"4:memory:{path}\n")
        assert control_group_limit(tmp_path / "own", tmp_path / "fs") == 6000
    assert control_group_limit(tmp_path / "none", tmp_path / "fs") == math.inf


def test_the_limit_on_addresses_counts(monkeypatch):
    resource = pytest.importorskip("resource")
    monkeypatch.delenv("BBN_MEMORY_LIMIT", raising=False)
    monkeypatch.setattr(resource, "getrlimit", lambda what: (2_000_000, -1))
    assert memory_limit() == 1_000_000
    monkeypatch.setattr(resource, "getrlimit", lambda what: (resource.RLIM_INFINITY, -1))
    monkeypatch.setattr(budget, "_machine_memory", lambda: 10**9)
    assert memory_limit() == 5 * 10**8


def test_a_ledger_adds_up_and_refuses_what_does_not_fit_beside_the_rest():
    ledger = Ledger("1 MB")
    ledger.reserve(700_000, "the answers")
    with pytest.raises(BudgetError, match=r"the tables \(400 kB, beside 700 kB taken already\)") as caught:
        ledger.reserve(400_000, "the tables")
    assert (caught.value.needed, caught.value.limit) == (1_100_000, 1_000_000)
    ledger.reserve(300_000, "what is left")  # the refused bytes were not counted
    assert ledger.left == 0


def test_a_ledger_lowers_the_number_of_threads_to_those_that_fit():
    ledger = Ledger("1 MB")
    assert ledger.copy().workers(16, 300_000) == 3
    assert ledger.copy().workers(2, 300_000) == 2
    assert ledger.copy().workers(16, 1_300_000) == 1
    assert ledger.left == 1_000_000
    ledger.workers(16, 300_000)
    assert ledger.left == 100_000


def test_threads_in_a_room_wait_rather_than_hold_more_than_the_limit_together():
    room = Room()
    most, done = [], []
    start = threading.Barrier(8)

    def work():
        start.wait()
        for _ in range(200):
            with room.hold(400, lambda: 1000):
                most.append(room.held)
        done.append(True)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(done) == 8
    assert max(most) <= 800
    assert room.held == 0
    with room.hold(5000, lambda: 1000):  # alone, anything may run: it was priced before
        assert room.held == 5000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_a_forked_process_does_not_wait_for_threads_that_stayed_behind():
    room = Room()
    with room.hold(900, lambda: 1000):
        child = os.fork()
        if child == 0:
            with room.hold(900, lambda: 1000):
                os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_whoever_waits_for_memory_hears_that_time_is_up():
    room = Room()
    with (
        room.hold(900, lambda: 1000),
        pytest.raises(TimeLimitError),
        time_limit(0.05),
        room.hold(900, lambda: 1000),
    ):
        pass
    assert room.held == 0
