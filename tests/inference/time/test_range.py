"""Evidence that pulls one way and then the other: a state too improbable for a double comes back."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest

import bbn
from bbn.inference.time.chain import compile_chain
from bbn.inference.time.log_passes import log_forward, log_sides
from bbn.inference.time.sequences import read_sequences
from bbn.kernels.watch import Stopped, Watch, watched_by

ONE_WAY, BACK = 3000, 3265


def weighed(first: bool) -> list[bbn.CPT]:
    """A cause that never changes, what it does to a sign, and what is seen of the sign."""
    cause, sign = bbn.Variable("Cause", ["a", "b"]), bbn.Variable("Sign", ["p", "q"])
    seen = bbn.Variable("Seen", ["x", "y"])
    start = (
        bbn.CPT(cause, [], [0.5, 0.5])
        if first
        else bbn.CPT(cause, [bbn.Previous("Cause")], {("a",): [1, 0], ("b",): [0, 1]})
    )
    return [
        start,
        bbn.CPT(sign, [cause], [[0.9, 0.1], [0.2, 0.8]]),
        bbn.CPT(seen, [sign], [[0.3, 0.7], [0.7, 0.3]]),
    ]


@pytest.fixture(name="dyn", scope="module")
def fixture_dyn() -> bbn.DynamicNetwork:
    return bbn.DynamicNetwork(weighed(True), weighed(False))


SEEN = {"a": 0.9 * 0.3 + 0.1 * 0.7, "b": 0.2 * 0.3 + 0.8 * 0.7}
LOGS = {c: math.log(0.5) + ONE_WAY * math.log(p) + BACK * math.log1p(-p) for c, p in SEEN.items()}
SHARE = 1 / (1 + math.exp(LOGS["b"] - LOGS["a"]))
LOG = math.log(math.exp(LOGS["a"] - LOGS["b"]) + 1) + LOGS["b"]
ROWS = ["x"] * ONE_WAY + ["y"] * BACK


def test_smoothing_and_filtering(dyn: bbn.DynamicNetwork) -> None:
    assert 0.1 < SHARE < 0.9
    smooth = dyn.smooth({"Seen": ROWS})
    np.testing.assert_allclose(smooth["Cause"][:, 0], SHARE, rtol=1e-9)
    after_x = SHARE * 0.9 * 0.3 / SEEN["a"] + (1 - SHARE) * 0.2 * 0.3 / SEEN["b"]
    after_y = SHARE * 0.9 * 0.7 / (1 - SEEN["a"]) + (1 - SHARE) * 0.2 * 0.7 / (1 - SEEN["b"])
    np.testing.assert_allclose(smooth["Sign"][:ONE_WAY, 0], after_x, rtol=1e-9)
    np.testing.assert_allclose(smooth["Sign"][ONE_WAY:, 0], after_y, rtol=1e-9)
    filtered = dyn.filter({"Seen": ROWS})
    np.testing.assert_allclose(filtered["Cause"][-1, 0], SHARE, rtol=1e-9)
    np.testing.assert_allclose(filtered["Sign"][-1, 0], after_y, rtol=1e-9)
    assert filtered.log_evidence == pytest.approx(LOG, rel=1e-12)


def test_row_by_row_and_in_parts(dyn: bbn.DynamicNetwork) -> None:
    state = dyn.start()
    for row in ROWS:
        state = state.update({"Seen": row})
    in_parts = dyn.start().run({"Seen": ROWS[:ONE_WAY]})[0].run({"Seen": ROWS[ONE_WAY:]})[0]
    for found in (state, in_parts, dyn.start().run({"Seen": ROWS})[0]):
        assert found["Cause"][0] == pytest.approx(SHARE, rel=1e-9)
        assert found.log_evidence == pytest.approx(LOG, rel=1e-12)


def coin(prior: list[float], heads: tuple[float, float] = (0.3, 0.7)) -> bbn.DynamicNetwork:
    """A bias that never changes, and tosses."""
    bias, toss = bbn.Variable("Bias", ["low", "high"]), bbn.Variable("Toss", ["h", "t"])
    tossed = bbn.CPT(toss, [bias], [[p, 1 - p] for p in heads])
    stays = bbn.CPT(bias, [bbn.Previous("Bias")], {("low",): [1, 0], ("high",): [0, 1]})
    return bbn.DynamicNetwork([bbn.CPT(bias, [], prior), tossed], [stays, tossed])


@pytest.mark.parametrize("lag", [1, 5, 899, 900, 1799, 5000])
@pytest.mark.parametrize("heads", [(0.3, 0.7), (1e-300, 2e-300)])
def test_fixed_lag_against_logarithms(lag: int, heads: tuple[float, float]) -> None:
    codes = np.repeat([0, 1], 900)
    found = coin([0.5, 0.5], heads).smooth({"Toss": np.array(["h", "t"])[codes].tolist()}, lag)["Bias"]
    low, high = np.log([[p, 1 - p] for p in heads])
    odds = (high - low)[codes].cumsum()[np.minimum(np.arange(1800) + lag, 1799)]  # ln of high against low
    # logarithms add up to -1800 ln 0.7, or -900 ln 1e-300: so many digits are left behind the point
    close = 1e-9 if heads[0] > 0.1 else 3e-7
    np.testing.assert_allclose(found[:, 0], np.exp(-np.logaddexp(0, odds)), rtol=close, atol=0)
    if heads == (0.3, 0.7):
        assert found[-1, 0] == pytest.approx(0.5, rel=1e-9)


def test_fixed_lag_of_what_was_summed_out(dyn: bbn.DynamicNetwork) -> None:
    found = dyn.smooth({"Seen": ROWS[2800:3200]}, 400)
    whole = dyn.smooth({"Seen": ROWS[2800:3200]})
    np.testing.assert_allclose(found["Sign"], whole["Sign"], rtol=1e-9)
    rows = ["x"] * 1200 + ["y"] * 1306
    found, whole = dyn.smooth({"Seen": rows}, 2506), dyn.smooth({"Seen": rows})
    np.testing.assert_allclose(found["Sign"], whole["Sign"], rtol=1e-9)
    np.testing.assert_allclose(found["Cause"], whole["Cause"], rtol=1e-9)


@pytest.mark.parametrize("lag", [None, 0, 5, 1500])
@pytest.mark.parametrize(("prior", "toss"), [([1.0, 0.0], "h"), ([0.0, 1.0], "t")])
def test_an_impossible_state_that_evidence_favours(lag: int | None, prior: list[float], toss: str) -> None:
    found = coin(prior).smooth({"Toss": [toss] * 1800}, lag)["Bias"]
    assert np.array_equal(found, np.tile(prior, (1800, 1)))


def pulled(n: int, states: int) -> tuple[bbn.DynamicNetwork, dict[str, list[str]]]:
    """A cause of many states that never changes, and evidence out of a double's range."""
    cause, toss = bbn.Variable("Bias", list(range(states))), bbn.Variable("Toss", ["h", "t"])
    heads = np.linspace(0.3, 0.7, states)
    tossed = bbn.CPT(toss, [cause], np.stack([heads, 1 - heads], axis=1))
    first, stays = (
        bbn.CPT(cause, [], np.full(states, 1 / states)),
        bbn.CPT(cause, [bbn.Previous(cause)], np.eye(states)),
    )
    return bbn.DynamicNetwork([first, tossed], [stays, tossed]), {"Toss": ["h"] * n + ["t"] * n}


def test_logarithms_are_priced_against_the_memory_limit() -> None:
    dyn, seen = pulled(700, 64)
    expected = dyn.smooth(seen, 4)["Bias"]
    size = 8 * 1400 * 64
    with pytest.raises(bbn.BudgetError, match=r"logarithms of 1,400"):
        dyn.smooth(seen, 4, memory_limit=8 * size)
    tracemalloc.start()
    found = dyn.smooth(seen, 4, memory_limit=14 * size)["Bias"]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 14 * size
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("lag", [None, 0, 4])
def test_logarithms_hear_a_time_limit(lag: int | None) -> None:
    dyn, seen = pulled(600, 8)
    chain = compile_chain(dyn, read_sequences(dyn, seen))
    watch = Watch()
    watch.stop()
    with watched_by(watch):
        with pytest.raises(Stopped):
            log_forward(chain, 0)
        with pytest.raises(Stopped):
            log_sides(chain, 0, lag)
    with pytest.raises(bbn.TimeLimitError, match=r"time_limit=1e-09 seconds; allow more time.*fewer steps"):
        dyn.smooth(seen, lag, time_limit=1e-9)
    assert np.array_equal(dyn.smooth(seen, lag, time_limit=600)["Bias"], dyn.smooth(seen, lag)["Bias"])


@pytest.mark.parametrize("question", ["filter", "smooth", "forecast", "viterbi", "log_likelihood"])
def test_every_question_takes_a_time_limit(question: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dyn, seen = coin([0.5, 0.5]), {"Toss": ["h", "t"] * 10}
    ask = getattr(dyn, question)
    assert ask(seen, time_limit=600) == ask(seen)
    with pytest.raises(ValueError, match="time_limit is -1"):
        ask(seen, time_limit=-1)
    monkeypatch.setenv("BBN_TIME_LIMIT", "never")
    with pytest.raises(ValueError, match="BBN_TIME_LIMIT"):
        ask(seen)
