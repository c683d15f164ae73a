"""What GeNIe keeps about how a network looks: titles, comments, colours, positions, submodels, text boxes.

It stands in the extension `<genie>` of an XDSL file. When there is more in it than bbn would write by itself, it is
kept as the metadata `genie`, the extension as text, and written into XDSL again, for the nodes that are still there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from xml.sax.saxutils import escape, quoteattr

from bbn.core.errors import ParseError
from bbn.io.formats.xml import Element, parse
from bbn.io.source_text import Source

KEY = "genie"
"""The key of the metadata that hold the extension, and its tag."""
_OURS = ("version", "app")  # attributes that say who wrote the file


def extension(genie: Element, title: str, names: Mapping[str, str]) -> str:
    """The extension as text, or nothing if bbn would write the same by itself.

    `title` is the name of the network and `names` gives the name of each variable by its id in the file.
    """
    plain = genie.attributes.keys() <= {*_OURS, "name"}
    plain = plain and genie.attributes.get("name", title).strip() == title.strip()
    for node in genie.children:
        own = [child.text.strip() for child in node.children if child.tag == "name" and not child.attributes]
        plain = plain and node.tag == "node" and len(node.children) == 1
        plain = plain and own == [names.get(node.attributes.get("id", ""), "").strip()]
    return "" if plain else _text(genie)


def is_extension(text: str) -> bool:
    """Whether a text of the metadata is one that `extension` gave."""
    root = _root(text)
    return root is not None and _text(root) == text and extension(root, "", {}) == text


def extension_lines(text: str, title: str, names: Mapping[str, str]) -> Iterator[str]:
    """The extension to be written: what is kept of the nodes that there are, and the names of the others.

    `title` is the name of the network and `names` gives the name of each variable by its id in the file; `text` may
    be empty.
    """
    root = _root(text)
    attributes = {"version": "1.0", "app": "bbn", "name": title}
    if root is not None:
        attributes |= {key: value for key, value in root.attributes.items() if key not in _OURS}
    yield f"    <genie{_attributes(attributes)}>\n"
    seen: set[str] = set()
    for child in root.children if root is not None else ():
        kept = _pruned(child, names, seen)
        if kept is not None:
            yield f"      {_text(kept)}\n"
    for written, name in names.items():
        if written not in seen:
            yield f'      <node id="{written}">\n        <name>{_escaped(name)}</name>\n      </node>\n'
    yield "    </genie>\n"


def _root(text: str) -> Element | None:
    if not text.startswith(f"<{KEY}"):
        return None
    try:
        root = parse(Source(text.encode()))
    except (ParseError, UnicodeEncodeError):
        return None
    return root if root.tag == KEY else None


def _pruned(element: Element, names: Mapping[str, str], seen: set[str]) -> Element | None:
    """The element without the nodes that there are no more, or are there again; None if it is one itself."""
    if element.tag == "node":
        written = element.attributes.get("id", "")
        if written not in names or written in seen:
            return None
        seen.add(written)
    kept = Element(element.tag, element.attributes, element.where)
    kept.pieces = element.pieces
    children = (_pruned(child, names, seen) for child in element.children)
    kept.children = [child for child in children if child is not None]
    return kept


def _text(element: Element) -> str:
    """The element on one line; the spaces between its children do not count."""
    attributes = dict(element.attributes)
    if element.tag == KEY:
        attributes = {key: value for key, value in attributes.items() if key not in _OURS}
    inside = "".join(map(_text, element.children)) if element.children else _escaped(element.text)
    start = f"<{element.tag}{_attributes(attributes)}"
    return f"{start}>{inside}</{element.tag}>" if inside else f"{start} />"


def _attributes(attributes: Mapping[str, str]) -> str:
    return "".join(f" {key}={quoteattr(value)}" for key, value in attributes.items())


def _escaped(text: str) -> str:
    return escape(text, {"\r": "&#13;"})
