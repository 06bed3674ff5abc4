# Every target sets up its own .venv: a fresh clone needs Python 3.11 or later, make and PyPI, nothing else. The kernels
# are compiled on installation, by Zig's C compiler from PyPI where the machine has none.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.dev
BENCH_STAMP := $(VENV)/.bench
REPRO_STAMP := $(VENV)/.reproduce
SLOW_STAMP := $(VENV)/.slow
WHEEL_STAMP := $(VENV)/.wheel
KERNEL_STAMP := $(VENV)/.kernels
KERNELS := $(wildcard src/nashlearn/kernels/*.pyx src/nashlearn/kernels/*.pxd src/nashlearn/kernels/*.h)

# Data for reproductions, where a checkout lies beside it and the caller has not chosen another place.
ifndef NASHLEARN_DATA
ifneq ($(wildcard $(CURDIR)/../shared/data/.),)
export NASHLEARN_DATA := $(abspath $(CURDIR)/../shared/data)
endif
endif

.PHONY: help demo test test-slow test-mutants test-oldest test-sanitized fuzz audit lint format wheel bench reproduce docs clean

help:
	@echo "make demo       fit each estimator on small data and print what it certifies"
	@echo "make test       ruff, mypy and the tests (minutes)"
	@echo "make test-slow  the tests marked slow too, then test-mutants"
	@echo "make test-mutants  small changes that would make the library wrong, each with tests that must fail (a quarter of an hour),"
	@echo "                or MUTANTS='planes torch' of them, by the beginning of their names"
	@echo "make test-oldest  the core's tests with the oldest versions that pyproject.toml allows, in a .venv-oldest"
	@echo "make test-sanitized  laws and training with kernels that check bounds, addresses and undefined behaviour,"
	@echo "                or SANITIZED='tests/games/test_laws.py -k rows' of them"
	@echo "make fuzz       every reader and every compiled function against a fuzzer, SECONDS=300 each, or TARGETS='csv model' of them"
	@echo "make audit      known vulnerabilities of what is installed (asks PyPI)"
	@echo "make lint       ruff and mypy alone"
	@echo "make format     rewrite the layout that lint asks for"
	@echo "make wheel      sdist and wheel, in dist, and a trial of the wheel in an empty environment"
	@echo "make bench      all benchmarks (up to an hour), or PARTS='losses start' of them"
	@echo "make reproduce  the tables of the papers, resumed where they were left, or TABLES='II IV' of them"
	@echo "make docs       the documentation, in build/docs, with warnings as errors"
	@echo "make clean      remove .venv and caches"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml setup.py build_tools/backend.py | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $@ $(KERNEL_STAMP)

# Kernels that changed since are compiled again, the others are kept. The rule above has just compiled all of them where
# it has made the stamp that this one still looks for.
$(KERNEL_STAMP): $(KERNELS) $(STAMP)
	@test -e $@ && test -z "$$(find $? -newer $@)" \
	  || $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
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

# The slow tests' own tools, and a browser where there is none; what cannot be installed skips its tests with the reason.
$(SLOW_STAMP): pyproject.toml $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[slow]" \
	  || echo "some tools of the slow tests could not be installed: their tests are skipped"
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null \
	  || apt-get install --quiet --yes chromium 2>/dev/null \
	  || $(BIN)/python -m playwright install chromium \
	  || echo "no browser could be installed: the tests in tests/browser are skipped"
	@touch $@

$(WHEEL_STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[wheel]"
	@touch $@

demo: $(KERNEL_STAMP)
	$(BIN)/python examples/demo.py

lint: $(KERNEL_STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(KERNEL_STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: lint
	$(BIN)/python -m pytest -n 2 -m "not slow"

test-slow: lint $(SLOW_STAMP)
	$(BIN)/python -m pytest -n 2
	$(BIN)/python -m tests.mutants

test-mutants: $(KERNEL_STAMP)
	$(BIN)/python -m tests.mutants $(MUTANTS)

# The sanitizers' own libraries must be loaded before Python, and what they say does not pass through pytest: it is kept
# in files.
SANITIZED ?= tests/kernels tests/games tests/training
SANITIZER ?= gcc
REPORTS := $(CURDIR)/build/sanitizers
test-sanitized: $(KERNEL_STAMP)
	CC=$(SANITIZER) NASHLEARN_SANITIZE=1 $(BIN)/python setup.py -q build_ext --inplace
	rm -rf $(REPORTS) && mkdir -p $(REPORTS)
	LD_PRELOAD="$$($(SANITIZER) -print-file-name=libasan.so) $$($(SANITIZER) -print-file-name=libubsan.so)" \
	  ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:log_path=$(REPORTS)/address \
	  UBSAN_OPTIONS=print_stacktrace=1:log_path=$(REPORTS)/undefined \
	  PYTHONMALLOC=malloc NASHLEARN_CPU=sanitized \
	  $(BIN)/python -m pytest -n 2 -m "not slow" $(SANITIZED) || { cat $(REPORTS)/* 2>/dev/null; exit 1; }

# torch stays away: what needs it skips, and so the core is tested without it too.
# pytest 9 refuses the iterators that scikit-learn 1.6 hands it (parametrize_with_checks).
OLDEST := .venv-oldest
test-oldest:
	test -d $(OLDEST) || $(PYTHON) -m venv $(OLDEST)
	$(PYTHON) tests/oldest_versions.py cli > $(OLDEST)/constraints.txt
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(OLDEST)/constraints.txt \
	  --editable ".[cli]" clarabel hypothesis networkx "pytest<9" pytest-xdist
	$(OLDEST)/bin/python -m pytest -n 2 -m "not slow" tests/games tests/training tests/estimators tests/datasets tests/sturdy

SECONDS ?= 300
fuzz: $(SLOW_STAMP) $(KERNEL_STAMP)
	$(BIN)/python -m fuzz --seconds $(SECONDS) $(TARGETS)

# Strict, so that what could not be looked up fails; a list, since a package that is skipped, as this one, would fail too.
audit: $(SLOW_STAMP)
	$(BIN)/python -m pip list --format=freeze --exclude-editable > $(VENV)/audit.txt
	$(BIN)/python -m pip_audit --strict --disable-pip --no-deps --requirement $(VENV)/audit.txt

# The wheel is built from the sdist, which thereby holds all that it needs, and serves every Python from 3.11 on but the
# free-threaded ones. auditwheel exists for Linux alone.
wheel: $(WHEEL_STAMP)
	rm -rf dist
	NASHLEARN_ABI3=1 $(BIN)/python -m build --outdir dist/raw .
	if [ "$$(uname)" = Linux ]; then \
	  PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m auditwheel repair --wheel-dir dist dist/raw/*.whl \
	  && $(BIN)/python -m auditwheel show dist/*.whl; else mv dist/raw/*.whl dist; fi
	mv dist/raw/*.tar.gz dist
	$(BIN)/python build_tools/check_wheel.py dist/*.whl dist/*.tar.gz $(if $(FITS),--fits $(FITS))

bench: $(BENCH_STAMP) $(KERNEL_STAMP)
	$(BIN)/python -m benchmarks $(PARTS)

reproduce: $(REPRO_STAMP) $(KERNEL_STAMP)
	$(BIN)/python -m reproduce $(TABLES)

docs: $(KERNEL_STAMP)
	MPLBACKEND=agg $(BIN)/python -m sphinx -W --keep-going -q -d build/docs-trees docs build/docs

clean:
	rm -rf $(VENV) .venv-oldest build dist src/nashlearn/kernels/*.so src/nashlearn/kernels/v2 src/nashlearn/kernels/v3 \
	  src/nashlearn/kernels/default src/nashlearn/kernels/sanitized .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
