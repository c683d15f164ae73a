"""`bbn.learn` on sequences: the network that made them comes back, from any kind of table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import bbn

UMBRELLA = bbn.example("umbrella")
STEPS = UMBRELLA.sample(40, n=60, seed=18).reset_index()
ARCS = [("Rain", "Umbrella"), ("Rain[-1]", "Rain")]
COUNTED = bbn.fit(ARCS, STEPS, bbn.BDeu(1.0), sequence="sequence", time="step")
RNG = np.random.default_rng(18)
RAW = STEPS.assign(
    Rain=STEPS["Rain"].astype(str),
    Umbrella=np.where(STEPS["Umbrella"] == "yes", "TRUE", "false"),
    price=[f"{x:.3f}".replace(".", ",") for x in RNG.normal(size=len(STEPS))],
    note=[f"note {i}" for i in range(len(STEPS))],
    count=RNG.integers(0, 3, len(STEPS)),
)


def arcs(result):
    """The arcs of the search, in order."""
    return sorted(result.detail.edges)


def test_the_network_that_made_the_sequences_comes_back():
    result = bbn.learn(STEPS, sequence="sequence", time="step")
    assert isinstance(result.network, bbn.DynamicNetwork)
    assert arcs(result) == ARCS
    for day in range(2):
        for name in ("Rain", "Umbrella"):
            np.testing.assert_allclose(
                result.network.conditional(name, day).table, COUNTED.conditional(name, day).table, atol=1e-12
            )
            np.testing.assert_allclose(
                result.network.conditional(name, day).table, UMBRELLA.conditional(name, day).table, atol=0.15
            )
    assert "Rain[-1] → Rain" in result.report
    assert list(map(str, bbn.learn(STEPS.drop(columns="step"), sequence="sequence").detail.edges)) == list(
        map(str, result.detail.edges)
    )


def test_rows_in_any_order_where_steps_are_numbered():
    mixed = STEPS.sample(frac=1, random_state=0)
    ours, theirs = (bbn.learn(rows, sequence="sequence", time="step") for rows in (mixed, STEPS))
    assert arcs(ours) == arcs(theirs)


def test_columns_are_read_as_describe_says(tmp_path):
    path = str(tmp_path / "days.csv")
    RAW.to_csv(path, index=False)
    for data in (RAW, pl.from_pandas(RAW), path, [path], bbn.open_data(path)):
        result = bbn.learn(data, sequence="sequence", time="step")
        net = result.network
        assert set(net.names) == {"Rain", "Umbrella", "price", "count"}
        assert net.variable("Umbrella").states == (False, True)
        assert net.variable("count").states == (0, 1, 2)
        assert isinstance(net.variable("price"), bbn.Continuous)
        assert arcs(result) == ARCS
        assert [c.name for c in result.columns] == ["Rain", "Umbrella", "price", "note", "count"]
    cut = bbn.learn(RAW, sequence="sequence", time="step", numbers="cut", kinds={"count": "drop"}).network
    assert isinstance(cut.variable("price"), bbn.Binned)
    by_number = cut.filter({"price": [-9.0, 0.0]})
    by_name = cut.filter({"price": [cut.variable("price").states[0], cut.variable("price").states[2]]})
    np.testing.assert_allclose(by_number["Rain"], by_name["Rain"], atol=1e-12)
    assert "count" not in cut


def test_a_known_structure_is_counted_or_filled_in():
    for structure in (UMBRELLA, ARCS):
        counted = bbn.learn(STEPS, structure, sequence="sequence", time="step")
        truth = bbn.fit(ARCS, STEPS, sequence="sequence", time="step")
        assert counted.method == "mle"
        np.testing.assert_allclose(
            counted.network.conditional("Rain", 1).table, truth.conditional("Rain", 1).table, atol=1e-12
        )
    holes = RAW[["sequence", "step", "Rain", "Umbrella"]].copy()
    holes.loc[::7, "Rain"] = None
    found = bbn.learn(holes, ARCS, sequence="sequence", time="step", seed=0)
    assert found.method == "em"
    told = holes.assign(Umbrella=holes["Umbrella"] == "TRUE")
    logs = found.network.log_likelihood(told, sequence="sequence", time="step")
    assert np.sum(list(dict(logs).values())) == pytest.approx(found.detail.log_likelihood, rel=1e-6)
    with pytest.raises(bbn.DataError, match=r"bbn.fit_em learns the tables of a known structure"):
        bbn.learn(holes, sequence="sequence", time="step")


def test_a_list_of_tables_is_a_sequence_each():
    parts = [part.drop(columns=["sequence", "step"]) for _, part in STEPS.groupby("sequence")]
    assert arcs(bbn.learn(parts, lag=1)) == ARCS


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"sequence": "sequense"}, "sequence='sequense' is not a column of the data.*'sequence'"),
        ({"sequence": "sequence", "method": "k2"}, "with no structure it is 'auto' or 'hill-climb'"),
        ({"sequence": "sequence", "hidden": {"H": ["a", "b"]}}, "hidden= over time needs a structure"),
    ],
)
def test_what_does_not_go_over_time(options, said):
    with pytest.raises(bbn.DataError, match=said):
        bbn.learn(STEPS, **options)
    with pytest.raises(TypeError, match="did you mean 'tabu'"):
        bbn.learn(STEPS, sequence="sequence", tabuu=3)
    assert pd.isna(STEPS).sum().sum() == 0


def test_families_over_time_are_no_larger_than_the_steps_bear():
    rng = np.random.default_rng(0)
    common = rng.integers(0, 30, 400)
    rows = pd.DataFrame({"id": np.repeat(range(20), 20), "step": np.tile(range(20), 20)})
    for i in range(8):
        own = np.where(rng.random(400) < 0.7, common, rng.integers(0, 30, 400))
        rows[f"z{i}"] = [f"s{v:02}" for v in own]
    rows["day"] = np.where(rows["step"] % 2 == 0, "even", "odd")
    result = bbn.learn(rows, sequence="id", time="step")
    assert result.network.n_parameters <= 10 * len(rows)
    assert ("day[-1]", "day") in result.detail.edges
    assert "left out of the search" in result.report


def test_hidden_variables_of_a_known_structure_over_time():
    structure = [("H[-1]", "H"), ("H", "Rain"), ("H", "Umbrella")]
    result = bbn.learn(STEPS, structure, hidden={"H": ["0", "1"]}, sequence="sequence", time="step", seed=0)
    assert result.method == "em"
    alone = bbn.fit_em(structure, STEPS, {"H": ["0", "1"]}, sequence="sequence", time="step", seed=0)
    assert result.detail.log_likelihood == pytest.approx(alone.log_likelihood, rel=1e-9)


def test_a_target_over_time_is_refused():
    with pytest.raises(
        bbn.DataError, match="target= chooses what predicts a column of rows that do not depend"
    ):
        bbn.learn(STEPS, sequence="sequence", time="step", target="Rain")
