"""The parts of the build that need code: optional Cython kernels, and the models that ship in the wheel.

Everything else is in pyproject.toml. Each ``bbn/kernels/compiled/*.pyx`` becomes an *optional* extension: where
there is no compiler the install still succeeds, and their twins in ``bbn/kernels/pure`` serve instead. What Cython
would put into each of them (memory views, conversions) is compiled once, as ``SHARED``.
"""

import os
import shutil
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_py import build_py

KERNELS = sorted(Path("bbn/kernels/compiled").glob("*.pyx"))
SHARED = "bbn.kernels.compiled.shared"
# Readers and planners run as fast with -O2, which takes half as long to compile; loops over cells and rows do not.
PLANNERS = {"answers", "arrays", "bif", "coding", "consistency", "decimals", "forest", "layout", "pieces"} | {
    "triangulate",
    "triangulate_lists",
    "watch",
    "climb",
}
# `make asan`: wrong accesses and undefined behaviour end the process, with a stack
SANITIZED = [
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=undefined",
    "-fno-omit-frame-pointer",
    "-g",
]
CHECKED = os.environ.get("BBN_SANITIZE", "") == "1"
HEADERS = [path.as_posix() for path in sorted(Path("bbn/kernels/compiled").glob("*.h"))]


def extensions():
    if os.environ.get("BBN_BUILT") == "1":  # `make`: they are in place already
        return []
    from Cython.Build import cythonize

    modules = [extension(path) for path in sorted(KERNELS, key=size_of, reverse=True)]
    modules.append(Extension(SHARED, [SHARED.replace(".", "/") + ".c"], extra_compile_args=["-O1", "-g0"]))
    modules = cythonize(
        modules, language_level=3, nthreads=os.cpu_count() or 1, shared_utility_qualified_name=SHARED
    )
    for module in modules:  # cythonize makes new ones, and forgets `optional`
        module.optional = True
    return modules


def extension(path):
    import numpy

    level = "-O2" if path.stem in PLANNERS else "-O3"
    return Extension(
        ".".join(path.with_suffix("").parts),
        [path.as_posix()],
        include_dirs=["bbn/kernels/compiled", numpy.get_include()],
        depends=HEADERS,
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")],
        extra_compile_args=["-O1", *SANITIZED] if CHECKED else [level, "-g0"],
        extra_link_args=SANITIZED if CHECKED else [],
    )


def size_of(path):
    """The size of a source: the compiler begins with the largest, so that no core waits for the last."""
    return path.stat().st_size


class BuildWithModels(build_py):
    """Put a copy of ``models/`` into the package as ``bbn/_models``; an editable install reads ``models/`` itself."""

    def run(self):
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib, "bbn", "_models")
        target.mkdir(parents=True, exist_ok=True)
        for path in sorted(Path("models").iterdir()):
            if path.is_file():
                shutil.copy2(path, target / path.name)


setup(
    ext_modules=extensions(),
    cmdclass={"build_py": BuildWithModels},
    options={"build_ext": {"parallel": os.cpu_count()}},
)
