#!/bin/bash
# Profiles of traces against `go tool trace -pprof`, sample by sample: traces of a program built with each Go version, and
# the corpus of ../shared/data where it is there (Go 1.27 for formats from 1.22 on, Go 1.21 for those before).
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

go() {
	local goroot=$1
	shift
	env -u GOROOT -u GOPATH -u GOBIN GOTOOLCHAIN=local GOPROXY=off GOENV=off CGO_ENABLED=0 \
		GOCACHE="${SONDE_GO_BUILD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sonde-go-build}" "$goroot/bin/go" "$@"
}

compare() {
	"$E2E/trace_pprof/compare.py" "$SONDE" "$@"
}

if ! go127=$("$ROOT/scripts/toolchains.sh" --path 1.27 2>"$WORK/log"); then
	skip "profiles against Go's" "$(tail -1 "$WORK/log")"
	tap_end
	exit
fi
for version in $VERSIONS; do
	if ! goroot=$("$ROOT/scripts/toolchains.sh" --path "$version" 2>"$WORK/log"); then
		skip "profiles of a trace of Go $version" "$(tail -1 "$WORK/log")"
		continue
	fi
	traced() {
		cd "$ROOT/tests/data/src" && GO111MODULE=off GOFLAGS="" go "$goroot" build -o "$WORK/tracer" tracer.go &&
			"$WORK/tracer" "$WORK/go$version.trace" 3 >/dev/null
	}
	ok "a trace of Go $version" traced
	results "profiles of Go $version" compare "$go127" "$WORK/go$version.trace"
	sizes() {
		local kind
		for kind in sync sched; do
			"$SONDE" trace pprof $kind "$WORK/go$version.trace" -o "$WORK/$kind.pb.gz" || return 1
			go "$go127" tool pprof -raw "$WORK/$kind.pb.gz" | grep -q 'main\.' || return 1
		done
	}
	ok "and there is something in them, Go $version" sizes
	results "parts of profiles of Go $version" "$E2E/trace_pprof/parts.py" "$SONDE" "$go127" "$WORK/go$version.trace"
	results "waits of Go $version" "$E2E/trace_pprof/waits.py" "$SONDE" "$WORK/go$version.trace"
done
# A goroutine that can run, and one processor, which another keeps in a system call.
held() {
	cat >"$WORK/held.go" <<'END'
package main

import (
	"os"
	"runtime"
	"runtime/trace"
	"syscall"
)

func main() {
	runtime.GOMAXPROCS(1)
	f, _ := os.Create(os.Args[1])
	trace.Start(f)
	c := make(chan int)
	go func() { c <- 1 }()
	nap := syscall.Timespec{Nsec: 20e6}
	syscall.Nanosleep(&nap, nil)
	<-c
	trace.Stop()
}
END
	GO111MODULE=off GOFLAGS="" go "$go127" build -o "$WORK/held" "$WORK/held.go" && "$WORK/held" "$WORK/held.trace"
}
ok "a program whose system call holds the processor" held
results "waits behind a system call" "$E2E/trace_pprof/waits.py" --held "$SONDE" "$WORK/held.trace"

option() {
	"$SONDE" trace --pprof=sched "$WORK/go1.27.trace" >"$WORK/a" && "$SONDE" trace pprof sched "$WORK/go1.27.trace" >"$WORK/b" &&
		cmp "$WORK/a" "$WORK/b"
}
[[ ! -e $WORK/go1.27.trace ]] || ok "--pprof=KIND is the same, and so are the bytes" option

# CPU samples, stack by stack, against Go's reader.
profiled() {
	cat >"$WORK/cpu.go" <<'END'
package main

import (
	"io"
	"os"
	"runtime/pprof"
	"runtime/trace"
	"time"
)

//go:noinline
func spin(d time.Duration) (n int) {
	for begun := time.Now(); time.Since(begun) < d; {
		n++
	}
	return
}

func main() {
	pprof.StartCPUProfile(io.Discard)
	f, _ := os.Create(os.Args[1])
	trace.Start(f)
	done := make(chan int)
	go func() { done <- spin(300 * time.Millisecond) }()
	spin(400 * time.Millisecond)
	<-done
	trace.Stop()
	pprof.StopCPUProfile()
}
END
	GO111MODULE=off GOFLAGS="" go "$go127" build -o "$WORK/cpu" "$WORK/cpu.go" && "$WORK/cpu" "$WORK/cpu.trace" &&
		GOCACHE="${SONDE_GO_BUILD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sonde-go-build}" "$E2E/trace_oracle.sh" "$WORK/oracle"
}
ok "a trace with CPU samples, and Go's reader" profiled
results "CPU samples" "$E2E/trace_pprof/cpu.py" "$SONDE" "$go127" "$WORK/oracle" main.spin "$WORK/cpu.trace"

corpus=$ROOT/../shared/data/traces
if [[ -d $corpus/v2 ]]; then
	# go122-create-syscall-with-p is one that Go gives up in the middle.
	results "profiles of the corpus" compare "$go127" $(ls "$corpus"/v2/*.trace | grep -v create-syscall-with-p)
	if go121=$("$ROOT/scripts/toolchains.sh" --path 1.21 2>"$WORK/log"); then
		results "profiles of the corpus of old formats" compare "$go121" "$corpus"/v1/*_good "$corpus"/v1/golden*
	else
		skip "profiles of the corpus of old formats" "$(tail -1 "$WORK/log")"
	fi
	for trace in v1/stress_1_21_good v1/http_1_11_good v2/go122-gc-stress.trace; do
		results "waits of $trace" "$E2E/trace_pprof/waits.py" "$SONDE" "$corpus/$trace"
	done
else
	skip "profiles of the corpus" "../shared/data is not there"
fi

ok "an unknown kind" eval '! "$SONDE" trace pprof what "$WORK/go1.27.trace" 2>"$WORK/err" && grep -q "net, sync" "$WORK/err"'
[[ ! -e $WORK/go1.27.trace ]] ||
	ok "a goroutine that is not there" fails "no goroutine 987654321" -- "$SONDE" trace pprof sched -g 987654321 "$WORK/go1.27.trace"
ok "a file that is no trace" fails "not an execution trace" -- "$SONDE" trace pprof net "$0"
tap_end
