# Everything runs from .venv, which the first target to need it makes; `make` alone lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.kquorum-installed
PYTEST := $(BIN)/python -m pytest
# Three for two cores: a good part of the time tests wait for elections and sessions to end.
WORKERS ?= 3
PARALLEL = -n $(WORKERS) --dist=loadfile --no-loadscope-reorder
PYTEST_ARGS ?=
JEPSEN_ARGS ?=
MUTANTS_ARGS ?=
SIMULATE_ARGS ?=
SEED ?= 1
RUNS ?= 2000
MINUTES ?= 10
INPUTS ?= 1000000
KILLS ?= 200
ROUNDS ?= 200
LOG_DIR ?=
LOCK_ARGS ?=
AUDIT_ARGS ?=
LOCK_VENV := .venv-lock
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Containers often set it. Each worker of pytest would rewrite all test modules again: 13 s of its processor time.
unexport PYTHONDONTWRITEBYTECODE
# Tests run on the sources, which they also change in places (mutants, planted bugs).
test test-all mutants simulate jepsen-mutants: export KQUORUM_COMPILED = 0

.PHONY: help
help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-14s %s\n", $$1, $$2 }'

$(STAMP): pyproject.toml requirements.lock tools/make_venv.sh cli/kquorum
	@bash tools/make_venv.sh $(VENV)
	@touch $(STAMP)

.PHONY: setup
setup: $(STAMP)  ## make .venv and install the project into it
	@bash tools/make_venv.sh --check $(VENV)
	@echo "kquorum: $(VENV) is ready"

.PHONY: java
java:
	@bash tools/check_java.sh

.PHONY: demo
demo: $(STAMP) java  ## a quorum runs, is killed, is read and is audited (LOG_DIR=<folder of a real Kafka log> audits that too)
	@LOG_DIR='$(LOG_DIR)' $(BIN)/python -P -m kquorum.cli.entry demo

.PHONY: test
test: $(STAMP) java check  ## check, then every test which is not slow
	@$(PYTEST) $(PARALLEL) -m 'not slow' -q $(PYTEST_ARGS)

.PHONY: test-all
test-all: $(STAMP) java check  ## check, then every test, the slow ones too, and those of the compiled packages
	@$(PYTEST) $(PARALLEL) -q $(PYTEST_ARGS)
	@$(MAKE) test-compiled

.PHONY: compile
compile: $(STAMP)  ## build the hot modules with mypyc into build/compiled, which nodes then use; two minutes (needs a C compiler)
	@KQUORUM_COMPILED=0 $(BIN)/python -m tools.compile_modules

.PHONY: wheel
wheel: compile  ## a wheel for this Python and platform, with the compiled modules, and one of the sources alone, into dist
	@KQUORUM_COMPILED=0 $(BIN)/python -m tools.build_wheel --pure
	@KQUORUM_COMPILED=0 $(BIN)/python -m tools.build_wheel

.PHONY: test-compiled
test-compiled: compile  ## tests of the compiled packages, on what `make compile` built
	@KQUORUM_COMPILED=$(CURDIR)/build/compiled $(PYTEST) $(PARALLEL) -q tests/unit/raft tests/unit/network tests/unit/metadata tests/unit/storage tests/unit/wire tests/scenarios tests/contracts $(PYTEST_ARGS)

.PHONY: check
check: $(STAMP)  ## formatting, lint, types and layering
	@$(BIN)/ruff format --check --quiet --output-format concise . || { echo "not formatted: run 'make format'" >&2; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-cache > .import-lint.tmp || { cat .import-lint.tmp; rm -f .import-lint.tmp; exit 1; }
	@rm -f .import-lint.tmp
	@echo "check: formatting, lint, types and layering are in order"

.PHONY: format
format: $(STAMP)  ## rewrite the sources as ruff formats them
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --quiet --fix .

.PHONY: simulate
simulate: $(STAMP)  ## the deterministic simulation: RUNS seeds (2000) from SEED (1); minutes
	@$(BIN)/python -m tests.simulation --seed $(SEED) --runs $(RUNS) $(SIMULATE_ARGS)

.PHONY: mutants
mutants: $(STAMP)  ## break the protocol's safeguards one by one, and see that each is noticed; many minutes
	@$(BIN)/python -m tests.simulation.mutants $(MUTANTS_ARGS)

.PHONY: fuzz
fuzz: $(STAMP)  ## garbage into every decoder for MINUTES (10), then INPUTS (1000000) at a listener and at a whole node, from SEED (1); hours
	@$(BIN)/python -m tests.fuzz --minutes $(MINUTES) --seed $(SEED)
	@$(BIN)/python -m tests.fuzz.listener --inputs $(INPUTS) --seed $(SEED)
	@$(BIN)/python -m tests.fuzz.node --inputs $(INPUTS) --seed $(SEED)

.PHONY: kill-loop
kill-loop: $(STAMP)  ## real nodes killed with SIGKILL under load, KILLS times (200), and what is left judged; an hour
	@$(BIN)/python -m tests.kill_loop --kills $(KILLS)

.PHONY: kill-records
kill-records: $(STAMP)  ## brokers killed with SIGKILL under a producer, ROUNDS times (200), and their records judged; 40 minutes
	@$(BIN)/python -m tests.kill_loop.records --rounds $(ROUNDS)

.PHONY: jepsen
jepsen: $(STAMP)  ## real processes with faults between them, and the history checked; minutes
	@$(BIN)/python -m tests.jepsen $(JEPSEN_ARGS)

.PHONY: jepsen-serve
jepsen-serve: $(STAMP)  ## look at the runs of `make jepsen` with a browser
	@$(BIN)/python -m tests.jepsen.serve $(JEPSEN_ARGS)

.PHONY: jepsen-matrix
jepsen-matrix: $(STAMP)  ## every workload under every nemesis, a minute each; hours
	@$(BIN)/python -m tests.jepsen.matrix $(JEPSEN_ARGS)

.PHONY: jepsen-mutants
jepsen-mutants: $(STAMP)  ## bugs planted into real nodes, and a run for each that has to find it; half an hour
	@$(BIN)/python -m tests.jepsen.mutants $(JEPSEN_ARGS)

.PHONY: interop
interop: $(STAMP) java  ## Apache Kafka's own tools, controllers and brokers with ours (fetched from Maven Central, once)
	@$(PYTEST) $(PARALLEL) -q tests/interop $(PYTEST_ARGS)

.PHONY: bench
bench: $(STAMP)  ## the benchmarks, each with hardware, size and figure; minutes
	@for file in benchmarks/[a-z]*.py; do name=$$(basename "$$file" .py); echo "== $$name"; $(BIN)/python -m "benchmarks.$$name"; done

.PHONY: messages
messages: $(STAMP)  ## generate wire/messages from kio's classes again
	@$(BIN)/python -m tools.render_messages

.PHONY: proto
proto: $(STAMP)  ## generate wire/proto from its .proto files again
	@$(BIN)/python -m kquorum.wire.proto.generate

$(LOCK_VENV)/.installed: tools/lock-tools.lock tools/make_venv.sh
	@rm -rf $(LOCK_VENV)
	@bash tools/make_venv.sh $(LOCK_VENV) tools/lock-tools.lock
	@touch $@

.PHONY: lock
lock: $(LOCK_VENV)/.installed  ## write requirements.lock from pyproject.toml (LOCK_ARGS=--upgrade takes the newest versions)
	@bash tools/make_lock.sh $(LOCK_VENV)/bin $(LOCK_ARGS)

.PHONY: audit-deps
audit-deps: $(LOCK_VENV)/.installed  ## ask PyPI for known vulnerabilities of what the lock has (AUDIT_ARGS='-s osv' asks OSV)
	@$(LOCK_VENV)/bin/pip-audit --strict --require-hashes --disable-pip --progress-spinner off \
		-r requirements.lock -r tools/lock-tools.lock $(AUDIT_ARGS) \
		|| { echo "audit-deps: not all packages were found and free of known vulnerabilities; see pip-audit's message above" >&2; exit 1; }

.PHONY: clean
clean:  ## remove .venv, caches, build, dist and demo-out (the data of clusters stays)
	@rm -rf $(VENV) $(VENV)-making $(LOCK_VENV) build dist demo-out .pytest_cache .mypy_cache .ruff_cache
	@rm -rf .hypothesis .import_linter_cache spark-warehouse metastore_db derby.log ./*.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: clean-data
clean-data:  ## DELETE THE DATA of clusters run here: kquorum-data, demo-run and store
	@rm -rf kquorum-data demo-run store
