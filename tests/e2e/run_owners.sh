#!/bin/bash
# `sonde core reachable`: the program says at which address each of its variables' objects lies; the shortest path to it
# must begin at that variable. `sonde core retained`: it also says what some of them keep. Its own words are the oracle.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# path_of ADDR: "ROOT FIELD..." of the first path, one line: root name, then type and field of each object.
path_of() {
	sonde_core reachable --json "$1" | python3 -c '
import json, sys
path = json.load(sys.stdin)["paths"][0]
print(path["root"]["name"], *[o["type"] + o["field"] for o in path["objects"]])'
}

# leads NAME ADDR EXPECTED
leads() {
	local got
	got=$(path_of "$2") || return 1
	[[ $got == "$3" ]] || {
		echo "$1 at $2: path is '$got', want '$3'"
		return 1
	}
}

# retained NAME: the bytes of that package variable by sonde's account.
retained() {
	sonde_core retained --by root --top 100000 --json | python3 -c '
import json, sys
print(next((r["bytes"] for r in json.load(sys.stdin)["rows"] if r["root"] == sys.argv[1]), "absent"))' "$1"
}

# The go of the newest version at hand that has a pprof: its reader is the oracle.
GO=$("$ROOT/scripts/toolchains.sh" --path 1.24 2>/dev/null)/bin/go
sonde_pprof() {
	"$SONDE" core pprof "$CORE/core" --exe "$CORE/exe" -o "$WORK/heap.pb.gz" --quiet "$@"
}
# pprof_column SAMPLE COLUMN NAME: of go tool pprof -top, in bytes or objects; NAME "total" for all.
pprof_column() {
	"$GO" tool pprof -top -nodecount=100000 -nodefraction=0 -edgefraction=0 -unit=B -sample_index="$1" "$WORK/heap.pb.gz" 2>/dev/null |
		awk -v column="$2" -v name="$3" '
			name == "total" && / total$/ { sub("B?$", "", $(NF - 1)); print $(NF - 1) + 0; exit }
			{ text = $6; for (i = 7; i <= NF; i++) text = text " " $i }
			text == name { sub("B$", "", $column); print $column; exit }'
}
pprof_is() {
	equal "$(pprof_column "$1" "$2" "$3")" "$4"
}

for version in $VERSIONS; do
	take_core bait "$version" kernel || continue
	addr() { oracle addr "$1" addr; }
	ok "reachable: a list ($version)" leads main.list "$(addr main.list)" "main.list"
	ok "reachable: a slice's array ($version)" leads main.l3000 "$(addr main.l3000)" "main.l3000"
	ok "reachable: an element's object ($version)" leads 'main.l3000[2999]' "$(addr 'main.l3000[2999]')" \
		"main.l3000 []*main.Leaf3000[2999]"
	ok "reachable: a large object ($version)" leads 'main.larges[0]' "$(addr 'main.larges[0]')" \
		"main.larges []*main.Large[0]"
	ok "reachable: an object with a header ($version)" leads 'main.mediums[0]' "$(addr 'main.mediums[0]')" \
		"main.mediums []*main.Medium[0]"
	ok "reachable: a tree ($version)" leads main.tree "$(addr main.tree)" "main.tree"
	results "reachable: link by link ($version)" "$E2E/replay.py" "$SONDE" "$CORE/core" "$CORE/exe"
	for name in main.tree main.diamond main.huge; do
		ok "retained: $name ($version)" equal "$(retained $name)" "$(oracle retained $name bytes)"
	done
	if [[ -x $GO ]]; then
		live=$(sonde_core histogram --json)
		ok "pprof by owner is written ($version)" sonde_pprof
		ok "pprof: its bytes are the live bytes ($version)" pprof_is live_space 0 total "$(member live_bytes <<<"$live")"
		ok "pprof: its objects are the live objects ($version)" pprof_is live_objects 0 total "$(member live_objects <<<"$live")"
		for name in main.tree main.diamond main.huge; do
			ok "pprof: cum of $name is what it retains ($version)" pprof_is live_space 4 $name "$(oracle retained $name bytes)"
		done
		ok "pprof by type is written ($version)" sonde_pprof --by type
		ok "pprof by type: its bytes are the live bytes ($version)" pprof_is live_space 0 total "$(member live_bytes <<<"$live")"
		ok "pprof by type: objects of a type ($version)" pprof_is live_objects 1 main.Large "$(oracle type main.Large count)"
	else
		skip "pprof ($version)" "no go tool pprof"
	fi
	ok "reachable: an address of no object fails ($version)" bash -c \
		'! out=$("$1" core reachable "$2/core" 0x10 --exe "$2/exe" 2>&1) && [[ $out == *"in no slot of the heap"* ]]' \
		_ "$SONDE" "$CORE"
done
tap_end
