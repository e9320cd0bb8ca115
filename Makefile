# SPDX-License-Identifier: Apache-2.0
# moe-tools: one file, no recursion. `make help` lists the targets.
# MODE = release | debug | asan | tsan | fuzz; each builds in a folder of its own.

MODE ?= release
B := build/$(MODE)
VERSION := $(shell cat VERSION)

PREFIX ?= /usr/local
BINDIR ?= $(PREFIX)/bin
LIBDIR ?= $(PREFIX)/lib
INCDIR ?= $(PREFIX)/include
MANDIR ?= $(PREFIX)/share/man
BASHDIR ?= $(PREFIX)/share/bash-completion/completions
DESTDIR ?=

ifeq ($(MODE),fuzz)
CC := clang
endif
CC ?= cc
CFLAGS ?= -O2 -g
# V=1 shows the commands, make -s shows nothing; WERROR=1 makes warnings errors.
V ?= 0
WERROR ?= 0
Q := $(if $(filter 1,$(V)),,@)
silent := $(findstring s,$(filter-out --%,$(firstword -$(MAKEFLAGS))))
say = $(if $(filter 1,$(V)),,@$(if $(silent),,echo "  $(1) $@";))

# ---- Libraries: Debian packages, named when they are missing ----------------
NEEDS := libcrypto:libssl-dev yaml-0.1:libyaml-dev jansson:libjansson-dev \
	libpcre2-8:libpcre2-dev libutf8proc:libutf8proc-dev expat:libexpat1-dev \
	hwloc:libhwloc-dev libzstd:libzstd-dev
PKGS := $(foreach n,$(NEEDS),$(firstword $(subst :, ,$(n))))
ifeq ($(filter clean help uninstall dist format man-lint,$(MAKECMDGOALS)),)
$(if $(shell command -v pkg-config),,\
	$(error pkg-config is missing: apt-get install pkg-config, or run scripts/install-deps))
$(foreach n,$(NEEDS),$(if $(shell pkg-config --exists $(firstword $(subst :, ,$(n))) && echo y),,\
	$(error $(firstword $(subst :, ,$(n))) is missing: apt-get install $(lastword $(subst :, ,$(n))), or run scripts/install-deps)))
PKG_CFLAGS := $(shell pkg-config --cflags $(PKGS))
PKG_LIBS := $(shell pkg-config --libs $(PKGS))
endif

# ---- Flags: the user's first, ours after ------------------------------------
MODE_release :=
MODE_debug := -O0 -g3
MODE_asan := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
MODE_tsan := -O1 -g -fsanitize=thread
MODE_fuzz := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all \
	-fprofile-instr-generate -fcoverage-mapping
WARN := -Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes -Wmissing-prototypes \
	-Wundef -Wvla -Wwrite-strings -Wformat=2
OURS := -std=c11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -I. -DMOE_VERSION='"$(VERSION)"' \
	-ffp-contract=off -fno-math-errno -fvisibility=hidden -fPIC -pthread \
	$(WARN) $(if $(filter 1,$(WERROR)),-Werror)
# Kernels: loops at -O3 in the release, a tier's instructions by the suffix. A sanitizer takes minutes
# over unrolled loops at that level, and the fuzzers, which are after parsers, leave kernels plain.
OPT_release := -O3
ISA_ref := $(OPT_$(MODE))
ISA_avx2 := $(OPT_$(MODE)) -mavx2 -mfma -mf16c -mbmi2 -fno-lto
ISA_avx512 := $(OPT_$(MODE)) -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mfma -mf16c -mbmi2 -fno-lto
ISA_shani := $(OPT_$(MODE)) -msse4.1 -msha -fno-lto
ISA_sse42 := $(OPT_$(MODE)) -msse4.2 -mpclmul -fno-lto
isa = $(ISA_$(lastword $(subst _, ,$(basename $(notdir $(1))))))
mode = $(if $(filter fuzz:kernels/%,$(MODE):$(1)),,$(MODE_$(MODE)))
COMPILE = $(CC) $(CPPFLAGS) $(CFLAGS) $(OURS) $(call mode,$<) $(PKG_CFLAGS) $(call isa,$<) -MMD -MP
LIBS := $(PKG_LIBS) -lm -pthread

# ---- What there is ----------------------------------------------------------
TOOLS := $(sort $(notdir $(wildcard cmd/moe-*)))
LIB_SRC := $(sort $(wildcard common/*/*.c kernels/*.c))
LIB_OBJ := $(LIB_SRC:%.c=$B/%.o)
BINS := $(TOOLS:%=$B/%)
UNIT := $(patsubst tests/unit/%.c,$B/tests/unit/%,$(sort $(wildcard tests/unit/*.c)))
FUZZ := $(patsubst tests/fuzz/fuzz_%.c,$B/tests/fuzz/fuzz_%,$(sort $(wildcard tests/fuzz/fuzz_*.c)))
HELPERS := $(patsubst tests/tools/%.c,$B/tests/tools/%,$(sort $(wildcard tests/tools/*.c)))
BENCH := $(patsubst tests/bench/%.c,$B/tests/bench/%,$(sort $(wildcard tests/bench/*.c)))
TEST_OBJ := $B/tests/tap.o $B/tests/scratch.o $B/tests/golden.o $B/tests/golden_qmat.o
KERN_OBJ := $(patsubst %.c,$B/%.o,$(sort $(wildcard tests/kernel/*.c)))
# The AVX-512 kernels once more, made of AVX2 by SIMDe where that is installed.
SIMDE := $(shell printf '\#if __has_include(<simde/x86/avx512.h>)\ny\n\#endif\n' | \
	$(CC) $(CPPFLAGS) -E -P - 2>/dev/null)
SIMDE_OBJ := $(patsubst kernels/%.c,$B/tests/simde/%.o,$(sort $(wildcard kernels/*_avx512.c))) \
	$B/tests/simde/cpu.o
CLI := $(sort $(wildcard tests/cli/*.sh))
MANS := $(sort $(wildcard man/*.[1-9]))
PRODUCT := $(LIB_SRC) $(sort $(wildcard cmd/*/*.c))

.PHONY: all lib tests check check-long asan tsan fuzz fuzz-run bench interop lint tidy man-lint \
	format install uninstall dist distcheck clean help FORCE
.SECONDARY:
.DELETE_ON_ERROR:

all: $(BINS)	## build the programs (default)

lib: $B/libmoe.a $B/libmoe.so	## build the library

# Stamps that change with the flags (objects depend on it) and with the list of
# sources (what is linked from them does), so that neither needs `make clean`.
FLAGS := $(CC) $(CPPFLAGS) $(CFLAGS) $(OURS) $(MODE_$(MODE)) $(PKG_CFLAGS) $(LDFLAGS) $(LIBS) \
	$(foreach v,$(sort $(filter ISA_%,$(.VARIABLES))),$($v))
stamp = @mkdir -p $(@D); echo '$(subst ','\'',$(1))' | cmp -s - $@ || echo '$(subst ','\'',$(1))' >$@
$B/flags: FORCE
	$(call stamp,$(FLAGS))
$B/sources: FORCE
	$(call stamp,$(PRODUCT))

$B/%.o: %.c $B/flags
	@mkdir -p $(@D)
	$(call say,CC) $(COMPILE) -c -o $@ $<

$B/libmoe.a: $(LIB_OBJ) $B/sources
	$(call say,AR) rm -f $@; $(AR) rcs $@ $(LIB_OBJ)

$B/libmoe.so: $(LIB_OBJ) $B/sources common/libmoe.map
	$(call say,LD) $(CC) $(CFLAGS) $(MODE_$(MODE)) -shared -Wl,-soname,libmoe.so.0 \
		-Wl,--version-script=common/libmoe.map $(if $(findstring sanitize,$(MODE_$(MODE))),,-Wl,-z,defs) \
		-o $@ $(LIB_OBJ) $(LDFLAGS) $(LIBS)

LINK = $(CC) $(CFLAGS) $(MODE_$(MODE)) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LDFLAGS) $(LIBS)
define tool
$B/$(1): $(patsubst %.c,$B/%.o,$(sort $(wildcard cmd/$(1)/*.c))) $B/libmoe.a $B/sources
	$$(call say,LD) $$(LINK)
endef
$(foreach t,$(TOOLS),$(eval $(call tool,$(t))))

$B/tests/unit/%: $B/tests/unit/%.o $(TEST_OBJ) $B/libmoe.a
	$(call say,LD) $(LINK)
$B/tests/tools/%: $B/tests/tools/%.o $B/libmoe.a
	$(call say,LD) $(LINK)
$B/tests/bench/%: $B/tests/bench/%.o $B/libmoe.a
	$(call say,LD) $(LINK)
$B/tests/checkkern: $(KERN_OBJ) $(TEST_OBJ) $B/libmoe.a
	$(call say,LD) $(LINK)
$B/tests/simde/%_avx512.o: kernels/%_avx512.c tests/simde/shim.h $B/flags
	@mkdir -p $(@D)
	$(call say,CC) $(CC) $(CPPFLAGS) $(CFLAGS) $(OURS) $(MODE_$(MODE)) $(ISA_avx2) -O1 -g0 -Wno-psabi \
		-include tests/simde/shim.h -MMD -MP -c -o $@ $<
# Its objects come before the library, so that they and its cpu.o are taken and not those inside.
$B/tests/checkkern_simde: $(SIMDE_OBJ) $(KERN_OBJ) $(TEST_OBJ) $B/libmoe.a
	$(call say,LD) $(LINK)
# Under MODE=fuzz libFuzzer drives a harness; elsewhere driver.c replays the corpus.
ifeq ($(MODE),fuzz)
$B/tests/fuzz/fuzz_%: $B/tests/fuzz/fuzz_%.o $B/libmoe.a
	$(call say,LD) $(LINK) -fsanitize=fuzzer
else
$B/tests/fuzz/fuzz_%: $B/tests/fuzz/fuzz_%.o $B/tests/fuzz/driver.o $B/libmoe.a
	$(call say,LD) $(LINK)
endif

-include $(shell find $B -name '*.d' 2>/dev/null)

# ---- Tests ------------------------------------------------------------------
TESTS := $(UNIT) $B/tests/checkkern $(if $(SIMDE),$B/tests/checkkern_simde) $(FUZZ)
tests: all lib $(TESTS) $(HELPERS) $(BENCH)	## build everything that check runs, and the benchmarks

check: tests	## run the tests (under two minutes on two cores)
	$(Q)B=$B tests/run $(UNIT) $B/tests/checkkern tests/simde/checkkern.sh \
		$(FUZZ:%=replay:%) $(CLI) scripts/check-docs

check-long: tests	## kill, property and product matrices
	$(Q)B=$B tests/run $(sort $(wildcard tests/long/*.sh))

asan tsan:	## run the tests under a sanitizer
	$(Q)$(MAKE) --no-print-directory MODE=$@ check

fuzz:	## run each fuzz harness for FUZZ_SECONDS (60) with coverage
	$(Q)$(MAKE) --no-print-directory MODE=fuzz fuzz-run
FUZZ_SECONDS ?= 60
fuzz-run: $(FUZZ)
	$(Q)B=$B SECONDS_EACH=$(FUZZ_SECONDS) scripts/fuzz $(FUZZ)

bench: all $(BENCH)	## measure, as ratios inside one run
	$(Q)B=$B scripts/bench $(BENCH)

interop: all $(HELPERS)	## compare with the reference implementations
	$(Q)B=$B scripts/interop

# ---- Style ------------------------------------------------------------------
lint: all lib	## checks of includes, symbols, style, pages and the analyser
	+$(Q)B=$B CC='$(CC)' PKG_CFLAGS='$(PKG_CFLAGS)' ISA_avx2='$(ISA_avx2)' ISA_avx512='$(ISA_avx512)' \
		scripts/lint

# Each object's source once more, through clang-tidy (.clang-tidy says what it looks for). Vector
# variants are left to the kernel checks: the analyser walks their unrolled loops for minutes.
tidy: $(patsubst %.c,$B/%.tidy,$(filter-out %_avx2.c %_avx512.c,$(PRODUCT)))
$B/%.tidy: $B/%.o .clang-tidy scripts/analyser.h
	$(call say,TIDY) timeout 300 clang-tidy --quiet $*.c -- $(OURS) $(PKG_CFLAGS) $(call isa,$*.c) \
		$(if $(filter-out common/base/err,$*),-include scripts/analyser.h) -Wno-unused-value
	@touch $@

man-lint:	## check the manual pages
	$(Q)scripts/lint-man $(MANS)

format:	## rewrite the sources with clang-format
	$(Q)clang-format -i $$(git ls-files '*.c')

# ---- Install: what is installed, once, for both directions ------------------
PUBLIC := $(addprefix common/,base/err.h base/buf.h formats/dtype.h formats/safet.h)
page = $(MANDIR)/man$(patsubst .%,%,$(suffix $(1)))/$(notdir $(1))
INSTALLED := $(TOOLS:%=$(BINDIR)/%) $(TOOLS:%=$(BASHDIR)/%) $(foreach m,$(MANS),$(call page,$m)) \
	$(addprefix $(INCDIR)/moe/,$(notdir $(PUBLIC))) $(LIBDIR)/pkgconfig/libmoe.pc \
	$(addprefix $(LIBDIR)/libmoe.so,.$(VERSION) .0) $(LIBDIR)/libmoe.so

install: all lib	## install under DESTDIR and PREFIX
	$(Q)install -d $(addprefix $(DESTDIR),$(sort $(dir $(INSTALLED))))
	$(Q)$(if $(BINS),install -m 755 $(BINS) $(DESTDIR)$(BINDIR))
	$(Q)install -m 755 $B/libmoe.so $(DESTDIR)$(LIBDIR)/libmoe.so.$(VERSION)
	$(Q)ln -sf libmoe.so.$(VERSION) $(DESTDIR)$(LIBDIR)/libmoe.so.0
	$(Q)ln -sf libmoe.so.0 $(DESTDIR)$(LIBDIR)/libmoe.so
	$(Q)for h in $(PUBLIC); do \
		sed 's|"common/[a-z]*/\(.*\)"|<moe/\1>|' $$h >$(DESTDIR)$(INCDIR)/moe/$${h##*/} || exit 1; done
	$(Q)sed 's|@LIBDIR@|$(LIBDIR)|; s|@INCDIR@|$(INCDIR)|; s|@VERSION@|$(VERSION)|' \
		common/libmoe.pc.in >$(DESTDIR)$(LIBDIR)/pkgconfig/libmoe.pc
	$(Q)$(foreach m,$(MANS),install -m 644 $m $(DESTDIR)$(call page,$m) &&) true
	$(Q)for t in $(TOOLS); do \
		$B/$$t --completion >$(DESTDIR)$(BASHDIR)/$$t || exit 1; done

uninstall:	## remove what install wrote
	$(Q)DESTDIR='$(DESTDIR)' scripts/uninstall $(INSTALLED)

dist:	## make the release tarball; refuses when VERSION, CHANGELOG and tag differ
	$(Q)scripts/dist $(VERSION)

distcheck: dist	## build and check from the tarball
	$(Q)scripts/dist --check $(VERSION)

clean:	## remove everything that was built
	rm -rf build

help:	## list the targets
	@sed -n 's/^\([a-z][a-z -]*\):.*## \(.*\)/\1	\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 12
