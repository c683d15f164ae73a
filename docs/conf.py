"""Sphinx configuration: MyST pages, the API from docstrings, a clean theme; warnings are errors (`make docs`)."""

import ast
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util import logging

import bbn

logger = logging.getLogger(__name__)

project = "bbn"
author = "the bbn developers"
release = bbn.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
napoleon_google_docstring = False
napoleon_use_ivar = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
exclude_patterns = ["_build"]
suppress_warnings = ["ref.python"]  # several classes have an attribute of the same name, such as `converged`
html_theme = "furo"
html_math_renderer = "mathml"
html_title = "bbn"
html_static_path = ["_static"]
html_css_files = ["bbn.css"]

ROUTING = [
    f"set_{name}_request" for name in ("fit", "partial_fit", "predict", "predict_proba", "score", "transform")
]
"""Methods that scikit-learn adds to every estimator; its own pages explain them."""

FOREIGN = (
    "object",
    "dict",
    "tuple",
    "Mapping",
    "BaseEstimator",
    "ClassifierMixin",
    "DensityMixin",
    "TransformerMixin",
    "_MetadataRequester",
)
"""Bases from elsewhere, whose methods their own pages explain."""

RESULTS = (
    "bbn.results.posterior.Posteriors",
    "bbn.results.sampling_report.SamplingReport",
    "bbn.inference.credible.CrediblePosterior",
    "bbn.inference.exact.junction_tree.Stats",
    "bbn.learning.incomplete.fit_result.FitResult",
    "bbn.analysis.explain.Explanation",
    "bbn.analysis.information.Information",
    "bbn.analysis.sensitivity.Sensitivity",
    "bbn.view.scene.Drawing",
    "bbn.view.page.explorer.Explorer",
)
"""Classes that users meet as answers; they need not make them."""

API_HEAD = """# API reference

Every public name, `bbn.NAME`, in the order in which the ideas build on each other.
"""


def class_directive(name: str) -> str:
    """The directive for a class with its methods, those that it inherits from other classes of bbn among them."""
    lines = [".. autoclass:: " + name, ":members:", f":inherited-members: {', '.join(FOREIGN)}"]
    return "\n   ".join([*lines, f":exclude-members: {', '.join(ROUTING)}"])


def write_api(app: object) -> None:
    """Write api.md from the table of public names, so that none is forgotten."""
    parts = [API_HEAD]
    stub = ast.parse(Path(bbn.__file__).with_suffix(".pyi").read_text())
    for home in stub.body:
        if not isinstance(home, ast.ImportFrom) or home.module in (None, "model"):  # the rooms themselves
            continue
        parts.append(f"## {home.module}\n")
        for name in [alias.name for alias in home.names]:
            value = getattr(bbn, name)
            if isinstance(value, type) and issubclass(value, Exception):
                directive = f".. autoclass:: bbn.{name}"
            elif isinstance(value, type):
                directive = class_directive(f"bbn.{name}")
            else:
                directive = f".. autofunction:: bbn.{name}"
            parts.append(f"```{{eval-rst}}\n{directive}\n```\n")
    parts.append("## What questions give back\n")
    parts += [f"```{{eval-rst}}\n{class_directive(result)}\n```\n" for result in RESULTS]
    page = Path(__file__).parent / "api.md"
    text = "\n".join(parts)
    if not page.exists() or page.read_text() != text:
        page.write_text(text)


NAMES_HEAD = """# All public names

Every `bbn.NAME` with the first line of its docstring; the [API reference](api.md) has the rest.

| name | what it is |
|---|---|
"""


def write_names(app: object) -> None:
    """Write names.md, a line for each public name, from the docstrings."""
    rows = []
    for name in bbn.__all__:
        value = getattr(bbn, name)
        first = (value.__doc__ or "").strip().split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
        rows.append(f"| `{name}` | {' '.join(first.split())} |\n")
    page = Path(__file__).parent / "names.md"
    text = NAMES_HEAD + "".join(rows)
    if not page.exists() or page.read_text() != text:
        page.write_text(text)


LIVE = ("asia", "campfire", "alarm")
"""The networks that pages hold as live ones."""


def write_live(app: object) -> None:
    """Write the live networks, which pages show in frames."""
    folder = Path(__file__).parent / "_static" / "live"
    folder.mkdir(exist_ok=True)
    for name in LIVE:
        bbn.example(name).export_html(folder / f"{name}.html")


def head_examples(
    app: object, what: str, name: str, value: object, options: object, lines: list[str]
) -> None:
    """Put a heading over an example that follows a section, which would swallow it otherwise."""
    first = next((i for i, line in enumerate(lines) if line.startswith(">>>")), None)
    if first is not None and any(set(line) == {"-"} for line in lines[:first]) and "Examples" not in lines:
        lines[first:first] = ["Examples", "--------", ""]


def mathml(text: str, display: str = "inline") -> str:
    """An equation as MathML, which browsers draw by themselves, without scripts or a network."""
    converted = convert(text, display=display)
    if "\\" in converted:
        logger.warning("latex2mathml does not know all of %s", text)
    return converted


def inline_math(self: Any, node: nodes.math) -> None:
    """Write an equation within a line."""
    self.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def block_math(self: Any, node: nodes.math_block) -> None:
    """Write an equation on a line of its own."""
    self.body.append(f'<div class="math-block">{mathml(node.astext(), "block")}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> None:
    """Hook the equations, the API page with its examples, and the live networks in."""
    app.add_html_math_renderer("mathml", (inline_math, None), (block_math, None))
    app.connect("builder-inited", write_api)
    app.connect("builder-inited", write_names)
    app.connect("builder-inited", write_live)
    app.connect("autodoc-process-docstring", head_examples, priority=400)
