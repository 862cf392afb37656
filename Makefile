# Five targets to remember: run, test, check, bench, fuzz. Each builds .venv first; it needs Python 3.11+ and pip's index.
PYTHON ?= python3
BIN := .venv/bin
EXAMPLES ?= 20000
SECONDS ?= 60

.PHONY: run test check bench fuzz wheel format clean

.venv/installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("SILP needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --group dev
	touch $@

run: .venv/installed
	$(BIN)/silp demo
	@echo 'and two agents over MCP stdio:'
	@$(BIN)/python examples/mcp_stdio.py

test: .venv/installed
	$(BIN)/python -m pytest -n 2 --cov --cov-report=term

check: .venv/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# What users get: the built wheel, in an environment of its own, with the source out of reach.
wheel: .venv/installed
	rm -rf dist
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	$(PYTHON) -m venv dist/venv
	dist/venv/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	cd dist && venv/bin/silp demo > demo.txt && echo 'start(hike)' | venv/bin/silp inspect && venv/bin/silp schema > schema.json

format: .venv/installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: .venv/installed
	$(BIN)/python bench/bench.py
	$(BIN)/python bench/lock.py
	$(BIN)/python bench/sessions.py
	$(BIN)/python bench/tool_calls.py

fuzz: .venv/installed
	SILP_EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest -n 2 tests/test_properties.py
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "atheris>=3,<4"
	for target in code math json receive sanitize strict_json; do \
		$(BIN)/python fuzz/fuzz.py $$target $(SECONDS) || exit 1; \
	done

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage dist
