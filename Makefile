# One build folder and one profile for everything, so that `make quickstart` and `make test` share their work.
export CARGO_TARGET_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/clade/target
export CLADE_PYTHON_ENV ?= $(CURDIR)/.venv
export CLADE_TEST_PYTHON_ENV ?= $(CURDIR)/.venv-test
export CLADE_PYTHON ?= $(CLADE_PYTHON_ENV)/bin/python
export CLADE_TEST_PYTHON ?= $(CLADE_TEST_PYTHON_ENV)/bin/python

# The golden vectors and shared tasks are no part of the repository; where they are, they lie beside the checkout.
CLADE_SHARED ?= ../shared
ifeq ($(wildcard $(CLADE_SHARED)/tasks),)
export CLADE_SKIP_SHARED ?= 1
SHARED_NOTE := $(abspath $(CLADE_SHARED)) is absent: tests on the shared tasks, programs and golden vectors are left out
endif

CARGO ?= cargo
# The models of provider torch are a library of their own, in a workspace of its own: the rest needs no libtorch.
LM := --locked --manifest-path lm/Cargo.toml
TORCH = libtorch="$$(scripts/setup-torch.sh)" && eval "$$libtorch" &&
CLADE := $(CARGO_TARGET_DIR)/debug/clade

.PHONY: help quickstart build test setup-torch image bench fmt fmt-check lint docs clean

help: ## Show the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

quickstart: build ## Set up, build, and run a first search on an example task
	$(CLADE) quickstart

# With the tests: their dependencies change features of shared crates, and DataFusion is compiled once, not twice.
build: ## Set up Python and the example tasks, build the binary
	@scripts/setup.sh >/dev/null
	$(CARGO) build --locked --workspace --bins --tests

test: ## Run all tests; those on the shared test data only where ../shared is (or CLADE_SHARED names it), those on Docker unless CLADE_SKIP_DOCKER=1, those on libtorch unless CLADE_SKIP_TORCH=1
	@scripts/setup.sh --tests >/dev/null
	$(if $(SHARED_NOTE),@echo "$(SHARED_NOTE)")
	$(CARGO) build --locked --workspace --bins --tests
	$(if $(filter 1,$(CLADE_SKIP_DOCKER)),@echo "CLADE_SKIP_DOCKER=1: the tests on containers are left out",$(MAKE) --no-print-directory image)
	$(if $(filter 1,$(CLADE_SKIP_TORCH)),@echo "CLADE_SKIP_TORCH=1: the tests on libtorch are left out",$(MAKE) --no-print-directory setup-torch)
	$(CARGO) test --locked --workspace
	$(if $(filter 1,$(CLADE_SKIP_TORCH)),,$(TORCH) $(CARGO) test $(LM))

setup-torch: ## Set up libtorch and build the library that runs models of provider torch (CLADE_TORCH=cuda: with CUDA)
	$(TORCH) $(CARGO) build $(LM)

image: ## Make the image of the docker executor from Debian packages; the engine keeps it
	$(CLADE) sandbox image build --from debian

# One part alone: make bench PARTS=selection
bench: ## Measure speed, memory and disk in a release build; docs/performance.md says what the figures mean
	@scripts/setup.sh --tests >/dev/null
	$(CARGO) bench --locked --workspace --bench measure -- $(PARTS)
	$(CARGO) test --release --locked --workspace --test integration sandbox::speed -- --ignored --nocapture --test-threads 1

fmt: ## Format the code
	$(CARGO) fmt --all
	$(CARGO) fmt --all --manifest-path lm/Cargo.toml

fmt-check: ## Check the format
	$(CARGO) fmt --all --check
	$(CARGO) fmt --all --manifest-path lm/Cargo.toml --check

lint: ## Run clippy; warnings are errors
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(if $(filter 1,$(CLADE_SKIP_TORCH)),,$(TORCH) $(CARGO) clippy $(LM) --all-targets -- -D warnings)

docs: ## Build the API documentation, and the book where mdbook is installed
	$(CARGO) doc --locked --workspace --no-deps
	@if command -v mdbook >/dev/null; then mdbook build docs; else echo "mdbook is not installed: the book was not built"; fi

clean: ## Remove the Python environments and the built example tasks (the build folder stays: cargo clean)
	rm -rf .venv .venv-test examples/tasks/breast-cancer examples/tasks/diabetes-progression examples/tasks/handwritten-digits
