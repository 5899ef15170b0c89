#!/bin/bash
# `sonde core globals`, `object`, `objects`: a program prints the values of its variables in its own words, maps of both
# kinds and in the middle of growing among them; what sonde reads out of its core must be the same.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

compare_globals() {
	sonde_core globals --package main --depth 9 --elements 10000 --string-bytes 100000 --json |
		python3 "$E2E/values.py" globals "$CORE/stdout" | sed "s/^\(ok\|not ok\) /&$1: /"
}

# objects TYPE: how many objects `objects` lists of exactly that type
objects() {
	sonde_core objects --type "$1" --json | python3 -c '
import json, sys
print(sum(o["type"] == sys.argv[1] for o in json.load(sys.stdin)["objects"]))' "$1"
}

values() {
	take_core values "$1" "$2" || return
	results "$1 values $2" compare_globals "$1 $2"
	case $1 in
	1.2[23]) ok "$1 $2: a map is growing" grep -qx 'map main.mapGrowing growing=true' "$CORE/stdout" ;;
	esac
}

for version in $VERSIONS; do
	values "$version" kernel
	take_core bait "$version" kernel || continue
	for type in main.Node main.Medium main.Large main.TreeNode main.LargeLeaf main.MapValue; do
		ok "objects: $type ($version)" equal "$(objects $type)" "$(oracle type $type count)"
	done
	# Dying allocates two more (run_heap.sh).
	ok "objects: all of them are the heap's ($version)" equal \
		"$(sonde_core objects --state all -n 1 --json | member count)" "$(($(oracle mem HeapObjects value) + 2))"
	node=$(oracle addr main.list addr)
	ok "object: fields, and who refers to it ($version)" shows 'name  string  "node-000000"' 'package variable main.list' \
		'main.Node.prev' -- sonde_core object "$node"
	ok "object: a field's address names it ($version)" shows 'at offset 16: .name' -- \
		sonde_core object "$(printf '%#x' $((node + 16)))"
	ok "object: retained ($version)" equal "$(sonde_core object --json "$(oracle addr main.tree addr)" | member retained_bytes)" \
		"$(oracle retained main.tree bytes)"
	ok "object: an address of no object fails ($version)" fails 'in no slot of the heap' -- sonde_core object 0x10
done
values "${VERSIONS##* }" gcore
tap_end
