"""Options that several commands share: each is written once, and means the same in every command."""

from __future__ import annotations

import argparse
from typing import Any

FILE = "a network file, - for standard input, or the name of an example"
DATA = "a CSV or Parquet file, - for standard input"


def add_network(parser: argparse.ArgumentParser) -> None:
    """Add FILE and the option that names its format."""
    parser.add_argument("file", metavar="FILE", help=FILE)
    add_from(parser)


def add_from(parser: argparse.ArgumentParser) -> None:
    """Add --from."""
    parser.add_argument(
        "--from",
        dest="from_format",
        metavar="FORMAT",
        help="the format of FILE, where its suffix does not tell",
    )


def add_to(parser: argparse.ArgumentParser, help: str) -> None:
    """Add --to."""
    parser.add_argument("--to", dest="to_format", metavar="FORMAT", help=help)


class Findings(argparse.Action):
    """Extend a list of NAME=STATE; the first word after the option must be one, later ones may be targets."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Add the words to those of the option so far."""
        if "=" not in values[0]:
            raise argparse.ArgumentError(self, f"expected {self.metavar}, found {values[0]!r}")
        setattr(namespace, self.dest, [*getattr(namespace, self.dest), *values])


def add_evidence(parser: argparse.ArgumentParser) -> None:
    """Add Every kind of evidence, and --do."""

    def add(*names: str, metavar: str, help: str, action: Any = "extend") -> None:
        parser.add_argument(*names, nargs="+", action=action, default=[], metavar=metavar, help=help)

    add("-e", "--evidence", metavar="NAME=STATE", help="an observed state, or number", action=Findings)
    add("--virtual", metavar="NAME=STATE:L,…", help="a likelihood for each state, as in B=yes:0.8,no:0.2")
    add("--soft", metavar="NAME=STATE:P,…", help="the marginal that the answer must have (Jeffrey's rule)")
    add("--one-of", metavar="NAME=STATE,…", help="one of several states")
    add("--none-of", metavar="NAME=STATE,…", help="none of these states")
    add_do(parser)


def add_do(parser: argparse.ArgumentParser) -> None:
    """Add --do."""
    parser.add_argument(
        "--do",
        nargs="+",
        action=Findings,
        default=[],
        metavar="NAME=STATE",
        help="set a variable from outside, before anything is observed; NAME=STATE:P,… draws its state",
    )


def add_decimal(parser: Any) -> None:
    """Add --decimal."""
    parser.add_argument(
        "--decimal",
        choices=(",", "."),
        help="the decimal mark of DATA, where its numbers do not tell: 1,234 is a thousand or 1.234",
    )


def add_dask(parser: argparse.ArgumentParser, does: str) -> None:
    """Add --dask, with what the cluster does."""
    parser.add_argument("--dask", metavar="ADDRESS", help=f"the scheduler of a Dask cluster that {does}")


def add_format(parser: argparse.ArgumentParser, default: str = "table") -> None:
    """Add --format; where the default is a table, --escape-formulas too."""
    parser.add_argument(
        "--format", choices=["table", "json", "csv"], default=default, help=f"how to print ({default})"
    )
    if default == "table":  # others write CSV files too, and have it already
        add_formulas(parser)


def add_formulas(parser: argparse.ArgumentParser) -> None:
    """Add --escape-formulas."""
    parser.add_argument(
        "--escape-formulas",
        action="store_true",
        help="in CSV, put ' before cells that a spreadsheet would take for formulas (= + - @)",
    )


def add_seed(parser: argparse.ArgumentParser, help: str) -> None:
    """Add --seed."""
    parser.add_argument("--seed", type=seed_number, metavar="N", help=help)


def add_progress(parser: argparse.ArgumentParser) -> None:
    """Add --progress and --no-progress."""
    parser.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="show how far it is (on a terminal, once it takes a second)",
    )


def seed_number(text: str) -> int:
    """The value of --seed."""
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"expected a whole number, at least 0, found {text}")
    return number


def port_number(text: str) -> int:
    """The value of --port."""
    number = int(text)
    if not 0 <= number < 1 << 16:
        raise argparse.ArgumentTypeError(f"expected a port from 0 to 65535, found {text}")
    return number


def add_limit(parser: argparse.ArgumentParser) -> None:
    """Add --time-limit to a command whose result is of no use in part."""
    parser.add_argument(
        "--time-limit",
        dest="command_limit",
        type=float,
        metavar="S",
        help="give up after S seconds, or at once where it would take far longer",
    )
