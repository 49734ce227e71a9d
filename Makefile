# The verbs of haft. `make` alone explains them.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help run test conformance bench peers fmt lint

# Prints a heading between the parts of a verb.
heading = @printf '\n== %s\n' "$(1)"

help: ## explain the verbs
	@printf 'usage: make VERB\n\n'
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 10

run: ## build haft and start the server; ARGS="--addr 127.0.0.1:8080" passes flags on
	@tools/setup build
	$(call heading,build (the first one takes some minutes))
	cargo build --locked --profile quick --package haft-cli
	$(call heading,haft serve)
	@exec cargo run --quiet --locked --profile quick --package haft-cli --bin haft -- serve $(ARGS)

test: ## formatting, lints, tidy, doctests, all tests: what has to pass before a commit
	@tools/setup test
	$(call heading,formatting)
	cargo fmt --all --check
	$(call heading,lints)
	cargo clippy --locked --workspace --all-targets --all-features -- --deny warnings
	$(call heading,tidy)
	cargo xtask tidy
	$(call heading,doctests)
	cargo test --locked --workspace --all-features --doc
	$(call heading,tests)
	cargo nextest run --locked --workspace --all-features
	$(call heading,what the compiler says of functions that cannot be tools (without features))
	cargo nextest run --locked --package haft --test it macros_ui
	$(call heading,MCP conformance)
	@tools/conformance target/debug/examples/conformance_server target/debug/examples/conformance_client

conformance: ## the public conformance suites of MCP: server and client
	@tools/setup test
	cargo build --locked --package haft-server --example conformance_server
	cargo build --locked --package haft-mcp --example conformance_client
	@tools/conformance target/debug/examples/conformance_server target/debug/examples/conformance_client

bench: ## measure haft next to a plain server, in one run
	@tools/setup build
	cargo run --locked --release --package haft-bench
	@$(MAKE) --no-print-directory peers

peers: ## measure a call in one process next to rmcp, rig, LangChain and Pydantic-AI (make bench does, too)
	@tools/setup build
	@tools/setup peers library
	cargo run --locked --release --manifest-path bench/peers/Cargo.toml --target-dir target/bench-peers/build

fmt: ## format the sources
	cargo fmt --all

lint: ## lints and tidy, without the tests
	cargo clippy --locked --workspace --all-targets --all-features -- --deny warnings
	cargo xtask tidy
