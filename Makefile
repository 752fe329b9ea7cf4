# Every target sets up what it needs: Python 3.11 or later with pip is all that must be there.
PYTHON ?= python3
UV := $(shell command -v uv 2>/dev/null || echo .tools/bin/uv)
RUN := $(UV) run --frozen

.PHONY: demo test test-slow lint type notebooks bench results docs browser wheel clean help

help:  ## Say what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: .venv/demo  ## Replay the bundled log, print what its memory learned, write memory.html
	$(RUN) --no-default-groups mnemokit demo --page memory.html

test: .venv/test lint type  ## Lint, types, every test, every notebook
	$(RUN) pytest -m alone tests/test_import.py
	$(RUN) pytest -n 2 --dist worksteal -m "not alone" --doctest-modules mnemokit tests --cov --cov-report=term
	$(RUN) pytest -n 2 --nbmake notebooks

test-slow: .venv/test  ## The long forms of the tests
	MNEMOKIT_SLOW=1 $(RUN) pytest -n 2 tests -m slow

lint: .venv/test  ## Lint and format, checked only
	$(RUN) ruff check .
	$(RUN) ruff format --check .

type: .venv/test  ## Types of mnemokit, strict
	$(RUN) pyright

notebooks: .venv/test  ## Write the notebooks anew from their scripts, run them, keep the outputs
	$(RUN) jupytext --sync notebooks/*.py
	$(RUN) jupyter nbconvert --to notebook --execute --inplace --ExecutePreprocessor.record_timing=False notebooks/*.ipynb

bench: .venv/test  ## Every benchmark; each prints JSON lines
	@for script in benchmarks/bench_*.py; do $(RUN) --group compare python $$script || exit 1; done

results: .venv/test  ## Write docs/results.md: was the memory right?
	$(RUN) python benchmarks/results.py

docs: .venv/test  ## Write the pictures of docs and docs/charts.md anew
	$(RUN) python docs/make_gallery.py

browser:  ## Chromium, for the tests that look at the page
	apt-get update -q && apt-get install -y -q chromium

wheel: $(UV)  ## Build the wheel
	$(UV) build --wheel

clean:  ## Remove the environment and what was built
	rm -rf .venv .tools dist memory.html .pytest_cache .ruff_cache .hypothesis .coverage

.tools/bin/uv:
	$(PYTHON) -m venv .tools
	.tools/bin/pip install --quiet "uv>=0.9"

.venv/demo: $(UV) uv.lock pyproject.toml
	$(UV) sync --frozen --no-default-groups --inexact
	@touch $@

.venv/test: $(UV) uv.lock pyproject.toml
	$(UV) sync --frozen --group dev --group compare --extra spark --extra embed --extra graph --extra notebook
	@touch $@
