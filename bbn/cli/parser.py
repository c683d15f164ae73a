"""The parser of the command line: every command with its options.

What is said once here means the same in every command: `--from` and `--to` name a format where the suffix does not
tell, `-` is standard input or output, `--format` is how results are printed, `--seed` makes what is random repeatable.
The metavar of an argument also says how a shell completes it; see `bbn.cli.completion`.
"""

from __future__ import annotations

import argparse
import re
import sys
from typing import NoReturn

from bbn.cli.learn_options import add_learn
from bbn.cli.options import (
    DATA,
    FILE,
    add_dask,
    add_decimal,
    add_do,
    add_evidence,
    add_format,
    add_formulas,
    add_from,
    add_limit,
    add_network,
    add_progress,
    add_seed,
    add_to,
    port_number,
)
from bbn.core.display import visible
from bbn.core.errors import nearest

_CHOICE = re.compile(r"invalid choice: '?(.*?)'? \(choose from (.*)\)")


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, with the nearest choice."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where help is; exit code 2."""
        choice = _CHOICE.search(message)
        if choice is not None:
            choices = [word.strip("' ") for word in choice[2].split(",")]
            message = f"{message[: choice.start()]}there is no {choice[1]!r}{nearest(choice[1], choices)}"
        self.exit(2, f"{self.prog}: {visible(message)} ({self.prog} --help lists what there is)\n")


def make_parser() -> Parser:
    """The parser of the command line; `run` of what it gives names the function to call."""
    parser = Parser(
        prog="bbn",
        description="Bayesian belief networks: check, show, convert and ask them; learn them from data.",
        epilog="Exit codes: 0 done, 1 a problem with a file, data or a question, 2 wrong usage, 70 a fault of bbn, "
        "130 interrupted. NO_COLOR turns colours off. `bbn completion SHELL` prints shell completion.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and how it was built")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    parser.add_argument(
        "-q",
        "--quiet",
        action="store_true",
        help="print only results and errors: no warnings, notes or progress",
    )
    common = Parser(add_help=False)
    for names in (["--debug"], ["-q", "--quiet"]):  # they may stand before or after the command
        common.add_argument(*names, action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, run: str, help: str) -> Parser:
        added = commands.add_parser(name, help=help, description=help, parents=[common])
        added.set_defaults(run=run)
        return added

    check = command("check", "bbn.cli.files:check", "Check network files and list every problem.")
    check.add_argument("files", nargs="+", metavar="FILE", help=FILE)
    add_from(check)
    check.add_argument("--strict", action="store_true", help="rows must sum to 1 within 1e-9")
    add_format(check)

    show = command("show", "bbn.cli.files:show", "Show a network: nodes, states, parents, tables, size.")
    add_network(show)
    show.add_argument("nodes", nargs="*", metavar="NODE", help="only these nodes")
    show.add_argument("--brief", action="store_true", help="only the size")
    show.add_argument("--all", action="store_true", help="every row of large tables too")
    add_format(show)

    convert = command("convert", "bbn.cli.files:convert", "Convert a network from one format to another.")
    convert.add_argument("file", metavar="FILE", help=FILE)
    convert.add_argument("output", metavar="OUT", help="the file to write, - for standard output")
    add_from(convert)
    add_to(convert, "the format of OUT (- needs it)")
    convert.add_argument("--strict", action="store_true", help="rows must sum to 1 within 1e-9")

    query = command("query", "bbn.cli.query:query", "The posterior of targets given evidence.")
    add_network(query)
    query.add_argument(
        "targets", nargs="*", metavar="TARGET", help="variables; none asks for every unobserved one"
    )
    add_evidence(query)
    query.add_argument(
        "--method",
        metavar="METHOD",
        default="auto",
        help="auto (exact), junction-tree, elimination, gibbs, …",
    )
    query.add_argument("--samples", type=int, metavar="N", help="the number of samples of a sampling method")
    query.add_argument(
        "--target-std-error", type=float, metavar="E", help="sample until errors are this small"
    )
    query.add_argument(
        "--time-limit", type=float, metavar="S", help="take at most S seconds; an exact method gives up then"
    )
    add_seed(query, "the seed of a sampling method")
    add_progress(query)
    add_format(query)

    filter_ = command("filter", "bbn.cli.filter:filter_", "Beliefs over time, of a dynamic network.")
    add_network(filter_)
    filter_.add_argument("data", metavar="DATA", help=f"{DATA}, one row a step")
    filter_.add_argument(
        "targets", nargs="*", metavar="TARGET", help="variables; none asks for those not in DATA"
    )
    filter_.add_argument("--sequence", metavar="COLUMN", help="which sequence a row is of")
    filter_.add_argument(
        "--time", metavar="COLUMN", help="the number of a row's step; gaps are unobserved steps"
    )
    how = filter_.add_mutually_exclusive_group()
    how.add_argument("--smooth", action="store_true", help="given all evidence, not only that so far")
    how.add_argument("--forecast", type=int, metavar="N", help="the N steps that follow")
    how.add_argument("--viterbi", action="store_true", help="the most probable path")
    how.add_argument("--particles", type=int, metavar="N", help="sample with N particles")
    add_seed(filter_, "the seed of particles")
    add_format(filter_)
    add_limit(filter_)

    mpe = command("mpe", "bbn.cli.query:mpe", "The most probable explanation of evidence.")
    add_network(mpe)
    mpe.add_argument(
        "targets", nargs="*", metavar="TARGET", help="explain by these alone, the others summed out"
    )
    add_evidence(mpe)
    mpe.add_argument("-k", type=int, metavar="K", help="the K best explanations")
    add_format(mpe)
    add_limit(mpe)

    plan = command("plan", "bbn.cli.plan:plan", "How an exact question would be answered, and what it takes.")
    add_network(plan)
    plan.add_argument(
        "targets", nargs="*", metavar="TARGET", help="variables; none asks for every unobserved one"
    )
    add_evidence(plan)
    plan.add_argument(
        "--mpe", action="store_true", help="the most probable explanation; of targets, their best states"
    )
    plan.add_argument("--run", dest="ran", action="store_true", help="run the plan too, and say what it took")
    plan.add_argument("--memory-limit", metavar="SIZE", help='the most memory, such as "2 GB"')
    plan.add_argument("--format", choices=["table", "json"], default="table", help="how to print (table)")
    add_limit(plan)

    _add_solve(command("solve", "bbn.cli.solve:solve", "The best policy of a decision network."))

    predict = command(
        "predict", "bbn.cli.predict:predict", "The most probable state of a target for rows of data."
    )
    predict.add_argument("file", metavar="FILE", help=FILE)
    predict.add_argument("data", metavar="DATA", help=f"{DATA}; columns absent are unobserved")
    predict.add_argument(
        "--from", dest="from_format", metavar="KIND", help="what DATA is: csv (-), tsv or parquet"
    )
    add_decimal(predict)
    predict.add_argument("--target", required=True, metavar="TARGET", help="the variable to predict")
    add_do(predict)
    predict.add_argument("--proba", action="store_true", help="the probability of each state instead")
    predict.add_argument(
        "--impossible",
        choices=["raise", "nan"],
        default="raise",
        help="what to do with rows of probability 0",
    )
    predict.add_argument(
        "-o",
        "--output",
        default="-",
        metavar="OUT",
        help="a .parquet, .csv or .tsv file, or a folder of Parquet files; - is standard output",
    )
    predict.add_argument("--to", dest="to_format", metavar="KIND", help="what OUT is: csv, tsv or parquet")
    add_formulas(predict)
    add_dask(predict, "answers the rows and writes them to the folder OUT")
    add_format(predict, "csv")
    add_limit(predict)

    sample = command("sample", "bbn.cli.sample:sample", "Draw rows from a network.")
    add_network(sample)
    sample.add_argument("-n", type=int, default=1000, metavar="N", help="the number of rows (1000)")
    add_seed(sample, "the same seed gives the same rows")
    add_evidence(sample)
    sample.add_argument(
        "--missing",
        action="append",
        default=[],
        metavar="[NAME=]SHARE",
        help="hide this share of the values, of all columns or of one",
    )
    sample.add_argument(
        "-o",
        "--output",
        default="-",
        metavar="OUT",
        help="a .csv, .tsv or .parquet file, or a folder of Parquet files; - is standard output",
    )
    sample.add_argument("--to", dest="to_format", metavar="KIND", help="what OUT is: csv (-), tsv or parquet")
    add_formulas(sample)
    add_dask(sample, "draws the rows and writes them to the folder OUT")
    add_progress(sample)
    add_limit(sample)
    sample.set_defaults(targets=None)

    add_learn(command("learn", "bbn.cli.learn:learn", "Learn a network from data."))

    plot = command("plot", "bbn.cli.plot:plot", "Draw a network with its beliefs.")
    add_network(plot)
    plot.add_argument(
        "-o",
        "--output",
        default="-",
        metavar="OUT",
        help="a .svg, .png or .pdf file; - is standard output",
    )
    plot.add_argument("--to", dest="to_format", choices=["svg", "png", "pdf"], help="what OUT is (- is svg)")
    plot.add_argument("--structure", action="store_true", help="without beliefs")
    plot.add_argument("--information", action="store_true", help="arcs the wider the more they tell")
    plot.add_argument("--focus", metavar="TARGET", help="this variable and its neighbourhood alone")
    plot.add_argument("--steps", type=int, default=1, help="how many arcs away from TARGET (1)")
    plot.add_argument("--title", default="", help="a heading above the picture")
    add_evidence(plot)
    plot.set_defaults(targets=None)

    explain = command(
        "explain", "bbn.cli.explain:explain", "Which findings moved an answer, and by how much."
    )
    add_network(explain)
    explain.add_argument("target", metavar="TARGET", help="the variable asked about")
    add_evidence(explain)
    explain.add_argument("--ask-next", action="store_true", help="what each unobserved variable would tell")
    explain.add_argument("--sensitivity", action="store_true", help="how the answer depends on the tables")
    add_format(explain)
    add_limit(explain)
    explain.set_defaults(targets=None)

    explore = command("explore", "bbn.cli.plot:explore", "Serve an interactive page of a network.")
    add_network(explore)
    explore.add_argument("--host", default="127.0.0.1", help="where to listen (this machine alone)")
    explore.add_argument("--port", type=port_number, default=0, help="the port (a free one)")
    explore.add_argument("--no-browser", action="store_true", help="do not open a browser")
    explore.add_argument(
        "--edit", action="store_true", help="let the page edit the network; it saves to a file of its own"
    )
    explore.add_argument("--steps", type=int, default=6, help="slices of a dynamic network (%(default)s)")

    export = command(
        "export", "bbn.cli.plot:export", "Write the interactive page of a network as one HTML file."
    )
    add_network(export)
    export.add_argument("-o", "--output", required=True, metavar="OUT", help="the .html file to write")

    examples = command("examples", "bbn.cli.files:examples", "List the networks that ship with the package.")
    examples.add_argument("--long", action="store_true", help="with their size and what they are about")
    add_format(examples)

    demo = command(
        "demo", "bbn.cli.demo:demo", "Show the main job: load a network, ask it, learn it from rows."
    )
    demo.add_argument(
        "--dask",
        action="store_true",
        help="learn on a cluster instead: two worker processes on this machine, one of which is killed on the way",
    )

    completion = command(
        "completion", "bbn.cli.completion:completion", "Print the completion script of a shell."
    )
    completion.add_argument(
        "shell", choices=["bash", "zsh", "fish"], metavar="SHELL", help="bash, zsh or fish"
    )
    completion.add_argument("--line", help=argparse.SUPPRESS)  # what the scripts call: the line so far
    return parser


def _add_solve(solve: Parser) -> None:
    add_network(solve)
    add_evidence(solve)
    solve.add_argument("--tree", action="store_true", help="print each rule as a tree of questions")
    solve.add_argument(
        "--choices", action="store_true", help="what each choice of each decision is worth, instead"
    )
    solve.add_argument(
        "--information", action="store_true", help="what each variable is worth knowing first, instead"
    )
    solve.add_argument(
        "--cost", action="append", default=[], metavar="NAME=COST", help="what knowing a variable costs"
    )
    solve.add_argument(
        "--sensitivity", action="store_true", help="where the policy flips as each number moves, instead"
    )
    solve.add_argument("--risk", action="store_true", help="the distribution of the total utility, instead")
    solve.add_argument(
        "--risk-tolerance",
        type=float,
        metavar="N",
        help="avoid risk: exponential utility; the smaller, the more",
    )
    solve.add_argument(
        "--method", metavar="METHOD", default="auto", help="for limited memory: auto, exact or local"
    )
    add_seed(solve, "the seed of the random starts of a local search")
    add_format(solve)
    add_limit(solve)
    solve.set_defaults(targets=None)


class _Version(argparse.Action):
    """Say the version, and whether the kernels are compiled; if not, why."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from bbn import __version__, kernels
        from bbn.cli.output import show

        why = kernels.why_pure()
        built = "compiled kernels" if why is None else f"numpy kernels ({why})"
        show(f"bbn {__version__}, {built}, Python {sys.version.split()[0]}")
        parser.exit()
