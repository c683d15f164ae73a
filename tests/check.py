"""The quick check of daily work: lint what changed, and run the tests that mirror it.

    python -m tests.check [FILE …]
    (or `make check`, `make check FILES="bbn/io/registry.py"`; without files, all that differs from HEAD)

The test of `bbn/io/formats/bif.py` is `tests/io/test_bif*.py` where there is one, else the tests of its folder or room.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def main(names: list[str]) -> int:
    """Lint and test; the status is that of the first check that failed."""
    paths = [Path(name) for name in names or changed()]
    sources = [path.as_posix() for path in paths if path.suffix in {".py", ".pyi"} and (ROOT / path).exists()]
    tests = sorted({test.relative_to(ROOT).as_posix() for path in paths for test in mirrored(path)})
    commands = (
        [["ruff", "check", *sources], ["ruff", "format", "--check", *sources], ["mypy"]] if sources else []
    )
    if tests:
        commands.append(["pytest", "-q", "-x", "-n", "auto", "-m", "not slow", *tests])
    for command in commands:
        print("$", " ".join(command), flush=True)
        status = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=False).returncode
        if status:
            return status
    return 0


def changed() -> list[str]:
    """What differs from HEAD, new files too."""
    listed = ["git", "ls-files", "--others", "--exclude-standard"], ["git", "diff", "--name-only", "HEAD"]
    told = [
        subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for command in listed
    ]
    return [name for text in told for name in text.splitlines()]


def mirrored(path: Path) -> list[Path]:
    """The tests of a file: those of its name, else of its folder, else of its room."""
    if path.parts[0] == "tests":
        return [ROOT / path] if path.name.startswith("test_") and (ROOT / path).exists() else []
    if path.parts[0] != "bbn" or len(path.parts) < 3:
        return []
    room = ROOT / "tests" / path.parts[1]
    named = sorted(room.rglob(f"test_{path.stem}*.py"))
    folder = ROOT / "tests" / Path(*path.parts[1:-1])
    return named or [folder if folder.exists() else room]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
