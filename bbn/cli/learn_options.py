"""The options of `bbn learn`."""

from __future__ import annotations

import argparse

from bbn.cli.options import DATA, FILE, add_dask, add_decimal, add_progress, add_seed, add_to


def add_learn(learn: argparse.ArgumentParser) -> None:
    """Add what `bbn learn` understands."""
    learn.add_argument("data", metavar="DATA", help=DATA)
    learn.add_argument(
        "--from", dest="from_format", metavar="KIND", help="what DATA is: csv (-), tsv or parquet"
    )
    learn.add_argument(
        "--structure", metavar="FILE", help=f"{FILE}: its structure, and the start of em and gradient"
    )
    learn.add_argument(
        "--method",
        metavar="LEARNER",
        help="with --structure: mle (complete data), em or gradient (missing values); without: hill-climb, k2, "
        "chow-liu, tan, pc, ges (complete data) or structural-em. Chosen by what DATA holds unless given",
    )
    learn.add_argument(
        "--report",
        metavar="PAGE.html",
        help="write one self-contained page: columns, picture, arcs, tables, held-out scores, warnings",
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
    learn.add_argument(
        "--sequence", metavar="COLUMN", help="which sequence a row is of, for a dynamic network"
    )
    learn.add_argument("--time", metavar="COLUMN", help="the number of a row's step, for a dynamic network")
    learn.add_argument(
        "--lag", type=int, metavar="N", help="how many steps back arcs may reach, for a dynamic network (1)"
    )
    columns = learn.add_argument_group("reading the columns")
    columns.add_argument(
        "--kinds",
        action="append",
        default=[],
        metavar="COLUMN=KIND,…",
        help="what columns are, where they are read wrongly: category, number, whole number, truth value, date, "
        "identifier, constant, counts or drop",
    )
    columns.add_argument(
        "--drop", action="append", default=[], metavar="COLUMN,…", help="columns to leave out"
    )
    columns.add_argument(
        "--keep", action="append", default=[], metavar="COLUMN,…", help="leave out all columns but these"
    )
    columns.add_argument(
        "--numbers",
        default="auto",
        metavar="HOW",
        choices=("auto", "cut", "gaussian"),
        help="cut numbers into intervals (cut), keep them as Gaussians (gaussian), or take what predicts held-out "
        "rows better (auto)",
    )
    columns.add_argument("--weights", metavar="COLUMN", help="the column that holds the rows' weights")
    columns.add_argument(
        "--missing",
        action="append",
        default=[],
        metavar="TEXT",
        help="what means missing besides an empty field (and NA, ? and the like among numbers)",
    )
    add_decimal(columns)
    learn.add_argument("--restarts", type=int, metavar="N", help="climb from N starts and keep the best")
    learn.add_argument("--max-iter", type=int, metavar="N", help="the most steps of a climb")
    add_seed(learn, "the seed of random starts")
    learn.add_argument(
        "--time-limit",
        type=float,
        metavar="S",
        help="take at most S seconds; climbs and searches give the best so far",
    )
    learn.add_argument("--checkpoint", metavar="PATH", help="save the climb's state here, and go on from it")
    add_dask(learn, "reads DATA, which its workers must reach, and counts")
    add_progress(learn)
    learn.add_argument(
        "-o", "--output", default="-", metavar="OUT", help="the file to write; - is standard output"
    )
    add_to(learn, "the format of OUT (- is yaml)")
    search = learn.add_argument_group("finding the structure")
    search.add_argument("--order", metavar="NAME,…", help="the order of k2, causes first; or random")
    search.add_argument(
        "--target", metavar="COLUMN", help="the column to predict: chooses what predicts it best"
    )
    search.add_argument("--root", metavar="COLUMN", help="where the arcs of chow-liu and tan begin")
    search.add_argument("--score", metavar="SCORE", help="k2, bdeu, bds, bic, aic, fnml, bge, …")
    search.add_argument("--max-parents", type=int, metavar="N", help="the most parents of a variable")
    search.add_argument(
        "--required", action="append", default=[], metavar="A>B", help="an arc that must be there"
    )
    search.add_argument(
        "--forbidden", action="append", default=[], metavar="A>B", help="an arc that must not be there"
    )
    search.add_argument("--tiers", metavar="A,B;C,D", help="no arc goes from a later group to an earlier one")
    search.add_argument("--alpha", type=float, help="the level of pc's tests (0.05)")
    search.add_argument("--test", metavar="TEST", help="pc's test: auto, g2, chi2, mi, fisher-z, cor or lrt")
    search.add_argument("--tabu", type=int, metavar="N", help="the length of hill-climb's tabu list")
    search.add_argument("--refine", action="store_true", help="k2: go on by removing and exchanging parents")
