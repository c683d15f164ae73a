"""Dynamic networks as values: what they are made of, how they are checked, read and written."""

import pickle

import numpy as np
import pandas as pd
import pytest

import bbn
from bbn.io.registry import dumps, loads
from bbn.model.previous import split_name
from tests.support.dynamic_truth import random_dynamic

RAIN, WET = bbn.Variable("Rain", ["yes", "no"]), bbn.Variable("Wet", ["yes", "no"])


def umbrella() -> bbn.DynamicNetwork:
    return bbn.example("umbrella")


@pytest.mark.parametrize("seed", range(30))
def test_what_is_written_reads_back(seed):
    rng = np.random.default_rng(seed)
    dyn = random_dynamic(rng, zeros=True, gaussians=seed % 2 == 0)
    assert pickle.loads(pickle.dumps(dyn)) == dyn
    for kind in ("yaml", "json"):
        again = loads(dumps(dyn, kind), kind)
        assert again == dyn
        assert hash(again) == hash(dyn)
        assert again.unroll(4) == dyn.unroll(4)


@pytest.mark.parametrize("seed", range(30))
def test_slices_with_equal_numbers_or_nothing_of_their_own_read_back(seed, tmp_path):
    """First slices that repeat the numbers of later ones, and empty ones, in every format that holds them."""
    rng = np.random.default_rng(seed)
    plain = random_dynamic(rng, gaussians=seed % 2 == 0)
    starts = [[plain.conditional(name, t) for name in plain.names] for t in range(plain.n_first)]
    starts += [[] for _ in range(rng.integers(0, 3))]
    for t, own in enumerate(starts):
        for c in plain.later:
            if all((split_name(p.name)[1] or 0) >= -t for p in c.parents) and rng.random() < 0.3:
                own[:] = [other for other in own if other.variable != c.variable]
                own.append(copied(c))
        if t:
            own[:] = [c for c in own if c.variable.name not in plain.static]
    dyn = bbn.DynamicNetwork(starts, plain.later)
    assert bbn.DynamicNetwork([*starts, []], plain.later) == dyn
    assert pickle.loads(pickle.dumps(dyn)) == dyn
    assert dyn.with_template(dyn.template) == dyn
    for suffix in ("yaml", "json", "yaml.gz", "json.gz"):
        dyn.save(tmp_path / f"a.{suffix}")
        again = bbn.load(tmp_path / f"a.{suffix}")
        assert again == dyn
        assert hash(again) == hash(dyn)
        assert again.unroll(5) == dyn.unroll(5)


def copied(conditional):
    """The same numbers, another object."""
    return pickle.loads(pickle.dumps(conditional))


def test_families_are_one_where_that_is_said():
    """Equal numbers do not tie the first slice to the later ones; leaving it out does, and so does the same object."""
    rain, wet = bbn.CPT(RAIN, table=[0.3, 0.7]), bbn.CPT(WET, [RAIN], [[0.9, 0.1], [0.2, 0.8]])
    apart, left_out = bbn.DynamicNetwork([copied(rain)], [rain, wet]), bbn.DynamicNetwork([], [rain, wet])
    assert apart != left_out
    assert apart.unroll(3) == left_out.unroll(3)
    assert bbn.DynamicNetwork([rain], [rain, wet]) == left_out
    for dyn in (apart, left_out):
        assert bbn.DynamicNetwork(dyn.first, dyn.later) == dyn
    data = pd.DataFrame({"Rain": ["yes", "no", "no"] * 2, "Wet": ["yes"] * 6})
    lengths = [3, 3]
    assert bbn.fit(apart, data, lengths=lengths).conditional("Rain", 0).table.tolist() == [1, 0]
    assert bbn.fit(apart, data, lengths=lengths)["Rain"].table.tolist() == [0, 1]
    np.testing.assert_allclose(bbn.fit(left_out, data, lengths=lengths)["Rain"].table, [1 / 3, 2 / 3])


def test_files(tmp_path):
    dyn = umbrella()
    dyn.save(tmp_path / "a.yaml.gz")
    assert bbn.load(tmp_path / "a.yaml.gz") == dyn
    assert bbn.load("models/umbrella.yaml").metadata["source"].startswith("Russell")
    with pytest.raises(bbn.ModelError, match="unroll"):
        dyn.save(tmp_path / "a.bif")


def test_the_unrolled_joint_is_the_product_of_the_slices():
    net = umbrella().unroll(3)
    states = {"Rain[0]": "yes", "Rain[1]": "yes", "Rain[2]": "no"}
    states |= {"Umbrella[0]": "yes", "Umbrella[1]": "no", "Umbrella[2]": "no"}
    assert net.probability(states) == pytest.approx(0.5 * 0.7 * 0.3 * 0.9 * 0.1 * 0.8, rel=1e-12)


def test_states_of_a_parent_are_put_in_the_declared_order():
    start = bbn.CPT(RAIN, table=[0.5, 0.5])
    turned = bbn.CPT(WET, [bbn.Previous("Rain")], {"no": [0.1, 0.9], "yes": [0.8, 0.2]})
    stay = bbn.CPT(RAIN, [bbn.Previous("Rain")], [[0.7, 0.3], [0.3, 0.7]])
    dyn = bbn.DynamicNetwork([start, bbn.CPT(WET, table=[0.5, 0.5])], [stay, turned])
    assert dyn["Wet"].row("yes") == {"yes": 0.8, "no": 0.2}
    by_place = bbn.CPT(WET, [bbn.Previous("Rain")], [[0.8, 0.2], [0.1, 0.9]])
    assert bbn.DynamicNetwork([start, bbn.CPT(WET, table=[0.5, 0.5])], [stay, by_place]) == dyn


def test_static_variables_exist_once():
    sex = bbn.Variable("Sex", ["f", "m"])
    dyn = bbn.DynamicNetwork(
        [bbn.CPT(sex, table=[0.4, 0.6]), bbn.CPT(RAIN, [sex], [[0.5, 0.5], [0.2, 0.8]])],
        [bbn.CPT(RAIN, [sex, bbn.Previous("Rain")], np.full((2, 2, 2), 0.5))],
    )
    assert dyn.static == ("Sex",)
    assert dyn.unroll(2).names == ("Sex", "Rain[0]", "Rain[1]")
    assert dyn.interface == ("Sex", "Rain")
    assert dyn.n_parameters == 1 + 2 + 4


def test_a_second_order_parent_and_what_the_second_slice_has():
    second = bbn.CPT(RAIN, [bbn.Previous("Rain"), bbn.Previous("Rain", 2)], np.full((2, 2, 2), 0.5))
    start = bbn.CPT(RAIN, table=[0.1, 0.9])
    dyn = bbn.DynamicNetwork([start], [second])
    assert dyn.unroll(3)["Rain[1]"].table.tolist() == [0.1, 0.9]  # the last that first gives
    assert dyn.unroll(3).parents("Rain[2]") == ("Rain[1]", "Rain[0]")
    near = bbn.CPT(RAIN, [bbn.Previous("Rain")], [[0.7, 0.3], [0.2, 0.8]])
    dyn = bbn.DynamicNetwork([[start], [near]], [second])
    assert dyn.unroll(3).parents("Rain[1]") == ("Rain[0]",)


START, STAY = bbn.CPT(RAIN, table=[0.5, 0.5]), bbn.CPT(RAIN, [bbn.Previous("Rain")], [[0.7, 0.3], [0.3, 0.7]])


@pytest.mark.parametrize(
    ("first", "later", "said"),
    [
        ([], [STAY], "give 'Rain' a conditional in `first`"),
        ([START], [], "no later slice"),
        ([START], [bbn.CPT(RAIN, [bbn.Previous("Rian")], [[0.7, 0.3], [0.3, 0.7]])], "did you mean 'Rain'"),
        (
            [START],
            [bbn.CPT(RAIN, [bbn.Previous("Rain"), WET], np.full((2, 2, 2), 0.5))],
            "unknown parent 'Wet'",
        ),
        ([bbn.CPT(bbn.Variable("Rain", ["y", "n"]), table=[0.5, 0.5])], [STAY], "in slice 0"),
        ([START], [bbn.CPT(RAIN, [bbn.Previous("Rain")], np.full((2, 2), 0.5)), STAY], "two"),
        ([STAY], [STAY], "before the start"),
        (
            [START, bbn.CPT(WET, table=[0.5, 0.5])],
            [STAY, bbn.CPT(WET, [bbn.Previous("Rain")], {"yes": [1, 0], "maybe": [1, 0]})],
            "states",
        ),
        ([START], [STAY, bbn.CPT(bbn.Variable("W[0]", [0, 1]), table=[0.5, 0.5])], "slice's number"),
        (
            [START],
            [bbn.CPT(RAIN, [WET], np.eye(2)), bbn.CPT(WET, [RAIN], np.eye(2))],
            "cycle",
        ),
        (
            [START, bbn.CPT(bbn.Variable("S", [0, 1]), [RAIN], np.eye(2))],
            [STAY],
            "static",
        ),
        (7, [STAY], "list of CPTs"),
    ],
)
def test_what_is_not_well_formed_is_refused(first, later, said):
    with pytest.raises(bbn.ModelError, match=said):
        bbn.DynamicNetwork(first, later)


@pytest.mark.parametrize("lag", [0, -1, 1.5, True])
def test_lags_are_whole_numbers(lag):
    with pytest.raises(bbn.ModelError, match="lag"):
        bbn.Previous("Rain", lag)


def test_a_gaussian_asks_for_the_variable_where_nothing_tells():
    with pytest.raises(bbn.ModelError, match="the Variable itself"):
        bbn.Gaussian("X", [bbn.Previous("Y")], means=0.0, variances=1.0)
    x = bbn.Gaussian("X", [bbn.Previous(RAIN)], means=[0.0, 1.0], variances=1.0)
    assert [p.name for p in x.discrete_parents] == ["Rain[-1]"]
    y = bbn.Gaussian("X", [bbn.Previous("Y")], means=0.0, variances=1.0, weights=2.0)
    assert [p.name for p in y.continuous_parents] == ["Y[-1]"]


BAD_FILES = {
    "slice: {A: {states: [x, y], parents: ['A[-1]'], table: {x: [1, 0], y: [0, 1]}}}": "has none; give it 'first'",
    "slice:\n  A: {states: [x, y], parents: ['B[-1]'], first: [1, 0], table: [[1, 0], [0, 1]]}": "unknown parent",
    "slice:\n  A: {states: [x, y], parents: [B], table: [[1, 0], [0, 1]]}\n  B: {states: [x, y], parents: [A], table: "
    "[[1, 0], [0, 1]]}": "cycle",
    "slice:\n  A: {states: [x, y], parents: ['A[-1]'], first: [1, 0.5], table: [[1, 0], [0, 1]]}": "sum",
    "slice:\n  A: {states: [x, y], parents: ['A[-1]'], firts: [1, 0], table: [[1, 0], [0, 1]]}": "unknown key 'firts'",
    "slice:\n  A: {states: [x, y], starts: 3, table: [1, 0]}": "'starts' must be a list",
    "slice:\n  A: {states: [x, y], starts: [{parents: ['A[-1]'], table: [[1, 0], [0, 1]]}], "
    "table: [1, 0]}": "before the start",
    "slice: {}": "'slice' is empty",
    "slice:\n  A[0]: {states: [x, y], table: [1, 0]}": "slice's number",
}


@pytest.mark.parametrize("text", BAD_FILES)
def test_a_bad_file_says_where(text):
    with pytest.raises(bbn.ParseError, match=BAD_FILES[text].replace("'", ".").replace("[", r"\[")) as caught:
        loads(text, "yaml", path="x.yaml")
    assert "x.yaml" in str(caught.value)


@pytest.mark.parametrize("lag", ["-1000000000", "-" + "9" * 5000])
def test_parents_beyond_all_slices_are_refused_at_once(lag):
    text = bbn.io.dumps(bbn.example("umbrella"), "yaml").replace("Rain[-1]", f"Rain[{lag}]")
    with pytest.raises(bbn.ParseError, match=r"slices back|unknown parent"):
        bbn.io.loads(text, "yaml")
