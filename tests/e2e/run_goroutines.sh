#!/bin/bash
# sonde core goroutines: each goroutine's state, functions, lines and creator are those of the runtime's own traceback.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

compare() {
	local label=$1
	shift
	results "$label: comparison" python3 "$E2E/goroutines.py" "$label" "$SONDE" "$CORE" "$@"
}

# in_order FILE TEXT...: lines of FILE that contain these, in this order
in_order() {
	local file=$1 line=0 next text
	shift
	for text; do
		next=$(tail -n "+$((line + 1))" "$file" | grep -nF -m 1 -- "$text" | cut -d: -f1)
		[[ -n $next ]] || {
			echo "no \"$text\" behind line $line of:"
			cat "$file"
			return 1
		}
		line=$((line + next))
	done
}

# stack_of FUNCTION TEXT...: the one goroutine with this function calls, innermost first, what contains these texts
stack_of() {
	local function=$1
	shift
	sonde_core goroutines --all --function "$function" >"$WORK/stack" || return
	grep -q '^1 of ' "$WORK/stack" || {
		cat "$WORK/stack"
		return 1
	}
	in_order "$WORK/stack" "$@"
}

# c_on_top TEXT...: goroutine 1 has the frames TEXTs of C above its Go frames; its thread's stack has the pc that the runtime
# prints on top of its traceback, then TEXTs
c_on_top() {
	local pc
	pc=$(sed -n 's/^PC=0x\([0-9a-f]*\) .*/\1/p' "$CORE/stderr" | head -n 1)
	sonde_core goroutines -g 1 >"$WORK/stack" || return
	in_order "$WORK/stack" "goroutine 1 [syscall]" "$@" "runtime.cgocall" \
		"main._Cfunc_c_middle" "main.enterC" "main.main" "runtime.goexit" || return
	sonde_core threads >"$WORK/stack" || return
	in_order "$WORK/stack" "goroutine 1:" "runtime.sighandler" "$(printf '%016x' "0x$pc")" "$@"
}

STACKS="nil panic nested repanic goexit unlock maps deadlock overflow quit abort divide bounds"
dlv=$("$ROOT/scripts/toolchains.sh" --peer delve 2>/dev/null)/usr/bin/dlv

for version in $VERSIONS; do
	for mode in $STACKS; do
		! take_core stacks "$version" kernel "$mode" || compare "$version stacks $mode" crash
	done
	for mode in crash abort gcabort; do
		! take_core bait "$version" kernel "$mode" || compare "$version bait $mode" crash
	done
	for mode in wait gcwait; do
		take_core bait "$version" gcore "$mode" || continue
		compare "$version bait $mode" stacks
		if [[ -x $dlv ]]; then
			compare "$version bait $mode" delve "$dlv"
		else
			skip "$version bait $mode: delve" "scripts/toolchains.sh --peer delve does not bring it"
		fi
	done
	! take_core stacks "$version" kernel nil || compare "$version stacks nil" groups
	! take_core bait "$version" kernel crash || compare "$version bait crash" groups
	! take_core bait "$version" gcore wait || compare "$version bait wait" groups

	for mode in segv abort callback; do
		! take_core cgocrash "$version" kernel "$mode" || compare "$version cgocrash $mode" crash
	done
	if take_core cgocrash "$version" kernel segv; then
		ok "$version cgocrash segv: C on top" c_on_top c_leaf c_middle runtime.asmcgocall
	fi
	if take_core cgocrash "$version" kernel abort; then
		ok "$version cgocrash abort: C on top" c_on_top abort c_leaf c_middle runtime.asmcgocall
	fi
	if take_core cgocrash "$version" gcore wait; then
		ok "$version cgocrash wait: Go in C in Go" stack_of main.called "[sleep, locked to thread]" time.Sleep main.called main.called main.called \
			_cgoexp_ runtime.cgocallback runtime.cgocall main._Cfunc_c_call_back main.enterCallback main.main.func2 runtime.goexit
		ok "$version cgocrash wait: Go below C" stack_of main._Cfunc_c_middle "[syscall]" c_leaf c_middle runtime.asmcgocall runtime.cgocall \
			main._Cfunc_c_middle main.enterC main.main.func1 runtime.goexit
	fi
done

# Versions whose toolchains are there only where somebody brought them, and PIE and 386 of those that always are.
for version in 1.23 1.25 1.26; do
	[[ " $VERSIONS " != *" $version "* ]] || continue
	if ! "$ROOT/scripts/toolchains.sh" --path "$version" >/dev/null 2>&1; then
		skip "$version" "no toolchain: scripts/toolchains.sh $version"
		continue
	fi
	! take_core bait "$version" kernel crash || compare "$version bait crash" crash
	! take_core stacks "$version" kernel quit || compare "$version stacks quit" crash
done
for version in 1.24 1.27; do
	[[ " $VERSIONS " == *" $version "* ]] || continue
	export GOARCH=386
	! take_core bait "$version" kernel crash || compare "$version 386 bait crash" crash
	unset GOARCH
	export SONDE_BUILD_FLAGS=-buildmode=pie
	! take_core bait "$version" kernel crash || compare "$version PIE bait crash" crash
	unset SONDE_BUILD_FLAGS
done
tap_end
