#!/bin/bash
# The recorder: a program that records itself says what it did (tests/e2e/record/work.c); our reader and Go's own tools say
# what the trace holds. Go 1.21's reader checks every transition, those of 1.24 and 1.27 read what they have.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

go() {
	local goroot=$1
	shift
	env -u GOROOT -u GOPATH -u GOBIN GOTOOLCHAIN=local GOPROXY=off GOENV=off CGO_ENABLED=0 \
		GOCACHE="${SONDE_GO_BUILD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sonde-go-build}" "$goroot/bin/go" "$@"
}

library=$(dirname "$SONDE")/libsonde-record.a
flags=()
! grep -q __asan_init "$SONDE" || flags=(-fsanitize=address,undefined)
build() {
	"${CC:-cc}" -std=gnu17 -O2 -g -Wall -Wextra -fno-omit-frame-pointer -I"$ROOT/include" "${flags[@]}" "$E2E/record/work.c" \
		"$library" -lpthread -o "$WORK/work"
}
ok "the program builds with the static library and libc alone" build
with_shared() {
	"${CC:-cc}" -std=gnu17 -O2 -I"$ROOT/include" "${flags[@]}" "$E2E/record/work.c" -L"$(dirname "$SONDE")" \
		-l:libsonde-record.so.0 -Wl,-rpath,"$(dirname "$SONDE")" -o "$WORK/work.shared" &&
		"$WORK/work.shared" threads "$WORK/shared.trace" 20 && "$SONDE" trace check "$WORK/shared.trace"
}
ok "and with the shared one" with_shared
exports() {
	! nm -D --defined-only "$(dirname "$SONDE")/libsonde-record.so.0" | awk '{ print $3 }' | grep -v '^sonde_record_'
}
[[ ${#flags[@]} -gt 0 ]] || ok "the shared library exports its interface only" exports

# said NAME: what the program printed
said() {
	awk -v name="$1" '$1 == name { print $2 }' "$WORK/said"
}

# counts NAME...: our reader counts as many as the program says
counts() {
	local name bad=0
	"$SONDE" trace overview --json "$WORK/trace" >"$WORK/overview" || return 1
	for name; do
		equal "$(jq --arg n "$name" '[.types[] | select(.type == $n).count] | add // 0' "$WORK/overview")" "$(said "$name")" ||
			{ echo "($name)"; bad=1; }
	done
	return $bad
}

recorded() {
	local mode=$1
	shift
	"$WORK/work" "$mode" "$WORK/trace" "$@" >"$WORK/said" && cat "$WORK/said" && "$SONDE" trace check "$WORK/trace"
}

ok "16 threads: tasks, regions, logs, blocking, system calls: whole" recorded threads 160
ok "as many events of each kind as the program says" counts UserTaskCreate UserTaskEnd UserRegion UserLog GoBlockSync \
	GoSysCall GoSysBlock GoSysExit GoCreate GoEnd GoBlock
within() {
	local ns
	ns=$("$SONDE" trace goroutines --json "$WORK/trace" |
		jq '[.blocked[] | select(.reason == "sync").blocked_ns] | add')
	echo "sync: $ns ns, between $(said blocked_least) and $(said blocked_most)"
	# The measured frequency of the clock may be off by a thousandth.
	jq -n -e "$ns >= $(said blocked_least) * 0.999 and $ns <= $(said blocked_most) * 1.001"
}
ok "blocked as long as the program measured" within

# Go's own readers: what they say of the same trace.
for version in 1.21 $VERSIONS; do
	if ! goroot=$("$ROOT/scripts/toolchains.sh" --path "$version" 2>"$WORK/log"); then
		skip "go tool trace $version" "$(tail -1 "$WORK/log")"
		continue
	fi
	accepts() {
		local kind
		for kind in net sync syscall sched; do
			go "$goroot" tool trace -pprof=$kind "$WORK/trace" >"$WORK/$kind.pprof" || return 1
		done
	}
	ok "go tool trace $version reads it" accepts
	[[ $version != 1.22 ]] || continue
	# Blocking by stack: the whole of it lies in one_item, called by worker.
	by_stack() {
		go "$goroot" tool pprof -raw "$WORK/sync.pprof" >"$WORK/raw" || return 1
		cat "$WORK/raw"
		awk -v least="$(said blocked_least)" -v most="$(said blocked_most)" -v n="$(said GoBlockSync)" '
			/^Samples/ { samples = 1; next }
			/^Locations/ { samples = 0; locations = 1; next }
			samples && $1 ~ /^[0-9]+$/ { count += $1; ns += $2; first[$3] = 1 }
			locations && / one_item / { inner = $1 }
			END { sub(":", "", inner)
				for (f in first) bad += f != inner
				exit !(count == n && ns >= least * 0.999 && ns <= most * 1.001 && !bad) }' <(sed 's/: */ /' "$WORK/raw")
	}
	case $version in
	1.21 | 1.27) ok "$version: blocked in one_item, as often and as long as the program says" by_stack ;;
	esac
done

ok "fibers of two processors, half of them from before: whole" recorded fibers 2000
ok "fibers: as many events as the program says" counts UserRegion UserLog GoEnd GoBlockRecv GoWaiting
for version in 1.21 1.27; do
	goroot=$("$ROOT/scripts/toolchains.sh" --path "$version" 2>/dev/null) || continue
	ok "go tool trace $version reads fibers" eval 'go "$goroot" tool trace -pprof=sched "$WORK/trace" >/dev/null'
done
ok "200,000 fibers" recorded fibers 200000
ok "200,000 fibers: as many events" counts UserRegion UserLog GoEnd GoBlockRecv GoWaiting

ok "a stream whose writers wait for the reader: whole" recorded stream-block 100000
ok "nothing is lost" counts UserLog GoBlockSync
equal_said() {
	equal "$(said "$1")" "$2"
}
ok "and nothing counted as dropped" equal_said dropped 0
ok "a stream that drops: whole" recorded stream-drop 100000
ok "recorded and dropped are what was issued" counts UserLog GoBlockSync

storm() {
	local trace bad=0
	"$WORK/work" storm "$WORK/storm" 60 >"$WORK/said" || return 1
	cat "$WORK/said"
	[[ ! -s $WORK/said ]] || return 1
	for trace in "$WORK"/storm.*; do
		"$SONDE" trace check "$trace" >"$WORK/check" || { echo "$trace"; cat "$WORK/check"; bad=1; }
	done
	return $bad
}
ok "60 traces begun and ended while 8 threads do everything: each whole" storm
if goroot=$("$ROOT/scripts/toolchains.sh" --path 1.21 2>"$WORK/log"); then
	go_storm() {
		local trace
		for trace in "$WORK"/storm.*[05]; do
			go "$goroot" tool trace -pprof=sched "$trace" >/dev/null || { echo "$trace"; return 1; }
		done
	}
	ok "and Go 1.21 reads each fifth" go_storm
else
	skip "Go 1.21 reads the storm" "$(tail -1 "$WORK/log")"
fi

ok "signal handlers that use the recorder: whole" recorded signals 200000
ok "handlers are heard of whole or counted as lost" counts UserLog GoBlockSync
ok "never a part of one" equal_said lost_parts 0
ok "fork in the middle: the parent's trace is whole" recorded fork
ok "and has the parent's events only" counts UserLog
child() {
	equal "$(said child)" 0 && "$SONDE" trace check "$WORK/trace.child" &&
		equal "$("$SONDE" trace events --json "$WORK/trace.child" | grep -c 'belongs to its own')" 1
}
ok "the child's own has its own" child
ok "a file that cannot grow: what is there is a whole trace" recorded full 300000
full() {
	equal "$(said at_failure)" "$(said expected_failure)" && equal "$(said sum)" 1
}
ok "and the reason is told, the loss counted" full

# The recorder itself under ThreadSanitizer: its writers, start and stop at once; readers of streams.
races() {
	"${CC:-cc}" -std=gnu17 -O1 -g -D_GNU_SOURCE -fno-omit-frame-pointer -fsanitize=thread -Wno-tsan -I"$ROOT/include" \
		-I"$ROOT/src" "$ROOT"/src/record/*.c "$E2E/record/work.c" -lpthread -o "$WORK/work.tsan" || return 1
	local mode
	for mode in storm stream-drop stream-block threads fibers; do
		TSAN_OPTIONS=halt_on_error=1:exitcode=66 "$WORK/work.tsan" $mode "$WORK/tsan" 30 >"$WORK/said" || return 1
	done
}
[[ ${#flags[@]} -gt 0 ]] || ok "no data race" races

compiles() {
	local source=$WORK/api.$1 compiler=$2
	cat >"$source" <<'END'
#include "sonde/record.h"
int main(void)
{
	uint64_t task = SONDE_RECORD_TASK_BEGIN(0, "task");
	SONDE_RECORD_REGION("region");
	SONDE_RECORD_LOG(task, "key", "value");
	SONDE_RECORD_TASK_END(task);
	return 0;
}
END
	shift 2
	"$compiler" "$@" -Wall -Wextra -Wpedantic -Werror -I"$ROOT/include" "$source" "$library" -lpthread "${flags[@]}" -o "$WORK/api" && "$WORK/api"
}
ok "the header is C11" compiles c "${CC:-cc}" -std=c11
ok "and C++" compiles cpp "${CXX:-c++}" -std=c++17
ok "disabled, nothing of the library is used" eval '
	compiles c "${CC:-cc}" -std=c11 -DSONDE_RECORD_DISABLE -O2 && ! nm "$WORK/api" | grep sonde_record'
raii() {
	cat >"$WORK/raii.cpp" <<'END'
#include "sonde/record.hpp"
static sonde_record_site outer = SONDE_RECORD_SITE_INIT("outer"), job = SONDE_RECORD_SITE_INIT("job");
int main(int, char **argv)
{
	if (sonde_record_start(argv[1], nullptr))
		return 1;
	{
		sonde::task first(job), second(std::move(first));
		sonde::region region(outer, second.id());
		sonde::log(outer, "message", second.id());
		sonde::blocking blocking(SONDE_RECORD_COND);
	}
	return sonde_record_stop(nullptr);
}
END
	"${CXX:-c++}" -std=c++17 -Wall -Wextra -Werror -I"$ROOT/include" "$WORK/raii.cpp" "$library" -lpthread "${flags[@]}" -o "$WORK/raii" &&
		"$WORK/raii" "$WORK/trace" && "$SONDE" trace check "$WORK/trace" &&
		printf 'UserTaskCreate 1\nUserTaskEnd 1\nUserRegion 2\nUserLog 1\nGoBlockCond 1\n' >"$WORK/said" &&
		counts UserTaskCreate UserTaskEnd UserRegion UserLog GoBlockCond
}
ok "scopes of C++" raii

tap_end
