# SPDX-License-Identifier: Apache-2.0
# The front door: `make` alone says what there is.  The work is done by tools/, each runnable by hand.

RANKS ?= 2

.PHONY: help setup build demo test test-long bench check docs format clean
.DEFAULT_GOAL := help

help: ## show this text
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install what is missing; quick when nothing is
	@tools/setup

build: setup ## build the library, the tests and the bench into build/
	@tools/build main

demo: build ## train an unmodified script with 1 process and 2 ranks (RANKS=n for more)
	@.venv/bin/python tools/demo --ranks $(RANKS)

bench: setup ## run the bench table under each installed MPI, one after the other
	@tools/build main mpich
	@bench/run --ranks $(RANKS)

test: setup ## run all tests; the last line counts them
	@tools/run_tests

test-long: setup ## run all tests, the slow ones too
	@tools/run_tests --long

check: setup ## warnings, layering, sizes, generated docs
	@tools/check

docs: setup ## generate docs/env.md from the library's tables, the man page from the command's help
	@tools/docs
	@tools/man

format: ## clang-format the lines changed since the last commit
	@git clang-format HEAD -- '*.c' '*.h'

clean: ## remove what was built; keeps .venv
	rm -rf build dist
