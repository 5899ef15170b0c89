#!/usr/bin/env python3
"""goroutines.py SONDE ORACLE TRACE...: the time of every goroutine as sonde and as Go 1.21's GoroutineStats have it, to the ns, but
for what main.go.txt names. Prints a result a trace."""
import collections
import json
import os
import subprocess
import sys

SYNC = {"chan send", "chan receive", "select", "sync", "sync.(*Cond).Wait"}


def main():
    sonde, oracle, *traces = sys.argv[1:]
    for trace in traces:
        name = os.path.basename(trace)
        go = subprocess.run([oracle, "goroutines", trace], capture_output=True, text=True)
        if go.returncode:
            print(f"# {name}: Go cannot read it: {go.stdout.strip()[:200]}")
            continue
        report = json.loads(subprocess.run([sonde, "trace", "goroutines", "--all", "--json", trace], check=True,
                                           capture_output=True).stdout)
        ours = {g["goroutine"]: g for g in report["goroutines"]}
        blocked = collections.Counter()
        for b in report["blocked"]:
            kind = "sync" if b["reason"] in SYNC else b["reason"]
            blocked[b["goroutine"], kind] += b["blocked_ns"]
        bad, n = [], 0
        for line in go.stdout.splitlines():
            g, running, runnable, sync, network, syscall, sweep, total, syscall0, runnable0, stopped = map(int, line.split())
            o = ours.pop(g, None)
            n += 1
            if o is None:
                bad.append(f"goroutine {g} is missing")
                continue
            have = {"running": o["running_ns"], "sync": blocked[g, "sync"], "network": blocked[g, "network"],
                    "syscall": o["syscall_ns"] + o["syscall_blocked_ns"], "sweep": o["sweep_ns"],
                    "runnable": o["runnable_ns"]}
            want = {"running": running, "sync": sync, "network": network, "syscall": syscall + syscall0, "sweep": sweep,
                    "runnable": runnable}
            have["runnable"] += runnable0
            if not stopped:
                have["total"], want["total"] = o["total_ns"], total
            for key, value in have.items():
                if value != want[key]:
                    bad.append(f"goroutine {g}: {key} is {value}, Go has {want[key]}")
        bad += [f"goroutine {g} is sonde's alone" for g in ours]
        print(f"not ok {name}" if bad or not n else f"ok {name}: {n} goroutines")
        for text in bad[:5]:
            print(f"# {text}")


main()
