"""A disk that is full: the error names the file and says why, the old file is whole, and no part stays behind."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest

import bbn
from bbn.cli import main
from tests.support.writes import HOLES, NET, WRITES, content

pytestmark = pytest.mark.slow


def fill(disk: Path, free: int) -> Path:
    """A file that leaves so many bytes free."""
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(shutil.disk_usage(disk).free // 4096 * 4096 - free))
    return ballast


def written(kind: str, path: Path) -> object:
    """Write what does not fit in 4 kB, however it is packed; of rows what does not fit in 64 kB."""
    if kind.startswith("net"):
        return bbn.example("hailfinder").save(path)
    if kind.startswith("rows"):
        return NET.sample(60_000, seed=1, to=path, **({} if "." in kind else {"chunks": 2000}))
    return WRITES[kind](path)


@pytest.mark.parametrize("free", [0, 4096])
@pytest.mark.parametrize("kind", WRITES)
def test_a_full_disk_is_named_and_leaves_the_old_file(kind: str, free: int, small_disk: Path) -> None:
    path = small_disk / kind
    if "." in kind:
        path.write_bytes(b"the old one")
    ballast = fill(small_disk, free)
    with pytest.raises(OSError, match="No space left on device") as caught:
        written(kind, path)
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(path)
    left = {p.name for p in small_disk.iterdir()} - {"ballast"}
    assert left == ({kind} if "." in kind else set())
    assert "." not in kind or path.read_bytes() == b"the old one"
    ballast.unlink()
    net = bbn.example("asia")  # whose file fits
    if kind.startswith("net"):
        net.save(path)
        assert bbn.load(path) == net
    elif kind.startswith("rows"):
        net.sample(100, seed=1, to=path)
        assert content(path)
        assert {p.name for p in small_disk.iterdir()} == {kind}


def test_a_checkpoint_that_does_not_fit_loses_neither_the_run_nor_the_last_one(small_disk: Path) -> None:
    path = small_disk / "climb"
    options = {"seed": 3, "tol": 0.0, "n_jobs": 1}
    whole = bbn.fit_em(NET.graph, HOLES, max_iter=8, **options)
    bbn.fit_em(NET.graph, HOLES, max_iter=3, checkpoint=path, **options)
    old = path.read_bytes()
    ballast = fill(small_disk, 0)
    with pytest.warns(bbn.CheckpointWarning, match="No space left on device") as caught:
        result = bbn.fit_em(NET.graph, HOLES, max_iter=8, checkpoint=path, **options)
    assert len(caught) == 1
    assert result == whole
    assert path.read_bytes() == old
    ballast.unlink()
    assert bbn.fit_em(NET.graph, HOLES, max_iter=8, checkpoint=path, **options) == whole
    assert {p.name for p in small_disk.iterdir()} == {"climb"}


@pytest.mark.parametrize(
    "command",
    [
        ["sample", "alarm", "-n", "60000", "--seed", "1", "-o", "{disk}/rows.csv"],
        ["convert", "alarm", "{disk}/rows.csv", "--to", "xdsl"],
        ["plot", "alarm", "-o", "{disk}/plot.svg"],
    ],
    ids=lambda command: command[0],
)
def test_a_command_says_so_in_one_line(
    command: list[str], small_disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(small_disk, 0)
    assert main([word.format(disk=small_disk) for word in command]) not in (0, None)
    told = capsys.readouterr().err.strip()
    assert "No space left on device" in told
    assert str(small_disk) in told
    assert "Traceback" not in told
    assert {p.name for p in small_disk.iterdir()} == {"ballast"}
