#!/bin/bash
# A profile of scheduling latency beside `go tool trace -pprof=sched`, in one run: Go 1.27's tool on a trace of Go 1.27, Go
# 1.21's on one of Go 1.21. Writes the table into bench/RESULTS.md (between its two comment lines). The two profiles must hold
# the same samples. Go needs 90 times the file in memory: 100 MB take 9 GB and a minute of CPU time a run.
#
#   bench/trace_pprof.sh [--build FOLDER] [--output FILE] [--runs N] [VERSION:MEGABYTES...]      1.21:10 1.27:10 1.27:100
#
# CPU time (user and system) and peak of resident memory of the whole process by GNU time, the least of N runs each (3), in
# turn.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=build output=bench/RESULTS.md runs=3
while [[ ${1-} == --* ]]; do
	case $1 in
	--build) build=$2 ;;
	--output) output=$2 ;;
	--runs) runs=$2 ;;
	*)
		sed -n '2,/^set /s/^# \{0,1\}//p' "$0" | head -n -1
		exit 1
		;;
	esac
	shift 2
done
[[ $# -gt 0 ]] || set -- 1.21:10 1.27:10 1.27:100
# Not the shell's own: only GNU time tells the memory of what it runs apart from its own.
command -v /usr/bin/time >/dev/null || { echo "trace_pprof.sh: GNU time is not there: apt-get install time" >&2; exit 1; }
work=$(mktemp -d "${TMPDIR:-/var/tmp}/sonde-bench.XXXXXX")
trap 'rm -rf -- "$work"' EXIT

# CPU seconds and KiB of a command, into the file $1 as a line.
measure() {
	local to=$1
	shift
	/usr/bin/time -o "$work/time" -f '%U %S %M' "$@"
	awk '{ print $1 + $2, $3 }' "$work/time" >>"$to"
}

for pair; do
	version=${pair%:*} megabytes=${pair#*:}
	goroot=$(scripts/toolchains.sh --path "$version")
	go() {
		GOROOT=$goroot GOTOOLCHAIN=local GOFLAGS='' GO111MODULE=off GOPROXY=off \
			GOCACHE="${SONDE_GO_BUILD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sonde-go-build}" "$goroot/bin/go" "$@"
	}
	go build -o "$work/load" tests/data/src/traceload.go
	# On a busy machine the program notices late that it wrote enough, at times by far.
	for ((i = 0; ; i++)); do
		"$work/load" "$work/trace" "$megabytes" >/dev/null
		bytes=$(stat -c %s "$work/trace")
		[[ $bytes -gt $((megabytes * 1300000)) ]] || break
		[[ $i -lt 9 ]] || { echo "trace_pprof.sh: no trace of $megabytes MB: the last has $bytes bytes" >&2; exit 1; }
	done
	available=$(awk '/^MemAvailable/ { printf "%.0f", $2 * 1024 }' /proc/meminfo)
	[[ $available -gt $((bytes * 100)) ]] || {
		echo "trace_pprof.sh: go tool trace needs 100 times $bytes bytes, there are $available" >&2
		exit 1
	}
	# The tool itself: `go tool` would build it first, or count for itself.
	tool=$(go tool -n trace)
	if [[ ! -x $tool ]]; then
		go build -o "$work/tool" cmd/trace
		tool=$work/tool
	fi
	rm -f "$work/go.times" "$work/sonde.times"
	for ((i = 0; i < runs; i++)); do
		GOROOT=$goroot measure "$work/go.times" "$tool" -pprof=sched "$work/trace" >"$work/go.pb.gz"
		measure "$work/sonde.times" "$build/sonde" trace --pprof=sched -q -o "$work/sonde.pb.gz" "$work/trace"
	done
	tests/e2e/trace_pprof/compare.py --profiles "$goroot" "$work/go.pb.gz" "$work/sonde.pb.gz" >"$work/same" || {
		cat "$work/same" >&2
		echo "trace_pprof.sh: the profiles differ" >&2
		exit 1
	}
	awk -v version="$version" -v bytes="$bytes" -v samples="$(cat "$work/same")" '
		{ i = FILENAME ~ /go\.times$/ ? "go" : "sonde" }
		!(i in s) || $1 < s[i] { s[i] = $1 }
		!(i in k) || $2 < k[i] { k[i] = $2 }
		END { printf "| %s | %.1f | %s | %.2f | %.1f | %.1f | %.0f | %.0f | %.0f |\n", version, bytes / 1e6, samples,
			s["sonde"], k["sonde"] / 1024, s["go"], k["go"] / 1024, s["go"] / s["sonde"], k["go"] / k["sonde"] }' \
		"$work/go.times" "$work/sonde.times" >>"$work/rows"
done

{
	echo "<!-- trace_pprof.sh -->"
	echo "## A profile of a trace: --pprof=sched"
	echo
	echo "$(date -u +%F), $(awk -F': ' '/^model name/ { print $2; exit }' /proc/cpuinfo), $(nproc) CPUs, Linux $(uname -r)," \
		"load $(cut -d' ' -f1 /proc/loadavg); \`bench/trace_pprof.sh\`. The trace is of tests/data/src/traceload.go, by the Go" \
		"whose \`go tool trace -pprof=sched\` is the peer. CPU time and peak of resident memory of the whole process, ours with" \
		"the pages of the mapped file, the least of $runs runs each, in turn. Both profiles hold the same samples."
	echo
	echo "| Go | MB | samples | ours CPU s | ours peak MiB | Go CPU s | Go peak MiB | times faster | times less memory |"
	echo "|---|--:|--:|--:|--:|--:|--:|--:|--:|"
	cat "$work/rows"
	echo "<!-- /trace_pprof.sh -->"
} >"$work/table"
touch "$output"
awk -v table="$work/table" '
	/^<!-- trace_pprof.sh -->/ { skip = done = 1; while ((getline line < table) > 0) print line }
	!skip
	/^<!-- \/trace_pprof.sh -->/ { skip = 0 }
	END { if (!done) while ((getline line < table) > 0) print line }' "$output" >"$work/new"
cat "$work/new" >"$output"
cat "$work/table"
