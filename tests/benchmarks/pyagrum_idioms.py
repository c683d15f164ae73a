"""The ways in which pyAgrum answers many cases of evidence, exactly, on an engine that is kept.

`setEvidence` forgets everything and starts afresh; `updateEvidence` and `chgEvidence` keep the junction tree, and the
messages that the new values do not reach. Which is fastest is a matter of the network, so a benchmark tries them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

Case = dict[str, Any]
Sweep = Callable[[], list[Any]]


def sweeps(bn: Any, cases: Sequence[Case], targets: Sequence[str], slow: bool = False) -> dict[str, Sweep]:
    """Each idiom by name: all cases, one after the other, and the posteriors of all targets read for each.

    Parameters
    ----------
    bn
        pyAgrum's network.
    cases
        Evidence by name; the last is followed by the first again.
    targets
        What is read. Unless these are all that is not observed, engines are told so by `addTarget`.
    slow
        Whether to try only the idioms that can win where one case takes a second.

    Returns
    -------
    dict
        What a sweep returns is the tensors of the last case, in the order of the targets.
    """
    import pyagrum as gum

    engines = [gum.LazyPropagation, gum.ShaferShenoyInference]
    if len(targets) == 1:
        engines.append(gum.VariableElimination)
    coded = [
        {bn.idFromName(name): bn.variable(name).index(value) for name, value in case.items()}
        for case in cases
    ]
    read = [bn.idFromName(name) for name in targets]
    whole = {*bn.names()} == {*targets, *cases[0]}
    same_names = all(case.keys() == cases[0].keys() for case in cases)
    idioms: dict[str, Sweep] = {}
    for kind in engines:
        for barren in (True, False) if not slow else (True,):

            def engine(kind: Any = kind, barren: bool = barren) -> Any:
                made = kind(bn)
                if not barren:
                    made.setFindBarrenNodesType(0)
                for target in () if whole else read:
                    made.addTarget(target)
                made.setEvidence(cases[0])
                made.makeInference()
                return made

            label = kind.__name__ + (", no search for barren nodes" if not barren else "")
            if not slow:
                idioms[f"{label}, setEvidence"] = partial(_set, engine(), cases, targets)
                if same_names:
                    idioms[f"{label}, updateEvidence"] = partial(_update, engine(), cases, targets)
            words = "chgEvidence" if same_names else "chgEvidence, addEvidence and eraseEvidence"
            idioms[f"{label}, {words} where a value differs"] = _Changing(engine(), coded, read)
    return idioms


def _set(engine: Any, cases: Sequence[Case], targets: Sequence[str]) -> list[Any]:
    for case in cases:
        engine.setEvidence(case)
        engine.makeInference()
        answers = [engine.posterior(name) for name in targets]
    return answers


def _update(engine: Any, cases: Sequence[Case], targets: Sequence[str]) -> list[Any]:
    for case in cases:
        engine.updateEvidence(case)
        engine.makeInference()
        answers = [engine.posterior(name) for name in targets]
    return answers


class _Changing:
    """Only the difference between one case and the next is told to the engine, by number instead of by name."""

    def __init__(self, engine: Any, cases: Sequence[dict[int, int]], targets: Sequence[int]) -> None:
        self.engine, self.targets = engine, targets
        self.changes = [list(_changes(engine, *pair)) for pair in pairwise([cases[-1], *cases])]
        self.warm = False

    def __call__(self) -> list[Any]:
        engine, targets = self.engine, self.targets
        for change in self.changes if self.warm else [[], *self.changes[1:]]:
            for method, arguments in change:
                method(*arguments)
            engine.makeInference()
            answers = [engine.posterior(node) for node in targets]
        self.warm = True  # from now on the first case comes after the last
        return answers


def _changes(
    engine: Any, old: dict[int, int], new: dict[int, int]
) -> Iterator[tuple[Callable[..., None], tuple[int, ...]]]:
    for node, value in new.items():
        if node not in old:
            yield engine.addEvidence, (node, value)
        elif old[node] != value:
            yield engine.chgEvidence, (node, value)
    for node in sorted(old.keys() - new.keys()):
        yield engine.eraseEvidence, (node,)


def check(idioms: dict[str, Sweep], expected: dict[str, np.ndarray]) -> None:
    """Every idiom gives these posteriors for the last case."""
    for idiom, sweep in idioms.items():
        for _ in range(2):  # once from the start, once on the warm engine
            for tensor, (name, values) in zip(sweep(), expected.items(), strict=True):
                np.testing.assert_allclose(
                    tensor.toarray(), values, rtol=0, atol=1e-9, err_msg=f"{name} by {idiom}"
                )
