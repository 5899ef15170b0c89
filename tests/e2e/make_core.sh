#!/bin/bash
# Builds a program of tests/data/src, runs it and takes its core.
#
#   make_core.sh PROGRAM GOVERSION MODE OUTDIR [ARG...]
#
# PROGRAM    bait, stacks, ... (a folder or a .go file there), or plain (a .c file: GOVERSION is then -)
# GOVERSION  as scripts/toolchains.sh takes it; the toolchain must be there
# MODE       kernel: the program dies by itself (default argument: crash) and the kernel writes the core
#            gcore: the program prints READY and waits (default argument: wait), gdb writes the core, then it is killed
# OUTDIR     gets exe, core, stdout, stderr; what stands there under these names is replaced
# ARG...     the program's arguments
#
# Environment: SONDE_BUILD_FLAGS (more flags for go build or gcc, split at blanks; default none), SONDE_RUN_ENV
# (NAME=VALUE... for the program, split at blanks), GOARCH, SONDE_EXE_CACHE (a folder that keeps executables for the next
# run of this script; it trusts them).
# Exit status: 0, 1 on failure, 77 when this machine cannot take such a core (a message on stderr says why).
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROOT=$(cd "$HERE/../.." && pwd)
PATTERN_FILE=/proc/sys/kernel/core_pattern
SECONDS_TO_LIVE=120

die() {
	echo "make_core.sh: $*" >&2
	exit 1
}

skip() {
	echo "make_core.sh: skipped: $*" >&2
	exit 77
}

[[ $# -ge 4 ]] || {
	sed -n '2,/^set /s/^# \{0,1\}//p' "$0"
	exit 1
}
program=$1 version=$2 mode=$3 outdir=$4
shift 4

pid=
pattern=
cwd=
cleanup() {
	[[ -z $pid ]] || kill -KILL "$pid" 2>/dev/null || true
	[[ -z $pattern ]] || printf '%s' "$pattern" >"$PATTERN_FILE"
	[[ -z $cwd ]] || rm -rf -- "$cwd"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

mkdir -p "$outdir"
outdir=$(cd "$outdir" && pwd)
rm -f -- "$outdir"/{exe,core,stdout,stderr}

# An executable is the same file in every OUTDIR: a link.
build_cached() {
	local cached lock
	[[ -n ${SONDE_EXE_CACHE-} ]] || {
		build
		return
	}
	cached=$SONDE_EXE_CACHE/$(tr -c 'a-zA-Z0-9.\n-' _ <<<"exe-$program-$version-${SONDE_BUILD_FLAGS-}-${GOARCH-}")
	exec {lock}>"$cached.lock"
	flock "$lock"
	if [[ ! -f $cached ]]; then
		build
		ln "$outdir/exe" "$cached" 2>/dev/null || cp "$outdir/exe" "$cached"
	fi
	exec {lock}>&-
	[[ -f $outdir/exe ]] || ln "$cached" "$outdir/exe" 2>/dev/null || cp "$cached" "$outdir/exe"
}

build() {
	local source=$ROOT/tests/data/src/$program flags goroot
	read -ra flags <<<"${SONDE_BUILD_FLAGS-}"
	if [[ $version == - ]]; then
		gcc -g -O1 -fno-omit-frame-pointer "${flags[@]}" -o "$outdir/exe" "$source.c"
		return
	fi
	goroot=$("$ROOT/scripts/toolchains.sh" --path "$version")
	local target=. cgo=0
	if [[ ! -d $source ]]; then
		target=$program.go
		source=$ROOT/tests/data/src
	fi
	! grep -qsx 'import "C"' "$source/$target" || cgo=1
	(
		cd "$source"
		env -u GOROOT -u GOPATH -u GOBIN GOTOOLCHAIN=local GOFLAGS= GOPROXY=off GO111MODULE=off GOENV=off CGO_ENABLED=$cgo \
			GOCACHE="${SONDE_GO_BUILD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sonde-go-build}" \
			"$goroot/bin/go" build "${flags[@]}" -o "$outdir/exe" "$target"
	)
}

# run ARG...: starts the program in a private folder with nothing of this shell's environment; sets pid.
run() {
	local env
	read -ra env <<<"${SONDE_RUN_ENV-}"
	cwd=$(mktemp -d "$outdir/cwd.XXXXXX")
	(
		cd "$cwd"
		exec env -i GOTRACEBACK=crash "${env[@]}" "$outdir/exe" "$@" </dev/null >"$outdir/stdout" 2>"$outdir/stderr"
	) &
	pid=$!
}

# One job at a time changes the pattern; the lock goes with this process.
own_pattern() {
	local found
	found=$(<"$PATTERN_FILE")
	if [[ $found == *[/\|]* && ! -w $PATTERN_FILE ]]; then
		skip "core_pattern is \"$found\" and only root changes it"
	fi
	[[ -w $PATTERN_FILE ]] || return 0
	exec 8>"${TMPDIR:-/tmp}/sonde-core-pattern.lock"
	flock 8
	found=$(<"$PATTERN_FILE")
	case $found in
	*/* | '|'*)
		if ! (printf core >"$PATTERN_FILE") 2>/dev/null; then
			skip "core_pattern is \"$found\" and cannot be changed"
		fi
		pattern=$found
		;;
	*) exec 8>&- ;; # a name in the program's folder, whatever it is
	esac
}

take_kernel() {
	ulimit -c unlimited 2>/dev/null || skip "the hard limit of the core size is $(ulimit -Hc)"
	own_pattern
	[[ $# -gt 0 ]] || set -- crash
	run "$@"
	local deadline=$((SECONDS + SECONDS_TO_LIVE)) status=0
	{
		# The shell itself reports the death of a child on stderr.
		while kill -0 "$pid" && [[ $SECONDS -lt $deadline ]]; do
			sleep 0.05
		done
	} 2>/dev/null
	! kill -0 "$pid" 2>/dev/null || die "$program $*: still running after $SECONDS_TO_LIVE s"
	wait "$pid" 2>/dev/null || status=$?
	pid=
	local cores=("$cwd"/*)
	[[ -f ${cores[0]} ]] || {
		tail -n 5 "$outdir/stderr" >&2
		[[ $status -le 128 ]] || skip "$program died (status $status) but the kernel wrote no core"
		die "$program $*: no core, exit status $status"
	}
	[[ ${#cores[@]} -eq 1 ]] || die "more than one file in the folder of $program"
	mv -- "${cores[0]}" "$outdir/core"
}

take_gcore() {
	command -v gdb >/dev/null || skip "no gdb"
	[[ $# -gt 0 ]] || set -- wait
	run "$@"
	local deadline=$((SECONDS + SECONDS_TO_LIVE))
	until grep -qs '^READY$' "$outdir/stdout"; do
		kill -0 "$pid" 2>/dev/null || die "$program $*: ended before it was ready"
		[[ $SECONDS -lt $deadline ]] || die "$program $*: not ready after $SECONDS_TO_LIVE s"
		sleep 0.05
	done
	sleep 0.2
	if ! gdb -nx -q -batch -iex 'set auto-load off' -iex 'set debuginfod enabled off' -iex 'set auto-solib-add off' \
		-p "$pid" -ex "gcore $cwd/core" </dev/null >"$cwd/gdb.log" 2>&1 || [[ ! -s $cwd/core ]]; then
		! grep -qi 'operation not permitted' "$cwd/gdb.log" || skip "ptrace is not permitted"
		cat "$cwd/gdb.log" >&2
		die "gcore failed"
	fi
	{
		kill -KILL "$pid"
		wait "$pid" || true
	} 2>/dev/null
	pid=
	# gdb writes pages that were never touched as zeros.
	fallocate --dig-holes "$cwd/core" 2>/dev/null || true
	mv -- "$cwd/core" "$outdir/core"
}

build_cached
case $mode in
kernel) take_kernel "$@" ;;
gcore) take_gcore "$@" ;;
*) die "unknown mode $mode" ;;
esac
