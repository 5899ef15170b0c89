#!/bin/bash
# Executables without DWARF: what is stripped is named, the rest is shown; the parts found again give the whole report.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

version_of() {
	sed -n 's/^go version=\(go[^ ]*\) .*/\1/p' "$CORE/stdout"
}

for version in $VERSIONS; do
	for flags in -ldflags=-w '-ldflags=-s'; do
		export SONDE_BUILD_FLAGS=$flags
		take_core bait "$version" kernel crash || continue
		for command in histogram goroutines; do
			ok "$version $flags: $command says that DWARF is stripped" fails "no DWARF (stripped: no .debug_info)" -- sonde_core "$command"
			ok "$version $flags: $command says which program it is" fails "a $(version_of) program" -- sonde_core "$command"
		done
		ok "$version $flags: overview" shows "SIGABRT (6)" "$CORE/exe crash" "$(version_of)" \
			"no DWARF (stripped: no .debug_info)" -- sonde_core overview
		ok "$version $flags: mappings" shows "$CORE/exe" "[stack]" -- sonde_core mappings
		# The ELF header of the executable.
		ok "$version $flags: read" shows "7f 45 4c 46 02 01 01" -- sonde_core read 400000
		unset SONDE_BUILD_FLAGS
	done
done

# The same core with its executable stripped afterwards, and the parts brought back.
version=${VERSIONS##* }
if take_core bait "$version" kernel crash; then
	objcopy --strip-debug "$CORE/exe" "$WORK/exe"
	ok "stripped afterwards" fails "$WORK/exe: no DWARF (stripped: no .debug_info)" -- \
		"$SONDE" core histogram "$CORE/core" --exe "$WORK/exe"
	id=$(readelf -nW "$CORE/exe" | sed -n 's/.*Build ID: //p')
	sonde_core histogram --json >"$WORK/whole.json"
	if [[ -n $id ]]; then
		mkdir -p "$WORK/debug/.build-id/${id:0:2}"
		objcopy --only-keep-debug "$CORE/exe" "$WORK/debug/.build-id/${id:0:2}/${id:2}.debug"
		"$SONDE" core histogram "$CORE/core" --exe "$WORK/exe" --debug-dir "$WORK/debug" --json >"$WORK/found.json" 2>&1
		ok "debug file found by build-id" diff "$WORK/whole.json" "$WORK/found.json"
	else
		skip "debug file found by build-id" "Go $version writes none"
	fi
fi
tap_end
