#!/bin/bash
# Builds a small program over Go 1.27's internal/trace (trace_oracle/*.go), laid over its tree: trace_oracle.sh OUT
# Exit status 77 where the toolchain is not there.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
goroot=$("$here/../../scripts/toolchains.sh" --path 1.27) || exit 77
out=$(realpath -m "$1")
work=$(mktemp -d "${TMPDIR:-/tmp}/sonde-oracle.XXXXXX")
trap 'rm -rf -- "$work"' EXIT
# The tree may be reached by links: both names stand in the overlay.
{
	printf '{"Replace":{'
	comma=
	for src in "$goroot/src" "$(readlink -f "$goroot/src")"; do
		printf '%s"%s":"%s","%s":"%s"' "$comma" "$src/cmd/sondeoracle/main.go" "$here/trace_oracle/main.go" \
			"$src/internal/trace/sonde_dump.go" "$here/trace_oracle/dump.go"
		comma=,
		[[ $(readlink -f "$goroot/src") != "$goroot/src" ]] || break
	done
	printf '}}'
} >"$work/overlay.json"
cd "$goroot/src/cmd"
GOROOT=$goroot GOTOOLCHAIN=local GOFLAGS= GOCACHE=${GOCACHE:-$work/cache} GOENV=off \
	"$goroot/bin/go" build -overlay "$work/overlay.json" -o "$out" cmd/sondeoracle
