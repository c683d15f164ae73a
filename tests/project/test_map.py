"""The map of the source: every path that it names exists, every folder is on it, and every picture of it agrees."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import bbn
from tests import sanitize

ROOT = Path(__file__).parents[2]
MAP = "docs/architecture.md"
ROOMS = sorted(path.parent for path in (ROOT / "bbn").glob("*/__init__.py"))
READMES = [str(path.relative_to(ROOT)) for path in sorted((ROOT / "bbn").rglob("README.md"))]
PAGES = [MAP, "CONTRIBUTING.md", *READMES]
SUFFIXES = "py|pyi|pyx|pxd|h|md|toml|json"


def paths_on(page: str) -> list[str]:
    """The files and folders that a page names in code style; NAME stands for one that is to be written."""
    named = re.findall(r"`([\w./-]+)`", (ROOT / page).read_text())
    return [one for one in named if re.search(rf"(?:/|\w\.(?:{SUFFIXES}))$", one) and "NAME" not in one]


@pytest.mark.parametrize("page", PAGES)
def test_every_path_on_the_map_exists(page: str) -> None:
    paths = paths_on(page)
    assert len(paths) >= 5
    for path in paths:
        if "/" in path or (ROOT / path).exists():
            assert (ROOT / path).exists(), path
        else:  # a file of a package that the same line speaks of
            assert any((ROOT / page).parent.rglob(path)), path


def test_every_folder_of_the_package_is_on_the_map() -> None:
    page = (ROOT / MAP).read_text()
    for folder in sorted({path.parent for path in (ROOT / "bbn").rglob("__init__.py")} - {ROOT / "bbn"}):
        assert f"`{folder.relative_to(ROOT).as_posix()}/`" in page, folder


def test_the_picture_of_imports_is_the_contract() -> None:
    """The rungs of the picture are the layers that import-linter checks, in the same order."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    there = {room.name for room in ROOMS}
    checked = [sorted(there & set(re.findall(r"\w+", layer))) for layer in layers]
    picture = re.search(r"```text\n(.*?)```", (ROOT / MAP).read_text(), re.DOTALL)[1]
    rungs = [re.split(r"\s{2,}", line.strip())[0] for line in picture.splitlines()]
    drawn = [sorted(re.findall(r"\w+", rung)) for rung in rungs if re.search(r"\w", rung)]
    assert drawn == checked


def test_every_room_is_a_rung_and_an_attribute() -> None:
    page = re.search(r"```text\n(.*?)```", (ROOT / MAP).read_text(), re.DOTALL)[1]
    for room in ROOMS:
        assert re.search(rf"\b{room.name}\b", page), room.name
        assert room.name in bbn.__all__


def test_the_tests_mirror_the_package() -> None:
    for folder in sorted({path.parent for path in (ROOT / "bbn").rglob("__init__.py")} - {ROOT / "bbn"}):
        inside = folder.relative_to(ROOT / "bbn")
        if inside.parts[0] == "kernels":  # both twins are tested together
            inside = Path("kernels")
        # a room within a room may be tested beside its neighbours
        tested = [inside, inside.parent] if len(inside.parts) > 1 else [inside]
        assert any(any((ROOT / "tests" / one).glob("**/test_*.py")) for one in tested), inside
    whole = {ROOT / "tests" / "project", ROOT / "tests" / "faults"}  # what concerns all rooms
    for folder in {path.parent for path in (ROOT / "tests").rglob("test_*.py")} - whole:
        assert (ROOT / "bbn" / folder.relative_to(ROOT / "tests")).is_dir(), folder


def test_every_test_of_a_kernel_runs_under_the_sanitizers() -> None:
    there = {f"kernels/{path.stem}" for path in (ROOT / "tests" / "kernels").glob("test_*.py")}
    assert there - {*sanitize.TESTS} == {*sanitize.NOT_RUN}


def test_the_tests_that_run_under_the_sanitizers_exist() -> None:
    assert [name for name in sanitize.TESTS if not (ROOT / "tests" / f"{name}.py").exists()] == []
    assert [name for name in sanitize.COPIED if not (ROOT / name).exists()] == []
