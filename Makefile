# Two commands: `make demo` and `make test`. Both set themselves up in .venv.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(shell find accounting mechanisms estimators interface -name '*.py' -o -name 'py.typed' -o -name '*.csv.gz')
# one BLAS thread per process: the tests run in parallel already
export OMP_NUM_THREADS ?= 1

.PHONY: demo test test-all lint types layers tests packages coverage fuzz benchmarks clean

demo: $(VENV)/installed
	$(BIN)/privfit demo privfit-demo

test: lint types layers tests packages
	@echo "everything passed"

test-all: lint types layers packages
	HYPOTHESIS_PROFILE=random $(BIN)/python -m pytest -n 2 --cov --cov-report=term -m "slow or not slow" --pyargs privfit tests

lint: $(VENV)/installed-test
	$(BIN)/ruff check .

types: $(VENV)/installed-test
	$(BIN)/mypy -p privfit

layers: $(VENV)/installed-test
	$(BIN)/lint-imports

tests: $(VENV)/installed-test
	$(BIN)/python -m pytest -n 2 --pyargs privfit tests

# what the quick tests reach; measuring it costs more than half of their time again
coverage: $(VENV)/installed-test
	$(BIN)/python -m pytest -n 2 --cov --cov-report=term --pyargs privfit tests

packages: $(VENV)/installed-test
	$(BIN)/python tests/packages.py

# random laws and damaged release files for a while: make fuzz SECONDS=600
SECONDS ?= 120
fuzz: $(VENV)/installed-test
	$(BIN)/python tests/fuzz/fuzzing.py --seconds $(SECONDS)

benchmarks: $(VENV)/installed-test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --config-settings editable_mode=strict -e '.[bench]'
	$(BIN)/python benchmarks/run.py

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# the strict editable install is what mypy and the doctests of an installed package need
$(VENV)/installed: $(VENV)/bin/python pyproject.toml $(SOURCES)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --config-settings editable_mode=strict -e .
	@touch $@

$(VENV)/installed-test: $(VENV)/bin/python pyproject.toml $(SOURCES)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --config-settings editable_mode=strict -e '.[test]'
	@touch $@ $(VENV)/installed

clean:
	rm -rf $(VENV) build dist *.egg-info .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
