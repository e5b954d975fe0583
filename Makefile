# Each target sets itself up in .venv; nothing needs to be installed or activated first.
PYTHON ?= python3
MINUTES ?= 120
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
ALL    := deep,minihack,ray,inspect,sb3,minigrid,atari,crafter,render,docs,dev

.PHONY: install demo test check smoke learning bench figures docs torture clean

install: $(VENV)/.all                  ## everything, into .venv

$(VENV)/.core: pyproject.toml constraints.txt
	@test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	@echo "setting up $(VENV) (core packages)"
	@$(PIP) -e .
	@touch $@

$(VENV)/.all: $(VENV)/.core
	@echo "setting up $(VENV) (all extras)"
	@$(PIP) -e ".[$(ALL)]"
	@touch $@

demo: $(VENV)/.core                    ## SparseTaxi, both agents, with a table and a report at the end
	$(BIN)/protogoal reproduce taxi --out runs/demo

check: $(VENV)/.all                    ## lint and types
	$(BIN)/ruff check .
	$(BIN)/mypy protogoal

test: check                            ## lint, types and the whole test suite
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  { apt-get -qq update && apt-get -qq install -y chromium; } >/dev/null 2>&1; } || \
	  echo "chromium is not installed and cannot be here: the page tests will be skipped"
	$(BIN)/pytest -n 2 --dist loadfile

smoke: $(VENV)/.all                    ## every experiment from end to end, at a size of seconds
	@rm -rf runs/smoke
	@set -e; for name in $$($(BIN)/python -c "from protogoal.experiments import EXPERIMENTS; print(*EXPERIMENTS)"); do \
	  $(BIN)/protogoal reproduce $$name --scale smoke --seeds 1 --out runs/smoke/$$name; done

learning: $(VENV)/.all                 ## two-armed learning tests, about five minutes of one core
	OMP_NUM_THREADS=1 $(BIN)/pytest -m learning -n 2 --dist load

bench: $(VENV)/.all                    ## ratios against slow references, printed as a table
	$(BIN)/protogoal bench

figures: $(VENV)/.core                 ## redraw every figure of results/ from its committed CSV
	$(BIN)/protogoal reproduce figures --out results
	@test ! -d results/keycorridor || $(BIN)/python examples/keycorridor_comparison.py --redraw --out results/keycorridor
	@test ! -d results/peers || $(BIN)/python examples/peer_comparison.py --redraw --out results/peers

torture: $(VENV)/.all                  ## every attack of tests/torture in full, an hour or so; then MINUTES of each engine, memory drawn
	PROTOGOAL_TORTURE=full $(BIN)/pytest tests/torture
	$(BIN)/python tests/torture/soak.py --minutes $(MINUTES) --out runs/torture

docs: $(VENV)/.all                     ## the documentation site, into site/
	$(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) build dist site *.egg-info .pytest_cache .mypy_cache .ruff_cache runs
