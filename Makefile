# Every target makes its own .venv; nothing needs to be installed by hand but Python, a C++ compiler and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Directories are listed so that a file added to one is seen: an editable install knows the files it was made with.
SOURCES := $(shell find cpp -type f) $(shell find src -type d -not -name __pycache__) CMakeLists.txt pyproject.toml src/discreet/_version.py

# Spark takes the Java of JAVA_HOME; without one, the java on the PATH.
ifndef JAVA_HOME
JAVA_HOME := $(patsubst %/bin/java,%,$(realpath $(shell command -v java)))
endif
export JAVA_HOME

.PHONY: demo serve test spark faults browser service lint types audit bench stubs clean mutants papers

demo: $(VENV)/.built
	$(BIN)/python examples/demo.py

# The live service with a made-up site that sends it traffic, and the page of a survey. Ctrl-C ends it.
serve: $(VENV)/.service
	$(BIN)/python examples/site/serve.py

test: $(VENV)/.dev
	$(BIN)/python -m pytest -q -n auto --dist worksteal --ignore=tests/spark --ignore=tests/faults --ignore=tests/browser --ignore=tests/service

# The Spark tests share one cluster, so one process runs them; without Java 17 they are skipped, or fail where CI is set.
spark: $(VENV)/.dev
	$(BIN)/python -m pytest -q tests/spark

# Kills, races and hostile input, as often as docs/reliability.md states.
faults: $(VENV)/.dev
	DISCREET_FAULTS=full $(BIN)/python -m pytest -q -n auto --dist worksteal tests/faults

# The client of clients/js in Node, against Python. Where there is none and it may be installed, it is.
browser: $(VENV)/.dev
	command -v node >/dev/null || { apt-get -q update && apt-get -qy install nodejs; }
	$(BIN)/python -m pytest -q tests/browser

# The live service: its interface, its faults, and its page in Chromium, which is installed where there is none and it may
# be; DISCREET_FAULTS=full kills it as often as docs/service.md states.
service: $(VENV)/.dev
	command -v chromium >/dev/null || { apt-get -q update && apt-get -qy install chromium; }
	$(BIN)/python -m pytest -q -n 2 --dist worksteal tests/service

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/.dev
	$(BIN)/mypy

# Small wrong changes to a copy of the code, and whether the tests notice them: half an hour, for now and then.
mutants: $(VENV)/.dev
	$(BIN)/python tests/mutants/run.py

audit: $(VENV)/.built
	$(BIN)/discreet audit --quick

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/summaries.py
	$(BIN)/python benchmarks/noise.py
	$(BIN)/python benchmarks/files.py
	$(BIN)/python benchmarks/accuracy.py

# Every figure of the five papers, into out/papers: minutes, or with FULL=1 the papers' sizes. docs/papers/ has the words.
papers: $(VENV)/.built
	$(BIN)/python papers/run.py $(if $(FULL),--full)

stubs: $(VENV)/.dev
	$(BIN)/python -m nanobind.stubgen -m discreet._native -o src/discreet/_native.pyi

$(VENV)/.created:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet "scikit-build-core>=0.11" "nanobind>=2.7" cmake ninja
	touch $@

$(VENV)/.built: $(VENV)/.created $(SOURCES)
	$(BIN)/pip install --quiet --no-build-isolation -e ".[plot]"
	touch $@

$(VENV)/.service: $(VENV)/.built
	$(BIN)/pip install --quiet --no-build-isolation -e ".[service]"
	touch $@

# PySpark comes as source, which the flag for our own package makes pip build with what is here.
$(VENV)/.dev: $(VENV)/.built
	$(BIN)/pip install --quiet "setuptools>=70.1" wheel
	$(BIN)/pip install --quiet --no-build-isolation -e ".[dev]"
	touch $@

$(VENV)/.bench: $(VENV)/.dev
	$(BIN)/pip install --quiet --no-build-isolation -e ".[dev,bench]"
	touch $@

clean:
	rm -rf $(VENV) build dist out
