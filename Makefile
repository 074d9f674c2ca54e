# Every target sets up what it needs. `make help` lists them.
VENV := .venv
PYTHON ?= python3
BIN := $(VENV)/bin

.PHONY: help demo test lint bench docs wheel clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1  /p' $(MAKEFILE_LIST)

demo: $(VENV)/.runtime ## train on Cora, evaluate, write run/report.html and pictures
	$(BIN)/bgcl demo

test: $(VENV)/.dev ## run all tests; those of larger data sets need BGCL_DATA
	$(BIN)/python -m pytest

lint: $(VENV)/.dev ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.dev ## speed and memory, as ratios to named alternatives
	$(BIN)/python benchmarks/run.py

docs: $(VENV)/.docs ## build the documentation into site/
	$(BIN)/python -m mkdocs build --strict --quiet

wheel: $(VENV)/.dev ## build the wheel and try it in an empty environment
	rm -rf build dist
	$(BIN)/python -m build --wheel
	$(PYTHON) -m venv build/try
	build/try/bin/python -m pip install -q -c constraints.txt dist/*.whl
	cd build/try && bin/bgcl demo --epochs 2 --quiet

clean: ## remove the environment and what was built
	rm -rf $(VENV) build dist site *.egg-info src/*.egg-info

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "bgcl needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

# The constraints pin every version; above all torch, whose newest builds bring gigabytes of GPU libraries.
$(VENV)/.runtime: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[report]'
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[dev]'
	touch $@ $(VENV)/.runtime

$(VENV)/.docs: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[docs]'
	touch $@
