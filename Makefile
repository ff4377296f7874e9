# Two commands do everything: `make book` and `make test`. Both set up .venv first; `make help` lists the rest.
PYTHON  ?= python3.11
PROFILE ?= quick
CHAPTER ?=
PARAMS  ?=
ARGS    ?=

VENV  := .venv
BIN   := $(VENV)/bin
READY := $(VENV)/.ready

# One thread a process: the same numbers on every machine, and no fight for the cores.
export OMP_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.PHONY: help setup book test lint lock peers clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-6s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@printf '\nmake book PROFILE=smoke|quick|full            sizes: seconds, minutes (the default), the papers'"'"' own\n'
	@printf 'make book CHAPTER=name PARAMS="a=1 b=x,y"     one chapter with parameters of its own (fairfront describe name)\n'
	@printf 'make test ARGS="tests/metrics -x"             part of the tests\n'
	@printf 'make setup PYTHON=/path/to/python3.11         another interpreter\n'

setup: $(READY)  ## a ready .venv: the pinned packages and this one; again only when the lock or pyproject.toml changed

# The stamp comes last, so an interrupted installation is taken up again by the next call.
$(READY): requirements.lock pyproject.toml
	@command -v "$(PYTHON)" >/dev/null || { echo "make setup: $(PYTHON) is not here: install Python 3.11, or name one by make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; v = sys.version_info; sys.exit(v[:2] != (3, 11) and "make setup: requirements.lock is made for Python 3.11, and $(PYTHON) is %d.%d: name another by make PYTHON=/path/to/python3.11" % v[:2])'
	@echo "make setup: installing $$(grep -c == requirements.lock) pinned packages into $(VENV) (minutes)"
	"$(PYTHON)" -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

book: setup  ## execute the chapters and build _build/html
	$(BIN)/fairfront book --profile "$(PROFILE)" $(if $(CHAPTER),--chapter $(CHAPTER)) $(foreach p,$(PARAMS),-p '$(p)')

test: setup  ## every test, of the package, the notebooks, the command line and the built book
	$(BIN)/python -m pytest $(ARGS)

lint: setup  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The pins of a fresh environment that holds what pyproject.toml asks for, without the project, without the "+cpu" of a
# build and without the GPU libraries that some builds of torch bring: those follow from the torch that is installed.
lock:  ## requirements.lock anew, from what pyproject.toml asks for
	@set -e; place=$$(mktemp -d); trap 'rm -rf "$$place"' EXIT; \
	"$(PYTHON)" -m venv "$$place/venv"; \
	"$$place/venv/bin/python" -m pip install --quiet --disable-pip-version-check -e '.[book,test]'; \
	"$$place/venv/bin/python" -m pip freeze --exclude-editable > "$$place/all"; \
	grep '^#' requirements.lock > "$$place/lock"; \
	grep -viE '^(nvidia-|cuda-|triton|#)' "$$place/all" | sed -E 's/[+][a-z0-9.]+$$//' >> "$$place/lock"; \
	cp "$$place/lock" requirements.lock
	@echo "make lock: wrote requirements.lock; run make test, then commit it"

# One environment for each benchmarks/peers-NAME.txt, apart from .venv: the peers need other versions of what both need.
peers: $(patsubst benchmarks/peers-%.txt,.peers/%/.ready,$(wildcard benchmarks/peers-*.txt))  ## environments of the packages that the benchmarks compare with

.peers/%/.ready: benchmarks/peers-%.txt benchmarks/constraints.txt
	"$(PYTHON)" -m venv --clear $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -c benchmarks/constraints.txt -r $<
	@touch $@

clean:  ## remove what is built, but keep the store of results
	@for f in _build/* _build/.[a-z]*; do case "$$f" in _build/store) ;; *) rm -rf "$$f" ;; esac; done
	@rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
