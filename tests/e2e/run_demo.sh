#!/bin/bash
# scripts/demo.sh from a clean clone; what it shows is what tests/data/src/demo.go builds. And every example of a help.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# ---- the bundled core against the source of its program
zstd -q -d "$ROOT/tests/data/demo.exe.zst" -o "$WORK/exe"
zstd -q -d "$ROOT/tests/data/demo.core.zst" -o "$WORK/core"
CORE=$WORK

# A line "NAME COUNT" of each type of demo.go, by its rules: a customer has id % 5 orders, an order id % 4 + 1 lines; every
# sixteenth order's notification waits for ever. An array of one element is like a single object. The order without a
# customer is on the stack.
python3 - >"$WORK/want" <<'EOF'
customers, articles, pages, workers = 400, 120, 61, 4
orders = sum(i % 5 for i in range(1, customers + 1))
leaked = orders // 16
print("main.Customer", customers)
print("main.Order", orders)
print("main.Article", articles)
print("main.Page", pages)
print("main.Notification", leaked)
print("main.AuditLog", 1)
print("main.Cache", 1)
print("main.Service", 1)
print("[]main.Line", sum(1 for i in range(1, orders + 1) if i % 4))
print("main.Line", sum(1 for i in range(1, orders + 1) if not i % 4))
print("[]*main.Order", sum(1 for i in range(1, customers + 1) if i % 5 > 1))
print("*main.Order", sum(1 for i in range(1, customers + 1) if i % 5 == 1))
print("[]*main.Article", 1)  # the shelf
print("*main.Article", articles - 1)  # what is related, but for the first
print("goroutines", f"main.(*Notification).deliver {leaked}")
print("goroutines", f"main.(*Service).worker {workers}")
print("goroutines", "main.(*Service).expire 1")
EOF

rows_are() {
	local name count
	sonde_core histogram --json >"$WORK/histogram" || return
	grep -v '^goroutines' "$WORK/want" | while read -r line; do
		count=${line##* } name=${line% *}
		echo "$name $(python3 -c '
import json, sys
print(sum(row["count"] for row in json.load(sys.stdin)["rows"] if row["type"] == sys.argv[1]))' "$name" <"$WORK/histogram")"
	done >"$WORK/got"
	# What is not typed yet is among the unknown, and incomplete: else it is to be taken off the list.
	sed -n 's/^demo \([^ ]*\).*/\1/p' "$E2E/not_typed_yet" | while read -r name; do
		want=$(sed -n "s/^$name //p" "$WORK/want") count=$(sed -n "s/^$name //p" "$WORK/got")
		unknown=$(python3 -c '
import json, sys
report = json.load(sys.stdin)
print(report["unknown_objects"] + sum(row["count"] for row in report["rows"] if row["type"] == "memory behind unsafe.Pointer"))' \
			<"$WORK/histogram")
		[[ $count -lt $want && $unknown -ge $((want - count)) ]] || echo "$name: $count of $want, unknown $unknown" >&2
		sed -i "s/^$name .*/$name not typed yet/" "$WORK/want" "$WORK/got"
	done 2>"$WORK/incomplete"
	diff <(grep -v '^goroutines' "$WORK/want") "$WORK/got" && diff /dev/null "$WORK/incomplete"
}

goroutines_are() {
	sed -n 's/^goroutines //p' "$WORK/want" | while read -r function count; do
		echo "$function $(sonde_core goroutines --function "$function" --json | member shown)"
	done >"$WORK/got"
	diff <(sed -n 's/^goroutines //p' "$WORK/want") "$WORK/got"
}

ok "demo: objects by type" rows_are
ok "demo: goroutines" goroutines_are
ok "demo: where it crashed" shows "main.(*Order).discount" "main.(*Service).invoice" "main.main" "runtime.sigpanic" -- \
	sonde_core goroutines -g 1
ok "demo: why" shows "SIGABRT (6)" "go1." -- sonde_core overview

# ---- the script, in a clone of what is committed
if git -C "$ROOT" rev-parse HEAD >/dev/null 2>&1; then
	git clone -q --no-hardlinks "$ROOT" "$WORK/clone"
	ok "demo.sh in a clean clone" expect 0 stdout "main.Customer" "main.(*Notification).deliver" "SIGABRT (6)" -- \
		"$WORK/clone/scripts/demo.sh"
	ok "demo.sh leaves nothing but the build folder" equal "$(git -C "$WORK/clone" status --porcelain --ignored)" "!! build/"
	demo_numbers() {
		"$WORK/clone/scripts/demo.sh" >"$WORK/demo.out" 2>&1 || return
		local name count
		for name in main.Customer main.Article main.Page; do
			count=$(awk -v name="$name" '$1 == name { print $2 }' "$WORK/want")
			grep -Eq "^ *$count +[0-9]+ +[<0-9.]+% +$name$" "$WORK/demo.out" || {
				echo "no row of $count $name"
				cat "$WORK/demo.out"
				return 1
			}
		done
	}
	ok "demo.sh shows these numbers" demo_numbers
else
	skip "demo.sh in a clean clone" "no git repository"
fi

# ---- the examples of each help: core.1234 is a core of Go 1.24, whose heap begins at 0xc000000000
if [[ " $VERSIONS " == *" 1.24 "* ]] && take_core bait 1.24 kernel crash; then
	mkdir "$WORK/examples" "$WORK/bin"
	ln -s "$CORE/core" "$WORK/examples/core.1234"
	ln -s "$SONDE" "$WORK/bin/sonde"
	for command in overview goroutines histogram mappings read; do
		"$SONDE" core "$command" --help | sed -n '/^Examples\{0,1\}:$/,$s/^  //p' >"$WORK/lines"
		ok "$command --help: has an example of it" grep -q "^sonde core $command " "$WORK/lines"
		while IFS= read -r line; do
			ok "$command --help: $line" eval 'cd "$WORK/examples" && PATH=$WORK/bin:$PATH bash -c "$line" >"$WORK/stdout" && [[ -s $WORK/stdout ]]'
		done <"$WORK/lines"
	done
	# Those of the README.
	for command in overview goroutines histogram mappings; do
		ok "README: sonde core $command CORE" grep -qF "\`sonde core $command CORE\`" "$ROOT/README.md"
	done
fi
tap_end
