#!/bin/bash
# Reads traces of Go 1.21 beside Go 1.21's own Parse, and writes the table into bench/RESULTS.md (between its two comment
# lines). Go needs 80 times the file in memory: the run of 100 MB takes 8 GB and two minutes, beyond 200 MB it is left out.
#
#   bench/trace_v1.sh [--build FOLDER] [--output FILE] [MEGABYTES...]    the folder is set up with -Dbench=true; 10 100 1000
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
[[ $# -gt 0 ]] || set -- 10 100 1000
work=$(mktemp -d "${TMPDIR:-/var/tmp}/sonde-bench.XXXXXX")
trap 'rm -rf -- "$work"' EXIT

goroot=$(scripts/toolchains.sh --path 1.21)
GOROOT=$goroot GOTOOLCHAIN=local GOFLAGS='' GO111MODULE=off GOPROXY=off \
	"$goroot/bin/go" build -o "$work/load" tests/data/src/traceload.go
tests/e2e/trace_v1_oracle/oracle.sh "$work/oracle"

figure() {
	sed -n "s/.*$1=\([^ ]*\).*/\1/p" <<<"$2"
}

for megabytes; do
	"$work/load" "$work/trace" "$megabytes" >/dev/null
	best=
	for _ in 1 2 3 4 5; do
		line=$("$build/bench/bench_trace_v1" "$work/trace")
		[[ -n $best ]] && awk "BEGIN { exit !($(figure cpu_s "$line") >= $(figure cpu_s "$best")) }" || best=$line
	done
	go=
	((megabytes > 200)) || go=$("$work/oracle" parse "$work/trace")
	[[ (-z $go || $(figure events "$best") == "$(figure events "$go")") && $(figure whole "$best") == 1 ]] || {
		echo "trace_v1.sh: the readers differ: $best; $go" >&2
		exit 1
	}
	awk -v bytes="$(stat -c %s "$work/trace")" -v events="$(figure events "$best")" -v s="$(figure cpu_s "$best")" \
		-v kib="$(figure peak_rss_kib "$best")" -v gs="$(figure cpu_s "$go")" -v gw="$(figure wall_s "$go")" \
		-v gkib="$(figure peak_rss_kib "$go")" 'BEGIN {
		printf "| %.1f | %.2f | %.3f | %.1f | %.1f | %.1f |", bytes / 1e6, events / 1e6, s, bytes / 1e6 / s,
			s * 1e9 / events, kib / 1024
		if (gs == "")
			print " - | - | - | - | - | - |"
		else
			printf " %.1f | %.1f | %.2f | %.0f | %.0f | %.0f |\n", gs, gw, bytes / 1e6 / gs, gkib / 1024, gs / s, gkib / kib }' >>"$work/rows"
done

{
	echo "<!-- trace_v1.sh -->"
	echo "## Traces of Go 1.21 and before"
	echo
	echo "$(date -u +%F), $(awk -F': ' '/^model name/ { print $2; exit }' /proc/cpuinfo), $(nproc) CPUs, Linux $(uname -r)," \
		"load $(cut -d' ' -f1 /proc/loadavg); \`bench/trace_v1.sh\`. CPU seconds; ours the least of 5 runs, Go's one run of" \
		"Parse. Both read the same events; peak is resident memory, for ours with the pages of the mapped file."
	echo
	echo "| MB | M events | ours s | ours MB/s | ns an event | ours peak MiB | Go s | Go wall s | Go MB/s | Go peak MiB | times faster | times less memory |"
	echo "|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
	cat "$work/rows"
	echo "<!-- /trace_v1.sh -->"
} >"$work/table"
touch "$output"
awk -v table="$work/table" '
	/^<!-- trace_v1.sh -->/ { skip = done = 1; while ((getline line < table) > 0) print line }
	!skip
	/^<!-- \/trace_v1.sh -->/ { skip = 0 }
	END { if (!done) while ((getline line < table) > 0) print line }' "$output" >"$work/new"
cat "$work/new" >"$output"
cat "$work/table"
