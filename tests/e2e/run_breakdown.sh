#!/bin/bash
# `sonde core breakdown`: the program prints what runtime.MemStats says when nothing changes any more, and dies of a signal
# without allocating; readelf says what is mapped. Both must be met to the byte.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# mapped CORE: "rw- BYTES" for each set of permissions that readelf sees.
mapped() {
	readelf -lW "$1" | awk '
		$1 == "LOAD" {
			flags = ""
			for (i = 7; i < NF; i++) flags = flags $i
			perm = (flags ~ /R/ ? "r" : "-") (flags ~ /W/ ? "w" : "-") (flags ~ /E/ ? "x" : "-")
			print perm, $6
		}' | python3 -c '
import collections, sys
sums = collections.Counter()
for line in sys.stdin:
    perm, size = line.split()
    sums[perm] += int(size, 16)
for perm, size in sorted(sums.items()):
    if size:
        print(perm, size)'
}

# check KIND: sums of the tree; mappings against readelf; the heap against MemStats.
check() {
	sonde_core breakdown --json >"$WORK/breakdown.json" || return 1
	mapped "$CORE/core" >"$WORK/mapped"
	python3 - "$WORK/breakdown.json" "$WORK/mapped" "$CORE/stdout" "$1" <<'PY'
import json, sys
report = json.load(open(sys.argv[1]))
rows = {r["key"]: r for r in report["tree"]}
bad = []
def same(what, got, want):
    if got != want:
        bad.append(f"{what}: {got}, want {want} ({got - want:+})")
if sys.argv[4] == "sums":
    tree = report["tree"]
    for i, row in enumerate(tree):
        children = []
        for below in tree[i + 1:]:
            if below["depth"] <= row["depth"]:
                break
            if below["depth"] == row["depth"] + 1:
                children.append(below)
        for key in ("bytes", "present_bytes"):
            if row[key] < 0 or row["present_bytes"] > row["bytes"]:
                bad.append(f"{row}")
            if children:
                same(f"{row['key']} {key}", row[key], sum(c[key] for c in children))
    if len(report["permissions"]) != 8:
        bad.append("not a row for every set of permissions")
    for key in ("bytes", "present_bytes"):
        same(f"permissions {key}", sum(r[key] for r in report["permissions"]), rows["all"][key])
elif sys.argv[4] == "readelf":
    want = dict(line.split() for line in open(sys.argv[2]))
    for row in report["permissions"]:
        same(row["permissions"], row["bytes"], int(want.get(row["permissions"], 0)))
else:
    want = {}
    for line in open(sys.argv[3]):
        kind, *rest = line.split()
        if kind == "memory":
            fields = dict(f.split("=") for f in rest)
            want[fields["name"]] = int(fields["bytes"])
    size = {key: r["bytes"] for key, r in rows.items()}
    same("HeapAlloc", size["live"] + size["kept"] + size["garbage"], want["alloc"])
    same("HeapInuse", size["in_use"], want["in_use"])
    same("StackInuse", size["stacks"], want["stacks"])
    # The runtime counts the pages in front of a randomised base (Go 1.26 on) as released; no bitmap has them as free.
    same("HeapIdle", size["free_pages"] + size["heap_other"], want["idle"])
    same("HeapReleased", size["released"] + size["heap_other"], want["released"])
    if not want["made"] <= size["garbage"] <= want["made"] + want["alloc"] - want["live"] - want["made"] + 64:
        bad.append(f"garbage {size['garbage']}, made {want['made']}")
    if want["released"] == 0 or want["stacks"] == 0:
        bad.append("the program shows too little")
print("\n".join(bad))
sys.exit(bool(bad))
PY
}

for version in $VERSIONS; do
	take_core memory "$version" kernel die || continue
	ok "breakdown: the rows add up ($version)" check sums
	ok "breakdown: the mappings of readelf ($version)" check readelf
	ok "breakdown: what runtime.MemStats counts ($version)" check memstats
	take_core bait "$version" kernel || continue
	ok "breakdown: the rows add up, bait ($version)" check sums
	ok "breakdown: the mappings of readelf, bait ($version)" check readelf
	ok "breakdown, overview --live: live and garbage are those of histogram ($version)" bash -c '
		o=$("$1" core overview --live "$2/core" --exe "$2/exe" --json) && b=$("$1" core breakdown "$2/core" --exe "$2/exe" --json) && h=$("$1" core histogram "$2/core" --exe "$2/exe" --json) &&
		python3 - "$b" "$h" "$o" <<-PY
			import json, sys
			rows = {r["key"]: r["bytes"] for r in json.loads(sys.argv[1])["tree"]}
			h = json.loads(sys.argv[2])
			got = [rows["live"], rows["kept"], rows["garbage"]]
			want = [h["live_bytes"], h["pending_bytes"], h["garbage_bytes"]]
			o = json.loads(sys.argv[3])["live"]
			live = [o["live_bytes"], o.get("pending_bytes", 0), o["garbage_bytes"]]
			print(got, want, live)
			sys.exit(got != want or live != want)
		PY' _ "$SONDE" "$CORE"
done
take_core plain - kernel && {
	ok "breakdown: a C program" shows "Go runtime not read" "stacks of threads" -- sonde_core breakdown
	ok "breakdown: a C program's mappings" check readelf
}
tap_end
