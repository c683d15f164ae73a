"""The methods of models that rooms above answer: what is named is what there is, and is loaded when it is used."""

import ast
import inspect
import pickle
import pydoc
import re
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

import pytest

import bbn
from bbn.core.upward import LateMethod, answered_by
from bbn.model import questions

ROOT = Path(__file__).parents[2]
SOURCE = ast.parse(Path(questions.__file__).read_text())
MODELS = [bbn.BayesianNetwork, bbn.FactorGraph, bbn.DecisionNetwork, bbn.DynamicNetwork]


def layers():
    """The rooms from the bottom up, those on one rung together."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    rungs = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    return [re.findall(r"\w+", rung) for rung in reversed(rungs)]


def seen_by_editors():
    """Name to the module that a type checker takes the class from."""
    checking = next(node for node in SOURCE.body if isinstance(node, ast.If))
    return {alias.name: node.module for node in checking.body for alias in node.names}


def made():
    """Name to the class and the methods that are named for it."""
    checking = next(node for node in SOURCE.body if isinstance(node, ast.If))
    found = {}
    for node in checking.orelse:
        given = eval(ast.unparse(node.value), {"answered_by": lambda *args: args})
        found[node.targets[0].id] = (given[0], set(given[1:]))
    return found


@pytest.mark.parametrize("name", made())
def test_what_runs_is_what_editors_see(name):
    home, methods = made()[name]
    module, kind = home.split(":")
    assert (module, kind) == (seen_by_editors()[name], name)
    answering = getattr(import_module(module), kind)
    defined = {n for n, value in vars(answering).items() if callable(value)}
    assert methods == defined
    for method in methods:
        assert vars(answering)[method].__name__ == method
        assert getattr(getattr(questions, name), method) is vars(answering)[method]


def test_every_answering_class_is_above_and_named_once():
    rungs = layers()
    model = next(i for i, rung in enumerate(rungs) if "model" in rung)
    for home, _ in made().values():
        room = home.split(".")[1]
        assert any(room in rung for rung in rungs[model + 1 :]), home
    users = [
        p for p in (ROOT / "bbn").rglob("*.py") if re.search(r"answered_by\(|LateMethod\(", p.read_text())
    ]
    assert {str(p.relative_to(ROOT / "bbn")) for p in users} == {"model/questions.py", "core/upward.py"}


@pytest.mark.parametrize("model", MODELS)
def test_help_and_signatures_are_those_of_the_methods(model):
    named = {name for name in dir(model) if not name.startswith("_")}
    text = pydoc.plain(pydoc.render_doc(model))
    answered = [n for kind in model.__mro__ if kind.__name__ in made() for n in vars(kind) if n in named]
    assert answered
    for name in answered:
        method = getattr(model, name)
        assert inspect.isfunction(method)
        assert next(iter(inspect.signature(method).parameters)) == "self"
        assert inspect.getdoc(method).splitlines()[0] in re.sub(r"\n[ |]+", "\n", text)


def test_a_model_loads_no_room_above_until_it_is_asked():
    program = """if True:
        import sys, bbn
        v = bbn.Variable("A", ["x", "y"])
        net = bbn.BayesianNetwork([bbn.CPT(v, table=[0.25, 0.75])])
        below = {"core", "kernels", "model", "_version"}
        print(sorted({m.split(".")[1] for m in sys.modules if m.startswith("bbn.")} - below))
        print(net.query("A")["y"], "bbn.view" in sys.modules, "bbn.analysis" in sys.modules)
    """
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.splitlines() == ["[]", "0.75 False False"]


def test_bound_methods_can_be_pickled_and_overridden():
    net = bbn.example("burglary")
    again = pickle.loads(pickle.dumps(net.query))
    assert again("Alarm") == net.query("Alarm")

    class Counting(bbn.BayesianNetwork):
        __slots__ = ()
        asked = 0

        def query(self, *args, **options):
            Counting.asked += 1
            return super().query(*args, **options)

    counting = Counting(net.conditionals)
    assert counting.query("Alarm") == net.query("Alarm")
    assert Counting.asked == 1


def test_the_first_look_from_many_threads_finds_one_method():
    for _ in range(20):
        late = answered_by("bbn.inference.questions:ModelQuestions", "query")
        assert isinstance(vars(late)["query"], LateMethod)
        with ThreadPoolExecutor(8) as pool:
            found = set(pool.map(getattr, [late] * 8, ["query"] * 8))
        assert found == {bbn.BayesianNetwork.query}
        assert inspect.isfunction(vars(late)["query"])


def test_an_unknown_method_is_an_attribute_error():
    with pytest.raises(AttributeError, match="qurey"):
        bbn.example("burglary").qurey  # noqa: B018
