#!/bin/bash
# Brings the Go versions that the tests need from Debian's own suites.
#
#   toolchains.sh [VERSION...]     unpack the versions (default: those the test suite needs), print a GOROOT per line
#   toolchains.sh --path VERSION   print the GOROOT of a version that is already there; fails otherwise
#   toolchains.sh --peer NAME      unpack a peer tool used in benchmarks (delve), print the folder it stands in
#   toolchains.sh --arm64-libs     unpack a few arm64 libraries (no code of them is run), print the folder
#   toolchains.sh --list           known versions: version, suite, where it stands or "-"
#   toolchains.sh --mirrors        base addresses of the Debian archives that apt is configured with
#
# Nothing is installed: packages are checked (the suite's signature, then SHA256 sums) and unpacked below
# ${SONDE_TOOLCHAINS:-${XDG_CACHE_HOME:-$HOME/.cache}/sonde-toolchains}. A version that is there is kept as it is,
# whatever the mirror has by now. The mirror is the one that apt is configured with.
set -euo pipefail

# version:suite; a later suite has the same version again, the first one stays.
KNOWN="1.15:bullseye 1.19:bookworm 1.21:bookworm-backports 1.22:bookworm-backports 1.23:bookworm-backports
1.24:trixie 1.25:trixie-backports 1.26:trixie-backports 1.27:trixie-backports"
DEFAULT="1.22 1.24 1.27"
PEERS="delve:trixie"
# Each suite's in a folder of its name; return addresses are signed from trixie on.
ARM64_LIBS="bookworm:libc6 bookworm:libstdc++6 bookworm:libgcc-s1 bookworm:zlib1g bookworm:libssl3
bookworm:libpython3.11-minimal bookworm:bash trixie:libc6 trixie:libstdc++6"

CACHE=${SONDE_TOOLCHAINS:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/sonde-toolchains}
APT_HELPER=/usr/lib/apt/apt-helper
KEYRINGS="/usr/share/keyrings/debian-archive-keyring.gpg /usr/share/keyrings/debian-archive-removed-keys.gpg"
WORK=

die() {
	echo "toolchains.sh: $*" >&2
	exit 1
}

cleanup() {
	[[ -z $WORK ]] || rm -rf -- "$WORK"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# suite_of LIST NAME: the suite that LIST gives for NAME, nothing if it has none.
suite_of() {
	local entry
	for entry in $1; do
		[[ ${entry%%:*} != "$2" ]] || echo "${entry#*:}"
	done
}

goroot_of() {
	echo "$CACHE/$1/usr/lib/go-$1"
}

# The base addresses of Debian archives in the machine's apt configuration, one a line, in its order.
mirrors() {
	local site
	{
		apt-get indextargets --no-release-info --format '$(SITE)' \
			'Created-By: Packages' 'Component: main' 2>/dev/null || true
	} | while read -r site; do
		case $site in
		mirror+file:*) grep -Eo '^https?://[^[:space:]]+' "${site#mirror+file:}" || true ;;
		http://* | https://*) echo "$site" ;;
		esac
	done | sed 's,/*$,,' | grep -Ev -- '-security$' | awk '!seen[$0]++'
}

# fetch URL FILE [SHA256]
fetch() {
	local options=(-o APT::Sandbox::User="$(id -un)" -o Acquire::Retries=2)
	"$APT_HELPER" "${options[@]}" download-file "$1" "$2" ${3:+"SHA256:$3"} >"$WORK/fetch.log" 2>&1 ||
		{
			grep -E '^(E|W|Err)' "$WORK/fetch.log" >&2 || true
			return 1
		}
}

# suite_index SUITE ARCH: sets BASE and INDEX (the suite's Packages file, checked against the signed release file).
suite_index() {
	local suite=$1 index=main/binary-$2 mirror dir="$WORK/$1-$2" keyring sum
	INDEX=$dir/Packages
	if [[ -s $INDEX ]]; then
		BASE=$(<"$dir/base")
		return
	fi
	mkdir -p "$dir"
	for mirror in $MIRRORS; do
		if fetch "$mirror/dists/$suite/InRelease" "$dir/InRelease"; then
			BASE=$mirror
			break
		fi
	done
	[[ -s $dir/InRelease ]] || die "$suite: no configured mirror has this suite"

	local options=()
	for keyring in $KEYRINGS; do
		[[ ! -r $keyring ]] || options+=(--keyring "$keyring")
	done
	[[ ${#options[@]} -gt 0 ]] || die "no Debian archive keyring: install debian-archive-keyring"
	# A suite is signed by several keys, an older keyring does not hold all of them: one valid signature is enough.
	gpgv --status-fd 3 "${options[@]}" --output "$dir/Release" "$dir/InRelease" 3>"$dir/status" 2>"$dir/log" || true
	grep -q '^\[GNUPG:\] VALIDSIG ' "$dir/status" || {
		cat "$dir/log" >&2
		die "$suite: the release file has no valid signature"
	}
	sum=$(awk -v want="$index/Packages.xz" '$1 == "SHA256:" { on = 1; next } /^[^ ]/ { on = 0 }
		on && $3 == want { print $1 }' "$dir/Release")
	[[ -n $sum ]] || die "$suite: the release file does not list $index/Packages.xz"
	fetch "$BASE/dists/$suite/$index/by-hash/SHA256/$sum" "$dir/Packages.xz" "$sum" ||
		fetch "$BASE/dists/$suite/$index/Packages.xz" "$dir/Packages.xz" "$sum" ||
		die "$suite: cannot download the package index"
	"$APT_HELPER" cat-file "$dir/Packages.xz" >"$INDEX.part"
	echo "$BASE" >"$dir/base"
	mv "$INDEX.part" "$INDEX"
}

# unpack_package SUITE PACKAGE ROOT [ARCH]
unpack_package() {
	local filename sum deb
	suite_index "$1" "${4:-amd64}"
	read -r filename sum < <(awk -v package="$2" 'BEGIN { RS = ""; FS = "\n" }
		$1 == "Package: " package {
			for (i = 2; i <= NF; i++) {
				if ($i ~ /^Filename: /)
					name = substr($i, 11)
				if ($i ~ /^SHA256: /)
					sum = substr($i, 9)
			}
		}
		END { if (name != "") print name, sum }' "$INDEX") || die "$1 has no package $2"
	deb=$WORK/${filename##*/}
	fetch "$BASE/$filename" "$deb" "$sum" || die "cannot download $filename"
	mkdir -p "$3"
	dpkg -x "$deb" "$3"
	rm -f -- "$deb"
}

# Links of the package that start at / lead out of the folder: make them relative where the folder has the target.
relink() {
	local root=$1 link target
	find "$root" -type l -lname '/*' | while read -r link; do
		target=$(readlink "$link")
		[[ ! -e $root$target && ! -L $root$target ]] || ln -sfnr "$root$target" "$link"
	done
}

prepare() {
	[[ $(dpkg --print-architecture) == amd64 ]] || die "only amd64 is supported"
	[[ -x $APT_HELPER ]] || die "$APT_HELPER is missing: this needs Debian's apt"
	mkdir -p "$CACHE"
	exec 9>"$CACHE/.lock"
	flock 9
	# Whatever a killed run left: the lock is ours, so nobody uses it.
	rm -rf -- "$CACHE"/.unpack.*
	WORK=$(mktemp -d "$CACHE/.unpack.XXXXXX")
	MIRRORS=$(mirrors)
	[[ -n $MIRRORS ]] || die "apt is configured with no http(s) Debian archive"
}

need_go() {
	local version=$1 suite root goroot
	suite=$(suite_of "$KNOWN" "$version")
	[[ -n $suite ]] || die "unknown Go version $version (known: $(echo $KNOWN | sed 's/:[^ ]*//g'))"
	goroot=$(goroot_of "$version")
	if [[ ! -x $goroot/bin/go ]]; then
		[[ -n $WORK ]] || prepare
		if [[ ! -x $goroot/bin/go ]]; then
			root=$WORK/unpacked-$version
			unpack_package "$suite" "golang-$version-src" "$root"
			unpack_package "$suite" "golang-$version-go" "$root"
			relink "$root"
			GOROOT=$root/usr/lib/go-$version "$root/usr/lib/go-$version/bin/go" version >&2
			rm -rf -- "${CACHE:?}/$version"
			mv -T "$root" "$CACHE/$version"
		fi
	fi
	echo "$goroot"
}

need_peer() {
	local suite root
	suite=$(suite_of "$PEERS" "$1")
	[[ -n $suite ]] || die "unknown peer $1 (known: $(echo $PEERS | sed 's/:[^ ]*//g'))"
	if [[ ! -d $CACHE/$1 ]]; then
		[[ -n $WORK ]] || prepare
		if [[ ! -d $CACHE/$1 ]]; then
			root=$WORK/unpacked-$1
			unpack_package "$suite" "$1" "$root"
			relink "$root"
			mv -T "$root" "$CACHE/$1"
		fi
	fi
	echo "$CACHE/$1"
}

need_arm64_libs() {
	local entry root
	if [[ ! -d $CACHE/arm64-libs/trixie ]]; then
		[[ -n $WORK ]] || prepare
		if [[ ! -d $CACHE/arm64-libs/trixie ]]; then
			root=$WORK/unpacked-arm64-libs
			for entry in $ARM64_LIBS; do
				unpack_package "${entry%%:*}" "${entry#*:}" "$root/${entry%%:*}" arm64
			done
			rm -rf -- "${CACHE:?}/arm64-libs"
			mv -T "$root" "$CACHE/arm64-libs"
		fi
	fi
	echo "$CACHE/arm64-libs"
}

case ${1-} in
--path)
	[[ $# -eq 2 ]] || die "usage: toolchains.sh --path VERSION"
	[[ -x $(goroot_of "$2")/bin/go ]] || die "Go $2 is not there: run toolchains.sh $2"
	goroot_of "$2"
	;;
--list)
	for entry in $KNOWN; do
		goroot=$(goroot_of "${entry%%:*}")
		[[ -x $goroot/bin/go ]] || goroot=-
		printf '%s\t%s\t%s\n' "${entry%%:*}" "${entry#*:}" "$goroot"
	done
	;;
--mirrors)
	mirrors
	;;
--arm64-libs)
	[[ $# -eq 1 ]] || die "usage: toolchains.sh --arm64-libs"
	need_arm64_libs
	;;
--peer)
	[[ $# -eq 2 ]] || die "usage: toolchains.sh --peer NAME"
	need_peer "$2"
	;;
-*)
	sed -n '2,/^set /s/^# \{0,1\}//p' "$0"
	[[ $1 == --help || $1 == -h ]]
	;;
*)
	[[ $# -gt 0 ]] || set -- $DEFAULT
	for version; do
		need_go "$version"
	done
	;;
esac
