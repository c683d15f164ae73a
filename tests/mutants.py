"""Mutants: would a test notice if this line were wrong?

    python -m tests.mutants [--n 300] [--seed 0] [--room ROOM] [--seconds 30]
    (or `make mutants`)

Small faults are put into the package one at a time, and the tests that run the faulty line are run until one fails
(DeMillo, Lipton, Sayward 1978). Which tests run which line is recorded once, in build/mutants, by a run of the tests
under coverage; a mutant then costs only those tests, quickest first, at most `--seconds`. Faults are drawn with a
seed, evenly over the rooms. Results are kept, so a run that was stopped goes on where it was; `--again` forgets them.

A survivor is a hole in the tests, or means the same as the code (or only its speed): the latter are listed with the
reason in tests/mutants_equivalent.txt and not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import random
import shutil
import subprocess
import sys
import threading
from pathlib import Path

from tests.support.faults import Mutant, mutants_of

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "build" / "mutants"
COPIED = (
    "bbn",
    "tests",
    "models",
    "docs",
    "notebooks",
    "pyproject.toml",
    "setup.py",
    "README.md",
    "CHANGELOG.md",
)
EQUIVALENT = Path(__file__).with_suffix("").with_name("mutants_equivalent.txt")


def main(arguments: list[str] | None = None) -> int:
    """Draw mutants, run those that have no result yet, and print the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=300, help="mutants in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--room", help="only this room of bbn/")
    parser.add_argument("--seconds", type=float, default=30.0, help="the most that a mutant's tests may take")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--again", action="store_true", help="forget earlier results and what was recorded")
    options = parser.parse_args(arguments)
    if options.again:
        shutil.rmtree(BUILD, ignore_errors=True)
    BUILD.mkdir(parents=True, exist_ok=True)
    if not (BUILD / "durations.json").exists():
        record()
    mutants = draw(options.n, options.seed, options.room)
    results = BUILD / "results.jsonl"
    known = (
        {tuple(row["mutant"]): row["result"] for row in map(json.loads, results.read_text().splitlines())}
        if (results.exists())
        else {}
    )
    work: queue.SimpleQueue[Mutant] = queue.SimpleQueue()
    for mutant in mutants:
        if tuple(mutant) not in known:
            work.put(mutant)
    lock = threading.Lock()

    def worker(number: int) -> None:
        tree = fresh_tree(number)
        tests = Tests()
        while not work.empty():
            try:
                mutant = work.get_nowait()
            except queue.Empty:
                return
            result = try_mutant(tree, mutant, tests.of(mutant), options.seconds)
            with lock, results.open("a") as file:
                known[tuple(mutant)] = result
                file.write(json.dumps({"mutant": mutant, "result": result}) + "\n")
                print(f"{result:10} {mutant.path}:{mutant.line}: {mutant.old} -> {mutant.new}", flush=True)

    threads = [threading.Thread(target=worker, args=(number,)) for number in range(options.workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report(mutants, known)
    return 0


def record() -> None:
    """Run the tests once under coverage, and keep which test runs which line and how long each takes."""
    command = [
        "-m",
        "pytest",
        "-q",
        "-n",
        "auto",
        "-m",
        "not slow",
        "-p",
        "tests.mutants",
        "--cov=bbn",
        "--cov-context=test",
    ]
    environment = {
        **os.environ,
        "COVERAGE_FILE": str(BUILD / "coverage"),
        "BBN_DURATIONS": str(BUILD / "durations.json"),
    }
    subprocess.run([sys.executable, *command, "--cov-report="], cwd=ROOT, env=environment, check=True)


def pytest_runtest_logreport(report: object, _seconds: dict[str, float] = {}) -> None:  # noqa: B006
    """As a plugin of pytest: note how long each test takes (workers report to the process that writes)."""
    if getattr(report, "when", "") == "call" and "PYTEST_XDIST_WORKER" not in os.environ:
        _seconds[report.nodeid] = report.duration  # type: ignore[attr-defined]
        if path := os.environ.get("BBN_DURATIONS"):
            DURATIONS[path] = _seconds


DURATIONS: dict[str, dict[str, float]] = {}


def pytest_sessionfinish() -> None:
    """As a plugin of pytest: write what was noted."""
    for path, seconds in DURATIONS.items():
        Path(path).write_text(json.dumps(seconds))


class Tests:
    """Which tests run a line, quickest first."""

    def __init__(self) -> None:
        from coverage import CoverageData

        self.data = CoverageData(str(BUILD / "coverage"))
        self.data.read()
        self.seconds: dict[str, float] = json.loads((BUILD / "durations.json").read_text())

    def of(self, mutant: Mutant) -> list[str]:
        lines = self.data.contexts_by_lineno(str(ROOT / mutant.path))
        names = {context.partition("|")[0] for context in lines.get(mutant.line, []) if context}
        return sorted(names & self.seconds.keys(), key=self.seconds.__getitem__)


def draw(n: int, seed: int, room: str | None) -> list[Mutant]:
    """`n` mutants, evenly over the rooms."""
    rooms: dict[str, list[Mutant]] = {}
    for path in sorted(ROOT.glob("bbn/**/*.py")):
        for mutant in mutants_of(path, ROOT):
            rooms.setdefault(mutant.room, []).append(mutant)
    rooms.pop("bbn", None)
    if room is not None:
        rooms = {room: rooms[room]}
    random_ = random.Random(seed)
    for found in rooms.values():
        random_.shuffle(found)
    drawn: list[Mutant] = []
    depth = 0
    while len(drawn) < n and any(len(found) > depth for found in rooms.values()):
        drawn += [found[depth] for found in rooms.values() if len(found) > depth]
        depth += 1
    return drawn[:n]


def fresh_tree(number: int) -> Path:
    """A copy of what the tests need, with the compiled kernels."""
    tree = BUILD / f"tree{number}"
    shutil.rmtree(tree, ignore_errors=True)
    for name in COPIED:
        source = ROOT / name
        ignore = shutil.ignore_patterns("__pycache__", "_build", "*.c", "*.cpp")
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=ignore)
        else:
            shutil.copy2(source, tree / name)
    return tree


def try_mutant(tree: Path, mutant: Mutant, tests: list[str], seconds: float) -> str:
    """killed, survived, timed out, or no test runs the line."""
    if not tests:
        return "not run"
    path = tree / mutant.path
    data = path.read_bytes()
    path.write_bytes(data[: mutant.start] + mutant.new.encode() + data[mutant.stop :])
    environment = {
        **os.environ,
        "PYTHONPATH": str(tree),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
    }
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        *tests[:200],
    ]
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, timeout=seconds, capture_output=True, check=False
        )
        return "survived" if done.returncode == 0 else "killed"
    except subprocess.TimeoutExpired:
        return "timed out"
    finally:
        path.write_bytes(data)


def report(mutants: list[Mutant], known: dict[tuple[object, ...], str]) -> None:
    """The table by room, and every survivor that is not listed as equivalent."""
    listed = EQUIVALENT.read_text().splitlines() if EQUIVALENT.exists() else []
    counted = [m for m in mutants if tuple(m) in known and not any(line.startswith(m.key) for line in listed)]
    print(
        f"\n{'room':14}{'mutants':>8}{'killed':>8}{'timed out':>11}{'survived':>10}{'not run':>9}{'rate':>8}"
    )
    for room in [*sorted({m.room for m in counted}), "all"]:
        found = [known[tuple(m)] for m in counted if room in (m.room, "all")]
        parts = [found.count(kind) for kind in ("killed", "timed out", "survived", "not run")]
        rate = (parts[0] + parts[1]) / len(found) if found else 1.0
        print(f"{room:14}{len(found):8}{parts[0]:8}{parts[1]:11}{parts[2]:10}{parts[3]:9}{rate:8.0%}")
    for mutant in counted:
        if known[tuple(mutant)] in ("survived", "not run"):
            print(f"{known[tuple(mutant)]:9} {mutant.path}:{mutant.line}: {mutant.old!r} -> {mutant.new!r}")


if __name__ == "__main__":
    sys.exit(main())
