# Two commands are enough: `make demo` and `make test`; `make slow` runs the slow tests. Each makes a local virtual
# environment first.

VENV   ?= .venv
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
            $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN    := $(VENV)/bin
PIP     = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
KERNELS := $(wildcard bbn/kernels/compiled/*.pyx bbn/kernels/compiled/*.pxd bbn/kernels/compiled/*.h)

# A line for a phase of work, with the seconds it took: $(call phase,what,command).
phase = @printf '%-32s' '$(1)'; begun=$$(date +%s); { $(2); } && printf '%4d s\n' $$(($$(date +%s) - begun))
# Write a list of pyproject.toml, named p, to required.txt.
required = $(BIN)/python -c 'import tomllib; p = tomllib.load(open("pyproject.toml", "rb")); print(*$(1), sep="\n")' >$(VENV)/required.txt

# Keep bytecode, whatever the environment says: tests start hundreds of processes, and pytest rewrites every test file.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test slow check lint venv build bench peers fuzz asan oldest wheel mutants coverage calibrate docs format clean

demo: $(VENV)/.runtime
	@$(BIN)/bbn demo

test: lint
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow"

# The tests that `make test` leaves out: notebooks, the built documentation, the wheel, clusters, long simulations.
slow: venv
	$(BIN)/python -m pytest -n auto --dist worksteal -m slow

# Daily work: lint, and the tests of what changed, or of FILES.
check: venv
	@$(BIN)/python -m tests.check $(FILES)

lint: venv
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

venv: $(VENV)/.dev build

build: $(VENV)/.kernels | $(VENV)/.dev

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

# An sdist, and a wheel that runs on any Linux of the last ten years, in dist/.
wheel: venv
	rm -rf dist build/wheel
	$(BIN)/python -m build --quiet --no-isolation --sdist --outdir dist
	$(BIN)/python -m build --quiet --no-isolation --wheel --outdir build/wheel
	PATH="$(BIN):$$PATH" $(BIN)/auditwheel repair --wheel-dir dist build/wheel/*.whl
	@ls -l dist

# The prices of exact inference, measured on this machine beside those that are kept.
calibrate: venv
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.calibrate

# Small faults put in on purpose: does a test notice each?
mutants: venv
	$(BIN)/python -m tests.mutants

# Which lines and branches the tests run, by room; `make mutants` goes by the same record.
coverage: venv
	$(BIN)/python -m tests.mutants --record
	COVERAGE_FILE=build/mutants/coverage $(BIN)/python -m tests.coverage_by_room

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
	$(call phase,an environment in $(VENV),$(PYTHON) -m venv $(VENV))

# What the build needs goes into the environment itself, so that nothing is downloaded or compiled twice. Bytecode is
# made when a module is first used.
$(VENV)/.tools: pyproject.toml | $(VENV)/bin/python
	$(call phase,tools of the build,$(call required,p["build-system"]["requires"]) && $(PIP) --requirement $(VENV)/required.txt)
	@touch $@

$(VENV)/.packages: pyproject.toml | $(VENV)/.tools
	$(call phase,packages that bbn needs,$(call required,p["project"]["dependencies"]) && $(PIP) --requirement $(VENV)/required.txt)
	@touch $@

# Only kernels that changed are compiled again, in place.
$(VENV)/.kernels: $(KERNELS) setup.py | $(VENV)/.tools
	$(call phase,kernels compiled,$(BIN)/python setup.py --quiet build_ext --inplace >$(VENV)/kernels.log 2>&1 || { cat $(VENV)/kernels.log; exit 1; })
	@touch $@

$(VENV)/.runtime: pyproject.toml setup.py | $(VENV)/.packages $(VENV)/.kernels
	$(call phase,bbn itself,BBN_BUILT=1 $(PIP) --no-deps --no-build-isolation --editable .)
	@touch $@

$(VENV)/.dev: pyproject.toml setup.py | $(VENV)/.runtime
	$(call phase,tools of development,BBN_BUILT=1 $(PIP) --no-build-isolation --editable '.[dev]')
	@touch $@

$(VENV)/.peers: | $(VENV)/.dev
	$(PIP) 'numpy>=2' causal-learn pybnesian numba sortedcontainers
	$(PIP) --no-deps xges==0.1.6
	@touch $@
