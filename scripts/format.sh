#!/bin/bash
# Lays out the C files of src, include, tests and bench with clang-format 14; --check only reports, exit 1.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mode=(-i)
case ${1-} in
'') ;;
--check) mode=(--dry-run -Werror) ;;
*)
	sed -n 2p "$0" | sed 's/^# //'
	exit 1
	;;
esac

# Other versions lay out differently.
tool=$(command -v clang-format-14) || {
	echo "format.sh: clang-format-14 is missing: run scripts/deps.sh" >&2
	exit 1
}
folders=()
for folder in src include tests bench; do
	[[ ! -d $folder ]] || folders+=("$folder")
done
find "${folders[@]}" -type f \( -name '*.[ch]' -o -name '*.hpp' \) -print0 | sort -z |
	xargs -0 -r "$tool" --style=file "${mode[@]}"
