#!/usr/bin/env python3
"""compare.py SONDE ORACLE TRACE...: every goroutine's times as sonde and as Go's summarizer have them, to the ns."""
import json
import subprocess
import sys


def of_sonde(sonde, path):
    report = json.loads(subprocess.run([sonde, "trace", "goroutines", "--all", "--json", path],
                                       check=True, stdout=subprocess.PIPE).stdout)
    goroutines, blocks = {}, {}
    for g in report["goroutines"]:
        goroutines[g["goroutine"]] = {"name": g["entry"] or "", "total": g["total_ns"], "running": g["running_ns"],
                                      "runnable": g["runnable_ns"], "syscall": g["syscall_ns"],
                                      "no_proc": g["syscall_blocked_ns"], "assist": g["assist_ns"],
                                      "sweep": g["sweep_ns"]}
        known = (g["running_ns"] + g["runnable_ns"] + g["blocked_ns"] + g["syscall_ns"] + g["syscall_blocked_ns"] +
                 g["unknown_ns"])
        if known != g["total_ns"]:
            sys.exit(f"{path}: goroutine {g['goroutine']}: the parts are {known}, the total {g['total_ns']}")
    for b in report["blocked"]:
        key = b["goroutine"], b["reason"] or ""
        blocks[key] = blocks.get(key, 0) + b["blocked_ns"]
    return goroutines, blocks


def of_go(oracle, path):
    goroutines, blocks, bare = {}, {}, {}
    run = subprocess.run([oracle, path], stdout=subprocess.PIPE, text=True)
    if run.returncode:
        return None, None, None
    for line in run.stdout.splitlines():
        kind, *f = line.split("\t")
        if kind == "goroutine":
            total, running, runnable, syscall, no_proc, assist, sweep = map(int, f[2:])
            goroutines[int(f[0])] = {"name": f[1], "total": total, "running": running, "runnable": runnable,
                                     "syscall": syscall, "no_proc": no_proc, "assist": assist, "sweep": sweep}
        elif kind == "bare":
            bare[int(f[0])] = int(f[1])
        elif kind == "block":
            blocks[int(f[0]), f[1]] = int(f[2])
    for g, ns in bare.items():  # see main.go
        goroutines[g]["syscall"] -= ns
        goroutines[g]["no_proc"] += ns
    return goroutines, blocks, len(bare)


def fix_open_syscall(ours, go, blocked):
    """Go adds what an unfinished system call was without its processor to the runnable time, and once more to that of
    the system call: undo it, so far as the sum tells that this was so."""
    too_much = go["running"] + go["runnable"] + go["syscall"] + go["no_proc"] + blocked - go["total"]
    if too_much > 0 and ours["no_proc"] - go["no_proc"] == too_much:
        go["runnable"] -= too_much
        go["syscall"] -= too_much
        go["no_proc"] += too_much


def main():
    sonde, oracle, *paths = sys.argv[1:]
    n = wrong = bare = refused = 0
    for path in paths:
        ours, our_blocks = of_sonde(sonde, path)
        theirs, their_blocks, n_bare = of_go(oracle, path)
        if theirs is None:
            refused += 1
            continue
        bare += n_bare
        for g in sorted(ours.keys() | theirs.keys()):
            n += 1
            blocked = sum(ns for (id_, _), ns in their_blocks.items() if id_ == g)
            if g in theirs and g in ours:
                fix_open_syscall(ours[g], theirs[g], blocked)
            # For Go a goroutine that blocks for ever has ended.
            our_b = {k: v for k, v in our_blocks.items() if k[0] == g and v and k[1] != "forever"}
            their_b = {k: v for k, v in their_blocks.items() if k[0] == g and v}
            a, b = ours.get(g), theirs.get(g)
            forever = sum(v for k, v in our_blocks.items() if k == (g, "forever"))
            if a and forever:
                a["total"] -= forever
            if a != b or our_b != their_b:
                wrong += 1
                print(f"{path}: goroutine {g}:\n  sonde {a} {our_b}\n  go    {b} {their_b}")
    print(f"{n} goroutines compared, {wrong} differ; {bare} in a system call from before the trace; "
          f"Go refused {refused} of {len(paths)} traces")
    sys.exit(wrong > 0 or not n)


main()
