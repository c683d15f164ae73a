"""A small XML tree with places, by the standard library's expat, for the formats that are XML.

Entity declarations and external references are refused: nothing expands, nothing is fetched. A document type
with element declarations, as many XMLBIF files carry, is skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn
from xml.parsers import expat

from bbn.core.errors import ParseError
from bbn.io.source_text import Source

MAX_DEPTH = 100
"""The most elements that may stand inside one another."""


class Element:
    """One element: its tag in lower case, its attributes, its children and its text, and where it starts."""

    __slots__ = ("attributes", "children", "pieces", "tag", "where")

    def __init__(self, tag: str, attributes: dict[str, str], where: tuple[int, int]) -> None:
        self.tag = tag.lower()
        self.attributes = attributes
        self.where = where
        self.children: list[Element] = []
        self.pieces: list[str] = []

    @property
    def text(self) -> str:
        """The text directly inside the element."""
        return "".join(self.pieces)

    def all(self, *tags: str) -> Iterator[Element]:
        """The children with one of these tags."""
        return (child for child in self.children if child.tag in tags)

    def first(self, *tags: str) -> Element | None:
        """The first child with one of these tags."""
        return next(self.all(*tags), None)


def parse(source: Source) -> Element:
    """The root of the document; ParseError if it is not well formed or asks for what is refused."""
    return _TreeBuilder(source).root


class _TreeBuilder:
    """Collects elements as expat reports them."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.open: list[Element] = []
        parser = self.parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.EntityDeclHandler = self._entity
        parser.ExternalEntityRefHandler = self._external
        parser.SkippedEntityHandler = self._entity
        top = Element("", {}, (1, 1))
        self.open.append(top)
        try:
            parser.Parse(source.data, True)
        except expat.ExpatError as error:
            raise source.error(
                f"not well-formed XML: {expat.errors.messages.get(error.code, str(error))}",
                error.lineno,
                error.offset + 1,
            ) from None
        except ParseError:
            raise
        except (LookupError, ValueError) as error:  # an encoding that there is not, or that does not fit
            raise source.error(f"not readable as XML: {error}") from None
        self.root = top.children[0]

    @property
    def _where(self) -> tuple[int, int]:
        return self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        element = Element(tag, attributes, self._where)
        if len(self.open) > MAX_DEPTH:
            self._fail(f"more than {MAX_DEPTH} elements stand inside one another")
        self.open[-1].children.append(element)
        self.open.append(element)

    def _end(self, _tag: str) -> None:
        self.open.pop()

    def _text(self, text: str) -> None:
        self.open[-1].pieces.append(text)

    def _entity(self, name: str, *_: object) -> None:
        self._fail(f"found the entity {name!r}; entities are not allowed")

    def _external(self, *_: object) -> int:
        self._fail("found a reference to another document; that is not allowed")

    def _fail(self, message: str) -> NoReturn:
        raise self.source.error(message, *self._where)
