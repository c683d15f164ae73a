"""A folder in which nothing may be written: reading works as elsewhere, writing names the file, nothing is changed."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import bbn
from bbn.cli import main
from tests.faults.conftest import mount
from tests.support.writes import HOLES, NET, WRITES, content

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "geteuid"), reason="permissions of folders are those of Unix"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with a network, rows and a checkpoint in it, that cannot be written to by anyone."""
    path = tmp_path / "folder"
    path.mkdir()
    root = os.geteuid() == 0  # whom permissions do not bind, but a disk that is mounted so does
    if root:
        mount("-t", "tmpfs", "-o", "size=8m", "tmpfs", str(path))
    try:
        NET.save(path / "net.yaml")
        HOLES.to_csv(path / "holes.csv", index=False)
        NET.sample(300, seed=1, to=path / "rows.parquet")
        bbn.fit_em(NET, HOLES, max_iter=2, checkpoint=path / "climb", n_jobs=1)
        if root:
            mount("-o", "remount,ro", str(path))
        else:
            path.chmod(0o555)
        yield path
    finally:
        if root:
            subprocess.run(["umount", "--lazy", str(path)], check=True)
        else:
            path.chmod(0o755)


def test_reading_from_it_works(folder: Path) -> None:
    before = content(folder)
    net = bbn.load(folder / "net.yaml")
    assert net == NET
    rows = bbn.open_data(folder / "rows.parquet", variables=net.variables)
    assert rows.n_rows == 300
    assert bbn.fit(net, rows, bbn.BDeu(1)) == bbn.fit(net, NET.sample(300, seed=1), bbn.BDeu(1))
    assert len(bbn.describe(folder / "holes.csv").columns) == len(NET.names)
    assert main(["query", str(folder / "net.yaml"), "HR"]) in (0, None)
    assert content(folder) == before


@pytest.mark.parametrize("kind", [*WRITES, "net.yaml"])
def test_writing_to_it_names_the_file(kind: str, folder: Path) -> None:
    before = content(folder)
    path = folder / kind
    with pytest.raises(OSError, match=kind) as caught:
        WRITES[kind](path)
    assert caught.value.errno in (errno.EROFS, errno.EACCES)
    assert caught.value.filename == str(path)
    assert content(folder) == before


def test_a_climb_without_a_place_for_its_checkpoint_says_so_and_ends_all_the_same(folder: Path) -> None:
    before = content(folder)
    options = {"max_iter": 6, "tol": 0.0, "n_jobs": 1}
    whole = bbn.fit_em(NET, HOLES, **options)
    with pytest.warns(bbn.CheckpointWarning, match="Read-only file system|Permission denied"):
        assert bbn.fit_em(NET, HOLES, checkpoint=folder / "climb", **options) == whole
    assert content(folder) == before
