"""Every notebook runs from top to bottom; every picture in one carries words."""

from __future__ import annotations

from pathlib import Path

import pytest

nbclient = pytest.importorskip("nbclient", reason="nbclient runs the notebooks")
nbformat = pytest.importorskip("nbformat", reason="nbformat reads the notebooks")

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


def test_notebooks_are_numbered_from_one() -> None:
    assert [path.stem[:3] for path in NOTEBOOKS] == [f"{i:02}_" for i in range(1, len(NOTEBOOKS) + 1)]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path: Path) -> None:
    from tests.run_notebooks import run

    notebook = run(path)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code
    assert all(cell.execution_count for cell in code)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_pictures_say_what_they_show(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    shown = [output for output in outputs if {"image/png", "image/svg+xml"} & set(output.get("data", {}))]
    assert shown
    for output in shown:
        if "image/svg+xml" in output.data:
            assert "<title>" in output.data["image/svg+xml"]
        else:
            assert len(output.metadata["image/png"]["alt"]) > 20


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_state_of_progress_bars_is_not_kept(path: Path) -> None:
    assert "widgets" not in nbformat.read(path, as_version=4).metadata


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_output_shows_a_fault_or_a_place_of_this_machine(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            assert output.output_type != "error"
            assert output.get("name") != "stderr", output
            assert "site-packages" not in str(output)
