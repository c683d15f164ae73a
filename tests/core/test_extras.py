"""Where a library that only some uses need is missing, the error names it and the line that installs it."""

from __future__ import annotations

import re
import sys

import pytest

import bbn
from bbn.cli import main


@pytest.mark.parametrize(
    ("missing", "call", "install"),
    [
        ("matplotlib", lambda folder: bbn.example("asia").plot().save(folder / "a.png"), "'bbn[plot]'"),
        ("pgmpy", lambda folder: bbn.to_pgmpy(bbn.example("asia")), "pgmpy"),
        ("pyagrum", lambda folder: bbn.to_pyagrum(bbn.example("asia")), "pyagrum"),
        ("anywidget", lambda folder: bbn.example("asia").explore().widget, "'bbn[notebook]'"),
    ],
)
def test_a_missing_library_comes_with_the_line_that_installs_it(
    missing, call, install, monkeypatch, tmp_path
):
    for name in [name for name in sys.modules if name == missing or name.startswith(f"{missing}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "bbn.view.page.widget", raising=False)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(
        ModuleNotFoundError,
        match=re.escape(f"needs {missing}, which is not installed: pip install {install}"),
    ):
        call(tmp_path)


def test_the_command_line_says_it_in_one_line(monkeypatch, tmp_path, capsys):
    monkeypatch.delitem(sys.modules, "matplotlib.figure", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["plot", "asia", "-o", str(tmp_path / "a.png")]) == 1
    assert capsys.readouterr().err == (
        "bbn: a .png needs matplotlib, which is not installed: pip install 'bbn[plot]', or save a .svg\n"
    )
