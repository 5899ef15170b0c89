#!/usr/bin/env python3
"""threads_cgo.py STDOUT THREADS.json GOROUTINES.json: the stacks that cgonest says it has, of C and Go functions in turn, are
in `core threads` and in `core goroutines`, whole and in that order. Exit status 1 where they differ."""
import json
import sys


def own(frames):
    """The program's own functions: not the glue that cgo makes, not goroutines' closures."""
    names = [f["function"] or "?" for f in frames]
    return [n for n in names if n.startswith(("c_", "main.")) and not n.startswith(("main._C", "main.main.func"))]


with open(sys.argv[1], encoding="ascii") as lines:
    expected = {line.split()[1]: line.split()[2:] for line in lines if line.startswith("stack ")}
bad = 0
for path, key in (sys.argv[2], "threads"), (sys.argv[3], "groups"):
    with open(path, encoding="utf-8") as file:
        stacks = json.load(file)[key]
    for name, want in expected.items():
        got = [stack for stack in stacks if name in [f["function"] for f in stack["frames"]]]
        if [own(stack["frames"]) for stack in got] != [want]:
            bad += 1
            print(f"{key}, {name}:\nis   {[own(stack['frames']) for stack in got]}\nwant {[want]}")
            continue
        for f in got[0]["frames"]:
            if f["function"] in want and not (f["file"] and f["line"]):
                bad += 1
                print(f"{key}, {name}: {f['function']} has no file and line")
        print(f"{key}, {name}: {len(got[0]['frames'])} frames, {len(want)} of the program")
        if got[0]["cut"]:
            bad += 1
            print(f"{key}, {name}: cut: {got[0]['cut']}")
sys.exit(bad > 0 or not expected)
