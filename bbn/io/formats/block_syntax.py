"""Formats made of blocks, `keyword header { body }`, as BIF and Hugin's NET are: cutting, quoting, explaining.

One regular expression finds a block, so the cutting is done at C speed in time linear in the text, and where
no block is, `_explain` goes through the text again to say what is wrong and where.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

from bbn.io.source_text import Source

QUOTED = r'"(?:[^"\\]++|\\.)*+"'
PLAIN = rf'(?:[^;{{}}"]++|{QUOTED})*+'
"""Text without statement ends or braces, except in quotes."""
INNER = rf'(?:[^{{}}"]++|{QUOTED})*+'
"""Text without braces, except in quotes."""
SPACE = " \t\r\n\f\v"

# keyword, header, {, body with at most one more level of braces, }
_BLOCK = re.compile(
    rf'[\s;]*+([A-Za-z]++)(?![^\s("{{])\s*+({PLAIN})\{{((?:[^{{}}"]++|{QUOTED}|\{{{INNER}\}})*+)\}}',
    re.DOTALL,
)
_TOKEN = re.compile(rf'[^;{{}}"]++|{QUOTED}|.', re.DOTALL)
_WORD = re.compile(r"[A-Za-z]*")
_STATEMENT = re.compile(rf"({PLAIN})(?:;|\Z)", re.DOTALL)
_ESCAPED = re.compile(r'\\(["\\])')
_NOT_NEWLINE = re.compile(r"[^\n]")


class TextBlock(NamedTuple):
    """What stands before `{` and inside the braces, and where each starts in the text."""

    keyword: str
    header: str
    body: str
    start: int
    body_start: int

    def statements(self) -> list[str]:
        """The body cut at its semicolons; each starts where the one before it and its semicolon end."""
        return self.body.split(";") if '"' not in self.body else _STATEMENT.findall(self.body)

    def place(self, index: int) -> int:
        """Where the statement of this number starts."""
        statements = self.statements()
        found = statements[index]
        return self.body_start + sum(map(len, statements[:index])) + index + len(found) - len(found.lstrip())


def blocks(source: Source, text: str, keywords: tuple[str, ...], start: int = 0) -> Iterator[TextBlock]:
    """The blocks of the text, from `start` on; ParseError where something else stands."""
    end = start
    while match := _BLOCK.match(text, end):
        keyword, header, body = match.groups()
        if keyword not in keywords:
            break
        end = match.end()
        yield TextBlock(keyword, header, body, match.start(1), match.start(3))
    if text[end:].strip(SPACE + ";"):
        _explain(source, text, end, keywords)


def _explain(source: Source, text: str, start: int, keywords: tuple[str, ...]) -> NoReturn:
    """The error for text that is not a block: what was expected, at the first place that is wrong."""
    start += len(text[start:]) - len(text[start:].lstrip(SPACE + ";"))
    word = _WORD.match(text, start)
    if word is None or word[0] not in keywords:
        expected = ", ".join(map(repr, keywords[:-1])) + f" or {keywords[-1]!r}"
        source.fail(f"expected {expected}, found {shortened(text[start : start + 400])}", start)
    depth = 0
    for match in _TOKEN.finditer(text, start):
        token = match[0]
        depth += (token == "{") - (token == "}")
        if token == '"':
            source.fail("found a quote that is never closed, expected '\"'", match.start())
        if (depth <= 0 and token in (";", "}")) or depth > 2:
            source.fail(f"expected '{{ … }}' after {word[0]!r}, found {token!r}", match.start())
    source.fail(f"expected '{{ … }}' after {word[0]!r}, found the end", len(text))


def without_comments(source: Source, pattern: re.Pattern[str]) -> str:
    """The text with comments turned into spaces, so that every position stays what it was.

    `pattern` matches a comment, or a quoted text, which is kept; a comment that starts with `/*` must be closed.
    """

    def blank(match: re.Match[str]) -> str:
        text = match[0]
        if text.startswith('"'):
            return text
        if text.startswith("/*") and (len(text) < 4 or not text.endswith("*/")):
            source.fail("found a comment that is never closed, expected '*/'", match.start())
        return _NOT_NEWLINE.sub(" ", text)

    return pattern.sub(blank, source.text)


def unquoted(text: str) -> str:
    """A name or state without the quotes and the spaces around it.

    >>> unquoted(' "two words" '), unquoted(" one ")
    ('two words', 'one')
    """
    text = text.strip()
    if text[:1] == '"' and text[-1:] == '"' and len(text) > 1:
        text = _ESCAPED.sub(r"\1", text[1:-1])
    return text


def quoted(text: str) -> str:
    """The text in quotes, as `unquoted` reads it back."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def shortened(text: str) -> str:
    """The start of a text, on one line, to be shown in a message."""
    words = " ".join(text[:400].split())
    return repr(words[:40] + "…" if len(words) > 40 else words)
