#!/usr/bin/env python3
"""For run_trace_repair.sh: compare.py DAMAGED.events REPAIRED.events REPORT.json

Events of the damaged trace that are not in the repaired one are as many as the report says were dropped, changed or
moved; those that are only in the repaired one as many as were invented, changed or moved. An event is its time, thread,
type and arguments, as the file has them: what runs on the thread comes from the events before it, and sequence numbers
belong to the whole."""
import collections
import json
import re
import sys

SEQ = re.compile(r" (?:[pg]_seq|gc_seq)=\S+")
# What the states around it make of an event, not the event.
AROUND = re.compile(r" [gp]\d+:[a-z]+->[a-z]+| kind_string=.*$| parent_task=\S+ name_string=.*$")
ENDS = ("STWEnd", "UserTaskEnd")
# A switch or the end of a thread is one record, of which the reader makes several.
PARTS = {"GoSwitch": 3, "GoSwitchDestroy": 3, "GoDestroySyscall": 2}


def events(path):
    found = collections.Counter()
    with open(path, encoding="utf-8", errors="surrogateescape") as f:
        for line in f:
            if line == "\n":
                break
            words = line.split(" ", 5)
            if len(words) < 5 or words[4].strip() == "Sync":
                continue
            kind = words[4].strip()
            line = " ".join(words[:2] + words[4:])
            line = SEQ.sub("", line.rstrip("\n").removesuffix(" forced"))
            line = re.sub(r" [gp]\d+:[a-z]+->[a-z]+", "", line)
            if kind in ENDS:
                line = AROUND.sub("", line)
            found[line] += 1
    return found


def main():
    damaged, repaired = events(sys.argv[1]), events(sys.argv[2])
    with open(sys.argv[3], encoding="utf-8") as f:
        report = json.load(f)

    def parts(what):
        return sum(c["count"] * PARTS.get(c["type"], 1) for c in report["changes"] if c["what"] == what)

    either = report["changed_events"] + report["moved_events"] * 3
    lost, extra = damaged - repaired, repaired - damaged
    n_lost, n_extra = sum(lost.values()), sum(extra.values())
    bad = n_lost > parts("dropped") + either or n_extra > parts("invented") + either
    if bad:
        print("%d lost, %d extra; the report: %d dropped, %d invented, %d changed, %d moved" %
              (n_lost, n_extra, report["dropped_events"], report["invented_events"], report["changed_events"],
               report["moved_events"]))
        for line in list(lost)[:6]:
            print("-", line)
        for line in list(extra)[:6]:
            print("+", line)
    sys.exit(bad)


main()
