"""The command line: parse, call, print.

Nothing of the library is imported before a command runs, so `bbn --help` answers at once. A problem is one line
on standard error and exit code 1; wrong usage is exit code 2; `--debug` shows the traceback instead.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

_FILE = "a network file, - for standard input, or the name of an example"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and give its exit code.

    >>> main(["show", "cancer_test", "--brief"])
    cancer_test: 2 nodes, 1 arc, 3 free parameters, 6 table entries
    0
    """
    options = make_parser().parse_args(arguments)
    try:
        module, function = options.run.split(":")
        code: int = getattr(import_module(module), function)(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # whoever read our output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if options.debug or not _is_users(error):
            raise
        print(f"bbn: {_one_line(error)}", file=sys.stderr)
        return 1


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command line; `run` of what it gives names the function to call."""
    parser = argparse.ArgumentParser(
        prog="bbn", description="Bayesian belief networks: check, show, convert and ask them."
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and how it was built")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, run: str, help: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=help, description=help, parents=[common])
        added.set_defaults(run=run)
        return added

    check = command("check", "bbn.cli.files:check", "Check network files and list every problem.")
    check.add_argument("files", nargs="+", metavar="FILE", help=_FILE)
    check.add_argument("--strict", action="store_true", help="rows must sum to 1 within 1e-9")
    check.add_argument(
        "--from", dest="format", metavar="FORMAT", help="the format, where the suffix does not tell"
    )

    show = command("show", "bbn.cli.files:show", "Show a network: nodes, states, parents, tables, size.")
    show.add_argument("file", metavar="FILE", help=_FILE)
    show.add_argument("nodes", nargs="*", metavar="NODE", help="only these nodes")
    show.add_argument("--brief", action="store_true", help="only the size")
    show.add_argument("--all", action="store_true", help="every row of large tables too")

    convert = command("convert", "bbn.cli.files:convert", "Convert a network from one format to another.")
    convert.add_argument("input", metavar="IN", help=_FILE)
    convert.add_argument("output", metavar="OUT", help="the file to write, - for standard output")
    convert.add_argument("--from", dest="from_format", metavar="FORMAT", help="the format of IN")
    convert.add_argument("--to", dest="to_format", metavar="FORMAT", help="the format of OUT (- needs it)")
    convert.add_argument("--strict", action="store_true", help="rows must sum to 1 within 1e-9")

    query = command("query", "bbn.cli.ask:query", "The posterior of targets given evidence.")
    query.add_argument("file", metavar="FILE", help=_FILE)
    query.add_argument(
        "targets", nargs="*", metavar="TARGET", help="variables; none asks for every unobserved one"
    )
    _add_evidence(query)
    query.add_argument("--method", default="auto", help="auto (exact), junction-tree, elimination, gibbs, …")
    query.add_argument("--samples", type=int, metavar="N", help="the number of samples of a sampling method")
    query.add_argument(
        "--target-std-error", type=float, metavar="E", help="sample until errors are this small"
    )
    query.add_argument("--time-limit", type=float, metavar="S", help="sample for at most so many seconds")
    query.add_argument("--seed", type=int, help="the seed of a sampling method")
    _add_format(query, "table")

    mpe = command("mpe", "bbn.cli.ask:mpe", "The most probable explanation of evidence.")
    mpe.add_argument("file", metavar="FILE", help=_FILE)
    mpe.add_argument(
        "targets", nargs="*", metavar="TARGET", help="explain by these alone, the others summed out"
    )
    _add_evidence(mpe)
    mpe.add_argument("-k", type=int, default=1, help="the k best explanations")
    _add_format(mpe, "table")

    predict = command(
        "predict", "bbn.cli.ask:predict", "The most probable state of a target for rows of data."
    )
    predict.add_argument("file", metavar="FILE", help=_FILE)
    predict.add_argument("data", metavar="DATA", help="a CSV or Parquet file; columns absent are unobserved")
    predict.add_argument("--target", required=True, metavar="NAME", help="the variable to predict")
    predict.add_argument("--proba", action="store_true", help="the probability of each state instead")
    predict.add_argument(
        "--impossible",
        choices=["raise", "nan"],
        default="raise",
        help="what to do with rows of probability 0",
    )
    _add_format(predict, "csv")

    sample = command("sample", "bbn.cli.sample:sample", "Draw rows from a network.")
    sample.add_argument("file", metavar="FILE", help=_FILE)
    sample.add_argument("-n", type=int, default=1000, metavar="N", help="the number of rows (1000)")
    sample.add_argument("--seed", type=int, help="the same seed gives the same rows")
    _add_evidence(sample)
    sample.add_argument(
        "--missing",
        action="append",
        default=[],
        metavar="[NAME=]SHARE",
        help="hide this share of the values, of all columns or of one",
    )
    sample.add_argument(
        "-o", "--output", default="-", help="a .csv, .tsv or .parquet file; - is CSV on standard output"
    )
    sample.add_argument(
        "--progress", action=argparse.BooleanOptionalAction, default=None, help="show how far it is"
    )
    sample.set_defaults(targets=[])

    learn = command("learn", "bbn.cli.learn:learn", "Learn a network from data.")
    learn.add_argument("data", metavar="DATA", help="a CSV or Parquet file")
    learn.add_argument(
        "--structure", metavar="FILE", help=f"{_FILE}: its structure, and the start of em and gradient"
    )
    learn.add_argument(
        "--method",
        help="with --structure: mle (complete data), em or gradient (missing values); without: hill-climb, k2, "
        "chow-liu, tan, pc (complete data) or structural-em",
    )
    learn.add_argument(
        "--prior", default="none", metavar="PRIOR", help="bdeu:10, dirichlet:1, laplace, m-estimate:2"
    )
    learn.add_argument(
        "--hidden",
        action="append",
        default=[],
        metavar="NAME=STATE,…",
        help="a variable that was never observed",
    )
    learn.add_argument("--weights", metavar="COLUMN", help="the column that holds the rows' weights")
    learn.add_argument(
        "--missing",
        action="append",
        default=[],
        metavar="TEXT",
        help="what means missing besides an empty field",
    )
    learn.add_argument("--restarts", type=int, help="climbs from so many starts; the best is kept")
    learn.add_argument("--max-iter", type=int, help="the most steps of a climb")
    learn.add_argument("--seed", type=int, help="the seed of random starts")
    learn.add_argument("--checkpoint", metavar="FILE", help="save the climb's state here, and go on from it")
    learn.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="show the likelihood as it climbs",
    )
    learn.add_argument("-o", "--output", default="-", help="the file to write; - is YAML on standard output")
    search = learn.add_argument_group("finding the structure")
    search.add_argument("--order", metavar="NAME,…", help="the order of k2, causes first; or random")
    search.add_argument("--target", metavar="NAME", help="the class variable of tan")
    search.add_argument("--root", metavar="NAME", help="where the arcs of chow-liu and tan begin")
    search.add_argument("--score", help="k2, bdeu, bds, bic, aic, fnml, …")
    search.add_argument("--max-parents", type=int, metavar="N", help="the most parents of a variable")
    search.add_argument(
        "--required", action="append", default=[], metavar="A>B", help="an arc that must be there"
    )
    search.add_argument(
        "--forbidden", action="append", default=[], metavar="A>B", help="an arc that must not be there"
    )
    search.add_argument("--tiers", metavar="A,B;C,D", help="no arc goes from a later group to an earlier one")
    search.add_argument("--alpha", type=float, help="the level of pc's tests (0.05)")
    search.add_argument("--test", help="pc's test: g2, chi2 or mi")
    search.add_argument("--tabu", type=int, metavar="N", help="the length of hill-climb's tabu list")
    search.add_argument("--refine", action="store_true", help="k2: go on by removing and exchanging parents")

    plot = command("plot", "bbn.cli.look:plot", "Draw a network with its beliefs.")
    plot.add_argument("file", metavar="FILE", help=_FILE)
    plot.add_argument(
        "-o", "--output", default="-", help="a .svg, .png or .pdf file; - is SVG on standard output"
    )
    plot.add_argument("--structure", action="store_true", help="without beliefs")
    plot.add_argument("--information", action="store_true", help="arcs the wider the more they tell")
    _add_evidence(plot)
    plot.set_defaults(targets=[])

    explain = command("explain", "bbn.cli.look:explain", "Which findings moved an answer, and by how much.")
    explain.add_argument("file", metavar="FILE", help=_FILE)
    explain.add_argument("target", metavar="TARGET", help="the variable asked about")
    _add_evidence(explain)
    explain.add_argument("--ask-next", action="store_true", help="what each unobserved variable would tell")
    explain.add_argument("--sensitivity", action="store_true", help="how the answer depends on the tables")
    _add_format(explain, "table")
    explain.set_defaults(targets=[])

    explore = command("explore", "bbn.cli.look:explore", "Serve an interactive page of a network.")
    explore.add_argument("file", metavar="FILE", help=_FILE)
    explore.add_argument("--host", default="127.0.0.1", help="where to listen (this machine alone)")
    explore.add_argument("--port", type=int, default=0, help="the port (a free one)")
    explore.add_argument("--no-browser", action="store_true", help="do not open a browser")

    examples = command("examples", "bbn.cli.files:examples", "List the networks that ship with the package.")
    examples.add_argument("--long", action="store_true", help="with their size and what they are about")

    command("demo", "bbn.cli.demo:demo", "Show the main job: load a network, ask it, learn it from rows.")
    return parser


def _add_evidence(parser: argparse.ArgumentParser) -> None:
    def add(*names: str, metavar: str, help: str) -> None:
        parser.add_argument(*names, nargs="+", action="extend", default=[], metavar=metavar, help=help)

    add("-e", "--evidence", metavar="NAME=STATE", help="an observed state")
    add("--virtual", metavar="NAME=STATE:L,…", help="a likelihood for each state, as in B=yes:0.8,no:0.2")
    add("--soft", metavar="NAME=STATE:P,…", help="the marginal that the answer must have (Jeffrey's rule)")
    add("--one-of", metavar="NAME=STATE,…", help="one of several states")
    add("--none-of", metavar="NAME=STATE,…", help="none of these states")


def _add_format(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--format", choices=["table", "json", "csv"], default=default, help=f"how to print ({default})"
    )


class _Version(argparse.Action):
    """Say the version, and whether the kernels are compiled."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from bbn import __version__, kernels

        built = "compiled kernels" if kernels.COMPILED else "numpy kernels (no compiled ones here)"
        print(f"bbn {__version__}, {built}, Python {sys.version.split()[0]}")
        parser.exit()


def _is_users(error: Exception) -> bool:
    """Whether an error is about what the user gave rather than about a fault of the program."""
    from bbn.errors import BBNError

    return isinstance(error, BBNError | OSError | ImportError) or type(error) is ValueError


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror
    return " ".join(str(error).split())
