#!/usr/bin/env python3
"""annotations.py SONDE ORACLE TRACE...: every user region and task as sonde and as Go's summarizer have them, to the ns; collections
and pauses against the dump of events. Prints a result a trace and kind."""
import bisect
import collections
import json
import os
import subprocess
import sys


def report(sonde, *args):
    return json.loads(subprocess.run([sonde, "trace", *args], check=True, capture_output=True).stdout)


def result(name, ours, theirs):
    """Multisets."""
    only_ours, only_theirs = ours - theirs, theirs - ours
    bad = only_ours or only_theirs
    print(f"not ok {name}" if bad else f"ok {name}: {sum(ours.values())}")
    for what, rows in ("sonde", only_ours), ("Go", only_theirs):
        for row in list(rows)[:3]:
            print(f"# only {what}: {row}")


def least_utilisation(changes, end, window):
    """The least mean of a step function over windows of that length, by trying every place where an edge meets a change."""
    times, sums = [t for t, _ in changes], [0.0]
    for (t, util), (after, _) in zip(changes, changes[1:]):
        sums.append(sums[-1] + util * (after - t))

    def until(t):
        i = bisect.bisect_right(times, t) - 1
        return sums[i] + changes[i][1] * (t - times[i])

    window = min(window, end - times[0])
    places = [p for t in times + [end] for p in (t, t - window) if times[0] <= p <= end - window]
    return min((until(p + window) - until(p)) / window for p in places)


def utilisation(name, sonde, trace, lines):
    """From Go's changes, whose last one is the end."""
    changes = [(int(f[1]), float(f[2])) for f in lines if f[0] == "util"]
    # Go's reader of traces before 1.22 has its own times, and no processors before the first stop of the world.
    if len(changes) < 2 or trace.find("/v1/") >= 0:
        return
    bad = []
    for row in report(sonde, "gc", "--json", trace)["utilisation"]:
        want = least_utilisation(changes[:-1], changes[-1][0], row["window_ns"])
        if row["least"] is None or abs(row["least"] - want) > 2e-6:
            bad.append(f"# least of {row['window_ns']} ns: {row['least']}, by Go's changes {want:.6f}")
    print("\n".join([f"{'not ok' if bad else 'ok'} {name}: utilisation", *bad]))


def main():
    sonde, oracle, *traces = sys.argv[1:]
    for trace in traces:
        name = os.path.basename(trace)
        go = subprocess.run([oracle, trace], capture_output=True, text=True)
        if go.returncode:
            print(f"# {name}: Go gives up: {go.stderr.strip()[:200]}")
            continue
        lines = [line.split("\t") for line in go.stdout.splitlines()]

        theirs = collections.Counter(
            (int(f[1]), int(f[2]), f[3], *map(int, f[4:])) for f in lines if f[0] == "region")
        ours = collections.Counter()
        for r in report(sonde, "regions", "--all", "--json", trace)["regions"]:
            ours[r["goroutine"], r["task"] or 0, r["type"] or "", -1 if r["begin_ns"] is None else r["begin_ns"],
                 -1 if r["end_ns"] is None else r["end_ns"], r["total_ns"], r["running_ns"], r["runnable_ns"],
                 r["blocked_ns"], r["syscall_ns"] + r["syscall_blocked_ns"]] += 1
        result(f"{name}: regions", ours, theirs)
        types = report(sonde, "regions", "--json", trace)["types"]
        sums = collections.Counter()
        for key, n in ours.items():
            sums[key[2], "n"] += n
            sums[key[2], "running"] += n * key[6]
        result(f"{name}: sums of regions",
               collections.Counter({(t["type"] or "", k): v for t in types for k, v in (
                   ("n", t["count"] + t["open"] + t["unbegun"]), ("running", t["running_ns"])) if v}),
               collections.Counter({k: v for k, v in sums.items() if v}))

        theirs = collections.Counter(
            (int(f[1]), f[2], int(f[3]), *map(int, f[4:])) for f in lines if f[0] == "task")
        ours = collections.Counter()
        for t in report(sonde, "tasks", "--all", "--json", trace)["tasks"]:
            ours[t["task"], t["type"] or "", t["parent"] or 0, -1 if t["begin_ns"] is None else t["begin_ns"],
                 -1 if t["end_ns"] is None else t["end_ns"], t["regions"], t["logs"]] += 1
        result(f"{name}: tasks", ours, theirs)

        utilisation(name, sonde, trace, lines)

        # run_trace.sh compares the dump of events with Go's reader.
        begun, pauses, cycles, cycle = None, collections.Counter(), collections.Counter(), None
        for e in report(sonde, "events", "--json", "--type", "STWBegin", "--type", "STWEnd", "--type", "GCBegin",
                        "--type", "GCEnd", trace)["events"]:
            if e["type"] == "STWBegin":
                begun = e["ns"], e["args"].get("kind_string") or None
            elif e["type"] == "STWEnd" and begun:
                pauses[begun[1], "n"] += 1
                pauses[begun[1], "ns"] += e["ns"] - begun[0]
                begun = None
            elif e["type"] == "GCBegin":
                cycle = e["ns"]
            elif e["type"] == "GCEnd" and cycle is not None:
                cycles[cycle, e["ns"]] += 1
                cycle = None
        # Events that carry a stack: as many of each type as the dump has, and by their innermost functions.
        theirs = collections.Counter()
        for e in report(sonde, "events", "--json", "--stacks", "--type", "GoBlock", "--type", "GoCreate", trace)["events"]:
            if e.get("stack"):
                theirs[e["type"], e["stack"][0]["function"] or None] += 1
        ours = collections.Counter()
        for s in report(sonde, "stacks", "--json", "--top", "0", "--type", "GoBlock", "--type", "GoCreate", trace)["stacks"]:
            ours[s["type"], s["in"] or None] += s["count"]
        result(f"{name}: stacks", ours, theirs)
        gc = report(sonde, "gc", "--top", "0", "--json", trace)
        result(f"{name}: pauses", collections.Counter({(p["reason"] or None, k): v for p in gc["pauses"] for k, v in (
            ("n", p["count"]), ("ns", p["total_ns"])) if v}), collections.Counter({k: v for k, v in pauses.items() if v}))
        result(f"{name}: collections", collections.Counter(
            (c["begin_ns"], c["end_ns"]) for c in gc["cycles"] if c["mark_ns"] is not None), cycles)


main()
