"""`make bench`: run the benchmarks and write docs/benchmarks.md.

    python -m tests.benchmarks [NAME …]
    python -m tests.benchmarks --against PATH [NAME | NAME:TEXT …]

With names (of `bench_NAME.py`), only those run; the figures of the others are kept. Each module runs in a process
of its own. `--against` compares with another checkout instead and writes no page (see `against.py`).
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
from typing import Any

from tests.benchmarks.against import compare
from tests.benchmarks.harness import Figure, measure

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PAGE = HERE.parent.parent / "docs" / "benchmarks.md"

HEAD = """# Benchmarks

Measured by `make bench`: the contenders do the same work in one process, their answers are checked against each
other first, then they run in turn and the minimum of the rounds counts. Short work is done several times in its turn.
One thread unless a row says otherwise. Ratios are theirs over ours: above 1, bbn is faster. Times hold for the machine
named; the ratios travel better.

Other libraries are asked in the way that is fastest for them. The ways that their documentation offers run against each
other first; the quickest counts, and the last column names it.
"""


def main(names: list[str]) -> int:
    """Run the named modules, or all, and write the page."""
    path = None
    if names[:1] == ["--against"]:
        path, names = Path(names[1]).resolve(), names[2:]
    modules = benchmarks()
    unknown = {name.partition(":")[0] for name in names} - set(modules)
    if unknown:
        print(f"no benchmark {', '.join(sorted(unknown))}; there are: {', '.join(modules)}", file=sys.stderr)
        return 2
    if path is not None:
        return compare(path, names or modules)
    status = 0
    for name in names or modules:
        environment = {"OMP_NUM_THREADS": "1", **os.environ}
        command = [sys.executable, "-m", "tests.benchmarks", "--one", name]
        status |= subprocess.run(command, env=environment, check=False).returncode
    write_page(modules)
    return status


def benchmarks() -> list[str]:
    """The names of the modules of benchmarks."""
    return sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))


def run_one(name: str) -> None:
    """Run one module and keep its results."""
    module = importlib.import_module(f"tests.benchmarks.bench_{name}")
    lines = []
    for row in module.rows():
        if isinstance(row, Figure):
            lines.append({"work": row.work, "value": row.value, "target": row.target})
            print(f"{row.work}: {row.value}", flush=True)
            continue
        seconds, idioms = measure(row)
        against = row.against or next((other for other in seconds if other != "bbn"), "")
        line = {
            "work": row.work,
            "seconds": seconds,
            "target": row.target,
            "against": against,
            "idioms": idioms,
        }
        lines.append(line)
        ratios = {other: f"{seconds[other] / seconds['bbn']:.3g}x" for other in seconds if other != "bbn"}
        print(f"{row.work}: bbn {show(seconds['bbn'])}, {ratios}, target {row.target}, {idioms}", flush=True)
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
    PAGE.write_text(page(modules))


def page(modules: list[str]) -> str:
    """The text of docs/benchmarks.md, made of the results there are."""
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
            parts.append(timed_table(timed))
        figures = [row for row in result["rows"] if "value" in row]
        if figures:
            table = ["| what | measured | target |", "|---|---|---|"]
            table += [f"| {row['work']} | {row['value']} | {row['target']} |" for row in figures]
            parts.append("\n".join(table) + "\n")
        parts.append(f"Measured {result['date']} on {result['machine']}; {result['versions']}.\n")
    return "\n".join(parts)


def timed_table(rows: list[dict[str, Any]]) -> str:
    """The rows that compare contenders, as a table; the last column says how other libraries were asked."""
    others = list(dict.fromkeys(other for row in rows for other in row["seconds"] if other != "bbn"))
    idiomatic = any(row.get("idioms") for row in rows)
    head = ["work", "bbn", *(f"{other}, ratio" for other in others), "target", *(["idiom"] * idiomatic)]
    table = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows:
        ours = row["seconds"]["bbn"]
        cells = [row["work"], show(ours)]
        for other in others:
            theirs = row["seconds"].get(other)
            cells.append(f"{show(theirs)}, {theirs / ours:.3g}x" if theirs is not None else "")
        cells.append(f"{row['target']:.3g}x {row['against']}" if row["target"] else "")
        if idiomatic:
            cells.append("; ".join(f"{name}: {idiom}" for name, idiom in row.get("idioms", {}).items()))
        table.append("| " + " | ".join(cells) + " |")
    return "\n".join(table) + "\n"


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
