#!/usr/bin/env python3
"""compare.py SONDE GOROOT TRACE...: every sample of `sonde trace pprof` against `go tool trace -pprof`, by their stacks.
compare.py --profiles GOROOT THEIRS OURS: of two profiles that are there; prints how many samples they hold.

GOROOT: Go 1.27's for formats from 1.22 on, Go 1.21's for those before. Both profiles are read by `go tool pprof -raw`.
Prints a result a trace and kind.
"""
import collections
import os
import re
import subprocess
import sys
import tempfile


def samples(goroot, *paths):
    """(frames, what) -> sum over all files; frames as pprof prints them: address, function, file:line."""
    run = subprocess.run([goroot + "/bin/go", "tool", "pprof", "-raw", *paths], capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"{paths[0]}: {run.stderr}")
    raw, locations, sums, part = [], {}, collections.Counter(), None
    for line in run.stdout.splitlines():
        if line in ("Samples:", "Locations", "Mappings"):
            part = line
        elif part == "Samples:" and (m := re.match(r"\s*(\d+)\s+(\d+):\s*(.*)$", line)):
            raw.append((int(m[1]), int(m[2]), m[3].split()))
        elif part == "Locations" and (m := re.match(r"\s*(\d+): (.*)$", line)):
            locations[m[1]] = m[2]
    for n, ns, stack in raw:
        key = tuple(locations[i] for i in stack)
        sums[key, "n"] += n
        sums[key, "ns"] += ns
    return sums


def differences(want, got):
    """The first of what is not the same, as lines."""
    return [f"# {key[1]}: Go {want[key]}, sonde {got[key]}: {'; '.join(key[0][:4])}"
            for key in [k for k in want.keys() | got.keys() if want[k] != got[k]][:5]]


def count(sums):
    return sum(v for (_, what), v in sums.items() if what == "n")


def compare_profiles(goroot, theirs, ours):
    want, got = samples(goroot, theirs), samples(goroot, ours)
    if want != got or not want:
        sys.exit("\n".join(differences(want, got)) or "no samples")
    print(count(got))


def main():
    if sys.argv[1] == "--profiles":
        return compare_profiles(*sys.argv[2:])
    sonde, goroot, *traces = sys.argv[1:]
    env = {**os.environ, "GOROOT": goroot, "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOENV": "off"}
    with tempfile.TemporaryDirectory() as work:
        for trace in traces:
            for kind in "net", "sync", "syscall", "sched":
                name = f"{os.path.basename(trace)}: {kind}"
                theirs, ours = f"{work}/go", f"{work}/sonde"
                with open(theirs, "wb") as out:
                    go = subprocess.run([goroot + "/bin/go", "tool", "trace", "-pprof=" + kind, trace], stdout=out,
                                        stderr=subprocess.PIPE, text=True, env=env)
                if go.returncode:
                    print(f"# {name}: Go cannot read it: {go.stderr.strip()[:200]}")
                    continue
                subprocess.run([sonde, "trace", "pprof", kind, trace, "--quiet", "-o", ours], check=True)
                want, got = samples(goroot, theirs), samples(goroot, ours)
                if want == got:
                    print(f"ok {name}: {len(got) // 2} stacks, {count(got)} samples")
                    continue
                print(f"not ok {name}")
                print(*differences(want, got), sep="\n")


if __name__ == "__main__":
    main()
