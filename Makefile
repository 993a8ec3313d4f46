# Developers and CI run these targets and nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint format type unit slow browser-test wasm-test fuzz mutants check docs bench reproduce lock gallery clean

help:  ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1|\2/' | awk -F'|' '{printf "%-18s %s\n", $$1, $$2}'

setup: $(STAMP)  ## Install everything into .venv, including .venv/bin/empower

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 11) <= v < (3, 14) else f"Expected Python 3.11, 3.12 or 3.13; got {v[0]}.{v[1]}. Choose another: make PYTHON=python3.12 setup")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes --only-binary=:all: -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $(STAMP)

demo: setup  ## Train a pendulum to stand up by maximising empowerment, and write the report
	$(BIN)/empower train pendulum --out results/demo --resume
	$(BIN)/empower report results/demo

test: lint type unit  ## Lint, type checks and tests: what CI runs

lint: setup  ## Check formatting and lint rules, including docstrings
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

format: setup  ## Format and fix what lint can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

type: setup  ## Check static types of src, tests and benchmarks
	$(BIN)/basedpyright

unit: setup  ## Run the tests on two workers, without the slow ones
	$(BIN)/pytest -n 2 --dist loadfile -m "not slow"

slow: setup  ## Run only the slow tests
	$(BIN)/pytest -n 2 --dist loadfile -m slow

browser-test: setup  ## Test the page of a report in Chromium, which has to be installed (some minutes)
	$(BIN)/python -m pip install --quiet --no-build-isolation -e '.[browser]'
	$(BIN)/pytest tests/in_browser.py

wasm-test: setup  ## Test exports to WebAssembly in Node; installs clang for wasm32 by apt, as root
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	  clang lld wasi-libc libclang-rt-dev-wasm32
	$(BIN)/pytest tests/controller/in_wasm.py

fuzz: setup  ## Run the tests with a random seed, which is printed; EMPOWERMENT_SEED repeats one
	@seed=$${EMPOWERMENT_SEED:-$$($(BIN)/python -c 'import random; print(random.getrandbits(31))')}; \
	echo "Random seed $$seed; repeat with: EMPOWERMENT_SEED=$$seed make fuzz"; \
	EMPOWERMENT_SEED=$$seed EMPOWERMENT_PROFILE=fuzz \
	  $(BIN)/pytest -n 2 --dist loadfile -m "not slow" --hypothesis-seed=$$seed

mutants: setup  ## Plant mistakes in a copy of the source and check that tests notice each (long)
	$(BIN)/python -m tests.mutants

check: test slow docs  ## What a commit must pass

docs: setup  ## Build the documentation; warnings are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: setup  ## Time the judges, channel, policy, model, environments, controller, readers and reward
	$(BIN)/python -m benchmarks.capacity
	$(BIN)/python -m benchmarks.channel
	$(BIN)/python -m benchmarks.policy
	$(BIN)/python -m benchmarks.model speed
	$(BIN)/python -m benchmarks.environments
	$(BIN)/python -m benchmarks.controller
	$(BIN)/python -m benchmarks.readers --rows 100000
	$(BIN)/python -m benchmarks.reward overhead

PRESET ?=
SUITE ?=
reproduce: setup  ## Measure the tables of docs/results.md again (long), or one: PRESET=pendulum, SUITE=environments
ifeq ($(SUITE),environments)
	$(BIN)/python -m benchmarks.suite
else ifneq ($(SUITE),)
	$(error Expected SUITE to be environments; got $(SUITE))
else ifeq ($(PRESET),)
	$(BIN)/python -m benchmarks.judges
	$(BIN)/python -m benchmarks.bound
	$(BIN)/python -m benchmarks.certificates
	$(BIN)/python -m benchmarks.agent pendulum
	$(BIN)/python -m benchmarks.agent pendulum --steps 2 10 --seeds 0-2
	$(BIN)/python -m benchmarks.agent pendulum --variants --seeds 0-2
	$(BIN)/python -m benchmarks.agent pendulum-paper --seeds 0-2
	$(BIN)/python -m benchmarks.agent pendulum-paper-5step --seeds 0-2
	$(BIN)/python -m benchmarks.rods
	$(BIN)/python -m benchmarks.gradients
	$(BIN)/python -m benchmarks.linearised
	$(BIN)/python -m benchmarks.policy --growth
	$(BIN)/python -m benchmarks.model prediction
	$(BIN)/python -m benchmarks.model ablation
	$(BIN)/python -m benchmarks.learnt
	$(BIN)/python -m benchmarks.rooms ball
	$(BIN)/python -m benchmarks.rooms balls
	$(BIN)/python -m benchmarks.foresight results/rooms/runs/balls/*
	$(BIN)/python -m benchmarks.biped
	$(BIN)/python -m benchmarks.suite
else
	$(BIN)/python -m benchmarks.agent $(PRESET)
endif

UPGRADE ?=
lock:  ## Update requirements.lock, keeping its versions (needs uv); UPGRADE=--upgrade for the newest
	uv pip compile pyproject.toml --extra dev --extra docs --universal $(UPGRADE) \
	  --generate-hashes --no-header --no-annotate --no-emit-index-url -o requirements.lock

gallery: setup  ## Film the controllers that come with the package, and write docs/gallery.md
	$(BIN)/python -m benchmarks.gallery

clean:  ## Remove everything that the other targets create
	rm -rf $(VENV) site results .pytest_cache .ruff_cache .hypothesis
