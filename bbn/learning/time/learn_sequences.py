"""Learning in one call where rows are steps of sequences: columns as `describe` reads them, then a dynamic network.

Arcs within a slice and from slices before it are found by hill climbing (Friedman, Murphy and Russell 1998), and tables
by counting; tables of a known structure by counting, or by EM where values are missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from bbn.core.display import counted, grid
from bbn.core.errors import DataError, nearest
from bbn.data.columns import NO_ROWS, read_table
from bbn.data.describe import Description
from bbn.data.reading import Reading
from bbn.data.source import is_source
from bbn.data.streams.readers import is_many
from bbn.inference.time.sequences import one_table
from bbn.learning.incomplete.em import fit_em
from bbn.learning.learn_result import LearnResult
from bbn.learning.raw.raw_columns import RawColumns, cut_variables, read_raw
from bbn.learning.raw.small_families import bounded_search, is_wide, left_out
from bbn.learning.structure.hill_climb import hill_climb
from bbn.learning.structure.structure import read_structure
from bbn.learning.tables.fit import fit
from bbn.learning.tables.priors import BDeu
from bbn.learning.time.lagged import Told, lagged_source
from bbn.model.dynamic_network import DynamicNetwork
from bbn.model.previous import split_name

BINS = 5
"""Into how many intervals numbers are cut."""


class Steps(NamedTuple):
    """What was said of the rows and of the columns."""

    told: Told
    lag: int | None
    kinds: Mapping[str, str] | None
    states: Any
    weights: Any
    missing: Any
    unseen: str
    continuous: Any
    decimal: Any
    numbers: str


def learn_sequences(
    data: Any,
    structure: Any,
    hidden: Any,
    method: str,
    prior: Any,
    options: Mapping[str, Any],
    steps: Steps,
) -> LearnResult:
    """The dynamic network of sequences, and how it came about.

    Parameters
    ----------
    data, structure, hidden, prior
        As in `bbn.learn`.
    method
        "auto", "hill-climb" without a structure, "mle" or "em" with one.
    options
        For the method.
    steps
        How rows make sequences, and how columns are read.
    """
    legal = ("auto", "hill-climb") if structure is None else ("auto", "mle", "em")
    if method not in legal:
        known = "no structure" if structure is None else "a known structure"
        raise DataError(
            f"method={method!r} takes rows that do not depend on each other; where they are steps of sequences, with "
            f"{known} it is {' or '.join(map(repr, legal))}"
        )
    if hidden and structure is None:
        raise DataError("hidden= over time needs a structure: bbn.fit_em learns its tables from sequences")
    if isinstance(structure, DynamicNetwork):
        return _of_network(data, structure, hidden, method, prior, options, steps)
    data, told = _one(data, steps.told)
    raw = _described(data, structure, hidden, told, steps)
    columns, reading = _columns(raw, told, steps)
    how: dict[str, Any] = {
        **told._asdict(),
        "weights": steps.weights,
        "missing": steps.missing,
        "unseen": steps.unseen,
    }
    if structure is None:
        graph = _searched(columns, 1 if steps.lag is None else steps.lag, {**reading, **how}, options)
        network: Any = fit(graph, columns, BDeu(1.0) if prior is None else prior, **how)
        words, detail = "structure unknown: hill-climb over time, then counting", graph
    else:
        chosen = _chosen(method, hidden, raw.description)
        network, detail = _tables(chosen, structure, columns, hidden, prior, {**reading, **how, **options})
        words = f"structure known: {'counting' if chosen == 'mle' else 'EM'}"
    return _result(network, words, "hill-climb" if structure is None else chosen, detail, raw.description)


def _searched(columns: Any, lag: int, how: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    """The structure over time, among families that are small enough for the steps."""
    reading = {name: own for name, own in how.items() if name not in Told._fields}
    told = Told(*(how[name] for name in Told._fields))
    source = lagged_source(columns, told, lag, Reading(**reading))
    if is_wide(source):
        options = {"restarts": 0, "escapes": 0, **options}

    def search(_: Any, **own: Any) -> Any:
        return hill_climb(columns, lag=lag, **how, **own)

    return bounded_search(search, source, options)


def _one(data: Any, told: Told) -> tuple[Any, Told]:
    """The data as one table or source; a list of tables is one sequence each."""
    if is_source(data) or is_many(data):
        return data, told
    data, lengths = one_table(data)
    if lengths is None:
        return data, told
    if told.anything:
        raise DataError("a list of tables is one sequence each; leave out sequence= and time=")
    return data, Told(lengths=lengths)


def _described(data: Any, structure: Any, hidden: Any, told: Told, steps: Steps) -> RawColumns:
    """The columns besides those that name sequences and steps, or weigh them."""
    if is_source(data) and not is_many(data):
        raise DataError(
            "the columns of these data were decided where they were opened or coded: bbn.hill_climb(data, sequence=…) "
            "and bbn.fit(graph, data, sequence=…) learn from them"
        )
    roles = [own for own in (told.sequence, told.time, steps.weights) if isinstance(own, str)]
    names = None
    if structure is not None:
        slices = dict.fromkeys(split_name(name)[0] for name in read_structure(structure).names)
        names = [name for name in slices if name not in (hidden or ())]
    kinds = {**dict.fromkeys(roles, "drop"), **(steps.kinds or {})}
    table = None if is_many(data) else read_table(data)
    if table is not None and not table.n_rows:
        raise DataError(NO_ROWS)
    there = None if table is None else table.names
    for what, name in (("sequence", told.sequence), ("time", told.time)):
        if name is not None and there is not None and name not in there:
            raise DataError(f"{what}={name!r} is not a column of the data{nearest(name, there)}")

    def read(kinds: Mapping[str, str]) -> RawColumns:
        told = (steps.states, None, steps.missing, steps.continuous, names)
        return read_raw(data, kinds, *told, decimal=steps.decimal)

    found = read(kinds)
    if found.weights is not None:  # it only looks like counts: steps have no weights of their own
        found = read({**kinds, found.weights: "whole number"})
    kept = tuple(column for column in found.description if column.name not in roles)
    return found._replace(description=Description(kept, found.description.n_rows, found.description.decimals))


def _columns(raw: RawColumns, told: Told, steps: Steps) -> tuple[Any, dict[str, Any]]:
    """The data with the columns that are used, and how these are read."""
    many = is_many(raw.data)
    variables, numbers = list(raw.variables), raw.numbers
    if steps.numbers == "cut" and numbers:
        coded = raw._replace(weights=None).sample() if many else raw._replace(weights=None).coded()
        variables += cut_variables(coded, "quantiles", BINS).values()
        numbers = ()
    reading: dict[str, Any] = {"states": {v.name: v for v in variables}, "continuous": list(numbers)}
    if many:
        from bbn.model.variable import Continuous

        return raw.opened([*variables, *map(Continuous, numbers)]), reading
    table = read_table(raw.data).told(raw.description.decimals)
    roles = (told.sequence, told.time, steps.weights if isinstance(steps.weights, str) else None)
    used = {*reading["states"], *numbers, *roles}
    return table._replace(names=tuple(name for name in table.names if name in used)), reading


def _of_network(
    data: Any, network: DynamicNetwork, hidden: Any, method: str, prior: Any, options: Any, steps: Steps
) -> LearnResult:
    """The tables of a dynamic network, which says itself what its columns hold."""
    how: dict[str, Any] = {"weights": steps.weights, "missing": steps.missing, "unseen": steps.unseen}
    told = {name: own for name, own in steps.told._asdict().items() if own is not None}
    chosen = _chosen(method, hidden, None)
    fitted, detail = _tables(chosen, network, data, hidden, prior, {**told, **how, **options})
    return _result(
        fitted, f"structure known: {'counting' if chosen == 'mle' else 'EM'}", chosen, detail, None
    )


def _chosen(method: str, hidden: Any, columns: Description | None) -> str:
    if method != "auto":
        return method
    return "em" if hidden or (columns is not None and columns.incomplete) else "mle"


def _tables(
    chosen: str, structure: Any, data: Any, hidden: Any, prior: Any, options: Mapping[str, Any]
) -> tuple[Any, Any]:
    if chosen == "mle":
        return fit(structure, data, prior, **options), None
    found = fit_em(structure, data, hidden, prior, **options)
    return found.network, found


def _result(network: Any, words: str, method: str, detail: Any, columns: Description | None) -> LearnResult:
    lines = [
        f"rows are steps of sequences, {words}",
        f"{counted(len(network), 'variable')} a slice, reaching {network.order} back, "
        f"{counted(network.n_parameters, 'free parameter')}",
    ]
    score = getattr(detail, "graph", {}).get("score")
    if score is not None:
        lines.append(f"score of the structure: {score:.6f}")
        lines += left_out(detail, 0 if columns is None else columns.n_rows)
        lines += ["", *(f"{a} → {b}" for a, b in sorted(detail.edges))]
    if columns is not None:
        rows = [[c.name, c.kind, str(c.missing) if c.missing else "", c.will, c.why] for c in columns]
        lines += ["", *grid(["column", "kind", "missing", "is", "because"], rows).splitlines()]
    numbers = "gaussian" if any(not v.card for v in network.variables) else ""
    return LearnResult(network, method, "\n".join(lines), detail, columns, numbers)
