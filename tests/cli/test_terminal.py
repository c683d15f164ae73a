"""Names and texts from a hostile file: nothing that steers a terminal reaches it, and piped data stay exact."""

import argparse
import ast
import contextlib
import csv
import io
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bbn
from bbn.cli import main
from bbn.cli.parser import make_parser
from bbn.core.display import visible

ESC = "\x1b]0;pwned\x07\x1b[2J"
C1 = "\x9b31m"
TURNED = "\u202egnp.exe"
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
CAUSE, EFFECT = f"A{ESC}", f"B{C1}{TURNED}"

COMMANDS = {
    "show": ["show", "FILE"],
    "show one": ["show", "FILE", CAUSE],
    "brief": ["show", "FILE", "--brief"],
    "query": ["query", "FILE", "-e", f"{EFFECT}=no"],
    "query one": ["query", "FILE", CAUSE],
    "mpe": ["mpe", "FILE"],
    "mpe -k": ["mpe", "FILE", "-k", "3"],
    "explain": ["explain", "FILE", CAUSE, "-e", f"{EFFECT}=no"],
    "ask next": ["explain", "FILE", CAUSE, "--ask-next"],
    "sensitivity": ["explain", "FILE", CAUSE, "--sensitivity"],
    "check": ["check", "FILE", "BROKEN"],
    "unknown node": ["show", "FILE", f"C{ESC}"],
    "unknown state": ["query", "FILE", CAUSE, "-e", f"{EFFECT}=maybe{ESC}"],
    "unknown command": [f"quarry{ESC}"],
    "unknown file": ["show", f"nowhere{ESC}.yaml"],
    "lossy": ["convert", "FILE", "out.net"],
    "solve": ["solve", "DECISION"],
    "solve given": ["solve", "DECISION", "-e", f"{CAUSE}=no"],
    "solve nonsense": ["solve", "DECISION", "-e", f"{CAUSE}=maybe{ESC}"],
    "filter": ["filter", "TIME", "ROWS"],
    "smooth": ["filter", "TIME", "ROWS", "--smooth", "--sequence", f"id{ESC}"],
    "viterbi": ["filter", "TIME", "ROWS", "--viterbi"],
    "forecast": ["filter", "TIME", "ROWS", "--forecast", "2"],
    "filter by nothing": ["filter", "TIME", "ROWS", "--sequence", f"nothing{ESC}"],
    "learn": ["learn", "RAW", "-o", f"out{ESC}.json"],
    "learn a target": ["learn", "RAW", "--target", CAUSE, "-o", f"out{ESC}.json"],
    "learn over time": [
        "learn",
        "ROWS",
        "--structure",
        "TIME",
        "--sequence",
        f"id{ESC}",
        "-o",
        f"out{ESC}.json",
    ],
    "learn a wrong kind": ["learn", "RAW", "--kinds", f"{CAUSE}=colour{ESC}"],
    "learn nothing": ["learn", f"nowhere{ESC}.csv"],
    "predict nothing": ["predict", "FILE", "RAW", "--target", f"nobody{ESC}"],
    "sample nonsense": ["sample", "FILE", "-e", f"{EFFECT}=maybe{ESC}"],
    "mpe nonsense": ["mpe", "FILE", "-e", f"{EFFECT}=maybe{ESC}"],
    "plot nowhere": ["plot", "FILE", "-o", f"nowhere{ESC}/x.svg"],
    "export": ["export", "FILE", "-o", f"nowhere{ESC}/x.html"],
    "explore nothing": ["explore", f"nowhere{ESC}.yaml"],
    "completion nonsense": ["completion", f"fish{ESC}"],
    "examples nonsense": ["examples", f"--long{ESC}"],
    "demo nonsense": ["demo", f"x{ESC}"],
}
DATA = {
    "query json": ["query", "FILE", CAUSE, "--format", "json"],
    "query csv": ["query", "FILE", CAUSE, "--format", "csv"],
    "show csv": ["show", "FILE", "--format", "csv"],
    "sample": ["sample", "FILE", "-n", "5", "--seed", "1"],
    "convert": ["convert", "FILE", "-", "--to", "bif"],
    "plot": ["plot", "FILE"],
    "plan": ["plan", "FILE", CAUSE, "--format", "json"],
    "completion": ["completion", "bash", "--line", "bbn query FILE "],
    "solve json": ["solve", "DECISION", "--format", "json"],
    "solve csv": ["solve", "DECISION", "--format", "csv"],
    "filter json": ["filter", "TIME", "ROWS", "--format", "json"],
    "filter csv": ["filter", "TIME", "ROWS", "--format", "csv"],
    "predict": ["predict", "FILE", "RAW", "--target", CAUSE, "--proba"],
    "learn to a terminal": ["learn", "RAW"],
}


def test_every_command_is_tried() -> None:
    (commands,) = [a.choices for a in make_parser()._actions if isinstance(a, argparse._SubParsersAction)]
    assert set(commands) <= {words[0] for words in (*COMMANDS.values(), *DATA.values())}


@pytest.fixture
def arguments(tmp_path, monkeypatch):
    """The words of a command with its files, which are in the working folder."""
    monkeypatch.chdir(tmp_path)
    cause = bbn.CPT(bbn.Variable(CAUSE, [f"yes{ESC}", "no"]), table=[0.2, 0.8])
    effect = bbn.CPT(
        bbn.Variable(EFFECT, [f"yes{C1}\nmore", "no"]), [cause.variable], table=[[0.3, 0.7], [0.6, 0.4]]
    )
    net = bbn.BayesianNetwork([cause, effect], f"title{ESC}", {f"key{ESC}": f"text{ESC}"})
    net.save("hostile.yaml")
    net.save("hostile.json")
    Path(f"broken{ESC}.yaml").write_text(
        "nodes: {A: {states: [a, b], parents: ['\\e[2J'], table: [0.5, 0.5]}}"
    )
    files = {"FILE": "hostile.json", "BROKEN": f"broken{ESC}.yaml", **other_models(cause, effect)}
    return lambda words: [files.get(word, word.replace("FILE", "hostile.json")) for word in words]


def other_models(cause, effect):
    """A decision network, a dynamic one, its steps, and a raw table, all of them hostile."""
    act = bbn.Decision(f"Do{ESC}", [f"go{C1}\nnow", "stay"], observes=[CAUSE])
    gain = bbn.Utility(f"Gain{C1}", [cause.variable, act.variable], [[5, 0], [-3, 1]])
    bbn.DecisionNetwork([cause, act, gain]).save("decision.json")
    stays = bbn.CPT(cause.variable, [bbn.Previous(CAUSE)], [[0.7, 0.3], [0.2, 0.8]])
    bbn.DynamicNetwork([cause], [stays, effect]).save("time.json")
    yes, no = effect.variable.states
    pd.DataFrame({EFFECT: [yes, no, no], f"id{ESC}": [f"q{ESC}"] * 3}).to_csv(f"rows{ESC}.csv", index=False)
    rng = np.random.default_rng(0)
    same = rng.random(300) < 0.8
    first = rng.random(300) < 0.5
    columns = {
        CAUSE: np.where(first, f"yes{ESC}", "no"),
        EFFECT: np.where(first == same, yes, no),
        f"size{ESC}": rng.normal(size=300),
        f"key{ESC}": [f"k{i}{ESC}" for i in range(300)],
    }
    pd.DataFrame(columns).to_csv(f"raw{ESC}.csv", index=False)
    return {
        "DECISION": "decision.json",
        "TIME": "time.json",
        "ROWS": f"rows{ESC}.csv",
        "RAW": f"raw{ESC}.csv",
    }


def clean(text):
    found = STEERING.search(text)
    return found is None or f"{found[0]!r} in {text[max(0, found.start() - 40) : found.start() + 40]!r}"


@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_meant_for_a_person_is_escaped(name, arguments, capsys):
    with contextlib.suppress(SystemExit):
        main(arguments(COMMANDS[name]))
    told = "".join(capsys.readouterr())
    assert told
    assert clean(told) is True
    assert "\\x" in told  # what was there can still be read


@pytest.mark.parametrize("name", [*COMMANDS, *DATA])
def test_nothing_steers_a_terminal(name, arguments):
    told = on_terminal(arguments({**COMMANDS, **DATA}[name]))
    assert told
    assert clean(told) is True


def on_terminal(words):
    """What a terminal gets to see of a command."""
    parent, child = pty.openpty()
    environment = {
        **os.environ,
        "NO_COLOR": "1",
        "PYTHONUTF8": "1",
        "PYTHONPATH": str(Path(bbn.__file__).parents[1]),
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "bbn", *words], stdin=child, stdout=child, stderr=child, env=environment
    )
    os.close(child)
    told = b""
    while True:
        try:
            more = os.read(parent, 1 << 16)
        except OSError:  # it has gone
            break
        if not more:
            break
        told += more
    process.wait()
    os.close(parent)
    return told.decode().replace("\r\n", "\n")


def test_piped_data_are_exact(arguments, capsys):
    main(arguments(DATA["query csv"]))
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert [row[0] for row in rows] == [CAUSE, f"yes{ESC}", "no"]
    main(arguments(DATA["query json"]))
    told = capsys.readouterr().out
    assert clean(told) is True
    assert [row[CAUSE] for row in json.loads(told)["rows"]] == [f"yes{ESC}", "no"]
    main(arguments(["convert", "FILE", "-", "--to", "json"]))
    assert bbn.io.loads(capsys.readouterr().out, "json") == bbn.load("hostile.json")


def test_tables_are_escaped_in_python_too(arguments):
    net = bbn.load("hostile.json")
    for shown in (
        net[EFFECT],
        net.query(CAUSE),
        net.posteriors(),
        net.mpe(),
        net.explain(CAUSE, {EFFECT: "no"}),
    ):
        assert clean(str(shown)) is True
        assert (
            len({len(line) for line in str(shown).splitlines()}) < 10
        )  # a state with a line break breaks no row


def test_visible_keeps_what_can_be_seen():
    text = "naïve 雪 עברית ½ 🎲 \\x1b"
    assert visible(text) == text
    assert visible("a\nb\tc", keep="\n\t") == "a\nb\tc"
    assert visible("a\nb\x00\x7f\x85") == "a\\nb\\x00\\x7f\\x85"


@pytest.mark.parametrize(
    "path", sorted(Path(bbn.__file__).parent.glob("cli/*.py")), ids=lambda path: path.name
)
def test_commands_print_in_one_place(path):
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    printing = [call.lineno for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"]
    assert path.name == "output.py" or not printing


FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\tx"]


@pytest.fixture
def formulas(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    variable = bbn.Variable("=cmd|' /C calc'!A0", [*FORMULAS, "plain"])
    net = bbn.BayesianNetwork(
        [bbn.CPT(variable, table=[1 / 6] * 6), bbn.CPT(bbn.Variable("n", [-1, 2]), table=[0.5, 0.5])]
    )
    net.save("net.json")
    return variable.name


@pytest.mark.parametrize("escaped", [False, True])
def test_cells_that_begin_like_formulas_are_neutral_only_if_asked(escaped, formulas, capsys):
    option = ["--escape-formulas"] * escaped
    before = "'" * escaped
    states = {before + state for state in FORMULAS} | {"plain"}

    def check(text):
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        assert set(rows[0]) >= {before + formulas}
        assert {row[before + formulas] for row in rows} == states
        assert {row["n"] for row in rows if "n" in row} <= {"-1", "2"}  # numbers are no formulas

    main(["query", "net.json", formulas, "--format", "csv", *option])
    check(capsys.readouterr().out)
    main(["sample", "net.json", "-n", "200", "--seed", "1", *option])
    check(capsys.readouterr().out)
    main(["sample", "net.json", "-n", "200", "--seed", "1", "-o", "rows.csv", *option])
    check(Path("rows.csv").read_bytes().decode())
    Path("in.csv").write_text("n\n" + "-1\n2\n" * 3)
    main(["predict", "net.json", "in.csv", "--target", formulas, "-o", "predicted.csv", *option])
    assert f"\n{before}=1+1\n" in Path("predicted.csv").read_text()
