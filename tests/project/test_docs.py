"""The documentation: it builds without a warning, needs no network, its code runs and prints what the pages say."""

from __future__ import annotations

import io
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from contextlib import redirect_stdout
from pathlib import Path

import pytest

import bbn
from bbn.cli.parser import make_parser

ROOT = Path(__file__).parents[2]
ROOMS = {path.name for path in (ROOT / "bbn").iterdir() if path.is_dir()} | {"graphs"}
PAGES = {
    str(path.relative_to(ROOT)): path.read_text()
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if "_build" not in path.parts
}
BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> list[tuple[str, str]]:
    """The kind and text of each block of code on a page."""
    return [(kind, textwrap.dedent(text)) for _, kind, text in BLOCK.findall(PAGES[page])]


@pytest.mark.parametrize("page", [page for page in PAGES if "```python" in PAGES[page]])
def test_the_code_in_the_pages_runs_and_prints_what_it_says(page, tmp_path, monkeypatch):
    if "to_pgmpy" in PAGES[page]:
        pytest.importorskip("pgmpy", reason="the page converts a network to pgmpy")
        pytest.importorskip("pyagrum", reason="the page converts a network to pyAgrum")
    (tmp_path / "models").symlink_to(ROOT / "models")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"bbn": bbn}
    printed = None
    for kind, text in blocks(page):
        if kind == "python":
            output = io.StringIO()
            with redirect_stdout(output):
                exec(compile(text, page, "exec"), names)
            printed = output.getvalue()
        elif kind == "text" and printed:
            assert printed == text
            printed = None


@pytest.mark.parametrize("page", ["README.md", "docs/file-format.md"])
def test_the_yaml_in_the_pages_is_the_campfire_network(page):
    text = next(text for kind, text in blocks(page) if kind == "yaml")
    assert bbn.io.loads(text, "yaml", strict=True)["Campfire"] == bbn.example("campfire")["Campfire"]


@pytest.mark.parametrize("page", [page for page in PAGES if re.search("^ *bbn ", PAGES[page], re.MULTILINE)])
def test_the_commands_in_the_pages_are_right(page):
    parser = make_parser()
    for kind, text in blocks(page):
        for line in text.splitlines() if kind == "sh" else ():
            for part in re.split(r"[|;]", line.split(" > ")[0]):
                words = shlex.split(part, comments=True)
                if words[:1] == ["bbn"] and words[1:] != ["--help"]:
                    parser.parse_args(words[1:])


@pytest.mark.parametrize("page", [page for page in PAGES if page != "docs/api.md"])
def test_the_names_in_the_pages_exist(page):
    for name in set(re.findall(r"(?<![/\w])bbn\.([a-zA-Z_]\w*)\b", PAGES[page])):
        assert hasattr(bbn, name), f"bbn.{name}"


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere_and_pictures_say_what_they_show(page):
    folder = (ROOT / page).parent
    plain = BLOCK.sub("", PAGES[page])
    for alternative, target in re.findall(r"!\[(.*?)\]\((.*?)\)", plain):
        assert len(alternative) > 8, target
        assert (folder / target).exists(), target
    for target in re.findall(r"(?<!!)\[[^\]]*\]\(([^)#]+)(?:#[^)]*)?\)", plain):
        if "://" not in target:
            assert (folder / target).exists(), target


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages as HTML."""
    for module in ("sphinx", "myst_parser", "furo", "latex2mathml"):
        pytest.importorskip(module, reason="Sphinx and its parts build the documentation")
    folder = tmp_path_factory.mktemp("docs")
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("_build"))
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html", folder / "docs", folder / "html"]
    told = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert told.returncode == 0, told.stderr
    return folder / "html"


@pytest.mark.slow
def test_it_builds_without_a_warning(built):
    assert (built / "index.html").exists()


@pytest.mark.slow
def test_every_public_name_is_in_the_reference(built):
    page = (built / "api.html").read_text()
    for name in set(bbn.__all__) - ROOMS:
        assert f'id="bbn.{name}"' in page, name


@pytest.mark.slow
def test_it_needs_no_network(built):
    for path in built.rglob("*.html"):
        text = path.read_text()
        assert not re.findall(r'<(?:script|img|iframe)[^>]*src="(?:https?:)?//', text), path.name
        assert not re.findall(r'<link[^>]*rel="(?:stylesheet|preload)"[^>]*href="(?:https?:)?//', text), (
            path.name
        )
    for path in built.rglob("*.css"):
        assert not re.findall(r"url\(['\"]?(?:https?:)?//", path.read_text()), path.name


@pytest.mark.slow
def test_equations_are_drawn_by_the_browser_itself(built):
    text = (built / "concepts.html").read_text()
    assert text.count("<math ") > 10
    assert "<mfrac>" in text
    assert not re.findall(r"<script[^>]*mathjax", text, re.IGNORECASE)
