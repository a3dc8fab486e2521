# Every target sets up what it needs: `make demo` and `make test` work from a bare clone.
VENV   := .venv
PYTHON := $(VENV)/bin/python
READY  := $(VENV)/.ready

.PHONY: demo test lint bench lock clean

demo: $(READY)
	$(VENV)/bin/labelrace run

test: $(READY)
	$(PYTHON) -m pytest -n auto

lint: $(READY)
	$(VENV)/bin/ruff format --check src tests benchmarks
	$(VENV)/bin/ruff check src tests benchmarks
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

bench: $(READY)
	$(PYTHON) benchmarks/speed.py

# The same versions everywhere: requirements.lock, by uv where there is one and by pip where not.
$(READY): pyproject.toml requirements.lock
	@if command -v uv >/dev/null 2>&1; then \
		uv venv --quiet --allow-existing $(VENV) && \
		uv pip install --quiet --python $(PYTHON) --require-hashes -r requirements.lock && \
		uv pip install --quiet --python $(PYTHON) --no-deps --no-build-isolation -e . ; \
	else \
		python3 -m venv $(VENV) && \
		$(PYTHON) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock && \
		$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . ; \
	fi
	@touch $@

# For maintainers: needs uv.
lock:
	uv pip compile --quiet --universal --python-version 3.11 --group dev --generate-hashes \
		--no-emit-index-url --no-header --no-annotate -o requirements.lock pyproject.toml

clean:
	rm -rf $(VENV) labelrace-runs .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks .import_linter_cache
