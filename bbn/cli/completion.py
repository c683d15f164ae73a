"""Shell completion: `bbn completion bash|zsh|fish` prints a script that asks bbn itself what may come next.

The script hands over the line up to the cursor; the answer is one candidate per line: commands, options and their
choices, files and examples, and from the network on the line its variables and states. How an argument completes is
read from its metavar. Anything that goes wrong gives no candidates, never an error in the middle of typing.
"""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from bbn.cli.output import write
from bbn.core.display import visible

if TYPE_CHECKING:
    from bbn.model.network import BayesianNetwork

LARGEST = 8 << 20
"""A network file of more bytes is not opened for the sake of completion."""

SCRIPTS = {
    "bash": """\
_bbn() {
    local line="${COMP_LINE:0:COMP_POINT}" found word
    word="${line##*[[:space:]]}"
    COMPREPLY=()
    while IFS= read -r found; do
        # Where = breaks words, bash replaces only what follows it.
        [[ $COMP_WORDBREAKS == *=* ]] && found="${found#"${word%"${word##*=}"}"}"
        printf -v found %q "$found"
        COMPREPLY+=("$found")
    done < <(bbn completion bash --line "$line" 2>/dev/null)
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=/] ]] && compopt -o nospace 2>/dev/null
    return 0
}
complete -o nosort -o default -F _bbn bbn
""",
    "zsh": """\
#compdef bbn
_bbn() {
    local -a found
    found=("${(@f)$(bbn completion zsh --line "${(j: :)words[1,CURRENT]}" 2>/dev/null)}")
    compadd -S '' -- ${(M)found:#*[=/]}
    compadd -- ${found:#*[=/]}
}
if [[ $funcstack[1] == _bbn ]]; then _bbn; else compdef _bbn bbn; fi
""",
    "fish": """\
complete -c bbn -f -a '(bbn completion fish --line (commandline -cp | string collect) 2>/dev/null)'
""",
}


def completion(options: argparse.Namespace) -> int:
    """Print the script of a shell, or what may come next on a line."""
    if options.line is None:
        write(SCRIPTS[options.shell])
        return 0
    try:
        found = candidates(options.line)
    except Exception:  # a half-typed line, a broken file: nothing to offer
        found = []
    if found:
        write("\n".join(map(visible, found)) + "\n")
    return 0


def candidates(line: str) -> list[str]:
    """What the last word of a line may become.

    >>> candidates("bbn conv")
    ['convert']
    >>> candidates("bbn query asia lu")
    ['lung']
    >>> candidates("bbn query asia lung -e xray=")
    ['xray=yes', 'xray=no']
    """
    words, word = _split(line)
    from bbn.cli.parser import make_parser

    parser = make_parser()
    commands = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    chosen = next((i for i, given in enumerate(words) if given in commands.choices), None)
    if chosen is None:
        found: Iterable[str] = _options(parser) if word.startswith("-") else commands.choices
    else:
        found = _arguments(commands.choices[words[chosen]], words[chosen + 1 :], word)
    return [candidate for candidate in found if candidate.startswith(word)]


def _split(line: str) -> tuple[list[str], str]:
    """The words after `bbn`, and the one being typed."""
    words: list[str] = []
    for quote in ("", "'", '"'):
        try:
            words = shlex.split(line + quote)
        except ValueError:  # an open quote
            continue
        break
    word = words.pop() if words and not line[-1:].isspace() else ""
    return words[1:], word


def _arguments(parser: argparse.ArgumentParser, words: list[str], word: str) -> Iterable[str]:
    """The candidates for the next word of a command."""
    by_option = parser._option_string_actions
    network_name, positional, open_action = None, 0, None
    places = [action for action in parser._actions if not action.option_strings]
    for given in words:
        if given in by_option:
            open_action = by_option[given] if by_option[given].nargs != 0 else None
        elif open_action is not None:
            if open_action.nargs != "+":
                open_action = None
        elif positional < len(places):
            action = places[positional]
            if action.metavar == "FILE" and network_name is None:
                network_name = given
            positional += action.nargs is None
    if word.startswith("-"):
        return _options(parser)
    wanted = open_action or (places[positional] if positional < len(places) else None)
    if wanted is None:
        return []
    if wanted.choices is not None:
        return [str(choice) for choice in wanted.choices]
    return COMPLETERS.get(str(wanted.metavar), _nothing)(word, network_name)


def _options(parser: argparse.ArgumentParser) -> list[str]:
    shown = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    return [name for action in shown for name in action.option_strings if name.startswith("--")]


def _nothing(word: str, network: str | None) -> list[str]:
    return []


def _paths(word: str, network: str | None) -> list[str]:
    """Files and folders whose path begins with the word."""
    folder, start = os.path.split(word)
    with os.scandir(folder or ".") as entries:
        hits = sorted(
            (entry for entry in entries if entry.name.startswith(start)), key=lambda entry: entry.name
        )
    return [
        os.path.join(folder, entry.name) + "/" * entry.is_dir()
        for entry in hits
        if start or not entry.name.startswith(".")
    ]


def _networks(word: str, network: str | None) -> list[str]:
    from bbn.io.examples import examples

    return [*_paths(word, None), *examples()]


def _variables(word: str, network: str | None) -> list[str]:
    return list(_open(network).names)


def _findings(word: str, network: str | None) -> list[str]:
    """NAME= for each variable; after the =, its states; after a state and a comma, the others."""
    net = _open(network)
    name, equals, value = word.partition("=")
    if not equals:
        return [f"{variable.name}=" for variable in net.variables]
    before = value[: value.rfind(",") + 1]
    return [f"{name}={before}{state}" for state in net.states(name)]


def _methods(word: str, network: str | None) -> list[str]:
    from bbn.inference import ENGINES

    return ["auto", *ENGINES]


def _learners(word: str, network: str | None) -> list[str]:
    from bbn.cli.learn import METHODS
    from bbn.cli.learn_structure import METHODS as STRUCTURES

    return [*METHODS, *STRUCTURES]


def _formats(word: str, network: str | None) -> list[str]:
    from bbn.io import FORMATS

    return [format.name for format in FORMATS]


def _scores(word: str, network: str | None) -> list[str]:
    from bbn.learning.structure.discrete_scores import SCORES

    return list(SCORES)


def _kinds(word: str, network: str | None) -> list[str]:
    from bbn.cli.files import KINDS

    return list(KINDS)


def _open(name: str | None) -> BayesianNetwork:
    from bbn.cli.files import open_model

    if name is None or name == "-" or (os.path.exists(name) and os.path.getsize(name) > LARGEST):
        raise ValueError("there is no network to look at")
    model: BayesianNetwork = open_model(name)
    return model


COMPLETERS: dict[str, Callable[[str, Any], list[str]]] = {
    "FILE": _networks,
    "DATA": _paths,
    "OUT": _paths,
    "PATH": _paths,
    "NODE": _variables,
    "TARGET": _variables,
    "NAME=COST": _findings,
    "NAME=STATE": _findings,
    "NAME=STATE,…": _findings,
    "NAME=STATE:L,…": _findings,
    "NAME=STATE:P,…": _findings,
    "METHOD": _methods,
    "LEARNER": _learners,
    "FORMAT": _formats,
    "KIND": _kinds,
    "SCORE": _scores,
}
"""By an argument's metavar, what it may be: (the word so far, the network's name) to candidates."""
