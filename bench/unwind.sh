#!/bin/bash
# Measures building unwind tables beside libdw computing the same rows, in one process, and writes the table into
# bench/RESULTS.md (between its two comment lines).
#
#   bench/unwind.sh [--build FOLDER] [--output FILE] [FILE...]    the folder is set up with -Dbench=true
#
# Files by default: libc6, libpython3.11, libllvm14, libllvm15, libclang-cpp14 of Debian 12 and a Go program built here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=build output=bench/RESULTS.md
while [[ ${1-} == --* ]]; do
	case $1 in
	--build) build=$2 ;;
	--output) output=$2 ;;
	*)
		sed -n '2,/^set /s/^# \{0,1\}//p' "$0"
		exit 1
		;;
	esac
	shift 2
done
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

if [[ $# -eq 0 ]]; then
	lib=/usr/lib/x86_64-linux-gnu
	set -- "$lib/libc.so.6" "$lib/libpython3.11.so.1.0" "$lib/libLLVM-14.so.1" "$lib/libLLVM-15.so.1" \
		/usr/lib/llvm-14/lib/libclang-cpp.so.14
	goroot=$(scripts/toolchains.sh --path 1.24)
	# A program that links much of the standard library: the toolchain's own pprof, with its .debug_frame.
	(cd "$goroot/src/cmd/pprof" && GOCACHE=${GOCACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sonde-go-build} GOTOOLCHAIN=local \
		GOFLAGS=-mod=mod GOPROXY=off CGO_ENABLED=0 GOROOT=$goroot "$goroot/bin/go" build -mod=vendor -o "$work/go-pprof" .)
	set -- "$@" "$work/go-pprof"
fi
for file; do
	[[ -r $file ]] || {
		echo "unwind.sh: $file is missing: install libllvm14 libllvm15 libclang-cpp14 libpython3.11" >&2
		exit 1
	}
done
"$build/bench/bench_unwind" "$@" >"$work/out"

{
	echo "<!-- unwind.sh -->"
	echo "## Unwind tables: .eh_frame or .debug_frame to rows"
	echo
	echo "$(date -u +%F), $(awk -F': ' '/^model name/ { print $2; exit }' /proc/cpuinfo), $(nproc) CPUs, Linux $(uname -r)," \
		"load $(cut -d' ' -f1 /proc/loadavg); \`bench/unwind.sh\`. CPU time of one thread; the least of 5 runs each," \
		"all in one process with warm files."
	echo "Ours: from opening the file to a finished, checksummed table. libdw: CFA, frame pointer and return address of" \
		"each row by dwarf_cfi_addrframe()."
	echo
	echo "| file | MB | FDEs | rows read | table rows | rules | bytes a row | ours ms | libdw ms | ours M rows/s | libdw M rows/s | times | look-up ns |"
	echo "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
	awk '{
		n = split($1, path, "/")
		for (i = 2; i <= NF; i++) {
			split($i, kv, "=")
			v[kv[1]] = kv[2]
		}
		if (v["rows_read"] != v["libdw_rows"])
			bad = bad " " path[n]
		printf "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", path[n], v["size_mb"], v["fdes"], v["rows_read"],
			v["rows"], v["rules"], v["bytes_per_row"], v["ours_ms"], v["libdw_ms"], v["ours_mrows_s"], v["libdw_mrows_s"],
			v["times"], v["lookup_ns"]
	}
	END { if (bad != "") print "\nlibdw computes another number of rows for:" bad }' "$work/out"
	echo "<!-- /unwind.sh -->"
} >"$work/section"
cat "$work/section"

touch "$output"
awk -v section="$work/section" '
	/^<!-- unwind.sh -->$/ { skip = 1; put = 1; while ((getline line < section) > 0) print line }
	!skip { print; seen = 1 }
	/^<!-- \/unwind.sh -->$/ { skip = 0 }
	END {
		if (put)
			exit
		if (seen)
			print ""
		while ((getline line < section) > 0)
			print line
	}' "$output" >"$work/results"
cp "$work/results" "$output"
