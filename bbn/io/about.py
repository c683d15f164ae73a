"""A network's name and metadata in formats that cannot hold all of them: substitutes, and a note of the originals.

The note is a property named `bbn` beside the metadata, which other programs skip. It holds the originals as JSON, and
is believed only if what stands in the file is what bbn writes for them, so what another program changed is kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import NamedTuple

from bbn.core.errors import LossyFormatWarning, warn_user
from bbn.io.labels import distinct

NOTE = "bbn"
"""The key of the note."""


class Legal(NamedTuple):
    """For the name, the keys and the values: a text itself if the format can hold it, else the nearest that it can."""

    name: Callable[[str], str]
    key: Callable[[str], str]
    value: Callable[[str], str]


class About(NamedTuple):
    """How name and metadata are written; the metadata end with the note, if one is needed."""

    name: str
    metadata: dict[str, str]


def about(name: str, metadata: Mapping[str, str], format: str, legal: Legal) -> About:
    """What is written for the name and the metadata; a warning if any had to be changed.

    `format` is what the warning calls the format. That a network has no name is noted without a warning.
    """
    metadata = dict(metadata)
    if legal.name(name) == name and all(
        legal.key(key) == key != NOTE and legal.value(value) == value for key, value in metadata.items()
    ):
        return About(name, metadata)
    written = _written(name, metadata, legal)
    changed = [(name, written.name)] if name else []
    for pair in zip(metadata.items(), written.metadata.items(), strict=True):
        changed += zip(*pair, strict=True)
    told = [f"{old!r} as {new!r}" for old, new in changed if old != new]
    if told:
        warn_user(
            f"{format} cannot hold {len(told)} of the texts about the network; written {', '.join(told[:3])}"
            + ", …" * (len(told) > 3)
            + ". bbn reads them back as they were, other programs see the substitutes",
            LossyFormatWarning,
        )
    note = json.dumps({"name": name, "metadata": metadata})
    return About(written.name, {**written.metadata, NOTE: note})


def restore_about(name: str, metadata: Mapping[str, str], legal: Legal) -> About:
    """The name and the metadata that were noted, or those that were read, without the note."""
    if NOTE not in metadata:
        return About(name, dict(metadata))
    read = About(name, {key: value for key, value in metadata.items() if key != NOTE})
    try:
        noted = json.loads(metadata[NOTE])
        original = About(noted["name"], noted["metadata"])
        texts = [original.name, *original.metadata, *original.metadata.values()]
        "".join(texts).encode()
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return read
    return original if all(original.metadata) and _written(*original, legal) == read else read


def _written(name: str, metadata: dict[str, str], legal: Legal) -> About:
    def key(text: str) -> str:
        found = legal.key(text)
        return f"{found}_" if found == NOTE else found

    keys = distinct(metadata, key)
    values = map(legal.value, metadata.values())
    return About(legal.name(name), dict(zip(keys, values, strict=True)))
