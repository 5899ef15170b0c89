#!/bin/bash
# What an event of the recorder costs, beside Go 1.21's and 1.27's own tracers on the same operations, into
# bench/RESULTS.md (between its two comment lines).
#
#   bench/record.sh [--build FOLDER] [--output FILE]    the folder is set up with -Dbench=true
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
work=$(mktemp -d "${TMPDIR:-/var/tmp}/sonde-bench.XXXXXX")
trap 'rm -rf -- "$work"' EXIT

"$build/bench/bench_record" "$work/trace" >"$work/rows"
for version in 1.21 1.27; do
	goroot=$(scripts/toolchains.sh --path "$version") || continue
	GOROOT=$goroot GOTOOLCHAIN=local GOFLAGS='' GO111MODULE=off GOPROXY=off \
		"$goroot/bin/go" build -o "$work/go" bench/record_go/main.go
	"$work/go" "Go $version" >>"$work/rows"
done
{
	echo "<!-- record.sh -->"
	echo "## Recording an event"
	echo
	echo "$(date -u +%F), $(awk -F': ' '/^model name/ { print $2; exit }' /proc/cpuinfo), $(nproc) CPUs, Linux $(uname -r)," \
		"load $(cut -d' ' -f1 /proc/loadavg); \`bench/record.sh\`. CPU time of the writing thread, ns an operation, the least of" \
		"7 runs of 4,000,000; into a file. Go writes to a discarding writer, GOMAXPROCS=1, time of the whole process."
	echo
	echo "| what | on | off | bytes an event |"
	echo "|---|--:|--:|--:|"
	cat "$work/rows"
	echo "<!-- /record.sh -->"
} >"$work/section"
touch "$output"
sed '/^<!-- record.sh -->$/,/^<!-- \/record.sh -->$/d' "$output" >"$work/results"
cat "$work/results" "$work/section" >"$output"
sed -n '/^|/p' "$work/section"
