"""Factor: the laws of the algebra, with labels on every axis."""

import pickle
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bbn.core.errors import BudgetError, EvidenceError, ModelError
from bbn.model.factor import Factor
from bbn.model.variable import Variable
from tests.support.strategies import factors, variable_lists

A, B = Variable("A", ["x", "y"]), Variable("B", [0, 1, 2])


@st.composite
def some_factors(draw, count):
    pool = draw(variable_lists(0, 4, max_card=4))
    return [draw(factors(pool)) for _ in range(count)]


@st.composite
def factor_and_names(draw):
    (f,) = draw(some_factors(1))
    return f, draw(st.lists(st.sampled_from(f.names), unique=True)) if f.names else []


def same(left, right):
    """Equal as functions of their labels, whatever the order of the axes."""
    assert sorted(left.names) == sorted(right.names)
    np.testing.assert_allclose(left.values, right.permute(left.names).values, rtol=1e-12, atol=1e-300)


def check_whole(f):
    """The promises every factor keeps: doubles in C order, read-only, one axis per variable."""
    assert f.values.dtype == np.float64
    assert f.values.flags.c_contiguous
    assert not f.values.flags.writeable
    assert f.values.shape == tuple(v.card for v in f.variables)


@given(some_factors(2))
def test_product_is_cell_by_cell(pair):
    """(f g)(x) = f(x) g(x), read by label."""
    f, g = pair
    h = f * g
    check_whole(h)
    for states in product(*(v.states for v in h.variables)):
        x = dict(zip(h.names, states, strict=True))
        assert h[states] == f[tuple(x[n] for n in f.names)] * g[tuple(x[n] for n in g.names)]


@given(some_factors(2))
def test_product_commutes(pair):
    same(pair[0] * pair[1], pair[1] * pair[0])


@given(some_factors(3))
def test_product_associates(three):
    f, g, h = three
    same((f * g) * h, f * (g * h))


@given(some_factors(2), st.data())
def test_product_distributes_over_sum_and_max(pair, data):
    """Σ_x f g = f Σ_x g, and so for max, where f has no x: what exact inference rests on."""
    f, g = pair
    own = [n for n in g.names if n not in f.names]
    names = data.draw(st.lists(st.sampled_from(own), unique=True)) if own else []
    same((f * g).sum_out(names), f * g.sum_out(names))
    same((f * g).max_out(names), f * g.max_out(names))


@given(factor_and_names(), st.data())
def test_axis_order_does_not_matter(case, data):
    f, names = case
    g = f.permute(data.draw(st.permutations(f.names)))
    check_whole(g)
    for states, value in f.to_dict().items():
        x = dict(
            zip(
                f.names, states if isinstance(states, tuple) and len(f.names) != 1 else (states,), strict=True
            )
        )
        assert g[tuple(x[n] for n in g.names)] == value
    same(f.sum_out(names), g.sum_out(names))
    same(f.max_out(names), g.max_out(names))
    assert g.permute(f.names) == f
    assert hash(g.permute(f.names)) == hash(f)


@given(factor_and_names(), st.data())
def test_restricting_and_summing_exchange(case, data):
    """Slicing x then summing y is summing y then slicing x; restricting reads the slice."""
    f, gone = case
    x = {v.name: data.draw(st.sampled_from(v.states)) for v in f.variables if v.name not in gone}
    same(f.restrict(x).sum_out(gone), f.sum_out(gone).restrict(x))
    same(f.restrict(x).max_out(gone), f.max_out(gone).restrict(x))
    check_whole(f.restrict(x))
    total = sum(f.sum_out(gone).to_dict().values())
    assert total == pytest.approx(sum(f.to_dict().values()), rel=1e-12, abs=0)


@given(factor_and_names(), st.randoms())
def test_summing_out_in_any_order_or_at_once(case, random):
    f, names = case
    one_by_one = f
    for name in random.sample(names, len(names)):
        one_by_one = one_by_one.sum_out(name)
    same(f.sum_out(names), one_by_one)
    check_whole(f.sum_out(names))
    check_whole(f.max_out(names))


@given(some_factors(2))
def test_quotient_undoes_product(pair):
    """(f g) / g = f where g is not 0, and 0 where it is."""
    f, g = pair
    support = Factor(g.variables, (g.values > 0).astype(float))
    same((f * g) / g, f * support)
    check_whole((f * g) / g)


@given(factor_and_names())
def test_dividing_by_a_marginal_gives_conditionals(case):
    """f / Σ_x f sums to 1 over x wherever Σ_x f is positive."""
    f, names = case
    below = f.sum_out(names)
    same((f / below).sum_out(names), Factor(below.variables, (below.values > 0).astype(float)))


@given(some_factors(1))
def test_normalise(single):
    (f,) = single
    if f.values.sum() == 0:
        with pytest.raises(ModelError, match="zero everywhere"):
            f.normalise()
    else:
        assert f.normalise().values.sum() == pytest.approx(1, abs=1e-12)
        same(f.normalise() * Factor([], f.values.sum()), f)


@given(some_factors(1))
def test_pickle_keeps_the_value_and_the_lock(single):
    (f,) = single
    twin = pickle.loads(pickle.dumps(f))
    assert twin == f
    assert hash(twin) == hash(f)
    check_whole(twin)


def test_equal_factors_hash_alike_even_with_minus_zero():
    plus, minus = Factor([A], [0.0, 1.0]), Factor([A], [-0.0, 1.0])
    assert plus == minus
    assert hash(plus) == hash(minus)


def test_it_copies_and_locks_its_array():
    """The caller's array stays the caller's: writable, and of no effect on the factor."""
    mine = np.asfortranarray(np.ones((2, 3)))
    f = Factor([A, B], mine)
    check_whole(f)
    mine[0, 0] = 7
    assert f["x", 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        f.values[0, 0] = 2
    with pytest.raises(AttributeError, match="frozen"):
        f.values = mine


@given(some_factors(1))
def test_frames_hold_every_cell(single):
    (f,) = single
    frame = f.to_frame()
    assert len(frame) == f.values.size
    assert frame.iloc[:, -1].tolist() == f.values.ravel().tolist()
    for axis, v in enumerate(f.variables):
        assert list(frame.iloc[:, axis].cat.categories) == list(v.states)


def test_a_variable_may_be_called_like_the_column_of_values():
    frame = Factor([Variable("value", ["x", "y"])], [1, 2]).to_frame()
    assert frame.iloc[:, 0].tolist() == ["x", "y"]
    assert frame.iloc[:, 1].tolist() == [1, 2]


def test_more_than_32_axes_are_refused():
    """Also by a product of factors that are each small enough, and before the memory is taken."""
    many = [Variable(f"v{i}", ["only"]) for i in range(33)]
    with pytest.raises(BudgetError, match="33 axes"):
        Factor(many, 1.0)
    left, right = Factor(many[:20], np.ones((1,) * 20)), Factor(many[20:], np.ones((1,) * 13))
    with pytest.raises(BudgetError, match="33 axes"):
        left * right
    wide = [Variable(f"v{i}", range(2)) for i in range(40)]
    left, right = Factor(wide[:20], np.ones((2,) * 20)), Factor(wide[20:], np.ones((2,) * 20))
    with pytest.raises(BudgetError, match=r"8\.8 TB"):
        left * right


def test_faults_are_named():
    f = Factor([A, B], np.ones((2, 3)))
    with pytest.raises(EvidenceError, match="no variable 'C'"):
        f.sum_out("C")
    with pytest.raises(EvidenceError, match="'B' has no state 7"):
        f.restrict({"B": 7})
    with pytest.raises(EvidenceError, match="needs 2 states, found 1"):
        f["x"]
    with pytest.raises(ModelError, match="cannot permute"):
        f.permute(["A"])
    with pytest.raises(ModelError, match="'A' has states"):
        f * Factor([Variable("A", ["y", "x"])], [1, 1])
    with pytest.raises(ModelError, match="by zero"):
        f / Factor([A], [0, 1])
    with pytest.raises(TypeError, match="unsupported operand"):
        f * 2
    with pytest.raises(TypeError, match="unsupported operand"):
        f / 2
