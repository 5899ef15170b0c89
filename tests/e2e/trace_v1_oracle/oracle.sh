#!/bin/bash
# Builds Go 1.21's own reader of traces as a program: oracle.sh OUTPUT. internal/trace can be imported only from within
# Go's tree: -overlay puts these files there for the compiler, and nothing is written to it. Exit status 77: no Go 1.21.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
goroot=$("$here/../../../scripts/toolchains.sh" --path 1.21) || exit 77
src=$(readlink -f "$goroot/src") # cmd is found by its real path, packages by GOROOT
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
at=$goroot/src/internal/sondetrace
cat >"$work/overlay.json" <<END
{"Replace": {
	"$src/cmd/sondev1/main.go": "$here/main.go.txt",
	"$at/export.go": "$here/export.go.txt",
	"$at/goroutines.go": "$src/internal/trace/goroutines.go",
	"$at/order.go": "$src/internal/trace/order.go",
	"$at/parser.go": "$src/internal/trace/parser.go"
}}
END
output=$(realpath -m "$1")
cd "$src/cmd"
GOROOT=$goroot GOTOOLCHAIN=local GOFLAGS= GOPROXY=off "$goroot/bin/go" build -overlay "$work/overlay.json" -o "$output" ./sondev1
