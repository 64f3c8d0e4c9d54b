# bargein: what one does here. Everything runs from .venv, which the first command makes.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= auto
EXTRAS ?= test

.PHONY: demo test lint types notebooks bench fixtures clean

demo: $(VENV)/.installed
	$(BIN)/bargein demo

test: $(VENV)/.tested lint
	$(BIN)/python -m pytest -n $(WORKERS)

lint: $(VENV)/.tested
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(MAKE) --no-print-directory types

# Checkers do not see through an editable install with mapped folders, so a plain one is checked.
types: $(VENV)/.tested
	rm -rf build/types
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --target build/types .
	MYPYPATH=build/types $(BIN)/mypy --config-file pyproject.toml -p bargein.sim -p bargein.models -p bargein.pipelines

# Every cell, over all callers, and the outputs written back; make test runs the same with fewer callers.
notebooks: $(VENV)/.tested
	$(BIN)/python -m notebooks.run_notebooks

bench: $(VENV)/.tested
	$(BIN)/python -m tests.bench

# Only after audio_fixtures/lines.yaml has changed; needs espeak-ng.
fixtures: $(VENV)/.installed
	$(BIN)/python audio_fixtures/make_fixtures.py

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.tested: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'setuptools>=77' wheel -e '.[$(EXTRAS)]'
	touch $@ $(VENV)/.installed

clean:
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis bargein-out
