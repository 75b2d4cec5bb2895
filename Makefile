# The one list of commands. `make` alone prints it.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# Expanded only where it is used, so a command that needs no new environment looks for no Python.
# `ensurepip` is asked for because some systems ship a Python that cannot make environments.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
  "$$p" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 \
  && echo "$$p" && break; done)

VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check
WORKERS ?= 2
THREADS ?= 1
ARGS ?=

# torch is not in a lock: its default Linux wheel names gigabytes of CUDA packages. Without its
# dependencies a CPU wheel is enough; point pip at one with its own settings if your index has none,
# or give another version: make test-backends TORCH=torch==X.Y.Z
TORCH ?= torch==2.13.0

# Two test workers with a BLAS of many threads each get in each other's way.
export OPENBLAS_NUM_THREADS := $(THREADS)
export OMP_NUM_THREADS := $(THREADS)
export MKL_NUM_THREADS := $(THREADS)
export NUMBA_NUM_THREADS := $(THREADS)
export MPLBACKEND := Agg

.PHONY: help
help: ## print this list
	@sed -n -E 's/^([a-z-]+):.*## (.*)$$/  make \1|\2/p' Makefile | while IFS='|' read -r name text; \
	  do printf '%-22s %s\n' "$$name" "$$text"; done
	@echo "  Settings: PYTHON=python3.12  WORKERS=2 (test processes)  THREADS=1  ARGS='...' (for pytest)"

# --- the environment -----------------------------------------------------------------------------

# Two stamps: the packages change with the lock, the editable install with pyproject.toml. Each is
# written last, so an interrupted build is done again, from nothing (--clear). An environment knows
# its own place: one that was copied along with the tree is made anew.
LOCKED := $(VENV)/.locked
READY := $(VENV)/.ready
BACKENDS := $(VENV)/.backends

ifneq ($(shell cat $(READY) 2>/dev/null),$(CURDIR))
$(LOCKED): FORCE
endif
.PHONY: FORCE
FORCE:

$(LOCKED): requirements/dev.txt
	@python="$(PYTHON)"; \
	if [ -z "$$python" ]; then \
	  echo "No Python >= 3.11 with venv was found: install one, or say make PYTHON=/path/to/python." >&2; \
	  exit 1; \
	fi; \
	echo "Making $(VENV) with $$("$$python" --version) ..."; \
	"$$python" -m venv --clear $(VENV)
	@$(PIP) install -qq --require-hashes -r requirements/dev.txt
	@touch $@

$(READY): $(LOCKED) pyproject.toml
	@$(PIP) install -qq --no-deps --no-build-isolation -e .
	@printf '%s\n' "$(CURDIR)" > $@

$(BACKENDS): $(READY) requirements/backends.txt
	@echo "Adding JAX and $(TORCH) ..."
	@$(PIP) install -qq --require-hashes -r requirements/backends.txt
	@$(PIP) install -qq --no-deps "$(TORCH)"
	@$(PY) -W ignore -c 'import torch' || { \
	  echo "This torch wheel cannot run without its CUDA packages: let pip find a CPU wheel." >&2; exit 1; }
	@touch $@

.PHONY: env
env: $(READY) ## make or refresh the environment, .venv

# --- what a person runs ----------------------------------------------------------------------------

.PHONY: demo
demo: $(READY) ## run examples/demo.py; its report is in demo/
	@mkdir -p demo
	@$(PY) examples/demo.py

.PHONY: test
test: $(READY) ## tests and doctests (no torch, no JAX needed)
	@$(PY) -m pytest -n $(WORKERS) --doctest-modules tests src/restpoint $(ARGS)

.PHONY: check
check: $(READY) ## format, lint, types, layers, spelling, locks
	@$(PY) -m ruff format --check .
	@$(PY) -m ruff check .
	@$(PY) -m mypy
	@$(VENV)/bin/lint-imports --no-logo
	@$(VENV)/bin/typos
	@$(PY) -m validate_pyproject pyproject.toml
	@$(PY) tools/check_lock.py
	@$(PY) tools/performance.py --check

.PHONY: format
format: $(READY) ## format, and fix what ruff can fix safely
	@$(PY) -m ruff format .
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

# A run that finds no test (pytest's status 5) fails, because it has shown nothing.
.PHONY: test-backends
test-backends: $(BACKENDS) ## the tests marked `backends`, on torch and JAX too
	@RESTPOINT_TEST_BACKENDS=torch,jax $(PY) -m pytest -n $(WORKERS) -m "backends and not prove" tests $(ARGS) \
	  || { status=$$?; \
	       if [ $$status = 5 ]; then echo "No test is marked 'backends': nothing was shown." >&2; fi; \
	       exit $$status; }

# The tests that contract tensors, once through each way of doing it.
.PHONY: test-kernels
test-kernels: $(READY) ## the tensor tests, through each kernel by force
	@for kernel in reference one-pass support products; do \
	  echo "RESTPOINT_KERNEL=$$kernel"; \
	  RESTPOINT_KERNEL=$$kernel $(PY) -m pytest -q -n $(WORKERS) $(ARGS) tests/test_kernels_*.py tests/test_smooth*.py \
	    tests/test_claims.py tests/test_errata_api.py tests/test_theory_section5.py tests/test_loop.py tests/test_libraries.py tests/test_methods.py; \
	done

.PHONY: prove
prove: $(READY) ## the long studies (pytest -m prove)
	@$(PY) -m pytest -n $(WORKERS) -m prove --timeout=0 tests $(ARGS)

# Each script runs alone, with its threads pinned, and writes the file that RESTPOINT_BENCH_RESULT
# names. A script that leaves no new file has measured nothing.
.PHONY: bench
bench: $(READY) ## every benchmarks/bench_*.py, into benchmarks/results/*.json and docs/performance.md
	@mkdir -p benchmarks/results; found=; missed=; \
	for script in benchmarks/bench_*.py; do \
	  [ -e "$$script" ] || continue; found=yes; \
	  result="benchmarks/results/$$(basename "$$script" .py).json"; \
	  echo "== $$script ($(THREADS) thread(s))"; \
	  rm -f "$$result"; \
	  RESTPOINT_BENCH_RESULT="$$result" $(PY) "$$script" || missed="$$missed $$script"; \
	  [ -s "$$result" ] || { echo "$$script wrote no $$result" >&2; exit 1; }; \
	done; \
	[ -n "$$found" ] || { echo "There is no benchmarks/bench_*.py yet." >&2; exit 2; }; \
	$(PY) tools/performance.py; \
	[ -z "$$missed" ] || { echo "A floor was missed in:$$missed" >&2; exit 1; }

.PHONY: docs
docs: $(READY) ## run every example in README.md and docs/
	@$(PY) tools/check_docs.py

.PHONY: catalogue
catalogue: $(READY) ## docs/catalogue.md: sets, penalties, and which pairs have oracles
	@$(PY) -c 'from restpoint.testing.table import catalogue_page; print(catalogue_page(), end="")' > docs/catalogue.md

.PHONY: reproduce
reproduce: $(READY) ## the paper's tables, figures and rates, into reproduced/
	@$(VENV)/bin/restpoint reproduce figure1 --out reproduced
	@$(VENV)/bin/restpoint reproduce rates --out reproduced
	@$(VENV)/bin/restpoint reproduce table1 --workers $(WORKERS) --out reproduced
	@$(VENV)/bin/restpoint reproduce table2 --workers $(WORKERS) --out reproduced

# --- housekeeping --------------------------------------------------------------------------------

# uv resolves and pip installs. Packages younger than a week are left out: a bad release is usually
# found and withdrawn by then. The locks hold names, versions and hashes; tools/check_lock.py sees
# to it that they hold no address.
UV := .uv/bin/uv
COMPILE := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes \
  --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
  --exclude-newer "1 week" --no-config $(UPGRADE)

$(UV):
	@python="$(PYTHON)"; [ -n "$$python" ] || { echo "No Python >= 3.11 was found." >&2; exit 1; }; \
	"$$python" -m venv --clear .uv && .uv/bin/python -m pip install -qq --disable-pip-version-check uv

.PHONY: lock
lock: $(UV) ## resolve requirements/*.txt anew (UPGRADE=--upgrade for newer versions)
	@$(COMPILE) pyproject.toml --group dev -o requirements/dev.txt
	@$(COMPILE) --group backends -c requirements/dev.txt -o requirements/backends.txt
	@.uv/bin/python tools/check_lock.py

.PHONY: clean
clean: ## remove outputs and caches (.venv stays)
	@rm -rf build dist demo reproduced .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .uv
	@for tree in src tests tools examples benchmarks; do \
	  [ ! -d $$tree ] || find $$tree -type d -name __pycache__ -prune -exec rm -rf {} +; done
