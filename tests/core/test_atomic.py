"""Writing: whatever happens, a path holds the old file or the new one, whole, and nothing else is left beside it."""

import os
import signal
import stat
import subprocess
import sys
import threading

import pytest

import bbn
from bbn.cli import main
from bbn.core.atomic import WRITERS, replacing, replacing_folder, write_bytes

NET = bbn.example("asia")
OLD = b"the old one"


def climb(path):
    bbn.fit_em(NET, NET.sample(50, seed=1, missing=0.2), checkpoint=path, max_iter=2)


WRITES = {
    "net.yaml": NET.save,
    "net.bif.gz": NET.save,
    "plot.svg": lambda path: NET.plot().save(path),
    "plot.png": lambda path: NET.plot().save(path),
    "rows.csv": lambda path: NET.sample(20, seed=1, to=path),
    "rows.csv.gz": lambda path: NET.sample(20, seed=1, to=path),
    "rows.parquet": lambda path: NET.sample(20, seed=1, to=path),
    "climb.npz": climb,
    "sampled.csv": lambda path: main(["sample", "asia", "-n", "5", "--seed", "1", "-o", str(path)]),
    "sampled.tsv": lambda path: main(["sample", "asia", "-n", "5", "-o", str(path), "--to", "parquet"]),
    "converted.json": lambda path: main(["convert", "asia", str(path)]),
    "drawn.pdf": lambda path: main(["plot", "asia", "-o", str(path)]),
    "predicted.txt": lambda path: main(
        [
            "predict",
            "asia",
            str(path.parent / "in" / "rows.csv"),
            "--target",
            "lung",
            "-o",
            str(path),
            "--to",
            "csv",
        ]
    ),
}


@pytest.fixture(params=WRITES)
def written(request, tmp_path):
    """A path, and what writes it."""
    (tmp_path / "in").mkdir()
    NET.sample(10, seed=1).drop(columns="lung").to_csv(tmp_path / "in" / "rows.csv", index=False)
    return tmp_path / request.param, WRITES[request.param]


def beside(path):
    return sorted({entry.name for entry in path.parent.iterdir()} - {"in", path.name})


def test_content_is_on_the_disk_before_it_takes_the_place(written, monkeypatch):
    path, write = written
    synced, put = set(), []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr("os.fsync", lambda handle: (synced.add(os.fstat(handle).st_ino), fsync(handle)))

    def recorded(source, target):
        put.append((os.stat(source).st_ino in synced, os.fspath(target)))
        replace(source, target)

    monkeypatch.setattr("os.replace", recorded)
    write(path)
    assert (True, str(path)) in put
    assert os.stat(path.parent).st_ino in synced  # the new name is on the disk too
    assert not beside(path)


def test_a_failure_leaves_the_old_file(written, monkeypatch, capsys):
    path, write = written
    if path.suffix != ".npz":  # a checkpoint is read first
        path.write_bytes(OLD)

    def fail(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.replace", fail)
    try:
        failed = bool(write(path))
    except PermissionError:
        failed = True
    assert failed
    assert not path.exists() if path.suffix == ".npz" else path.read_bytes() == OLD
    assert not beside(path)


def test_a_link_stays_a_link_and_permissions_stay(written, tmp_path):
    path, write = written
    (tmp_path / "elsewhere").mkdir()
    real = tmp_path / "elsewhere" / "real"
    if path.suffix == ".npz":
        write(real)
    else:
        real.write_bytes(OLD)
    real.chmod(0o640)
    path.symlink_to(real)
    write(path)
    assert path.is_symlink()
    assert real.read_bytes() not in (OLD, b"")
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert os.listdir(tmp_path / "elsewhere") == ["real"]


def test_a_new_file_has_the_permissions_that_the_umask_leaves(tmp_path):
    before = os.umask(0o027)
    try:
        write_bytes(tmp_path / "file", b"new")
        with replacing_folder(tmp_path / "folder"):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o750


KILLED = """
import os, signal, sys
from bbn.core.atomic import replacing, replacing_folder
with (replacing if sys.argv[2] == "file" else replacing_folder)(sys.argv[1]) as made:
    if sys.argv[2] == "file":
        made.write(b"half of it")
        made.flush()
    else:
        (made / "part").write_text("half of it")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_killed_process_left_is_removed_by_the_next_write(kind, tmp_path):
    target = tmp_path / "target"
    for _ in range(2):  # what the first left is in the way of neither
        killed = subprocess.run([sys.executable, "-c", KILLED, str(target), kind], check=False)
        assert killed.returncode == -signal.SIGKILL
        assert not target.exists()
        assert len(beside(target)) == 1
    if kind == "file":
        write_bytes(target, b"new")
        assert target.read_bytes() == b"new"
    else:
        with replacing_folder(target) as folder:
            (folder / "part").write_text("new")
        assert (target / "part").read_text() == "new"
    assert not beside(target)


def test_several_killed_at_once_are_all_removed(tmp_path):
    target = tmp_path / "target"
    with replacing(target) as first:
        first.write(b"first")
        subprocess.run([sys.executable, "-c", KILLED, str(target), "file"], check=False)
        assert len(beside(target)) == 2
    write_bytes(target, b"new")
    assert not beside(target)


def test_the_part_of_a_writer_at_work_is_left_alone(tmp_path):
    target = tmp_path / "target"
    with replacing(target) as slow:
        slow.write(b"slow")
        write_bytes(target, b"quick")
        assert target.read_bytes() == b"quick"
    assert target.read_bytes() == b"slow"
    assert not beside(target)


def test_many_threads_write_one_file(tmp_path):
    target = tmp_path / "target"
    texts = [bytes([65 + k]) * 100_000 for k in range(8)]

    def work(text):
        for _ in range(20):
            write_bytes(target, text)
            assert target.read_bytes() in texts

    failures = []
    threads = [threading.Thread(target=lambda t=t: _noted(work, t, failures)) for t in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert target.read_bytes() in texts
    assert not beside(target)


def _noted(work, text, failures):
    try:
        work(text)
    except BaseException as error:
        failures.append(error)


def test_a_link_in_the_place_of_the_part_is_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_bytes(OLD)
    (tmp_path / ".target.part").symlink_to(victim)
    write_bytes(tmp_path / "target", b"new")
    assert victim.read_bytes() == OLD
    assert (tmp_path / "target").read_bytes() == b"new"


def test_the_longest_name_that_a_file_system_takes(tmp_path):
    path = tmp_path / ("é" * 120 + ".yaml")
    NET.save(path)
    assert bbn.load(path) == NET
    assert not beside(path)


def test_too_many_writers_are_an_error(tmp_path):
    for number in range(WRITERS):
        (tmp_path / (f".target.{number}.part" if number else ".target.part")).symlink_to("nowhere")
    with pytest.raises(FileExistsError, match="others are writing"):
        write_bytes(tmp_path / "target", b"new")


@pytest.mark.parametrize("name", ["nowhere/net.yaml", "net.yaml/net.yaml"])
def test_an_error_names_the_path_that_was_given(name, tmp_path):
    (tmp_path / "net.yaml").write_bytes(OLD)
    with pytest.raises(OSError, match=name) as caught:
        NET.save(tmp_path / name)
    assert caught.value.filename == str(tmp_path / name)


def test_a_pipe_is_written_to_as_it_is(tmp_path):
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    NET.save(pipe)
    reader.join()
    assert bbn.io.loads(read[0]) == NET
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_folder_is_not_a_file(tmp_path):
    with pytest.raises(IsADirectoryError):
        write_bytes(tmp_path, b"new")


@pytest.mark.parametrize("target", ["nowhere/net.bif", "file/net.bif"])
def test_a_path_that_cannot_be_opened_is_named_alone(tmp_path, target):
    (tmp_path / "file").write_bytes(OLD)
    path = tmp_path / target
    with pytest.raises(OSError, match="directory") as caught:
        NET.save(path)
    assert str(caught.value).endswith(f": {str(path)!r}")
    assert (caught.value.filename, caught.value.filename2) == (str(path), None)


@pytest.mark.skipif(sys.platform == "win32", reason="limits of files are those of Unix")
@pytest.mark.parametrize("name", ["net.bif", "rows.csv"])
def test_a_full_disk_names_the_file(tmp_path, name):
    code = f"""
import resource, signal, bbn
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
net = bbn.example("asia")
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    net.save({name!r}) if {name!r} == "net.bif" else net.sample(500, seed=1, to={name!r})
except OSError as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip().endswith(f"too large: {name!r}"), done
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_device_that_is_full_is_named():
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        NET.save("/dev/full", format="bif")
