#!/bin/bash
# What is no core, not readable, cut or damaged: the message says which, the exit status is 1, and what can be read is
# still shown. Every command runs under a limit of time and memory.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

sonde() {
	limited "$SONDE" "$@"
}

all_fail() {
	local name=$1 text=$2 command
	shift 2
	for command in overview goroutines histogram mappings; do
		ok "$name: $command" fails "$text" -- sonde core "$command" "$@"
	done
	ok "$name: read" fails "$text" -- sonde core read "$1" 400000 8 "${@:2}"
}

version=${VERSIONS##* }
take_core bait "$version" kernel crash || {
	tap_end
}
address=$(oracle addr main.list addr)
core=$CORE/core exe=$CORE/exe size=$(stat -c %s "$CORE/core")
cd "$WORK" || exit 1
chmod 711 . # for the one who is not root

# copy NAME: a sparse copy of the core
copy() {
	cp --sparse=always "$core" "$1"
	chmod 644 "$1"
}

# put FILE OFFSET BYTES: as printf writes them
put() {
	printf "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# ---- no core
echo "a text of 24 bytes, this" >text
: >empty
mkdir folder
head -c 5000 /dev/urandom >noise
printf '\0' | dd of=noise conv=notrunc status=none
python3 -c 'import zipfile; zipfile.ZipFile("archive.zip", "w").writestr("core", "x" * 1000)'
all_fail "text" "text: not a core dump: it is 25 bytes of text" text
all_fail "empty file" "empty: not a core dump: it is an empty file" empty
all_fail "folder" "folder: Is a directory" folder
all_fail "zip archive" "archive.zip: not a core dump: it is a zip archive" archive.zip
all_fail "executable" "exe: not a core dump: it is an ELF executable" "$exe"
all_fail "binary noise" "noise: not a core dump" noise
all_fail "no such file" "nothing: No such file or directory" nothing
all_fail "device" "/dev/null: not a regular file" /dev/null
for machine in '\xf3\x00:riscv' '\x15\x00:ppc64' '\x16\x00:s390' '\xff\xff:65535'; do
	copy machine
	put machine 18 "${machine%:*}"
	all_fail "machine ${machine#*:}" "${machine#*:}" machine
done
copy order
put order 5 '\x02'
all_fail "big endian" "order: " order
rm -f machine order

# ---- permissions
cp "$SONDE" sonde
copy unreadable
copy readable
cp "$exe" exe-unreadable
chmod 000 unreadable exe-unreadable
if [[ $(id -u) == 0 ]]; then
	as_nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
else
	as_nobody=()
fi
ok "unreadable: the same, readable, is read" shows "SIGABRT" -- limited "${as_nobody[@]}" ./sonde core overview readable
ok "unreadable core" fails "unreadable: Permission denied" -- limited "${as_nobody[@]}" ./sonde core overview unreadable
ok "unreadable executable" fails "exe-unreadable: Permission denied" -- \
	limited "${as_nobody[@]}" ./sonde core histogram readable --exe exe-unreadable
rm -f unreadable readable exe-unreadable sonde

# ---- the executable
mkdir alone
copy alone/core
cp "$exe" other-exe
# A core names its executable by path: one that is not there.
python3 - "$exe" alone/core <<'EOF'
import mmap
import sys
path = sys.argv[1].encode()
with open(sys.argv[2], "r+b") as file, mmap.mmap(file.fileno(), 0) as core:
    at, n = core.find(path), 0
    while at >= 0:
        core[at:at + len(path)] = path[:-3] + b"gon"
        at, n = core.find(path), n + 1
    assert n >= 2  # of NT_FILE, on the stack
EOF
gone=${exe%exe}gon
for command in goroutines histogram; do
	ok "executable missing: $command" fails "no executable found: tried $gone: No such file or directory" "name it with --exe" -- \
		sonde core "$command" alone/core
done
ok "executable missing: overview" shows "$gone" "SIGABRT (6)" "No such file or directory" "name it with --exe" -- \
	sonde core overview alone/core
ok "executable missing: mappings" shows "$gone: No such file or directory" -- sonde core mappings alone/core
ok "executable missing: --exe brings it" shows "main.Cells" -- sonde core histogram alone/core --exe other-exe
mkdir -p "root${gone%/*}"
cp "$exe" "root$gone"
ok "executable missing: --sysroot brings it" shows "main.Cells" -- sonde core histogram alone/core --sysroot root
cp "$exe" alone/gon
ok "executable missing: one beside the core" shows "main.Cells" -- sonde core histogram alone/core
rm -rf root alone other-exe
all_fail "--exe: no such file" "nothing: No such file or directory" "$core" --exe nothing
all_fail "--exe: a text" "text: not an ELF file: it is 25 bytes of text" "$core" --exe text
all_fail "--exe: a core" "core is no executable" "$core" --exe "$core"

# Another build of the same program; with a GNU build-id and, before Go 1.24, with Go's own.
for other in $VERSIONS; do
	export SONDE_BUILD_FLAGS=-gcflags=-N
	take_core bait "$other" kernel crash || continue
	unset SONDE_BUILD_FLAGS
	wrong=$CORE/exe
	take_core bait "$other" kernel crash || continue
	id=$(readelf -nW "$wrong" | sed -n 's/.*Build ID: //p')
	[[ -n $id ]] || id=$(readelf -nW "$wrong" | sed -n 's/.*GO BUILDID.*description data: //p' |
		python3 -c 'import sys; print(bytes.fromhex(sys.stdin.read().strip()).decode())')
	for command in overview goroutines histogram; do
		ok "$other: wrong executable: $command" fails "wrong executable" "$wrong" "$id" -- \
			sonde core "$command" "$CORE/core" --exe "$wrong"
	done
done

# ---- addresses
ok "read: not mapped, low" fails "0x10 is not mapped" -- sonde core read "$core" 10
ok "read: not mapped, high" fails "0xffff800000000000 is not mapped" -- sonde core read "$core" 0xffff800000000000
ok "read: the last address" fails "0xfffffffffffffff0 is not mapped" -- sonde core read "$core" fffffffffffffff0 8
ok "read: past the last address" expect 2 stderr "pass the end of memory" -- sonde core read "$core" ffffffffffffffff 2
ok "read: more than there is in a mapping" expect 0 stderr -- sonde core read "$core" 400ff0 64
guard=$(readelf -lW "$core" | awk '$1 == "LOAD" && $5 == "0x000000" && !/R/ { print $3; exit }')
ok "read: a mapping without access rights" fails "$(printf '%#x' "$guard")" "no access rights" -- sonde core read "$core" "$guard"
ok "read: no address" expect 2 stderr "'zz' is not a hexadecimal address" -- sonde core read "$core" zz
ok "read: too long an address" expect 2 stderr "is not a hexadecimal address" -- sonde core read "$core" 10000000000000000
ok "read: no number" expect 2 stderr "1x" -- sonde core read "$core" 400000 1x
ok "a full device for the output" expect 1 stderr "No space left on device" -- \
	eval 'limited "$SONDE" core goroutines "$core" >/dev/full'

# ---- no Go program
if take_core plain - kernel; then
	for command in goroutines histogram; do
		ok "C program: $command" fails "$CORE/exe: not a Go program" -- sonde core "$command" "$CORE/core"
	done
	ok "C program: overview" shows "$CORE/exe" "SIGABRT (6)" "not a Go program" -- sonde core overview "$CORE/core"
	ok "C program: mappings" shows "[stack]" -- sonde core mappings "$CORE/core"
	objcopy --strip-all "$CORE/exe" exe-stripped
	ok "C program, stripped" fails "not a Go program" -- sonde core histogram "$CORE/core" --exe exe-stripped
fi

# ---- truncated
read -r notes notes_size < <(readelf -lW "$core" | awk '$1 == "NOTE" { print $2, $5; exit }')
read -r data data_size data_addr < <(readelf -lW "$core" | awk '$1 == "LOAD" && $5 != "0x000000" && $7 == "RW" { print $2, $5, $3; exit }')
while read -r heap heap_addr heap_size; do
	((heap_addr > address || address >= heap_addr + heap_size)) || break
done < <(readelf -lW "$core" | awk '$1 == "LOAD" { print $2, $3, $5 }')
for table in histogram goroutines; do
	[[ $table != goroutines ]] || all=--all
	sonde core "$table" "$core" --json ${all-} >"$table.whole"
done

# cut_at BYTES
cut_at() {
	copy cut
	truncate -s "$1" cut
}

# The whole report, or exit status 1 and a reason; either way the truncation is named.
partial() {
	local command=$1 lost=$2 status=0
	shift 2
	sonde core "$command" cut --exe "$exe" --json "$@" >stdout 2>stderr || status=$?
	grep -qF "cut: truncated by $lost bytes" stderr || {
		echo "not named on stderr:"
		cat stderr
		return 1
	}
	case $status in
	0) grep -qF "cut: truncated by $lost bytes" <(member notes <stdout) ;;
	1) grep -q 'is not readable' stderr && [[ ! -s stdout ]] ;;
	*) false ;;
	esac || {
		echo "exit status $status"
		cat stderr
		head -c 2000 stdout
		return 1
	}
}

# truncated NAME BYTES: what holds wherever the core was cut behind its program headers
truncated() {
	local name="truncated $1" lost=$((size - $2))
	cut_at "$2"
	ok "$name: overview" shows "truncated by $lost bytes" "memory that cannot be read" -- sonde core overview cut --exe "$exe"
	ok "$name: mappings" shows "truncated by $lost bytes" "the core file is truncated" -- sonde core mappings cut --exe "$exe"
	ok "$name: goroutines" partial goroutines "$lost" --all
	ok "$name: histogram" partial histogram "$lost"
}

same_bytes() {
	local want
	want=$(sonde core read "$core" "$1" 256 --json | member bytes) || return
	equal "${#want}" 512 || return
	equal "$(sonde core read cut "$1" 256 --exe "$exe" --json -q | member bytes)" "$want"
}

cut_at 30
all_fail "truncated in the ELF header" "cut: ends inside its ELF header, at 30 bytes" cut
cut_at 64
all_fail "truncated behind the ELF header" "cut: the core has no program headers within its 64 bytes" cut
cut_at $((64 + 5 * 56 + 10))
ok "truncated in the program headers: overview" shows "program headers lost" -- sonde core overview cut --exe "$exe"
ok "truncated in the program headers: histogram" fails "is not readable" -- sonde core histogram cut --exe "$exe"
ok "truncated in the program headers: goroutines" fails "is not readable" -- sonde core goroutines cut --exe "$exe"
truncated "in the notes" $((notes + notes_size / 2))
truncated "behind the notes" $((notes + notes_size))
ok "truncated behind the notes: threads" equal "$(sonde core overview cut --exe "$exe" --json -q | member threads)" \
	"$(sonde core overview "$core" --json | member threads)"
truncated "in the data segment" $((data + data_size / 2))
ok "truncated in the data segment: read before" same_bytes "$data_addr"
ok "truncated in the data segment: read behind" fails "the core file is truncated" -- \
	sonde core read cut "$(printf '%x' $((data_addr + data_size - 256)))" --exe "$exe"
truncated "in the heap" $((heap + heap_size / 2 + 1))
ok "truncated in the heap: read before" same_bytes "$heap_addr"
ok "truncated in the heap: read behind" fails "the core file is truncated" -- \
	sonde core read cut "$(printf '%x' $((heap_addr + heap_size - 4096)))" --exe "$exe"
truncated "behind the heap" $((heap + heap_size))
truncated "at nine tenths" $((size * 9 / 10))
truncated "by one byte" $((size - 1))

# The last page is the kernel's: nothing but the notes may differ.
without_notes() {
	python3 -c '
import json, sys
report = json.load(open(sys.argv[1]))
del report["notes"]
print(json.dumps(report, indent=0))' "$1"
}
sonde core histogram cut --exe "$exe" --json -q >cut.json
ok "truncated by one byte: the whole histogram" diff <(without_notes histogram.whole) <(without_notes cut.json)
sonde core goroutines --all cut --exe "$exe" --json -q >cut.json
ok "truncated by one byte: all goroutines" diff <(without_notes goroutines.whole) <(without_notes cut.json)
rm -f cut

# ---- compressed
zstd -q "$core" -o whole.zst
xz -1 -k -c "$core" >whole.xz
lz4 -q "$core" whole.lz4
gzip -1 -c "$core" >whole.gz
for suffix in zst xz lz4 gz; do
	bytes=$(stat -c %s "whole.$suffix")
	head -c $((bytes / 2)) "whole.$suffix" >"cut.$suffix"
	cp "whole.$suffix" "damaged.$suffix"
	put "damaged.$suffix" $((bytes / 2)) '\x00\xff\x00\xff\x55\xaa\x55\xaa\x00\xff\x00\xff\x55\xaa\x55\xaa'
	head -c 8 "whole.$suffix" >"head.$suffix"
	for kind in cut damaged; do
		word=$([[ $kind == cut ]] && echo 'ends too early' || echo 'is damaged')
		for command in overview goroutines histogram; do
			status=0
			sonde core "$command" "$kind.$suffix" --exe "$exe" >stdout 2>stderr || status=$?
			ok "$kind .$suffix: $command says so" grep -F "$kind.$suffix: its " stderr
			ok "$kind .$suffix: $command says what" grep -F "data $word" stderr
			ok "$kind .$suffix: $command: exit status 0 with a note, or 1" \
				eval '[[ $status == 0 ]] && grep -q "^note: .*compressed core" stdout || [[ $status == 1 && ! -s stdout ]] || { cat stdout stderr; false; }'
		done
	done
	all_fail "head of a .$suffix" "head.$suffix: " "head.$suffix"
done
zstd -q "$exe" -o exe.zst
all_fail "compressed executable" "exe.zst: not a core dump: it is an ELF executable" exe.zst
rm -f cut.* damaged.*

# ---- full disk
small_disk() {
	unshare --mount --propagation private -- bash -c '
		mount -t tmpfs -o size=1m tmpfs "$1" || exit 99
		shift
		"$@"' bash "$WORK/folder" "$@"
}
if [[ $(id -u) == 0 ]] && small_disk true 2>/dev/null; then
	for suffix in zst xz lz4 gz; do
		ok "full disk: .$suffix" fails "whole.$suffix: its inflated copy needs" "$WORK/folder" "TMPDIR" "No space left on device" -- \
			small_disk env TMPDIR="$WORK/folder" timeout -k 1 60 "$SONDE" core overview "$WORK/whole.$suffix"
	done
else
	skip "full disk" "needs root and a tmpfs"
fi
ok "no folder for the inflated copy" fails "$WORK/nothing: No such file or directory" -- \
	env TMPDIR="$WORK/nothing" "$SONDE" core overview whole.zst
tap_end
