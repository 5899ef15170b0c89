#!/usr/bin/env python3
"""replay.py SONDE CORE EXE [N]: paths of `sonde core reachable`, link by link on the bytes of the core, read here.

For N live objects over the whole heap: the word where each link says it stands leads into the object that it names, from
the root's own word to the object that was asked for; no path is longer than one after it. Prints results.
"""
import bisect
import json
import struct
import subprocess
import sys


class Core:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        if self.data[:6] != b"\x7fELF\x02\x01":
            sys.exit("not a 64-bit little-endian ELF file")
        at, = struct.unpack_from("<Q", self.data, 32)
        size, n = struct.unpack_from("<HH", self.data, 54)
        self.loads = []
        for i in range(n):
            kind, _, offset, addr, _, file_bytes = struct.unpack_from("<IIQQQQ", self.data, at + i * size)
            if kind == 1 and file_bytes:
                self.loads.append((addr, file_bytes, offset))
        self.loads.sort()

    def word(self, addr):
        i = bisect.bisect_right(self.loads, (addr, 1 << 64, 0)) - 1
        if i < 0 or addr + 8 > self.loads[i][0] + self.loads[i][1]:
            return None
        return struct.unpack_from("<Q", self.data, self.loads[i][2] + addr - self.loads[i][0])[0]


def main():
    sonde, path, exe = sys.argv[1:4]
    wanted = int(sys.argv[4]) if len(sys.argv) > 4 else 200
    core = Core(path)
    run = subprocess.run([sonde, "core", "objects", "--json", "--state", "live", path, "--exe", exe], capture_output=True,
                         check=True)
    objects = {int(o["addr"], 16): o["bytes"] for o in json.loads(run.stdout)["objects"]}
    some = sorted(objects)[::max(1, len(objects) // wanted)]
    lines = "".join(f"reachable --json -n 3 {addr:#x}\n" for addr in some)
    run = subprocess.run([sonde, "core", path, "--exe", exe], input=lines.encode(), capture_output=True)
    reports = [json.loads(line) for line in run.stdout.splitlines()]
    if run.returncode or len(reports) != len(some):
        print(f"not ok as many reports as objects: {len(reports)} of {len(some)}, exit status {run.returncode}")
        print("# " + run.stderr.decode(errors="replace").replace("\n", "\n# "))
        return
    bad, n_paths, n_links, n_roots = [], 0, 0, 0

    def leads_into(word, addr):
        return word is not None and addr <= word < addr + objects.get(addr, 0)

    for addr, report in zip(some, reports):
        if not report["paths"]:
            bad.append(f"{addr:#x} is live and has no path")
        lengths = [len(p["objects"]) for p in report["paths"]]
        if lengths != sorted(lengths):
            bad.append(f"{addr:#x}: lengths {lengths}")
        for p in report["paths"]:
            n_paths += 1
            chain = [int(o["addr"], 16) for o in p["objects"]] + [addr]
            root = p["root"]
            if root["addr"]:
                n_roots += 1
                if not leads_into(core.word(int(root["addr"], 16)), chain[0]):
                    bad.append(f"{addr:#x}: the root {root['kind']} {root['name']} at {root['addr']} does not lead to {chain[0]:#x}")
            for at, (o, following) in enumerate(zip(p["objects"], chain[1:])):
                if o["offset"] is None:
                    continue  # a record of the runtime's, not a word of the object
                n_links += 1
                if not leads_into(core.word(int(o["addr"], 16) + o["offset"]), following):
                    bad.append(f"{addr:#x}: link {at}, {o['addr']} +{o['offset']} ({o['field']}), does not lead to {following:#x}")
    print(f"{'not ok' if bad or not n_links else 'ok'} {n_paths} paths of {len(some)} objects: {n_links} links, {n_roots} roots replayed")
    for text in bad[:8]:
        print(f"# {text}")


main()
