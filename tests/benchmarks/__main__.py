"""`make bench`: run the benchmarks and write docs/benchmarks.md.

    python -m tests.benchmarks [NAME …]

With names (of `bench_NAME.py`), only those run; the figures of the others are kept. Each module runs in a process
of its own.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import subprocess
import sys
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tests.benchmarks.harness import Figure, measure

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PAGE = HERE.parent.parent / "docs" / "benchmarks.md"

HEAD = """# Benchmarks

Measured by `make bench`: the contenders do the same work in one process, their answers are checked against each
other first, then they run in turn and the minimum of the rounds counts. One thread unless a row says otherwise.
Ratios are theirs over ours: above 1, bbn is faster. Times hold for the machine named; the ratios travel better.
"""


def main(names: list[str]) -> int:
    """Run the named modules, or all, and write the page."""
    modules = sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))
    unknown = set(names) - set(modules)
    if unknown:
        print(f"no benchmark {', '.join(sorted(unknown))}; there are: {', '.join(modules)}", file=sys.stderr)
        return 2
    status = 0
    for name in names or modules:
        environment = {"OMP_NUM_THREADS": "1", **os.environ}
        command = [sys.executable, "-m", "tests.benchmarks", "--one", name]
        status |= subprocess.run(command, env=environment, check=False).returncode
    write_page(modules)
    return status


def run_one(name: str) -> None:
    """Run one module and keep its results."""
    module = importlib.import_module(f"tests.benchmarks.bench_{name}")
    lines = []
    for row in module.rows():
        if isinstance(row, Figure):
            lines.append({"work": row.work, "value": row.value, "target": row.target})
            print(f"{row.work}: {row.value}", flush=True)
            continue
        seconds = measure(row)
        against = row.against or next((other for other in seconds if other != "bbn"), "")
        line = {"work": row.work, "seconds": seconds, "target": row.target, "against": against}
        lines.append(line)
        ratios = {other: f"{seconds[other] / seconds['bbn']:.3g}x" for other in seconds if other != "bbn"}
        print(f"{row.work}: bbn {show(seconds['bbn'])}, {ratios}, target {row.target}", flush=True)
    RESULTS.mkdir(exist_ok=True)
    result = {
        "title": module.TITLE,
        "notes": getattr(module, "NOTES", ""),
        "machine": machine(),
        "versions": versions(),
        "date": date.today().isoformat(),
        "rows": lines,
    }
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")


def write_page(modules: list[str]) -> None:
    """Write docs/benchmarks.md from the results there are."""
    parts = [HEAD]
    for name in modules:
        path = RESULTS / f"{name}.json"
        if not path.exists():
            continue
        result = json.loads(path.read_text())
        parts.append(f"## {result['title']}\n")
        if result["notes"]:
            parts.append(result["notes"].strip() + "\n")
        timed = [row for row in result["rows"] if "seconds" in row]
        if timed:
            others = list(dict.fromkeys(other for row in timed for other in row["seconds"] if other != "bbn"))
            head = ["work", "bbn", *(f"{other}, ratio" for other in others), "target"]
            table = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
            for row in timed:
                ours = row["seconds"]["bbn"]
                cells = [row["work"], show(ours)]
                for other in others:
                    theirs = row["seconds"].get(other)
                    cells.append(f"{show(theirs)}, {theirs / ours:.3g}x" if theirs is not None else "")
                cells.append(f"{row['target']:g}x {row['against']}" if row["target"] else "")
                table.append("| " + " | ".join(cells) + " |")
            parts.append("\n".join(table) + "\n")
        figures = [row for row in result["rows"] if "value" in row]
        if figures:
            table = ["| what | measured | target |", "|---|---|---|"]
            table += [f"| {row['work']} | {row['value']} | {row['target']} |" for row in figures]
            parts.append("\n".join(table) + "\n")
        parts.append(f"Measured {result['date']} on {result['machine']}; {result['versions']}.\n")
    PAGE.write_text("\n".join(parts))


def show(seconds: float) -> str:
    """A time in words."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def machine() -> str:
    """The processor, its cores and the memory."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line
        ]
        model = names[0] if names else model
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return f"{model}, {os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()}"


def versions() -> str:
    """The versions of what was compared."""
    found = [f"Python {platform.python_version()}"]
    for package in ("bbn", "numpy", "pyagrum", "pgmpy", "pandas", "scikit-learn"):
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        run_one(sys.argv[2])
    else:
        sys.exit(main(sys.argv[1:]))
