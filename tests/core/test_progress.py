"""Progress is shown where someone looks: at a terminal or in a notebook, or where it is asked for."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import tqdm.auto

import bbn

ROWS = {"A": ["x", None, "y"], "B": [0, 1, None]}


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, **options: bool) -> list[float]:
    """The seconds after which each bar of an EM is shown on a stream; none if there is no bar."""
    delays: list[float] = []
    real = tqdm.auto.tqdm

    def bar(**given: Any) -> Any:
        delays.append(given["delay"])
        return real(**given)

    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stream)
        patch.setattr(tqdm.auto, "tqdm", bar)
        bbn.fit_em([("A", "B")], ROWS, seed=0, **options)
    return delays


def test_at_a_terminal_or_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert set(shown(monkeypatch, Terminal())) == {1.0}  # what ends within a second needs none
    assert shown(monkeypatch, Terminal(), progress=False) == []
    assert shown(monkeypatch, io.StringIO()) == []
    assert set(shown(monkeypatch, io.StringIO(), progress=True)) == {0.0}


@pytest.mark.parametrize(
    ("shell", "looks"), [(None, False), (SimpleNamespace(), False), (SimpleNamespace(kernel=1), True)]
)
def test_in_a_notebook_which_is_ipython_with_a_kernel(
    shell: object, looks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))  # type: ignore[arg-type]
    assert bool(shown(monkeypatch, io.StringIO())) is looks
