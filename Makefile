# The commands of this checkout. `make demo` and `make test` are the two that a newcomer needs; each does its own set-up.

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-servers test-unit test-long lint bench bench-screens bench-injection-others bench-browser bench-peers bench-agentdojo hostile soak fuzz images clean

help: ## show these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## virtual environment, package, container engine and sandbox images, whatever of them is missing
	@scripts/setup.sh

demo: setup ## a scripted agent at work in real cages, and the attacks that are stopped
	@scripts/test_servers.sh --wiki || true # the demo itself says what it cannot show without it
	@.venv/bin/toolcage demo

test: test-servers ## all tests: unit, conformance, integration, security, short fuzzing, the repository itself
	@scripts/setup.sh --all-images
	@.venv/bin/pytest --numprocesses auto --maxprocesses 4 --dist loadfile

test-servers: ## the real servers that tests talk to: PostgreSQL, Dovecot, MediaWiki (Debian's); tests start them
	@scripts/test_servers.sh

test-unit: ## the tests that need no engine
	@scripts/setup.sh --without-engine
	@.venv/bin/pytest -m "not docker and not long" tests/unit tests/repo

test-long: setup ## what takes minutes: every image built twice, every behaviour in every image
	@.venv/bin/pytest -m long

lint: ## ruff, mypy (strict) and the layers
	@scripts/setup.sh --without-engine
	@.venv/bin/ruff check .
	@.venv/bin/mypy
	@.venv/bin/lint-imports --no-cache

bench: setup ## what a call costs, against a plain `docker run`
	@.venv/bin/python -m benchmarks

bench-screens: ## screens, detectors and cleaners over the shared corpora: caught, missed, false alarms
	@scripts/setup.sh --without-engine
	@.venv/bin/python -m benchmarks screens

bench-injection-others: ## the injection detector over texts of other projects, fetched as data and not kept
	@scripts/setup.sh --without-engine
	@.venv/bin/python -m benchmarks injection_of_others

bench-browser: ## the shared HTML corpus rendered in headless Chromium: scripts, dialogs, requests, lost text
	@scripts/setup.sh --without-engine
	@.venv/bin/python -m benchmarks browser

bench-peers: setup ## other sandboxes in turns with ours, where they are installed; see benchmarks/peers/README.md
	@.venv/bin/python -m benchmarks.peers.image
	@.venv/bin/python -m benchmarks.peers $(WITH)

bench-agentdojo: ## AgentDojo's tasks and attacks replayed through the line, without a model (an environment of its own)
	@scripts/agentdojo_environment.sh
	@.venv-agentdojo/bin/python -m benchmarks.agentdojo

hostile: setup ## every program of the shared hostile corpora in a cage, and what the host saw of it
	@.venv/bin/python -m benchmarks.hostile
	@.venv/bin/toolcage images build data web
	@.venv/bin/python -m benchmarks.hostile --image data
	@.venv/bin/python -m benchmarks.hostile --image web

soak: setup ## 2,000 calls while the engine, the wire to it, cages, callers, the disk and the host process fail
	@.venv/bin/python -m benchmarks.soak --calls 2000 --seconds 1200

fuzz: ## every fuzz target for a minute, coverage-guided where atheris can be installed
	@scripts/setup.sh --without-engine
	@scripts/fuzz.sh

images: setup ## build the sandbox images that are missing or outdated
	@.venv/bin/toolcage images build

clean: ## stop the engine that setup started, remove the virtual environment and all caches (images stay)
	@scripts/stop_engine.sh
	@rm -rf .venv .venv-agentdojo .state .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist demo-report
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
