# SPDX-License-Identifier: MIT
# Front door: cmake/setup.sh installs what is missing, the presets of CMakePresets.json do the work.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.PHONY: help first demo check coverage test test-all test-gpu test-tools test-ftorch test-hosts docs wheel stress bench clean

ifeq ($(origin FC),default)
FC := gfortran
endif
export FC

tag := $(patsubst %,-%,$(filter-out gfortran,$(notdir $(FC))))
environment := . build/environment
# $(call configure,preset[,option...]) in build/preset, or build/preset-compiler
configure = cmake --preset $(1) -B build/$(1)$(tag) -DPython_EXECUTABLE="$$FTN_PYTORCH_PYTHON" $(2)
# $(call ctest,preset[,option...[,-slow]]) with a log of its own, build/preset/ctest.log or ctest-slow.log
ctest = ctest --test-dir build/$(1)$(tag) --output-on-failure --no-tests=error $(2) | tee build/$(1)$(tag)/ctest$(3).log
# $(call pytest,option...[,-slow]) of all that pytest runs, likewise
pytest = FTN_PYTORCH_BUILD_DIR="$$PWD/build/dev$(tag)" "$$FTN_PYTORCH_PYTHON" -m pytest -n $$CTEST_PARALLEL_LEVEL \
  --dist worksteal $(1) tests | tee build/pytest$(2).log

# $(call stage,name): what follows is that stage of a run, until the next one; build/stages has when each began
stage = @printf '%s %s\n' "$$(date +%s)" '$(1)' >>build/stages
# What the stages took so far
minutes = { cat build/stages; date +%s; } | awk 'NR == 1 { first = $$1 } \
  NR > 1 { printf "%6.1f  %s\n", ($$1 - begin) / 60, name } { begin = $$1; sub(/[0-9]+ ?/, ""); name = $$0 } \
  END { printf "%6.1f  all\n", (begin - first) / 60 }'
# $(call untested,log of pytest...,log of ctest...): the reasons of what was skipped, in one line
untested = { sed -nE "s/^SKIPPED \[[0-9]+\] [^ ]+ (could not import '([^']+)'.*|(.*))/\2\3/p" $(1); \
  sed -nE 's/^[ \t]*[0-9]+ - (\S+) \(Skipped\).*/\1/p' $(2); } | sort -u | paste -sd ';' | sed 's/;/; /g; s/^/not tested here: /'

help:
	@echo 'make first  install what is missing, build, and run the first program of README.md: three minutes'
	@echo 'make demo   install what is missing, build, and train a closure inside a running Fortran model: four minutes'
	@echo 'make docs   build the documentation site, build/docs/site/index.html: a minute'
	@echo 'make check  install what is missing, and look at the sources: a minute'
	@echo 'make coverage  which lines of the Python package its own tests reach'
	@echo 'make test   make check, build, and run the tests: 27 minutes on two cores'
	@echo 'make test-all  make test, and what takes longer: sanitizers, installed copies, long examples: forty minutes'
	@echo 'make test-gpu  build and run the tests of arrays on a GPU; they are skipped where there is none'
	@echo 'make test-tools  tests with a browser, of tools in packages of their own: ten minutes'
	@echo 'make test-ftorch  build and run the programs of FTorch, from FTN_PYTORCH_FTORCH_SOURCE: ten minutes'
	@echo 'make test-hosts  train scripts in ICON ComIn from FTN_PYTORCH_COMIN_SOURCE, in DALES from FTN_PYTORCH_DALES_SOURCE,'
	@echo '                 and in NUOPC of ESMFMKFILE: five minutes each'
	@echo 'make wheel  make wheels, for this Python and others that are found, and test them: forty minutes'
	@echo 'make stress run for ten minutes what make test runs for seconds: fuzzing, threads, memory, sanitizers'
	@echo 'make bench  measure what a call costs, and all paths to a network side by side'
	@echo 'make clean  remove build/ and out/; .venv stays'
	@echo 'Installing takes some minutes more, the first time.'
	@echo
	@echo 'FC=flang-new-19            another Fortran compiler'
	@echo 'FTN_PYTORCH_OFFLOAD_FLAGS=-fopenacc  what that compiler needs for OpenACC on a GPU: for test-gpu'
	@echo 'FTN_PYTORCH_PYTHON=python  an environment of your own in place of .venv; so does an active VIRTUAL_ENV'
	@echo 'FTN_PYTORCH_TORCH=torch==2.11.0  another torch in .venv'

first:
	@cmake/setup.sh demo
	@echo '== Build'
	@$(environment); $(call configure,release)
	@$(environment); cmake --build build/release$(tag) --target first
	@echo '== examples/first/first.f90 trains the network of first.py'
	@$(environment); cd examples/first && ../../build/release$(tag)/examples/first/first

demo:
	@cmake/setup.sh demo
	@echo '== Build'
	@$(environment); $(call configure,release)
	@$(environment); cmake --build build/release$(tag) --target online_closure
	@echo '== A network learns the small scales of a running model (about two minutes)'
	@$(environment); build/release$(tag)/examples/online_closure/online_closure \
	  examples/online_closure/closure.py out/online_closure

check:
	@mkdir -p build; rm -f build/stages
	$(call stage,setup)
	@cmake/setup.sh test
	$(call stage,checks)
	@$(environment); $(call configure,dev,-DFTN_PYTORCH_SLOW_TESTS=OFF)
	@echo '== Static checks'
	@$(environment); FTN_PYTORCH_BUILD_DIR='build/dev$(tag)' cmake/check.sh

# Of the Python package, by its own tests; setup.cfg has the settings.
coverage:
	@cmake/setup.sh test
	@mkdir -p build/coverage; rm -f build/coverage/data*
	@$(environment); FTN_PYTORCH_BUILD_DIR="$$PWD/build/dev$(tag)" "$$FTN_PYTORCH_PYTHON" -m coverage run \
	  -m pytest -n $$CTEST_PARALLEL_LEVEL -m 'not slow' tests/python
	@$(environment); "$$FTN_PYTORCH_PYTHON" -m coverage combine -q && "$$FTN_PYTORCH_PYTHON" -m coverage report

# All that is not marked slow. The compiled tests include Fortran tests with the run-time checks and floating-point traps
# of the preset debug.
test: check
	@echo '== Build with optimisation, and the compiled tests'
	$(call stage,build)
	@$(environment); cmake --build build/dev$(tag)
	$(call stage,ctest)
	@$(environment); $(call ctest,dev,-LE '^slow$$')
	@echo '== Python, documentation and layout'
	$(call stage,pytest)
	@$(environment); $(call pytest,-m 'not slow')
	@echo '== Minutes'
	@$(minutes)
	@$(call untested,build/pytest.log,build/dev$(tag)/ctest.log)
	@echo '== Closing lines'
	@grep -h 'tests passed' build/dev$(tag)/ctest.log
	@tail -n 1 build/pytest.log

# On top of that, all that is marked slow, and sanitizers.
space := $(subst ,, )
sanitized := test_core test_embed test_plugin test_recording test_direct test_direct_training test_saved_recording test_tensor_values
test-all: test
	@echo '== Build of what only slow tests need, and the slow compiled tests'
	$(call stage,slow build)
	@$(environment); $(call configure,dev,-DFTN_PYTORCH_SLOW_TESTS=ON)
	@$(environment); cmake --build build/dev$(tag)
	$(call stage,slow ctest)
	@$(environment); $(call ctest,dev,-L '^slow$$',-slow)
ifeq ($(tag),)
	@echo '== Sanitizers: the library with and without Python, plug-in and recordings'
	$(call stage,sanitizers)
	@$(environment); $(call configure,asan)
	@$(environment); cmake --build build/asan --target $(sanitized) fuzz_abi fuzz_archive
	@$(environment); $(call ctest,asan,-R '^($(subst $(space),|,$(sanitized))|stress_fuzz_(abi|archive))$$')
	@echo '== Sanitizer for threads: the parts without Python'
	@$(environment); $(call configure,tsan)
	@$(environment); cmake --build build/tsan --target races
	@$(environment); $(call ctest,tsan,-R '^stress_races$$')
endif
	@echo '== Slow tests of Python, installation and documentation'
	$(call stage,slow pytest)
	@$(environment); $(call pytest,-m slow,-slow)
	@echo '== Minutes'
	@$(minutes)
	@$(call untested,build/pytest.log build/pytest-slow.log,build/dev$(tag)/ctest.log build/dev$(tag)/ctest-slow.log)
	@echo '== Closing lines'
	@grep -h 'tests passed' $(patsubst %,build/%.log,dev$(tag)/ctest dev$(tag)/ctest-slow $(if $(tag),,asan/ctest tsan/ctest))
	@tail -qn 1 build/pytest.log build/pytest-slow.log

# Needs nothing but a Python, which makes environments of its own for it.
docs:
	@$(if $(wildcard build/environment),$(environment);) docs/site/build.sh

# Each program says in a sentence why it is skipped.
test-gpu: export FTN_PYTORCH_OFFLOAD_FLAGS ?= -fopenacc
test-gpu:
	@cmake/setup.sh test
	@$(environment); $(call configure,dev,-DFTN_PYTORCH_OFFLOAD_FLAGS="$$FTN_PYTORCH_OFFLOAD_FLAGS")
	@$(environment); cmake --build build/dev$(tag) --target gpu_tests
	@$(environment); $(call ctest,dev,-L '^gpu$$' --verbose -j 1)

# Packages that are too large for `make test` have an environment of their own, on top of that of the tests.
test-tools: export FTN_PYTORCH_TOOLS := $(CURDIR)/build/tools/venv
test-tools:
	@cmake/setup.sh test
	@$(environment); $(call configure,dev)
	@$(environment); cmake --build build/dev$(tag)
	@$(environment); tests/tools/setup.sh "$$FTN_PYTORCH_TOOLS"
	@$(environment); FTN_PYTORCH_BUILD_DIR="$$PWD/build/dev$(tag)" "$$FTN_PYTORCH_PYTHON" -m pytest -v tests/tools

# FTorch's own programs against an installed copy. A checkout of pFUnit, submodules included, or a prefix with pFUnit, adds
# its suite.
test-ftorch:
	@test -n "$${FTN_PYTORCH_FTORCH_SOURCE:-}" || { \
	  echo 'FTN_PYTORCH_FTORCH_SOURCE must name a checkout of https://github.com/Cambridge-ICCS/FTorch,' \
	    'and FTN_PYTORCH_PFUNIT may name one of https://github.com/Goddard-Fortran-Ecosystem/pFUnit' >&2; exit 2; }
	@cmake/setup.sh test
	@$(environment); cmake --preset release -B build/ftorch$(tag) -DPython_EXECUTABLE="$$FTN_PYTORCH_PYTHON" \
	  -DFTN_PYTORCH_FTORCH=ON -DFTN_PYTORCH_BUILD_EXAMPLES=OFF -DFTN_PYTORCH_BUILD_BENCHMARKS=OFF
	@$(environment); cmake --build build/ftorch$(tag)
	@$(environment); cmake --install build/ftorch$(tag) --prefix build/ftorch$(tag)/prefix >/dev/null
	@$(environment); "$$FTN_PYTORCH_PYTHON" tests/ftorch/run.py --ftorch "$$FTN_PYTORCH_FTORCH_SOURCE" \
	  --package build/ftorch$(tag)/prefix/share/ftn_pytorch/ftorch --work build/ftorch$(tag)/programs \
	  $${FTN_PYTORCH_PFUNIT:+--pfunit "$$FTN_PYTORCH_PFUNIT"}

# What programs plug into that are larger than this project: the folders of hosts/, built as users build them.
hosts := build/hosts$(tag)
test-hosts: export FTN_PYTORCH_HOSTS_BUILD := $(CURDIR)/$(hosts)
test-hosts:
	@test -n "$${FTN_PYTORCH_COMIN_SOURCE:-}$${FTN_PYTORCH_DALES_SOURCE:-}$${ESMFMKFILE:-}" || { \
	  echo 'FTN_PYTORCH_COMIN_SOURCE must name checkouts of ComIn, such as externals/comin of ICON, with : between them,' >&2; \
	  echo 'or FTN_PYTORCH_DALES_SOURCE a checkout of DALES 4.4, or ESMFMKFILE the esmf.mk of an ESMF. The others are skipped' >&2; \
	  exit 2; }
	@cmake/setup.sh hosts
	@$(environment); cmake --preset release -B $(hosts)/library -DPython_EXECUTABLE="$$FTN_PYTORCH_PYTHON" \
	  -DFTN_PYTORCH_FTORCH=ON -DFTN_PYTORCH_BUILD_EXAMPLES=OFF -DFTN_PYTORCH_BUILD_BENCHMARKS=OFF \
	  -DFTN_PYTORCH_BUILD_TESTS=OFF
	@$(environment); cmake --build $(hosts)/library
	@$(environment); cmake --install $(hosts)/library --prefix $(hosts)/prefix >/dev/null
	@$(environment); "$$FTN_PYTORCH_PYTHON" -m pytest -v -rs tests/hosts

# The other versions of Python are optional: a wheel is made and tested for each one that is here. Each has libraries for
# the torches of the folder, which are fetched, half a gigabyte each: those of cmake/wheel/torches.txt unless some are named.
wheel: export FTN_PYTORCH_WHEELS ?= $(CURDIR)/dist
wheel: export FTN_PYTORCH_TORCHES ?= $(CURDIR)/build/torches
wheel: pythons ?= 3.10 3.12 3.13
wheel: torches ?=
wheel:
	@cmake/setup.sh test
	@$(environment); "$$FTN_PYTORCH_PYTHON" cmake/wheel/torches.py "$$FTN_PYTORCH_TORCHES" $(torches)
	@$(environment); cmake/wheel/build.sh "$$FTN_PYTORCH_WHEELS" "$$FTN_PYTORCH_PYTHON" $(pythons)
	@echo '== Tests'
	@$(environment); "$$FTN_PYTORCH_PYTHON" -m pytest -v tests/install/test_wheel.py tests/install/test_wheel_torch.py \
	  tests/python/test_ftr_alone.py

# What make test runs is the same each time, for a find in it says nothing about a change.
stress: export FPT_FUZZ_SEED ?= $(shell date +%s)
stress: export FPT_STRESS_SEED ?= $(shell date +%s)
stress: export FTN_PYTORCH_TEST_SEED ?= $(shell date +%s)
# The first five say how much: each input, call, example and kill is one more chance to fail.
stress: export FPT_FUZZ_INPUTS ?= 120000
stress: export FPT_GROWTH_CALLS ?= 1000000
stress: export FPT_STRESS_EXAMPLES ?= 400
stress: export FTN_PYTORCH_TEST_KILLS ?= 400
stress: export FTN_PYTORCH_TEST_ATTACK ?= 1000
stress: export FPT_THREADS_SECONDS ?= 12
stress: export FPT_THREADS_COMPILE = 1
stress: export FPT_RACES_ROUNDS ?= 50000
stress: export FPT_MUTANTS_SEED ?= 1
stress:
	@cmake/setup.sh test
	@$(environment); $(call configure,dev)
	@$(environment); cmake --build build/dev$(tag) --target fuzz_abi fuzz_archive growth races threads driver driver_library test_core
	@$(environment); $(call configure,asan)
	@$(environment); cmake --build build/asan$(tag) --target fuzz_abi fuzz_archive
	@$(environment); $(call configure,tsan)
	@$(environment); cmake --build build/tsan$(tag) --target races
	@echo '== Fuzzing, growth, threads'
	@$(environment); $(call ctest,dev,-L stress --verbose)
	@echo '== The same input, looked at by sanitizers'
	@$(environment); FPT_FUZZ_INPUTS=$$((FPT_FUZZ_INPUTS / 15)) $(call ctest,asan,-R '^stress_fuzz_(abi|archive)$$')
	@$(environment); FPT_RACES_ROUNDS=$$((FPT_RACES_ROUNDS / 10)) $(call ctest,tsan,-R '^stress_races$$')
	@echo '== Examples of hypothesis'
	@$(environment); FTN_PYTORCH_BUILD_DIR="$$PWD/build/dev$(tag)" "$$FTN_PYTORCH_PYTHON" -m pytest tests/stress
	@echo '== Writers of checkpoints, killed at any moment'
	@$(environment); "$$FTN_PYTORCH_PYTHON" -m pytest -s tests/python/test_checkpoint_restart.py
	@echo '== Scripts whose state changes late'
	@$(environment); FTN_PYTORCH_BUILD_DIR="$$PWD/build/dev$(tag)" \
	  "$$FTN_PYTORCH_PYTHON" -m pytest -q -k "recorded or change_shows" tests/python/test_promises.py
	@echo '== Random changes of the Python package: look at those that no test notices'
	-@$(environment); "$$FTN_PYTORCH_PYTHON" tests/mutation/random_mutants.py --work build/mutants $$FPT_MUTANTS_SEED 10

bench:
	@cmake/setup.sh bench
	@$(environment); $(call configure,release)
	@$(environment); cmake --build build/release$(tag) --target call_overhead bench_driver
	@$(environment); "$$FTN_PYTORCH_PYTHON" benchmarks/run.py call_overhead --plot --build build/release$(tag)
	@echo '== All cases on all paths: most of the time goes into compiling models, the first time'
	@$(environment); "$$FTN_PYTORCH_PYTHON" benchmarks/run.py paths --plot --build build/release$(tag)

clean:
	rm -rf build out
