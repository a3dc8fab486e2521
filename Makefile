# Every target sets up what it needs: `make demo`, `make serve` and `make test` work from a bare clone. They use python3, or
# any other supported Python, which gets an environment of its own: make PYTHON3=/path/to/python3.12 test
PYTHON3 ?= python3
version = $(shell $(PYTHON3) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
VENV    := .venv$(if $(filter-out python3,$(PYTHON3)),-$(version))
PYTHON  := $(VENV)/bin/python
READY   := $(VENV)/.ready

.PHONY: demo serve test quick lint docs smoke fuzz paper bench lock clean

demo: $(READY)
	$(VENV)/bin/labelrace run

# The service from nothing on the demo's stream, with people who correct it for a minute; then until Ctrl-C.
serve: $(READY)
	$(PYTHON) -m labelrace.serve.demo

# `make test F=race/decoder` runs the tests and examples of one module or folder, `make test ALL=1` those of every model
# over all models, as the gate does.
files = $(if $(F),$(wildcard tests/$(F) tests/$(dir $(F))test_$(notdir $(F))*.py src/labelrace/$(F) src/labelrace/$(F).py))
test: $(READY)
	$(if $(F),$(if $(files),,$(error There are no tests of $(F): give a folder or a module, such as F=race/decoder)))\
	$(PYTHON) -m pytest -n auto $(if $(ALL),--all-models) $(files)

# The inner loop: under a minute.
quick: $(READY)
	HYPOTHESIS_PROFILE=quick $(PYTHON) -m pytest -q -n auto -m "not slow"

lint: $(READY)
	$(VENV)/bin/ruff format --check .ci src tests benchmarks docs
	$(VENV)/bin/ruff check .ci src tests benchmarks docs
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	$(PYTHON) -m pytest -q -n auto tests/documents

# The site, in docs/_build/html, which is read from disk as well. What has not changed is not built again. Its links are
# checked, and its search where there is a browser.
docs: $(READY)
	MPLBACKEND=Agg $(VENV)/bin/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	$(PYTHON) -m pytest -q tests/site
	@echo "The site: docs/_build/html/index.html"

# The wheel, without the development tools, on the supported Pythons that are found.
smoke: $(READY)
	$(PYTHON) .ci/smoke.py

# The wheel with the lowest versions that pyproject.toml promises, on the oldest supported Python.
.PHONY: lowest
lowest: $(READY)
	$(PYTHON) .ci/smoke.py --lowest

# The wheel and the source distribution.
.PHONY: dist
dist: $(READY)
	rm -rf dist
	$(PYTHON) -m hatchling build -d dist

# Sequences of calls and damaged files, for as long as one likes; `make test` has half a minute of it.
fuzz: $(READY)
	LABELRACE_FUZZ=$(or $(EXAMPLES),5000) $(PYTHON) -m pytest -n auto tests/fuzz

# The paper's tables, ours beside them, and speed; `python -m benchmarks` has more.
paper: $(READY)
	$(PYTHON) -m benchmarks paper

bench: $(READY)
	$(PYTHON) -m benchmarks speed

# The same versions everywhere: requirements.lock, by uv where there is one and by pip where not.
$(READY): pyproject.toml requirements.lock
	@$(PYTHON3) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "labelrace needs Python 3.11 or later, got $(PYTHON3) $(version): name another with" \
			"make PYTHON3=/path/to/python3." >&2; \
		exit 1; }
	@if command -v uv >/dev/null 2>&1; then \
		uv venv --quiet --allow-existing --python $(PYTHON3) $(VENV) && \
		uv pip install --quiet --python $(PYTHON) --require-hashes -r requirements.lock && \
		uv pip install --quiet --python $(PYTHON) --no-deps --no-build-isolation -e . ; \
	else \
		$(PYTHON3) -m venv $(VENV) && \
		$(PYTHON) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock && \
		$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . ; \
	fi
	@touch $@

# For maintainers: needs uv.
lock:
	uv pip compile --quiet --universal --python-version 3.11 --group dev --generate-hashes \
		--no-emit-index-url --no-header --no-annotate -o requirements.lock pyproject.toml
	uv pip compile --quiet --resolution lowest-direct --python-version 3.11 --extra serve --extra plots --extra excel \
		--no-emit-index-url --no-header --no-annotate -o .ci/lowest.txt pyproject.toml

# All that .gitignore lists.
clean:
	rm -rf .venv* .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks .import_linter_cache .coverage dist build \
		labelrace-runs docs/_build docs/gallery docs/reference/api docs/reference/api.rst docs/reference/command.md \
		docs/reference/http.md docs/methods/*.rst docs/in-depth/security.md docs/project/changelog.md \
		docs/project/contributing.md docs/sg_execution_times.rst
	find . \( -name __pycache__ -o -name '*.egg-info' \) -prune -exec rm -rf {} +
