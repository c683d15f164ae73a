"""Batches of rows: against the oracle row by row, kinds of tables, impossible rows, threads."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bbn
from tests.support import oracle
from tests.support.strategies import random_network


def rows_of(
    net: bbn.BayesianNetwork, rng: np.random.Generator, n: int, observed: float
) -> list[dict[str, Any]]:
    """Rows with random states, possible or not, and holes."""
    return [
        {v.name: v.states[rng.integers(v.card)] if rng.random() < observed else None for v in net.variables}
        for _ in range(n)
    ]


@pytest.mark.parametrize("seed", range(60))
def test_batches_agree_with_the_oracle_row_by_row(seed: int) -> None:
    rng = np.random.default_rng([5, seed])
    net = random_network(rng, max_nodes=7, max_cells=300)
    target = net.variables[int(rng.integers(len(net)))]
    rows = rows_of(net, rng, int(rng.integers(1, 80)), rng.choice([0.3, 0.7, 1.0]))
    table = pd.DataFrame(
        {v.name: pd.Series([row[v.name] for row in rows], dtype=object) for v in net.variables}
    )
    answers = net.predict_proba(table, target.name, impossible="nan")
    assert list(answers.columns) == list(target.states)
    best = list(net.predict(table, target.name, impossible="nan"))
    logs = list(net.log_likelihood(table))
    for i, row in enumerate(rows):
        given = {name: state for name, state in row.items() if state is not None}
        assert logs[i] == pytest.approx(_log(oracle.evidence_probability(net, given)), abs=1e-9)
        given.pop(target.name, None)
        expected = oracle.posterior(net, [target.name], given)
        got = answers.iloc[i].to_numpy(dtype=float)
        if expected is None:
            assert np.isnan(got).all()
            assert pd.isna(best[i])
        else:
            np.testing.assert_allclose(got, [expected[(s,)] for s in target.states], rtol=0, atol=1e-10)
            assert expected[(best[i],)] == pytest.approx(max(expected.values()), abs=1e-10)


def test_results_come_back_in_kind() -> None:
    import polars as pl
    import pyarrow as pa

    net = bbn.example("asia")
    columns = {"xray": ["yes", "no", None], "smoke": ["no", None, "yes"]}
    wanted = net.predict_proba(pd.DataFrame(columns), "lung")
    assert isinstance(wanted, pd.DataFrame)
    for data, kind in [
        (pl.DataFrame(columns), pl.DataFrame),
        (pa.table(columns), pa.Table),
        (columns, dict),
        ([dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)], list),
    ]:
        answer = net.predict_proba(data, "lung")
        assert isinstance(answer, kind)
        frame = answer.to_pandas() if hasattr(answer, "to_pandas") else pd.DataFrame(answer)
        np.testing.assert_array_equal(frame.to_numpy(), wanted.to_numpy())


def test_the_index_of_a_frame_is_kept_and_its_other_columns_ignored() -> None:
    net = bbn.example("asia")
    table = pd.DataFrame({"xray": ["yes", "no"], "patient": ["p", "q"], "lung": ["no", "no"]}, index=[7, 3])
    answer = net.predict_proba(table, "lung")
    assert list(answer.index) == [7, 3]
    assert answer.loc[7, "yes"] == pytest.approx(net.query("lung", {"xray": "yes"})["yes"], abs=1e-12)


def test_an_impossible_row_is_named_with_its_findings() -> None:
    net = bbn.example("asia")
    table = pd.DataFrame({"lung": ["no", "yes"], "either": ["no", "no"], "smoke": ["yes", "yes"]})
    with pytest.raises(bbn.ImpossibleEvidenceError, match=r"row 1: .*lung='yes', either='no'") as caught:
        net.predict_proba(table, "asia")
    assert caught.value.findings == {"lung": "yes", "either": "no"}
    assert net.log_likelihood(table).iloc[1] == -math.inf
    assert net.predict(table, "asia", impossible="nan").isna().tolist() == [False, True]


def test_unknown_values_and_targets_are_refused() -> None:
    net = bbn.example("asia")
    with pytest.raises(bbn.DataError, match=r"maybe"):
        net.predict(pd.DataFrame({"xray": ["maybe"]}), "lung")
    with pytest.raises(bbn.EvidenceError, match=r"'lungs'.*did you mean 'lung'"):
        net.predict(pd.DataFrame({"xray": ["yes"]}), "lungs")
    with pytest.raises(TypeError, match=r"no option 'memory'"):
        net.predict(pd.DataFrame({"xray": ["yes"]}), "lung", memory=1)


def test_an_empty_table_gives_an_empty_answer() -> None:
    net = bbn.example("asia")
    answer = net.predict_proba(pd.DataFrame({"xray": pd.Series([], dtype=object)}), "lung")
    assert answer.shape == (0, 2)


def test_threads_change_nothing() -> None:
    net = bbn.example("alarm")
    rng = np.random.default_rng(3)
    rows = rows_of(net, rng, 3000, 0.2)
    one = net.predict_proba(rows, "HYPOVOLEMIA", impossible="nan", n_jobs=1)
    two = net.predict_proba(rows, "HYPOVOLEMIA", impossible="nan", n_jobs=2)
    np.testing.assert_array_equal(pd.DataFrame(one).to_numpy(), pd.DataFrame(two).to_numpy())


def _log(p: float) -> float:
    return math.log(p) if p > 0 else -math.inf
