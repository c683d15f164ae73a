"""`save`, the method of all networks: `bbn.model.questions` makes it theirs."""

from __future__ import annotations

import os
from typing import Any

from bbn.core.keywords import keywords_checked
from bbn.io.registry import save


class Saved:
    """What can be written to a file."""

    __slots__ = ()

    @keywords_checked
    def save(self: Any, path: str | os.PathLike[str], format: str | None = None) -> None:
        """Write the network to a file; the old one is replaced once everything is written.

        Parameters
        ----------
        path : path
            The file; packed if it ends in ".gz".
        format : str, optional
            By default that of the suffix. "yaml" and "json", bbn's own, hold every network; "bif", "xmlbif", "net",
            "xdsl" and "uai" hold Bayesian networks, "net" and "xdsl" also decision networks.

        Raises
        ------
        ValueError
            The suffix or format is unknown.
        ModelError
            The format cannot hold the network.
        OSError
            The file cannot be written.

        See Also
        --------
        bbn.load : The way back.
        """
        save(self, path, format)
