#!/bin/bash
# Runs scripts/demo.sh and scripts/test.sh in a fresh Debian 12, as a newcomer does. For developers; needs root.
#
#   chroot.sh [--keep] [--dir FOLDER] [--beside FOLDER]... [-- COMMAND...]
#
#   --keep           leave the folder there afterwards (it is printed)
#   --dir FOLDER     make the system in FOLDER, which must not exist (default: a new temporary one)
#   --beside FOLDER  copy FOLDER beside the tree
#   -- COMMAND...    run this in the tree instead of the two scripts
#
# The system is a minimal debootstrap of bookworm from the mirror that this machine's apt is configured with; the tree is
# a clean clone of HEAD: what is not committed is not there. Mounts live in a mount namespace and go with it.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
SUITE=bookworm
PLACE=/srv/sonde

die() {
	echo "chroot.sh: $*" >&2
	exit 1
}

keep='' dir='' beside=()
while [[ $# -gt 0 ]]; do
	case $1 in
	--keep) keep=1 ;;
	--dir | --beside)
		[[ $# -ge 2 ]] || die "$1 needs a folder"
		if [[ $1 == --dir ]]; then dir=$2; else beside+=("$2"); fi
		shift
		;;
	--)
		shift
		break
		;;
	*)
		sed -n '2,/^set /s/^# \{0,1\}//p' "$0"
		exit 1
		;;
	esac
	shift
done
[[ $# -gt 0 ]] || set -- bash -c 'scripts/demo.sh && scripts/test.sh'

[[ $(id -u) == 0 ]] || die "needs root"
command -v debootstrap >/dev/null || die "needs the package debootstrap"
if [[ -n $dir ]]; then
	[[ ! -e $dir ]] || die "$dir is there already"
	mkdir -p "$dir"
else
	dir=$(mktemp -d "${TMPDIR:-/tmp}/sonde-chroot.XXXXXX")
fi
dir=$(cd "$dir" && pwd)
chmod 755 "$dir"

cleanup() {
	if [[ -n $keep ]]; then
		echo "chroot.sh: kept $dir" >&2
	else
		rm -rf --one-file-system -- "$dir"
	fi
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

started=$SECONDS
mirror=$("$ROOT/scripts/toolchains.sh" --mirrors | head -n 1)
[[ -n $mirror ]] || die "apt is configured with no http(s) Debian archive"
debootstrap --variant=minbase "$SUITE" "$dir" "$mirror" >"$dir.log" 2>&1 || {
	tail -n 20 "$dir.log" >&2
	die "debootstrap failed"
}
rm -f -- "$dir.log"

# What apt needs to reach the mirror: sources, settings of its transport, keys, certificates, names.
rm -f -- "$dir/etc/apt/sources.list"
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
	[[ ! -f $file ]] || ! grep -q "$SUITE" "$file" || cp -L --parents "$file" "$dir"
done
for file in /etc/apt/apt.conf /etc/apt/apt.conf.d/*; do
	[[ ! -f $file ]] || ! grep -q Acquire "$file" || grep -q Invoke "$file" || cp -L --parents "$file" "$dir"
done
for file in /etc/apt/auth.conf.d /etc/apt/keyrings /etc/apt/trusted.gpg.d /etc/ssl/certs \
	/usr/local/share/ca-certificates /etc/resolv.conf /etc/hosts; do
	[[ ! -e $file ]] || cp -RL --parents "$file" "$dir" 2>/dev/null || true
done
if [[ -z $(find "$dir/etc/apt" -name '*.list' -o -name '*.sources') ]]; then
	echo "deb $mirror $SUITE main" >"$dir/etc/apt/sources.list"
fi

mkdir -p "$dir/srv"
git clone -q --no-hardlinks "$ROOT" "$dir$PLACE"
for folder in "${beside[@]}"; do
	cp -a -- "$folder" "$dir/srv/"
done
echo "chroot.sh: $SUITE made in $((SECONDS - started)) s, tree at $(git -C "$ROOT" describe --always)" >&2

names=()
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY TERM; do
	[[ -z ${!name-} ]] || names+=("$name=${!name}")
done
# The root is bound to itself: then / is a mount point inside, as it is on a machine.
unshare --mount --propagation private -- bash -c '
	set -e
	mount --bind "$1" "$1"
	mount -t proc proc "$1/proc"
	mount -t sysfs -o ro sysfs "$1/sys"
	mount -t devpts devpts "$1/dev/pts"
	mount -t tmpfs tmpfs "$1/dev/shm"
	place=$2
	root=$1
	shift 2
	exec chroot "$root" env -i -C "$place" "$@"
' bash "$dir" "$PLACE" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/srv LANG=C.UTF-8 \
	"${names[@]}" "$@"
