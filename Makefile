# Whichever target comes first makes the one .venv; plain python3 -m venv and pip.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DOCS_READY := $(VENV)/.docs-ready
WORKERS ?= 2
PART ?= tests

.PHONY: demo test test-all coverage check format docs reliability bench bench-peers bench-recommend clean

demo: $(READY)
	$(BIN)/unskew demo

test: $(READY)
	$(BIN)/python -m pytest -q -n $(WORKERS)

test-all: $(READY)
	$(BIN)/python -m pytest -q -n $(WORKERS) -m ""

# Which lines the tests reach; slower than make test by two thirds. PART=tests/stats runs a part.
coverage: $(READY)
	$(BIN)/python -m pytest -q -n $(WORKERS) $(PART) --cov --cov-report=term:skip-covered --cov-report=html:build/coverage
	@echo lines: build/coverage/index.html

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(DOCS_READY)
	$(BIN)/python docs/metrics.py
	$(BIN)/python docs/figures.py
	$(BIN)/python docs/cli.py
	$(BIN)/python docs/api.py
	$(BIN)/python docs/architecture.py
	$(BIN)/python docs/reliability.py
	$(BIN)/python docs/outputs.py
	$(BIN)/python -m sphinx -q -W --keep-going -b html -d build/doctrees docs build/docs
	$(BIN)/python docs/gallery.py build/docs/gallery
	@echo pages: build/docs/index.html

# How often statements of an audit are false: an hour on two processors. Stopped, it goes on.
reliability: $(READY)
	$(BIN)/unskew audit --self-test --store build/self-test --workers $(WORKERS) -o src/unskew/auditing/self_test/rates.json
	$(BIN)/python docs/reliability.py

bench: $(READY)
	$(BIN)/python benchmarks/run.py

bench-peers: $(READY)
	$(BIN)/python benchmarks/peers.py

bench-recommend: $(READY)
	$(BIN)/python benchmarks/peers_recommend.py

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

# Only the pages need these packages, so only they install them.
$(DOCS_READY): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	touch $@

clean:
	rm -rf build $(VENV) .venv-peers-* .mypy_cache .pytest_cache .ruff_cache .hypothesis
