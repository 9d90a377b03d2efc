# Every target says what it does after two hashes; make help collects them.

GO          ?= go
# What the compiler makes does not depend on the folder: a second clone finds it made.
export GOFLAGS := $(strip $(GOFLAGS) -trimpath)
# The race detector is for our code. SQLite's library is translated C, which takes
# ten times as long under it. No other package may be left out: generic code that
# it shares with ours would be left out too, and give false reports.
RACE        ?= -race -gcflags=modernc.org/sqlite/lib=-race=false
# Lint reads what the tests are compiled from: the compiler's results, which most
# of its time is for, are made once. Memory is collected less often, as by test.sh.
STATICCHECK ?= $(GO) run -exec 'env "GOFLAGS=$(GOFLAGS) $(RACE)" GOGC=400 GOMEMLIMIT=3GiB' honnef.co/go/tools/cmd/staticcheck@v0.8.1
GORELEASER  ?= $(GO) run github.com/goreleaser/goreleaser/v2@v2.16.0
# Far above what a package takes on an idle machine: a busy one must not run
# into it.
TIMEOUT     ?= 30m
# Tests on real servers wait most of the time: a few run at once on each
# processor, in one package more than there are processors. With another one, those
# on Redis were starved.
CORES       := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
PARALLEL    ?= $(shell expr 2 \* $(CORES))
AT_ONCE     ?= $(shell expr 1 + $(CORES))
TESTFLAGS   := -count=1 -vet=off -ldflags=-s -parallel $(PARALLEL) -timeout $(TIMEOUT)
PLATFORMS   ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

# The library, the stores, the commands, the examples, and what tests them together.
# The pattern "work" has in addition the other modules of go.work: adapters,
# benchmarks beside the peers, tests against foreign clients and in a browser.
OURS := $(addsuffix /...,. ./cmd ./examples ./store/etcd ./store/mysql ./store/postgres ./store/redis/goredis ./store/redis/rueidis \
	./store/sqlite ./store/zookeeper ./internal/test/chaos ./test/stores)

# The packages whose tests take longest. They begin first: go test begins
# packages in their order, and takes each once.
LONGEST := ./test/stores/redis ./cmd/redlatch ./test/stores/nodestate . ./store/zookeeper ./store/postgres ./store/mysql ./store/etcd ./test/stores/fence \
	./internal/runner ./adapters/redsync ./adapters/prom ./store/sqlite \
	./test/browser ./store/casnode/casnodetest

# What make test leaves to make nightly: foreign clients, the bench, releases, examples
# and the torture. Of the mutants, make test checks that each edit has its place, and
# make mutants builds and runs them.
NIGHT := /(test/interop|test/bench|packaging|examples|internal/test/chaos|cmd/redlatch-torture)(/|$$)

# The packages whose tests compute, in virtual time or on this tree. They are run
# beside the others, at a lower priority, and without the race detector, which would
# take four times as long. make soak has it on for them too.
COMPUTE := ./internal/test/sim ./store/casnode ./internal/test/explore ./internal/protocol ./internal/test/world ./internal/test/snippets

.DEFAULT_GOAL := help

.PHONY: help
help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## the commands, as bin/redlatch and bin/redlatch-torture
	$(GO) build work
	$(GO) build -trimpath -o bin/ ./cmd/redlatch ./cmd/redlatch-torture

.PHONY: deps
deps: ## install what the tests need and is missing: redis-server, MariaDB, MySQL, PostgreSQL, etcd, ZooKeeper, Prometheus, Chromium, a C compiler, ip, ps, systemd-analyze
	@scripts/install-deps.sh

# Tests of several packages execute the command as users have it. What they build
# is compiled first, so that they do not all compile it at once.
.PHONY: test
test: deps lint ## what must pass before a change: deps, lint, the tests of library, stores, commands, browser and adapters, under the race detector but for those that compute
	@$(GO) build -o /dev/null ./cmd/redlatch
	@scripts/test.sh $(RACE) $(TESTFLAGS) -p $(AT_ONCE) $(LONGEST) \
		$$($(GO) list work | grep -Ev '$(NIGHT)' | grep -vxF "$$($(GO) list $(COMPUTE))") -- $(TESTFLAGS) -p 1 $(COMPUTE)

.PHONY: nightly
nightly: deps ## the tests that make test leaves out: foreign clients, the bench, releases, examples, the torture
	@$(GO) build -o /dev/null ./cmd/redlatch
	@scripts/test.sh $(RACE) $(TESTFLAGS) -p $(CORES) $$($(GO) list work | grep -E '$(NIGHT)' | grep -v /packaging) \
		-- $(TESTFLAGS) -p 1 ./packaging/...

# What changes most, and is quick to link. CI gives SHORT='$(OURS)' on systems
# that it runs nothing else on.
SHORT := . ./admin ./fence ./internal/protocol ./internal/nodestate ./internal/runner ./internal/test/sim ./internal/test/world ./internal/test/explore \
	./internal/test/snippets ./internal/test/stall ./node/... ./store/memory ./store/sqlite ./store/redis ./test/stores/... ./ui

.PHONY: short
short: ## the quick tests of the library alone, in under a minute: no servers, no crowds of processes, no race detector
	@scripts/test.sh -short -vet=off -ldflags=-s -p $(AT_ONCE) -run '^(Test|Fuzz)' -timeout $(TIMEOUT) $(SHORT)

.PHONY: lint
lint: ## formatting, weight, go vet and staticcheck, in every module
	@test -z "$$(gofmt -s -l .)" || { echo "not formatted (make fmt):"; gofmt -s -l .; exit 1; }
	@scripts/weight.sh
	@$(GO) vet $(RACE) work
	@$(STATICCHECK) work

.PHONY: snippets
snippets: ## write the marked blocks of the documentation anew from their sources
	$(GO) test -count 1 -run TheCodeItShows ./internal/test/snippets -update

.PHONY: demo-svg
demo-svg: ## record redlatch demo, as docs/img/demo.svg
	$(GO) run ./internal/test/demosvg

.PHONY: cross
cross: ## build library and commands for every platform
	@set -e; for p in $(PLATFORMS); do \
		echo "  $$p"; GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 $(GO) build $(OURS); \
	done

.PHONY: bench
bench: deps ## redlatch beside its peers on real servers, some 30 minutes, into docs/testing/bench; BENCH='-only CELL', 'redis', 'databases', 'consensus', 'crowd', 'capacity'
	cd test/bench && $(GO) run . $(BENCH)

.PHONY: interop
interop: deps ## foreign lock clients and redlatch on the same keys, some 5 minutes, into docs/testing/interop.md
	@test/interop/scripts/install.sh
	cd test/interop && $(GO) run ./cmd/interop $(INTEROP)

.PHONY: microbench
microbench: deps ## the benchmarks of library and commands
	$(GO) test -run '^$$' -bench . -benchmem -timeout 30m $(OURS)

.PHONY: soak
soak: deps ## the tests twenty times in a row, under the race detector
	$(GO) test $(RACE) -parallel $(PARALLEL) -count 20 -timeout 120m $(OURS)

.PHONY: busy
busy: deps ## eight processes with one lock on five servers, beside busy loops, 5 minutes: BUSY=LOOPS, FOR=TIME for others
	@$(GO) build -o bin/redlatch-torture ./cmd/redlatch-torture
	scripts/busy.sh $(or $(BUSY),4) bin/redlatch-torture --faults none --names 1 --for $(or $(FOR),5m)

.PHONY: sim
sim: ## histories by the million, in virtual time, about an hour: SEEDS=FROM:COUNT for others
	@GO="$(GO)" scripts/sim.sh $(SEEDS)

.PHONY: mutants
mutants: deps ## every mutant of the simulation, the exploration, the scripts, the rules of nodes, the observed clock and package fence, some 9 minutes
	REDLATCH_MUTANTS=all $(GO) test -run 'Mutant|EveryRuleIsMissed' -count 1 -timeout 60m ./internal/test/sim ./internal/test/explore ./node/nodetest ./store/casnode ./test/stores/fence

.PHONY: model
model: ## the real claims on real nodes in every interleaving: all instances, to their end or 3,000,000 states
	REDLATCH_EXPLORE=all $(GO) test -run 'NoInterleaving|StatesThatAreOne|DroppedMessages|NoRecord|EveryRule' -v -count 1 -timeout 12h ./internal/test/explore

.PHONY: torture
torture: deps ## real servers and clients under every fault, 13 minutes: TORTURE=[FROM:]SEEDSxTIME, KEEP=DIR for the histories
	@mkdir -p $(or $(KEEP),build/torture)
	REDLATCH_TORTURE=$(or $(TORTURE),5x120s) REDLATCH_TORTURE_KEEP=$(abspath $(or $(KEEP),build/torture)) \
		$(GO) test -run 'UnderEveryFault|WithoutFencing' -v -count 1 -timeout 120m ./internal/test/chaos

.PHONY: storm
storm: deps ## failovers of each kind of store while clients are stopped, faults of clusters, and what operators do, FOR=10m each
	@$(GO) build -o bin/ ./cmd/redlatch-torture
	@set -e; for kind in sentinel postgres mariadb mysql; do echo "  $$kind"; \
		bin/redlatch-torture --servers 1 --kinds $$kind --faults failover,pause,client-kill --clients 12 --names 6 --for $(or $(FOR),10m); \
	done
	@set -e; for kind in etcd zookeeper; do echo "  $$kind"; \
		bin/redlatch-torture --servers 1 --kinds $$kind --faults within --for $(or $(FOR),10m); \
	done
	@set -e; for kind in redis postgres; do for edge in membership set-back; do echo "  three $$kind, $$edge"; \
		bin/redlatch-torture --servers 3 --kinds $$kind --faults $$edge,break,pause,client-kill --names 4 --for $(or $(FOR),10m); \
	done; done

.PHONY: fuzz
fuzz: ## every fuzz target, for FUZZTIME=30s each; FUZZ=REGEXP for some of them
	@FUZZTIME=$(or $(FUZZTIME),30s) scripts/fuzz.sh

.PHONY: fences
fences: deps ## a million names used once: are their fences gone after the retention?
	REDLATCH_NAMES=1000000 $(GO) test -run UsedOnce -v -timeout 30m ./test/stores/redis

.PHONY: cover
cover: deps ## what the tests reach, as build/cover.html
	@mkdir -p build
	$(GO) test -timeout $(TIMEOUT) -coverpkg "$$(echo $(OURS) | tr " " ,)" -coverprofile build/cover.out $(OURS)
	$(GO) tool cover -html build/cover.out -o build/cover.html
	@$(GO) tool cover -func build/cover.out | tail -n 1

.PHONY: fmt
fmt: ## format the code
	gofmt -s -w .

.PHONY: tidy
tidy: ## go mod tidy in every module, with each other's go.mod as they are here
	scripts/tidy.sh

.PHONY: man
man: ## the manual pages, into build/man
	$(GO) run -tags man ./cmd/redlatch man build/man

.PHONY: playground
playground: ## the page of docs/playground, into build/playground: open its index.html, from the file or from a server
	@GO="$(GO)" scripts/playground.sh

.PHONY: clean
clean: ## remove what was built
	rm -rf bin build

.PHONY: rehearsal
rehearsal: deps ## go install and go get of every module, from this tree as a release, without go.work
	REDLATCH_REHEARSAL=all $(GO) test -run Release -v -count 1 -timeout $(TIMEOUT) ./packaging

.PHONY: release
release: ## the files of the tag that is checked out, and a draft of its release on GitHub, with GITHUB_TOKEN
	@mkdir -p build
	awk '/^## \[[0-9]/{n++} n==1 && !/^## /' CHANGELOG.md >build/notes.md
	$(GORELEASER) release -f packaging/goreleaser.yaml --clean --release-notes build/notes.md

.PHONY: packages
packages: ## packages and the image of a release, built, installed and removed, on Debian as root; PACKAGES=--sabotage breaks each on purpose
	packaging/test.sh $(PACKAGES)
