#!/usr/bin/env python3
"""waits.py [--held] SONDE TRACE: `sched` and `blocking` against the stays computed here from the dump of events, which run_trace.sh
compares with Go's reader. --held: there must be a wait behind a system call that held the processor. Prints results."""
import collections
import json
import subprocess
import sys


def main():
    need_held = sys.argv[1] == "--held"
    sonde, trace = sys.argv[1 + need_held:]

    def report(*args):
        return json.loads(subprocess.run([sonde, "trace", *args, "--json", trace], check=True, capture_output=True).stdout)

    since, latencies, longest = {}, [], None
    blocked = collections.defaultdict(lambda: [0, 0, 0])
    last = 0
    events = subprocess.Popen([sonde, "trace", "events", "--json", trace], stdout=subprocess.PIPE, text=True)
    unfinished = 0
    held, holds = {}, collections.defaultdict(list)
    for e in json.load(events.stdout)["events"]:
        last = e["ns"]
        if "proc_state" in e:
            p, before, after = (e["proc_state"][k] for k in ("id", "before", "after"))
            if before != after and p in held:
                holds[p].append((held.pop(p), last))
            if before == "running" and after == "syscall":
                held[p] = last
        if "goroutine_state" not in e:
            continue
        g, before, after = (e["goroutine_state"][k] for k in ("id", "before", "after"))
        state, begun, reason, known = since.get(g, (None, 0, None, False))
        if state == after:
            continue
        if state == "runnable" and after == "running" and known:
            latencies.append(e["ns"] - begun)
            if longest is None or latencies[-1] > longest[0]:
                longest = latencies[-1], g, begun
        if state == "waiting":
            row = blocked[reason or None]
            row[0] += 1
            row[1] += e["ns"] - begun
            row[2] = max(row[2], e["ns"] - begun)
        since[g] = (after, e["ns"], e["args"].get("reason_string") if e["type"] == "GoBlock" else None,
                    before != "undetermined")
        if after == "none":
            since.pop(g)
    for state, begun, reason, _ in since.values():
        if state == "waiting":
            row = blocked[reason or None]
            row[0] += 1
            row[1] += last - begun
            row[2] = max(row[2], last - begun)
            unfinished += 1

    def check(name, got, want):
        print(f"ok {name}" if got == want else f"not ok {name}")
        if got != want:
            print(f"# is {got}, want {want}")

    sched = report("sched")
    total = sched["total"]
    latencies.sort()
    check("sched: count, sum, longest", (total["count"], total["total_ns"], total["max_ns"]),
          (len(latencies), sum(latencies), latencies[-1]))
    check("sched: entries add up", (sum(r["count"] for r in sched["entries"]), sum(r["total_ns"] for r in sched["entries"])),
          (len(latencies), sum(latencies)))
    worst = sched["worst"][0]
    check("sched: the longest wait", (worst["ns"], worst["goroutine"], worst["from_ns"]), longest)
    for key, share in ("p50_ns", 0.5), ("p90_ns", 0.9), ("p99_ns", 0.99), ("p999_ns", 0.999):
        true = latencies[max(0, -int(-share * len(latencies) // 1) - 1)]
        check(f"sched: {key} {total[key]}, truly {true}", true <= total[key] <= true * 1.032 + 1, True)
    n_held = 0
    for w in sched["worst"]:
        if w["forgotten"] or w["others_ns"]:
            continue
        in_syscall = sum(b["ns"] for b in w["behind"] if b["in_syscall"])
        begun, ended = w["from_ns"], w["from_ns"] + w["ns"]
        want = sum(max(0, min(ended, to) - max(begun, since)) for since, to in holds[w["processor"]])
        check(f"sched: system calls held the processor for {want} of {w['ns']} ns", in_syscall, want)
        n_held += in_syscall > 0
    if need_held:
        check("sched: a wait behind a system call", n_held > 0, True)
    for w in sched["worst"]:
        behind = sum(b["ns"] for b in w["behind"]) + w["others_ns"]
        check(f"sched: what ran instead fits into {w['ns']} ns", behind <= w["ns"], True)

    blocking = report("blocking", "--top", "0")
    rows = collections.defaultdict(lambda: [0, 0, 0])
    for r in blocking["blocked"]:
        row = rows[r["reason"]]
        row[0] += r["count"]
        row[1] += r["total_ns"]
        row[2] = max(row[2], r["longest_ns"])
    check("blocking: times, sum and longest by reason", dict(rows), dict(blocked))
    check("blocking: still open", sum(r["unfinished"] for r in blocking["blocked"]), unfinished)
    check("blocking: the total", blocking["total"]["total_ns"], sum(v[1] for v in blocked.values()))


main()
