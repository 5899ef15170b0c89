#!/usr/bin/env python3
"""Damage for run_trace_repair.sh: damage.py TRACE OUTDIR N: N damaged copies of a trace, the same ones each time.

Kinds in turn: cut at the end, a byte changed, bytes missing in the middle, foreign bytes in the middle, a stretch
written twice. The header stays."""
import os
import random
import sys

HEADER = 16


def damage(data, kind, rng):
    at = rng.randrange(HEADER, len(data))
    n = rng.randrange(1, min(5000, len(data) // 4))
    if kind == "cut":
        return data[:at]
    if kind == "flip":
        out = bytearray(data)
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(HEADER, len(data))
            out[at] ^= 1 << rng.randrange(8)
        return bytes(out)
    if kind == "hole":
        return data[:at] + data[at + n:]
    if kind == "foreign":
        return data[:at] + bytes(rng.randrange(256) for _ in range(n)) + data[at:]
    return data[:at] + data[max(HEADER, at - n):]


def main():
    path, out, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with open(path, "rb") as f:
        data = f.read()
    kinds = ["cut", "flip", "hole", "foreign", "twice"]
    os.makedirs(out, exist_ok=True)
    for i in range(n):
        kind = kinds[i % len(kinds)]
        with open(os.path.join(out, "%04d-%s" % (i, kind)), "wb") as f:
            f.write(damage(data, kind, random.Random(i)))


main()
