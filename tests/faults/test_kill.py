"""kill -9 at any moment: the old file or the new one is there, whole, and the next write removes what was left over."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import bbn
from tests.support.writes import HOLES, NET, WRITES

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL"),
]
ROOT = Path(__file__).parents[2]

KILLER = """
import os, random, shutil, signal, sys, time
from pathlib import Path
from tests.support.writes import WRITES, content

kind, folder, kills = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
write, path, rng = WRITES[kind], folder / kind, random.Random(kind)
part = folder / f".{kind}.part"
write(path)  # imports what it needs
old, left = content(path), 0
for kill in range(kills):
    if path.is_dir():
        shutil.rmtree(path)  # a folder is never replaced, only made
    pid = os.fork()
    if not pid:
        while True:
            write(path)
            if path.is_dir():
                time.sleep(60)
    for moment in range(rng.randrange(1, 4) if "." in kind else 1):  # the part of the first, second or third write
        while not part.exists():
            pass
        while moment and part.exists():
            pass
    if rng.random() < 0.7:
        time.sleep(rng.expovariate(1000))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    found = content(path) if path.exists() else None
    assert found == old or (found is None and "." not in kind), (kill, found and len(found))
    left += part.exists()
if path.is_dir():
    shutil.rmtree(path)
write(path)
assert content(path) == old
assert [p.name for p in folder.iterdir()] == [kind], list(folder.iterdir())
print(left)
"""


@pytest.mark.parametrize("kind", WRITES)
def test_a_killed_writer_leaves_the_old_file_or_the_new_one(kind: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLER, kind, str(tmp_path), "24"],
        cwd=ROOT, capture_output=True, text=True, timeout=250, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) >= 1  # some of them had begun a part and not ended it


CLIMB = """
import sys, bbn
from tests.support.writes import HOLES, NET
bbn.fit_em(NET.graph, HOLES, restarts=2, seed=4, max_iter=30, tol=0.0, n_jobs=1, checkpoint=sys.argv[1])
print("done")
"""


def test_em_that_is_killed_again_and_again_ends_where_it_would_have(tmp_path: Path) -> None:
    """Each run is killed a moment after its first new checkpoint, until one gets to the end."""
    options = {"restarts": 2, "seed": 4, "max_iter": 30, "tol": 0.0, "n_jobs": 1}
    expected = bbn.fit_em(NET.graph, HOLES, **options)
    path, rng, killed = tmp_path / "climb", random.Random(0), 0
    while killed < 8:
        before = path.stat().st_mtime_ns if path.exists() else 0
        process = subprocess.Popen([sys.executable, "-c", CLIMB, str(path)], cwd=ROOT, stdout=subprocess.PIPE)
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            if path.exists() and path.stat().st_mtime_ns != before:
                break
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.05))
        if process.poll() is not None:
            break
        process.send_signal(signal.SIGKILL)
        process.wait()
        killed += 1
        assert path.exists()
    assert killed >= 2
    resumed = bbn.fit_em(NET.graph, HOLES, checkpoint=path, **options)
    assert resumed == expected
    assert [p.name for p in tmp_path.iterdir()] == ["climb"]
