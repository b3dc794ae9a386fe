# Every target does its own set-up: a fresh machine with Python >= 3.10 and pip is enough.
PYTHON ?= $(firstword $(foreach name,python3 python3.13 python3.12 python3.11 python3.10 python,\
	$(shell $(name) -c 'import sys; print("$(name)" if sys.version_info >= (3, 10) else "")' 2>/dev/null)) python3)
VENV ?= .venv
TORCH ?= torch==2.13.0
CHROMIUM ?= $(shell command -v chromium || command -v chromium-browser || command -v google-chrome)
NEOVIM ?= $(shell command -v nvim)
BIN = $(VENV)/bin
STAMP = $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help demo test lint test-torch test-browser test-neovim test-pythons test-lowest lock corpus scripts labelled reported suites speed fuzz faults refute rules pictures docs clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(STAMP): pyproject.toml requirements/ci.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo "torchlint needs Python 3.10 or later: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint requirements/ci.txt \
		--editable '.[dev]'
	@$(BIN)/python -m compileall -q torchlint
	@touch $@

demo: $(STAMP) ## Show what torchlint finds in fixtures/demo, and the diff that would fix it
	@echo '$$ torchlint check fixtures/demo'
	@$(BIN)/torchlint check fixtures/demo --exit-zero
	@echo
	@echo '$$ torchlint fix fixtures/demo --unsafe-fixes'
	@$(BIN)/torchlint fix fixtures/demo --unsafe-fixes --exit-zero

test: $(STAMP) lint ## Run everything that needs no torch: tests, types, lint
	$(BIN)/python -m pytest --ignore=tests/torch --ignore=tests/browser --ignore=tests/neovim --quiet -n auto

lint: $(STAMP) ## Check types, style and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

test-torch: $(STAMP) ## Run what needs torch, with the torch that is installed or else $(TORCH)
	@$(BIN)/python -c 'import torch, numpy' 2>/dev/null || \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(TORCH)' numpy
	$(BIN)/python -m pytest tests/torch --quiet -n auto

test-browser: $(STAMP) ## Open the HTML report in headless Chromium (CHROMIUM=path, or the one on PATH)
	@test -n "$(CHROMIUM)" || { echo "NOT RUN: tests/browser needs a Chromium: install one (Debian: apt-get install chromium)" \
		"or name it: make test-browser CHROMIUM=/path/to/chromium" >&2; exit 1; }
	@$(BIN)/python -c 'import playwright' 2>/dev/null || \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint requirements/ci.txt \
			--editable '.[browser]'
	CHROMIUM="$(CHROMIUM)" $(BIN)/python -m pytest tests/browser --quiet

test-neovim: $(STAMP) ## Let headless Neovim talk to the language server (NEOVIM=path, or the one on PATH)
	@test -n "$(NEOVIM)" || { echo "NOT RUN: tests/neovim needs a Neovim: install one (Debian: apt-get install neovim)" \
		"or name it: make test-neovim NEOVIM=/path/to/nvim" >&2; exit 1; }
	NEOVIM="$(NEOVIM)" $(BIN)/python -m pytest tests/neovim --quiet

test-pythons: $(STAMP) ## Run the tests with each Python from 3.10 to 3.14 that is here, and say which is not
	$(BIN)/python -m tests.versions.run pythons $(ARGS)

test-lowest: $(STAMP) ## Run the tests with the oldest versions of the dependencies that pyproject.toml allows
	$(BIN)/python -m tests.versions.run lowest $(ARGS)

lock: $(STAMP) ## Write the newest versions of what the tests need to requirements/ci.txt
	@$(BIN)/python -c 'import uv' 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@sed -n '/^#/p' requirements/ci.txt > requirements/header.txt
	$(BIN)/uv pip compile pyproject.toml --extra dev --extra docs --extra browser --universal --python-version 3.10 \
		--upgrade --quiet --no-header --no-annotate --no-emit-index-url --output-file requirements/versions.txt
	@cat requirements/header.txt requirements/versions.txt > requirements/ci.txt
	@rm requirements/header.txt requirements/versions.txt

corpus: $(STAMP) ## Check and fix eight pinned packages from PyPI, and judge what became of each file
	$(BIN)/python -m tests.corpus.run $(ARGS)

scripts: $(STAMP) ## Run published training scripts before and after their fixes: make scripts CHECKOUTS=folder of clones
	@$(BIN)/python -c 'import torch, numpy' 2>/dev/null || \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(TORCH)' numpy
	@$(BIN)/python -c 'import gymnasium, tqdm, tyro' 2>/dev/null || \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check gymnasium tqdm tyro
	$(BIN)/python -m tests.corpus.scripts $(if $(CHECKOUTS),--checkouts $(CHECKOUTS)) $(ARGS)

labelled: $(STAMP) ## Precision and recall on labelled public code: make labelled CHECKOUTS=folder of clones
	$(BIN)/python -m tests.corpus.labelled $(if $(CHECKOUTS),--checkouts $(CHECKOUTS)) $(ARGS)

reported: $(STAMP) ## How many bugs that were reported in public projects are found: make reported CHECKOUTS=folder of clones
	$(BIN)/python -m tests.corpus.reported $(if $(CHECKOUTS),--checkouts $(CHECKOUTS)) $(ARGS)

suites: $(STAMP) ## Test suites of public projects before and after the fixes: make suites CHECKOUTS=folder of clones
	$(BIN)/python -m tests.corpus.suites $(if $(CHECKOUTS),--checkouts $(CHECKOUTS)) $(ARGS)

speed: $(STAMP) ## Compare speed with TorchFix and Ruff
	$(BIN)/python -m tests.speed.compare $(ARGS)

fuzz: $(STAMP) ## Check and fix 10,000 fixtures that were changed at random
	$(BIN)/python -m tests.fuzz.run $(ARGS)

faults: $(STAMP) ## Make every fault, a hundred kills among them, and print what was survived
	$(BIN)/python -m tests.faults.run $(ARGS)

refute: $(STAMP) ## Look for programs that a safe fix changes: 1,000 for each rule (needs torch)
	@$(BIN)/python -c 'import torch, numpy' 2>/dev/null || \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(TORCH)' numpy
	$(BIN)/python -m tests.refute.run $(ARGS)

rules: $(STAMP) ## Regenerate the pages under rules/
	$(BIN)/python -m torchlint.dev pages

pictures: $(STAMP) ## Export the pictures of the README from real runs
	$(BIN)/python docs/pictures/make.py

docs: $(STAMP) ## Build the site from the README, the guides and the rules' pages: site/index.html
	@$(BIN)/python -c 'import material' 2>/dev/null || \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint requirements/ci.txt \
			--editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "built site/index.html; to read and edit: $(BIN)/mkdocs serve"

clean: ## Remove what make made
	rm -rf $(VENV) build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis
