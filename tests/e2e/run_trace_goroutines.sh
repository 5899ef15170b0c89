#!/bin/bash
# Where the time of goroutines went, against Go's own summarizer, goroutine by goroutine and to the nanosecond: traces of
# a program built with each Go version, and the corpus of ../shared/data where it is there.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

go() {
	local goroot=$1
	shift
	env -u GOROOT -u GOPATH -u GOBIN GOTOOLCHAIN=local GOPROXY=off GOENV=off CGO_ENABLED=0 \
		GOCACHE="${SONDE_GO_BUILD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sonde-go-build}" "$goroot/bin/go" "$@"
}

if ! go127=$("$ROOT/scripts/toolchains.sh" --path 1.27 2>"$WORK/log"); then
	skip "goroutines against Go's summarizer" "$(tail -1 "$WORK/log")"
	tap_end
	exit
fi
src=$(readlink -f "$go127/src")
# MutatorUtilizationV2 never forgets a mark worker: one that starts again counts twice and is taken away once, so that its
# processor is the collector's for ever. The oracle forgets it when it stops, as Go 1.21's MutatorUtilization did.
# shellcheck disable=SC2016
sed '/Stopped running while doing GC things/{n;s/$/\n\t\t\t\t\tdelete(bgMark, g)/}' "$src/internal/trace/gc.go" >"$WORK/gc.go"
ok "the oracle's mark workers stop" eval '[[ $(grep -c "delete(bgMark, g)" "$WORK/gc.go") == 1 ]]'
cat >"$WORK/overlay.json" <<END
{"Replace": {"$src/cmd/sondegoroutines/main.go": "$E2E/trace_goroutines/main.go",
	"$go127/src/internal/trace/gc.go": "$WORK/gc.go"}}
END
build_oracle() {
	cd "$src/cmd" && GOFLAGS=-mod=vendor go "$go127" build -overlay "$WORK/overlay.json" -o "$WORK/oracle" ./sondegoroutines
}
ok "Go's summarizer builds" build_oracle

same() {
	"$E2E/trace_goroutines/compare.py" "$SONDE" "$WORK/oracle" "$@"
}
for version in $VERSIONS; do
	if ! goroot=$("$ROOT/scripts/toolchains.sh" --path "$version" 2>"$WORK/log"); then
		skip "goroutines of a trace of Go $version" "$(tail -1 "$WORK/log")"
		continue
	fi
	traced() {
		cd "$ROOT/tests/data/src" && GO111MODULE=off GOFLAGS="" go "$goroot" build -o "$WORK/tracer" tracer.go &&
			"$WORK/tracer" "$WORK/$version.trace" 3 >/dev/null && same "$WORK/$version.trace"
	}
	ok "goroutines of a trace of Go $version" traced

	# The sums are those of the single ones.
	sums() {
		"$SONDE" trace goroutines --json "$WORK/$version.trace" >"$WORK/sums" &&
			"$SONDE" trace goroutines --json --all "$WORK/$version.trace" >"$WORK/all" &&
			jq -e -n --slurpfile s "$WORK/sums" --slurpfile a "$WORK/all" '
				($s[0].total | del(.goroutines)) == $a[0].total and
				([$s[0].entries[] | [.entry, .goroutines, .running_ns]] | sort) ==
				([$a[0].goroutines | group_by(.entry)[] |
					[.[0].entry, length, (map(.running_ns) | add)]] | sort)'
	}
	ok "sums by entry function, Go $version" sums
	# Eight workers a round, as the program says.
	workers() {
		equal "$(jq '[.entries[] | select(.entry == "main.worker").goroutines] | add' "$WORK/sums")" \
			"$("$WORK/tracer" "$WORK/again.trace" 3 | awk '$1 == "worker" { print $2 }')"
	}
	ok "as many workers as the program started, Go $version" workers
	results "regions, tasks, pauses, collections of Go $version" \
		"$E2E/trace_goroutines/annotations.py" "$SONDE" "$WORK/oracle" "$WORK/$version.trace"
	# As many as the program says that it made.
	known() {
		local said
		said=$("$WORK/tracer" "$WORK/again.trace" 3)
		equal "$("$SONDE" trace tasks --json "$WORK/again.trace" | jq .seen)" "$(awk '$1 == "UserTaskBegin" { print $2 }' <<<"$said")" &&
			equal "$("$SONDE" trace regions --json "$WORK/again.trace" | jq .seen)" \
				"$(awk '$1 == "UserRegionBegin" { print $2 }' <<<"$said")" &&
			equal "$("$SONDE" trace gc --json "$WORK/again.trace" | jq .collections)" "$(awk '$1 == "GCEnd" { print $2 }' <<<"$said")"
	}
	ok "as many tasks, regions and collections as the program made, Go $version" known
done

corpus=$ROOT/../shared/data/traces/v2
if [[ -d $corpus ]]; then
	ok "goroutines of the corpus" same "$corpus"/*.trace
	results "regions, tasks, pauses, collections of the corpus" \
		"$E2E/trace_goroutines/annotations.py" "$SONDE" "$WORK/oracle" "$corpus"/*.trace
else
	skip "goroutines of the corpus" "../shared/data is not there"
fi

absent() {
	local status=0
	"$SONDE" trace goroutines -g 987654321 "$WORK/1.27.trace" >"$WORK/out" 2>&1 || status=$?
	[[ $status == 1 && $(<"$WORK/out") == *"no goroutine 987654321"* ]]
}
[[ ! -e $WORK/1.27.trace ]] || ok "a goroutine that is not there" absent
tap_end
