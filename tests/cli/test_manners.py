"""The manners of the command line: streams, formats, quiet, colours, encodings, exit codes, shell completion."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import bbn
from bbn.cli import main
from bbn.cli.completion import COMPLETERS, candidates
from bbn.cli.parser import make_parser

ROOT = Path(__file__).parents[2]


def bbn_says(
    *arguments: object, given: bytes = b"", cwd: Path = ROOT, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    """Run the command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "bbn", *map(str, arguments)],
        input=given,
        capture_output=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )


def commands() -> dict[str, object]:
    parser = make_parser()
    return next(a.choices for a in parser._actions if hasattr(a, "choices") and isinstance(a.choices, dict))


# Streams


@pytest.fixture
def piped(monkeypatch, capsysbinary):
    """Run a command line in this process with bytes on its standard input; its exit code, output and errors."""

    def call(*arguments: object, given: bytes = b"") -> tuple[int, bytes, bytes]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given)))
        code = main([str(argument) for argument in arguments])
        return code, *capsysbinary.readouterr()

    return call


@pytest.fixture
def rows() -> bytes:
    return bbn.example("flu").sample(200, seed=1).to_csv(index=False).encode()


def test_every_command_reads_a_network_from_standard_input(piped):
    net = bbn.io.dumps(bbn.example("asia"), "bif").encode()
    for arguments in (
        ["check", "-"],
        ["show", "-", "--brief"],
        ["convert", "-", "-", "--to", "net"],
        ["query", "-", "lung", "-e", "xray=yes"],
        ["mpe", "-"],
        ["sample", "-", "-n", "2"],
        ["plot", "-"],
        ["explain", "-", "lung", "-e", "xray=yes"],
    ):
        for named in ([], ["--from", "bif"]):
            code, out, err = piped(*arguments, *named, given=net)
            assert (code, err) == (0, b""), arguments
            assert out
        code, out, err = piped(*arguments, "--from", "json", given=net)
        assert code == 1
        assert b"standard input:1:1: " in out + err


def test_predict_and_learn_read_data_from_standard_input(piped, rows, tmp_path):
    net = bbn.example("flu")
    _, out, _ = piped("predict", "flu", "-", "--target", "Sinus", given=rows)
    assert out.decode().split() == ["Sinus", *net.predict(net.sample(200, seed=1), "Sinus")]
    path, packed = tmp_path / "rows.csv", tmp_path / "rows"
    path.write_bytes(rows)
    net.sample(200, seed=1).to_parquet(packed)
    expected = bbn.fit(net, path)
    _, out, _ = piped("learn", "-", "--structure", "flu", given=rows)
    assert bbn.io.loads(out, "yaml") == expected
    _, out, _ = piped("learn", "-", "--from", "parquet", "--structure", "flu", given=packed.read_bytes())
    assert bbn.io.loads(out, "yaml") == expected
    _, out, err = piped("learn", packed, "--from", "parquet", "--structure", "flu", "--to", "bif", "-q")
    assert bbn.io.loads(out, "bif") == expected
    assert err == b""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["predict", "flu", "-", "--target", "Sinus"], "bbn: standard input: the file is empty"),
        (["learn", "-", "--from", "cvs"], "bbn: unknown kind of data 'cvs'; did you mean 'csv'?"),
        (["learn", "no such file", "--from", "csv"], "bbn: no such file: No such file or directory"),
        (["sample", "flu", "--to", "xls"], "bbn: unknown kind of data 'xls'"),
        (["query", "flu", "--samples", "9"], "bbn: --samples does not go with --method auto"),
        (["mpe", "flu", "Sinus", "-k", "2"], "bbn: -k goes with explanations by all variables"),
        (["convert", "flu", "no/such/folder.bif"], "bbn: no/such/folder.bif: No such file or directory"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(piped, arguments, message):
    code, out, err = piped(*arguments)
    assert (code, out) == (1, b"")
    assert err.decode().startswith(message)
    assert err.count(b"\n") == 1


def test_pictures_and_rows_go_to_standard_output_in_any_format(piped):
    import pandas as pd

    assert piped("plot", "flu")[1].startswith(b"<svg")
    assert piped("plot", "flu", "--to", "png")[1].startswith(b"\x89PNG")
    assert piped("plot", "flu", "--to", "pdf")[1].startswith(b"%PDF")
    rows = ("sample", "flu", "-n", "5", "--seed", "3", "--to")
    expected = bbn.example("flu").sample(5, seed=3)
    assert pd.read_parquet(io.BytesIO(piped(*rows, "parquet")[1])).equals(expected)
    assert piped(*rows, "tsv")[1].splitlines()[0] == b"Flu\tAllergy\tSinus\tHeadache\tNose"


def test_a_reader_that_leaves_is_no_error():
    for command in ("sample alarm -n 200000", "convert alarm - --to bif", "plot alarm", "show alarm --all"):
        line = f"{sys.executable} -m bbn {command} | head -c 9"
        found = subprocess.run(line, shell=True, capture_output=True, text=True, cwd=ROOT)
        assert (found.stderr, len(found.stdout)) == ("", 9)


# What is printed, and how


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "asia", "models/campfire.yaml"],
        ["show", "asia"],
        ["show", "asia", "lung", "--brief"],
        ["query", "asia", "lung"],
        ["query", "asia"],
        ["mpe", "asia", "-k", "2"],
        ["explain", "asia", "lung", "-e", "xray=yes"],
        ["explain", "asia", "lung", "--ask-next"],
        ["explain", "asia", "lung", "--sensitivity"],
        ["examples"],
        ["examples", "--long"],
    ],
)
def test_json_and_csv_hold_the_same_rows(arguments, capsys):
    assert main([*arguments, "--format", "json"]) == 0
    from_json = json.loads(capsys.readouterr().out)["rows"]
    assert main([*arguments, "--format", "csv"]) == 0
    from_csv = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(from_json) == len(from_csv) > 0
    for one, other in zip(from_json, from_csv, strict=True):
        assert list(one) == list(other)
        for key, value in one.items():
            if key != "given":
                assert other[key] == ("" if value is None else str(value))
    assert main([*arguments, "--format", "table"]) == 0
    assert capsys.readouterr().out


def test_show_gives_the_tables_as_rows(capsys):
    main(["show", "campfire", "Campfire", "--format", "json"])
    told = json.loads(capsys.readouterr().out)
    assert told["nodes"] == 6
    table = bbn.example("campfire")["Campfire"].table
    assert [row["probability"] for row in told["rows"]] == table.ravel().tolist()
    assert told["rows"][2] == {
        "variable": "Campfire",
        "given": {"Storm": "yes", "BusTourGroup": "no"},
        "state": "yes",
        "probability": 0.1,
    }


def test_check_tells_programs_where_each_problem_is(capsys, tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_text("nodes:\n  A: {states: [a, b], table: [0.5, 0.4]}\n")
    assert main(["check", str(path), "asia", "--format", "json"]) == 1
    first, second = json.loads(capsys.readouterr().out)["rows"]
    assert (first["file"], first["kind"], first["line"], first["column"]) == (str(path), "error", 2, 30)
    assert second["kind"] == "ok"


@pytest.mark.parametrize(
    ("suffix", "number"),
    [("bif", "0.01, 0.99"), ("net", "0.01 0.99"), ("xmlbif", "0.01 0.99"), ("xdsl", "0.01 0.99")],
)
def test_check_goes_on_after_the_first_fault_of_any_format(capsys, tmp_path, suffix, number):
    text = bbn.io.dumps(bbn.example("asia"), suffix)
    assert text.count(number) == 3
    path = tmp_path / f"bad.{suffix}"
    path.write_text(text.replace(number, number.replace("0.99", "x")))
    assert main(["check", str(path)]) == 1
    told = capsys.readouterr().out.splitlines()
    assert len(told) == 3
    for line, name in zip(told, ("asia", "tub", "lung"), strict=True):
        assert f"{name!r}" in line
        assert "found 'x'" in line


def test_json_has_no_words_that_are_not_json(capsys, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("tub,either\nyes,no\nno,no\n")
    arguments = ["predict", "asia", str(path), "--target", "lung", "--proba", "--impossible", "nan"]
    assert main([*arguments, "--format", "json"]) == 0

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    rows = json.loads(capsys.readouterr().out, parse_constant=refuse)["rows"]
    assert rows[0] == {"yes": None, "no": None}
    assert rows[1]["no"] == 1.0


def test_quiet_leaves_results_and_errors(capsys, tmp_path):
    poor = ["query", "flu", "Sinus", "--method", "likelihood-weighting", "--samples", "20", "--seed", "1"]
    assert main(poor) == 0
    loud = capsys.readouterr()
    assert loud.err.startswith("bbn: warning: likelihood-weighting: ")
    assert main(["--quiet", *poor]) == 0
    assert capsys.readouterr() == (loud.out, "")
    assert main([*poor, "-q"]) == 0
    assert capsys.readouterr() == (loud.out, "")
    assert main(["check", "asia", "-q"]) == 0
    assert capsys.readouterr() == ("", "")
    data = tmp_path / "rows.csv"
    bbn.example("flu").sample(50, seed=1).to_csv(data, index=False)
    assert main(["learn", str(data), "--structure", "flu", "-o", str(tmp_path / "x.yaml"), "-q"]) == 0
    assert capsys.readouterr() == ("", "")
    assert main(["show", "nothing", "-q"]) == 1
    assert capsys.readouterr().err.startswith("bbn: nothing: ")


def in_terminal(*arguments: str, **environment: str) -> str:
    """What the command prints on a terminal, standard error among it."""
    pty = pytest.importorskip("pty", reason="there are no terminals of this kind here")
    ours, theirs = pty.openpty()
    running = subprocess.Popen(
        [sys.executable, "-m", "bbn", *arguments],
        stdout=theirs,
        stderr=theirs,
        cwd=ROOT,
        env={**{k: v for k, v in os.environ.items() if k != "NO_COLOR"}, "TERM": "xterm", **environment},
    )
    os.close(theirs)
    parts = []
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        parts.append(part)
    running.wait()
    os.close(ours)
    return b"".join(parts).decode()


def test_colours_are_for_terminals_that_want_them():
    assert "\x1b[34m" in in_terminal("query", "asia", "lung")
    assert "\x1b[31mbbn:\x1b[0m" in in_terminal("show", "nothing")
    assert "\x1b" not in in_terminal("query", "asia", "lung", NO_COLOR="1")
    assert "\x1b" not in in_terminal("query", "asia", "lung", TERM="dumb")
    assert b"\x1b" not in bbn_says("query", "asia", "lung").stdout
    assert b"\x1b" not in bbn_says("show", "nothing").stderr


def test_progress_is_for_terminals():
    assert bbn_says("sample", "alarm", "-n", "100000", "-o", os.devnull, "--to", "csv").stderr == b""
    assert b"sampling" in bbn_says("sample", "asia", "-n", "9", "--progress").stderr


def test_a_terminal_without_the_characters_gets_others():
    told = bbn_says("query", "asia", "lung", PYTHONIOENCODING="ascii")
    assert told.returncode == 0
    assert told.stdout.splitlines()[-1] == b"no          0.945  ###################"
    told = bbn_says("explain", "asia", "lung", "--help", PYTHONIOENCODING="ascii")
    assert told.returncode == 0


def test_files_are_in_utf8_whatever_the_terminal(tmp_path):
    v = bbn.Variable("Grüße", ["日本", "no"])
    net = bbn.BayesianNetwork([bbn.CPT(v, table=[0.25, 0.75])])
    net.save(tmp_path / "x.yaml")
    for arguments in (["convert", "x.yaml", "-", "--to", "json"], ["query", "x.yaml", "--format", "csv"]):
        told = bbn_says(*arguments, cwd=tmp_path, PYTHONIOENCODING="latin-1")
        assert (told.returncode, told.stderr) == (0, b"")
        assert "日本" in told.stdout.decode()
    told = bbn_says("query", "x.yaml", cwd=tmp_path, PYTHONIOENCODING="ascii")
    assert (told.returncode, told.stdout.splitlines()[2][:12]) == (0, b"Gr??e     ??")


def test_a_fault_of_the_program_has_a_code_of_its_own(monkeypatch, capsys):
    def broken(name: str) -> None:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr("bbn.io.examples.example", broken)
    assert main(["show", "asia"]) == 70
    assert capsys.readouterr().err == "bbn: RuntimeError: two lines (a fault of bbn; --debug shows where)\n"
    with pytest.raises(RuntimeError):
        main(["show", "asia", "--debug"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["quer", "asia"], "bbn: argument COMMAND: there is no 'quer'; did you mean 'query'?"),
        (
            ["query", "asia", "--format", "xml"],
            "bbn query: argument --format: there is no 'xml'; expected one of ",
        ),
        (["query"], "bbn query: the following arguments are required: FILE"),
        (["sample", "asia", "-n", "many"], "bbn sample: argument -n: invalid int value: 'many'"),
        (
            ["sample", "asia", "--seed", "-3"],
            "bbn sample: argument --seed: expected a whole number, at least 0",
        ),
        (["completion", "tcsh"], "bbn completion: argument SHELL: there is no 'tcsh'"),
    ],
)
def test_wrong_usage_is_one_line_too(arguments, message, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith(message)
    assert err.count("\n") == 1


def test_interruption_is_exit_code_130(monkeypatch):
    def stopped(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("bbn.io.examples.example", stopped)
    assert main(["show", "asia"]) == 130


def test_what_means_the_same_is_called_the_same():
    for name, parser in commands().items():
        known = parser._option_string_actions
        metavars = {action.metavar for action in parser._actions}
        if "FILE" in metavars and "DATA" not in metavars:
            assert "--from" in known, name
        if "OUT" in metavars and name not in (
            "predict",
            "export",
        ):  # a file of its own kind, or rows in --format
            assert "--to" in known, name
        assert "--quiet" in known
        assert "--debug" in known


def test_the_page_of_the_command_line_names_every_command_and_exit_code():
    page = (ROOT / "docs" / "cli.md").read_text()
    for name in commands():
        assert f"`bbn {name}" in page
    for code in (0, 1, 2, 70, 130):
        assert re.search(rf"^\| {code} \|", page, re.MULTILINE)


# Shell completion


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("bbn exp", ["explain", "explore", "export"]),
        ("bbn -q exp", ["explain", "explore", "export"]),
        ("bbn --ver", ["--version"]),
        ("bbn query asi", ["asia"]),
        ("bbn query models/camp", ["models/campfire.yaml"]),
        ("bbn query mod", ["models/"]),
        ("bbn query asia tu", ["tub"]),
        ("bbn query asia lung tu", ["tub"]),
        ("bbn query asia -e lung=yes x", ["xray="]),
        ("bbn query asia -e lung=yes xray=", ["xray=yes", "xray=no"]),
        ("bbn query asia --one-of lung=yes,n", ["lung=yes,no"]),
        ("bbn query asia --method el", ["elimination"]),
        ("bbn query asia --format ", ["table", "json", "csv"]),
        ("bbn query asia --targ", ["--target-std-error"]),
        ("bbn explain asia -q tu", ["tub"]),
        ("bbn predict asia x.csv --target tu", ["tub"]),
        ("bbn convert asia x --to xm", ["xmlbif"]),
        ("bbn learn x.csv --method hi", ["hill-climb"]),
        ("bbn learn x.csv --score fn", ["fnml"]),
        ("bbn completion ", ["bash", "zsh", "fish"]),
        ('bbn query "asi', ["asia"]),
        ("bbn demo ", []),
    ],
)
def test_completion_knows_what_may_come_next(line, expected, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert candidates(line) == expected


@pytest.mark.parametrize(
    ("line", "told"),
    [("bbn exp", "explain\nexplore\nexport\n"), ("bbn query asia tu", "tub\n"), ("bbn demo ", "")],
)
def test_completion_is_a_word_a_line(line, told, capsys):
    assert main(["completion", "bash", "--line", line]) == 0
    assert capsys.readouterr().out == told


@pytest.mark.parametrize(
    "line", ["", "bbn", "bbn query nothing lu", "bbn query - x", "bbn show pyproject.toml x", '"']
)
def test_completion_never_complains(line):
    told = bbn_says("completion", "bash", "--line", line)
    assert (told.returncode, told.stderr) == (0, b"")


def test_every_metavar_that_names_a_thing_completes():
    plain = {"N", "E", "S", "K", "SIZE", "TEXT", "TEST", "COLUMN", "PRIOR", "SHELL", "ADDRESS", "HOW", None}
    for parser in commands().values():
        for action in parser._actions:
            word = action.metavar
            free = word in plain or (word and not word.isalpha() and not word.startswith("NAME="))
            assert free or action.choices or word in COMPLETERS, word


@pytest.fixture
def path_with_bbn(tmp_path, monkeypatch):
    """A PATH on which `bbn` is this one."""
    script = tmp_path / "bin" / "bbn"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m bbn "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash on this machine")
def test_completion_in_bash(path_with_bbn):
    script = r"""
    source <(bbn completion bash)
    try() { COMP_LINE="$1"; COMP_POINT=${#1}; _bbn; echo "${COMPREPLY[*]}"; }
    COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
    try "bbn conv"; try "bbn query asia -e xra"; try "bbn query asia -e xray=y"
    COMP_WORDBREAKS=' '
    try "bbn query asia -e xray=y"
    complete -p bbn
    """
    told = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=ROOT, check=True)
    lines = told.stdout.splitlines()
    assert lines[:4] == ["convert", "xray=", "yes", "xray=yes"]
    assert "-F _bbn bbn" in lines[4]
    assert told.stderr == ""


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish on this machine")
def test_completion_in_fish(path_with_bbn):
    script = 'bbn completion fish | source; complete -C "bbn conv"; complete -C "bbn query asia -e xray=y"'
    told = subprocess.run(["fish", "-c", script], capture_output=True, text=True, cwd=ROOT, check=True)
    assert told.stdout.split() == ["convert", "xray=yes"]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh on this machine")
def test_completion_in_zsh(path_with_bbn):
    script = """
    compdef() { print -r -- "compdef $@" }
    compadd() { print -r -- "${@[$@[(i)--]+1,-1]}" }
    source <(bbn completion zsh)
    words=(bbn query asia -e xray=y) CURRENT=5; _bbn
    words=(bbn conv) CURRENT=2; _bbn
    """
    told = subprocess.run(["zsh", "-f", "-c", script], capture_output=True, text=True, cwd=ROOT, check=True)
    assert told.stdout.split("\n")[0] == "compdef _bbn bbn"
    assert told.stdout.split()[3:] == ["xray=yes", "convert"]


class TestFactorGraphs:
    """A UAI file may hold a factor graph: commands take it where there is a meaning, or say that they do not."""

    COMMANDS = (
        *(
            ["show", "FILE"],
            ["show", "FILE", "--brief"],
            ["sample", "FILE", "-n", "2"],
            ["explain", "FILE", "0"],
        ),
        *(
            ["plot", "FILE", "-o", "OUT.svg"],
            ["explore", "FILE"],
            ["predict", "FILE", "DATA", "--target", "0"],
        ),
        *(["learn", "DATA", "--structure", "FILE", "-o", "OUT.bif"], ["convert", "FILE", "OUT.bif"]),
    )

    def run(self, command, tmp_path):
        (tmp_path / "pair.uai").write_text("MARKOV\n2\n2 2\n1\n2 0 1\n4\n3 1 1 3\n")
        (tmp_path / "rows.csv").write_text("0,1\n0,1\n1,0\n")
        named = {
            "FILE": "pair.uai",
            "DATA": "rows.csv",
            "OUT.svg": "out.svg",
            "OUT.bif": "out.bif",
            "OUT.uai": "out.uai",
        }
        return main([str(tmp_path / named[word]) if word in named else word for word in command])

    @pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
    def test_what_needs_a_network_says_so_in_a_line(self, command, tmp_path, capsys):
        assert self.run(command, tmp_path) == 1
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert "factor graph" in said or "FactorGraph" in said
        assert not list(tmp_path.glob("out.*"))

    def test_what_has_a_meaning_works(self, tmp_path, capsys):
        assert self.run(["check", "FILE"], tmp_path) == 0
        assert "ok, a factor graph: 2 variables, 1 factor, 4 table entries" in capsys.readouterr().out
        assert self.run(["query", "FILE", "0", "-e", "1=0", "--format", "csv"], tmp_path) == 0
        assert capsys.readouterr().out.splitlines() == ["0,probability", "0,0.75", "1,0.25"]
        assert self.run(["mpe", "FILE", "-e", "1=1", "--format", "csv"], tmp_path) == 0
        assert "1,0,1," in capsys.readouterr().out
        assert self.run(["convert", "FILE", "OUT.uai"], tmp_path) == 0
        assert bbn.load(tmp_path / "out.uai") == bbn.load(tmp_path / "pair.uai")
