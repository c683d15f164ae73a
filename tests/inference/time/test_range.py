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
