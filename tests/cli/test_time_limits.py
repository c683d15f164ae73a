"""`--time-limit` on commands that may run long."""

from __future__ import annotations

import pytest

import bbn
from bbn.cli import main

ROWS = bbn.example("asia").sample(300, seed=0)


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "rows.csv"
    ROWS.to_csv(path, index=False)
    return str(path)


COMMANDS = {
    "sample": ["sample", "asia", "-n", "100000"],
    "explain": ["explain", "asia", "lung", "-e", "xray=yes"],
    "solve": ["solve", "oil_wildcatter"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_gives_up_when_its_time_is_up(command, capsys, tmp_path):
    out = ["-o", str(tmp_path / "out.csv")] if command == "sample" else []
    assert main([*COMMANDS[command], *out, "--time-limit", "1e-9"]) == 1
    told = capsys.readouterr()
    assert "no answer after time_limit=1e-09 seconds" in told.err
    assert told.out == ""
    assert not list(tmp_path.iterdir())
    assert main([*COMMANDS[command], *out, "--time-limit", "3600", "--quiet"]) == 0


@pytest.mark.parametrize("command", [["mpe", "asia"], ["predict", "asia", "DATA", "--target", "lung"]])
def test_other_commands_have_the_option_too(command, data, capsys):
    command = [data if word == "DATA" else word for word in command]
    assert main([*command, "--time-limit", "0"]) == 1
    assert "time_limit is 0" in capsys.readouterr().err
    assert main([*command, "--time-limit", "3600"]) == 0


def test_a_search_gives_the_best_so_far(data, capsys, tmp_path):
    out = tmp_path / "net.yaml"
    learn = ["learn", data, "--method", "hill-climb", "-o", str(out)]
    assert main([*learn, "--time-limit", "1e-9"]) == 0
    assert "stopped before its end" in capsys.readouterr().out
    short = bbn.load(out)
    assert main([*learn, "--time-limit", "3600"]) == 0
    assert "stopped" not in capsys.readouterr().out
    assert len(short.arcs) < len(bbn.load(out).arcs)


@pytest.mark.parametrize("method", ["em", "gradient"])
def test_a_climb_without_time_is_an_error(method, data, capsys, tmp_path):
    out = tmp_path / "net.yaml"
    learn = ["learn", data, "--structure", "asia", "--method", method, "-o", str(out)]
    assert main([*learn, "--time-limit", "1e-9"]) == 1
    assert "no answer after time_limit=1e-09" in capsys.readouterr().err
    assert not out.exists()
    assert main([*learn, "--time-limit", "3600", "--max-iter", "3"]) == 0
