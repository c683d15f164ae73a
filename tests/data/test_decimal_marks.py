"""Decimal commas and commas for thousands: what a column of text says is what was written, or nothing is guessed."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import bbn
from bbn.cli import main
from bbn.data import code


def written(number: Decimal, comma: bool, grouped: bool) -> str:
    """A number as people write it: with a decimal comma or point, thousands set off or not."""
    text = f"{number:,f}" if grouped else f"{number:f}"
    return text.translate(str.maketrans(",.", ".,")) if comma else text


def readings(texts: list[str]) -> dict[str, list[Decimal]]:
    """What the texts can be, by the decimal mark: the numbers that are written so, found without looking at bbn."""
    found = {}
    for mark in ",.":
        other = {",": ".", ".": ","}[mark]
        numbers = []
        for text in texts:
            try:
                number = Decimal(text.replace(other, "").replace(mark, "."))
            except InvalidOperation:
                break
            if text not in (written(number, mark == ",", True), written(number, mark == ",", False)):
                break
            numbers.append(number)
        else:
            found[mark] = numbers
    return found


def columns(seed: int) -> list[str]:
    """A random column of numbers, in a random way of writing."""
    rng = np.random.default_rng(seed)
    places = int(rng.choice([0, 1, 2, 3, 3]))
    comma, grouped = rng.random(2) < 0.5
    size = 10.0 ** rng.uniform(0, 7)
    numbers = [Decimal(f"{x:.{places}f}") for x in rng.uniform(-size, size, rng.integers(1, 6))]
    return [written(number, bool(comma), bool(grouped)) for number in numbers] * 3


@pytest.mark.parametrize("seed", range(300))
def test_a_column_is_read_as_it_was_written_or_not_at_all(seed):
    texts = columns(seed)
    found = readings(texts)
    truth = {mark: [float(number) for number in numbers] for mark, numbers in found.items()}
    for mark, numbers in truth.items():
        assert code({"x": texts}, continuous=["x"], decimal=mark).numbers["x"].tolist() == numbers
    if "," in "".join(texts) and len(truth) == 2:
        with pytest.raises(bbn.AmbiguousNumbersError, match=r"column 'x' .* decimal=',' or decimal='.'"):
            code({"x": texts}, continuous=["x"])
        return
    wanted = truth["."] if "." in truth else truth[","]  # a point alone is a decimal point
    assert code({"x": texts}, continuous=["x"]).numbers["x"].tolist() == wanted
    parts = [{"x": part} for part in (texts[:1], texts[1:2], texts[2:]) if part]
    for order in permutations(parts):
        source = bbn.open_data(list(order), continuous=["x"])
        total = source.reduce(lambda block: [block.numbers["x"].sum()])[0]
        assert total == pytest.approx(sum(wanted))


def test_a_number_that_begins_with_nought_has_no_thousands():
    line = bbn.describe({"x": ["0,247", "0,501", "0,123"] * 9})["x"]
    assert (line.kind, line.why) == ("number", "numbers with fractions with a decimal comma")
    assert learned_mean({"x": ["0,247", "0,501"] * 20}) == learned_mean({"x": [0.247, 0.501] * 20})


def learned_mean(data, **options):
    """The mean of x in the network that is learned."""
    return bbn.learn(data, numbers="gaussian", kinds={"x": "number"}, **options).network.query("x").mean


LEARNERS = [
    bbn.learn,
    bbn.describe,
    bbn.hill_climb,
    bbn.chow_liu,
    lambda d: bbn.fit([("x", "y")], d),
    lambda d: bbn.hill_climb(d, continuous=["x"]),
    lambda d: bbn.hill_climb(d, continuous=None),
    lambda d: bbn.hill_climb(bbn.open_data(d)),
    lambda d: bbn.hill_climb(bbn.open_data(d, continuous=["x"])),
    lambda d: bbn.hill_climb(bbn.open_data([d, d], continuous=None)),
    lambda d: bbn.NaiveBayes().fit(d[["x"]], d["y"]),
    lambda d: bbn.TAN().fit(d[["x"]], d["y"]),
    lambda d: bbn.discretize(d, ["x"]),
]


@pytest.mark.parametrize("learner", LEARNERS)
def test_every_learner_refuses_to_guess(learner):
    data = pd.DataFrame({"x": ["1,234", "12,000", "5"] * 10, "y": ["a", "b", "a"] * 10})
    with pytest.raises(
        bbn.AmbiguousNumbersError, match=r"column 'x' holds '1,234', which is 1.234 with a decimal comma"
    ):
        learner(data)


@pytest.mark.filterwarnings("ignore::bbn.core.errors.CollapsedWarning")
@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame])
def test_what_decimal_says_is_taken_everywhere(make):
    data = make({"x": ["1,234", "12,000", "5"] * 10, "y": ["a", "b", "a"] * 10})
    for told, numbers in ((",", [1.234, 12.0, 5.0]), (".", [1234.0, 12000.0, 5.0])):
        for decimal in (told, {"x": told}):
            line = bbn.describe(data, {"x": "number"}, decimal=decimal)["x"]
            assert line.use == "number"
            assert learned_mean(data, decimal=decimal) == learned_mean(
                {**data, "x": numbers * 10} if make is dict else make({"x": numbers * 10, "y": data["y"]})
            )
            source = bbn.open_data(data, continuous=["x"], decimal=decimal)
            assert source.reduce(lambda b: [b.numbers["x"].sum()])[0] == pytest.approx(10 * sum(numbers))
            net = bbn.fit([("y", "x")], source, continuous=["x"])
            assert net.query("x").mean == pytest.approx(np.mean(numbers))
    assert bbn.describe(data, {"x": "category"})["x"].states == ("1,234", "12,000", "5")
    assert bbn.describe(data, {"x": "drop"})["x"].use == "left out"


def test_decimal_itself_is_checked():
    for ask in (bbn.describe, bbn.learn, bbn.open_data):
        with pytest.raises(ValueError, match=r"decimal is ';'; expected ',' or '.'"):
            ask({"x": ["1", "2"]}, decimal=";")
        with pytest.raises(bbn.DataError, match=r"decimal= names 'prise', which is not a column.*'price'"):
            ask({"price": ["1", "2"]}, decimal={"prise": ","})


def file(folder: Path, separator: str, texts: list[str], name: str = "data.csv") -> str:
    """A CSV file with a column of these texts beside one of words."""
    path = folder / name
    path.write_text(
        f"x{separator}y\n"
        + "".join(f'"{t}"{separator}{w}\n' for t, w in zip(texts, "abcab" * 9, strict=False))
    )
    return str(path)


@pytest.mark.parametrize("many", [False, True])
def test_semicolons_go_with_decimal_commas(tmp_path, many):
    def mean(separator, texts, **options):
        path = file(tmp_path, separator, texts * 5)
        source = bbn.open_data(path, continuous=["x"], **options)
        total = source.reduce(lambda b: [b.numbers["x"].sum()])[0] / source.n_rows
        plain = pd.DataFrame(
            {"x": source.reduce(lambda b: [b.numbers["x"]])[0], "y": pd.read_csv(path, sep=separator)["y"]}
        )
        assert learned_mean([path] if many else path, **options) == pytest.approx(learned_mean(plain))
        return total

    assert mean(";", ["1,234", "2,345"]) == pytest.approx(1.7895)
    assert mean(";", ["1,234", "2,345"], decimal=".") == pytest.approx(1789.5)
    assert mean(";", ["1,234", "1,234,567"]) == pytest.approx(617900.5)
    assert mean(";", ["1.5", "2.25"]) == pytest.approx(1.875)
    assert mean(";", ["1.234", "0,5"]) == pytest.approx(617.25)
    assert mean(",", ["1.234", "2.345"]) == pytest.approx(1.7895)
    for separator, texts in (
        (",", ["1,234", "2,345"]),
        ("\t", ["1,234", "2,345"]),
        (";", ["1.234", "2.345"]),
    ):
        with pytest.raises(bbn.AmbiguousNumbersError):
            mean(separator, texts)


@pytest.mark.filterwarnings("ignore::bbn.core.errors.CollapsedWarning")
def test_a_junk_value_does_not_change_what_commas_mean():
    texts = ["1,5", "junk", "2,5"] * 9
    for options in ({"missing": "junk"}, {"unseen": "missing"}):
        table = code({"x": texts}, continuous=["x"], **options)
        assert np.nanmean(table.numbers["x"]) == 2.0
    net = bbn.fit_em(
        [("y", "x")], {"x": texts, "y": ["a", "b", "b"] * 9}, continuous=["x"], missing="junk"
    ).network
    assert [net.query("x", {"y": y}).mean for y in "ab"] == [1.5, 2.5]


def test_the_command_line_takes_the_decimal_mark(tmp_path, capsys):
    path = file(tmp_path, ",", ["1,234", "12,000", "5,000"] * 12)
    assert main(["learn", path, "-o", str(tmp_path / "net.yaml")]) == 1
    assert "--decimal ',' or --decimal '.' says it" in capsys.readouterr().err
    for mark in ",.":
        out = str(tmp_path / "net.yaml")
        assert (
            main(
                ["learn", path, "-o", out, "--numbers", "gaussian", "--kinds", "x=number", "--decimal", mark]
            )
            == 0
        )
        net = bbn.load(out)
        numbers = [1.234, 12.0, 5.0] if mark == "," else [1234.0, 12000.0, 5000.0]
        words = pd.read_csv(path)["y"]
        assert net.query("x").mean == learned_mean(pd.DataFrame({"x": numbers * 12, "y": [*words]}))
        rows = file(tmp_path, ",", ["1,234"], "rows.csv")
        capsys.readouterr()
        assert (
            main(["predict", out, rows, "--target", "y", "--decimal", mark, "--proba", "--format", "csv"])
            == 0
        )
        told = [float(cell) for cell in capsys.readouterr().out.splitlines()[1].split(",")]
        asked = net.query("y", {"x": 1.234 if mark == "," else 1234})
        assert told == pytest.approx(list(asked.to_dict().values()))
