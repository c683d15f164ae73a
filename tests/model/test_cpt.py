"""CPT: every way of writing a table gives the same checked array."""

import pickle
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bbn.core.errors import ModelError
from bbn.model.cpt import CPT
from bbn.model.variable import Variable
from tests.support.strategies import cpts

A, B = Variable("A", ["yes", "no"]), Variable("B", [0, 1, 2])
C = Variable("C", ["lo", "hi"])


def rows_of(cpt):
    """(states of the parents, row as a list), by plain indexing."""
    for codes in product(*(range(p.card) for p in cpt.parents)):
        yield tuple(p.states[c] for p, c in zip(cpt.parents, codes, strict=True)), cpt.table[codes].tolist()


@given(cpts())
def test_every_way_of_writing_a_table_reads_back_bit_for_bit(cpt):
    """Nested lists, rows by parents' states, rows by state, a DataFrame."""
    states = cpt.variable.states
    lists = dict(rows_of(cpt))
    mappings = {key: dict(zip(states, row, strict=True)) for key, row in lists.items()}
    for table in (cpt.table.tolist(), lists, mappings, cpt.to_frame()):
        assert CPT(cpt.variable, cpt.parents, table) == cpt
    if len(cpt.parents) == 1:
        assert CPT(cpt.variable, cpt.parents, {key[0]: row for key, row in lists.items()}) == cpt
    if not cpt.parents:
        assert CPT(cpt.variable, table=lists[()]) == CPT(cpt.variable, table=mappings[()]) == cpt


@given(cpts(), st.randoms())
def test_a_frame_may_have_its_rows_levels_and_columns_in_any_order(cpt, random):
    frame = cpt.to_frame().sample(frac=1, random_state=random.randrange(2**32), axis=0)
    frame = frame.sample(frac=1, random_state=random.randrange(2**32), axis=1)
    if len(cpt.parents) > 1:
        frame = frame.reorder_levels(random.sample([p.name for p in cpt.parents], len(cpt.parents)))
    assert CPT(cpt.variable, cpt.parents, frame) == cpt


@given(cpts())
def test_row_and_factor_read_the_same_numbers(cpt):
    for states, row in rows_of(cpt):
        assert list(cpt.row(*states).items()) == list(zip(cpt.variable.states, row, strict=True))
        for state, p in zip(cpt.variable.states, row, strict=True):
            assert cpt.factor()[(*states, state)] == p


@given(cpts())
def test_pickle_keeps_the_value_and_the_lock(cpt):
    twin = pickle.loads(pickle.dumps(cpt))
    assert twin == cpt
    assert hash(twin) == hash(cpt)
    assert not twin.table.flags.writeable


def test_it_copies_locks_and_orders_its_array():
    mine = np.asfortranarray(np.full((2, 3, 2), 0.5))
    cpt = CPT(C, [A, B], mine)
    mine[...] = 9
    assert cpt.table.max() == 0.5
    assert cpt.table.flags.c_contiguous
    with pytest.raises(ValueError, match="read-only"):
        cpt.table[0, 0, 0] = 1
    with pytest.raises(AttributeError, match="frozen"):
        cpt.table = mine


def test_equal_tables_hash_alike_even_with_minus_zero():
    assert CPT(A, table=[1.0, 0.0]) == CPT(A, table=[1.0, -0.0])
    assert hash(CPT(A, table=[1.0, 0.0])) == hash(CPT(A, table=[1.0, -0.0]))


@pytest.mark.parametrize("off", [1e-9, -1e-9, 3e-10])
def test_a_row_off_by_rounding_is_kept_bit_for_bit(off):
    row = [0.25, 0.75 + off * 0.999]
    assert CPT(A, table=row).table.tolist() == row


@pytest.mark.parametrize("off", [2e-9, -2e-9, 9.9e-7, -9.9e-7])
def test_a_row_off_by_single_precision_is_renormalised_and_its_neighbours_kept(off):
    kept = [1 / 3, 2 / 3]
    cpt = CPT(A, [C], [[0.25, 0.75 + off], kept])
    assert cpt.table[0].sum() == pytest.approx(1, abs=1e-15)
    assert cpt.table[0, 0] == pytest.approx(0.25 / (1 + off), abs=1e-16)
    assert cpt.table[1].tolist() == kept


@pytest.mark.parametrize("off", [1.1e-6, -1.1e-6, 0.5])
def test_a_row_off_by_more_is_an_error(off):
    with pytest.raises(ModelError, match="sums to"):
        CPT(A, table=[0.25, 0.75 + off])


def test_uniform():
    assert CPT.uniform(B, [A]).table.tolist() == [[1 / 3] * 3] * 2


@given(st.integers(1, 200))
def test_uniform_passes_its_own_check_at_any_size(card):
    variable = Variable("V", range(card))
    assert CPT(variable, table=CPT.uniform(variable).table) == CPT.uniform(variable)


def test_deterministic_puts_1_where_the_function_says():
    cpt = CPT.deterministic(C, [A, B], lambda a, b: "hi" if a == "yes" and b else "lo")
    for (a, b), row in rows_of(cpt):
        assert row == ([0.0, 1.0] if a == "yes" and b > 0 else [1.0, 0.0])


@given(st.lists(st.floats(0, 1), max_size=4), st.floats(0, 1), st.booleans())
def test_noisy_or_is_one_minus_the_product_of_failures(probabilities, leak, flags):
    """P(not holding) = (1 − leak) ∏ (1 − p) over the parents that hold, whichever state means holding."""
    states = [False, True] if flags else ["yes", "no"]
    holds = True if flags else "yes"
    parents = [Variable(f"P{i}", states) for i in range(len(probabilities))]
    cpt = CPT.noisy_or(Variable("V", states), parents, probabilities, leak)
    by_name = CPT.noisy_or(
        Variable("V", states), parents, {f"P{i}": p for i, p in enumerate(probabilities)}, leak
    )
    assert by_name == cpt
    for setting in product(states, repeat=len(parents)):
        fails = 1 - leak
        for state, p in zip(setting, probabilities, strict=True):
            fails *= 1 - p if state == holds else 1
        assert cpt.row(*setting)[holds] == pytest.approx(1 - fails, abs=1e-15)
    assert CPT(cpt.variable, cpt.parents, cpt.table) == cpt


def test_numbers_of_other_kinds_are_taken_as_they_are():
    from decimal import Decimal
    from fractions import Fraction

    half = CPT(A, table=[0.5, 0.5])
    for table in (
        [Fraction(1, 2)] * 2,
        [Decimal("0.5")] * 2,
        np.array([0.5, 0.5], dtype=np.float32),
        (0.5, 0.5),
    ):
        assert CPT(A, table=table) == half
    assert CPT(A, table=[1, 0]) == CPT(A, table=[True, False])


def test_it_prints_as_a_table():
    text = str(CPT(A, [B, C], np.full((3, 2, 2), 0.5)))
    assert text.splitlines()[0] == "P(A | B, C)"
    assert len(text.splitlines()) == 3 + 6


@pytest.mark.parametrize(
    "states", [["yes", "no"], ["no", "yes"], [0, 1], [False, True], ["absent", "present"], ["False", "True"]]
)
def test_noisy_or_knows_which_state_holds_by_its_word(states):
    positive = next(s for s in states if str(s).lower() in ("yes", "1", "true", "present"))
    negative = next(s for s in states if s != positive)
    cause, effect = Variable("C", states), Variable("E", states)
    cpt = CPT.noisy_or(effect, [cause], [0.8], leak=0.1)
    assert cpt.row(positive)[positive] == pytest.approx(1 - 0.9 * 0.2)
    assert cpt.row(negative)[positive] == pytest.approx(0.1)


def test_noisy_or_never_guesses_which_state_holds():
    cause, effect = Variable("C", ["left", "right"]), Variable("E", ["no", "yes"])
    with pytest.raises(ModelError, match="holds="):
        CPT.noisy_or(effect, [cause], [0.8])
    with pytest.raises(ModelError, match="not a state"):
        CPT.noisy_or(effect, [cause], [0.8], holds={"C": "middle"})
    cpt = CPT.noisy_or(effect, [cause], [0.8], holds={"C": "right"})
    assert cpt.row("right")["yes"] == pytest.approx(0.8)
    assert cpt.row("left")["yes"] == 0
