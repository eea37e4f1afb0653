# One door for everything. `make help` lists what there is.
PYTHON ?= python3
UV_VERSION := 0.13.7
# Another Python has an environment of its own: `make test PYTHON=python3.13` sets up .venv-python3.13.
VENV := .venv$(addprefix -,$(filter-out python3,$(notdir $(PYTHON))))
BIN := $(VENV)/bin
UV := .tools/bin/uv
VECTORS ?= tests/data/vectors
export UV_PYTHON_DOWNLOADS := never

.DEFAULT_GOAL := help
.PHONY: help up docs docs-version first-scale test test-real test-upstream test-node test-neighbours peers check quick format lint types layers budget conformance mutants hand-overs leases worlds goldens soak fuzz scorecard bench build release lock lock-image clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

up: $(VENV)/.run ## try Trimtab here, with nothing but Python; ARGS=--real on the real kube-apiserver, with Go
	@$(if $(filter --real,$(ARGS)),$(BIN)/python -m tools.real_up,$(BIN)/trimtab up) $(ARGS)

test: $(VENV)/.dev ## all tests that need nothing but Python; PYTHON=python3.13 for another one
	@$(if $(CI),$(BIN)/python -m tools.second_run,$(BIN)/pytest) -n 2 $(ARGS)

test-real: $(VENV)/.dev ## the tests against the real programs (built once, about 8 minutes): K8S=1.37 or 1.36, TIER=small
	@PATH="$(CURDIR)/$(BIN):$$PATH" K8S=$(K8S) TIER=$(TIER) $(BIN)/python -m tools.real $(ARGS)

test-upstream: $(VENV)/.dev ## Kubernetes' own HPA tests with Trimtab as the HPA controller, about 22 minutes; ARGS=--real-node, ARGS=--help
	@$(BIN)/python -m tools.upstream $(ARGS)

test-node: $(VENV)/.dev ## Trimtab on a real kubelet with containerd and cgroups, in user-mode Linux; ARGS=-s shows sizes
	@K8S=$(K8S) $(BIN)/python -m tools.node $(ARGS)

test-neighbours: $(VENV)/.dev ## Trimtab beside KEDA and Argo Rollouts, on a real kubelet; both are built once, 15 minutes; ARGS=-s
	@K8S=$(K8S) $(BIN)/python -m tools.node neighbours $(ARGS)

peers: $(VENV)/.dev ## build the real programs of `make test-real`: K8S=1.37 or 1.36, ARGS=kube-apiserver
	@K8S=$(K8S) $(BIN)/python -m tools.peers.build $(ARGS)

check: format-check lint types layers budget conformance test ## everything before a commit: format, lint, types, layers, budget, recorded answers, tests

quick: format-check lint types layers budget ## the same with the tests of values and of HPA decisions only, within a minute
	@echo "tests" && $(BIN)/pytest -n 2 tests/unit/model tests/unit/decide/horizontal

.PHONY: format-check
format-check: $(VENV)/.dev
	@echo "format" && $(BIN)/ruff format --check -q .

format: $(VENV)/.dev ## format the code
	@$(BIN)/ruff check --fix-only -q . ; $(BIN)/ruff format .

lint: $(VENV)/.dev ## lint
	@echo "lint" && $(BIN)/ruff check -q .

types: $(VENV)/.dev ## strict type check
	@echo "types" && $(BIN)/mypy

layers: $(VENV)/.dev ## imports point down only
	@echo "layers" && $(BIN)/lint-imports --no-cache | tail -n 4

budget: $(VENV)/.dev ## no package has more lines of code than pyproject.toml allows; ARGS=--table counts them
	@echo "budget" && $(BIN)/python -m tools.budget $(ARGS)

conformance: $(VENV)/.dev ## all recorded answers of upstream, or those of VECTORS=DIR
	@echo "conformance" && $(BIN)/python -m tests.conformance $(VECTORS)

mutants: $(VENV)/.dev ## plant faults and count those that the tests notice: SEED=1 COUNT=200 PACKAGE=decide/vertical
	@$(BIN)/python -m tools.mutants $(if $(SEED),--seed $(SEED)) $(if $(COUNT),--count $(COUNT)) $(if $(PACKAGE),--package $(PACKAGE)) $(ARGS)

hand-overs: $(VENV)/.dev ## ten thousand random sequences of lost leases, lagging watches and wrong clocks; SCHEDULES=20 for a few
	@$(BIN)/python -m tests.faults.horizontal.hand_overs --first 200 --schedules $(or $(SCHEDULES),1000) $(ARGS)

leases: $(VENV)/.dev ## five thousand random schedules of replicas that share Leases: never two deciders; SCHEDULES=200 for a few
	@$(BIN)/python -m tests.unit.cluster.leases.schedules --schedules $(or $(SCHEDULES),5000) $(ARGS)

worlds: $(VENV)/.dev ## random lives under our rules and upstream's, and the stories of those that are worse: COUNT=200 SEED=1, WORLD=sizes-17 explains one, ARGS=--real
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tests.worlds $(if $(SEED),--seed $(SEED)) $(if $(COUNT),--count $(COUNT)) \
		$(if $(WORLD),--world $(WORLD)) $(ARGS)

goldens: $(VENV)/.dev ## what users see of each kind of decision, compared with what is kept; ARGS=--renew keeps the new texts and shows the difference
	@$(BIN)/python -m tests.goldens $(ARGS)

soak: $(VENV)/.dev ## a month of churn in virtual time, and what grew: DAYS=30 ROUNDS=12 SEED=1, ARGS=--real MINUTES=60 on the real server
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tests.soak --days=$(or $(DAYS),30) --rounds=$(or $(ROUNDS),12) --seed=$(or $(SEED),1) \
		--minutes=$(or $(MINUTES),60) $(ARGS)

fuzz: $(VENV)/.dev ## mutated inputs for every way in: MINUTES=10 or RUNS=1000 (of each), SEED=1, ARGS=--target=http
	@$(BIN)/python -m tests.fuzz --minutes=$(or $(MINUTES),10) --runs=$(or $(RUNS),0) --seed=$(or $(SEED),1) $(ARGS)

scorecard: $(VENV)/.dev ## faults survived / tried, by group; ARGS=--real for the real server too
	@$(BIN)/python -m tests.scorecard $(ARGS)

bench: $(VENV)/.dev ## ours beside the Go peers: QUICK=1 in two minutes, ARGS=NAME for one benchmark, ARGS=--list
	@$(COMPILED) && $(BIN)/python -m bench $(ARGS)

first-scale: $(VENV)/.run ## how long a newcomer waits: clone, make up, first scaled workload; ARGS=--empty-cache
	@$(BIN)/python -m tools.first_scale $(ARGS)

docs: export NO_MKDOCS_2_WARNING := 1
docs: $(VENV)/.dev ## the documentation as a site of plain files, in site/; every link is checked
	@$(BIN)/mkdocs build --strict && echo "Open file://$(CURDIR)/site/index.html"

docs-version: export NO_MKDOCS_2_WARNING := 1
docs-version: export TRIMTAB_DOCS_VERSIONS := mike
docs-version: $(VENV)/.dev ## add the site of VERSION=0.2 to the versions on the branch gh-pages, without pushing it
	@test -n "$(VERSION)" || { echo "say which: make docs-version VERSION=0.2" >&2; exit 2; }
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/mike deploy --update-aliases $(VERSION) latest && $(BIN)/mike set-default latest

build: $(VENV)/.dev ## the wheel, in dist/
	@$(UV) build -q --wheel --out-dir dist --python $(PYTHON) . && ls dist/*.whl

release: $(VENV)/.dev ## all files of a release, in dist/, the same bytes every time: VERSION=0.1.0; nothing is published
	@test -n "$(VERSION)" || { echo "say which: make release VERSION=0.1.0" >&2; exit 2; }
	@$(BIN)/python -m tools.release $(VERSION) $(ARGS)

lock-image: $(VENV)/.dev ## renew requirements/image.lock, the Debian packages of the image
	@$(BIN)/python -m tools.release.debian

lock: $(UV) ## renew requirements/*.lock from pyproject.toml
	@$(UV) pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url \
		--no-emit-find-links --upgrade pyproject.toml -o requirements/run.lock
	@$(UV) pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url \
		--no-emit-find-links --upgrade pyproject.toml --group dev -c requirements/run.lock -o requirements/dev.lock
	@echo hatchling | $(UV) pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
		--no-emit-index-url --no-emit-find-links --upgrade - -o requirements/build.lock

clean: ## remove what make made here
	@rm -rf .venv .venv-* .tools .mutants .trimtab dist build site .cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis \
		.pytest_cache .benchmarks *.egg-info src/*.egg-info
	@find . -name __pycache__ -prune -exec rm -rf {} + -o -name '*.pyc' -exec rm -f {} +

# Set-up, done once and only when something changed.
PROGRESS = sh tools/progress.sh
# uv leaves compiling to the first start; where Python may not keep what it compiled, that is half a second of every start.
KEEPING = env -u PYTHONDONTWRITEBYTECODE
COMPILED = $(KEEPING) $(BIN)/python -m compileall -q src
LOADED = uvloop, trimtab.cli.commands.up, trimtab.cli.stories.stage, trimtab.cluster.http, trimtab.operator.operator, trimtab.operator.vertical.wiring, trimtab.dashboard.dashboard

OFFLINE = echo "trimtab: the packages it needs could not be downloaded (see above). Is this machine online? Behind a proxy set \
	HTTPS_PROXY, for a mirror PIP_INDEX_URL and UV_DEFAULT_INDEX; then type the same again: make $(MAKECMDGOALS)" >&2; exit 1

.tools/.python-ok:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "trimtab needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>&1). Try: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@mkdir -p .tools && touch $@

$(UV): .tools/.python-ok
	@$(PROGRESS) "setting up: uv, which installs packages" sh -c "if $(PYTHON) -m venv .tools 2>/dev/null; \
		then .tools/bin/python -m pip install -q 'uv==$(UV_VERSION)'; \
		else $(PYTHON) -m pip install -q --target .tools 'uv==$(UV_VERSION)'; fi" || { $(OFFLINE); }
	@touch $@

$(VENV)/.made: | $(UV)
	@$(UV) venv -q --allow-existing --python $(PYTHON) $(VENV) && touch $@

$(VENV)/.run: requirements/run.lock pyproject.toml | $(VENV)/.made
	@$(PROGRESS) "setting up: the packages that Trimtab needs to run" \
		$(UV) pip install -q --python $(BIN)/python --require-hashes -r requirements/run.lock || { $(OFFLINE); }
	@$(PROGRESS) "setting up: Trimtab" sh -c "$(UV) pip install -q --python $(BIN)/python --no-deps -e . && \
		$(COMPILED) && $(KEEPING) $(BIN)/python -c 'import $(LOADED)'" && touch $@

$(VENV)/.dev: requirements/dev.lock $(VENV)/.run
	@$(PROGRESS) "setting up: what the tests need" \
		$(UV) pip install -q --python $(BIN)/python --require-hashes -r requirements/dev.lock || { $(OFFLINE); }
	@touch $@
