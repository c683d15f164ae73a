"""Time: Baum-Welch against hmmlearn, dynamic networks against pgmpy and against unrolling."""

from __future__ import annotations

import time
import tracemalloc
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from hmmlearn import hmm

import bbn
from bbn.learning.incomplete.em import maximise
from bbn.learning.time.baum_welch import SequenceProblem
from bbn.learning.time.sequence_data import SequenceData
from tests.benchmarks.harness import Figure, Row
from tests.inference.time.test_wide import chains

TITLE = "Time"
NOTES = """
One iteration of Baum-Welch (an M step and the E step after it) on 1,000 sequences of 100 steps with 10 hidden states,
against hmmlearn's compiled "scaling" implementation from the same parameters: categorical emissions of 8 values, then
Gaussian ones of 4 columns, then the same Gaussians with 20 % of the numbers missing, which hmmlearn refuses (its time
is that without holes). Then smoothing 1,000 steps of a slice of three variables, against unrolling the network and
asking its junction tree; and against a network that was unrolled and compiled beforehand, whose evidence is also a
ready-made dict, while ours reads its table anew. Both give every belief as an array. Then filtering 1,000 steps of
the umbrella world, against pgmpy's `DBNInference`, and the time and memory of filtering a million steps of the three
variables in batches of 10,000. Last, smoothing 50 steps of eleven coupled hidden chains by messages that stay
products of tables, against the chain over their 2,048 joint states. One thread.
"""
N, T, STATES, VALUES, COLUMNS = 1000, 100, 10, 8, 4


def rows() -> Iterator[Row | Figure]:
    """EM per iteration, then questions."""
    yield _iteration("categorical", 2.0)
    yield _iteration("gaussian", 1.5)
    yield _iteration("gaussian", 0.75, holes=0.2)
    yield from _unrolled()
    yield _pgmpy()
    yield _million()
    yield _wide()


def _iteration(kind: str, target: float, holes: float = 0.0) -> Row:
    rng = np.random.default_rng(0)
    start, step = rng.dirichlet(np.ones(STATES)), rng.dirichlet(np.ones(STATES), STATES)
    state = bbn.Variable("State", list(range(STATES)))
    leaves: list[Any]
    if kind == "categorical":
        emit = rng.dirichlet(np.ones(VALUES), STATES)
        leaves = [bbn.CPT(bbn.Variable("x0", list(range(VALUES))), [state], emit)]
    else:
        means = rng.normal(0, 3, (STATES, COLUMNS))
        leaves = [bbn.Gaussian(f"x{k}", [state], means[:, k], np.ones(STATES)) for k in range(COLUMNS)]
    dyn = bbn.DynamicNetwork(
        [bbn.CPT(state, table=start)], [bbn.CPT(state, [bbn.Previous(state)], step), *leaves]
    )
    table = dyn.sample(T, n=N, seed=1).drop(columns=["sequence", "State"])
    X = table.to_numpy(float if kind == "gaussian" else int)
    lengths = [T] * N
    columns = {f"x{k}": X[:, k].copy() for k in range(X.shape[1])}
    if holes:
        columns = {name: np.where(rng.random(N * T) < holes, np.nan, own) for name, own in columns.items()}
    problem = SequenceProblem(dyn, SequenceData(dyn, columns, lengths=lengths), n_jobs=1)
    point = problem.evaluate(problem.start_tables())

    def ours() -> Any:
        return problem.evaluate(maximise(problem, point))

    model: Any
    if kind == "categorical":
        model = hmm.CategoricalHMM(STATES, n_iter=1, init_params="", tol=-np.inf, implementation="scaling")
        model.n_features, model.emissionprob_ = VALUES, emit
    else:
        model = hmm.GaussianHMM(
            STATES, covariance_type="diag", n_iter=1, init_params="", tol=-np.inf, implementation="scaling",
            min_covar=0.0, covars_prior=0.0, covars_weight=0.0,
        )  # fmt: skip
        model.n_features, model.means_, model.covars_ = COLUMNS, means, np.ones((STATES, COLUMNS))

    own = {n: np.array(v) for n, v in vars(model).items() if n in ("emissionprob_", "means_", "_covars_")}

    def theirs() -> Any:
        model.startprob_, model.transmat_ = start, step
        for name, value in own.items():
            setattr(model, name, value.copy())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(X, lengths)

    def check() -> None:
        found = problem.network(maximise(problem, point))
        if not holes:
            np.testing.assert_allclose(found["State"].table, theirs().transmat_, atol=1e-8)
        assert ours().log_likelihood > point.log_likelihood

    what = f"{kind} emissions" + (f", {holes:.0%} holes" if holes else "")
    return Row(
        f"Baum-Welch, one iteration, {what}", {"bbn": ours, "hmmlearn": theirs}, check, target, "hmmlearn"
    )


def _three() -> bbn.DynamicNetwork:
    rng = np.random.default_rng(0)
    a, b, c = (bbn.Variable(name, list(range(3))) for name in "ABC")
    return bbn.DynamicNetwork(
        [bbn.CPT(a, table=rng.dirichlet(np.ones(3)))],
        [
            bbn.CPT(a, [bbn.Previous(a)], rng.dirichlet(np.ones(3), 3)),
            bbn.CPT(b, [a], rng.dirichlet(np.ones(3), 3)),
            bbn.CPT(c, [b], rng.dirichlet(np.ones(3), 3)),
        ],
    )


def _unrolled() -> Iterator[Row]:
    dyn = _three()
    seen = dyn.sample(1000, seed=0)[["C"]]
    net = dyn.unroll(1000)
    evidence = {f"C[{t}]": value for t, value in enumerate(seen["C"].tolist())}

    def check() -> None:
        exact = net.posteriors(evidence)
        found = dyn.smooth(seen)["A"]
        np.testing.assert_allclose(found[500], exact["A[500]"].values, atol=1e-9)

    work = {"bbn": lambda: dyn.smooth(seen), "unrolled": lambda: dyn.unroll(1000).posteriors(evidence)}
    yield Row("smooth 1,000 steps of three variables", work, check, 5.0, "unrolled")
    net.posteriors(evidence)
    read = {
        "bbn": lambda: [dyn.smooth(seen)[name] for name in "ABC"],
        "unrolled": lambda: [own.values for own in net.posteriors(evidence).values()],
    }
    yield Row("the same against a plan compiled beforehand", read, check, None, "unrolled")


def _million() -> Figure:
    dyn, batch, steps = _three(), 10_000, 1_000_000
    codes = np.random.default_rng(0).integers(0, 3, steps).astype(np.int8)
    state = dyn.start().run({"C": codes[:batch]})[0]
    state = dyn.start()
    tracemalloc.start()
    start = time.perf_counter()
    peaks = []
    for i in range(0, steps, batch):
        state = state.run({"C": codes[i : i + batch]})[0]
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.reset_peak()
    seconds = time.perf_counter() - start
    tracemalloc.stop()
    return Figure(
        "filter 1,000,000 steps of three variables, 10,000 at a time",
        f"{seconds:.2f} s; at most {max(peaks) / 1e6:.1f} MB, {peaks[1] / 1e6:.1f} MB in the second batch",
        "flat memory",
    )


def _wide() -> Row:
    dyn, joint = chains(11, coupled=True), chains(11, coupled=True)
    joint.memo["wide"] = (0, 0)  # as if it were narrow
    rng = np.random.default_rng(0)
    seen = {f"S{i:02d}": rng.integers(0, 2, 50) for i in range(11)}

    def check() -> None:
        np.testing.assert_allclose(dyn.smooth(seen)["C07"], joint.smooth(seen)["C07"], atol=1e-9)

    work = {"bbn": lambda: dyn.smooth(seen), "joint states": lambda: joint.smooth(seen)}
    return Row("smooth 50 steps of eleven coupled chains", work, check, 2.0, "joint states")


def _pgmpy() -> Row:
    from pgmpy.factors.discrete import TabularCPD
    from pgmpy.inference import DBNInference
    from pgmpy.models import DynamicBayesianNetwork

    dyn = bbn.example("umbrella")
    other = DynamicBayesianNetwork([(("R", 0), ("U", 0)), (("R", 0), ("R", 1)), (("R", 1), ("U", 1))])
    other.add_cpds(
        TabularCPD(("R", 0), 2, [[0.5], [0.5]]),
        TabularCPD(("R", 1), 2, [[0.7, 0.3], [0.3, 0.7]], evidence=[("R", 0)], evidence_card=[2]),
        TabularCPD(("U", 0), 2, [[0.9, 0.2], [0.1, 0.8]], evidence=[("R", 0)], evidence_card=[2]),
        TabularCPD(("U", 1), 2, [[0.9, 0.2], [0.1, 0.8]], evidence=[("R", 1)], evidence_card=[2]),
    )
    other.initialize_initial_state()
    asked = DBNInference(other)
    steps = 1000
    seen = {"Umbrella": ["yes", "yes", "no", "yes"] * (steps // 4)}
    coded = {("U", t): int(value == "no") for t, value in enumerate(seen["Umbrella"])}

    def theirs() -> Any:
        return asked.forward_inference([("R", steps - 1)], coded)

    def check() -> None:
        found = theirs()[("R", steps - 1)].values
        np.testing.assert_allclose(dyn.filter(seen)["Rain"][-1], found, atol=1e-9)

    work: dict[str, Any] = {
        "bbn": lambda: dyn.filter(seen),
        "pgmpy": {"forward_inference, made beforehand": theirs},
    }
    return Row("filter 1,000 steps of the umbrella world", work, check, 1000.0, "pgmpy")
