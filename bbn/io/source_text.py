"""Source: the bytes of one file, opened within limits, and the errors that point into it.

Every reader takes a `Source` and reports faults through it, so that each error names path, line and column
the same way. A path that cannot be opened is an `OSError`; whatever is wrong with the content a `ParseError`.
"""

from __future__ import annotations

import os
import re
import stat
import zlib
from bisect import bisect_right
from collections.abc import Collection, Sequence
from functools import cached_property
from io import FileIO
from typing import NoReturn

import numpy as np

from bbn.core.budget import memory_limit, require_memory, show_bytes
from bbn.core.errors import BudgetError, ParseError, nearest

GZIP_MAGIC = b"\x1f\x8b"
MAX_BYTES = 2**30
"""The most bytes a file may hold, unpacked, however much memory there is."""

SURELY_SMALL = 2**16
"""Files of at most this many bytes are read without first asking how much memory that takes."""
MAX_COMPARED = 100_000
"""Once this many names of a file were compared with unknown ones, errors stop naming the nearest."""
MAX_MESSAGE = 2000
"""The most characters of a message; files may hold names of any length."""

_CHUNK = 2**20
_FIRST_CHUNK = 2**10
_BETWEEN = np.isin(np.arange(256), list(b" \t\r\n\f\v,;:\"'|=()[]{}<>"))
_BRACKET = np.isin(np.arange(256), list(b"[]{}<>"))
_PADDING = re.compile(rb"\0*+")  # zeros may stand between members


class OversizedFileError(ParseError, BudgetError):
    """A file that holds, unpacks to or describes more than memory allows."""

    def __init__(
        self,
        message: str,
        path: str | None = None,
        line: int | None = None,
        column: int | None = None,
        needed: int | None = None,
        limit: int | None = None,
    ) -> None:
        Exception.__init__(self, message, path, line, column, needed, limit)
        self.message = message
        self.problems = ()
        self.path, self.line, self.column = path, line, column
        self.needed, self.limit = needed, limit


class Source:
    """The content of one file and where it came from.

    Parameters
    ----------
    data
        The bytes, still packed if they were (gzip is told by its first two bytes).
    path
        What errors call the file; None for text that has no name.

    >>> source = Source(b"name: x\\nnodes: {}\\n", "x.yaml")
    >>> source.text[8:13], source.position(8)
    ('nodes', (2, 1))
    """

    def __init__(self, data: bytes, path: str | None = None) -> None:
        self.path = path
        self._n_compared = 0
        self._reserved = 0
        packed = data.startswith(GZIP_MAGIC)
        if path is not None and path.lower().endswith(".gz") and not packed:
            raise ParseError(f"not gzip data: found {_show_bytes_at_start(data)}", path)
        self.data = self._unpack(data) if packed else data

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Source:
        """The file at `path`; OSError if it cannot be opened or is a directory."""
        name = os.fspath(path)
        with open(name, "rb", buffering=0) as file:  # pathlib's takes as long as the reading
            return cls(_read_within_limit(file, name), name)

    @cached_property
    def text(self) -> str:
        """The content as text: UTF-8, or UTF-16 if a byte-order mark says so."""
        encoding = "utf-16" if self.data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
        try:
            text = self.data.decode(encoding)
        except UnicodeDecodeError as error:
            line = self.data.count(b"\n", 0, error.start) + 1
            column = error.start - self.data.rfind(b"\n", 0, error.start)
            kind = "a binary file" if b"\0" in self.data else "not UTF-8 text"
            raise ParseError(
                f"{kind}: byte 0x{self.data[error.start]:02x} at offset {error.start}; expected UTF-8",
                self.path,
                line,
                column,
            ) from None
        if "\0" in text:
            self.fail("a binary file: found a NUL character; expected text", text.index("\0"), text)
        return text

    @cached_property
    def _line_starts(self) -> list[int]:
        return _line_starts(self.text)

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column, both from 1, of the character at `offset` of the text."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def error(self, message: str, line: int | None = None, column: int | None = None) -> ParseError:
        """A ParseError that points at a line and column of this file."""
        return ParseError(cut(message), self.path, line, column)

    def nearest(self, word: object, choices: Collection[object]) -> str:
        """What `bbn.core.errors.nearest` says, or nothing once MAX_COMPARED names were compared for this file."""
        if self._n_compared >= MAX_COMPARED:
            return ""
        self._n_compared += len(choices)
        return nearest(word, choices)

    def require_room(self, per_word: int) -> None:
        """OversizedFileError if reading would take more than the limit, at `per_word` bytes of memory for each word.

        Brackets count as words. Files of at most SURELY_SMALL bytes are not looked at.
        """
        size = len(self.data)
        if size <= SURELY_SMALL or size * per_word <= memory_limit():
            return
        n_words = _n_words(self.data)
        self.reserve(5 * size + per_word * n_words, f"reading {show_bytes(size)} with {n_words:,} words")

    def reserve(self, size: int, what: str, line: int | None = None, column: int | None = None) -> None:
        """Count the bytes that a file asks for without spelling them out, before they are taken.

        OversizedFileError, pointing at the line and column, if with what was counted before they pass the limit.
        """
        try:
            require_memory(self._reserved + size, what)
        except BudgetError as error:
            raise OversizedFileError(
                cut(str(error)), self.path, line, column, error.needed, error.limit
            ) from None
        self._reserved += size

    def fail(self, message: str, offset: int, text: str | None = None) -> NoReturn:
        """Raise the ParseError that points at the character at `offset`."""
        starts = self._line_starts if text is None else _line_starts(text)
        line = bisect_right(starts, offset)
        raise self.error(message, line, offset - starts[line - 1] + 1)

    def _unpack(self, data: bytes) -> bytes:
        """The members one after the other, in time linear in the data however many there are.

        What is handed to zlib starts small and doubles, so what it hands back at the end of a member is never much
        longer than the member.
        """
        limit = _byte_limit()
        pieces: list[bytes] = []
        size = at = 0
        while at < len(data):
            unpacker = zlib.decompressobj(wbits=31)
            step = _FIRST_CHUNK
            waiting = b""
            while not unpacker.eof:
                if not waiting:
                    waiting, at = data[at : at + step], at + step
                    step = min(2 * step, _CHUNK)
                try:
                    piece = unpacker.decompress(waiting, _CHUNK)
                except zlib.error as error:
                    raise self.error(f"broken gzip data: {error}") from None
                if not piece and not waiting:
                    raise self.error(f"truncated gzip data: it ends after {size} unpacked bytes")
                waiting = unpacker.unconsumed_tail
                pieces.append(piece)
                size += len(piece)
                if size > limit:
                    message = f"gzip data that unpacks to more than the limit of {show_bytes(limit)}"
                    raise OversizedFileError(message, self.path, limit=limit)
            at = min(at, len(data)) - len(unpacker.unused_data)
            at = _PADDING.match(data, at).end()  # type: ignore[union-attr]  # it matches everywhere
        return b"".join(pieces)


def _n_words(data: bytes) -> int:
    """How many words and brackets there are in the content of a file."""
    codes = np.frombuffer(data, np.uint8)
    found = 0
    for start in range(0, len(codes), _CHUNK):
        chunk = codes[start : start + _CHUNK]
        between = _BETWEEN[chunk]
        found += int(np.count_nonzero(between[1:] & ~between[:-1])) + 1 + int(_BRACKET[chunk].sum())
    return found


def cut(message: str) -> str:
    """The message, without what is past MAX_MESSAGE characters."""
    return message if len(message) <= MAX_MESSAGE else message[:MAX_MESSAGE] + "…"


def listed(words: Sequence[object], most: int = 8) -> str:
    """The first few words of a list, for a message.

    >>> listed(["a", "b", "c"], most=2)
    'a, b, …'
    """
    return ", ".join(map(str, words[:most])) + (", …" if len(words) > most else "")


def pack(data: bytes) -> bytes:
    """`data` as gzip, the same bytes every time (no time stamp, no name)."""
    import gzip

    return gzip.compress(data, compresslevel=6, mtime=0)


def _byte_limit() -> int:
    return min(MAX_BYTES, memory_limit() // 8)


def _read_within_limit(file: FileIO, path: str) -> bytes:
    limit = _byte_limit()
    status = os.fstat(file.fileno())
    size = status.st_size
    data = b""
    if stat.S_ISREG(status.st_mode):
        data = file.readall() if size <= limit else data
    else:  # a pipe or a device, which may never end
        pieces: list[bytes] = []
        while size <= limit and (piece := file.read(_CHUNK)):
            pieces.append(piece)
            size += len(piece)
        data = b"".join(pieces)
    if size > limit:
        message = f"a file of {show_bytes(size)}: more than the limit of {show_bytes(limit)}"
        raise OversizedFileError(message, path, needed=size, limit=limit)
    return data


def _line_starts(text: str) -> list[int]:
    return [0, *(match.end() for match in re.finditer(r"\r\n|\n|\r", text))]


def _show_bytes_at_start(data: bytes) -> str:
    return repr(data[:8])[1:] if data else "an empty file"
