# One command each; `make` alone lists them. Needs git, make and Python 3.11 or newer with venv.

VENV := .venv
BIN := $(VENV)/bin
ARGS ?=

# The newest Python found is taken, or the one that PYTHON= names.
PYTHON ?=
PYTHONS := $(if $(PYTHON),$(PYTHON),python3.13 python3.12 python3.11 python3 /usr/bin/python3)

.PHONY: help run test check bench soak load accuracy format lock

help:  ## list these commands
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile | expand -t 16

run: $(VENV)/.ready-to-run  ## start the service with its own SQLite database (ADVISOR_PORT= changes the port)
	@exec $(BIN)/advisor serve $(ARGS)

test: $(VENV)/.ready-to-test  ## run every test (ARGS= are pytest's: make test ARGS='-k plans')
	@$(BIN)/python -m pytest --numprocesses auto --maxprocesses 8 $(ARGS)

check: $(VENV)/.ready-to-test  ## check formatting, lint, types, imports and that openapi.yaml is current
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/advisor openapi --check

bench: $(VENV)/.ready-to-test  ## measure speed, as ratios within one run
	@$(BIN)/python -m benchmarks $(ARGS)

soak: $(VENV)/.ready-to-test  ## long runs: mixed load, kills, outages, generated requests (ARGS='--seconds 60 --requests 5000')
	@$(BIN)/python -m tests.soak $(ARGS)

load: $(VENV)/.ready-to-test  ## requests a second and latency under wrk, beside a bare echo
	@$(BIN)/python -m benchmarks.load

accuracy: $(VENV)/.ready-to-test  ## compare predictions with measured benchmarks: docs/accuracy.md
	@$(BIN)/python -m advisor.accuracy --write

format: $(VENV)/.ready-to-test  ## format the code and repair what the linter can
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

# Versions already in the lock files stay; `make lock ARGS=--upgrade` takes the newest permitted.
# No download address gets into them: each machine's own pip settings say where packages come from.
LOCK := $(BIN)/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 \
	--generate-hashes --no-annotate --no-emit-index-url --no-emit-find-links \
	--custom-compile-command 'make lock' --group build

lock: $(VENV)/.ready-to-test  ## write the lock files anew from pyproject.toml
	$(LOCK) $(ARGS) --extra explorer --extra plots --extra fleet --output-file requirements.lock
	$(LOCK) $(ARGS) --all-extras --constraints requirements.lock \
		--output-file requirements-image.lock
	$(LOCK) $(ARGS) --all-extras --group dev --constraints requirements-image.lock \
		--output-file requirements-dev.lock

# A changed lock file builds the environment anew, so nothing stays behind from the old one. The
# mark is written last: an interrupted installation is begun again.
$(VENV)/.ready-to-run: requirements.lock
	@$(call build_venv,requirements.lock)
	@touch $@

$(VENV)/.ready-to-test: requirements-dev.lock requirements.lock
	@$(call build_venv,requirements-dev.lock)
	@touch $(VENV)/.ready-to-run $@

define build_venv
set -e; \
for python in $(PYTHONS); do \
	if $$python -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
	then found=$$python; break; fi; \
done; \
if [ -z "$${found:-}" ]; then \
	echo 'Python 3.11 or newer with its venv module is needed, and none of these is one:' >&2; \
	echo '  $(PYTHONS)' >&2; \
	echo 'On Debian: apt-get install python3 python3-venv. Elsewhere: make PYTHON=/path/to/python3' >&2; \
	exit 1; \
fi; \
echo "Making $(VENV) with $$($$found --version) ..."; \
$$found -m venv --clear $(VENV); \
echo "Installing the $$(grep -c '^[a-z]' $(1)) packages of $(1) (about a minute) ..."; \
$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(1); \
$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps \
	--no-build-isolation --editable .; \
echo "$(VENV) is ready."
endef
