#!/bin/bash
# libsonde as a program elsewhere finds it: installed, by pkg-config. examples/who_retains.c on the bundled core, against
# tests/data/src/demo.go's own rules and against what the commands say.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

if grep -q __asan_init "$SONDE"; then
	skip "the installed library" "a build with sanitizers"
	tap_end
fi
zstd -q -d "$ROOT/tests/data/demo.exe.zst" -o "$WORK/exe"
zstd -q -d "$ROOT/tests/data/demo.core.zst" -o "$WORK/core"
CORE=$WORK

ok "meson install" env DESTDIR="$WORK/root" meson install --no-rebuild -C "$(dirname "$SONDE")"
pc=$(find "$WORK/root" -name sonde.pc)
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR=$WORK/root
lib=$(dirname "$(find "$WORK/root" -name libsonde.so)")
read -ra flags <<<"$(pkg-config --cflags --libs sonde)"
strict=(-Wall -Wextra -Wpedantic -Werror)
ok "the example builds as C11 by pkg-config" cc -std=c11 "${strict[@]}" "$ROOT/examples/who_retains.c" "${flags[@]}" -o "$WORK/who"
ok "and as C++" g++ -x c++ -std=c++11 "${strict[@]}" "$ROOT/examples/who_retains.c" "${flags[@]}" -o "$WORK/who.cpp"
export LD_LIBRARY_PATH=$lib
exports() {
	! nm -D --defined-only "$lib/libsonde.so" | awk '$2 != "A" { print $3 }' | sed 's/@.*//' |
		grep -vE '^sonde_(dump_[a-z_]+|error_(code|free|message)|version)$'
}
ok "the library exports its interface only" exports
declared() {
	diff <(grep -ohE '\bsonde_[a-z_]+\(' "$WORK"/root/*/*/include/sonde/{core,sonde}.h "$WORK"/root/*/include/sonde/{core,sonde}.h 2>/dev/null |
		tr -d '(' | sort -u) <(nm -D --defined-only "$lib/libsonde.so" | awk '$2 != "A" { print $3 }' | sed 's/@.*//' | sort -u)
}
ok "and all of it" declared

"$WORK/who" "$WORK/core" "$WORK/exe" >"$WORK/said"
ok "the example runs" equal "$?" 0
ok "the C++ one says the same" cmp "$WORK/said" <("$WORK/who.cpp" "$WORK/core" "$WORK/exe")
of() {
	awk -F '\t' -v kind="$1" 'BEGIN { OFS = "\t" } $1 == kind { sub(/^[^\t]*\t/, ""); print }' "$WORK/said"
}
same() {
	[[ $(of "$1" | wc -l) -ge 4 ]] && diff <(of "$1" | sort) <(sort)
}

# demo.go: a customer has id % 5 orders; 400 customers; 4 workers.
ok "objects, by the program's rules" equal "$(of type | awk -F '\t' '$3 == "main.Customer" || $3 == "main.Order" { print $1, $3 }' | sort)" \
	$'400 main.Customer\n800 main.Order'
ok "goroutines, by the program's rules" equal "$(of goroutine | grep -c 'main.(\*Service).worker:')" 4

ok "types as histogram says" same type < <(sonde_core histogram --json | jq -r '.rows[] | [.count, .bytes, .type] | @tsv')
ok "owners as retained says" same owner < <(sonde_core retained --by root --top 100000 --json |
	jq -r '.rows[] | select(.bytes > 0) | [.bytes, .root] | @tsv')
ok "goroutines as goroutines says" same goroutine < <(sonde_core goroutines --all --json |
	jq -r '.goroutines[] | [.id, .wait_reason // .state] + [.frames[] | "\(.function):\(.line)"] | @tsv')
ok "mappings as mappings says" same mapping < <(sonde_core mappings --json | jq -r '.mappings[] | [.start, .end] | @tsv')
ok "threads as threads says" same thread < <(sonde_core threads --json | jq -r '.threads[] | [.tid] | @tsv')
ok "objects add up to the live heap" equal "$(of live)" "$(sonde_core histogram --json | jq -r '[.live_objects, .live_bytes] | @tsv')"
errors() {
	local out
	! out=$("$WORK/who" "$WORK/none" 2>&1) && [[ $out == *"$WORK/none: No such file"* ]]
}
ok "an error is one line" errors
head -c 20000000 "$WORK/core" >"$WORK/cut"
"$WORK/who" "$WORK/cut" "$WORK/exe" >"$WORK/said"
ok "a core that is cut has notes" test "$(of note | wc -l)" -ge 1
tap_end
