#!/usr/bin/env python3
"""parts.py SONDE GOROOT TRACE: that profiles of parts add up to the whole, which compare.py compares with Go's: of each
goroutine alone (samples and time), and before and after a point of time (the time). Prints results."""
import collections
import json
import subprocess
import sys
import tempfile

import compare


def main():
    sonde, goroot, trace = sys.argv[1:]
    run = subprocess.run([sonde, "trace", "goroutines", "--all", "--json", trace], check=True, capture_output=True)
    goroutines = [str(g["goroutine"]) for g in json.loads(run.stdout)["goroutines"]]
    times = subprocess.run([sonde, "trace", "events", trace], check=True, capture_output=True, text=True).stdout.splitlines()
    times = [int(line.split()[0]) for line in times if line[:1].isdigit()]
    first, last = times[0], times[-1]
    middle = str((first + last) // 2)

    with tempfile.TemporaryDirectory() as work:
        def profiles(kind, *parts):
            """The sum of a profile for each list of options."""
            paths = [f"{work}/{i}" for i in range(len(parts))]
            for path, options in zip(paths, parts):
                subprocess.run([sonde, "trace", "pprof", kind, "-q", *options, "-o", path, trace], check=True)
            return compare.samples(goroot, *paths)

        def of_time(sums):
            return {key: v for key, v in sums.items() if key[1] == "ns"}

        def check(name, got, want):
            print(f"ok {name}" if got == want else f"not ok {name}")
            if got != want:
                print("\n".join(compare.differences(want, got)))

        for kind in "sync", "sched":
            whole = profiles(kind, [])
            check(f"{kind}: {len(goroutines)} goroutines add up", profiles(kind, *(["-g", g] for g in goroutines)), whole)
            check(f"{kind}: before and after {middle} ns add up",
                  of_time(profiles(kind, ["--to", middle], ["--from", middle])), of_time(whole))
            check(f"{kind}: nothing after the end", profiles(kind, ["--from", str(last)]), collections.Counter())
            check(f"{kind}: all from the first event on", profiles(kind, ["--from", "0ns", "--to", str(last)]), whole)


main()
