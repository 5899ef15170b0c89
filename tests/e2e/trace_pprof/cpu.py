#!/usr/bin/env python3
"""cpu.py SONDE GOROOT ORACLE FUNCTION TRACE: `sonde trace pprof cpu`, read by `go tool pprof -raw`, against the CPU samples that
Go's own reader hands out (ORACLE is trace_oracle.sh's), stack by stack; of all, and of each goroutine alone. FUNCTION
must be in some. Prints results."""
import collections
import re
import subprocess
import sys

import compare


def go_samples(oracle, trace):
    """goroutine -> (address, function, file:line)... -> how many"""
    out = subprocess.run([oracle, "dump", trace], check=True, capture_output=True, text=True).stdout
    found, frames, stacks = collections.defaultdict(collections.Counter), None, []
    for line in out.splitlines():
        if not line.startswith(" "):
            frames = None
            if m := re.match(r"-?\d+ \S+ \S+ g(\S+) CPUSample ", line):
                frames = []
                stacks.append((m[1], frames))
        elif frames is not None and (m := re.match(r"    (.*) (0x[0-9a-f]+) (\S+:\d+)$", line)):
            frames.append((m[2], m[1], m[3]))
    for g, frames in stacks:
        found[g][tuple(frames)] += 1
    return found


def our_samples(sonde, goroot, trace, path, *options):
    subprocess.run([sonde, "trace", "pprof", "cpu", "-q", *options, "-o", path, trace], check=True)
    counts, ns = collections.Counter(), 0
    for (stack, what), value in compare.samples(goroot, path).items():
        if what == "ns":
            ns += value
            continue
        # "0x48d73e M=1 time.Since /src/time.go:1230:0 s=0"
        frames = [re.match(r"(0x[0-9a-f]+)(?: M=\d+)? (.*) (\S+:\d+):0 s=0$", f.strip()) for f in stack]
        counts[tuple((m[1], m[2], m[3]) for m in frames)] += value
    return counts, ns


def main():
    sonde, goroot, oracle, function, trace = sys.argv[1:]
    go = go_samples(oracle, trace)

    def check(name, got, want):
        print(f"ok {name}" if got == want else f"not ok {name}")
        if got != want:
            print(f"# is {got}, want {want}")

    want = sum(go.values(), collections.Counter())
    got, ns = our_samples(sonde, goroot, trace, trace + ".pb.gz")
    check(f"CPU samples: {sum(want.values())} of {len(want)} stacks", got, want)
    check("CPU samples: 10 ms each", ns, sum(want.values()) * 10_000_000)
    check(f"CPU samples: {function} is in them", any(f[1] == function for stack in got for f in stack), True)
    busy = [g for g, _ in sorted(go.items(), key=lambda row: -sum(row[1].values())) if g != "-"][:2]
    check("CPU samples: of two goroutines", len(busy), 2)
    for g in busy:
        got, _ = our_samples(sonde, goroot, trace, trace + ".pb.gz", "-g", g)
        check(f"CPU samples: {sum(go[g].values())} of goroutine {g}", got, go[g])


main()
