#!/bin/bash
# unwind_lookup_bpf.sh CLANG SRC SOURCE: compiles unwind/lookup.h for BPF and looks at what came out. TAP.
set -uo pipefail
clang=$1 src=$2 source=$3
work=$(mktemp -d) || exit 1
trap 'rm -rf -- "$work"' EXIT

n=0
ok() {
	n=$((n + 1))
	if "${@:2}" >"$work/log" 2>&1; then
		echo "ok $n - $1"
	else
		echo "not ok $n - $1"
		sed 's/^/# /' "$work/log"
	fi
}

if ! "$clang" -print-targets 2>/dev/null | grep -q bpf; then
	echo "1..0 # SKIP $clang has no BPF"
	exit
fi
compile() {
	"$clang" -target bpf -mcpu=v3 -O2 -g -Wall -Wextra -Wno-unused-parameter -Werror -I "$src" "$@" "$source"
}
without() {
	[[ -s $work/out.s ]] && ! grep -nE "$1" "$work/out.s"
}
ok "compiles" compile -c -o "$work/out.o"
ok "as text" compile -S -o "$work/out.s"
ok "no 64-bit division" without 'r[0-9]+ [/%s]+= r?[0-9]'
ok "nothing from a C library" without 'call (mem|str|__)'
ok "both programs are there" eval '[[ $(grep -cE "^(plain_loop|by_steps):" "$work/out.s") -eq 2 ]]'
echo "1..$n"
