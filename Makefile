# Whichever target comes first makes the one .venv; plain python3 -m venv and pip.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEMO_READY := $(VENV)/.demo-ready
DOCS_READY := $(VENV)/.docs-ready
WORKERS ?= 2
PART ?= tests

# Each worker goes through the tests in a row, so that what a file of tests shares is made once.
PYTEST := $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

.PHONY: help demo test test-all coverage check format docs notebooks reliability reliability-real bench bench-peers bench-recommend clean

# The first target is what plain `make` does.
help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1|/' | \
		awk -F'|' '{ printf "  make %-16s %s\n", $$1, $$2 }'

demo: $(DEMO_READY) ## audit a built-in world and write unskew-report.html (makes .venv first)
	@echo "The command is $(BIN)/unskew. To type unskew alone: . $(BIN)/activate"
	$(BIN)/unskew demo

# Workers, and commands that tests start, share what one of them has compiled.
test test-all coverage: export PYTHONDONTWRITEBYTECODE :=

test: $(READY) ## run the tests
	$(PYTEST)

test-all: $(READY) ## run every test, the slow ones too: wheel, notebooks, browser
	$(PYTEST) -m ""

# Which lines the tests reach; slower than make test by two thirds. PART=tests/stats runs a part.
coverage: $(READY) ## tell which lines the tests reach
	$(PYTEST) $(PART) --cov --cov-report=term:skip-covered --cov-report=html:build/coverage
	@echo lines: build/coverage/index.html

check: $(READY) ## check format, style and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(READY) ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(DOCS_READY) ## build the pages into build/docs
	$(BIN)/python docs/metrics.py
	$(BIN)/python docs/libraries.py
	$(BIN)/python docs/figures.py
	$(BIN)/python docs/cli.py
	$(BIN)/python docs/llms.py
	$(BIN)/python docs/api.py
	$(BIN)/python docs/architecture.py
	$(BIN)/python docs/reliability.py
	$(BIN)/python docs/outputs.py
	$(BIN)/python -m sphinx -q -W --keep-going -b html -d build/doctrees docs build/docs
	$(BIN)/python docs/gallery.py build/docs/gallery
	@echo pages: build/docs/index.html

# Execute the notebooks of the documentation anew and keep their outputs.
notebooks: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[notebooks]'
	$(BIN)/python docs/notebooks.py

# How often statements of an audit are false, in the mix of worlds of the rates that reports show:
# half an hour on two processors. Stopped, it goes on.
reliability: $(READY) ## count how often statements of an audit are false (half an hour)
	$(BIN)/python benchmarks/reliability/run.py --store build/reliability --workers $(WORKERS) -o src/unskew/auditing/rates.json
	$(BIN)/python docs/reliability.py

# Needs data sets with ratings of random items, found through UNSKEW_DATA: ten minutes.
reliability-real: $(READY) ## hold audits against ratings of random items
	$(BIN)/python benchmarks/reliability/real.py -o benchmarks/reliability/real_counts.json
	$(BIN)/python docs/reliability.py

bench: $(READY) ## measure speed
	$(BIN)/python benchmarks/run.py

bench-peers: $(READY) ## measure speed beside other libraries
	$(BIN)/python benchmarks/peers.py

bench-recommend: $(READY) ## measure recommenders beside other libraries
	$(BIN)/python benchmarks/peers_recommend.py

# The demo needs the package alone.
$(DEMO_READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

$(READY): pyproject.toml studies/pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]' -e ./studies
	touch $@

# Only the pages need these packages, so only they install them.
$(DOCS_READY): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	touch $@

clean: ## remove .venv and everything that was built
	rm -rf build $(VENV) .venv-peers-* .mypy_cache .pytest_cache .ruff_cache .hypothesis
