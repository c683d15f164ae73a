"""Evidence that pulls one way and then the other: a state too improbable for a double comes back."""

from __future__ import annotations

import math

import numpy as np
import pytest

import bbn

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
