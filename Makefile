# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
BIN    := .venv/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
SETUP  := settings.ini setup.py constraints.txt .ci/export.py
export OMP_NUM_THREADS ?= 1
export MPLBACKEND ?= agg

.PHONY: demo test test-slow test-floor reliability export outputs docs readme clean help

help:           ## what can be made
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/ —/'

demo: .venv/demo    ## a private copy of a real table, with its errors and a picture
	$(BIN)/privpgd demo

test: .venv/dev     ## format, lint, types, drift, seeded runs, then every notebook test
	$(BIN)/python .ci/check.py

test-slow: .venv/dev  ## the same, with the cells marked slow (Spark where Java is installed, atheris where it can be)
	@if command -v java >/dev/null; then $(PIP) -e '.[spark]'; else echo "Spark is skipped: there is no Java"; fi
	@$(PIP) 'atheris>=3,<4' || echo "atheris is skipped: there is no wheel for this machine"
	$(BIN)/python .ci/check.py --slow

FLOOR ?= core/checks core/files table/files table/sources table/queries app/storage app/commands evaluation/datasets
test-floor: .venv-floor/ready  ## the rooms that touch other libraries, with the lowest versions that settings.ini promises
	@.venv-floor/bin/python --version
	@for room in $(FLOOR); do .venv-floor/bin/nbdev_test --path nbs/$$room.ipynb --do_print || exit 1; done

reliability: .venv/dev  ## bad inputs, kills at random moments, runs side by side, engines, growth, fuzzing (an hour)
	$(BIN)/python benchmarks/reliability.py --out nbs/audits/reliability.jsonl
	$(BIN)/python benchmarks/reliability_fuzz.py --out nbs/audits/reliability.jsonl

export: .venv/dev   ## the modules from the notebooks, formatted; notebooks cleaned
	$(BIN)/python .ci/export.py --clean

outputs: .venv/dev  ## run notebooks and keep their outputs: make outputs NB="nbs/index.ipynb …"
	$(BIN)/python .ci/outputs.py $(NB)

readme: .venv/dev   ## README.md from nbs/index.ipynb
	$(BIN)/python .ci/readme.py

docs: .venv/dev     ## the site, in _docs/ (needs Quarto)
	@command -v quarto >/dev/null || { echo "make docs needs the Quarto program (https://quarto.org), which is not on this machine."; exit 1; }
	$(BIN)/nbdev_proc_nbs
	$(BIN)/python .ci/site.py
	cd _proc && quarto render --no-execute
	rm -rf _docs && mv _proc/_docs _docs

clean:          ## remove the environment and everything made
	rm -rf .venv .venv-floor _docs _proc demo build .mypy_cache .ruff_cache *.egg-info .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +

.venv/python: $(SETUP)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "privpgd needs Python 3.11 or later; try: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@echo "making the environment in .venv (a few minutes, once)"
	$(PYTHON) -m venv .venv
	@touch $@

.venv/demo: .venv/python
	$(PIP) -e .
	@touch $@

.venv/dev: .venv/python
	$(PIP) -e '.[dev]'
	@{ echo '#!$(abspath $(BIN))/python'; cat .ci/export.py; } > $(BIN)/nbdev_export
	@touch $@ .venv/demo

.venv-floor/ready: settings.ini setup.py .ci/floor.py
	$(PYTHON) -m venv .venv-floor
	$(PYTHON) .ci/floor.py > .venv-floor/lowest.txt
	.venv-floor/bin/python -m pip install --quiet --disable-pip-version-check -c .venv-floor/lowest.txt -e '.[engines]'
	.venv-floor/bin/python -m pip install --quiet --disable-pip-version-check -c .venv-floor/lowest.txt nbdev==2.4.14 'execnb>=0.1.18,<0.2' 'fastcore>=1.14,<2' 'ghapi<2' jupyter
	@touch $@
