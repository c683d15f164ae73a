"""The metadata of a BIF file, which stand in comments at its head: `// key = value`.

A key that is not a word, or a value that would not come back from its line, is a JSON string.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from bbn.io.formats.block_syntax import QUOTED

_ABOUT = re.compile(rf"^[ \t]*+// (\w++|{QUOTED}) = ?([^\r\n]*+)", re.MULTILINE)
_WORD_KEY = re.compile(r"\w+")


def read_comments(head: str) -> dict[str, str]:
    """The metadata in the comments at the head of a file."""
    return {_whole(key): _whole(value) for key, value in _ABOUT.findall(head)} if head else {}


def write_comments(metadata: Mapping[str, str]) -> list[str]:
    """The lines of the metadata.

    >>> write_comments({"a b": "1", "c": "two\\nlines"})
    ['// "a b" = 1\\n', '// c = "two\\\\nlines"\\n']
    """
    return [f"// {_as_key(key)} = {_on_one_line(value)}\n" for key, value in metadata.items()]


def _whole(value: str) -> str:
    """A key or value of metadata from its line: text, or a JSON string where it has more lines than one."""
    try:
        return str(json.loads(value)) if value.startswith('"') else value
    except ValueError:
        return value


def _as_key(key: str) -> str:
    return key if _WORD_KEY.fullmatch(key) else json.dumps(key)


def _on_one_line(value: str) -> str:
    plain = value.isprintable() and value == value.strip() and value and not value.startswith('"')
    return value if plain else json.dumps(value)
