#!/bin/bash
# Unwind tables against readelf -wF on a fixed sample: libraries and programs of this machine, arm64 libraries, Go's
# .debug_frame, files with only .debug_frame, a separate debug file, sections taken away.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

compare=$E2E/compare_readelf.py
lib=/usr/lib/x86_64-linux-gnu

same() {
	"$compare" --sonde "$SONDE" "$@"
}

ok "libc, the loader, libm, libstdc++, zlib" same "$lib"/libc.so.6 "$lib"/ld-linux-x86-64.so.2 "$lib"/libm.so.6 \
	"$lib"/libstdc++.so.6 "$lib"/libz.so.1
ok "libraries with hand-written code" eval 'same "$lib"/libcrypto.so.3 || same "$lib"/libgcrypt.so.20'
ok "bash, sonde" same /usr/bin/bash "$SONDE"

if arm64=$("$ROOT/scripts/toolchains.sh" --arm64-libs 2>"$WORK/log"); then
	ok "every arm64 library" same "$arm64"
	arm64_bottom() {
		"$SONDE" profile unwind-table --no-pager "$arm64/bookworm/lib/aarch64-linux-gnu/libc.so.6" | grep >/dev/null 'bottom of the stack' &&
			readelf -wNf "$arm64/bookworm/lib/aarch64-linux-gnu/libc.so.6" 2>/dev/null | grep >/dev/null 'DW_CFA_undefined: r30'
	}
	ok "arm64: the bottom of the stack" arm64_bottom
	arm64_signed() {
		"$SONDE" profile unwind-table --no-pager "$arm64/trixie/usr/lib/aarch64-linux-gnu/libc.so.6" |
			awk '/ra signed/ { n++ } END { exit n < 5000 }'
	}
	ok "arm64: signed return addresses" arm64_signed
else
	skip "every arm64 library" "$(tail -1 "$WORK/log")"
fi

# One C program in the forms that call-frame information comes in.
cat >"$WORK/program.c" <<'END'
#include <alloca.h>
#include <string.h>
int aligned(int n) { int a[n] __attribute__((aligned(64))); memset(a, n, sizeof(a)); return a[n / 2]; }
int allocated(int n) { char *p = alloca(n); memset(p, n, n); return p[n / 2]; }
int main(int argc, char **argv) { return aligned(argc) + allocated(argc); }
END
build() {
	gcc -O2 -g "$@" "$WORK/program.c" -o "$WORK/$program"
}
for flags in -fasynchronous-unwind-tables -fno-omit-frame-pointer -static -no-pie -mavx; do
	program=with$flags
	ok "builds with $flags" build "$flags"
	ok "rows of a program built with $flags" same "$WORK/$program"
done
n_fdes() {
	"$SONDE" profile unwind-table -s "$@" | awk '/^FDEs:/ { fdes = $2 } /^rows read:/ { rows = $3 } END { print fdes, rows }'
}
program=only-debug
ok "builds with .debug_frame" build -fno-asynchronous-unwind-tables -fno-exceptions -static-pie
ok "rows of .debug_frame beside .eh_frame" same "$WORK/only-debug"
covers_main() {
	local main
	main=$(nm "$1" | awk '$3 == "main" { print $1 }')
	"$SONDE" profile unwind-table --pc "$main" "${@:2}" | grep >/dev/null '^CFA: *rsp+'
}
ok ".debug_frame covers main" covers_main "$WORK/only-debug" "$WORK/only-debug"
objcopy --only-keep-debug "$WORK/only-debug" "$WORK/only-debug.debug" &&
	objcopy --strip-all --add-gnu-debuglink="$WORK/only-debug.debug" "$WORK/only-debug" "$WORK/stripped"
ok "its separate debug file is found" covers_main "$WORK/only-debug" "$WORK/stripped"
mv "$WORK/only-debug.debug" "$WORK/elsewhere"
ok "and missed where it is not" eval '! covers_main "$WORK/only-debug" "$WORK/stripped"'
ok "the debug file alone" covers_main "$WORK/only-debug" "$WORK/elsewhere"

# Without section headers: .eh_frame by its header's segment.
no_sections() {
	python3 - "$1" "$2" <<'END'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[0x28:0x30] = bytes(8)
data[0x3a:0x40] = bytes(6)
open(sys.argv[2], "wb").write(data)
END
}
no_sections "$lib/libc.so.6" "$WORK/bare"
ok "the same rows without section headers" diff <("$SONDE" profile unwind-table --no-legend --no-pager "$lib/libc.so.6" | grep '^ *0x') \
	<("$SONDE" profile unwind-table --no-legend --no-pager "$WORK/bare" | grep '^ *0x')

for version in $VERSIONS; do
	goroot=$("$ROOT/scripts/toolchains.sh" --path "$version" 2>/dev/null) || {
		skip "Go $version" "not unpacked"
		continue
	}
	mkdir -p "$WORK/go$version" && cat >"$WORK/go$version/main.go" <<'END'
package main

import "fmt"

func main() { fmt.Println("hello") }
END
	go_build() {
		(cd "$WORK/go$version" && GOCACHE=${GOCACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sonde-go-build} GOTOOLCHAIN=local GOFLAGS=-mod=mod \
			GOPROXY=off CGO_ENABLED=0 GOROOT=$goroot GOARCH=$1 "$goroot/bin/go" build -o "$1" main.go)
	}
	ok "Go $version: builds" go_build amd64
	ok "Go $version: rows of .debug_frame" same "$WORK/go$version/amd64"
	ok "Go $version: builds for arm64" go_build arm64
	ok "Go $version: rows of .debug_frame for arm64" same "$WORK/go$version/arm64"
done

# What a person and what a program asks for.
json() {
	"$SONDE" profile unwind-table --json "$lib/libc.so.6" | python3 -c '
import json, sys
r = json.load(sys.stdin)
rows = r["rows"]
assert r["report"] == "profile.unwind-table" and r["n_rows"] == len(rows) > 10000
assert all(a["end"] == b["addr"] for a, b in zip(rows, rows[1:]))
assert rows[-1]["cfa"] is None and rows[-1]["end"] is None
assert sum(x["cfa"] is None for x in rows) == r["n_gap_rows"]
assert r["n_unsupported_rows"] == sum(x["count"] for x in r["unsupported_rows"])
'
}
ok "JSON: rows follow each other and add up" json
one_row() {
	local want
	want=$("$SONDE" profile unwind-table --no-legend --no-pager "$lib/libc.so.6" | grep '^ *0x' | awk 'NR == 5000 { print $1, $3, $4, $5 }')
	[[ $("$SONDE" profile unwind-table --pc "${want%% *}" "$lib/libc.so.6" |
		awk '/^row from:/ { a = $3 } /^CFA:/ { c = $2 } /^fp:/ { f = $2 } /^ra:/ { print a, c, f, $2; exit }') == "$want" ]]
}
ok "--pc finds the row of the list" one_row
tap_end
