# Recollect, from a fresh clone on a machine with only Python 3.11 or newer and make:
#
#   make run     install, start the server with a demo conversation, keep serving    PORT=8787 DATA=recollect-data
#   make test    install what the tests need, lint, run the tests         make test-long   the tests that take longer
#   make lint    ruff, pyright, import-linter         make format   let ruff write
#   make bench   the benchmarks of ops/bench          make clean    remove .venv and caches, never data
#
# GPU: make clean run TORCH_INDEX=https://download.pytorch.org/whl/cu130

PORT ?= 8787
DATA ?= recollect-data

# torch is installed first and on its own: PyPI's Linux wheel brings gigabytes of CUDA, this index has a small one for
# the CPU. Its version is the one the figures in the docs were measured with.
TORCH ?= torch==2.13.0
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu

# The first interpreter that runs and is new enough.
PYTHON ?= $(shell for p in python3 python python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)

# Processes that the tests run in; each has its own PostgreSQL, Redis and server, so that three take no less time on two
# cores.
TEST_PROCESSES ?= 2

# The lock files are for Linux on x86-64, where each release in them has a wheel; other machines take what pyproject.toml
# allows. `make LOCKED=` does so anywhere.
LOCKED ?= $(shell $(PYTHON) -c 'import platform, sys; print("yes" * (sys.version_info < (3, 15) and \
	(platform.system(), platform.machine()) == ("Linux", "x86_64")))')

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
LOCK := ops/supply/requirements.lock
DEV_LOCK := ops/supply/requirements-dev.lock
# Exactly the releases of a lock file; a file with another hash is refused.
PIP_LOCKED := $(PIP) install --quiet --no-deps --require-hashes --requirement

.PHONY: run test test-long lint format bench clean

run: $(VENV)/installed
	@$(BIN)/python ops/demo/run.py --port $(PORT) --data $(DATA)

# worksteal: each process begins with one half of the files in their order, so that fixtures of a module are made once,
# and takes over tests of the other one at the end. One thread of PyTorch each: more would share the same cores.
test: lint
	@echo "==> Running the tests in $(TEST_PROCESSES) processes"
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist worksteal --durations=30

test-long: $(VENV)/installed-dev
	@echo "==> Running the long tests, and the property tests with 100 examples"
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "long or hypothesis" --hypothesis-profile=long -n $(TEST_PROCESSES) --dist worksteal

lint: $(VENV)/installed-dev
	@echo "==> Checking format, style, types and layers"
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --quiet --check
	@$(BIN)/pyright --threads 2 --pythonpath $(BIN)/python
	@$(BIN)/lint-imports

format: $(VENV)/installed-dev
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

bench: $(VENV)/installed-dev
	@$(BIN)/python ops/bench

clean:
	rm -rf $(VENV) build dist .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +

# The stamps are newer than pyproject.toml when the environment holds what it asks for, so a second call costs nothing.
# --no-deps and the short timeout keep an unreachable TORCH_INDEX from costing more than 15 seconds; pip then takes PyPI's wheel.
$(VENV)/installed: pyproject.toml Makefile $(LOCK)
	@test -n "$(PYTHON)" || { echo "Recollect needs Python 3.11 or newer; install it, or name it: make PYTHON=/path/to/python3" >&2; exit 1; }
	@echo "==> [1/3] Creating $(VENV) with $$($(PYTHON) --version) (about 10 s)"
	@$(PYTHON) -m venv $(VENV) || { echo "That Python has no venv; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@$(if $(LOCKED),,$(PIP) install --quiet --upgrade "pip>=25.3")
	@echo "==> [2/3] Installing $(TORCH), 190 MB as a CPU wheel (about a minute)"
	@$(PIP) install --no-deps --timeout 15 --retries 0 --extra-index-url $(TORCH_INDEX) "$(TORCH)"
	@echo "==> [3/3] Installing Recollect, the embedding model and the other dependencies, 340 MB (about a minute)"
	@$(if $(LOCKED),$(PIP_LOCKED) $(LOCK) --only-binary :all:)
	@$(PIP) install --quiet $(if $(LOCKED),--build-constraint $(LOCK)) --editable .
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed ops/import/pyproject.toml $(DEV_LOCK)
	@echo "==> Installing what the tests need, 180 MB (about 45 s)"
	@$(if $(LOCKED),$(PIP_LOCKED) $(DEV_LOCK))
	@$(PIP) install --quiet $(if $(LOCKED),--build-constraint $(LOCK)) --group dev --editable ops/import
	@$(PIP) install --quiet --no-deps --group llama-index
	@touch $@
