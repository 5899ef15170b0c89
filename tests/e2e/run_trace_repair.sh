#!/bin/bash
# `sonde trace repair`: what it writes is whole, Go 1.27's own reader takes it, and what it says was dropped and invented
# is all that differs. SONDE_TRACES: a folder with v2/* and malformed/*, looked at where set.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

ORACLE=$WORK/oracle
status=0
"$E2E/trace_oracle.sh" "$ORACLE" >"$WORK/oracle.log" 2>&1 || status=$?
if ((status)); then
	if ((status == 77)); then
		skip "Go's own reader" "Go 1.27 is not there"
	else
		ok "Go's own reader" eval 'cat "$WORK/oracle.log"; false'
	fi
	tap_end
	exit
fi

# repaired FILE: as the head of this file says.
repaired() {
	rm -f "$WORK/whole"
	limited "$SONDE" trace repair --json -o "$WORK/whole" "$1" >"$WORK/report.json" || return
	"$SONDE" trace check "$WORK/whole" || return
	"$ORACLE" count "$WORK/whole" >"$WORK/counts" || return
	! grep error: "$WORK/counts" || return
	"$SONDE" trace events --no-pager --quiet "$1" >"$WORK/before" 2>/dev/null
	"$SONDE" trace events --no-pager --quiet "$WORK/whole" >"$WORK/after" || return
	"$E2E/trace_repair/compare.py" "$WORK/before" "$WORK/after" "$WORK/report.json"
}

all_repaired() {
	local file bad=0
	for file in "$1"/*; do
		repaired "$file" || {
			echo "^ ${file##*/}"
			bad=1
		}
	done
	return $bad
}

same_bytes() {
	"$SONDE" trace repair -o "$WORK/whole" "$1" >/dev/null && cmp "$1" "$WORK/whole"
}

# Nothing stands under the final name, and what stood there stays, where the disk is full.
full_disk() {
	echo before >"$WORK/target"
	! (
		ulimit -f 4 # KiB
		trap '' XFSZ
		"$SONDE" trace repair -o "$WORK/target" "$1"
	) && [[ $(cat "$WORK/target") == before ]] && [[ -z $(find "$WORK" -maxdepth 1 -name '*target*' ! -name target) ]]
}

for version in $VERSIONS; do
	[[ $version != 1.15 && $version != 1.19 && $version != 1.21 ]] || continue
	goroot=$("$ROOT/scripts/toolchains.sh" --path "$version" 2>/dev/null) || {
		skip "$version" "the toolchain is not there"
		continue
	}
	mkdir -p "$WORK/$version"
	cp "$ROOT/tests/data/src/tracer.go" "$WORK/$version/"
	ok "$version: a program that traces itself" eval '(cd "$WORK/$version" && GOROOT=$goroot GOTOOLCHAIN=local GO111MODULE=off GOFLAGS= \
		GOCACHE=${GOCACHE:-$WORK/gocache} "$goroot/bin/go" build -o tracer tracer.go &&
		GODEBUG=traceallocfree=1,traceadvanceperiod=20000000 ./tracer trace >/dev/null)' || continue
	trace=$WORK/$version/trace
	ok "$version: a whole trace stays the same" same_bytes "$trace"
	"$E2E/trace_repair/damage.py" "$trace" "$WORK/$version/damaged" 20
	ok "$version: cut, changed, missing, foreign and repeated bytes" all_repaired "$WORK/$version/damaged"
	ok "$version: the disk is full" full_disk "$trace"
	ok "$version: not over itself" eval '! "$SONDE" trace repair -o "$trace" "$trace" 2>/dev/null && same_bytes "$trace"'
done

if [[ -d ${SONDE_TRACES-} ]]; then
	for file in "$SONDE_TRACES"/v2/*.trace "$SONDE_TRACES"/malformed/*; do
		case $(head -c 9 "$file" | tr -d '\0') in
		'go 1.22 t' | 'go 1.23 t' | 'go 1.25 t' | 'go 1.26 t') ok "$(basename "$file")" repaired "$file" ;;
		*) ok "$(basename "$file"): refused" eval '! "$SONDE" trace repair -o "$WORK/none" "$file" 2>/dev/null && [[ ! -e $WORK/none ]]' ;;
		esac
	done
fi
tap_end
