#!/bin/bash
# A compressed core gives the same reports as the plain one, but for its own name and size.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# report CORE COMMAND [ARG...]: text, then JSON, without the name and the size of the file; and without the bytes of mappings
# that are no holes in it: how a file is stored on this machine's disk is no part of its content.
report() {
	local core=$1 command=$2 text=(cat) json=(cat)
	shift 2
	case $command in
	overview)
		text=(sed '/^core: /d; /^core size: /d')
		json=(sed 's/"core":"[^"]*","core_bytes":[0-9]*,//')
		;;
	mappings)
		text=(awk '{ $5 = ""; print }')
		json=(sed 's/"present_bytes":[0-9]*//g')
		;;
	esac
	limited "$SONDE" core "$command" "$core" --exe "$CORE/exe" "$@" | "${text[@]}" || return
	limited "$SONDE" core "$command" "$core" --exe "$CORE/exe" --json "$@" | "${json[@]}"
}

# same NAME FILE: every report of FILE is that of $CORE/core
same() {
	local name=$1 file=$2 n=0 line words
	while read -r line; do
		read -ra words <<<"$line"
		n=$((n + 1))
		[[ -s $WORK/plain.$n ]] || report "$CORE/core" "${words[@]}" >"$WORK/plain.$n" 2>&1
		report "$file" "${words[@]}" >"$WORK/report" 2>&1
		ok "$name: $line: there is a report" eval '[[ $(wc -c <"$WORK/plain.$n") -gt 200 ]]'
		ok "$name: $line: the same report" cmp "$WORK/plain.$n" "$WORK/report"
	done <<-EOF
		overview
		mappings
		goroutines
		goroutines --all
		histogram
		histogram --by package
		read $(oracle addr main.list addr) 1000
	EOF
}

version=${VERSIONS##* }
if take_core bait "$version" kernel crash; then
	zstd -q "$CORE/core" -o "$WORK/core.zst"
	xz -1 -c "$CORE/core" >"$WORK/core.xz"
	lz4 -q "$CORE/core" "$WORK/core.lz4"
	gzip -1 -c "$CORE/core" >"$WORK/core.gz"
	for suffix in zst xz lz4 gz; do
		same ".$suffix" "$WORK/core.$suffix"
	done
	# Frames one behind the other; the name tells nothing.
	size=$(stat -c %s "$CORE/core")
	for tool in zstd xz lz4 gzip; do
		{
			head -c $((size / 3 + 5)) "$CORE/core" | "$tool" -1 -c
			tail -c "+$((size / 3 + 6))" "$CORE/core" | "$tool" -1 -c
		} >"$WORK/two"
		same "two frames of $tool" "$WORK/two"
	done
fi
rm -f "$WORK"/plain.*

# Holes of the plain file are 1.2 GB of zeros in the compressed one: inflated, they are holes again.
if take_core bait "$version" gcore wait; then
	zstd -q --sparse -1 "$CORE/core" -o "$WORK/gcore.zst"
	ok "a core of more than 1 GB" eval '[[ $(stat -c %s "$CORE/core") -gt 1000000000 ]]'
	same "gcore .zst" "$WORK/gcore.zst"
	mkdir -p "$WORK/small"
	small_disk() {
		unshare --mount --propagation private -- bash -c '
			mount -t tmpfs -o size=64m tmpfs "$1" || exit 99
			shift
			"$@"' bash "$WORK/small" "$@"
	}
	if small_disk true 2>/dev/null; then
		ok "gcore .zst: a folder of 64 MB is enough for it" small_disk env TMPDIR="$WORK/small" \
			timeout 60 "$SONDE" core overview "$WORK/gcore.zst"
	else
		skip "gcore .zst: a folder of 64 MB is enough for it" "needs root and a tmpfs"
	fi
fi
tap_end
