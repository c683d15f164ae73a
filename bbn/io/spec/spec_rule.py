"""Nodes that their parents decide, in YAML and JSON.

    {type: deterministic, states: [...], parents: [...], rule: or, at_least: number, holds: ...}

`rule` is one of those of `bbn.Deterministic`; `at_least` goes with the rule at-least; `holds` is a state, or a mapping
from name to state, where the words do not tell which of two states holds.
"""

from __future__ import annotations

from typing import NamedTuple

from bbn.io.build import RawRule
from bbn.io.document import Document, Node, Scalar
from bbn.io.problems import Where
from bbn.io.spec.spec_noisy import NoisyReader
from bbn.io.spec.spec_tables import Parents
from bbn.io.writing import state_text
from bbn.model.deterministic import RULES
from bbn.model.variable import State

DETERMINISTIC = "deterministic"
FIELDS = {DETERMINISTIC: ("type", "states", "parents", "rule", "at_least", "holds")}


class RuleDraft(NamedTuple):
    """What a file says of such a node."""

    rule: str
    at_least: int | None
    holds: dict[str, Scalar]


def draft_rule(
    document: Document, noisy: NoisyReader, name: str, parents: list[str], fields: dict[str, Node]
) -> RuleDraft | None:
    """The fields of a node that its parents decide; None if what is wrong with them has been reported."""
    problems = document.problems
    n_found = problems.count
    given, least = fields["rule"], fields.get("at_least")
    rule = given.text if isinstance(given, Scalar) else None
    if rule not in RULES:
        problems.add(
            f"node {name!r}: 'rule' must be one of {', '.join(RULES)}, found {given}"
            f"{problems.nearest(rule or '', RULES)}",
            document.where(given),
        )
    number = None
    if least is not None:
        number = least.value if isinstance(least, Scalar) else None
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            problems.add(
                f"node {name!r}: 'at_least' must be a whole number from 0 on, found {least}",
                document.where(least),
            )
    holds = noisy.holds(name, parents, fields["holds"]) if "holds" in fields else {}
    return RuleDraft(str(rule), number, holds) if problems.count == n_found else None


def arrange_rule(
    document: Document, name: str, states: list[State], parents: Parents, draft: RuleDraft, where: Where
) -> RawRule | None:
    """The rule with the states that hold; None if one of them is not a state."""
    holds: dict[str, State] = {}
    listed = {name: states, **dict(parents)}
    for own, told in draft.holds.items():
        texts = [state_text(state) for state in listed[own]]
        if told.text not in texts:
            document.problems.add(
                f"node {name!r}: {own!r} has no state {told}{document.problems.nearest(told.text, texts)}",
                document.where(told),
            )
            return None
        holds[own] = listed[own][texts.index(told.text)]
    return RawRule(draft.rule, draft.at_least, holds)
