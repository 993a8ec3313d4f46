# The only door: people and CI run these targets, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint format type unit slow check docs bench reproduce lock clean

help:  ## Say what each target does
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1|\2/' | awk -F'|' '{printf "%-18s %s\n", $$1, $$2}'

setup: $(STAMP)  ## Make .venv with everything in it, and .venv/bin/empower

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 11) <= v < (3, 14) else f"Expected Python 3.11, 3.12 or 3.13; got {v[0]}.{v[1]}. Say which to use: make PYTHON=python3.12 setup")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes --only-binary=:all: -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $(STAMP)

demo: setup  ## Teach a pendulum to stand, with no goal but to keep its options open
	$(BIN)/empower train pendulum --out results/demo --resume
	$(BIN)/empower report results/demo

test: lint type unit  ## Lint, types and tests: what CI runs

lint: setup  ## Formatting and lint rules, docstrings included
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

format: setup  ## Mend what lint can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

type: setup  ## Static types of src, tests and benchmarks
	$(BIN)/basedpyright

unit: setup  ## pytest on two workers, without the slow tests
	$(BIN)/pytest -n 2 --dist loadfile -m "not slow"

slow: setup  ## The slow tests alone
	$(BIN)/pytest -n 2 --dist loadfile -m slow

check: test slow docs  ## What a commit must pass

docs: setup  ## Build the documentation, warnings are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: setup  ## Time the judges, the channel, the policy, the balls and the controller, one way against another
	$(BIN)/python -m benchmarks.capacity
	$(BIN)/python -m benchmarks.channel
	$(BIN)/python -m benchmarks.policy
	$(BIN)/python -m benchmarks.model speed
	$(BIN)/python -m benchmarks.environments
	$(BIN)/python -m benchmarks.controller

PRESET ?=
reproduce: setup  ## Measure again every figure in docs/results.md (long); or PRESET=pendulum over seeds
ifeq ($(PRESET),)
	$(BIN)/python -m benchmarks.judges
	$(BIN)/python -m benchmarks.bound
	$(BIN)/python -m benchmarks.agent pendulum
	$(BIN)/python -m benchmarks.agent pendulum --steps 2 10 --seeds 3
	$(BIN)/python -m benchmarks.agent pendulum --variants --seeds 3
	$(BIN)/python -m benchmarks.agent pendulum-paper --seeds 3
	$(BIN)/python -m benchmarks.agent pendulum-paper-5step --seeds 3
	$(BIN)/python -m benchmarks.policy --growth
	$(BIN)/python -m benchmarks.model prediction
	$(BIN)/python -m benchmarks.model ablation
	$(BIN)/python -m benchmarks.learnt
	$(BIN)/python -m benchmarks.rooms ball
	$(BIN)/python -m benchmarks.rooms balls
	$(BIN)/python -m benchmarks.foresight results/rooms/balls-*
	$(BIN)/python -m benchmarks.biped
else
	$(BIN)/python -m benchmarks.agent $(PRESET)
endif

lock:  ## Resolve requirements.lock anew (needs uv)
	uv pip compile pyproject.toml --extra dev --extra docs --universal --upgrade \
	  --generate-hashes --no-header --no-annotate --no-emit-index-url -o requirements.lock

clean:  ## Remove what the other targets made
	rm -rf $(VENV) site results .pytest_cache .ruff_cache .hypothesis
