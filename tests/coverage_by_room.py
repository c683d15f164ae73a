"""The share of lines and branches that the tests ran, by room (the end of `make coverage`)."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path


def main() -> int:
    """Print the table of the last run under coverage."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "coverage.json")
        subprocess.run([sys.executable, "-m", "coverage", "json", "-q", "-o", file], check=True)
        files = json.loads(file.read_text())["files"]
    there: Counter[str] = Counter()
    run: Counter[str] = Counter()
    for path, found in files.items():
        parts = Path(path).parts
        for room in (parts[1] if len(parts) > 2 else "bbn", "all"):
            summary = found["summary"]
            there[room] += summary["num_statements"] + summary["num_branches"]
            run[room] += summary["covered_lines"] + summary["covered_branches"]
    for room in [*sorted(there.keys() - {"all"}), "all"]:
        print(f"{room:14}{there[room]:8}{run[room] / there[room]:9.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
