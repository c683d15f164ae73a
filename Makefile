# Two commands are enough: `make demo` and `make test`; `make slow` runs the slow tests. Each makes a local virtual
# environment first.

VENV   ?= .venv
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
            $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN    := $(VENV)/bin
KERNELS := $(wildcard bbn/kernels/compiled/*.pyx bbn/kernels/compiled/*.pxd bbn/kernels/compiled/*.h)

# Keep bytecode, whatever the environment says: tests start hundreds of processes, and pytest rewrites every test file.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test slow lint venv build bench peers fuzz asan oldest docs format clean

demo: $(VENV)/.runtime
	@$(BIN)/bbn demo

test: lint
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow"

# The tests that `make test` leaves out: notebooks, the built documentation, the wheel, clusters, long simulations.
slow: venv
	$(BIN)/python -m pytest -n auto --dist worksteal -m slow

lint: venv
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

venv: $(VENV)/.dev build

build: $(VENV)/.built

bench: venv peers
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.benchmarks

# Libraries that only benchmarks compare with. xges asks for numpy 1 but runs on 2, so it comes without its dependencies.
peers: $(VENV)/.peers

# Every dependency at the oldest version that pyproject.toml allows, with each Python from 3.11 on that is there.
oldest:
	$(PYTHON) -m tests.oldest

fuzz: venv
	$(BIN)/python -m tests.fuzz

# The kernels under address and undefined-behaviour sanitizers, with bounds checks, in a copy under build/asan.
asan: venv
	$(BIN)/python -m tests.sanitize

docs: venv
	$(BIN)/sphinx-build -q -W -b html docs docs/_build

format: venv
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:
	rm -rf $(VENV) build *.egg-info .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	rm -f bbn/kernels/compiled/*.so bbn/kernels/compiled/*.c bbn/kernels/compiled/*.cpp

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "bbn needs Python 3.11 or newer on the PATH (or: make PYTHON=/path/to/python)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: pyproject.toml setup.py | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml setup.py | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $(VENV)/.runtime $(VENV)/.built $@

$(VENV)/.peers: | $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'numpy>=2' causal-learn pybnesian numba sortedcontainers
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps xges==0.1.6
	@touch $@

# Kernels changed since the install are compiled again in place, without a new install.
$(VENV)/.built: $(KERNELS) | $(VENV)/.dev
	$(BIN)/python setup.py --quiet build_ext --inplace
	@touch $@
