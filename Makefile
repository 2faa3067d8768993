# The front door. Meson and ninja do the work; this file only knows the names people type.
BUILD  ?= build
PREFIX ?= /usr/local
# Not every shell expands the ~ of `make install PREFIX=~/.local`.
override PREFIX := $(patsubst ~/%,$(HOME)/%,$(PREFIX))

# Shows what a command printed only when it failed.
quietly = { said=$$($(1) 2>&1) || { echo "$$said"; exit 1; }; }

.PHONY: all setup run tour test bench bench-http lint format hints install clean languages contain-list contain-mutants test-v2 test-bare soak

all: setup
	@test -f $(BUILD)/build.ninja || $(call quietly,meson setup $(BUILD) --prefix=$(PREFIX))
	@said=$$(ninja -C $(BUILD) --quiet 2>&1) || { echo "$$said"; exit 1; }; echo "$$said" | grep -v 'no work to do' || true

# Installs missing Debian packages when it may; otherwise prints the line to run.
setup:
	@tools/setup build

languages:
	@tools/setup languages

# Until it is interrupted.
run: all
	@tools/serve $(abspath $(BUILD))

tour: all
	@tools/tour $(BUILD)/cordon

# A build from before the test packages were there has no unit tests: it is set up again.
test: setup
	@tools/setup test
	@test $$(id -u) != 0 || tools/setup bare
	@test ! -f $(BUILD)/build.ninja || test -e $(BUILD)/tests/unit/warden_test_cgroup || \
		$(call quietly,meson setup --reconfigure $(BUILD))
	@$(MAKE) --no-print-directory all
	@tests/run

bench: all
	@tools/setup bench
	@bench/run

# 16 clients; SECONDS of them.
bench-http: all
	@bench/http --build $(BUILD) $(if $(SECONDS),--seconds $(SECONDS))

# Common failures and the hint for each.
hints: all
	@tools/setup test
	@tests/hints

lint: all
	@tools/setup lint
	@tools/lint

format:
	@clang-format -i $$(git ls-files '*.c' '*.h' ':!*/fixtures/*' ':!tests/contain/programs/*')

# The paths of the warden and the manifests are compiled in, so the prefix is set before the build.
install:
	@tools/install check $(PREFIX)
	@$(MAKE) --no-print-directory setup
	@test ! -f $(BUILD)/build.ninja || { meson configure $(BUILD) --prefix=$(PREFIX) && \
		$(call quietly,ninja -C $(BUILD) build.ninja); }
	@$(MAKE) --no-print-directory all
	@tools/install $(PREFIX) $(BUILD)

contain-list:
	@tests/contain/list

contain-mutants: all
	@tools/setup test
	@tests/contain/mutants

test-v2: all
	@tools/setup qemu
	@tests/v2/run

# On a bare Debian 12, as root and as an ordinary user. SHORT=1: without `make test`, on a machine that has the packages.
test-bare:
	@tools/setup bare
	@tests/bare/run $(if $(SHORT),--short) $(BARE)

# RUNS of them; a table of what grows, and a failure when something does.
soak: all
	@tools/setup test
	@tests/soak/run $(if $(RUNS),--runs $(RUNS))

clean:
	rm -rf build build-*
