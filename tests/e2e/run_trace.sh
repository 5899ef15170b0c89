#!/bin/bash
# Execution traces: what Go 1.27's own reader hands out, event by event, is what `sonde trace events` prints; programs
# with known counts; damage. SONDE_TRACES: a folder with v2/*.trace, v2/EXPECT.tsv and malformed/*, looked at where set.
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

# Both dumps as records "time|lines" with equal-time runs sorted: the order of equal times is nobody's promise. A run is
# what follows each other by 1 ns, for equal times are moved apart by that.
normal() {
	sed -E '/^$/,$d; s/ p[0-9]+:[a-z]+->[a-z]+//' | awk '
		function flush(  i, j, t) {
			for (i = 2; i <= n; i++)
				for (j = i; j > 1 && run[j] < run[j - 1]; j--) {
					t = run[j]; run[j] = run[j - 1]; run[j - 1] = t
				}
			for (i = 1; i <= n; i++)
				print run[i]
			n = 0
		}
		/^ / { run[n] = run[n] "\n" $0; next }
		{
			if ($1 != last + 1) {
				flush()
				print "at " $1
			}
			last = $1
			sub(/^[-0-9]+ /, "")
			run[++n] = $0
		}
		END { flush() }'
}

same_dump() {
	"$ORACLE" dump "$1" >"$WORK/go" && "$SONDE" trace events --stacks --no-pager "$1" 2>/dev/null >"$WORK/ours" || return
	sed -E '/^$/,$d; s/ p[0-9]+:[a-z]+->[a-z]+//' "$WORK/ours" >"$WORK/ours.plain"
	cmp -s "$WORK/go" "$WORK/ours.plain" && return
	normal <"$WORK/go" >"$WORK/go.normal"
	normal <"$WORK/ours" >"$WORK/ours.normal"
	diff "$WORK/go.normal" "$WORK/ours.normal" | head -20
	cmp -s "$WORK/go.normal" "$WORK/ours.normal"
}

# counts FILE: "type count" a line, with what a reader makes of switches and syncs.
counts() {
	"$SONDE" trace events --no-pager "$1" | awk '/^$/ { exit } { n[$5]++ } END { for (t in n) print t, n[t] }' | LC_ALL=C sort
}

same_counts() {
	diff <("$ORACLE" count "$1" | LC_ALL=C sort) <(counts "$1")
}

# known FILE EXPECT: the program's own figures.
known() {
	local key want got bad=0
	counts "$1" >"$WORK/counts"
	while read -r key want; do
		case $key in
		worker)
			got=$("$SONDE" trace events --no-pager --stacks --type GoCreate "$1" | awk '/new_stack:/ { getline; if ($1 == "main.worker") n++ } END { print n + 0 }')
			;;
		read)
			got=$("$SONDE" trace events --no-pager --type GoSyscallBegin --function main.readNothing "$1" | grep -c GoSyscallBegin)
			;;
		*) got=$(awk -v key="$key" '$1 == key { print $2 }' "$WORK/counts") ;;
		esac
		[[ $got == "$want" ]] || {
			echo "$key: $got, the program says $want"
			bad=1
		}
	done <"$2"
	return $bad
}

through_pipe() {
	"$SONDE" trace events --no-pager "$1" >"$WORK/mapped"
	cmp <(gzip -1c "$1" | "$SONDE" trace events --no-pager -) "$WORK/mapped" &&
		cmp <(zstd -1qc "$1" | "$SONDE" trace events --no-pager -) "$WORK/mapped"
}

# A tail that is missing: what is left is read, and the loss is said.
cut_tail() {
	head -c $(($(stat -c %s "$1") * 9 / 10)) "$1" >"$WORK/cut"
	! "$SONDE" trace check "$WORK/cut" >"$WORK/check" 2>/dev/null && grep -q '^  damage:' "$WORK/check" &&
		(($("$SONDE" trace events --no-pager "$WORK/cut" | wc -l) > $("$SONDE" trace events --no-pager "$1" | wc -l) / 2))
}

followed() {
	: >"$WORK/grows"
	head -c 100000 "$1" >"$WORK/grows"
	"$SONDE" trace events --no-pager --quiet --follow "$WORK/grows" >"$WORK/followed" 2>/dev/null &
	local pid=$!
	sleep 0.3
	tail -c +100001 "$1" >>"$WORK/grows"
	# Until nothing has come for two seconds.
	local size=0 before=-1 still=0
	for ((i = 0; i < 300 && still < 20; i++)); do
		sleep 0.1
		before=$size size=$(wc -c <"$WORK/followed")
		((size > 10000 && size == before)) && still=$((still + 1)) || still=0
	done
	kill -TERM "$pid" # a shell without jobs has SIGINT ignored
	wait "$pid" || true
	"$SONDE" trace events --no-pager "$1" >"$WORK/mapped"
	cmp "$WORK/followed" "$WORK/mapped"
}

SONDE_GO_VERSIONS=${SONDE_GO_VERSIONS:-1.22 1.23 1.24 1.25 1.26 1.27}
for version in $SONDE_GO_VERSIONS; do
	[[ $version != 1.15 && $version != 1.19 && $version != 1.21 ]] || continue
	goroot=$("$ROOT/scripts/toolchains.sh" --path "$version" 2>/dev/null) || {
		skip "$version" "the toolchain is not there"
		continue
	}
	mkdir -p "$WORK/$version"
	cp "$ROOT/tests/data/src/tracer.go" "$WORK/$version/"
	trace=$WORK/$version/trace
	ok "$version: a program that traces itself" eval '(cd "$WORK/$version" && GOROOT=$goroot GOTOOLCHAIN=local GO111MODULE=off GOFLAGS= \
		GOCACHE=${GOCACHE:-$WORK/gocache} "$goroot/bin/go" build -o tracer tracer.go && ./tracer trace >expect)' || continue
	ok "$version: whole" "$SONDE" trace check "$trace"
	ok "$version: every event as Go reads it" same_dump "$trace"
	ok "$version: counts by type" same_counts "$trace"
	ok "$version: the program's own figures" known "$trace" "$WORK/$version/expect"
	ok "$version: GODEBUG=traceallocfree=1 and short generations" eval '(cd "$WORK/$version" &&
		GODEBUG=traceallocfree=1,traceadvanceperiod=20000000 ./tracer experiment >/dev/null) && same_dump "$WORK/$version/experiment"'
	ok "$version: a missing tail" cut_tail "$trace"
done
[[ -z ${trace-} || ! -s $trace ]] || {
	ok "through a pipe, compressed" through_pipe "$trace"
	ok "a file that grows" followed "$WORK/$version/experiment"
}

if [[ -d ${SONDE_TRACES-} ]]; then
	while IFS=$'\t' read -r name _ expect; do
		file=$SONDE_TRACES/v2/$name.trace
		case $expect in
		FAILURE*)
			want=${expect#*\"}
			want=${want%\"}
			ok "$name: diagnosed" eval '! "$SONDE" trace check "$file" >"$WORK/check" 2>/dev/null && grep -qE "$want" "$WORK/check"'
			;;
		*)
			ok "$name: whole" "$SONDE" trace check "$file"
			ok "$name: as Go reads it" same_dump "$file"
			;;
		esac
	done <"$SONDE_TRACES/v2/EXPECT.tsv"
	for file in "$SONDE_TRACES"/malformed/*; do
		ok "$(basename "$file"): neither crash nor hang" eval 'timeout 10 "$SONDE" trace check "$file" >/dev/null 2>&1; (($? < 2))'
	done
fi
tap_end
