# The ways to run, test and keep this project. All that it needs beside make is Python >= 3.11;
# what it installs goes into .venv, from the locks, by hash.
#
#   PYTHON=python3.13   the interpreter to take        VENV=.venv   where to install
#   EVENT_LOOP=asyncio  the event loop of the tests that need not run in each, rather than uvloop's
#   JOBS=6              in how many processes the tests run (4: on two cores, as they often wait)
#   ARGS="..."          more arguments for the command of the target: make demo ARGS="--port 9000"

VENV ?= .venv
ARGS ?=
FUZZ_CASES ?= 5000
RELOADS ?= 1000
JOBS ?= 4

bin := $(VENV)/bin
pip := $(bin)/python -m pip --quiet --disable-pip-version-check
home := $(abspath $(VENV))

# Installed, in two steps: what runs the gateway, and with what checks it.
runs := $(VENV)/.runs
checks := $(VENV)/.checks

# Anything printed here makes .venv anew: an interpreter that is gone or not the PYTHON asked for,
# or a folder that was moved, whose programs would still start the old place's code.
stale := $(if $(wildcard $(VENV)/pyvenv.cfg),$(shell \
	$(bin)/python -c '' 2>&1; \
	grep -qF "$(home)" $(VENV)/pyvenv.cfg || echo moved; \
	[ -z "$(PYTHON)" ] || [ "$$($(PYTHON) -VV 2>&1)" = "$$($(bin)/python -VV 2>&1)" ] || echo other))

# The tests keep their folders in memory where 4 GB are free there. A shared disk may stall for
# seconds, which would fail every test of an answer that comes in time.
free_kib := $(strip $(shell df --output=avail -k /dev/shm 2>/dev/null | tail -1))
ifeq ($(shell [ "0$(free_kib)" -gt 4000000 ] && echo roomy),roomy)
export PYTEST_DEBUG_TEMPROOT ?= /dev/shm
endif

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test test-busy check lint types safety rules tables long fuzz reloads bench attack chaos bench-backends bench-peers draft-figures image-rehearsal lock screenshots clean stale
export PYTHON

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' Makefile

demo: $(runs) ## Serve the sample clinic on this machine
	$(bin)/clinic-gateway demo $(ARGS)

# What the tests' processes import is compiled once, whatever the environment says. A file or folder
# that ARGS names runs whole, with the tests that take long.
test: export PYTHONDONTWRITEBYTECODE :=
test: $(checks) ## Run the tests
	$(bin)/python -m pytest --numprocesses $(JOBS) --dist loadscope --no-loadscope-reorder \
		$(if $(filter tests tests/%,$(ARGS)),-m "long or not long") $(ARGS)

test-busy: $(checks) ## Run the tests three times, and the long ones once, beside a load on two cores
	$(bin)/python scripts/busy.py 3 $(MAKE) test
	$(bin)/python scripts/busy.py 1 $(MAKE) long

check: lint types safety rules test ## Lint, types, security checks and tests

lint: $(checks) ## Check style and formatting
	$(bin)/ruff check .
	$(bin)/ruff format --check .

types: $(checks) ## Check the types of both packages
	$(bin)/mypy --strict

# What is made up for a demo or a measurement draws seeded numbers (B311), writes rows into tables of
# its own (B608, and B610 takes a method for one of Django's), starts its own programs (B404, B603)
# and asks these at addresses that it made itself (B310).
made_up := adapters/sample attack bench examples

safety: $(checks) ## Look for known slips in security
	$(bin)/bandit --quiet --recursive --configfile pyproject.toml --exclude adapters/sample \
		gateway adapters
	$(bin)/bandit --quiet --recursive --configfile pyproject.toml \
		--skip B310,B311,B404,B603,B608,B610 $(made_up)

# Its settings and its log stay in its own environment, and it asks nobody on any network.
rules: export SEMGREP_SETTINGS_FILE := $(home)-semgrep/settings.yaml
rules: export SEMGREP_LOG_FILE := $(home)-semgrep/semgrep.log
rules: semgrep := PATH="$(home)-semgrep/bin:$$PATH" semgrep scan --metrics=off \
	--disable-version-check --config checks/rules.yaml
rules: $(VENV)-semgrep/.installed ## Look for what checks/rules.yaml forbids
	$(semgrep) --test checks/rules.py
	$(semgrep) --quiet --error gateway adapters attack bench

tables: $(checks) ## Write the README's tables and the examples' proxy files anew from the code
	$(bin)/python -m tests.tables

# The tests run in uvloop's event loop. What an event loop may change runs in asyncio's, too.
on_asyncio := tests/attack tests/failures tests/limits tests/observe tests/pipeline tests/processes \
	tests/web tests/wire

long: export PYTHONDONTWRITEBYTECODE :=
long: $(checks) ## Run the tests that take long, and all examples of those that are generated
	$(bin)/python -m pytest --numprocesses $(JOBS) --dist loadscope --no-loadscope-reorder \
		-m "long or hypothesis" $(ARGS)
	$(if $(ARGS),,EVENT_LOOP=asyncio $(bin)/python -m pytest --numprocesses $(JOBS) --dist loadscope \
		--no-loadscope-reorder -m "long or not long" $(on_asyncio))

fuzz: $(checks) ## Run the generated tests for long (FUZZ_CASES=5000)
	FUZZ_CASES=$(FUZZ_CASES) $(bin)/python -m pytest -m fuzz --timeout 900 $(ARGS)

reloads: $(checks) ## Change the policy a thousand times under load (RELOADS=1000)
	RELOADS=$(RELOADS) $(bin)/python -m pytest -m long tests/policy/test_reload.py -k one_policy $(ARGS)

bench: $(checks) ## Measure what the gateway costs per request
	$(bin)/python -m bench $(ARGS)

attack: $(checks) ## Attack a gateway, and see whether honest calls notice (ARGS="idle --seconds 5")
	$(bin)/python -m attack $(ARGS)

chaos: $(checks) ## Kill workers while partners book, stall what nodes share, lose parts of the state
	$(bin)/python -m tests.chaos $(ARGS)
	STALL=40 $(bin)/python -m pytest -m "long or not long" tests/failures/test_shared_parts.py tests/state

bench-backends: $(checks) ## Compare big practices with small ones on PostgreSQL and MariaDB
	$(bin)/python -m bench.backends $(ARGS)

bench-peers: $(checks) ## Compare the gateway with nginx and Fastify at equal work
	$(bin)/python -m bench.peers $(ARGS)

draft-figures: $(checks) ## Print how right drafted mappings are, by family of schemas
	$(bin)/python -m tests.adapters.draft.figures $(ARGS)

screenshots: $(checks) ## Make pictures of the pages in the browser (build/screenshots)
	$(bin)/python -m tests.browser.screenshots

image-rehearsal: ## Follow the Dockerfile's steps in an empty folder, without a container engine
	scripts/rehearse-image

lock: $(checks) ## Make the locks anew from pyproject.toml (newest versions: ARGS=--upgrade)
	$(compile) pyproject.toml --extra postgres --extra mysql --extra firebird --extra odbc \
		--extra redis --extra fast --extra otel \
		--output-file requirements.lock
	$(compile) pyproject.toml --extra dev --constraints requirements.lock \
		--output-file requirements-dev.lock
	$(compile) --group pyproject.toml:build --constraints requirements-dev.lock \
		--output-file requirements-build.lock
	$(compile) --group pyproject.toml:rules --output-file requirements-semgrep.lock
	$(bin)/python -m tests.clients.lock

compile = UV_CUSTOM_COMPILE_COMMAND="make lock" $(bin)/uv pip compile --quiet --universal \
	--generate-hashes --no-annotate --no-emit-index-url --no-emit-find-links $(ARGS)

clean: ## Remove what these targets made: .venv, the demo's clinic, caches, wheels
	rm -rf $(VENV) $(VENV)-semgrep .demo .hypothesis .mypy_cache .pytest_cache .ruff_cache .schemathesis \
		build dist *.egg-info
	find adapters attack bench gateway tests -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

$(VENV)/pyvenv.cfg: $(if $(stale),stale)
	@python=$$(scripts/find-python) && echo "Making $(VENV) with $$python" && \
		"$$python" -m venv --clear "$(home)"

$(runs): $(VENV)/pyvenv.cfg pyproject.toml requirements.lock requirements-build.lock
	@echo "Installing into $(VENV); this takes some minutes"
	$(pip) install --require-hashes -r requirements.lock -r requirements-build.lock
	$(pip) install --no-deps --no-build-isolation --editable .
	@touch $@

$(checks): $(VENV)/pyvenv.cfg pyproject.toml requirements-dev.lock requirements.lock \
		requirements-build.lock
	@echo "Installing into $(VENV); this takes some minutes"
	$(pip) install --require-hashes -r requirements-dev.lock
	$(pip) install --no-deps --no-build-isolation --editable .
	@touch $@ $(runs)

$(VENV)-semgrep/.installed: requirements-semgrep.lock
	@python=$$(scripts/find-python) && "$$python" -m venv --clear $(VENV)-semgrep
	$(VENV)-semgrep/bin/python -m pip --quiet --disable-pip-version-check install \
		--require-hashes -r requirements-semgrep.lock
	@touch $@
