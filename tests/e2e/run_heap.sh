#!/bin/bash
# sonde core histogram: each type's objects and bytes are what the program says, and nothing is left unexplained.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

compare() {
	local version=$1 label=$2 mode=$3
	shift 3
	results "$label: comparison" python3 "$E2E/heap.py" "$label" "$SONDE" "$CORE" "$mode" \
		"$("$ROOT/scripts/toolchains.sh" --path "$version")" "$@"
}

# What heap.py calls the extra objects of a crash, found by gdb: the boxed string and its text, where sonde reads them too.
panic_value() {
	local gp box text length message hex
	message=$(sed -n '1s/^panic: //p' "$CORE/stderr")
	gp=$(sed -n 's/^goroutine 1 gp=\(0x[0-9a-f]*\) .*/\1/p' "$CORE/stderr")
	read -r box text length < <(gdb -nx -q -batch -iex 'set auto-load off' -iex 'set debuginfod enabled off' -ex 'set language c' \
		-ex "set \$data = (long *)((('runtime.g' *)$gp)->_panic.arg.data)" \
		-ex 'printf "%lx %lx %ld\n", $data, $data[0], $data[1]' "$CORE/exe" "$CORE/core" 2>/dev/null | tail -n 1)
	equal "$length" "${#message}" || return
	hex=$(printf '%s' "$message" | od -An -v -tx1 | tr -d ' \n')
	equal "$(sonde_core read "$text" "$length" --json | member bytes)" "$hex" || return
	hex=$(printf '%016x%016x' "0x$text" "$length" | fold -w 2 | tac | tr -d '\n')
	equal "$(sonde_core read "$box" 16 --json | member bytes)" "${hex:16}${hex:0:16}"
}

for version in $VERSIONS; do
	for mode in 'kernel crash' 'kernel abort' 'kernel gcabort' 'gcore wait' 'gcore gcwait'; do
		read -r how mode <<<"$mode"
		take_core bait "$version" "$how" "$mode" || continue
		compare "$version" "$version $mode" "$mode"
		[[ $mode != crash ]] || ok "$version: two objects more are the panic's text and its header" panic_value
	done
done

# Versions whose toolchains are there only where somebody brought them.
for version in 1.23 1.25 1.26; do
	[[ " $VERSIONS " != *" $version "* ]] || continue
	if ! "$ROOT/scripts/toolchains.sh" --path "$version" >/dev/null 2>&1; then
		skip "$version" "no toolchain: scripts/toolchains.sh $version"
		continue
	fi
	for mode in 'kernel crash' 'gcore gcwait'; do
		read -r how mode <<<"$mode"
		take_core bait "$version" "$how" "$mode" || continue
		compare "$version" "$version $mode" "$mode"
	done
done

for version in 1.24 1.27; do
	[[ " $VERSIONS " == *" $version "* ]] || continue
	export GOARCH=386
	! take_core bait "$version" kernel crash || compare "$version" "$version 386 crash" crash 4
	unset GOARCH
	export SONDE_BUILD_FLAGS=-buildmode=pie
	! take_core bait "$version" kernel crash || compare "$version" "$version PIE crash" crash
	unset SONDE_BUILD_FLAGS
done
tap_end
