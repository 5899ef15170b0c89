#!/bin/bash
# The programs themselves: what they print about their heap is steady, and their cores can be taken.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

is_core() {
	[[ $(readelf -hW "$CORE/core" | awk '$1 == "Type:" { print $2 }') == CORE ]]
}

for version in $VERSIONS; do
	for mode in kernel gcore; do
		take_core bait "$version" "$mode" || continue
		ok "$version $mode: an ELF core" is_core
		ok "$version $mode: nothing allocated after the figures" equal "$(oracle mem stable value)" 1
		grep -E '^(type|slice|map|chan|string|retained|func) ' "$CORE/stdout" >"$WORK/$version-$mode.built"
	done
	[[ ! -s $WORK/$version-kernel.built || ! -s $WORK/$version-gcore.built ]] ||
		ok "$version: both runs built the same" diff "$WORK/$version-kernel.built" "$WORK/$version-gcore.built"
done

# The small bundled core is what its recipe says.
bundled() {
	zstd -q -d "$ROOT/tests/data/demo.exe.zst" -o "$WORK/demo" && zstd -q -d "$ROOT/tests/data/demo.core.zst" -o "$WORK/core" &&
		file "$WORK/core" | grep -q "from '/demo'" && readelf -SW "$WORK/demo" | grep -q debug_info
}
ok "bundled core and executable" bundled
tap_end
