"""What a network's metadata say about single nodes: which are never measured, and what they mean.

`metadata["latent"]` is a JSON list of names, `metadata["descriptions"]` a JSON mapping from name to text. Metadata are
texts that every network may have, so text of another kind under these keys says nothing about nodes.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

LATENT, DESCRIPTIONS = "latent", "descriptions"


def latent_names(metadata: Mapping[str, str], names: Collection[str]) -> tuple[str, ...]:
    """Those of the names that the metadata call latent, in the order of the names."""
    listed = _parsed(metadata.get(LATENT))
    return tuple(name for name in names if name in listed) if isinstance(listed, list) else ()


def described(metadata: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    """The description of each of the names that has one, in the order of the names.

    >>> described({"descriptions": '{"Rain": "in the last hour"}'}, ["Wet", "Rain"])
    {'Rain': 'in the last hour'}
    """
    told = _parsed(metadata.get(DESCRIPTIONS))
    if not isinstance(told, dict):
        return {}
    return {name: told[name] for name in names if isinstance(told.get(name), str) and told[name]}


def renamed(metadata: Mapping[str, str], names: Collection[str], new: Mapping[str, str]) -> dict[str, str]:
    """The metadata after the nodes of these names got the new ones, old name to new."""
    found = dict(metadata)
    hidden = latent_names(metadata, names)
    if hidden:
        found[LATENT] = json.dumps([new.get(name, name) for name in hidden], ensure_ascii=False)
    texts = described(metadata, names)
    if texts:
        under = {new.get(name, name): text for name, text in texts.items()}
        found[DESCRIPTIONS] = json.dumps(under, ensure_ascii=False)
    return found


def _parsed(text: str | None) -> Any:
    if not text:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
