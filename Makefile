# Every target sets up its own .venv: a fresh clone needs Python 3.11 or later, make and PyPI, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.dev
BENCH_STAMP := $(VENV)/.bench
REPRO_STAMP := $(VENV)/.reproduce

# Data for reproductions, where a checkout lies beside it and the caller has not chosen another place.
ifndef NASHLEARN_DATA
ifneq ($(wildcard $(CURDIR)/../shared/data/.),)
export NASHLEARN_DATA := $(abspath $(CURDIR)/../shared/data)
endif
endif

.PHONY: help demo test test-slow lint format bench reproduce clean

help:
	@echo "make demo       fit each estimator on small data and print what it certifies"
	@echo "make test       ruff, mypy and the tests (minutes)"
	@echo "make test-slow  the tests marked slow too"
	@echo "make lint       ruff and mypy alone"
	@echo "make format     rewrite the layout that lint asks for"
	@echo "make bench      all benchmarks (up to an hour), or PARTS='losses start' of them"
	@echo "make reproduce  the tables of the papers, resumed where they were left, or TABLES='II IV' of them"
	@echo "make clean      remove .venv and caches"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $@

# LIBLINEAR is compiled on installation; where that fails the benchmarks report it as not installed.
$(BENCH_STAMP): pyproject.toml $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[bench]" \
	  || $(BIN)/python -m pip install --quiet --disable-pip-version-check highspy
	@touch $@

# The live ordinal baselines need a compiler on some systems; without them their columns are only quoted.
$(REPRO_STAMP): pyproject.toml $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[reproduce]" \
	  || echo "mord or skordinal could not be installed: their columns are left out"
	@touch $@

demo: $(STAMP)
	$(BIN)/python examples/demo.py

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: lint
	$(BIN)/python -m pytest -n 2 -m "not slow"

test-slow: lint
	$(BIN)/python -m pytest -n 2

bench: $(BENCH_STAMP)
	$(BIN)/python -m benchmarks $(PARTS)

reproduce: $(REPRO_STAMP)
	$(BIN)/python -m reproduce $(TABLES)

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
