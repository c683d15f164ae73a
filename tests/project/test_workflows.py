"""The workflow files of a forge: well formed, pinned, without rights that they do not need; what they run is here."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def steps(path: Path) -> list[dict[str, Any]]:
    """Every step of every job."""
    jobs = yaml.safe_load(path.read_text())["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


def test_they_follow_the_forges_schema() -> None:
    pytest.importorskip("check_jsonschema")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]
    done = subprocess.run([*command, *WORKFLOWS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert len(WORKFLOWS) >= 3


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_what_others_wrote_is_pinned_and_gets_no_credentials(path: Path) -> None:
    for line in path.read_text().splitlines():
        if "uses:" in line:  # a tag may be moved; the comment says which version the commit is
            assert re.search(r"uses: [\w.-]+/[\w.-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+$", line), line
    for step in steps(path):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False
    text = yaml.safe_load(path.read_text())
    assert text["permissions"]["contents"] == "read"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_what_they_run_is_there(path: Path) -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    ran = [line for step in steps(path) for line in step.get("run", "").splitlines()]
    for line in ran:
        assert "${{" not in line  # what others named could then be run
        words = line.split()
        if words[0] == "make":
            assert words[1] in targets, line
        elif words[0] == "sh":
            assert (ROOT / words[1]).exists(), line
        else:
            assert words[:2] == ["python", "-m"], line


def test_every_version_of_python_that_is_declared_is_tested() -> None:
    tested = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())["jobs"]["platforms"][
        "strategy"
    ]
    assert tested["matrix"]["python"] == ["3.11", "3.12", "3.13", "3.14"]
    assert 'requires-python = ">=3.11"' in (ROOT / "pyproject.toml").read_text()
