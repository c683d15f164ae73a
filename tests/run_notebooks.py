"""Run every notebook and keep what it shows: `python -m tests.run_notebooks [NAME…]`.

A picture that is pixels carries words: the `alt` of its cell's metadata is copied to the output, where converters and
screen readers look for it. (Pictures that are SVG carry their own.)
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbclient
import nbformat

FOLDER = Path(__file__).parent.parent / "notebooks"


def run(path: Path) -> nbformat.NotebookNode:
    """The notebook with new outputs."""
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(path.parent)}}
    nbclient.NotebookClient(
        notebook,
        timeout=600,
        kernel_name="python3",
        resources=resources,
        record_timing=False,
        store_widget_state=False,  # of progress bars, which are gone by then
    ).execute()
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if "image/png" in output.get("data", {}) and "alt" in cell.metadata:
                output.metadata["image/png"] = {
                    **output.metadata.get("image/png", {}),
                    "alt": cell.metadata["alt"],
                }
    return notebook


if __name__ == "__main__":
    for path in sorted(FOLDER.glob("*.ipynb")):
        if not sys.argv[1:] or any(name in path.name for name in sys.argv[1:]):
            print(path.name, flush=True)
            nbformat.write(run(path), path)
