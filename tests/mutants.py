"""Mutants: would a test notice if this line were wrong?

    python -m tests.mutants [--n 300] [--seed 0] [--room ROOM] [--seconds 30] [--workers 2] [--retry]
    (or `make mutants`)

Small faults are put into the package one at a time, and the tests that run the faulty line are run until one fails
(DeMillo, Lipton, Sayward 1978). Which tests run which line is recorded once, in build/mutants, by the run of
`make coverage`; test files that are new or changed since are recorded again by themselves. A mutant then costs only
those tests, the ones of its own room first, quickest first. A test that kills counts only if it passes without the
fault. Faults are drawn with a seed, evenly over the rooms. Results are kept, so a run that was stopped goes on where it
was; `--retry` tries the survivors again, with the tests that have been written since.
Start only one run at a time: all share a record.

A survivor is a hole in the tests, or means the same as the code (or only its speed): the latter are listed with the
reason in tests/mutants_equivalent.txt and not counted.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import queue
import random
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.support.faults import Mutant, mutants_of

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "build" / "mutants"
COPIED = ("bbn", "tests", "models", "docs", "notebooks", "pyproject.toml", "setup.py", "README.md",
          "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", ".github", ".ci")  # fmt: skip
EQUIVALENT = Path(__file__).with_name("mutants_equivalent.txt")
NOTICED = ("killed", "timed out")


def main(arguments: list[str] | None = None) -> int:
    """Draw mutants, run those that have no result yet, and print the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=300, help="mutants in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--room", help="only this room of bbn/")
    parser.add_argument("--seconds", type=float, default=30.0, help="the most that a mutant's tests may take")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--retry", action="store_true", help="run the survivors again")
    parser.add_argument("--record", action="store_true", help="only record anew which test runs which line")
    options = parser.parse_args(arguments)
    BUILD.mkdir(parents=True, exist_ok=True)
    if options.room is None and (options.record or not (BUILD / "tests.json").exists()):
        record(options.workers)
        if options.record:
            return 0
    record_changed(options.workers, options.room)
    if options.record:
        return 0
    mutants = draw(options.n, options.seed, options.room)
    results = BUILD / "results.jsonl"
    rows = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    known = {tuple(row["mutant"]): (row["result"], row["by"]) for row in rows}
    work: queue.SimpleQueue[Mutant] = queue.SimpleQueue()
    for mutant in mutants:
        if tuple(mutant) not in known or (options.retry and known[tuple(mutant)][0] not in NOTICED):
            work.put(mutant)
    lock = threading.Lock()

    def worker(number: int) -> None:
        trial, tests = Trial(number, options.seconds), Tests()
        while True:
            try:
                mutant = work.get_nowait()
            except queue.Empty:
                shutil.rmtree(trial.tree)
                return
            result, by = trial.of(mutant, tests.of(mutant, options.seconds / 3))
            with lock, results.open("a") as file:
                known[tuple(mutant)] = result, by
                file.write(json.dumps({"mutant": mutant, "result": result, "by": by}) + "\n")
                print(
                    f"{result:10} {mutant.path}:{mutant.line}: {mutant.old} -> {mutant.new}", by, flush=True
                )

    threads = [threading.Thread(target=worker, args=(number,)) for number in range(options.workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report(mutants, {mutant: result for mutant, (result, _) in known.items()})
    return 0


def record(workers: int, files: list[str] | None = None) -> None:
    """Run the tests under coverage, and keep which test runs which line and how long each takes.

    Parameters
    ----------
    workers
        Processes.
    files
        Record these test files, and keep what is known about the others.
    """
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-p", "tests.mutants"]
    command += ["-n", str(workers), "--dist", "worksteal"] if workers > 1 else []
    command += ["--cov=bbn", "--cov-branch", "--cov-context=test", "--cov-report="]
    command += ["--cov-append", *files] if files else []
    environment = {**os.environ, "COVERAGE_FILE": str(BUILD / "coverage"), "BBN_RECORD": str(BUILD)}
    subprocess.run(command, cwd=ROOT, env=environment, check=False)  # a test that fails kills nothing
    before = recorded() if files else {"seconds": {}, "files": {}}
    now = digests()
    before["seconds"] |= json.loads((BUILD / "seconds.json").read_text())
    before["files"] |= {name: now[name] for name in files or now}
    (BUILD / "tests.json").write_text(json.dumps(before))


def recorded() -> dict[str, Any]:
    """How long each recorded test took, and a digest of each recorded test file."""
    path = BUILD / "tests.json"
    return json.loads(path.read_text()) if path.exists() else {"seconds": {}, "files": {}}


def record_changed(workers: int, room: str | None) -> None:
    """Record the test files (of a room) that are new or differ from those recorded."""
    before = recorded()["files"]
    own = f"tests/{room}/" if room else "tests/"
    files = [
        name for name, digest in digests().items() if name.startswith(own) and before.get(name) != digest
    ]
    if files:
        record(workers, files)


def digests() -> dict[str, str]:
    """A digest of each test file."""
    files = sorted(ROOT.glob("tests/**/test_*.py"))
    return {f.relative_to(ROOT).as_posix(): hashlib.sha256(f.read_bytes()).hexdigest() for f in files}


class Recorder:
    """A plugin of pytest that writes how long each test took, set-up included, if it passed."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if report.outcome != "passed":
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        if "PYTEST_XDIST_WORKER" not in os.environ:  # workers report to the process that writes
            passed = {test: seconds for test, seconds in self.seconds.items() if test not in self.failed}
            Path(os.environ["BBN_RECORD"], "seconds.json").write_text(json.dumps(passed))


def pytest_configure(config: pytest.Config) -> None:
    """As a plugin of pytest: record."""
    config.pluginmanager.register(Recorder())


class Tests:
    """Which tests run a line."""

    def __init__(self) -> None:
        from coverage import CoverageData

        self.data = CoverageData(str(BUILD / "coverage"))
        self.data.read()
        self.seconds: dict[str, float] = recorded()["seconds"]
        self.of_file: dict[str, list[str]] = {}
        for test in self.seconds:
            self.of_file.setdefault(test.partition("::")[0], []).append(test)

    def of(self, mutant: Mutant, seconds: float) -> list[str]:
        """The tests that run the mutant's lines, those of its room first, quickest first, for so many seconds."""
        lines = self.data.contexts_by_lineno(str(ROOT / mutant.path))
        contexts = {c for line in range(mutant.first, mutant.last + 1) for c in lines.get(line, [])}
        names: set[str] = set()
        for test, _, phase in (context.partition("|") for context in contexts):
            # what a shared fixture runs, the other tests of the file look at
            names.update(self.of_file.get(test.partition("::")[0], []) if phase == "setup" else [test])
        own = f"/{mutant.room}/"
        ordered = sorted(
            names & self.seconds.keys(), key=lambda t: (own not in t.partition("::")[0], self.seconds[t])
        )
        chosen = ordered[:1]
        for test in ordered[1:]:
            seconds -= self.seconds[test]
            if seconds > 0 and len(chosen) < 400:
                chosen.append(test)
        return chosen


def draw(n: int, seed: int, room: str | None) -> list[Mutant]:
    """`n` mutants, evenly over the rooms."""
    rooms: dict[str, list[Mutant]] = {}
    for path in sorted(ROOT.glob("bbn/**/*.py")):
        for mutant in mutants_of(path, ROOT):
            rooms.setdefault(mutant.room, []).append(mutant)
    rooms.pop("bbn", None)
    if room is not None:
        rooms = {room: rooms[room]}
    for name, found in rooms.items():
        random.Random(f"{seed} {name}").shuffle(found)
    depths = range(max(map(len, rooms.values())))
    drawn = [found[depth] for depth in depths for found in rooms.values() if len(found) > depth]
    return drawn[:n]


class Trial:
    """A copy of what the tests need, in which one mutant at a time is tried."""

    def __init__(self, number: int, seconds: float) -> None:
        self.tree = BUILD / f"tree{os.getpid()}-{number}"
        self.seconds = seconds
        self.sound: set[str] = set()
        """Tests that pass in the copy without a fault."""
        shutil.rmtree(self.tree, ignore_errors=True)
        for name in COPIED:
            source = ROOT / name
            ignore = shutil.ignore_patterns("__pycache__", "_build", "*.c", "*.cpp")
            if source.is_dir():
                shutil.copytree(source, self.tree / name, ignore=ignore)
            else:
                shutil.copy2(source, self.tree / name)

    def of(self, mutant: Mutant, tests: list[str]) -> tuple[str, str]:
        """killed (and by which test), survived, timed out, or not run by any test."""
        path = self.tree / mutant.path
        data = path.read_bytes()
        while tests:
            path.write_bytes(data[: mutant.start] + mutant.new.encode() + data[mutant.stop :])
            try:
                passed, failed = self.run(tests)
            except subprocess.TimeoutExpired:
                return "timed out", ""
            finally:
                path.write_bytes(data)
            if passed:
                return "survived", f"of {len(tests)} tests"
            if failed is None:  # the package cannot even be imported
                return "killed", "import"
            if failed in self.sound or self.run([failed])[0]:
                self.sound.add(failed)
                return "killed", failed
            tests = [test for test in tests if test != failed]
        return "not run", ""

    def run(self, tests: list[str]) -> tuple[bool, str | None]:
        """Whether the tests pass, and the first that does not."""
        environment = {**os.environ, "PYTHONPATH": str(self.tree), "PYTHONDONTWRITEBYTECODE": "1"}
        environment |= {"OMP_NUM_THREADS": "1"}
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "-rfE",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
        ]
        done = subprocess.run(
            [*command, *tests], cwd=self.tree, env=environment, timeout=self.seconds, capture_output=True,
            text=True, errors="replace", check=False,
        )  # fmt: skip
        if done.returncode == 0:
            return True, None
        lost = re.search(r"^ERROR: not found: .*?(\S+::.*)$", done.stdout + done.stderr, re.MULTILINE)
        named = re.search(r"^(?:FAILED|ERROR) (\S+::.*?)(?: - .*)?$", done.stdout, re.MULTILINE)
        if done.returncode == 4 and lost and "rror while " not in done.stdout + done.stderr:
            gone = next((test for test in tests if lost[1].endswith(test)), tests[0])
            return False, gone
        name = named[1] if named else None
        return False, next((test for test in tests if name and test.startswith(name)), None)


def report(mutants: list[Mutant], known: dict[tuple[Any, ...], str]) -> None:
    """The table by room, and every survivor that is not listed as equivalent."""
    listed = EQUIVALENT.read_text().splitlines() if EQUIVALENT.exists() else []
    counted = [
        m for m in mutants if tuple(m) in known and not any(line.startswith(f"{m.key}  #") for line in listed)
    ]
    kinds = (*NOTICED, "survived", "not run")
    print(
        f"\n{'room':14}{'mutants':>8}{'killed':>8}{'timed out':>11}{'survived':>10}{'not run':>9}{'rate':>8}"
    )
    for room in [*sorted({m.room for m in counted}), "all"]:
        found = [known[tuple(m)] for m in counted if room in (m.room, "all")]
        parts = [found.count(kind) for kind in kinds]
        rate = (parts[0] + parts[1]) / len(found) if found else 1.0
        print(f"{room:14}{len(found):8}{parts[0]:8}{parts[1]:11}{parts[2]:10}{parts[3]:9}{rate:8.0%}")
    for mutant in counted:
        if known[tuple(mutant)] not in NOTICED:
            print(f"{known[tuple(mutant)]:9} line {mutant.line} of {mutant.key}")


if __name__ == "__main__":
    sys.exit(main())
