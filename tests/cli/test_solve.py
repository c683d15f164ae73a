"""The command `bbn solve`, and decision networks in the other commands."""

from __future__ import annotations

import json

import pytest

from bbn.cli import main


def said(capsys, *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


def test_the_policy_as_a_table_a_tree_and_json(capsys):
    code, out, _ = said(capsys, "solve", "umbrella_weather")
    assert code == 0
    assert out.startswith("expected utility 77\n")
    assert "rainy     take" in out
    assert "└─ cloudy, sunny: leave" in said(capsys, "solve", "umbrella_weather", "--tree")[1]
    told = json.loads(said(capsys, "solve", "umbrella_weather", "--format", "json")[1])
    assert told["expected_utility"] == pytest.approx(77)
    assert told["proved"] is True
    assert told["rows"][0] == {"decision": "Umbrella", "given": {"Forecast": "rainy"}, "choice": "take"}
    assert "Umbrella,Forecast=rainy,take" in said(capsys, "solve", "umbrella_weather", "--format", "csv")[1]


def test_evidence_and_choices_made(capsys):
    _, out, _ = said(capsys, "solve", "oil_wildcatter", "-e", "Test=yes", "Seismic=none")
    assert out.startswith("expected utility -10\n")
    code, _, err = said(capsys, "solve", "oil_wildcatter", "-e", "Seismic=none")
    assert code == 1
    assert "depends on the decision 'Test'" in err


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("--choices", ["Test      yes                 22.5", "Drill     no                     0"]),
        ("--information", ["Oil    32.5"]),
        ("--sensitivity", ["Cost(Test=yes)", "from -12.5"]),
        ("--risk", ["-80          0.2", "mean 22.5"]),
    ],
)
def test_what_the_policy_depends_on(option, told, capsys):
    code, out, _ = said(capsys, "solve", "oil_wildcatter", option)
    assert code == 0
    for text in told:
        assert text in out
    for format in ("json", "csv"):
        code, out, _ = said(capsys, "solve", "oil_wildcatter", option, "--format", format)
        assert code == 0
        assert out


def test_costs_and_a_risk_tolerance(capsys):
    assert "29.5" in said(capsys, "solve", "oil_wildcatter", "--information", "--cost", "Oil=3")[1]
    assert said(capsys, "solve", "oil_wildcatter", "--information", "--cost", "Oil")[0] == 1
    out = said(capsys, "solve", "oil_wildcatter", "--risk-tolerance", "30")[1]
    assert out.startswith("expected utility 0")


def test_other_commands(capsys, tmp_path):
    code, _, err = said(capsys, "solve", "asia")
    assert code == 1
    assert "asia is not a decision network" in err
    for command in (["query"], ["mpe"], ["sample", "-n", "3"], ["explain", "Oil"]):
        code, _, err = said(capsys, command[0], "oil_wildcatter", *command[1:])
        assert code == 1
        assert "holds a decision network; solve, check, convert, show, plot and explore take one" in err
    assert said(capsys, "check", "oil_wildcatter")[0] == 0
    assert "observes=['Test', 'Seismic']" in said(capsys, "show", "oil_wildcatter")[1]
    assert '"utility"' in said(capsys, "show", "oil_wildcatter", "Cost", "--format", "json")[1]
    for suffix in ("xdsl", "net", "json"):
        assert said(capsys, "convert", "oil_wildcatter", str(tmp_path / f"x.{suffix}"))[0] == 0
    assert said(capsys, "solve", str(tmp_path / "x.net"))[1].startswith("expected utility 22.5")
    assert said(capsys, "plot", "oil_wildcatter", "-o", str(tmp_path / "x.svg"))[0] == 0
