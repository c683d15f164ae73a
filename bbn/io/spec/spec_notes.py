"""What a document says about a node beside its numbers: whether it is never measured, and what it means.

    {latent: true, description: text}

Both are kept in the network's metadata, as JSON, so that every format that keeps metadata keeps them.
"""

from __future__ import annotations

import json

from bbn.io.document import Document, Node, Scalar
from bbn.model.node_notes import DESCRIPTIONS, LATENT

FIELDS = ("description", "latent")


class NotesReader:
    """The reader of such fields of one document, and what it has found."""

    def __init__(self, document: Document) -> None:
        self.problems = document.problems
        self.where = document.where
        self.latent: list[str] = []
        self.descriptions: dict[str, str] = {}

    def take(self, name: str, fields: dict[str, Node]) -> None:
        """Note what these fields say of a node, and remove them."""
        if "latent" in fields:
            self._take_latent(name, fields.pop("latent"))
        if "description" in fields:
            self._take_description(name, fields.pop("description"))

    def metadata(self) -> dict[str, str]:
        """What was found, as metadata of the network."""
        found: dict[str, str] = {}
        if self.latent:
            found[LATENT] = json.dumps(self.latent, ensure_ascii=False)
        if self.descriptions:
            found[DESCRIPTIONS] = json.dumps(self.descriptions, ensure_ascii=False)
        return found

    def _take_latent(self, name: str, node: Node) -> None:
        value = node.value if isinstance(node, Scalar) else None
        if value is True:
            self.latent.append(name)
        elif value is not False:
            self.problems.add(
                f"node {name!r}: 'latent' must be true or false, found {node}", self.where(node)
            )

    def _take_description(self, name: str, node: Node) -> None:
        if not isinstance(node, Scalar):
            self.problems.add(f"node {name!r}: 'description' must be text, found {node}", self.where(node))
        elif node.value is not None and node.text:
            self.descriptions[name] = node.text
