# The same targets serve people, CI and the README. `make help` lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
DATASET ?= data/demo
ARGS ?=
SEEDS ?= 1
PROOF_SEED ?= data/proof/seed-0
BIN := .venv/bin
# where it is set, every process that a test or a run starts would compile the whole project anew
unexport PYTHONDONTWRITEBYTECODE
UV_VERSION := 0.13.8
DEMO_EXTRAS := flows,demo
ALL_EXTRAS := $(DEMO_EXTRAS),export,k8s,train,gym,curves,dev
TORCH ?= cpu
MARKS := not gpu and not network and not cluster and not scale
NPM_SERVERS := @modelcontextprotocol/server-filesystem@2026.8.31 @modelcontextprotocol/server-memory@2026.8.31

.PHONY: help setup setup-all system npm-servers chromium demo test test-fast test-exports test-kubernetes proof proof-rl check format bench \
  ablations settings index serve lock clean

# Install this checkout with the extras $(1), as constraints.txt has their versions.
define install
links="$$($(PYTHON) -m pip config get global.find-links 2>/dev/null || true)"; \
  torch="--torch-backend=$(TORCH)"; \
  if [ -n "$$links" ] && [ "$(TORCH)" = cpu ]; then export UV_FIND_LINKS="$$links"; torch=; fi; \
  VIRTUAL_ENV=$(CURDIR)/.venv $(BIN)/uv pip install --quiet --compile-bytecode $$torch \
    --constraint constraints.txt --editable '.[$(1)]'
endef

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: .venv/ready system npm-servers ## make .venv from the lock for the demo and the data commands

setup-all: .venv/all system npm-servers ## as well what tests, checks, training and benchmarks need

.venv/ready: pyproject.toml constraints.txt
	@echo "setup: making .venv from constraints.txt"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -qq --disable-pip-version-check uv==$(UV_VERSION)
	@$(call install,$(DEMO_EXTRAS))
	@touch $@

.venv/all: .venv/ready
	@echo "setup: adding to .venv what tests, checks, training and benchmarks need"
	@$(call install,$(ALL_EXTRAS))
	@touch $@

system: # bubblewrap, the sandbox; only as root or when asked
	@if ! command -v bwrap >/dev/null; then \
	  if [ "$$(id -u)" = 0 ] || [ -n "$(SYNTH_INSTALL_SYSTEM)" ]; then \
	    echo "setup: installing bubblewrap"; \
	    sudo=""; [ "$$(id -u)" = 0 ] || sudo=sudo; \
	    ($$sudo apt-get update -qq && $$sudo apt-get install -y -qq bubblewrap) >/dev/null 2>&1 \
	      || echo "setup: could not install bubblewrap; tools that run in a sandbox are skipped"; \
	  else \
	    echo "setup: no bubblewrap (apt install bubblewrap, or SYNTH_INSTALL_SYSTEM=1): MCP tools are skipped"; \
	  fi; \
	fi

npm-servers: .venv/ready # two more MCP servers where Node is installed
	@if command -v npm >/dev/null && [ ! -d .venv/npm/node_modules ]; then \
	  echo "setup: installing the npm MCP servers"; \
	  npm install --silent --no-fund --no-audit --ignore-scripts --prefix .venv/npm $(NPM_SERVERS) \
	    >/dev/null 2>&1 || echo "setup: npm servers not installed; they are skipped"; \
	fi

demo: setup ## the whole pipeline on twelve domains, within five minutes: data, report, a conversation
	@$(BIN)/synth demo --dataset $(DATASET) $(ARGS)

test: setup-all chromium ## everything but gpu, network, cluster and scale
	@$(BIN)/python -m pytest -n 2 --dist loadfile -m "$(MARKS)" --durations 40 --durations-min 5

test-fast: setup-all ## at most two minutes
	@$(BIN)/python -m pytest -n 2 --dist loadfile -m "$(MARKS) and not slow" --hypothesis-profile=fast

test-exports: setup-all ## exports read by other projects' own code, each in an environment of its own
	@links="$$($(PYTHON) -m pip config get global.find-links 2>/dev/null || true)"; \
	  [ -z "$$links" ] || export UV_FIND_LINKS="$$links"; \
	  $(BIN)/python -m tests.synth.exports.targets.run $(ARGS)

test-kubernetes: setup-all ## sandboxes on Kubernetes: the server of SYNTH_TEST_KUBECONFIG, or a double
	@$(BIN)/python -m pytest -n 2 --dist loadfile -m "not scale" tests/kubernetes $(ARGS)
	@$(BIN)/python -m pytest -m cluster tests/sandboxes/conformance -k "pods or claims" $(ARGS)

chromium: # the browser that page tests drive; they skip without it
	@if ! command -v chromium >/dev/null && [ "$$(id -u)" = 0 -o -n "$(SYNTH_INSTALL_SYSTEM)" ]; then \
	  echo "setup: installing chromium for the page tests"; \
	  sudo=""; [ "$$(id -u)" = 0 ] || sudo=sudo; \
	  ($$sudo apt-get update -qq && $$sudo apt-get install -y -qq chromium) >/dev/null 2>&1 || true; \
	fi

proof: setup-all ## does the data teach? an hour and a half for each of SEEDS; started again, it goes on
	@$(BIN)/python -m benchmarks.proof --seeds $(SEEDS)

proof-rl: setup-all ## what reinforcement learning adds to the proof's first seed: 75 minutes more
	@$(BIN)/python -m benchmarks.rl_proof $(PROOF_SEED)

check: .venv/all ## ruff and pyright
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pyright --pythonpath $(BIN)/python

format: .venv/all ## let ruff rewrite the files
	@$(BIN)/ruff check --fix . && $(BIN)/ruff format .

bench: setup-all ## measure, and run what is marked scale
	@for file in benchmarks/bench_*.py; do $(BIN)/python $$file || exit 1; done
	@$(BIN)/python -m pytest -m scale

ablations: setup-all ## Muon, QK-Clip, sparsity, rephrasing on a CPU; SEEDS=3 for three, goes on when stopped
	@$(BIN)/python -m benchmarks.ablations --seeds $(SEEDS) $(ARGS)
	@if [ -d $(PROOF_SEED) ]; then $(BIN)/python -m benchmarks.rl_proof $(PROOF_SEED) --arms; \
	  else echo "ablations: those of reinforcement learning need \`make proof\`: no $(PROOF_SEED)"; fi

index: setup-all ## write tool_specs/domains/index.json from the domain files
	@$(BIN)/python -m tool_specs.domains.known

settings: setup-all ## write docs/settings.md from the models
	@$(BIN)/python -m flows.settings_page

serve: setup ## Prefect server with its UI, and the deployments (those that train after setup-all)
	@$(BIN)/synth serve

lock: ## resolve constraints.txt anew (torch stays out, see pyproject.toml)
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-emit-find-links \
	  --override <(echo "torch; python_version < '3'") \
	  --no-emit-index-url --no-header --extra flows --extra k8s --extra demo --extra export \
	  --extra curves --extra decoding --extra gym --extra dev pyproject.toml --output-file constraints.txt

clean: ## remove the environment, the server's database and the demo's data
	@rm -rf .venv .prefect data .pytest_cache .ruff_cache
