"""The front door: every public name and method documents its parameters, and answers a misspelt one with the nearest.

A name is public if `bbn/__init__.pyi` lists it; so are the methods of a public class, and the classes that public
functions and methods give back.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import bbn
from bbn.core.keywords import keywords_checked
from bbn.model.options import EngineOptions, Method

OPTIONAL = ("bbn.cli", "bbn.__main__", "bbn.kernels")
"""Rooms that no user calls by name."""


def public_names() -> list[str]:
    """The names that the stub imports from files, not the rooms themselves."""
    stub = ast.parse(Path(bbn.__file__).with_suffix(".pyi").read_text())
    homes = [
        node for node in stub.body if isinstance(node, ast.ImportFrom) and node.module not in (None, "model")
    ]
    return [alias.name for home in homes for alias in home.names]


def bbn_classes() -> dict[str, type]:
    """Every class of the library by name."""
    found: dict[str, type] = {}
    for module in pkgutil.walk_packages(bbn.__path__, "bbn."):
        if not module.name.startswith(OPTIONAL):
            loaded = importlib.import_module(module.name)
            found |= {
                n: c for n, c in vars(loaded).items() if isinstance(c, type) and c.__module__ == module.name
            }
    return found


def is_error(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, BaseException)


def methods(kind: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The public methods of a class that the library itself defines, inherited ones too, properties left out."""
    for name, value in inspect.getmembers_static(kind):
        function = getattr(value, "__func__", value)
        if (
            not name.startswith("_")
            and inspect.isfunction(function)
            and function.__module__.startswith("bbn.")
        ):
            yield name, function


def doors() -> dict[str, tuple[Callable[..., Any], str]]:
    """Public callable by name, with the docstring that must document it."""
    found: dict[str, tuple[Callable[..., Any], str]] = {}
    known = bbn_classes()
    waiting = [(f"bbn.{name}", getattr(bbn, name)) for name in public_names()]
    seen: set[object] = set()
    for name, value in waiting:
        if is_error(value) or value in seen or not callable(value):
            continue
        seen.add(value)
        if isinstance(value, type):
            if name.startswith("bbn.") and name.count(".") == 1:  # results are not made by users
                found[name] = (value, inspect.getdoc(value) or "")
            for method, function in methods(value):
                found[f"{name}.{method}"] = (function, inspect.getdoc(function) or "")
        else:
            found[name] = (value, inspect.getdoc(value) or "")
        for key in [key for key in found if key == name or key.startswith(f"{name}.")]:
            given = str(getattr(found[key][0], "__annotations__", {}).get("return", ""))
            results = [known[word] for word in re.findall(r"\w+", given) if word in known]
            waiting.extend((f"{kind.__module__}.{kind.__name__}", kind) for kind in results)
    return found


DOORS = doors()


def documented(doc: str) -> set[str]:
    """The names that the Parameters (of a value: or Attributes) section lists."""
    names: set[str] = set()
    for section in re.finditer(
        r"^(Parameters|Attributes)\n-+\n(.*?)(?=^\S[^\n]*\n-{3,}\n|\Z)", doc, re.M | re.S
    ):
        for line in section[2].splitlines():
            if re.match(r"[\w*]", line) and not line.startswith(">>>"):
                head = line.split(" : ")[0]
                names |= {word.strip().lstrip("*") for word in head.split(",")}
    return names


def options_of(function: Callable[..., Any], parameter: inspect.Parameter) -> set[str]:
    """The keys that ``**parameter`` may have; those of the TypedDict that it unpacks, or none that are known."""
    scope = vars(importlib.import_module(function.__module__)) | vars(typing)
    try:
        unpacked = typing.get_args(eval(str(parameter.annotation), scope))
    except NameError:
        return set()
    return set(unpacked[0].__annotations__) if unpacked else set()


def undocumented(function: Callable[..., Any], doc: str) -> list[str]:
    """The parameters, and the keys of an unpacked TypedDict, that the docstring does not list."""
    there, absent = documented(doc), []
    for name, parameter in inspect.signature(function).parameters.items():
        if name in ("self", "cls") or name.startswith("_"):
            continue
        keys = options_of(function, parameter) if parameter.kind is parameter.VAR_KEYWORD else set()
        absent += [key for key in sorted(keys or {name}) if key not in there]
    return absent


@pytest.mark.parametrize("name", sorted(DOORS))
def test_every_parameter_is_documented(name: str) -> None:
    function, doc = DOORS[name]
    where = (inspect.getsourcefile(inspect.unwrap(function)) or "").partition("/bbn/")[2]
    assert doc, f"{name} (bbn/{where}) has no docstring"
    absent = undocumented(function, doc)
    lines = "\n".join(f"    {each} : type\n        What it does, and each legal value." for each in absent)
    assert not absent, (
        f"{name} (bbn/{where}) does not document {', '.join(absent)}. Its docstring needs:\n\n"
        f"    Parameters\n    ----------\n{lines}"
    )


FUNCTIONS = [
    name for name, (door, _) in sorted(DOORS.items()) if name.count(".") == 1 and not isinstance(door, type)
]
METHODS = ["query", "posteriors", "mpe", "map", "predict", "predict_proba", "log_likelihood", "sample"]
METHODS += ["explain", "information", "sensitivity", "plot", "explore"]
QUESTIONS = [f"bbn.BayesianNetwork.{method}" for method in METHODS]
REQUIRED: dict[str, Any] = {
    "targets": "lung",
    "target": "lung",
    "evidence": {},
    "n": 1,
    "data": {"xray": ["yes"]},
}


@pytest.mark.parametrize("name", FUNCTIONS + QUESTIONS)
def test_an_unknown_keyword_is_a_type_error_that_names_the_nearest(name: str) -> None:
    function, _ = DOORS[name]
    parameters = [p for p in inspect.signature(function).parameters.values() if p.name != "self"]
    named = [p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if not named:
        pytest.skip("it has no keywords")
    unpacked = [options_of(function, p) for p in parameters if p.kind is p.VAR_KEYWORD]
    known = "memory_limit" if any(unpacked) else named[-1]
    misspelt = known + "x"
    given: dict[str, Any] = {}
    if any(p.kind is p.VAR_KEYWORD for p in parameters) and not any(
        unpacked
    ):  # they go to a learner of its choice
        given = {"data": {"A": [0, 1] * 10, "B": [0, 1, 1, 0, 1] * 4}}
    if name in QUESTIONS:
        given = {p.name: REQUIRED[p.name] for p in parameters if p.name in REQUIRED and p.default is p.empty}
        function = getattr(bbn.example("asia"), name.rpartition(".")[2])
    with pytest.raises(TypeError, match=rf"no option '{misspelt}'; did you mean '{known}'\?"):
        function(**given, **{misspelt: None})


def test_a_type_error_from_inside_a_checked_function_is_left_alone() -> None:
    @keywords_checked
    def halve(number: Any, digits: int = 2) -> float:
        return round(number / 2, digits)

    with pytest.raises(TypeError, match="unsupported operand"):
        halve("x", digits=3)
    assert inspect.signature(halve).parameters.keys() == {"number", "digits"}


def test_the_options_as_types_are_those_that_engines_take() -> None:
    from bbn.inference import ENGINES, engine_class

    assert set(typing.get_args(Method)) == {"auto", *ENGINES}
    for method in ENGINES:
        engine = engine_class(method)
        unpacked = inspect.signature(engine).parameters["options"]
        assert options_of(engine, unpacked) == set(engine.defaults), method
        assert set(engine.defaults) <= set(EngineOptions.__annotations__), method


def test_a_warning_points_at_the_line_that_called_the_library() -> None:
    with pytest.warns(bbn.UnseenRowsWarning) as found:
        bbn.fit([("A", "B")], {"A": [0, 0], "B": [0, 1]}, states={"A": [0, 1]})
    assert [warning.filename for warning in found] == [__file__]
