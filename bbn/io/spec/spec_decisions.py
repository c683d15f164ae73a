"""What a document says about decisions and utilities, in bbn's own format.

    {type: decision, states: [...], observes: [...]}
    {type: utility, parents: [...], table: ...}      {type: utility, parents: [...], combine: sum, weights: [...]}

A utility's table has a number per setting of its discrete parents, keyed or nested as rows of probabilities are;
without any, it is one number. With continuous parents it is {utility: number, weights: [...]} instead. A utility of
utilities has `combine`, sum or product, and a sum may have weights. Beside `nodes`, `recall: limited` says that
decisions know only what they observe.
"""

from __future__ import annotations

from collections.abc import Sequence as SequenceABC

import numpy as np

from bbn.core.frozen import Array
from bbn.io.build import RawNode, RawUtility, refusal
from bbn.io.document import Mapping, Node, Scalar, Sequence
from bbn.io.problems import Where
from bbn.io.source_text import OversizedFileError
from bbn.io.spec.spec_gaussians import GaussianReader
from bbn.io.spec.spec_tables import Parents
from bbn.model.decision import COMBINE

DECISION, UTILITY = "decision", "utility"
FIELDS = {
    DECISION: ("type", "states", "observes"),
    UTILITY: ("type", "parents", "table", "combine", "weights"),
}
NEEDED = {DECISION: ("states",), UTILITY: ()}


class UtilityReader(GaussianReader):
    """The reader of the utilities of one document: rows are numbers."""

    def raw_node(
        self,
        name: str,
        parents: list[str],
        discrete: Parents,
        continuous: SequenceABC[str],
        fields: dict[str, Node],
        where: Where,
    ) -> RawNode:
        """The utility, `worth` None if what is wrong with it has been reported."""
        worth = None
        if "combine" in fields:
            worth = self._combination(name, parents, fields)
        elif "table" not in fields:
            self.problems.add(f"utility {name!r} has neither 'table' nor 'combine'", where)
        elif len(discrete) + len(continuous) == len(
            parents
        ):  # if not, a parent is unknown, which is reported later
            worth = self._table(name, discrete, continuous, fields["table"], where)
        return RawNode(name, (), parents, None, where, role=UTILITY, worth=worth)

    def _table(
        self, name: str, discrete: Parents, continuous: SequenceABC[str], node: Node, where: Where
    ) -> RawUtility | None:
        cards = [len(states) for _, states in discrete]
        too_large = refusal([*cards, 1 + len(continuous)])
        if too_large:
            self.problems.add(f"utility {name!r}: {too_large}", where, OversizedFileError)
            return None
        n_found = self.problems.count
        values = self._values(name, discrete, continuous, node, where)
        if values is None or self.problems.count > n_found:
            return None
        array: Array = np.array(values).reshape(*cards, 1 + len(continuous))
        return RawUtility(array[..., 0].copy(), array[..., 1:].copy() if continuous else None, None)

    def _row(self, name: str, row: str, continuous: SequenceABC[str], node: Node) -> list[float]:
        """[utility, weight, …]; what is wrong with it is reported."""
        what = f"utility {name!r}{row}"
        if not continuous:
            return [self._number(what, "its worth", node)]
        fields: dict[str, Node] = {}
        if isinstance(node, Mapping):
            fields = {key.text: value for key, value in node.pairs if isinstance(key, Scalar)}
        if set(fields) != {UTILITY, "weights"}:
            self.problems.add(
                f"{what}: expected {{utility: number, weights: [...]}}, found {node}", self.where(node)
            )
            return []
        worth = self._number(what, "utility", fields[UTILITY])
        return [worth, *self._weights(what, continuous, fields["weights"])]

    def _combination(self, name: str, parents: list[str], fields: dict[str, Node]) -> RawUtility | None:
        how, weights = fields["combine"], None
        if not isinstance(how, Scalar) or how.text not in COMBINE:
            found = how.text if isinstance(how, Scalar) else None
            self.problems.add(
                f"utility {name!r}: 'combine' is {how}{self.problems.nearest(found, COMBINE)}",
                self.where(how),
            )
            return None
        if "weights" in fields:
            node = fields["weights"]
            if not isinstance(node, Sequence) or len(node.items) != len(parents):
                self.problems.add(
                    f"utility {name!r}: expected {len(parents)} weights, found {node}", self.where(node)
                )
                return None
            weights = np.array([self._number(f"utility {name!r}", "a weight", item) for item in node.items])
        return RawUtility(None, weights, how.text)
