#!/bin/bash
# Sets up, builds and runs every test; the last line is "N passed, N failed", with ", N skipped" where some were.
#
#   test.sh [STAGE...]    stages: unit asan style e2e (default: all of them)
#
# Build folders: build (release) and build-asan (address and undefined-behaviour sanitizers). Go toolchains come from
# scripts/toolchains.sh. Exit status 1 if anything failed or nothing ran.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
ROOT=$PWD

[[ $# -gt 0 ]] || set -- unit asan style e2e
shared=$(mktemp -d) || exit 1
trap 'rm -rf -- "$shared"' EXIT
counts=$shared/counts
: >"$counts"

# stage NAME COMMAND...: runs it and says how long it took. A stage that fails without a count of its own is one failure.
stage() {
	local name=$1 started=$SECONDS before status=0
	shift
	before=$(wc -l <"$counts")
	echo "== $name"
	"$@" || status=$?
	if [[ $status -ne 0 && $(wc -l <"$counts") -eq $before ]]; then
		echo "FAIL $name: exit status $status"
		echo "0 1 0" >>"$counts"
	fi
	echo "== $name: $((SECONDS - started)) s"
	return "$status"
}

tests() {
	python3 scripts/run_tests.py --counts "$counts" "$@"
}

build() {
	local folder=$1 output
	shift
	[[ -f $folder/build.ninja ]] || output=$(meson setup "$folder" "$@" 2>&1) || {
		echo "$output"
		return 1
	}
	ninja -C "$folder" >"$folder/build.log" 2>&1 || {
		cat "$folder/build.log"
		return 1
	}
}

asan_build() {
	build build-asan -Db_sanitize=address,undefined -Dbuildtype=debugoptimized
}

style() {
	tests --exit scripts/layers.sh "$(printf 'scripts/format.sh\t--check')"
}

e2e() {
	local scripts=(tests/e2e/run_*.sh)
	[[ -f ${scripts[0]} ]] || {
		echo "no end-to-end tests"
		return 0
	}
	scripts/toolchains.sh >/dev/null || return
	mkdir "$shared/cores"
	SONDE=$ROOT/build/sonde SONDE_E2E_CORES=$shared/cores tests "${scripts[@]}"
}

stage packages scripts/deps.sh || set --
for name; do
	case $name in
	unit) stage "build" build build && stage unit tests --meson build ;;
	asan) stage "asan build" asan_build && stage asan tests --meson build-asan --label asan: ;;
	style) stage style style ;;
	e2e) stage "build" build build && stage e2e e2e ;;
	*) stage "$name: no such stage" false ;;
	esac
done

awk '{ passed += $1; failed += $2; skipped += $3 }
	END {
		printf "%d passed, %d failed", passed, failed
		if (skipped)
			printf ", %d skipped", skipped
		printf "\n"
		exit !(failed == 0 && passed > 0)
	}' "$counts"
