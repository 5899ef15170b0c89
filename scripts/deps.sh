#!/bin/bash
# Installs, on Debian 12 or later and as root, the packages that the build and the tests need.
#
#   deps.sh          everything
#   deps.sh build    what the build and scripts/demo.sh need
#   deps.sh --list   the package names
#
# Does nothing, and needs no network, when all of them are installed.
set -euo pipefail

BUILD="gcc libc6-dev meson ninja-build pkg-config python3 libelf-dev libdw-dev zlib1g-dev libzstd-dev liblz4-dev
liblzma-dev libedit-dev zstd tar ca-certificates"
TEST="binutils clang-14 clang-format-14 debian-archive-keyring file g++ gdb git gpgv gzip jq libclang-rt-14-dev lz4 procps
unzip util-linux xz-utils"

case ${1-} in
'') packages="$BUILD $TEST" ;;
build) packages=$BUILD ;;
--list)
	printf '%s\n' $BUILD $TEST | sort
	exit
	;;
*)
	sed -n '2,/^set /s/^# \{0,1\}//p' "$0"
	exit 1
	;;
esac

missing() {
	# pkg-config may be provided by pkgconf; dpkg-query knows nothing of names that apt never saw.
	local package
	for package; do
		[[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true) == installed ]] || echo "$package"
	done
}

want=$(missing $packages)
[[ -n $want ]] || exit 0

if [[ $(id -u) != 0 ]]; then
	echo "deps.sh: not root; install these first:" $want >&2
	exit 1
fi
export DEBIAN_FRONTEND=noninteractive
options=(-o Dpkg::Use-Pty=0 -o APT::Install-Recommends=0 -o Acquire::Retries=3)
# An index that is missing or older than the mirror's packages fails to install: only then fetch a new one.
if ! apt-get -qq "${options[@]}" install -y $want >/dev/null 2>&1; then
	apt-get -qq "${options[@]}" update
	apt-get -qq "${options[@]}" install -y $want >/dev/null
fi
want=$(missing $packages)
[[ -z $want ]] || {
	echo "deps.sh: still missing:" $want >&2
	exit 1
}
