"""The parts of the build that need code: optional Cython kernels, and the models that ship in the wheel.

Everything else is in pyproject.toml. Each ``bbn/kernels/*.pyx`` becomes an *optional* extension: where there is
no compiler the install still succeeds, and the numpy twins beside the kernels serve instead.
"""

import shutil
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.errors import BaseError, CCompilerError

KERNELS = sorted(Path("bbn/kernels").glob("*.pyx"))


def extensions():
    if not KERNELS:
        return []
    import numpy
    from Cython.Build import cythonize

    modules = [
        Extension(
            ".".join(path.with_suffix("").parts),
            [path.as_posix()],
            include_dirs=[numpy.get_include()],
            define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION")],
            extra_compile_args=["-O3"],
            optional=True,
        )
        for path in KERNELS
    ]
    return cythonize(modules, language_level=3)


class BuildIfPossible(build_ext):
    """Go on without a kernel that cannot be compiled; `optional` alone does not cover a compiler that is not there."""

    def build_extension(self, extension):
        try:
            super().build_extension(extension)
        except (BaseError, CCompilerError, OSError) as error:
            self.warn(f"{extension.name} is not compiled ({error}); the numpy twin serves instead")


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


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildIfPossible, "build_py": BuildWithModels})
