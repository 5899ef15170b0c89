#!/bin/bash
# Builds sonde and shows what it says of the bundled core: a small order service that crashed and leaks goroutines.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/deps.sh build
[[ -f build/build.ninja ]] || meson setup build >/dev/null
ninja -C build sonde >build/build.log 2>&1 || {
	cat build/build.log >&2
	exit 1
}

demo=$(mktemp -d)
trap 'rm -rf -- "$demo"' EXIT
zstd -q -d tests/data/demo.exe.zst -o "$demo/demo"
zstd -q -d --sparse tests/data/demo.core.zst -o "$demo/core"

# show COMMAND LINES [ARG...]: the first lines of one report.
show() {
	local command=$1 lines=$2
	shift 2
	printf '\n$ sonde core %s demo.core%s\n' "$command" "${*:+ $*}"
	build/sonde core "$command" "$demo/core" --exe "$demo/demo" "$@" >"$demo/out"
	head -n "$lines" "$demo/out"
	[[ $(wc -l <"$demo/out") -le $lines ]] || echo "... ($(wc -l <"$demo/out") lines in all)"
}
show overview 40
show histogram 25
show goroutines 60
