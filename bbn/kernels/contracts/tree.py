"""The junction tree that the kernel of expected counts walks, as flat arrays."""

from __future__ import annotations

from typing import NamedTuple

from bbn.kernels.contracts.types import Ints


class Tree(NamedTuple):
    """A junction tree with its cliques numbered parents first.

    Clique c has the axes ``axes[axes_ptr[c]:axes_ptr[c + 1]]``, those shared with its parent first, and streams
    ``stream_ptr[c]`` to ``stream_ptr[c + 1]``: its factors, its children's messages, then (but for a root) its own. A
    stream reads a flat array from ``base`` on, with one stride per axis of the clique from ``strides[stride_ptr]`` on.
    """

    cards: Ints
    axes_ptr: Ints
    axes: Ints
    separator: Ints
    """How many leading axes are shared with the parent; -1 for a root."""
    n_factors: Ints
    n_children: Ints
    stream_ptr: Ints
    base: Ints
    stride_ptr: Ints
    strides: Ints
    message_size: int
    """The cells of all messages."""
