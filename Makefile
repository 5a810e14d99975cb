# Commands for developers. `make help` lists them.

GO        ?= go
BIN       := bin/hubcloud
DATA_DIR  ?= ./data
FUZZTIME  ?= 10s
PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
# The two modules that go.work joins: the service, and the black-box tests with their dependencies.
PACKAGES  := ./... ./test/...
# The black-box tests that `make test` runs whole.
FIRST     := ./test/contract ./test/architecture ./test/openapi ./test/protocol
# All others, those that take longest first, so that none of them is left to run alone.
REST      := ./test/faults ./test/browser ./test/operators \
	$$($(GO) list ./test/... | grep -v -E '/test/(contract|architecture|openapi|protocol|faults|browser|operators)$$')
# A kill and a smoke test in a browser, which `make test` runs too.
SMOKE     := '^(TestKill|TestLock)$$'
# The binary that all black-box tests of a run share.
TESTED    := $(CURDIR)/bin/test/hubcloud
# QUICK builds what is tested in less CPU time: the compiler and the linker collect garbage less often,
# which saves a quarter, and the linker writes nothing for debuggers, which saves a third of its part.
# LINT_GC is the first for tools.
QUICK     := -toolexec='env GOGC=400' -ldflags=-w
LINT_GC   := 400
# ATONCE is how many packages `make test` builds and tests at a time. `make test-rest` takes three: its
# suites run many tests side by side themselves, some within times that the product promises.
ATONCE    ?= $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN))))
# SEEDS is how many seeds the simulator runs, SEED the first, and SIM further flags, such as -acks=10s.
SEEDS     ?= 10
SEED      ?= 1
SIM       ?=
# RETRIES is how often a test that failed is repeated by itself, with both results printed. None: a test
# that passes only now and then is a defect. `.ci/run` allows one, so that nobody's change waits for it.
RETRIES   ?= 0
# TOOL is the path of a tool that test/tools/go.mod pins. -modfile and go.work exclude each other.
TOOL       = $$(GOWORK=off $(GO) tool -modfile=test/tools/go.mod -n $(1))

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the commands
	@awk 'BEGIN {FS = ":.*## "} /^[a-z][a-z-]*:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: deps build ## Run the service with a demo organization and three virtual hubs
	$(BIN) dev --data-dir $(DATA_DIR)

.PHONY: build
build: ## Build the binary, bin/hubcloud
	@GO="$(GO)" deploy/build.sh $(BIN)

.PHONY: deps
deps: ## Install PostgreSQL if it is missing, or print what to install
	@deploy/install-dependencies.sh

# TEST runs the tests of packages, with arguments, and prints a line for each package as it ends.
# `make lint` vets. Tests wait more than they compute, so more packages run than there are processors.
TEST = HUBCLOUD_TEST_BINARY=$(TESTED) HUBCLOUD_TEST_BUILD="$$(git rev-parse HEAD; git diff HEAD | git hash-object --stdin)" \
	$(call TOOL,gotestsum) --format pkgname-and-test-fails --format-hide-empty-pkg --hide-summary skipped \
	--rerun-fails=$(RETRIES) --rerun-fails-max-failures 5 --packages "$(1)" -- $(QUICK) -vet=off -timeout 30m $(2)

# The kill and the smoke test run beside the packages: they wait for most of their time.
.PHONY: test
test: tested ## Test all packages, the API contract at the built binary with hubs over real MQTT and TLS, a kill, a browser
	$(call TEST,./test/faults ./test/browser,-run $(SMOKE)) & smoke=$$!; \
	$(call TEST,$(FIRST) ./hubbridge/... ./streams/... ./...,-p $(ATONCE) -parallel 4); code=$$?; \
	wait $$smoke && exit $$code

.PHONY: test-rest
test-rest: tested ## Run the tests that `make test` leaves out: faults, cluster, browser, operators, upgrade, generators, guides
	@hubbridge/kit/hub/python/install.sh
	$(call TEST,$(REST),-p 3 -skip $(SMOKE))

.PHONY: test-all
test-all: test test-rest sim ## Run every test

.PHONY: screenshots
screenshots: tested ## Take pictures of every page of the portal, in test/artifacts/screenshots
	HUBCLOUD_TEST_SCREENSHOTS=$(CURDIR)/test/artifacts/screenshots HUBCLOUD_TEST_BINARY=$(TESTED) \
		$(GO) test -count 1 -run '^TestScreenshots$$' ./test/browser

# tested builds the binary under test. HUBCLOUD_TEST_BUILD in TEST ends cached results of other sources.
.PHONY: tested
tested: deps
	@test/browser/install.sh
	GOWORK=off $(GO) build $(QUICK) -o $(TESTED) ./cmd/hubcloud

.PHONY: sim
sim: ## Run a cluster in virtual time through faults by seed: SEEDS (10) of them, beginning with SEED (1)
	@GO="$(GO)" test/sim/prepare.sh
	cd test/sim && GOWORK=off $(GO) test $(QUICK) -overlay=.patched/overlay.json -c -o $(CURDIR)/bin/test/sim .
	cd test/sim && $(CURDIR)/bin/test/sim -test.run 'TestBrokers|TestHealing' -seed=$(SEED)
	test/sim/run.sh $(CURDIR)/bin/test/sim $(SEED) $(SEEDS) $(SIM)

.PHONY: sim-mutants
sim-mutants: ## Put defects back that were mended, and print with which seed the simulator finds each
	@GO="$(GO)" test/sim/mutants.sh $(SEEDS)

.PHONY: race
race: deps ## Run the package tests with the race detector
	$(GO) test -race -timeout 40m ./...

lint verify vuln: export GOGC := $(LINT_GC)

.PHONY: lint
lint: ## Check formatting, house style, vet, staticcheck and unreachable code
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "not gofmt-ed:"; echo "$$unformatted"; exit 1; fi
	$(GO) run ./test/style $$(git ls-files '*.go')
	$(GO) vet $(PACKAGES)
	$(call TOOL,staticcheck) $(PACKAGES)
	@dead=$$($(call TOOL,deadcode) -test $(PACKAGES)) || exit 1; if [ -n "$$dead" ]; then echo "unreachable code:"; echo "$$dead"; exit 1; fi

.PHONY: lint-api
lint-api: ## Check the API description with Redocly and Spectral, and generate a client with orval; needs Node and npm
	@test/generators/lint/run.sh

.PHONY: vuln
vuln: ## Check the dependencies for known vulnerabilities, where the database can be reached
	@test/tools/vuln.sh $(call TOOL,govulncheck)

.PHONY: release
release: export SIGNING_KEY := $(SIGNING_KEY)
release: ## Build the release for PLATFORMS (all) into dist: archives, packages, SBOMs, checksums; SIGNING_KEY signs them
	deploy/release/release.sh dist $(PLATFORMS)

.PHONY: release-check
release-check: ## Build the release twice and compare the checksums
	deploy/release/release.sh dist $(PLATFORMS)
	deploy/release/release.sh dist/again $(PLATFORMS)
	cmp dist/SHA256SUMS dist/again/SHA256SUMS
	rm -rf dist/again

.PHONY: generate
generate: ## Run all code generators
	$(GO) generate ./...

.PHONY: verify
verify: generate ## Generate and tidy; fail if that changes a file
	@$(GO) mod tidy -diff
	@$(GO) -C test mod tidy -diff
	@$(GO) work sync
	@git diff --exit-code || (echo "the tree differs from what \`make generate\` writes: commit the difference"; exit 1)

.PHONY: bench
bench: deps ## Run the benchmarks, each with its reference figure (30 minutes)
	$(GO) test -count=1 -timeout 60m -v -run '^TestBench$$' ./test/bench -bench.report
	$(GO) test -run '^$$' -bench '^BenchmarkChain$$' -count 3 ./httpapi

.PHONY: bench-logs
bench-logs: deps ## Run the benchmark of 100,000 hub logs (half an hour)
	$(GO) test -count=1 -timeout 180m -v -run '^TestLargeBench$$/^logs$$' ./test/bench -bench.report

.PHONY: bench-cluster
bench-cluster: deps ## Run the benchmark of three servers with 20,000 hub logs (half an hour)
	$(GO) test -count=1 -timeout 180m -v -run '^TestLargeBench$$/^cluster$$' ./test/bench -bench.report

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (10s)
	@for package in $$($(GO) list $(PACKAGES)); do \
		for target in $$($(GO) test -list '^Fuzz' $$package 2>/dev/null | grep '^Fuzz'); do \
			echo "$$package $$target"; $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package || exit 1; \
		done; \
	done

.PHONY: clean
clean: ## Remove build results; keeps the data directory
	rm -rf bin dist test/artifacts
