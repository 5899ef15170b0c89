#!/bin/bash
# The layer check: which folder of src/ includes which.
#
#   layers.sh [FOLDER]    checks FOLDER (default: src/ of this tree); prints "file:line: message", exits 1 on a violation
#
# A file in src/X includes "Y/..." only where Y is X itself or has a lower rank. Of core, profile and trace only the
# files named export_* include output/ and page/. The recorder links base, traceformat and unwind, nothing else.
# Every header says #pragma once.
set -euo pipefail

SRC=${1:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/src}
[[ -d $SRC ]] || {
	echo "layers.sh: $SRC: no such folder" >&2
	exit 1
}

cd "$SRC"
find . -type f \( -name '*.[ch]' -o -name '*.hpp' -o -name '*.def' -o -name '*.S' \) -print0 | sort -z |
	xargs -0 -r awk -v prefix="$(basename "$SRC")/" '
function complain(line, message)
{
	printf "%s:%d: %s\n", prefix path, line, message
	bad = 1
}
function finish_file()
{
	if (path ~ /\.(h|hpp)$/ && !once)
		complain(1, "header without #pragma once")
}
function rank_of(name)
{
	return (name in rank) ? rank[name] : -1
}
BEGIN {
	n = split("base:0 object:1 output:1 page:1 traceformat:1 target:2 unwind:2 record:3 symbol:3 traceread:3 " \
		"walk:3 golang:4 python:4 ruby:4 watch:4 core:5 profile:5 trace:5 cli:6", entries, " ")
	for (i = 1; i <= n; i++) {
		split(entries[i], pair, ":")
		rank[pair[1]] = pair[2] + 0
	}
	nusers = split("base traceformat unwind record", users, " ")
	for (i = 1; i <= nusers; i++)
		recorder[users[i]] = 1
}
FNR == 1 {
	if (path != "")
		finish_file()
	path = substr(FILENAME, 3)
	nparts = split(path, parts, "/")
	folder = nparts > 1 ? parts[1] : ""
	file = parts[nparts]
	once = 0
	if (folder == "" || rank_of(folder) < 0)
		complain(1, folder == "" ? "file outside a folder" : "folder " folder " has no rank")
}
/^[ \t]*#[ \t]*pragma[ \t]+once/ { once = 1 }
/^[ \t]*#[ \t]*include[ \t]*"/ {
	match($0, /"[^"]*"/)
	target = substr($0, RSTART + 1, RLENGTH - 2)
	slash = index(target, "/")
	if (!slash) {
		if (target != "config.h" && target !~ /\.skel\.h$/)
			complain(FNR, "\"" target "\" must be included with its folder")
		next
	}
	to = substr(target, 1, slash - 1)
	if (to == "sonde")
		next # the installed headers
	if (target ~ /\.\.\//)
		complain(FNR, "\"" target "\" leaves its folder")
	else if (rank_of(to) < 0)
		complain(FNR, "\"" target "\": folder " to " has no rank")
	else if (rank_of(folder) >= 0 && to != folder) {
		if (rank[to] >= rank[folder])
			complain(FNR, folder " (rank " rank[folder] ") must not include " to " (rank " rank[to] ")")
		else if ((to == "output" || to == "page") && rank[folder] == 5 && file !~ /^export_/)
			complain(FNR, "only " folder "/export_* may include " to)
		else if ((to == "output" || to == "page") && rank[folder] < 5)
			complain(FNR, folder " must not include " to)
		else if (folder == "record" && !(to in recorder))
			complain(FNR, "record must not include " to)
	}
}
END {
	if (path != "")
		finish_file()
	exit bad
}' || exit 1
