# Five targets to remember: run, test, check, bench, fuzz. Each builds .venv first; it needs Python 3.11+ and pip's index.
PYTHON ?= python3
BIN := .venv/bin
EXAMPLES ?= 20000
SECONDS ?= 60

.PHONY: run test check bench fuzz format clean

.venv/installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("SILP needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --group dev
	touch $@

run: .venv/installed
	$(BIN)/silp demo

test: .venv/installed
	$(BIN)/python -m pytest -n 2 --cov --cov-report=term

check: .venv/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: .venv/installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: .venv/installed
	$(BIN)/python bench/bench.py

fuzz: .venv/installed
	SILP_EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest -n 2 tests/test_properties.py
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "atheris>=3,<4"
	for target in code math json receive sanitize strict_json; do \
		$(BIN)/python fuzz/fuzz.py $$target $(SECONDS) || exit 1; \
	done

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage dist
