#!/bin/bash
# Makes tests/data/demo.core.zst and demo.exe.zst again: the core and the executable that scripts/demo.sh shows.
#
# As root, where core_pattern is a plain name; needs Go 1.27 (scripts/toolchains.sh 1.27). It is built with -trimpath and
# runs in an empty root folder, without /proc and with an empty environment, so that neither file says where it was made.
# What the linker would compress is left to zstd, and the standard library comes without location lists: both files
# together stay below 1 MB.
set -euo pipefail

DATA=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
GOROOT=$("$DATA/../../scripts/toolchains.sh" --path 1.27)
[[ $(</proc/sys/kernel/core_pattern) != *[/\|]* ]] || {
	echo "$0: core_pattern is not a plain name" >&2
	exit 1
}
build=$(mktemp -d)
place=$build/place
trap 'rm -rf -- "$build"' EXIT
mkdir "$place"

cp "$DATA/src/demo.go" "$build"
cd "$build"
printf 'module shop\n\ngo 1.27\n' >go.mod
env -u GOROOT GOTOOLCHAIN=local GOFLAGS=-mod=mod GOPROXY=off GOENV=off CGO_ENABLED=0 \
	GOCACHE="${SONDE_GO_BUILD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sonde-go-build}" \
	"$GOROOT/bin/go" build -trimpath -buildvcs=false \
	-ldflags=-compressdwarf=false -gcflags='std=-dwarflocationlists=false' -o "$place/demo" .

cd "$place"
ulimit -c unlimited
{
	env -i GOTRACEBACK=crash "$(command -v chroot)" . /demo </dev/null >../stdout 2>../stderr || true
} 2>/dev/null
cat ../stdout
mv demo ../exe
mv core* ../core # with the process's number at the end, where core_uses_pid is set
cd ..
if strings -a exe core | grep -F -e "$HOME/" -e "${DATA%/tests/data}" -e "${build%/*}/" -e " $(uname -n) "; then
	echo "$0: a path of this machine is in the core or the executable" >&2
	exit 1
fi
zstd -q -f -22 --ultra --long=27 exe -o "$DATA/demo.exe.zst"
zstd -q -f -22 --ultra --long=27 core -o "$DATA/demo.core.zst"
chmod 644 "$DATA"/demo.{core,exe}.zst
ls -l "$DATA"/demo.*.zst
