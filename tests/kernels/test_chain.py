"""The kernels of chains against sums over all paths, and the twins against each other."""

import importlib
import itertools

import numpy as np
import pytest

from bbn import kernels

TWINS = [importlib.import_module("bbn.kernels.pure.chain")]
if kernels.COMPILED:
    TWINS.append(importlib.import_module("bbn.kernels.compiled.chain"))


def random_chain(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    states, lengths = int(rng.integers(1, 4)), rng.integers(1, 6, int(rng.integers(1, 4)))
    steps, n_matrices = int(lengths.sum()), int(rng.integers(1, 3))
    return {
        "ptr": np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        "start": rng.random((2, states)),
        "start_of": rng.integers(0, 2, len(lengths)).astype(np.int32),
        "matrices": rng.random((n_matrices, states, states)),
        "which": rng.integers(0, n_matrices, steps).astype(np.int32),
        "likelihood": rng.random((steps, states)),
    }


def paths(chain: dict[str, np.ndarray], s: int) -> dict[tuple[int, ...], float]:
    """Every path of a sequence and its weight."""
    begin, end = chain["ptr"][s : s + 2]
    found = {}
    for path in itertools.product(range(chain["start"].shape[1]), repeat=int(end - begin)):
        weight = chain["start"][chain["start_of"][s], path[0]]
        for k, t in enumerate(range(begin, end)):
            weight = weight * chain["likelihood"][t, path[k]]
            if k:
                weight = weight * chain["matrices"][chain["which"][t], path[k - 1], path[k]]
        found[path] = float(weight)
    return found


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.__name__.split(".")[2])
@pytest.mark.parametrize("seed", range(12))
def test_passes_are_sums_over_all_paths(twin, seed):
    chain = random_chain(seed)
    shape = chain["likelihood"].shape
    alpha, scale = np.empty(shape), np.empty(len(chain["which"]))
    twin.forward(*chain.values(), alpha, scale)
    gamma, right = np.empty(shape), np.empty(shape)
    start_sum, pair_sum = np.zeros(chain["start"].shape), np.zeros(chain["matrices"].shape)
    weights = np.random.default_rng(seed).random(len(chain["start_of"]))
    given = [chain[name] for name in ("start_of", "matrices", "which", "likelihood")]
    twin.backward(chain["ptr"], weights, *given, alpha, scale, gamma, right, start_sum, pair_sum)
    true_starts, true_pairs = np.zeros(start_sum.shape), np.zeros(pair_sum.shape)
    for s in range(len(chain["start_of"])):
        begin, end = chain["ptr"][s : s + 2]
        found = paths(chain, s)
        total = sum(found.values())
        assert np.log(scale[begin:end]).sum() == pytest.approx(np.log(total), abs=1e-11)
        expected = np.zeros((end - begin, shape[1]))
        for path, weight in found.items():
            expected[range(len(path)), path] += weight / total
            true_starts[chain["start_of"][s], path[0]] += weights[s] * weight / total
            for k in range(1, len(path)):
                true_pairs[chain["which"][begin + k], path[k - 1], path[k]] += weights[s] * weight / total
        np.testing.assert_allclose(gamma[begin:end], expected, atol=1e-12)
    np.testing.assert_allclose(start_sum * chain["start"], true_starts, atol=1e-12)
    np.testing.assert_allclose(pair_sum * chain["matrices"], true_pairs, atol=1e-12)


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.__name__.split(".")[2])
@pytest.mark.parametrize("seed", range(12))
def test_the_best_path_is_the_largest_of_all(twin, seed):
    chain = random_chain(seed)
    path, logs = np.empty(len(chain["which"]), np.int32), np.empty(len(chain["start_of"]))
    logged = [np.log(chain[name]) if chain[name].dtype == float else chain[name] for name in chain]
    twin.best_paths(*logged, path, logs)
    for s in range(len(logs)):
        found = paths(chain, s)
        best = max(found, key=found.__getitem__)
        assert tuple(path[chain["ptr"][s] : chain["ptr"][s + 1]]) == best
        assert logs[s] == pytest.approx(np.log(found[best]), abs=1e-12)


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.__name__.split(".")[2])
def test_a_lost_sequence_leaves_the_others_alone(twin):
    chain = random_chain(3)
    chain["likelihood"][chain["ptr"][1] - 1] = 0.0
    alpha, scale = np.ones(chain["likelihood"].shape), np.ones(len(chain["which"]))
    twin.forward(*chain.values(), alpha, scale)
    assert scale[chain["ptr"][1] - 1] == 0
    assert (scale[chain["ptr"][1] :] > 0).all()
    gamma = np.ones(alpha.shape)
    sums = np.zeros(chain["start"].shape), np.zeros(chain["matrices"].shape)
    given = [chain[name] for name in ("start_of", "matrices", "which", "likelihood")]
    twin.backward(chain["ptr"], np.ones(len(chain["start_of"])), *given, alpha, scale, gamma, None, *sums)
    assert not gamma[: chain["ptr"][1]].any()
    np.testing.assert_allclose(gamma[chain["ptr"][1] :].sum(axis=1), 1.0)


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.__name__.split(".")[2])
def test_arrays_that_do_not_fit_are_refused(twin):
    chain = random_chain(1)
    alpha, scale = np.empty(chain["likelihood"].shape), np.empty(len(chain["which"]))
    for name, wrong in (
        ("ptr", chain["ptr"] + 1),
        ("which", chain["which"] + 100),
        ("start_of", chain["start_of"] - 5),
        ("matrices", chain["matrices"][:, :, :0]),
    ):
        if name == "which" and len(wrong) == len(chain["start_of"]):
            continue
        with pytest.raises(ValueError):
            twin.forward(*{**chain, name: np.ascontiguousarray(wrong)}.values(), alpha, scale)
    with pytest.raises(ValueError):
        twin.multiply_rows(np.ones((2, 3)), np.array([2], np.int32), np.ones((1, 3)))
    with pytest.raises(ValueError):
        twin.add_rows(np.array([-1], np.int32), np.ones((1, 3)), np.ones((2, 3)))


@pytest.mark.parametrize("tiny", [None, 1e-250], ids=["evidence", "matrix"])
def test_a_state_that_may_come_back_is_not_lost_in_silence(tiny: float | None) -> None:
    """What is possible and too small for a double is given up, for logarithms to answer; zeros are not."""
    ptr, n = np.array([0, 1800], np.int64), 1800
    likelihood = np.array([[0.3, 0.7]] * 900 + [[0.7, 0.3]] * 900)
    matrix = np.eye(2)[None]
    if tiny is not None:
        matrix = np.array([[[1 - tiny, tiny], [0.0, 1.0]]])
        likelihood = np.array([[1.0, 1e-90]] * n)
    start = np.array([[0.5, 0.5]]) if tiny is None else np.array([[1.0, 0.0]])
    for kernel in TWINS:
        alpha, scale = np.empty((n, 2)), np.empty(n)
        which, start_of = np.zeros(n, np.int32), np.zeros(1, np.int32)
        kernel.forward(ptr, start, start_of, matrix, which, likelihood, alpha, scale)
        assert scale[-1] == 0
        certain = np.array([[1.0, 0.0]])
        kernel.forward(ptr, certain, start_of, np.eye(2)[None], which, likelihood, alpha, scale)
        assert scale[-1] > 0
        assert (alpha == certain).all()
