"""Which state of a binary variable means that it holds: told, or known from its words; never guessed.

The one rule for all that needs to know: the strongest state of a noisy-OR or noisy-MAX, the causes of a noisy-OR, cause
and effect in bounds on causation, the treatment and the event of an effect. Where nothing tells, ModelError or
EvidenceError names the option that would. Readers of files whose format fixes the order do not ask the words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bbn.core.errors import EvidenceError, ModelError, nearest
from bbn.model.variable import State, Variable

HOLDING_WORDS = {
    frozenset(pair): pair[0]
    for pair in (
        ("yes", "no"),
        ("y", "n"),
        ("true", "false"),
        ("t", "f"),
        ("1", "0"),
        ("present", "absent"),
        ("positive", "negative"),
        ("on", "off"),
        ("treated", "untreated"),
        ("treated", "control"),
        ("success", "failure"),
    )
}
"""The states of a binary variable, in small letters, and which of them means that it holds."""


def holding(states: Sequence[State]) -> int | None:
    """Which of two states means that a variable holds; None if the words do not tell.

    >>> holding(["No", "Yes"]), holding(["left", "right"])
    (1, None)
    """
    words = [str(state).strip().casefold() for state in states]
    word = HOLDING_WORDS.get(frozenset(words))
    return None if word is None else words.index(word)


def told_holding_code(variable: Variable, holds: Any) -> int:
    """The code of the state that holds: as told, otherwise by the words; ModelError if neither says which."""
    told = holds.get(variable.name) if isinstance(holds, Mapping) else holds
    if told is None:
        return holding_code(variable, "", f"holds={{{variable.name!r}: STATE}}")
    code = variable.find(told)
    if code is None:
        raise ModelError(
            f"which of the states {list(variable.states)} of {variable.name!r} means that it holds? "
            f"holds= says {told!r}, which is not a state of it{nearest(told, variable.states)}; "
            f"say holds={{{variable.name!r}: {variable.states[0]!r}}}"
        )
    return code


def holding_code(
    variable: Variable, where: str, option: str, error: type[ModelError | EvidenceError] = ModelError
) -> int:
    """The code of the state that means that a variable holds, by the words.

    Where they do not tell, the error names the states and what would: `option`, such as "strongest=STATE".
    """
    code = holding(variable.states)
    if code is None:
        said = " or ".join(option.replace("STATE", repr(state)) for state in variable.states[:2])
        raise error(
            f"{where}{': ' * bool(where)}which of the states {list(variable.states)} of {variable.name!r} means that "
            f"it holds? Its words do not tell; say {said}"
        )
    return code


def require_family(where: str, holds: Any, child: Variable, parents: Sequence[Variable]) -> None:
    """ModelError if a mapping of states that hold names a variable that is neither the child nor a parent."""
    names = [v.name for v in (child, *parents)]
    for name in holds if isinstance(holds, Mapping) else ():
        if name not in names:
            raise ModelError(f"{where}: holds= names {name!r}, neither it nor a parent{nearest(name, names)}")
