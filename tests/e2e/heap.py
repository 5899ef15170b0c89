#!/usr/bin/env python3
"""Compares `sonde core histogram` of a core of bait with what the program itself said of its heap.

    heap.py LABEL SONDE CORE_FOLDER MODE GOROOT [WORD_BYTES]

CORE_FOLDER holds exe, core, stdout, stderr; MODE is bait's; each result's name begins with LABEL. Prints results for lib.sh's results(). A slot's size is not
asked of sonde: it follows from the object's size and the table of size classes in GOROOT.
"""
import json
import os
import re
import struct
import subprocess
import sys

MAX_UNKNOWN_SHARE = 0.01
PAGE = 8192
HEADER = 8  # runtime.mallocHeaderSize


def result(good, name, why=""):
    print(f"{'ok' if good else 'not ok'} {sys.argv[1]}: {name}")
    if not good and why:
        print("# " + str(why).replace("\n", "\n# "))


def equal(name, got, want):
    result(got == want, name, f"is {got}, want {want}")


class Oracle:
    """The lines of the program: kind, name, other keys; stacks left out."""

    def __init__(self, path):
        self.rows, stacks = [], False
        with open(path, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                words = line.split()
                if words and words[0] in ("stacks_begin", "stacks_end"):
                    stacks = words[0] == "stacks_begin"
                elif words and not stacks:
                    # A name or a type may hold blanks: a value ends where the next key begins.
                    pairs = re.findall(r"(\w+)=(.*?)(?=\s+\w+=|\s*$)", line[len(words[0]):])
                    self.rows.append((words[0], dict(pairs)))

    def of(self, kind):
        return [row for k, row in self.rows if k == kind]

    def number(self, kind, name, key="value"):
        found = [row for row in self.of(kind) if row["name"] == name]
        assert len(found) == 1, f"{kind} {name}: {len(found)} lines"
        return int(found[0][key])


def not_typed_yet(program, version):
    """The names that tests/e2e/not_typed_yet lists for a program and Go version."""
    names = set()
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "not_typed_yet"), encoding="ascii") as lines:
        for line in lines:
            words = line.split("#")[0].split()
            if words and words[0] == program and (len(words) == 2 or version in words[2:]):
                names.add(words[1])
    return names


class Slots:
    """Bytes of the slot that the runtime takes for an object (runtime/malloc.go, mallocgc)."""

    def __init__(self, goroot, word):
        for path in ("internal/runtime/gc", "runtime"):  # since 1.25; before
            try:
                with open(f"{goroot}/src/{path}/sizeclasses.go", encoding="ascii") as file:
                    found = re.search(r"^var (?:class_to_size|SizeClassToSize) = .*?\{(.*?)\}", file.read(), re.M)
                    break
            except FileNotFoundError:
                continue
        self.classes = [int(size) for size in found.group(1).split(",")]
        assert len(self.classes) == 68 and self.classes[-1] == 32768
        self.header_above = word * word * 8  # minSizeForMallocHeader: a bit a word, one word of bits

    def of(self, size, pointers):
        if pointers and self.header_above < size <= 32768 - HEADER:
            size += HEADER
        for slot in self.classes:
            if size <= slot and (slot < 32768 or not pointers or size <= 32768):
                return slot
        return (size + PAGE - 1) // PAGE * PAGE


def histogram(sonde, folder, *options):
    run = subprocess.run([sonde, "core", "histogram", "--json", *options, f"{folder}/core", "--exe", f"{folder}/exe"],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    assert run.returncode == 0, f"exit status {run.returncode}: {run.stderr.decode()}"
    text = run.stdout.decode("utf-8")
    assert text.count("\n") == 1 and text.endswith("\n"), "JSON is one line"
    return json.loads(text)


def check_types(oracle, rows, slots, listed):
    missing = missing_bytes = 0
    for row in oracle.of("type"):
        name, size, count = row["name"], int(row["size"]), int(row["count"])
        if row.get("live") == "0":
            equal(f"{name}: all garbage", rows.get(name), None)
            continue
        if name == "main.Tiny":  # several share a block of 16 bytes, which is one object
            count, slot = oracle.number("tiny", "main.tinies", "blocks"), 16
        else:
            # Of bait's types all that are large have pointers.
            slot = slots.of(size, size > slots.header_above)
        got = rows.get(name, {"count": 0, "bytes": 0})
        if name in listed:
            result(got["count"] < count and got["bytes"] == got["count"] * slot,
                   f"{name}: less than {count} of {slot} bytes: not typed yet",
                   f"is {got['count']}, {got['bytes']} bytes; where it is complete, take it off tests/e2e/not_typed_yet")
            missing += count - got["count"]
            missing_bytes += (count - got["count"]) * slot
        else:
            equal(f"{name}: {count} of {slot} bytes", (got["count"], got["bytes"]), (count, count * slot))
    return missing, missing_bytes


def check_slices(oracle, rows, slots, word):
    want = {}
    for row in oracle.of("slice"):
        if "main." in row["type"]:  # others have backing arrays of the libraries, too
            count, size = want.get(row["type"], (0, 0))
            element = word if row["type"].startswith("[]*") else int(row["elemsize"])
            pointers = row["type"] != "[]main.Point"
            want[row["type"]] = count + 1, size + slots.of(int(row["cap"]) * element, pointers)
    for name, (count, size) in sorted(want.items()):
        got = rows.get(name, {"count": 0, "bytes": 0})
        equal(f"{name}: {count} arrays", (got["count"], got["bytes"]), (count, size))


class Memory:
    """Words of an ELF core, little endian, read here: independent of sonde."""

    def __init__(self, path, word):
        self.file, self.word = open(path, "rb"), word
        head = self.file.read(64)
        at, size, n = struct.unpack_from("<Q14xHH" if word == 8 else "<I10xHH", head, 32 if word == 8 else 28)
        self.loads = []
        for i in range(n):
            self.file.seek(at + i * size)
            row = self.file.read(size)
            kind, offset, addr, file_bytes = struct.unpack_from("<I4xQQ8xQ" if word == 8 else "<III4xI", row)
            if kind == 1:
                self.loads.append((addr, offset, file_bytes))

    def at(self, addr):
        for start, offset, size in self.loads:
            if start <= addr < start + size:
                self.file.seek(offset + addr - start)
                return int.from_bytes(self.file.read(self.word), "little")
        raise ValueError(f"no byte at {addr:#x}")


def panic_objects(folder, slots, word):
    """What a nil dereference allocates behind the figures: runtime.preprintpanics calls the panic value's Error(), which
    joins a text, and boxes that string in an interface (runtime/panic.go, error.go). About once in a thousand times the
    runtime keeps the outcome of the type switch there: a cache of 2 rows behind a mask, an object without pointers
    (runtime/iface.go, buildInterfaceSwitchCache, buildTypeAssertCache)."""
    with open(f"{folder}/stderr", encoding="utf-8", errors="replace") as file:
        text = file.read()
    sizes = [len(re.match(r"panic: (runtime error: .*)\n", text).group(1)), 2 * word]
    panic_type = int(re.search(r"^panic\(\{(0x[0-9a-f]+)", text, re.M).group(1), 16)
    memory = Memory(f"{folder}/core", word)
    symbols = subprocess.run(["nm", f"{folder}/exe"], stdout=subprocess.PIPE, check=True).stdout.decode()
    # Where the program was loaded (PIE): main.main in the traceback and in the file.
    offset, pc = re.search(r"^main\.main\(\)\n\t.* \+(0x\w+) .*pc=(0x\w+)$", text, re.M).groups()
    moved = int(pc, 16) - int(offset, 16) - int(re.search(r"^(\w+) T main\.main$", symbols, re.M).group(1), 16)
    for addr, kind in re.findall(r"^(\w+) \w runtime\.\.(interfaceSwitch|typeAssert)\.\d+$", symbols, re.M):
        cache, words = memory.at(int(addr, 16) + moved), 3 if kind == "interfaceSwitch" else 2
        rows = memory.at(cache) + 1
        if panic_type in [memory.at(cache + word * (1 + row * words)) for row in range(rows)]:
            sizes.append(word * (1 + rows * words))
    return len(sizes), sum(slots.of(size, False) for size in sizes)


def check_accounting(oracle, report, mode, version, extra, slots, word):
    heap_objects, heap_bytes = oracle.number("mem", "HeapObjects"), oracle.number("mem", "HeapAlloc")
    equal("the program: nothing allocated between two readings", oracle.number("mem", "stable"), 1)
    equal(f"allocated is HeapObjects + {extra[0]}", report["allocated_objects"], heap_objects + extra[0])
    equal(f"allocated bytes are HeapAlloc + {extra[1]}", report["allocated_bytes"], heap_bytes + extra[1])
    for what in ("objects", "bytes"):
        equal(f"live + pending + garbage = allocated, {what}",
              report[f"live_{what}"] + report[f"pending_{what}"] + report[f"garbage_{what}"], report[f"allocated_{what}"])
    garbage = [row for row in oracle.of("type") if row.get("live") == "0"]
    assert len(garbage) == (0 if mode in ("gcabort", "gcwait") else 1)
    count = sum(int(row["count"]) for row in garbage)
    size = sum(int(row["count"]) * slots.of(int(row["size"]), False) for row in garbage)
    # Two closures of package unique: bait/go124.go. For 386 the compiler keeps them on the stack.
    if version == "1.24" and garbage and word == 8:
        count, size = count + 2, size + 2 * 24
    equal("garbage is what the program left behind", (report["garbage_objects"], report["garbage_bytes"]), (count, size))
    equal("nothing is pending", (report["pending_objects"], report["pending_bytes"]), (0, 0))


def check_unknown(report, missing, missing_bytes):
    """missing: the objects that have no row, as not_typed_yet says."""
    unknown = report["unknown_objects"], report["unknown_bytes"]
    print(f"# unknown: {unknown[0]} objects, {unknown[1]} bytes, {100 * report['unknown_share']:.3f} %")
    result(unknown[0] >= missing and unknown[1] >= missing_bytes, "what is not typed yet is among the unknown",
           f"missing {missing} objects, {missing_bytes} bytes; unknown {unknown}")
    result(unknown[1] <= MAX_UNKNOWN_SHARE * report["live_bytes"], "at most 1 % of the live bytes is unknown",
           f"{unknown[1]} of {report['live_bytes']}")
    equal("the unknown share is that of the unknown bytes", report["unknown_share"],
          round(unknown[1] / report["live_bytes"], 6))


def package_of(name):
    """Of the innermost element type, as a reader of the name sees it."""
    while True:
        stripped = re.sub(r"^(\*|\[\d*\]|chan |closure )", "", name)
        if name.startswith("map[") and name[4:5] not in "]":
            depth = 0
            for at in range(3, len(name)):
                depth += {"[": 1, "]": -1}.get(name[at], 0)
                if depth == 0:
                    stripped = name[at + 1:]
                    break
        if stripped == name:
            break
        name = stripped
    found = re.match(r"((?:[^\s\[{(]*/)?[^\s\[{(./]+)\.", name)
    return found.group(1) if found else "(no package)"


def check_sums(sonde, folder, report):
    rows = report["rows"]
    equal("rows add up to the total",
          (sum(row["count"] for row in rows), sum(row["bytes"] for row in rows)),
          (report["total"]["count"], report["total"]["bytes"]))
    equal("the total is what is live", (report["total"]["count"], report["total"]["bytes"]),
          (report["live_objects"], report["live_bytes"]))
    equal("largest first", [row["bytes"] for row in rows], sorted((row["bytes"] for row in rows), reverse=True))
    wrong = [row for row in rows if row["share"] != round(row["bytes"] / report["live_bytes"], 6)]
    equal("shares", wrong, [])
    equal("no two rows of one type", len({row["type"] for row in rows}), len(rows))

    top = histogram(sonde, folder, "--top", "7")
    equal("--top: the first rows", top["rows"], rows[:7])
    equal("--top: what is left out", [top["rows_left_out"], top["rows_left_out_count"], top["rows_left_out_bytes"]],
          [len(rows) - 7, sum(row["count"] for row in rows[7:]), sum(row["bytes"] for row in rows[7:])])
    equal("--top: the total stays", top["total"], report["total"])

    packages = histogram(sonde, folder, "--by", "package")
    want = {}
    for row in rows:
        package = row["type"] if row["type"].startswith("unknown") else package_of(row["type"])
        count, size = want.get(package, (0, 0))
        want[package] = count + row["count"], size + row["bytes"]
    got = {row["package"]: (row["count"], row["bytes"]) for row in packages["rows"]}
    differ = {name: (got.get(name), want.get(name)) for name in got.keys() | want.keys() if got.get(name) != want.get(name)}
    result(not differ, "--by package: the sums of the rows by type", f"package: (is, want): {differ}")
    equal("--by package: the same total", (packages["total"]["count"], packages["total"]["bytes"]),
          (report["live_objects"], report["live_bytes"]))


def main():
    sonde, folder, mode, goroot = sys.argv[2:6]
    word = int(sys.argv[6]) if len(sys.argv) > 6 else 8
    oracle, slots = Oracle(f"{folder}/stdout"), Slots(goroot, word)
    report = histogram(sonde, folder)
    rows = {row["type"]: row for row in report["rows"]}
    equal("no notes", report["notes"], [])
    version = re.match(r"go(1\.\d+)", oracle.of("go")[0]["version"])[1]
    check_unknown(report, *check_types(oracle, rows, slots, not_typed_yet("bait", version)))
    check_slices(oracle, rows, slots, word)
    extra = panic_objects(folder, slots, word) if mode == "crash" else (0, 0)
    check_accounting(oracle, report, mode, version, extra, slots, word)
    check_sums(sonde, folder, report)


main()
