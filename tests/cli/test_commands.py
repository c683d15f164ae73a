"""The command line: what it prints, what it returns, and one line for each error."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

import bbn
from bbn.cli import main
from bbn.io import FORMATS

ROOT = Path(__file__).parents[2]
BAD = """nodes:
  A: {states: [a, b], table: [0.5, 0.4]}
  B: {states: [a, b], parents: [Aa], table: [[1, 0], [0, 1]]}
"""


@pytest.fixture
def run(capsys):
    """Run a command line; its exit code, output and errors."""

    def call(*arguments: object) -> tuple[int, str, str]:
        code = main([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return call


def test_check_says_what_is_right(run):
    code, out, err = run("check", ROOT / "models" / "campfire.yaml", "asia")
    assert (code, err) == (0, "")
    assert "campfire.yaml: ok, 6 nodes, 7 arcs, 18 free parameters, 36 table entries" in out
    assert "asia: ok, 8 nodes, 8 arcs, 18 free parameters" in out


def test_check_lists_every_problem_of_every_file(run, tmp_path):
    bad, missing, good = tmp_path / "bad.yaml", tmp_path / "missing.yaml", tmp_path / "good.json"
    bad.write_text(BAD)
    bbn.example("asia").save(good)
    code, out, err = run("check", bad, missing, good, tmp_path)
    lines = out.splitlines()
    assert (code, err) == (1, "")
    assert lines[0] == f"{bad}:2:30: node 'A': sums to 0.9, expected 1"
    assert lines[1] == f"{bad}:3:3: node 'B' has the unknown parent 'Aa'; did you mean 'A'?"
    assert lines[2] == f"{missing}: No such file or directory"
    assert lines[3].startswith(f"{good}: ok")
    assert lines[4] == f"{tmp_path}: Is a directory"


def test_check_shows_warnings_and_can_be_strict(run, tmp_path):
    path = tmp_path / "rounded.yaml"
    path.write_text("nodes: {A: {states: [a, b, c], table: [0.333, 0.333, 0.333]}}")
    code, out, _ = run("check", path)
    assert code == 0
    assert f"{path}: warning: 1 row off 1 by up to 0.001 renormalised" in out
    code, out, _ = run("check", "--strict", path)
    assert code == 1
    assert "sums to 0.999, expected 1" in out


def test_show(run):
    code, out, _ = run("show", "burglary")
    assert code == 0
    assert out.startswith("burglary: 5 nodes, 4 arcs, 10 free parameters, 20 table entries\n")
    assert "P(Alarm | Burglary, Earthquake)" in out
    assert "0.94" in out
    assert "source: Stuart Russell" in out
    code, out, _ = run("show", "burglary", "JohnCalls")
    assert "JohnCalls: yes, no" in out
    assert "Earthquake" not in out
    code, out, err = run("show", "burglary", "JohnCall")
    assert (code, out) == (1, "")
    assert err == "bbn: network 'burglary' has no variable 'JohnCall'; did you mean 'JohnCalls'?\n"


def test_show_cuts_large_tables(run):
    _, short, _ = run("show", "alarm", "CATECHOL")
    _, whole, _ = run("show", "alarm", "CATECHOL", "--all")
    assert "34 more rows" in short
    assert len(whole.splitlines()) == len(short.splitlines()) + 33


@pytest.mark.parametrize("suffix", [format.suffixes[0] for format in FORMATS if format.name != "uai"])
def test_convert(run, tmp_path, suffix):
    path = tmp_path / f"asia{suffix}"
    assert run("convert", "asia", path) == (0, "", "")
    assert bbn.load(path) == bbn.example("asia")
    assert run("convert", path, tmp_path / "again.yaml.gz") == (0, "", "")
    assert bbn.load(tmp_path / "again.yaml.gz") == bbn.example("asia")


def test_convert_through_pipes():
    def piped(*arguments: str, given: bytes = b"") -> bytes:
        return subprocess.run(
            [sys.executable, "-m", "bbn", *arguments], input=given, capture_output=True, check=True, cwd=ROOT
        ).stdout

    text = piped("convert", "asia", "-", "--to", "bif")
    assert b"network asia" in text
    again = piped("convert", "-", "-", "--to", "yaml", given=text)
    assert bbn.io.loads(again) == bbn.example("asia")
    assert b"ok, 8 nodes" in piped("check", "-", given=again)


def test_convert_needs_a_format(run, tmp_path):
    code, _, err = run("convert", "asia", "-")
    assert (code, err) == (1, "bbn: writing to standard output needs --to FORMAT\n")
    code, _, err = run("convert", "asia", tmp_path / "asia.txt")
    assert code == 1
    assert ".yaml" in err
    code, _, err = run("convert", "asia", tmp_path / "asia.txt", "--to", "yalm")
    assert (code, err) == (1, "bbn: unknown format 'yalm'; did you mean 'yaml'?\n")
    assert list(tmp_path.iterdir()) == []


def test_examples(run):
    code, out, _ = run("examples")
    assert code == 0
    lines = [line.split("  ", 1) for line in out.splitlines()]
    assert tuple(name for name, _ in lines) == bbn.examples()
    for name, text in lines:  # the whole file says the same as its head
        said = (
            " ".join(bbn.example(name).metadata["description"].split())
            if "munin" not in name
            else text.strip()
        )
        assert text.strip()
        assert said.startswith(text.strip())


@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_query(run, form):
    code, out, err = run(
        "query", "burglary", "Burglary", "-e", "JohnCalls=yes", "MaryCalls=yes", "--format", form
    )
    assert (code, err) == (0, "")
    expected = 0.00059224259 / (0.00059224259 + 0.0014918576)  # Russell and Norvig, section 14.4.1
    if form == "table":
        assert "0.284172" in out
        assert "ln P(evidence) = -6.17" in out
        return
    if form == "json":
        rows = json.loads(out)["rows"]
        assert json.loads(out)["log_evidence"] == pytest.approx(-6.1733, abs=1e-3)
    else:
        rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["Burglary"] for row in rows] == ["yes", "no"]
    assert float(rows[0]["probability"]) == pytest.approx(expected, abs=1e-6)


def test_query_of_several_and_of_all(run):
    code, out, _ = run("query", "asia", "lung", "tub", "--evidence", "xray=yes", "--format", "csv")
    assert code == 0
    assert out.splitlines()[0] == "lung,tub,probability"
    assert len(out.splitlines()) == 5
    # A target may also stand after the evidence.
    assert run("query", "asia", "lung", "--evidence", "xray=yes", "tub", "--format", "csv")[1] == out
    code, out, _ = run("query", "asia", "-e", "xray=yes", "--format", "csv")
    assert len(out.splitlines()) == 1 + 7 * 2


@pytest.mark.parametrize(
    ("option", "finding"),
    [
        (("--virtual", "Storm=yes:0.8,no:0.2"), bbn.Virtual({"yes": 0.8, "no": 0.2})),
        (("--soft", "Storm=yes:0.8,no:0.2"), bbn.Soft({"yes": 0.8, "no": 0.2})),
        (("--one-of", "Storm=yes,no"), bbn.OneOf("yes", "no")),
        (("--none-of", "Storm=yes"), bbn.Not("yes")),
    ],
)
def test_query_with_other_kinds_of_evidence(run, option, finding):
    _, out, _ = run("query", "campfire", "ForestFire", *option, "--format", "json")
    expected = bbn.example("campfire").query("ForestFire", {"Storm": finding})
    assert json.loads(out)["rows"][0]["probability"] == expected["yes"]


def test_query_by_another_method(run):
    for method in ("auto", "enumeration"):
        _, out, _ = run("query", "asia", "lung", "--method", method, "--format", "json")
        assert json.loads(out)["rows"][0]["probability"] == pytest.approx(0.055, abs=1e-15)
    code, _, err = run("query", "asia", "lung", "--method", "junction_tree")
    assert code == 1
    assert "did you mean 'junction-tree'" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["query", "asia", "lungs"], "has no variable 'lungs'; did you mean 'lung'?"),
        (["query", "asia", "lung", "-e", "xray=maybe"], "variable 'xray' has no state 'maybe'"),
        (["query", "asia", "lung", "-e", "xrai=yes"], "has no variable 'xrai'; did you mean 'xray'?"),
        (["query", "asia", "lung", "-e", "xray=yes", "-e", "xray=no"], "two findings for 'xray'"),
        (["query", "asia", "lung", "--virtual", "xray=yes"], "expected STATE:NUMBER"),
        (["query", "asia", "lung", "--virtual", "xray=yes:a,no:1"], "expected STATE:NUMBER"),
        (["query", "asia", "lung", "--virtual", "xray"], "expected NAME=VALUE"),
        (["query", "asia", "lung", "-e", "either=no", "tub=yes"], "either"),
        (["query", "nowhere.yaml", "lung"], "nowhere.yaml: No such file or directory"),
    ],
)
def test_errors_are_one_line(run, arguments, message):
    code, out, err = run(*arguments)
    assert (code, out) == (1, "")
    assert err.startswith("bbn: ")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", ["query", "mpe", "sample", "plot", "explain"])
@pytest.mark.parametrize("option", ["-e", "--do"])
def test_a_finding_without_a_state_is_an_error(run, capsys, command, option):
    target = ["lung"] if command == "explain" else []
    with pytest.raises(SystemExit) as stopped:
        run(command, "asia", *target, option, "xray", "tub=yes")
    assert stopped.value.code == 2
    assert "expected NAME=STATE, found 'xray'" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["sample", "plot", "explain"])
@pytest.mark.parametrize("option", ["-e", "--do"])
def test_a_word_among_the_findings_of_a_command_without_targets(run, command, option):
    target = ["lung"] if command == "explain" else []
    code, out, err = run(command, "asia", *target, option, "tub=yes", "xray")
    assert (code, out, err) == (1, "", "bbn: expected NAME=STATE, found 'xray'\n")


def test_numbers_are_findings_of_a_variable_cut_into_intervals(run, tmp_path):
    age, sick = bbn.Binned("Age", [30, 60]), bbn.Variable("Sick", ["yes", "no"])
    net = bbn.BayesianNetwork([
        bbn.CPT(age, [], [0.5, 0.3, 0.2]),
        bbn.CPT(sick, [age], [[0.1, 0.9], [0.2, 0.8], [0.7, 0.3]]),
    ])  # fmt: skip
    path = str(tmp_path / "age.yaml")
    bbn.save(net, path)
    for text in ("-5", "29.9", "30", "59", "6e1", "1000", "<30"):
        number = text if text == "<30" else float(text)
        code, out, _ = run("query", path, "Sick", "-e", f"Age={text}", "--format", "json")
        assert code == 0
        found = {row["Sick"]: row["probability"] for row in json.loads(out)["rows"]}
        assert found == pytest.approx(net.query("Sick", {"Age": number}).to_dict())
        assert run("query", path, "Sick", "--do", f"Age={text}", "--format", "json")[1].split("rows")[1]
    _, out, _ = run("query", path, "Sick", "--one-of", "Age=10,45", "--format", "json")
    found = {row["Sick"]: row["probability"] for row in json.loads(out)["rows"]}
    assert found == pytest.approx({"yes": 0.11 / 0.8, "no": 0.69 / 0.8})
    for text in ("nan", "old", ""):
        code, out, err = run("query", path, "Sick", "-e", f"Age={text}")
        assert (code, out) == (1, "")
        assert (
            f"variable 'Age' has no interval '{text}'; expected a number, or one of the labels '<30'" in err
        )


def test_debug_shows_the_traceback(run):
    for arguments in (["--debug", "show", "nowhere.yaml"], ["show", "--debug", "nowhere.yaml"]):
        with pytest.raises(FileNotFoundError):
            run(*arguments)


def test_mpe(run):
    _, out, _ = run("mpe", "burglary", "-e", "JohnCalls=yes", "--format", "json", "-k", 3)
    rows = json.loads(out)["rows"]
    assert [row["rank"] for row in rows] == [1] * 4 + [2] * 4 + [3] * 4
    logs = [row["log_probability"] for row in rows]
    assert logs == sorted(logs, reverse=True)
    net = bbn.example("burglary")
    best = {row["variable"]: row["state"] for row in rows[:4]}
    assert net.probability({**best, "JohnCalls": "yes"}) == pytest.approx(2.718281828459045 ** logs[0])
    code, out, _ = run("mpe", "burglary", "Burglary", "-e", "JohnCalls=yes")
    assert code == 0
    assert "Burglary  no" in out


def test_predict(run, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("JohnCalls,MaryCalls,Burglary\nyes,yes,no\nno,no,yes\nyes,,yes\n")
    code, out, _ = run("predict", "burglary", path, "--target", "Alarm")
    assert (code, out.split()) == (0, ["Alarm", "yes", "no", "yes"])
    _, out, _ = run("predict", "burglary", path, "--target", "Burglary", "--proba", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert float(rows[0]["yes"]) == pytest.approx(0.2841718, abs=1e-6)
    code, _, err = run("predict", "burglary", path, "--target", "Alarms")
    assert code == 1
    assert "did you mean 'Alarm'" in err


def test_wrong_usage_is_exit_code_2(capsys):
    for arguments in ([], ["chek"], ["query"], ["query", "asia", "--format", "xml"]):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2


def test_version_says_how_it_was_built(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    out = capsys.readouterr().out
    assert out.startswith(f"bbn {bbn.__version__}, ")
    assert ("compiled kernels" in out) == bbn.kernels.COMPILED


def test_demo_runs(run):
    code, out, _ = run("demo")
    assert code == 0
    assert "0.208511" in out
    assert "ForestFire  probability" in out
    assert "bbn.fit" in out


def test_a_closed_pipe_is_no_error():
    command = f"{sys.executable} -m bbn show alarm --all | head -1"
    found = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=ROOT)
    assert found.stderr == ""
    assert found.stdout.startswith("alarm: 37 nodes")


class TestTime:
    """Dynamic networks on the command line."""

    @pytest.fixture
    def days(self, tmp_path):
        path = tmp_path / "days.csv"
        path.write_text("id,day,Umbrella\n1,1,yes\n1,2,yes\n1,4,no\n2,1,no\n")
        return str(path)

    def test_query_names_steps(self, capsys):
        assert (
            main(
                [
                    "query",
                    "umbrella",
                    "Rain[1]",
                    "-e",
                    "Umbrella[0]=yes",
                    "Umbrella[1]=yes",
                    "--format",
                    "csv",
                ]
            )
            == 0
        )
        found = dict(line.split(",") for line in capsys.readouterr().out.splitlines()[1:])
        exact = bbn.example("umbrella").filter({"Umbrella": ["yes", "yes"]})["Rain"][1, 0]
        assert float(found["yes"]) == pytest.approx(exact, abs=1e-12)

    @pytest.mark.parametrize(
        "how", [[], ["--smooth"], ["--viterbi"], ["--forecast", "2"], ["--particles", "50", "--seed", "1"]]
    )
    def test_filter(self, how, days, capsys):
        assert (
            main(
                [
                    "filter",
                    "umbrella",
                    days,
                    "Rain",
                    "--sequence",
                    "id",
                    "--time",
                    "day",
                    "--format",
                    "csv",
                    *how,
                ]
            )
            == 0
        )
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == ("sequence,step,Rain" if "--viterbi" in how else "sequence,step,Rain=yes,Rain=no")
        assert len(lines) == 1 + (4 if "--forecast" in how else 5)
        if how == ["--smooth"]:
            exact = bbn.example("umbrella").smooth({"Umbrella": ["yes", "yes", None, "no"]})["Rain"]
            assert float(lines[3].split(",")[2]) == pytest.approx(exact[2, 0], abs=1e-12)

    def test_learn(self, days, tmp_path, capsys):
        out = str(tmp_path / "out.yaml")
        args = [
            "learn",
            days,
            "--structure",
            "umbrella",
            "--method",
            "em",
            "--sequence",
            "id",
            "--time",
            "day",
        ]
        assert main([*args, "--hidden", "Rain", "--max-iter", "3", "-o", out]) == 0
        assert isinstance(bbn.load(out), bbn.DynamicNetwork)
        args[args.index("em")] = "gradient"
        assert main([*args, "--hidden", "Rain", "--max-iter", "3", "-o", out]) == 0
        assert isinstance(bbn.load(out), bbn.DynamicNetwork)

    def test_learn_a_structure_over_time(self, tmp_path, capsys):
        table = bbn.example("umbrella").sample(30, n=20, seed=0).assign(noise=range(600))
        path, out = str(tmp_path / "rows.csv"), str(tmp_path / "out.yaml")
        table.to_csv(path, index=False)
        args = ["learn", path, "--sequence", "sequence", "--drop", "noise", "-o", out]
        assert main([*args, "--score", "bic"]) == 0
        assert "2 variables a slice" in capsys.readouterr().out
        plain = table.drop(columns="noise").astype({"Rain": str, "Umbrella": str})
        graph = bbn.hill_climb(plain, "bic", sequence="sequence")
        assert bbn.load(out) == bbn.fit(graph, plain, sequence="sequence")
        for more in (["--method", "pc"], ["--hidden", "Z=a,b"], ["--lag", "0"], ["--kinds", "Rain=date"]):
            assert main([*args, *more]) == 1, more
        assert "hill-climb" in capsys.readouterr().err

    @pytest.mark.parametrize(
        "command",
        [
            ["check", "umbrella"],
            ["show", "umbrella"],
            ["plot", "umbrella"],
            ["convert", "umbrella", "-", "--to", "json"],
        ],
    )
    def test_what_has_a_meaning_works(self, command, capsys):
        assert main(command) == 0
        assert "umbrella" in capsys.readouterr().out.lower()

    def test_the_rest_says_so_in_a_line(self, days, capsys):
        for command in (["sample", "umbrella", "-n", "3"], ["filter", "asia", days]):
            assert main(command) == 1
            said = capsys.readouterr().err
            assert said.count("\n") == 1
            assert "dynamic network" in said


@pytest.mark.parametrize("n", [0, 1, 3])
def test_as_many_rows_as_were_asked_for_under_one_header(n, capsys):
    assert main(["sample", "asia", "-n", str(n), "--seed", "1"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert sorted(head.split(",")) == sorted(bbn.example("asia").names)
    assert len(rows) == n
    assert all(set(row.split(",")) <= {"yes", "no"} for row in rows)
