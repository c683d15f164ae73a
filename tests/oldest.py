"""`make oldest`: the smoke suite on the oldest version of every dependency that pyproject.toml allows.

    python -m tests.oldest [PYTHON …]

For each interpreter from `VERSIONS` that is found (or each that is named), a wheel is built and put into a fresh
environment under build/oldest, together with the lowest version of every dependency that allows it and comes as a wheel
for that Python. The suite then runs in a folder of its own, so that it meets the wheel and not the source. `uv`, which
finds the lowest versions, is installed from PyPI beside the environments.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
PLACE = ROOT / "build" / "oldest"
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
EXTRAS = ("plot", "sklearn", "parquet", "dask")
TESTING = ("pytest>=8", "hypothesis>=6.100", "polars>=1")
SUITE = (
    "project/test_smoke",
    "model/test_variable",
    "model/test_cpt",
    "model/test_factor",
    "model/test_network",
    "view/test_pictures",
    "data/test_coding",
    "data/test_numeric_columns",
    "data/test_discretize",
    "inference/sampling/test_sample",
)
"""The files of tests that are run."""


def main(names: list[str]) -> int:
    """Run the suite with each interpreter; 1 if it fails with any."""
    found = {name: name for name in names} or {version: interpreter(version) for version in VERSIONS}
    uv = install_uv()
    outcomes = {}
    for version, python in found.items():
        outcomes[version] = (
            "not found here" if python is None else run(uv, python, PLACE / Path(version).name)
        )
    for version, outcome in outcomes.items():
        print(f"Python {version}: {outcome}")
    tried = [outcome for outcome in outcomes.values() if outcome != "not found here"]
    return int(not tried or any(outcome != "passed" for outcome in tried))


def interpreter(version: str) -> str | None:
    """The path of a Python of this version: on the PATH, from pyenv, or one that uv knows."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates = [shutil.which(f"python{version}"), *sorted(root.glob(f"versions/{version}.*/bin/python"))]
    for path in filter(None, candidates):
        asked = subprocess.run(
            [path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True
        )
        if asked.stdout.strip() == version:  # a shim of pyenv may lead nowhere
            return str(path)
    return None


def install_uv() -> str:
    """The path of uv, in an environment of its own."""
    found = PLACE / "uv" / "bin" / "uv"
    if not found.exists():
        venv.create(PLACE / "uv", with_pip=True, clear=True)
        subprocess.run([PLACE / "uv" / "bin" / "python", "-m", "pip", "install", "--quiet", "uv"], check=True)
    return str(found)


def run(uv: str, python: str, folder: Path) -> str:
    """Build, install and test with one interpreter; what came of it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    own = folder / "venv" / "bin" / "python"
    lowest = ["--resolution", "lowest-direct", "--only-binary", ":all:"]
    extras = [word for extra in EXTRAS for word in ("--extra", extra)]
    steps = [
        [uv, "build", "--quiet", "--wheel", "--python", python, "--out-dir", folder, ROOT],
        [uv, "venv", "--quiet", "--python", python, folder / "venv"],
        [
            uv,
            "pip",
            "install",
            "--quiet",
            "--python",
            own,
            *lowest,
            "-r",
            ROOT / "pyproject.toml",
            *extras,
            *TESTING,
        ],
    ]
    for step in steps:
        if subprocess.run(step).returncode:
            return f"failed: {' '.join(map(str, step[:3]))}"
    wheel = next(folder.glob("*.whl"))
    subprocess.run([uv, "pip", "install", "--quiet", "--python", own, "--no-deps", wheel], check=True)
    subprocess.run([uv, "pip", "list", "--python", own], check=True)
    for name in ("tests", "models"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    command = [
        own,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-m",
        "not slow",
        *(f"tests/{name}.py" for name in SUITE),
    ]
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return "passed" if not subprocess.run(command, cwd=folder, env=clean).returncode else "failed: the suite"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
