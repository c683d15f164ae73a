"""Sphinx configuration: MyST pages, the API from docstrings, a clean theme; warnings are errors (`make docs`)."""

from bbn import __version__

project = "bbn"
author = "the bbn developers"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
napoleon_google_docstring = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autosummary_generate = True
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "bbn"
templates_path: list[str] = []
suppress_warnings = ["autosummary"]
