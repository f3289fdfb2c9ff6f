# SPDX-License-Identifier: MIT
#
# The front door: every task is one target here, and `make` alone lists them. The build itself is CMake and
# Ninja, one folder per preset under build/; this file only says which preset a task needs.
#
#   make lib                          build/release/libbrimful.so, libbrimful.a, brimful.o
#   make lib CC=clang CXX=clang++     the same by clang, in build/clang
#   make lib PRESET=aarch64           any preset of CMakePresets.json

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PRESET ?= $(if $(findstring clang,$(CXX)),clang,release)
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)

.PHONY: help
help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

build/%/build.ninja: CMakeLists.txt CMakePresets.json
	@cmake --preset $* -S . > build-$*.log 2>&1 || { cat build-$*.log; rm -f build-$*.log; exit 1; }
	@rm -f build-$*.log; touch $@

.PHONY: lib
lib: build/$(PRESET)/build.ninja ## the libraries, in build/release
	@cmake --build build/$(PRESET) -j $(JOBS) --target brimful brimful_static brimful_relocatable

.PHONY: clean
clean: ## remove everything that was built
	rm -rf build
