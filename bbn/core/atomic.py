"""Writing a file or a folder so that its place holds the old one or the new one, whole, whatever happens.

Everything goes to a part beside the target: ``.NAME.part``. At the end the part is on the disk (fsync), and one rename
puts it in the place of the target. A failure removes it. What a killed process left is removed by the next write to the
same target: a writer holds a lock on its part (flock), which the system takes from it when it dies, so a part that can
be locked has no owner. A writer that finds the part of another at work takes the next name, ``.NAME.1.part``.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeVar

try:
    import fcntl
except ModuleNotFoundError:  # Windows, where a file that is open cannot be removed: that is the lock
    fcntl = None  # type: ignore[assignment]

WRITERS = 100
"""The most parts of one target at a time."""
Handle = TypeVar("Handle", int, "int | None")

LONGEST = 200
"""Bytes of a name from which on its part is named by a hash, as file systems take 255."""


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """An open file that takes the place of `path` at the end, unless an error is raised.

    A link stays a link: the file it leads to is replaced. A file that was there passes its permissions on. What is
    not a regular file (a terminal, a pipe) is written to as it is.

    Raises
    ------
    OSError
        The file cannot be written; the error names `path`.
    """
    target = os.path.realpath(path)
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        mode = 0
    if mode and not stat.S_ISREG(mode):
        with _naming(path, target), open(path, "wb") as file:  # IsADirectoryError, of a folder
            yield file
        return
    with _naming(path, target):
        part, handle = _new_part(target, _new_file)
        try:
            with open(handle, "wb", closefd=False) as file:
                yield file
            if mode:
                os.chmod(part, stat.S_IMODE(mode))
            _put(part, handle, target)
        except BaseException:
            Path(part).unlink(missing_ok=True)
            raise
        finally:
            os.close(handle)


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Put these bytes in the place of a file."""
    with replacing(path) as file:
        file.write(data)


@contextmanager
def replacing_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A new folder that takes the place of `path` at the end, unless an error is raised.

    Raises
    ------
    FileExistsError
        There is something at `path` other than an empty folder.
    OSError
        The folder cannot be written; the error names `path`.
    """
    target = os.path.realpath(path)
    if os.path.exists(target) and (not os.path.isdir(target) or os.listdir(target)):
        raise FileExistsError(f"{path} is there already; name a folder that is empty or not there yet")
    with _naming(path, target):
        part, handle = _new_part(target, _new_folder)
        try:
            yield Path(part)
            for folder, _, names in os.walk(part):
                for name in names:
                    _sync(os.path.join(folder, name))
            _put(part, handle, target)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
        finally:
            if handle is not None:
                os.close(handle)


@contextmanager
def _naming(path: str | os.PathLike[str], target: str) -> Iterator[None]:
    """Let errors about a part, and those of writing, which name no file, name the path that the caller knows."""
    try:
        yield
    except OSError as error:
        parts = [_part(target, number) for number in range(WRITERS)]
        named = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else None
        if error.errno is None or not (
            named is None or any(f"{named}{os.sep}".startswith(p + os.sep) for p in parts)
        ):
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def _new_part(target: str, make: Callable[[str], Handle]) -> tuple[str, Handle]:
    """A new part of the target and its descriptor, locked; parts left by dead processes are removed."""
    for number in range(WRITERS):
        part = _part(target, number)
        while True:
            try:
                handle = make(part)
            except FileExistsError:
                if _remove_if_dead(part):
                    continue
                break  # another writer is at work on it
            if handle is None or _is_ours(part, handle):
                if os.path.lexists(after := _part(target, number + 1)):
                    _remove_if_dead(after)
                return part, handle
            os.close(handle)
    raise FileExistsError(f"{WRITERS} others are writing {target}")


def _part(target: str, number: int) -> str:
    folder, name = os.path.split(target)
    if len(os.fsencode(name)) > LONGEST:
        name = hashlib.sha256(os.fsencode(name)).hexdigest()
    return os.path.join(folder, f".{name}.{number}.part" if number else f".{name}.part")


def _new_file(part: str) -> int:
    return os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)


def _new_folder(part: str) -> int | None:
    os.mkdir(part)
    return os.open(part, os.O_RDONLY) if fcntl is not None else None


def _is_ours(part: str, handle: int) -> bool:
    """Lock a new part; whether it is still there. On a file system without locks every part counts as ours."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:  # someone who takes it for a dead one's is about to remove it
        return False
    except OSError:
        return True
    return _leads_to(part, handle)


def _remove_if_dead(part: str) -> bool:
    """Remove a part that no living process writes; whether its name is free now."""
    if fcntl is None:
        with contextlib.suppress(OSError):
            os.unlink(part)
        return not os.path.lexists(part)
    try:
        handle = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not _leads_to(part, handle):  # it was removed, or put in its place, a moment ago
            return True
        shutil.rmtree(part) if stat.S_ISDIR(os.fstat(handle).st_mode) else os.unlink(part)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def _leads_to(part: str, handle: int) -> bool:
    """Whether the name still leads to the open file: only the holder of its lock may remove or rename it."""
    try:
        return os.path.samestat(os.lstat(part), os.fstat(handle))
    except FileNotFoundError:
        return False


def _put(part: str, handle: int | None, target: str) -> None:
    """Put the part in the place of the target, content and name on the disk."""
    if handle is not None:
        os.fsync(handle)
    os.replace(part, target)
    with contextlib.suppress(OSError):  # not every system can open a folder
        _sync(os.path.dirname(target) or os.curdir)


def _sync(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
