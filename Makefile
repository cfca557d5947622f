# The front door. Meson does the building (see meson.build); this only saves remembering how to call it.

BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
NP ?= 4
GRID ?= examples/grids/two-clusters.yaml
AGAINST ?=
FAULTS ?=
QUICK ?=

.DEFAULT_GOAL := all
.NOTPARALLEL:
.PHONY: all setup setup-test setup-test-all setup-bench demo test test-all test-long test-fault bench bench-collectives bench-datatypes bench-gateways \
        bench-lab bench-levels bench-model bench-multicast bench-peers bench-planned bench-planning bench-rma install format lint clean help

## make            build the library and the commands into build/
all: setup
	@[ -f $(BUILD)/build.ninja ] || meson setup $(BUILD) -Dtests=disabled
	@ninja -C $(BUILD)

setup:
	@tools/setup build

setup-test:
	@tools/setup test

setup-test-all:
	@tools/setup test-all

setup-bench:
	@tools/setup bench

## make demo       build, then run an example on NP ranks (4) of this machine
demo: all
	@mkdir -p $(BUILD)/examples
	$(BUILD)/bin/mpicc -O2 examples/mandelbrot.c -o $(BUILD)/examples/mandelbrot -lm
	@[ -t 1 ] && [ -z "$$NO_COLOR" ] && colour=--colour; set -x; \
	    $(BUILD)/bin/mpiexec -n $(NP) $(BUILD)/examples/mandelbrot $$colour

## make test       the quick tests: some minutes on two cores
test: setup-test
	@BUILD_DIR=$(abspath $(BUILD)) tests/run --tier quick --variant gcc

## make test-all   all tests but those of test-long: many only wait, so more run at a time than there are
##                 cores (installs a cross compiler, other MPI libraries and SimGrid for some of them)
test-all: setup-test-all all
	@BUILD_DIR=$(abspath $(BUILD)) tests/run --tier all --jobs 4

## make test-long  the analyzer, and all unit tests under the address sanitizer
test-long: setup-test all
	@BUILD_DIR=$(abspath $(BUILD)) tests/run --tier long

## make test-fault every fault again and again: trials, passed, median and worst time (an hour; FAULTS='--only PATTERN …')
test-fault: setup-test all
	@BUILD_DIR=$(abspath $(BUILD)) tests/fault/trials $(FAULTS)

## make bench      measure beside MPICH and Open MPI (and install those); AGAINST=DIR: this and the next four beside another build
bench: setup-bench all
	@BUILD_DIR=$(abspath $(BUILD)) bench/run $(if $(AGAINST),--against '$(AGAINST)')

## make bench-datatypes  the same for messages of noncontiguous data
bench-datatypes: setup-bench all
	@BUILD_DIR=$(abspath $(BUILD)) bench/datatypes $(if $(AGAINST),--against '$(AGAINST)')

## make bench-rma  one-sided accesses with each synchronisation, and messages of several threads
bench-rma: setup-bench all
	@BUILD_DIR=$(abspath $(BUILD)) bench/rma $(if $(AGAINST),--against '$(AGAINST)')

## make bench-collectives  every collective, 2, 4 and 8 ranks on this machine (bench/collectives --lab: on clusters)
bench-collectives: setup-bench all
	@BUILD_DIR=$(abspath $(BUILD)) bench/collectives $(if $(AGAINST),--against '$(AGAINST)')

## make bench-gateways   messages through gateways, beside sockets, iperf3, a bare relay and zstd
bench-gateways: setup-bench all
	@BUILD_DIR=$(abspath $(BUILD)) bench/gateways $(if $(AGAINST),--against '$(AGAINST)')

## make bench-model      predicted and measured times of algorithms on emulated grids
bench-model: setup-bench all
	@BUILD_DIR=$(abspath $(BUILD)) bench/model --write

## make bench-levels     collectives on emulated grids of several levels, with every root, beside the bound: tables of docs/guide/measured.md (two hours)
bench-levels: setup-bench all
	@BUILD_DIR=$(abspath $(BUILD)) bench/levels --write
	@BUILD_DIR=$(abspath $(BUILD)) bench/levels bench/grids/karonis.yaml --operations bcast,reduce --sizes 16,1k,16k,64k,256k,1m \
	    --columns levels,machine,site --ways blocks --write

## make bench-multicast  broadcasts by multicast in the lab: the tables of docs/guide/multicast.md (an hour and a half; QUICK=1: minutes)
bench-multicast: setup-bench all
	@BUILD_DIR=$(abspath $(BUILD)) bench/multicast $(if $(QUICK),--quick)

## make bench-lab        how true the emulated ports and links are
bench-lab: setup-bench all
	@BUILD_DIR=$(abspath $(BUILD)) bench/lab

## make bench-peers      operations on an emulated grid, GRID=FILE.yaml (two clusters)
bench-peers: setup-bench all
	@BUILD_DIR=$(abspath $(BUILD)) bench/peers $(GRID)

## make bench-planning   how good planners are: the tables and plots of docs/guide/planning.md (an hour; QUICK=1: minutes, and nothing is written)
bench-planning: all
	@BUILD_DIR=$(abspath $(BUILD)) bench/planning $(if $(QUICK),--quick,--write)

## make bench-planned    jobs that follow plans on emulated grids: as predicted, and beside the library's own choice (an hour and a half)
bench-planned: setup-bench all
	@BUILD_DIR=$(abspath $(BUILD)) bench/planned --write

## make install    install under PREFIX (/usr/local), below DESTDIR if that is given
install: all
	@meson configure $(BUILD) | grep -q '^ *prefix  *$(abspath $(PREFIX)) ' || \
	    meson setup --reconfigure $(BUILD) -Dprefix=$(abspath $(PREFIX))
	@ninja -C $(BUILD)
	@DESTDIR='$(DESTDIR)' meson install -C $(BUILD) --no-rebuild

## make format     lay the sources out as .clang-format says
format: setup-test
	@tools/format

## make lint       layers, structure, layout, warnings of both compilers, static analysis
lint: setup-test
	@BUILD_DIR=$(abspath $(BUILD)) tests/run --tier all --only 'layers*' --only 'structure*' --only format --only 'build-[gc]*' --only lint

## make clean      remove everything that was built
clean:
	rm -rf $(BUILD)

help:
	@sed -n 's/^## //p' $(firstword $(MAKEFILE_LIST))
