#!/bin/bash
# `sonde core threads` on cores of C and C++ programs, frame by frame against gdb, and on Go's against `core goroutines`.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

export SONDE_BUILD_FLAGS

# as_gdb NAME [ARG...]: the stacks of $CORE equal gdb's
as_gdb() {
	local name=$1
	shift
	if ! command -v gdb >/dev/null; then
		skip "$name" "no gdb"
		return
	fi
	ok "$name" "$E2E/threads_gdb.py" "$SONDE" "$CORE/core" "$CORE/exe" "$@"
}

threads() {
	sonde_core threads "$@" 2>&1
}

# has TEXT: the report has it; hasnt: has it not
has() {
	threads | grep -F -- "$1" || {
		threads | tail -n 40
		return 1
	}
}

# core_of FLAGS MODE ARG: the core of walk_crash built with FLAGS
core_of() {
	SONDE_BUILD_FLAGS=$1
	take_core walk_crash - "$2" "$3"
}

FAST='-O2 -fomit-frame-pointer'
for flags in "$FAST" "-O0" "$FAST -no-pie -fno-pie" "$FAST -fcf-protection=full -Wl,-z,lazy"; do
	for mode in libc null data alternate handler callback noreturn threads overflow; do
		core_of "$flags" kernel "$mode" || continue
		as_gdb "C, $flags, $mode"
	done
done

CPP='-Wl,--no-as-needed -lstdc++'
# Names of every kind, inlined calls and exceptions.
for flags in "-x c++ -O2 $CPP" "-x c++ -O0 $CPP"; do
	for mode in templates uncaught lambda libc; do
		core_of "$flags" kernel "$mode" || continue
		as_gdb "C++, $flags, $mode"
	done
done
core_of "-x c++ -O0 $CPP" kernel templates &&
	ok "C++ names are readable" has 'space::holder<long>::look('
core_of "-x c++ -O0 $CPP" kernel lambda &&
	ok "the name of an operator, of a local function" has 'space::operators::operator()(long) const'

if core_of "$FAST" kernel corrupt; then
	as_gdb "a corrupted stack, as far as it goes" --up-to 2
	ok "a corrupted stack says where it ends" has '[no code at pc 0x4141414141414141]'
fi
if core_of "$FAST" kernel null; then
	ok "a call through NULL is found" has '[stack top after a bad call]'
fi
if core_of "$FAST" kernel alternate; then
	ok "a signal on the alternate stack is found" has '<signal trampoline>'
fi
core_of "$FAST" gcore wait && as_gdb "threads by gcore"

# Code without symbols or debug information, which stand in a file of their own.
if core_of "$FAST" kernel threads; then
	mkdir -p "$WORK/debug" "$WORK/stripped"
	id=$(readelf -n "$CORE/exe" | sed -n 's/.*Build ID: //p')
	mkdir -p "$WORK/debug/.build-id/${id:0:2}"
	objcopy --only-keep-debug "$CORE/exe" "$WORK/debug/.build-id/${id:0:2}/${id:2}.debug"
	# The one that others use as well stays as it is.
	strip -o "$WORK/stripped/exe" "$CORE/exe"
	ln -s "$CORE/core" "$WORK/stripped/core"
	CORE=$WORK/stripped
	as_gdb "stripped, no debug file"
	as_gdb "stripped, a debug file by build-id" --debug-dir "$WORK/debug" --debug-dir /usr/lib/debug
	with_debug() {
		threads --debug-dir "$WORK/debug" | grep -F 'walk_crash.c:'
	}
	ok "file and line come from the debug file" with_debug
fi

for mode in libc callback threads null; do
	core_of "$FAST -static" kernel "$mode" || continue
	as_gdb "static, $mode"
done

# musl's libc has no call-frame information and no frame pointers: a stack that passes it says so.
if command -v musl-gcc >/dev/null; then
	mkdir -p "$WORK/bin"
	printf '#!/bin/sh\nPATH=${PATH#*:} exec musl-gcc "$@"\n' >"$WORK/bin/gcc"
	chmod +x "$WORK/bin/gcc"
	path=$PATH
	# -DMUSL: executables are kept by their flags.
	for mode in libc noreturn; do
		PATH=$WORK/bin:$path
		core_of "$FAST -DMUSL" kernel "$mode" && ok "musl, $mode: where the stack ends is said" has '[no unwind info: libc.so]'
		PATH=$path
	done
else
	skip "musl" "no musl-gcc"
fi

# Go: the frames of a running goroutine, innermost first, are those that `core goroutines` has.
go_frames() {
	"$SONDE" core goroutines "$CORE/core" --exe "$CORE/exe" --json >"$WORK/goroutines.json" &&
		"$SONDE" core threads "$CORE/core" --exe "$CORE/exe" --json >"$WORK/threads.json" &&
		python3 "$E2E/threads_go.py" "$WORK/threads.json" "$WORK/goroutines.json"
}
SONDE_BUILD_FLAGS=
for version in $VERSIONS; do
	take_core stacks "$version" gcore && ok "Go $version: running goroutines" go_frames
	take_core stacks "$version" kernel nil && ok "Go $version: the goroutine that crashed" go_frames
done
# C and Go in turn, on one stack.
json_of() {
	sonde_core threads --json >"$WORK/threads.json" && sonde_core goroutines --json >"$WORK/goroutines.json"
}
nesting() {
	json_of && python3 "$E2E/threads_cgo.py" "$CORE/stdout" "$WORK/threads.json" "$WORK/goroutines.json"
}
lost_in_callback() {
	json_of && grep -q '"text":"\[C code: its frames are no longer there\]"' "$WORK/threads.json" &&
		sonde_core goroutines -g 1 | grep -F '[C code: its frames are no longer there]'
}
for version in $VERSIONS; do
	for mode in 'kernel segv' 'gcore wait'; do
		read -r how arg <<<"$mode"
		take_core cgonest "$version" "$how" "$arg" || continue
		ok "cgo $version, $arg: C and Go calls in the order of the program" nesting
		as_gdb "cgo $version, $arg: up to the goroutines' stacks" --go
	done
	take_core cgocrash "$version" kernel segv || continue
	ok "cgo $version: the C frame that crashed" has 'c_leaf +'
	ok "cgo $version: the Go code that called it comes behind" has 'main.enterC +'
	ok "cgo $version: running goroutines" go_frames
	as_gdb "cgo $version: up to the goroutines' stacks" --go
	take_core cgocrash "$version" kernel callback || continue
	ok "cgo $version: a panic in a call back says that the C frames are gone" lost_in_callback
	take_core cgocrash "$version" gcore wait || continue
	ok "cgo $version: a thread that sleeps in C" has 'c_leaf +'
done
tap_end
