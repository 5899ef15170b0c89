#!/bin/bash
# `sonde core leaks`: the program says what it leaked: goroutines that nobody can wake beside such that somebody could, a
# cache, records below two owners, finalizers that have not run.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

check() {
	sonde_core leaks --json >"$WORK/leaks.json" || return 1
	python3 - "$WORK/leaks.json" "$CORE/stdout" "$1" <<'PY'
import json, sys
report = json.load(open(sys.argv[1]))
said = {}
for line in open(sys.argv[2]):
    if line.startswith("leak "):
        fields = dict(f.split("=") for f in line.split()[1:])
        said[fields["name"]] = int(fields["n"])
bad = []
def same(what, got, want):
    if got != want:
        bad.append(f"{what}: {got}, want {want}")
if sys.argv[3] == "goroutines":
    stuck, total = {}, {}
    for g in report["goroutine_groups"]:
        stuck[g["function"]] = stuck.get(g["function"], 0) + g["stuck"]
        total[g["function"]] = total.get(g["function"], 0) + g["count"]
    same("stuck", report["stuck_goroutines"], said["stuck"])
    same("their sum", sum(stuck.values()), said["stuck"])
    same("senders", stuck.get("main.sendLost"), said["senders"])
    same("could be woken", (stuck.get("main.waitReachable"), total.get("main.waitReachable")), (0, 12))
    for name in ("main.chain", "main.timed"):
        same(name, stuck.get(name, 0), 0)
    held = sum(g["held_bytes"] for g in report["goroutine_groups"] if g["function"] == "main.sendLost")
    same("held by the senders", held, said["held"])
    if report["stuck_bytes"] < said["held"]:
        bad.append(f"stuck_bytes {report['stuck_bytes']}")
elif sys.argv[3] == "finalizers":
    same("finalizers", report["pending_finalizers"], said["finalizers"])
    same("objects", report["pending_objects"], said["finalizers"])
    same("bytes", report["pending_bytes"], said["finalizers"] * 64)
else:
    owners = {s["what"]: s for s in report["suspects"] if s["kind"] == "owner"}
    types = {s["what"]: s for s in report["suspects"] if s["kind"] == "type"}
    same("owners", list(owners), ["main.cache"])
    same("way", [p["what"] for p in owners["main.cache"]["path"]],
         ["main.cache", "main.Cache", "[]*main.Entry", "main.Entry"])
    same("entries", owners["main.cache"]["path"][-1]["objects"], said["entries"])
    same("records", (types["main.Record"]["objects"], types["main.Record"]["bytes"]), (said["records"], said["records"] * 48))
    if "main.Entry" in types:
        bad.append("main.Entry told twice")
print("\n".join(bad))
sys.exit(bool(bad))
PY
}

# Goroutines that retain that many bytes: "ROWS BYTES".
retained_by_goroutine() {
	sonde_core retained --by goroutine -n 100000 --json | python3 -c '
import json, sys
rows = [r for r in json.load(sys.stdin)["rows"] if r["bytes"] == int(sys.argv[1])]
print(len(rows), sum(r["bytes"] for r in rows))' "$1"
}

for version in $VERSIONS; do
	take_core leaks "$version" kernel die || continue
	ok "leaks: goroutines that nobody can wake, and no others ($version)" check goroutines
	ok "leaks: finalizers that have not run ($version)" check finalizers
	ok "leaks: the owner of a tenth, and the type below two owners ($version)" check suspects
	n=$(awk '/name=senders / { sub("n=", "", $3); print $3 }' "$CORE/stdout")
	held=$(awk '/name=held / { sub("n=", "", $3); print $3 }' "$CORE/stdout")
	ok "retained --by goroutine: what each sender holds ($version)" equal "$(retained_by_goroutine $((held / n)))" "$n $held"
	ok "leaks: in words ($version)" shows "main.cache retains" "that nothing alive can reach" \
		"objects main.Record together retain" -- sonde_core leaks
done
tap_end
