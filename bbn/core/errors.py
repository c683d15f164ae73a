"""The errors and warnings of bbn, and the one way of suggesting a nearest name.

Every error says where it happened, what was found, what was expected and, where there is one, the
nearest legal choice. All derive from `BBNError`; the kinds a caller may want to tell apart are below.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable


class BBNError(Exception):
    """Any error that bbn raises on purpose."""


class ModelError(BBNError, ValueError):
    """A variable, table or network that is not well formed."""


class EvidenceError(BBNError, ValueError):
    """A question that the network cannot be asked: unknown name or state, or malformed evidence."""


class ImpossibleEvidenceError(EvidenceError):
    """Evidence whose probability is zero.

    Attributes
    ----------
    findings
        The conflicting findings by name, a minimal subset where that was cheap to find.
    """

    def __init__(self, message: str, findings: dict[str, object] | None = None) -> None:
        super().__init__(message, findings or {})
        self.findings: dict[str, object] = findings or {}

    def __str__(self) -> str:
        return str(self.args[0])


class NotIdentifiableError(BBNError):
    """An effect, or a counterfactual, that does not follow from the graph and what is measured.

    Attributes
    ----------
    hedge
        The two sets of variables, the larger first, that show why (Shpitser and Pearl 2006), where there is a hedge.
    """

    def __init__(self, message: str, hedge: tuple[frozenset[str], frozenset[str]] | None = None) -> None:
        super().__init__(message, hedge)
        self.hedge = hedge

    def __str__(self) -> str:
        return str(self.args[0])


class NoSampleError(EvidenceError):
    """Evidence so rare that no sample agreed with it."""


class DataError(BBNError, ValueError):
    """A table of data that does not fit the variables it is meant for."""


class AmbiguousNumbersError(DataError):
    """Text that is numbers whether its commas are decimal commas or set off thousands; `decimal=` says which."""


class ParseError(BBNError, ValueError):
    """A fault in the content of a file: where (path, line, column) and what.

    Attributes
    ----------
    problems
        All the faults found in the file, this one among them, where the reader went on after the first.

    >>> print(ParseError("expected a number, found 'x'", path="a.bif", line=3, column=7))
    a.bif:3:7: expected a number, found 'x'
    """

    def __init__(
        self, message: str, path: str | None = None, line: int | None = None, column: int | None = None
    ) -> None:
        super().__init__(message, path, line, column)
        self.message = message
        self.problems: tuple[ParseError, ...] = ()
        self.path = path
        self.line = line
        self.column = column

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.path, self.line, self.column) if part is not None)
        return f"{place}: {self.message}" if place else self.message


class DamagedFileError(ParseError, DataError):
    """A file of data that cannot be decoded, or whose content does not match its checksums."""


class BudgetError(BBNError):
    """Work that would need more memory than allowed, refused before it starts.

    Attributes
    ----------
    needed, limit
        Bytes the work would take, and bytes it may take, where both are known.
    """

    def __init__(self, message: str, needed: int | None = None, limit: int | None = None) -> None:
        super().__init__(message, needed, limit)
        self.needed = needed
        self.limit = limit

    def __str__(self) -> str:
        return str(self.args[0])


class TimeLimitError(BudgetError):
    """Work that was stopped because it took longer than `time_limit` allows."""


class ClusterError(BBNError):
    """A cluster that cannot do the work: no scheduler answers, no worker is left, or workers die over and over."""


class BBNWarning(UserWarning):
    """Any warning that bbn gives."""


class RenormalisedWarning(BBNWarning):
    """Rows of a file were off 1 by more than rounding explains, and were renormalised."""


class LossyFormatWarning(BBNWarning):
    """A file format cannot hold something of the network that is written to it."""


class UnseenRowsWarning(BBNWarning):
    """Rows of a learned table, or settings of a Gaussian's parents, that no data reached."""


class OverlapWarning(BBNWarning):
    """Groups of the data in which a treatment was never, or almost never, given: its effect there is a guess."""


class UnseenValuesWarning(BBNWarning):
    """Values of new data that are not states of the network; they are taken as missing."""


class TooManyParametersWarning(BBNWarning):
    """A learned network with many more free parameters than there are rows to learn them from."""


class CollapsedWarning(BBNWarning):
    """A learned variance that would be 0, and is held at a floor."""


class AccuracyWarning(BBNWarning):
    """A sampled answer that is poor, or poorer than was asked for: few effective samples, or stopped early."""


class MixingWarning(AccuracyWarning):
    """Chains of Gibbs sampling that disagree, or that zeros in the tables may keep apart."""


class ConvergenceWarning(BBNWarning):
    """An iteration that stopped before it converged."""


class WorkerLostWarning(BBNWarning):
    """A worker of the cluster was lost; its part of the work was done again elsewhere, and the answer is the same."""


class CheckpointWarning(BBNWarning):
    """A checkpoint could not be written; the run went on without it."""


class LeftOutWarning(BBNWarning):
    """A list that is too long to be given whole; the message says what was left out."""


class RedundantColumnsWarning(BBNWarning):
    """Columns that tests of independence cannot use, identifiers and copies of others, were set apart."""


class NoMemberWarning(BBNWarning):
    """A graph with undirected edges does not stand for any DAG; a DAG close to it was returned."""


def warn_user(message: str, kind: type[Warning]) -> None:
    """Warn as if from the line outside the library that called it, however deep inside the warning arises.

    Parameters
    ----------
    message : str
        What to say.
    kind : type of Warning
        One of the classes above.
    """
    import warnings

    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "bbn":
        frame = frame.f_back
        level += 1
    warnings.warn(message, kind, stacklevel=level)


MOST_COMPARED = 100
"""The most choices that `nearest` compares letter by letter with a word."""
LONGEST_COMPARED = 100
"""The most letters of a word, or of a choice, that `nearest` looks at."""


def shown(value: object) -> str:
    """A value as a message shows it: its repr, cut where that is long; an integer may have too many digits for one.

    >>> shown("yes"), shown(10**5000)
    ("'yes'", 'an int with more digits than Python prints')
    """
    try:
        text = repr(value)
    except ValueError:
        article = "an" if isinstance(value, int) else "a"
        return f"{article} {type(value).__name__} with more digits than Python prints"
    return text if len(text) <= _LONG else f"{text[: _LONG // 2]}…{text[-_LONG // 2 :]}"


_LONG = 400
"""Characters from which on a value is cut in a message."""


def nearest(word: object, choices: Iterable[object]) -> str:
    """The clause that ends a message about an unknown `word`: the nearest choice, or all of a few.

    Of more than MOST_COMPARED choices only the likeliest are compared letter by letter, so that the time is linear in
    their number with a small factor.

    >>> nearest("yess", ["yes", "no"])
    "; did you mean 'yes'?"
    >>> nearest("maybe", [1, 2])
    '; expected one of 1, 2'
    """
    import difflib

    known = list(choices)
    try:
        wanted = str(word)[:LONGEST_COMPARED]
    except ValueError:  # an integer of too many digits is near to nothing
        wanted = ""
    by_text = {str(choice)[:LONGEST_COMPARED]: choice for choice in known}
    likely = _likeliest(wanted, list(by_text))
    close = difflib.get_close_matches(wanted, likely, n=1, cutoff=0.6)
    if not close:
        folded = {text.casefold(): text for text in likely}
        close = [folded[match] for match in difflib.get_close_matches(wanted.casefold(), folded, n=1)]
    if close:
        return f"; did you mean {by_text[close[0]]!r}?"
    if not known:
        return ""
    shown = ", ".join(repr(choice) for choice in known[:8])
    return f"; expected one of {shown}" + (f", … ({len(known)} in all)" if len(known) > 8 else "")


def _likeliest(word: str, texts: list[str]) -> list[str]:
    """The texts that share most letters with the word from either end on, capitals or not; all if they are few."""
    if len(texts) <= MOST_COMPARED:
        return texts
    import heapq

    wanted = word.casefold()
    backwards = wanted[::-1]

    def shared(text: str) -> int:
        folded = text.casefold()
        alike = _n_alike(wanted, folded) + _n_alike(backwards, folded[::-1])
        return alike - abs(len(folded) - len(wanted))

    return heapq.nlargest(MOST_COMPARED, texts, key=shared)


def _n_alike(a: str, b: str) -> int:
    """How many letters two texts have in common before the first that differs."""
    n = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        n += 1
    return n
