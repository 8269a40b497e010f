PYTHON := functions/venv/bin/python
UV := functions/venv/bin/uv
LOCK := $(UV) pip compile -q pyproject.toml --python-version 3.13 --universal --generate-hashes \
	--no-emit-index-url --no-annotate --custom-compile-command "make lock"
export PYTHONPATH := functions:.

.DEFAULT_GOAL := help
.PHONY: help setup demo test-unit test check lint check-long bench provision serve record docs lock deploy clean

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

setup: ## Install what the others need; they all do it first
	@scripts/setup

demo: setup ## A bot, a runaway, a normal user and an overspent budget on the local stack (REAL=1: the real Gemini, costs money)
	@$(PYTHON) -m scripts.demo $(if $(REAL),--real)

test-unit: setup ## The tests that need no emulator, in seconds
	@$(PYTHON) -m pytest -q tests/unit tests/simulated

test: setup ## All tests, against the official emulators
	@$(PYTHON) -m pytest

check: lint test ## Format, lint, types, layers, then all tests

lint: setup
	$(PYTHON) -m ruff format --check
	$(PYTHON) -m ruff check
	$(PYTHON) -m mypy
	functions/venv/bin/lint-imports

check-long: lint ## The same with the tests that take minutes
	$(PYTHON) -m pytest -m "long or not long"

bench: setup ## The bucket beside its alternatives, ten minutes: scripts/bench/results.json, docs/bench.md and docs/bench.png
	@GRPC_VERBOSITY=NONE $(PYTHON) -m scripts.bench

provision: setup ## What firebreak.toml would change: spend caps, alerts, topic, rights (DO=apply does it, DO=status looks)
	@$(PYTHON) -m scripts.provision $(or $(DO),plan) || { s=$$?; [ $$s -eq 2 ] && [ -z "$(DO)" ]; }

serve: setup ## Start the local stack and keep it until Ctrl-C
	@$(PYTHON) -m scripts.local.serve

record: setup ## Rewrite the tables in docs/ that tests produce, then those of README.md
	@FIREBREAK_RECORD=1 $(PYTHON) -m pytest -q tests/e2e/test_token_bound.py tests/e2e/test_streaming.py tests/e2e/test_costs.py
	@$(PYTHON) -m scripts.docs

docs: setup ## Rewrite the tables of README.md and functions/.env.example from the code
	@$(PYTHON) -m scripts.docs

lock: setup ## Resolve the newest allowed packages and lock them
	$(LOCK) -o functions/requirements.txt
	$(LOCK) --group dev -c functions/requirements.txt -o requirements-dev.txt
	npm install --package-lock-only --ignore-scripts
	sed '/"resolved":/d' package-lock.json > package-lock.json.new && mv package-lock.json.new package-lock.json

deploy: setup ## Deploy the functions to PROJECT=…; RULES=1: rules and indexes too, after asking; YES=1: asks nothing, for CI
	@scripts/deploy "$(PROJECT)" "$(RULES)" "$(YES)"

clean: ## Remove everything that setup and runs have made
	rm -rf functions/venv node_modules .local .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
