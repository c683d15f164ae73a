"""Two checkouts side by side: has a row become slower?

    python -m tests.benchmarks --against PATH [NAME | NAME:TEXT …]

PATH is the root of another checkout with its kernels built. For each row of the modules (of `bench_NAME.py`) that both
checkouts have, matched by its text, our own contender runs in two processes, each with the benchmark module and the
package of its own checkout. They take turns, so load on the machine hits both alike, and the minimum of each counts, in
CPU time, that of processes they start included.
The table of new over old, the worst row first, is printed and kept in build/against.tsv. NAME:TEXT takes only the rows
whose text has TEXT in it. Answers are not checked against other libraries here: `make bench` does that.

If the benchmarks themselves have changed between the two, copy the newer ones into PATH, so that both do the same work.
"""

from __future__ import annotations

import difflib
import importlib
import json
import math
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
SAVED = ROOT / "build" / "against.tsv"
ROUNDS = 40
"""Turns of each side; the sides swap places from one to the next."""
BATCH = 0.005
"""Seconds that one reading takes at least: shorter work is repeated, unless each call needs an argument of its own."""
TURN = 0.03
"""Seconds of readings in one turn, at least one reading."""


def compare(path: Path, names: list[str]) -> int:
    """Time every row that both checkouts have and print the ratios."""
    lines = []
    for choice in names:
        name, _, text = choice.partition(":")
        new, old = Side(ROOT, name), Side(path, name)
        for work in in_both(new.ask("list"), old.ask("list")):
            if text not in work:
                continue
            problem = new.ask("row", work) or old.ask("row", work)
            if problem:
                print(f"{work}: {problem}", flush=True)
                continue
            best = {new: math.inf, old: math.inf}
            for turn in range(ROUNDS):
                for side in (new, old) if turn % 2 else (old, new):
                    best[side] = min(best[side], side.ask("turn"))
            lines.append((best[new] / best[old], best[new], best[old], f"{name}: {work}"))
            print("{:.3f}\t{:.4g}\t{:.4g}\t{}".format(*lines[-1]), flush=True)
        new.close()
        old.close()
    lines.sort(reverse=True)
    table = ["new/old\tnew s\told s\trow", *("{:.3f}\t{:.4g}\t{:.4g}\t{}".format(*line) for line in lines)]
    SAVED.parent.mkdir(exist_ok=True)
    SAVED.write_text("\n".join(table) + "\n")
    print("\nWorst first:\n" + "\n".join(table))
    return 0


def in_both(new: list[str], old: list[str]) -> list[str]:
    """The texts that both lists have in the same order."""
    blocks = difflib.SequenceMatcher(None, new, old, autojunk=False).get_matching_blocks()
    return [work for block in blocks for work in new[block.a : block.a + block.size]]


class Side:
    """The process that runs one module of one checkout."""

    def __init__(self, root: Path, name: str) -> None:
        environment = {"OMP_NUM_THREADS": "1", **os.environ, "PYTHONPATH": str(root)}
        self._process = subprocess.Popen(
            [sys.executable, "-P", __file__, name],
            cwd=root,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, *command: str) -> Any:
        """Send a command to `serve` and wait for the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def serve(name: str) -> None:
    """Answer commands: `list` gives the texts of the rows, `row TEXT` goes to one, `turn` times it once more."""
    answers, sys.stdout = sys.stdout, sys.stderr  # what the benchmarks print is not an answer
    module = importlib.import_module(f"tests.benchmarks.bench_{name}")
    rows = timed_rows(module)
    for line in sys.stdin:
        command, *texts = json.loads(line)
        answer: Any = None
        if command == "list":
            answer = listed(module)
        elif command == "row":
            row = next(row for row in rows if row.work == texts[0])
            answer = ready(row)
            repeats = 1
        else:
            answer, repeats = best_of_turn(row, repeats)
        print(json.dumps(answer), file=answers, flush=True)


def timed_rows(module: Any) -> Iterator[Any]:
    """The rows that time work of ours, one after the other."""
    return (row for row in module.rows() if "bbn" in getattr(row, "contenders", ()))


def listed(module: Any) -> list[str]:
    """The texts of the rows; those before one that cannot be made, if this checkout lacks what it asks for."""
    works: list[str] = []
    try:
        works.extend(row.work for row in timed_rows(module))
    except Exception as error:
        print(f"{module.__name__} in {Path.cwd()} ends early: {error!r}", file=sys.stderr)
    return works


def ready(row: Any) -> str | None:
    """Warm the row up; what went wrong, if anything did."""
    try:
        best_of_turn(row, 1)
    except Exception as error:
        return f"{type(error).__name__} in {Path.cwd()}: {error}"
    return None


def best_of_turn(row: Any, repeats: int) -> tuple[float, int]:
    """Seconds per call, the least of one turn's readings; and how many calls the next reading needs."""
    work, prepare = row.contenders["bbn"], row.prepare.get("bbn")
    best, spent = math.inf, 0.0
    while spent < TURN:
        arguments = [prepare()] if prepare else []
        start = seconds()
        for _ in range(repeats):
            work(*arguments)
        took = seconds() - start
        best, spent = min(best, took / repeats), spent + took
        if took < BATCH / 2 and not prepare:
            repeats = math.ceil(BATCH * repeats / max(took, 1e-9))
    return best / row.each.get("bbn", row.units), repeats


def seconds() -> float:
    """CPU time so far, of this process and of those it has waited for."""
    return time.process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


if __name__ == "__main__":
    serve(sys.argv[1])
