# The verbs of haft. `make` alone explains them.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help run test browser soak conformance bench peers fmt lint

# Prints a heading between the parts of a verb.
heading = @printf '\n== %s\n' "$(1)"

help: ## explain the verbs
	@printf 'usage: make VERB\n\n'
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 10

run: ## build haft and start the server; pass flags with ARGS="--addr 127.0.0.1:8080"
	@tools/setup build
	$(call heading,web interface)
	@tools/ui
	$(call heading,build (the first one takes several minutes))
	@tools/build --profile quick
	$(call heading,haft serve)
	@exec cargo run --quiet --locked --profile quick --package haft-cli --bin haft -- serve $(ARGS)

test: ## run every check and test: formatting, tidy, web interface, lints, doctests, tests, MCP conformance, generated REST requests, the main walks in chromium
	@tools/test

browser: ## all walks through the web interface in chromium, against real servers (about eight minutes)
	@tools/setup test
	@tools/ui test
	cargo build --locked --workspace --all-features
	HAFT_BIN=$(CURDIR)/target/debug/haft npm --prefix ui run --silent e2e

soak: ## the tests that kill and load haft in long loops, in full (about an hour)
	@tools/setup test
	HAFT_SOAK=1 cargo nextest run --locked --workspace --all-features --profile soak

conformance: ## run the public MCP conformance suites against server and client
	@tools/setup test
	cargo build --locked --workspace --all-features --example conformance_server --example conformance_client
	@tools/conformance target/debug/examples/conformance_server target/debug/examples/conformance_client

bench: ## benchmark haft next to a plain server in one run
	@tools/setup build
	cargo run --locked --release --package haft-bench
	@$(MAKE) --no-print-directory peers

peers: ## benchmark in-process calls next to rmcp, rig, LangChain and Pydantic-AI (part of make bench)
	@tools/setup build
	@tools/setup peers library
	cargo run --locked --release --manifest-path bench/peers/Cargo.toml --target-dir target/bench-peers/build

fmt: ## format the sources
	cargo fmt --all

lint: ## lints and tidy, without the tests
	cargo clippy --locked --workspace --all-targets --all-features -- --deny warnings
	cargo xtask tidy
