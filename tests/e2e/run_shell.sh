#!/bin/bash
# `sonde core FILE`: scripts on standard input and -c; then, on a terminal, shell_terminal.py. On the bundled core: what each
# command shows by itself is what it must show in a shell, also of a core that is cut, whose reports end with notes.
# shellcheck source=tests/e2e/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

zstd -q -d "$ROOT/tests/data/demo.exe.zst" -o "$WORK/exe"
zstd -q -d "$ROOT/tests/data/demo.core.zst" -o "$WORK/core"
CORE=$WORK

shell() {
	"$SONDE" core "$CORE/core" --exe "$CORE/exe" "$@"
}

# same_as_alone LINE...: one shell, and a process for each line.
same_as_alone() {
	local line
	printf '%s\n' "$@" | shell >"$WORK/shell.out" || return
	for line; do
		# shellcheck disable=SC2086
		sonde_core ${line%% *} $([[ $line != *' '* ]] || echo "${line#* }") || return
	done >"$WORK/alone.out"
	cmp "$WORK/shell.out" "$WORK/alone.out"
}

LINES=(overview 'histogram --json' goroutines 'retained --json' threads 'histogram --json' mappings
	'retained --by root' 'goroutines --all' threads breakdown 'histogram --by package' 'overview --json' 'overview --live' 'breakdown --json')
ok "a script shows what its commands show alone" same_as_alone "${LINES[@]}"

mkdir "$WORK/cut"
# What is cut: the stacks and the heap's last pages stand last.
for share in 40 70 95; do
	size=$(stat -c %s "$WORK/core")
	head -c $((size * share / 100)) "$WORK/core" >"$WORK/cut/core"
	ln -sf "$WORK/exe" "$WORK/cut/exe"
	CORE=$WORK/cut
	lines=()
	for line in "${LINES[@]}"; do
		# shellcheck disable=SC2086
		! sonde_core $line >/dev/null 2>&1 || lines+=("$line")
	done
	ok "a core cut to $share %: reports and notes as alone (${#lines[@]} commands)" same_as_alone "${lines[@]}"
	notes=$(sonde_core overview --json | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["notes"]))')
	ok "a core cut to $share % has notes" test "${#lines[@]}" -ge 4 -a "$notes" -ge 1
done
CORE=$WORK

script() {
	printf '%s\n' "$1" | shell "${@:2}"
}
export -f script shell
ok "an empty script" shows -- script ""
ok "a script that ends without a newline" equal "$(printf 'histogram -n 1' | shell)" "$(sonde_core histogram -n 1)"
ok "a script goes on behind a failure, and fails" expect 1 stdout "goroutines:" -- script $'nonsense\noverview'
ok "the failure says which line" expect 1 stderr "unknown command 'nonsense'" "line 2 failed: nonsense" -- script $'overview\nnonsense'
ok "quit ends a script" equal "$(script $'overview --json\nquit\nmappings --json' | wc -l)" 1
ok "--json is for every command" equal "$(script $'overview\nmappings\nhistogram' --json | jq -r .report | paste -sd ' ')" \
	"core.overview core.mappings core.histogram"
ok "-c runs a line, several run in order" equal "$(shell -c 'histogram --json' -c 'overview --json | cat' | jq -r .report | paste -sd ' ')" \
	"core.histogram core.overview"
ok "-c reads nothing else" equal "$(echo overview | shell -c 'mappings --json' | jq -r .report)" core.mappings
ok "-c that fails" fails "unknown command 'x'" -- shell -c x
ok "a reader that fails fails the line" fails "line 1 failed" -- shell -c 'overview | exit 3'
ok "a reader that ends early does not" shows -- shell -c 'mappings | true'
ok "options may stand in front" equal "$("$SONDE" core --json --exe "$WORK/exe" "$WORK/core" -c overview | jq -r .report)" core.overview
ok "the long form" equal "$("$SONDE" core shell "$WORK/core" --exe "$WORK/exe" -c 'overview --json' | jq -r .report)" core.overview
ok "a file that is not there" fails "$WORK/none: No such file" -- "$SONDE" core "$WORK/none"
ok "a file that is no core" fails "exe" -- "$SONDE" core "$WORK/exe"
ok "-o is for commands" expect 2 stderr "COMMAND > FILE" -- shell -o "$WORK/x"

reader_gone() {
	local status
	shell -c mappings -c 'overview > '"$WORK/late" >/dev/full 2>"$WORK/stderr"
	equal "exit status $?" "exit status 1" || return
	yes mappings | head -n 100000 | shell 2>"$WORK/stderr" | head -n 1 >/dev/null
	status=("${PIPESTATUS[@]}")
	equal "exit status ${status[2]}" "exit status 1" && equal "$(cat "$WORK/stderr")" ""
}
ok "a script ends when nobody reads it" reader_gone

long_line() {
	head -c 3000000 /dev/zero | tr '\0' x | shell >"$WORK/stdout" 2>"$WORK/stderr"
	equal "exit status $?" "exit status 1" && grep -q "longer than 1 MiB" "$WORK/stderr"
}
ok "a line without end" long_line

edit=
[[ -z $(ldd "$SONDE" 2>/dev/null | grep libedit) ]] || edit=edit
[[ -n $edit ]] || skip "completion and history" "built without libedit"
mkdir "$WORK/terminal"
results "the shell on a terminal" timeout 600 python3 "$E2E/shell_terminal.py" "$SONDE" "$WORK/core" "$WORK/exe" "$WORK/terminal" $edit
tap_end
