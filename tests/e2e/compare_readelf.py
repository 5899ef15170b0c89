#!/usr/bin/env python3
"""Compares the rows of `sonde profile unwind-table` with those that `readelf -wF` prints: CFA, frame pointer, return address.

  compare_readelf.py [--sonde build/sonde] [--jobs N] [--verbose] PATH...

PATH is an ELF file or a folder, of which every ELF file of x86-64 and arm64 is taken, but no relocatable ones. Both sides
are made functions from address to (CFA, fp, ra) and compared over the whole address space: FDEs that linkers discarded
are left out, where one FDE starts inside another the later start wins, .debug_frame only fills what .eh_frame leaves
free; that is what unwinders do. readelf writes u for what is not mentioned and s for "same value": both mean the same
for the frame pointer. Where readelf writes exp, sonde may know better ("folded"): that is counted, and the rest of the
row compared. A row that sonde does not support is counted, and must be exp there.

Prints a line a file that differs, then the counts. Exit status 1 where anything differs.
"""
import argparse
import bisect
import collections
import multiprocessing
import os
import re
import subprocess
import sys

GAP = None
UNSUPPORTED = "unsupported"
REGISTER = re.compile(r"\br\d+ \((\w+)\)")  # a register's rule: "r1 (rdx)"


def elf_kind(path):
    """'x86-64', 'arm64', 'other ELF' or None."""
    try:
        with open(path, "rb") as f:
            head = f.read(20)
    except OSError:
        return None
    if len(head) < 20 or head[:4] != b"\x7fELF":
        return None
    if head[4] != 2 or head[5] != 1 or head[16:18] == b"\1\0":
        return "other ELF"
    return {62: "x86-64", 183: "arm64"}.get(head[18] | head[19] << 8, "other ELF")


def collect(paths):
    """(path, kind) of each file, once however many links it has; and how many ELF files are of other kinds."""
    seen, found, others = set(), [], 0
    for top in paths:
        walk = [(os.path.dirname(top), [], [os.path.basename(top)])] if os.path.isfile(top) else os.walk(top)
        for folder, _, names in walk:
            for name in names:
                path = os.path.join(folder, name)
                if not os.path.isfile(path) or (os.path.islink(path) and path != top):
                    continue
                st = os.stat(path)
                if (st.st_dev, st.st_ino) in seen:
                    continue
                seen.add((st.st_dev, st.st_ino))
                kind = elf_kind(path)
                if kind in ("x86-64", "arm64"):
                    found.append((path, kind, st.st_size))
                elif kind:
                    others += 1
    found.sort(key=lambda f: -f[2])
    return found, others


def value(text):
    return "u" if text == "s" else text


def parse_readelf(path, kind):
    """FDEs as (section rank, start, end, rows), rows as [(addr, (cfa, fp, ra))]."""
    fp_name = "rbp" if kind == "x86-64" else "x29"
    # The file itself only, not what its debug link leads to: sonde is told to look nowhere else either.
    run = subprocess.Popen(["readelf", "-wNF", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                           text=True, errors="replace", env={**os.environ, "LC_ALL": "C"})
    fdes, cies, rows, rank, fp, ra = [], {}, None, 0, None, None
    for line in run.stdout:
        if line[0] == " ":
            # "   LOC           CFA      rbx   rbp   ra"
            columns = line.split()
            if columns and columns[0] == "LOC":
                fp = columns.index(fp_name) if fp_name in columns else None
                ra = columns.index("ra") if "ra" in columns else None
            continue
        fields = (REGISTER.sub(r"\1", line) if "(" in line else line).split()
        if len(fields) > 3 and fields[3] == "FDE":
            span = next(f for f in fields if f.startswith("pc="))[3:].split("..")
            cie = next(f for f in fields if f.startswith("cie="))[4:]
            rows = []
            fdes.append((rank, int(span[0], 16), int(span[1], 16), rows, cies.get(cie, [])))
        elif len(fields) > 3 and fields[3] == "CIE":
            rows = cies[fields[0].zfill(8)] = []
        elif line.startswith("Contents of"):
            rank, cies = (1 if "debug_frame" in line else 0), {}
        elif rows is not None and len(fields) >= 2 and len(fields[0]) == 16:
            rows.append((int(fields[0], 16), (fields[1], value(fields[fp]) if fp else "u",
                                              value(fields[ra]) if ra else "u")))
    run.wait()
    # Of an FDE without instructions readelf writes no row: the CIE's holds.
    return [(rank, start, end, rows or [(start, row) for _, row in cie]) for rank, start, end, rows, cie in fdes]


def expected(fdes):
    """The function from address to row: [(addr, row)], GAP where there is nothing."""
    top = 1 << 64
    fdes = [f for f in fdes if f[1] and f[2] != f[1] and not (f[0] and (f[1] == 1 or f[1] >= top - 2))]
    fdes.sort(key=lambda f: (f[1], f[0]))
    kept = []
    for rank, start, end, rows in fdes:
        if kept and start < kept[-1][2]:
            if kept[-1][0] < rank or kept[-1][1] == start:
                continue
            kept[-1] = (kept[-1][0], kept[-1][1], start, kept[-1][3])
        kept.append((rank, start, end, rows))
    steps, last = [], None
    for _, start, end, rows in kept:
        if last is not None and last < start:
            steps.append((last, GAP))
        steps.extend((addr, row) for addr, row in rows if start <= addr < end)
        last = end
    if last is not None:
        steps.append((last, GAP))
    return collapse(steps)


def collapse(steps):
    out = []
    for addr, row in steps:
        if out and out[-1][0] == addr:
            out[-1] = (addr, row)
        else:
            out.append((addr, row))
    final = []
    for step in out:
        if not final or final[-1][1] != step[1]:
            final.append(step)
    return final


def parse_sonde(sonde, path):
    run = subprocess.run([sonde, "profile", "unwind-table", "--no-legend", "--debug-dir", "/nonexistent", path],
                         capture_output=True, text=True, errors="replace")
    if run.returncode:
        return None, run.stderr.strip()
    steps, refused = [], 0
    for line in run.stdout.splitlines():
        if line.startswith("refused FDEs:"):
            refused = int(line.split()[2])
        if not line.lstrip().startswith("0x"):
            continue
        addr, _, cfa, fp, ra, _, note = line.split(None, 6)
        if note.startswith("unsupported"):
            steps.append((int(addr, 16), UNSUPPORTED))
        else:
            steps.append((int(addr, 16), GAP if cfa == "-" else (cfa, fp, ra)))
    return collapse(steps), refused


def agree(theirs, ours):
    """'same', 'folded', 'unsupported' or 'differs'."""
    if theirs == ours:
        return "same"
    if ours == UNSUPPORTED:
        return "unsupported" if theirs is not GAP and "exp" in (theirs[0], theirs[2]) else "differs"
    if theirs is GAP or ours is GAP:
        return "differs"
    folded = False
    for a, b in zip(theirs, ours):
        if a == b:
            continue
        if a not in ("exp", "vexp"):
            return "differs"
        folded = True
    return "folded" if folded else "same"


def compare_steps(theirs, ours):
    """Counter of 'same', 'folded', 'differs' over intervals, and the first difference."""
    counts, first = collections.Counter(), None
    ta, oa = [s[0] for s in theirs], [s[0] for s in ours]
    for addr in sorted(set(ta) | set(oa)):
        i, k = bisect.bisect_right(ta, addr) - 1, bisect.bisect_right(oa, addr) - 1
        a = theirs[i][1] if i >= 0 else GAP
        b = ours[k][1] if k >= 0 else GAP
        word = agree(a, b)
        counts[word] += 1
        if word == "differs" and first is None:
            first = (addr, a, b)
    return counts, first


def compare(job):
    sonde, path, kind = job
    ours, message = parse_sonde(sonde, path)
    if ours is None:
        return path, kind, None, message, 0, 0
    fdes = parse_readelf(path, kind)
    theirs = expected(fdes)
    if theirs == ours:
        counts, first = collections.Counter(same=len(ours)), None
    else:
        counts, first = compare_steps(theirs, ours)
    return path, kind, counts, first, len(fdes), message


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sonde", default="build/sonde")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--verbose", action="store_true", help="a line for every file")
    parser.add_argument("paths", nargs="+")
    args = parser.parse_args()
    found, others = collect(args.paths)
    total, files, bad, n_fdes, failed = collections.Counter(), collections.Counter(), 0, 0, 0
    with multiprocessing.Pool(args.jobs) as pool:
        jobs = ((args.sonde, path, kind) for path, kind, _ in found)
        for path, kind, counts, first, fdes, refused in pool.imap_unordered(compare, jobs):
            files[kind] += 1
            if counts is None:
                failed += 1
                print(f"{path}: {first}", flush=True)
                continue
            total += counts
            n_fdes += fdes
            if counts["differs"]:
                bad += 1
                addr, a, b = first
                print(f"{path}: {counts['differs']} of {sum(counts.values())} intervals differ, first at 0x{addr:x}:"
                      f" readelf {a}, sonde {b}; refused FDEs {refused}", flush=True)
            elif args.verbose:
                print(f"{path}: {counts['same']} same, {counts['folded']} folded", flush=True)
    print(f"files: {files['x86-64']} x86-64, {files['arm64']} arm64 ({others} other ELF files left out); FDEs: {n_fdes}; "
          f"intervals: {total['same']} same, {total['folded']} folded, "
          f"{total['unsupported']} unsupported, {total['differs']} differ; "
          f"files that differ: {bad}; not read: {failed}")
    return 1 if bad or failed or not found else 0


if __name__ == "__main__":
    sys.exit(main())
