"""The networks that ship: all there, counted, the repository's numbers, small enough, cited."""

from __future__ import annotations

import gzip
import re
from importlib.util import find_spec
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import bbn
from bbn.io import loads
from bbn.io.formats import bif
from bbn.io.source_text import Source

ROOT = Path(__file__).parents[2]
COUNTS = {
    "asia": (8, 8, 18),
    "cancer": (5, 4, 10),
    "earthquake": (5, 4, 10),
    "survey": (6, 6, 21),
    "sachs": (11, 17, 178),
    "child": (20, 25, 230),
    "insurance": (27, 52, 1008),
    "water": (32, 66, 10083),
    "mildew": (35, 46, 540150),
    "alarm": (37, 46, 509),
    "barley": (48, 84, 114005),
    "hailfinder": (56, 66, 2656),
    "hepar2": (70, 123, 1453),
    "win95pts": (76, 112, 574),
    "pathfinder": (109, 195, 72079),
    "munin1": (186, 273, 15622),
    "andes": (223, 338, 1157),
    "diabetes": (413, 602, 429409),
    "pigs": (441, 592, 5618),
    "link": (724, 1125, 14211),
    "munin2": (1003, 1244, 69431),
    "munin3": (1041, 1306, 71059),
    "munin4": (1038, 1388, 80352),
    "munin": (1041, 1397, 80592),
}


def original(name: str) -> bytes:
    """The repository's own file, as pgmpy ships it; found without importing pgmpy, which takes seconds."""
    spec = find_spec("pgmpy")
    if spec is None or spec.origin is None:
        pytest.skip("pgmpy is not installed")
    return gzip.decompress((Path(spec.origin).parent / f"utils/example_models/{name}.bif.gz").read_bytes())


def written_tables(text: str) -> dict[str, dict[tuple[str, ...], list[float]]]:
    """The tables of a bnlearn file by plain line matching: variable to parents' states to row."""
    tables: dict[str, dict[tuple[str, ...], list[float]]] = {}
    for line in text.splitlines():
        if header := re.match(r"probability \( (\S+)", line):
            rows = tables[header[1]] = {}
        elif row := re.match(r"  (?:\((.*)\)|table) (.*);", line):
            rows[tuple(row[1].split(", ")) if row[1] else ()] = [float(x) for x in row[2].split(", ")]
    return tables


def test_all_of_them_ship():
    assert set(COUNTS) <= set(bbn.examples())


@pytest.mark.parametrize("name", COUNTS)
def test_nodes_arcs_and_free_parameters(name):
    net = bbn.example(name)
    assert (len(net), len(net.arcs), net.n_parameters) == COUNTS[name]
    assert net.name == name
    assert nx.is_directed_acyclic_graph(net.graph)
    assert net.metadata["description"]
    assert net.metadata["source"]


@pytest.mark.parametrize("name", COUNTS)
def test_the_numbers_are_the_repository_s(name):
    text = original(name).decode()
    net = bbn.example(name)
    assert net == loads(text, "bif")
    for child, rows in written_tables(text).items():
        cpt = net[child]
        assert len(rows) * cpt.variable.card == cpt.table.size
        for states, row in rows.items():
            index = tuple(parent.code(state) for parent, state in zip(cpt.parents, states, strict=True))
            written = np.array(row)
            if abs(written.sum() - 1) <= 1e-9:
                assert cpt.table[index].tolist() == row
            else:
                assert np.allclose(cpt.table[index], written / written.sum(), rtol=1e-14, atol=0)


@pytest.mark.parametrize("name", COUNTS)
def test_the_kernel_and_the_general_reader_agree(name):
    source = Source(original(name))
    general, usual = bif._BifReader(source).network(strict=False), bif.read(source)
    assert general == usual
    assert all(general[node].table.tobytes() == usual[node].table.tobytes() for node in general.names)


def test_rows_off_in_single_precision_are_counted():
    """barley has 5,190 such rows, mildew 906, alarm 6, all off by less than 3.1e-7."""
    for name, count in {"barley": 5190, "mildew": 906, "alarm": 6}.items():
        rows = [row for table in written_tables(original(name).decode()).values() for row in table.values()]
        off = np.array([abs(np.array(row).sum() - 1) for row in rows])
        assert (off > 1e-9).sum() == count
        assert off.max() <= 3.1e-7


def test_the_models_leave_room_in_a_wheel_of_5_mb():
    packed = sum(len(gzip.compress(path.read_bytes())) for path in (ROOT / "models").iterdir())
    assert packed < 2_500_000


def test_each_is_cited():
    page = (ROOT / "models/README.md").read_text()
    for name in bbn.examples():
        assert re.search(rf"^\| {name} \|", page, re.MULTILINE), name
    assert "CC BY-SA 3.0" in page
