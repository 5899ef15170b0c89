#!/bin/bash
# Execution traces of Go 1.5 to 1.21: what Go 1.21's own reader makes of them, event by event with time stamps (equal times
# as sets), is what the stream has; programs with known counts; pipes and compression; damage; names of 1.5 by --exe.
# SONDE_TRACES: a folder with v1/* and malformed/*, looked at where set.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

DUMP=$(dirname "$SONDE")/tests/trace_v1_dump
TRACE=("$SONDE" trace)

go() {
	local goroot=$1
	shift
	env -u GOPATH -u GOBIN GOROOT="$goroot" GOTOOLCHAIN=local GOPROXY=off GOENV=off GOFLAGS='' GO111MODULE=off CGO_ENABLED=0 \
		GOCACHE="${SONDE_GO_BUILD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sonde-go-build}" "$goroot/bin/go" "$@"
}

status=0
"$E2E/trace_v1_oracle/oracle.sh" "$WORK/oracle" >"$WORK/oracle.log" 2>&1 || status=$?
if ((status == 77)); then
	skip "Go 1.21's own reader" "Go 1.21 is not there"
	tap_end
elif ((status)); then
	ok "Go 1.21's own reader" eval 'cat "$WORK/oracle.log"; false'
	tap_end
fi

# By time and offset; stacks by id.
in_order() {
	grep -v '^stack ' "$1" | LC_ALL=C sort -s -k1,1n -k5,5n
	grep '^stack ' "$1" | LC_ALL=C sort -s -k2,2n
}

# What neither has frames of is the same as what it does not have.
same_dump() {
	"$WORK/oracle" dump "$1" stacks >"$WORK/go" && "$DUMP" "$1" stacks 2>"$WORK/err" >"$WORK/ours" || {
		head -3 "$WORK/go" "$WORK/err"
		return 1
	}
	awk 'NR == FNR { if ($1 == "stack") ours[$2]; next } $1 != "stack" || $2 in ours' "$WORK/ours" "$WORK/go" >"$WORK/go.asked"
	awk '$1 != "stack" || NF > 2' "$WORK/ours" >"$WORK/ours.asked"
	in_order "$WORK/go.asked" >"$WORK/go.sorted"
	in_order "$WORK/ours.asked" >"$WORK/ours.sorted"
	awk -v second="$WORK/ours.sorted" -f "$E2E/trace_v1_compare.awk" "$WORK/go.sorted"
}

# The counts that the program printed.
same_counts() {
	"${TRACE[@]}" events --no-pager "$1" | awk '/^$/ { exit } { n[$5]++ } END { for (t in n) print t, n[t] }' >"$WORK/counts"
	awk 'NR == FNR { n[$1] = $2; next } $1 in n && n[$1] != $2 { print $1, n[$1], "want", $2; bad = 1 } END { exit bad }' \
		"$WORK/counts" "$2"
	[[ $(grep -c . "$WORK/counts") -gt 10 ]]
}

same_by_other_ways() {
	"${TRACE[@]}" events --no-pager "$1" >"$WORK/plain" || return
	"${TRACE[@]}" events --no-pager - <"$1" | cmp - "$WORK/plain" || return
	cat "$1" | "${TRACE[@]}" events --no-pager - | cmp - "$WORK/plain" || return
	gzip -c "$1" >"$WORK/t.gz" && "${TRACE[@]}" events --no-pager "$WORK/t.gz" | cmp - "$WORK/plain" || return
	zstd -qc "$1" >"$WORK/t.zst" && "${TRACE[@]}" events --no-pager "$WORK/t.zst" | cmp - "$WORK/plain"
}

# says PATTERN FILE: check fails and says so.
says() {
	local output status=0
	output=$("${TRACE[@]}" check "$2" 2>&1) || status=$?
	[[ $status -eq 1 ]] && grep -qE -- "$1" <<<"$output" || {
		echo "status $status"
		head -5 <<<"$output"
		return 1
	}
}

damaged() {
	local size
	size=$(stat -c %s "$1")
	head -c $((size * 2 / 3)) "$1" >"$WORK/cut"
	says 'frequency' "$WORK/cut" || return
	{
		head -c $((size / 2)) "$1"
		echo "a line that a log wrote into the same file"
		tail -c +$((size / 2 + 1)) "$1"
	} >"$WORK/foreign"
	says 'bytes lost' "$WORK/foreign"
}

for version in 1.15 1.19 1.21 1.22; do
	if ! goroot=$("$ROOT/scripts/toolchains.sh" --path "$version" 2>"$WORK/log"); then
		skip "traces of Go $version" "$(tail -1 "$WORK/log")"
		continue
	fi
	[[ $version != 1.22 ]] || export GOEXPERIMENT=noexectracer2
	if ! (cd "$ROOT/tests/data/src" && go "$goroot" build -o "$WORK/tracer" tracer.go &&
		go "$goroot" build -o "$WORK/load" traceload.go) >"$WORK/log" 2>&1; then
		[[ $version == 1.22 ]] && skip "traces of Go 1.22 by its old tracer" "it does not build" ||
			ok "programs of Go $version" eval 'cat "$WORK/log"; false'
		unset GOEXPERIMENT
		continue
	fi
	unset GOEXPERIMENT
	"$WORK/tracer" "$WORK/trace" 2 >"$WORK/want"
	"$WORK/load" "$WORK/busy" 1 >/dev/null
	ok "Go $version: event by event as Go 1.21" same_dump "$WORK/trace"
	results "Go $version: the time of goroutines as Go 1.21 has it" "$E2E/trace_v1_oracle/goroutines.py" "$SONDE" "$WORK/oracle" \
		"$WORK/trace" "$WORK/busy"
	ok "Go $version: the counts of the program" same_counts "$WORK/trace" "$WORK/want"
	ok "Go $version: whole" "${TRACE[@]}" check "$WORK/trace"
	ok "Go $version: a busy one, event by event" same_dump "$WORK/busy"
	ok "Go $version: piped and compressed" same_by_other_ways "$WORK/trace"
	ok "Go $version: damaged" damaged "$WORK/busy"
done

# A 1.5 trace with the addresses of an executable that has a function table of that kind.
names_of_15() {
	local goroot=$1
	(cd "$ROOT/tests/data/src" && go "$goroot" build -o "$WORK/exe" tracer.go) || return
	local addr
	addr=$(go "$goroot" tool nm "$WORK/exe" | awk '$3 == "main.main" { print $1 }')
	python3 - "$WORK/trace15" "$addr" <<'END' || return
import sys
def u(v):
    out = b""
    while v >= 128:
        out += bytes([v & 127 | 128])
        v >>= 7
    return out + bytes([v])
def record(kind, *args):
    if len(args) < 5:
        return bytes([kind | len(args) - 2 << 6]) + b"".join(map(u, args))
    body = b"".join(map(u, args))
    return bytes([kind | 3 << 6]) + u(len(body)) + body
pc = int(sys.argv[2], 16)
trace = b"go 1.5 trace\0\0\0\0" + record(1, 0, 0, 1000)
trace += record(13, 1, 1, 7, pc, 1)  # GoCreate
trace += record(3, 1, 3, pc + 1, pc + 60, pc + 200) + record(2, 1000000000, 0)
open(sys.argv[1], "wb").write(trace)
END
	"$DUMP" "$WORK/trace15" stacks "$WORK/exe" >"$WORK/named"
	for offset in 0 59 199; do
		printf '0x%x\n' $((0x$addr + offset))
	done | go "$goroot" tool addr2line "$WORK/exe" | paste -d: - - >"$WORK/lines"
	awk '$1 == "stack" { for (i = 3; i <= NF; i += 4) print $(i + 1) ":" $(i + 2) ":" $(i + 3) }' "$WORK/named" |
		diff - "$WORK/lines" || return
	"${TRACE[@]}" events --no-pager --exe "$WORK/exe" --stacks "$WORK/trace15" | grep -q main.main
}
for version in 1.15 1.19; do
	if goroot=$("$ROOT/scripts/toolchains.sh" --path "$version" 2>/dev/null); then
		ok "names of a 1.5 trace by an executable of Go $version" names_of_15 "$goroot"
	else
		skip "names of a 1.5 trace by an executable of Go $version" "Go $version is not there"
	fi
done

if [[ -n ${SONDE_TRACES-} ]]; then
	for file in "$SONDE_TRACES"/v1/*; do
		if [[ $file == *_unordered ]]; then
			ok "${file##*/}" says 'no consistent order' "$file"
		else
			ok "${file##*/}" same_dump "$file"
		fi
	done
	results "the time of goroutines as Go 1.21 has it" "$E2E/trace_v1_oracle/goroutines.py" "$SONDE" "$WORK/oracle" \
		"$SONDE_TRACES"/v1/*
	# None crashes, none hangs.
	survives() {
		local status=0
		timeout 10 "${TRACE[@]}" check "$1" >/dev/null 2>&1 || status=$?
		[[ $status -le 1 ]]
	}
	for file in "$SONDE_TRACES"/malformed/*; do
		ok "malformed ${file##*/}" survives "$file"
	done
fi
tap_end
