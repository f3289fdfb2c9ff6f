# SPDX-License-Identifier: MIT
#
# The front door: every task is one target here, and `make` alone lists them. The build itself is CMake and
# Ninja, one folder per preset under build/; this file only says which preset a task needs.
#
#   make lib                          build/release/libbrimful.so, libbrimful.a, brimful.o, libbrimful-pools.a
#   make lib CC=clang CXX=clang++     the same by clang, in build/clang
#   make lib PRESET=aarch64           any preset of CMakePresets.json
#   make test TESTS=unit              only the tests whose name matches (an expression as for ctest -R)
#   make run RUN_SECONDS=30           stops measuring after about so many seconds, or a round of all programs (shortest)
#   make test TESTS=debug.unit        the same, and only the build that is named is made
#   make repeat TESTS=… N=20          each of them so many times; a second call goes on where the first was stopped
#
# Each task is parallel by itself (JOBS). Two of them at once would build in the same folder, so `make -j` runs them one
# after the other.
.NOTPARALLEL:

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PRESET ?= $(if $(findstring clang,$(CXX)),clang,release)
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
TESTS ?= .

ALL_TEST_PRESETS := release debug asan tsan
TEST_PRESETS := $(or $(strip $(foreach preset,$(ALL_TEST_PRESETS),$(if $(findstring $(preset).,$(TESTS)),$(preset)))),\
  $(ALL_TEST_PRESETS))
# One more than there are processors: some tests wait, for a server or for memory that is to be given back.
TEST_JOBS ?= $(shell expr $(JOBS) + 1)
CTEST := tools/run_tests.py build/test -j $(TEST_JOBS)
N ?= 20

# ccache, where it is installed, is told that the headers compiled in advance may be trusted.
export CCACHE_SLOPPINESS ?= pch_defines,time_macros

.PHONY: help
help: ## this list
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# Configuring prints little of interest unless it fails. CMake itself configures again when its files change.
build/%/build.ninja: CMakePresets.json
	@tools/install-deps.sh lib $*
	@mkdir -p build
	@cmake --preset $* -S . > build/configure-$*.log 2>&1 || { cat build/configure-$*.log; exit 1; }
	@touch $@

.PHONY: lib
lib: build/$(PRESET)/build.ninja ## the libraries, in build/release
	@cmake --build build/$(PRESET) -j $(JOBS) --target \
	  brimful brimful_static brimful_relocatable brimful-pools brimful-pools-checked command_tools

LOCKED := study-class study-global
LOCKED_TARGETS ?= brimful

.PHONY: lib-locked
lib-locked: $(LOCKED:%=build/%/build.ninja) ## the library with locks in place of contexts, for comparison: build/study-*
	@for preset in $(LOCKED); do cmake --build build/$$preset -j $(JOBS) --target $(LOCKED_TARGETS) || exit; done

.PHONY: run
run: ## install what is missing, compare real programs under the system's malloc and brimful (RUN_SECONDS=30: a glance)
	@tools/install-deps.sh run
	@$(MAKE) --no-print-directory lib
	@./brimful bench study demo $(if $(RUN_SECONDS),--short --seconds $(RUN_SECONDS))

# One CTest folder that includes the folders of all presets, so that one ctest prints one count.
.PHONY: build-tests
build-tests: $(TEST_PRESETS:%=build/%/build.ninja)
	@mkdir -p build/test
	@began=$$SECONDS; for preset in $(TEST_PRESETS); do \
	  echo "Building $$preset"; \
	  cmake --build build/$$preset -j $(JOBS) -- --quiet || exit; \
	done; echo $$((SECONDS - began)) > build/test/build-seconds.txt
	@printf 'subdirs("%s")\n' $(TEST_PRESETS:%=../%) > build/test/CTestTestfile.cmake

.PHONY: test
test: ## everything: format, lint, unit, ABI, misuse, real programs, stress, sanitizers (under 15 minutes)
	@tools/install-deps.sh test
	@$(MAKE) --no-print-directory build-tests
	@$(CTEST) -R '$(TESTS)' -LE '^long$$'

.PHONY: quick
quick: build/release/build.ninja build/debug/build.ninja ## while you work: unit, misuse, golden, short ABI, lint of what changed (90 s)
	@cmake --build build/debug -j $(JOBS) --target unit_tests -- --quiet
	@cmake --build build/release -j $(JOBS) --target brimful brimful_static quick_programs -- --quiet
	@mkdir -p build/quick
	@printf 'subdirs("%s")\n' ../release ../debug > build/quick/CTestTestfile.cmake
	@tools/run_tests.py build/quick -j $(TEST_JOBS) -L '^quick$$'

.PHONY: repeat
repeat: build-tests ## N times (20) each test that TESTS names; stop and go on; build/test/repeats.jsonl is the tally
	@tools/repeat_tests.py build/test -R '$(TESTS)' -n $(N) -j $(TEST_JOBS)

.PHONY: test-long
test-long: ## the soak, with the time it still takes; Ctrl-C ends it with what was done (hours)
	@tools/install-deps.sh test
	@$(MAKE) --no-print-directory build-tests
	@sed -n '/^## The soak/,/^## Adding/{/^## /d;p}' HACKING.md
	@$(CTEST) -R '$(TESTS)' -L '^long$$' --progress

# TARGET: one of `tests/fuzz/run.py --list`, or several; none: all. FUZZ="--afl" and the like: tests/fuzz/run.py --help.
.PHONY: fuzz
fuzz: ## fuzzers: TARGET=malloc_calls SECONDS=60; without TARGET each of them so long (tests/fuzz/README.md)
	@tools/install-deps.sh fuzz
	@/usr/bin/python3 tests/fuzz/run.py $(TARGET) --seconds $(or $(SECONDS),60) $(FUZZ)

.PHONY: fuzz-campaign
fuzz-campaign: ## all fuzzers, an hour together, then executions and coverage into docs/fuzzing.md; Ctrl-C: what was done
	@tools/install-deps.sh fuzz
	@/usr/bin/python3 tests/fuzz/run.py --seconds 240 --record $(FUZZ)

# Cross compiled, then run on Debian's kernels in an emulated machine. KERNEL="--quick"
# for a look; other options: tests/arm64/kernel.py --help.
ARM64_PRESETS := arm64-release arm64-debug
.PHONY: test-arm64
test-arm64: ## 64-bit ARM: stress, ABI and unit tests on emulated kernels (more than an hour; KERNEL=--quick: 20 minutes)
	@tools/install-deps.sh test-arm64
	@$(MAKE) --no-print-directory $(ARM64_PRESETS:%=build/%/build.ninja)
	@for preset in $(ARM64_PRESETS); do cmake --build build/$$preset -j $(JOBS) -- --quiet || exit; done
	@/usr/bin/python3 tests/arm64/kernel.py $(KERNEL)

.PHONY: bench
bench: lib ## compare allocators: brimful bench with BENCH="--quick", "--full", "--real", … (default: 45 minutes at most)
	@tools/install-deps.sh bench
	@./brimful bench $(BENCH)

# Goes on where it was stopped; the rivals take some minutes to build, once.
.PHONY: league
league: lib ## all workloads and real programs under all leading allocators, in pieces: two to three hours; stop and go on (LEAGUE="--for 20m")
	@tools/install-deps.sh bench
	@test -e build/rivals/manifest.json || $(MAKE) --no-print-directory rivals
	@./brimful bench league $(LEAGUE)

.PHONY: study
study: ## measurements in folders of their own: STUDY=NAME OPTIONS="--short"; without STUDY, the list with times and pages
	@./brimful bench study $(if $(STUDY),$(STUDY) --prepare $(OPTIONS),--list)

.PHONY: rivals
rivals: ## fetch and build the allocators that brimful is compared with
	@tools/install-deps.sh rivals
	@/usr/bin/python3 bench/rivals/build.py $(RIVALS)

.PHONY: real-programs
real-programs: ## install the programs of `brimful bench --real`, and build redis with plain malloc
	@tools/install-deps.sh real-programs
	@/usr/bin/python3 bench/programs/build_programs.py

.PHONY: format
format: ## rewrite C++ and Python files in the project's format
	@tools/install-deps.sh test
	@tools/lint_format.sh --fix
	@tools/lint_python.sh --fix

.PHONY: lint
lint: build/release/build.ninja ## format, clang-tidy, ruff, mypy, shellcheck, layers, atomics, licences, symbols
	@tools/install-deps.sh test
	@cmake --build build/release -j $(JOBS) -- --quiet
	@tools/run_tests.py build/release -j $(JOBS) -L '^lint$$'

.PHONY: install
install: lib ## libraries, headers, pkg-config files and man pages, below PREFIX (/usr/local)
	@cmake --install build/$(PRESET) --prefix $(abspath $(DESTDIR)/$(PREFIX))

.PHONY: clean
clean: ## remove everything that was built
	rm -rf build
