# make demo         a five-transistor OTA netlist becomes a verified sky130A layout in build/demo/
# make test-quick   the quick tests
# make test         the tests of the source; make check runs those of copies, packages and other programs too
# make help         everything else

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
DEMO   ?= build/demo
DIST   ?= dist
EXPORTED ?= --all
SUITE  ?= build/suite
# Folders of netlists whose scoreboard is committed: those of this repository.
DEVELOPMENT_CIRCUITS := tests/bench/circuits skills/netlist-to-gds/assets
CIRCUITS ?= $(DEVELOPMENT_CIRCUITS)
SUITE_OPTIONS := $(if $(TECHNOLOGIES),--technologies $(TECHNOLOGIES)) $(if $(JOBS),--jobs $(JOBS)) $(if $(TIME_LIMIT),--time-limit $(TIME_LIMIT)) $(if $(SCHEDULER),--scheduler $(SCHEDULER)) $(if $(RESUME),--resume)
# A run does not begin where an earlier one has left its journal, unless it continues it (RESUME=1).
RUN_SUITE = @$(if $(RESUME),,rm -f $(SUITE)/journal.jsonl;) $(BIN)/skillpack suite
# What a skill's script may need beside the package's own requirements; LOCK_OPTIONS=--upgrade takes the newest versions.
LOCKED_EXTRAS := functions models explore http
SOURCES := loader scripts skills tests
LVS_SCRIPTS := $(wildcard skills/lvs-check/scripts/*.py)
# pip compiles what it installs, but not what it only links to; without this every start pays for it where
# PYTHONDONTWRITEBYTECODE is set.
COMPILE := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m compileall -q loader scripts

# Each line of dots ends with the percentage that is done; the last lines list what was skipped and why.
# Three workers for two cores, because some tests wait for a process or a clock; those of `make test` and `make
# test-quick` hardly do, and a third worker costs its start. Neighbouring tests run in one worker, so that they share
# what they prepare. Compiled test modules are kept even where PYTHONDONTWRITEBYTECODE is set: compiling
# them costs each worker more than everything else before its first test.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 3 --dist worksteal -rs

.DEFAULT_GOAL := help
.PHONY: help demo test test-quick test-versions test-cases check fix bench recognition suite suite-check board lint types docs evals coverage manifests pictures host-tools locks dist try-dist clean

help: ## Show the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "Python 3.10 or newer is needed (PYTHON=...)"; exit 3; }
	@echo "creating $(VENV)"
	@$(PYTHON) -m venv $(VENV) || { echo "python3 -m venv failed; on Debian: apt-get install python3-venv"; exit 3; }

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	@echo "installing the package into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@$(COMPILE)
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	@echo "installing the package and its development tools into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,fast]'
	@$(COMPILE)
	@touch $@ $(VENV)/.installed

demo: $(VENV)/.installed ## Turn a 5T OTA netlist into a DRC- and LVS-clean sky130A layout
	@mkdir -p $(DEMO)
	@$(BIN)/python skills/netlist-to-gds/scripts/build_layout.py \
	  --netlist-path skills/netlist-to-gds/assets/ota_5t.spice \
	  --technology sky130A --workspace $(DEMO) > $(DEMO)/envelope.json

test: $(VENV)/.installed-dev ## Run the tests (about 5 minutes on two cores): all but those of copies, packages and other programs
	@$(PYTEST) -n 2 --inner

test-quick: $(VENV)/.installed-dev ## Run the quick tests (1 to 2 minutes): no servers, no foreign programs, few whole layouts
	@$(PYTEST) -n 2 --quick

test-versions: $(VENV)/.installed-dev ## Run one case of every second quick test and one test of each tool, for other versions of Python and of libraries
	@$(CASES) $(PYTEST) -n 2 --versions

lint: $(VENV)/.installed-dev
	@$(BIN)/ruff check $(SOURCES)
	@$(BIN)/ruff format --check $(SOURCES)

# One run for the packages, and one for the scripts but those of lvs-check: both have a run_check.py.
types: $(VENV)/.installed-dev
	@$(BIN)/mypy
	@$(BIN)/mypy --no-error-summary $(filter-out $(LVS_SCRIPTS),$(wildcard skills/*/scripts/*.py))
	@$(BIN)/mypy --no-error-summary $(LVS_SCRIPTS)

docs: $(VENV)/.installed-dev ## Build the documentation site in build/site/ (half a minute; it lays out one OTA)
	@echo "building the site from references/, the skills, the commands and a notebook that lays out one OTA (half a minute)"
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "open build/site/index.html in a browser; no server is needed"

# All cases of the tests that take samples otherwise: 500 layouts compared, each three values together. `make check` takes
# an eighth of what these are more, another one each day, and prints how to repeat it; for a release it takes all.
ALL_CASES := DRC_LAYOUTS=500
TURN ?= $(shell echo $$(($$(date +%s) / 86400)))
CASES := $(if $(RELEASE_TAG),$(ALL_CASES),THOROUGH_TURN=$(TURN))

coverage: $(VENV)/.installed-dev ## Run all tests with all their cases (15 to 20 minutes) and print how much of each room they execute
	@rm -rf build/coverage
	@$(ALL_CASES) $(PYTEST) --cov --cov-report=
	@$(BIN)/python tests/coverage_table.py

test-cases: $(VENV)/.installed-dev
	@echo "cases: $(CASES)"
	@$(CASES) $(PYTEST)

check: lint types test-cases ## What CI runs (10 to 12 minutes): lint, types and all tests; TURN=N repeats the cases of day N

fix: $(VENV)/.installed-dev ## Apply the formatter and the safe lint fixes
	@$(BIN)/ruff check --fix $(SOURCES) || true
	@$(BIN)/ruff format $(SOURCES)

recognition: $(VENV)/.installed-dev ## Print how well recognition agrees with an engineer's labels (LABELS=DIR, default the committed ones)
	@$(BIN)/python tests/recognition_score.py $(LABELS)

bench: $(VENV)/.installed-dev ## Print start-up and flow costs as ratios measured in one run
	@$(BIN)/python tests/bench/run.py

suite: $(VENV)/.installed-dev ## Lay out a folder of netlists (CIRCUITS=DIR TECHNOLOGIES=... JOBS=...) and print the scoreboard
	$(RUN_SUITE) $(CIRCUITS) $(SUITE_OPTIONS) --out $(SUITE)

suite-check: $(VENV)/.installed-dev ## Report what got worse by more than 3 % against the committed scoreboard
	$(RUN_SUITE) $(CIRCUITS) $(SUITE_OPTIONS) --out $(SUITE) --against tests/bench/board/board.json

board: $(VENV)/.installed-dev ## Write the committed scoreboard and the pictures of the gallery anew, in tests/bench/board/
	$(RUN_SUITE) $(DEVELOPMENT_CIRCUITS) $(SUITE_OPTIONS) --out $(SUITE)
	@mkdir -p tests/bench/board && cp $(SUITE)/board.json $(SUITE)/board.html tests/bench/board/
	@$(BIN)/python tests/board_pictures.py $(SUITE) tests/bench/board

# Without this machine's settings of uv, so that the file names no other index than pypi.org.
locks: $(VENV)/.installed-dev ## Update skills/scripts.lock, from which exported scripts get their locks (needs uv)
	@mkdir -p build/locks
	@$(BIN)/python -m skillpack.copies.script_header $(LOCKED_EXTRAS) > build/locks/scripts.py
	@cp skills/scripts.lock build/locks/scripts.py.lock 2>/dev/null || true
	@env -i PATH="$$PATH" HOME="$$HOME" HTTPS_PROXY="$$HTTPS_PROXY" SSL_CERT_FILE="$$SSL_CERT_FILE" UV_NO_CONFIG=1 \
	  uv lock --script build/locks/scripts.py --default-index https://pypi.org/simple $(LOCK_OPTIONS)
	@mv build/locks/scripts.py.lock skills/scripts.lock

evals: $(VENV)/.installed-dev ## Measure how often the words of users find the right skill, by search and by a configured model
	@$(BIN)/python tests/evals/skill_evals.py --out build/evals.json

manifests: $(VENV)/.installed-dev ## Write the manifests of plugins and extensions, and the JSON Schema of netlists that a skill shows
	@$(BIN)/python tests/manifests.py

pictures: $(VENV)/.installed-dev ## Draw the pictures in the skills' assets by the skills' own tools
	@$(BIN)/python tests/skill_pictures.py

host-tools: ## Install the npm programs that some host tests use: MCP Inspector, Claude Code, openskills, skills, and Node
	@npm install --prefix build/npm --no-audit --no-fund --silent node@22.23.3 @modelcontextprotocol/inspector@2.12.0 \
	  @anthropic-ai/claude-code@2.1.197 openskills@1.5.0 skills@1.7.4

dist: $(VENV)/.installed-dev ## Build the files of a release in dist/: wheel, sources, skills, checksums, notes
	@rm -rf $(DIST) && mkdir -p $(DIST)
	@$(BIN)/python -m hatchling build -d $(abspath $(DIST))
	@$(BIN)/skillpack --skills-dir @pack export $(EXPORTED) --archive --to $(DIST) > /dev/null
	@cd $(DIST) && sha256sum -- * > SHA256SUMS
	@version=$$($(BIN)/python -m hatchling version) && awk -v heading="## $$version " \
	  'index($$0, "## ") == 1 { inside = index($$0, heading) == 1; next } inside' CHANGELOG.md > $(DIST)/NOTES.md

# Not a fault: skills with the same asset (W002), their scripts, which are no modules (W004), five packages (W009).
try-dist: $(VENV)/.installed-dev ## Check the files of dist/, and run the wheel in new environments as users would
	@cd $(DIST) && sha256sum --check --quiet SHA256SUMS
	@$(BIN)/uv tool run twine==7.0.0 check --strict $(DIST)/*.whl $(DIST)/*.tar.gz
	@$(BIN)/uv tool run check-wheel-contents==0.6.3 --ignore W002,W004,W009 $(DIST)/*.whl
	@rm -rf build/try-dist && $(PYTHON) -m venv build/try-dist
	@build/try-dist/bin/python -m pip install --quiet --disable-pip-version-check $(DIST)/*.whl
	@cd build/try-dist && bin/skillpack doctor && bin/skillpack read netlist-to-gds assets/ota_5t.spice > ota.spice && \
	  bin/skillpack run flow.build_layout --params '{"netlist_path": "ota.spice", "technology": "sky130A"}' > ota.json
	@$(BIN)/uv tool run --from $(DIST)/*.whl skillpack list > build/try-dist/uvx.txt
	@$(BIN)/uv tool run pipx==1.18.4 run --spec $(DIST)/*.whl skillpack list > build/try-dist/pipx.txt

clean: ## Remove what make created
	rm -rf $(VENV) build dist .claude-plugin/pack/.venv .claude-plugin/pack/uv.lock
