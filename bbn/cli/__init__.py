"""The command line: parse, call, print. A file here is named after the command that it holds, or the first of them.

Nothing of the library is imported before a command runs, so `bbn --help` answers at once. A problem is one line on
standard error; `--debug` shows the traceback instead.

Exit codes: 0, done; 1, a problem with a file, data or a question; 2, wrong usage; 70, a fault of bbn itself;
130, interrupted.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any

WRONG, FAULT, INTERRUPTED = 1, 70, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and give its exit code.

    >>> main(["show", "cancer_test", "--brief"])
    cancer_test: 2 nodes, 1 arc, 3 free parameters, 6 table entries
    0
    """
    from bbn.cli.output import complain, prepare
    from bbn.cli.parser import make_parser

    prepare(sys.stdout)
    prepare(sys.stderr)
    options = make_parser().parse_args(arguments)
    try:
        with warnings.catch_warnings():
            if options.quiet:
                warnings.simplefilter("ignore")
            else:
                warnings.simplefilter("always", _bbn_warning())
            warnings.showwarning = _warn
            module, function = options.run.split(":")
            with _limited(options):
                code: int = getattr(import_module(module), function)(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # whoever read our output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if options.debug:
            raise
        users = _is_users(error)
        said = _one_line(error) if users else f"{type(error).__name__}: {_one_line(error)}"
        hint = "" if users else " (a fault of bbn; --debug shows where)"
        complain("bbn:", "red", said + hint)
        return WRONG if users else FAULT


def _limited(options: Any) -> AbstractContextManager[None]:
    """The time that --time-limit gives a command whose result is of no use in part."""
    if getattr(options, "command_limit", None) is None:
        return nullcontext()
    from bbn.core.threads import time_limit

    return time_limit(options.command_limit, "or ask for less")


def _bbn_warning() -> type[Warning]:
    from bbn.core.errors import BBNWarning

    return BBNWarning


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    """Show a warning as one line, without the place in the code."""
    from bbn.cli.output import complain

    complain("warning:", "yellow", " ".join(str(message).split()), before="bbn: ")


def _is_users(error: Exception) -> bool:
    """Whether an error is about what the user gave rather than about a fault of the program."""
    from bbn.core.errors import BBNError

    return isinstance(error, BBNError | OSError | ImportError | MemoryError) or type(error) is ValueError


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror
    if isinstance(error, MemoryError):
        return str(error) or "there is not enough memory"
    return " ".join(str(error).split())
