#!/usr/bin/env python3
"""Compares `sonde core goroutines` of a core with the traceback that the runtime wrote when the program crashed.

    goroutines.py LABEL SONDE CORE_FOLDER crash|stacks|groups
    goroutines.py LABEL SONDE CORE_FOLDER delve DLV

crash    stderr, written with GOTRACEBACK=crash: all goroutines, the runtime's own as well, with all frames
stacks   stdout between stacks_begin and stacks_end: runtime.Stack() of the program a moment before the core was taken,
         without the runtime's own frames and goroutines
delve    delve on the same core: functions and pcs of what is on no thread (its lines differ by one in newer versions)
groups   nothing but the report with itself: groups, filters, text

Prints results for lib.sh's results(); each name begins with LABEL.

What is compared of a goroutine: its id, what it does, each call's function, file and line, of each frame the offset in its
function, pc and sp, and who created it. The listing of a goroutine that has no thread is its whole stack. That of one on a
thread is the lower part of ours, from the frame at which the runtime began to print:
- the one that panicked: from the caller of runtime.fatalpanic, runtime.fatalthrow or runtime.throw (runtime/panic.go,
  dopanic_m gets that pc and sp); above it stand the runtime's functions that end the process;
- one that a signal interrupted: from the interrupted instruction (runtime/signal_unix.go, tracebacktrap); above it stands
  the signal handler. When a signal ends the process, it is relayed to each thread, and each prints what it runs;
- one in a system call: from its caller of entersyscall (gp.syscallpc, syscallsp);
- one whose thread is on the system stack: from runtime.systemstack, which the runtime lists as systemstack_switch.
Until its thread gets the relayed signal, a goroutine runs on: the last listing of a goroutine counts, and of one that was
only listed before, as running or runnable, the entry function and the creator count where its frames differ.
What stands above consists of functions of the runtime, or of the system call itself. Where the runtime prints "goroutine
running on other thread; stack unavailable", there is nothing to compare but the header.
"""
import json
import re
import subprocess
import sys

LABEL = sys.argv[1]
HEADER = re.compile(r"^goroutine (\d+)(?: gp=(0x[0-9a-f]+) m=(nil|-?\d+)(?: mp=0x[0-9a-f]+)?)? \[(.*)\]:$")
PLACE = re.compile(r"^\t(.+):(\d+)(?: \+(0x[0-9a-f]+))?(?: fp=0x[0-9a-f]+ sp=(0x[0-9a-f]+) pc=(0x[0-9a-f]+))?$")
ABOVE = re.compile(r"^(runtime|internal/runtime/\w+|runtime/internal/\w+)\.|^(syscall\.Syscall6?|syscall\.RawSyscall6?)$")


def result(good, name, why=""):
    print(f"{'ok' if good else 'not ok'} {LABEL}: {name}")
    if not good and why:
        print("# " + str(why).replace("\n", "\n# "))
    return good


def equal(name, got, want):
    return result(got == want, name, f"is   {got}\nwant {want}")


class Listing:
    """One goroutine as the runtime prints it. frames: (function, file, line, offset, sp, pc); None where not printed."""

    def __init__(self, match):
        self.id, self.addr, self.m, self.doing = int(match[1]), match[2], match[3], match[4]
        self.frames, self.elided_at, self.elided, self.unavailable, self.created = [], None, 0, False, None


def listings(lines):
    """All listings, in the order of the text."""
    found, now, function = [], None, None
    for line in lines:
        match = HEADER.match(line)
        if match:
            now = Listing(match)
            found.append(now)
            continue
        if now is None:
            continue
        if line == "\tgoroutine running on other thread; stack unavailable":
            now.unavailable = True
            continue
        match = re.match(r"^\.\.\.(\d+) frames elided\.\.\.$", line)
        if match:
            now.elided_at, now.elided = len(now.frames), int(match[1])
            continue
        match = re.match(r"^created by (.+?)(?: in goroutine (\d+))?$", line)
        place = PLACE.match(line)
        if match:
            function = match
        elif place and isinstance(function, re.Match):
            now.created = (function[1], int(function[2] or 0), place[1], int(place[2]), place[3])
            function = None
        elif place and function:
            # An offset of 0 is not printed; an inlined call has neither it nor a pc.
            offset = place[3] or ("0x0" if place[5] else None)
            now.frames.append((function, place[1], int(place[2]), offset, place[4], place[5]))
            function = None
        elif line.endswith(")") and not line.startswith(("\t", " ")):
            function = line[:line.rindex("(")]
        else:
            now = function = None  # a blank line, registers, what the program says
    return found


def printed_name(function):
    """As runtime.printFuncName and funcNameForPrint write it."""
    if function == "runtime.gopanic":
        return "panic"
    return re.sub(r"\[.*\]", "[...]", function)


def sonde(*options):
    command = [sys.argv[2], "core", "goroutines", f"{sys.argv[3]}/core", "--exe", f"{sys.argv[3]}/exe", *options]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)


def report(*options):
    run = sonde("--json", *options)
    assert run.returncode == 0, f"{options}: exit status {run.returncode}: {run.stderr.decode()}"
    text = run.stdout.decode("utf-8")
    assert text.count("\n") == 1 and text.endswith("\n"), "JSON is one line"
    return json.loads(text)


def calls(goroutine):
    """Its calls in the form of a listing's frames. The runtime prints those of Go alone: run_threads.sh has those of C."""
    return [(printed_name(f["function"]), f["file"], f["line"], None if f["inlined"] else hex(f["offset"]),
             None if f["inlined"] else f["sp"], None if f["inlined"] else f["pc"]) for f in goroutine["frames"] if "module" not in f]


def doing(goroutine):
    """The text in the brackets of runtime.goroutineheader, but for minutes."""
    return ((goroutine["wait_reason"] or goroutine["state"]) + (" (scan)" if goroutine["scanned"] else "")
            + (", locked to thread" if goroutine["locked"] else ""))


def differ(got, want):
    """The first difference of two lists of frames, in words; "" = none."""
    for i, (a, b) in enumerate(zip(got, want)):
        if a != b:
            return f"frame {i}:\nis   {a}\nwant {b}"
    return "" if len(got) == len(want) else f"{len(got)} frames, want {len(want)}"


def whole(listing, frames):
    """The listing's frames, those that the runtime elided (all but 50 at each end) put in from ours."""
    if listing.elided_at is None:
        return listing.frames
    at = len(frames) - (len(listing.frames) - listing.elided_at) - listing.elided
    return listing.frames[:listing.elided_at] + frames[at:at + listing.elided] + listing.frames[listing.elided_at:]


def compare_frames(listing, goroutine):
    """"" or the difference; and the functions above the listing's first frame."""
    frames = calls(goroutine)
    if goroutine["cut"]:
        return f"cut: {goroutine['cut']}", []
    want = whole(listing, frames)
    if listing.m != "nil" and want[0][0] == "runtime.systemstack_switch":
        # What the runtime notes while the thread is on its system stack; the frame at this sp is systemstack's.
        want = [frame if frame[0] == "runtime.systemstack" and frame[4] == want[0][4] else want[0]
                for frame in frames[len(frames) - len(want):][:1]] + want[1:]
    n = max(0, len(frames) - len(want))
    above = [f[0] for f in frames[:n]]
    why = differ(frames[n:], want)
    if not why and listing.m == "nil" and n:
        why = f"frames above the listing of a goroutine that is on no thread: {above}"
    if not why:
        wrong = [name for name in above if not ABOVE.match(name)]
        why = f"above the listing: {wrong}" if wrong else ""
    return why, above


def compare_created(goroutine, offset, want):
    created = goroutine.get("created_by")
    got = None
    if created:
        got = (printed_name(created["function"]), goroutine["parent"] or 0, created["file"], created["line"], offset)
    return "" if got == want else f"created by:\nis   {got}\nwant {want}"


def created_offsets(text):
    """Offsets of the creators, by goroutine id, from the report as text: the JSON has none."""
    found, now, after = {}, None, False
    for line in text.splitlines():
        match = re.match(r"^goroutine (\d+) \[", line)
        if match:
            now, after = int(match[1]), False
        elif re.match(r"^ +created by ", line):
            after = True
        elif after:
            found[now], after = re.search(r" \+(0x[0-9a-f]+)$", line)[1], False
    return found


def check_crash(goroutines):
    with open(f"{sys.argv[3]}/stderr", encoding="utf-8", errors="replace") as file:
        found = listings(file.read().split("\n"))
    offsets = created_offsets(sonde("--all").stdout.decode("utf-8"))
    by_id = {g["id"]: g for g in goroutines}
    last, times = {}, {}
    for one in found:
        last[one.id], times[one.id] = one, times.get(one.id, 0) + 1
    relayed = last.pop(0, None) is not None  # what a g0 does is listed by handlers of signals only
    # The first is the one that died: where a signal met a thread on its system stack, a goroutine 0 and then its own.
    crashed = found[0].id or (found[1].id if found[1].m == found[0].m else None)
    equal("the same goroutines", sorted(by_id), sorted(last))
    want = [i for i in last if i != crashed]  # in the order of their first listings
    equal("in the runtime's order", [g["id"] for g in goroutines if g["id"] != crashed], want)

    n_frames = n_whole = 0
    for one in last.values():
        goroutine = by_id.get(one.id)
        if not goroutine:
            continue
        why = []
        if one.addr != goroutine["addr"]:
            why.append(f"gp: is {goroutine['addr']}, want {one.addr}")
        if re.sub(r", \d+ minutes", "", one.doing) != doing(goroutine):
            why.append(f"state: is {doing(goroutine)}")
        if one.m not in ("nil", str(goroutine["m"])):
            why.append(f"m: is {goroutine['m']}, want {one.m}")
        frames, above = compare_frames(one, goroutine) if not one.unavailable else ("", [])
        n_frames += len(one.frames) + one.elided
        n_whole += not above
        if above:
            print(f"# goroutine {one.id}: above the listing: {' '.join(above)}")
        runs = {"running", "runnable"}
        ran_on = relayed and one.id != crashed and times[one.id] == 1 and one.doing in runs
        if (why or frames) and ran_on and goroutine["state"] in runs:
            why, frames = [], differ(calls(goroutine)[-2:], one.frames[-2:]) if one.frames else ""
            print(f"# goroutine {one.id} ran on after it was listed")
        if frames:
            why.append(frames)
        if not one.unavailable:
            why.append(compare_created(goroutine, offsets.get(one.id), one.created))
        result(not any(why), f"goroutine {one.id} [{one.doing}]" + (" (on another thread)" if one.unavailable else ""),
               "\n".join(filter(None, why)))
    print(f"# {len(found)} listings, {n_frames} frames; {n_whole} goroutines have no frame more")


def check_stacks(goroutines):
    """runtime.Stack leaves out the runtime's goroutines and functions, and gives no sp and pc."""
    with open(f"{sys.argv[3]}/stdout", encoding="utf-8", errors="replace") as file:
        text = file.read().split("stacks_begin\n")[1].split("stacks_end\n")[0]
    found = {one.id: one for one in listings(text.split("\n"))}
    offsets = created_offsets(sonde("--all").stdout.decode("utf-8"))
    user = {g["id"]: g for g in goroutines if not g["system"]}
    equal("the same goroutines but the runtime's own", sorted(user), sorted(found))
    for i, one in found.items():
        goroutine = user.get(i)
        # Those that run go on; the one that printed waits now.
        if not goroutine or one.doing in ("running", "runnable") or one.doing.startswith("GC "):
            continue
        why = []
        if re.sub(r", \d+ minutes", "", one.doing) != doing(goroutine):
            why.append(f"state: is {doing(goroutine)}")
        # Printed are not: functions of the runtime but those with an exported name, and the compiler's wrappers of go
        # statements (runtime.showfuncinfo).
        frames = [f[:4] + (None, None) for f in calls(goroutine)
                  if not re.search(r"^runtime\.[^A-Z]|\.gowrap\d+$", f[0])]
        why.append(differ(frames, [f[:4] + (None, None) for f in whole(one, frames)]))
        why.append(compare_created(goroutine, offsets.get(i), one.created))
        result(not any(why), f"goroutine {i} [{one.doing}]", "\n".join(filter(None, why)))


def check_delve(goroutines):
    script = "goroutines -t 10000\nexit\n"
    run = subprocess.run([sys.argv[5], "core", "--check-go-version=false", "--allow-non-terminal-interactive", "--init",
                          "/dev/stdin", f"{sys.argv[3]}/exe", f"{sys.argv[3]}/core"], input=script.encode(),
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False)
    found, frames = {}, None
    for line in re.sub(r"\x1b\[[0-9;]*m", "", run.stdout.decode("utf-8", "replace")).splitlines():
        match = re.match(r"^[* ] Goroutine (\d+) - ", line)
        frame = re.match(r"^\t *\d+  (0x[0-9a-f]+) in (.+)$", line)
        if match:
            frames = found[int(match[1])] = []
        elif frame:
            frames.append((frame[2], int(frame[1], 16)))
    compared = [g for g in goroutines if g["state"] == "waiting"]
    result(len(compared) > 20 and all(found.get(g["id"]) for g in compared), "delve lists them",
           f"{len(compared)} wait, delve lists {len(found)}: {run.stdout.decode('utf-8', 'replace')[-500:]}")
    for goroutine in compared:
        # delve gives inlined calls the pc of the frame that they are inlined into.
        got, pc = [], 0
        for f in reversed(goroutine["frames"]):
            pc = pc if f["inlined"] else int(f["pc"], 16)
            got.insert(0, (f["function"], pc))
        why = differ(got, found.get(goroutine["id"], []))
        result(not why, f"delve: goroutine {goroutine['id']} [{doing(goroutine)}]", why)


def check_groups(goroutines):
    groups = report()
    equal("groups: totals", (groups["total"], groups["shown"], sum(g["count"] for g in groups["groups"])),
          (len(goroutines), len(goroutines), len(goroutines)))
    equal("groups: each goroutine once", sorted(i for g in groups["groups"] for i in g["ids"]),
          sorted(g["id"] for g in goroutines))
    equal("groups: count of ids", [g["count"] for g in groups["groups"]], [len(g["ids"]) for g in groups["groups"]])
    equal("groups: largest first, then by first id", [(-g["count"], g["ids"][0]) for g in groups["groups"]],
          sorted((-g["count"], g["ids"][0]) for g in groups["groups"]))

    def stack(g):
        # pc tells apart two calls of one line; sp and offset do not belong to what is equal.
        return (g["state"], g["wait_reason"], g["cut"], json.dumps(g.get("created_by")),
                tuple((f["function"], f["file"], f["line"], f.get("pc")) for f in g["frames"]))

    by_id = {g["id"]: g for g in goroutines}
    wrong = [(g["ids"][0], i) for g in groups["groups"] for i in g["ids"] if stack(by_id[i]) != stack(g)]
    equal("groups: members have the group's stack", wrong, [])
    stacks = [stack(g) for g in groups["groups"]]
    equal("groups: no two have one stack", len(set(stacks)), len(stacks))


def check_filters(goroutines):
    for text in ("chan", "chan receive", "sleep", "running", "no such state"):
        equal(f"--state '{text}'", [g["id"] for g in report("--all", "--state", text)["goroutines"]],
              [g["id"] for g in goroutines if g["state"].startswith(text) or (g["wait_reason"] or "").startswith(text)])
    functions = sorted({f["function"] for g in goroutines for f in g["frames"] if f["function"].startswith("main.")})
    for text in functions[:3] + ["runtime.chanrecv", "main.", "nobody.calls"]:
        equal(f"--function {text}", [g["id"] for g in report("--all", "--function", text)["goroutines"]],
              [g["id"] for g in goroutines if any(text in f["function"] for f in g["frames"])])
    one = goroutines[len(goroutines) // 2]
    equal("-g: that one alone", report("-g", str(one["id"]))["goroutines"], [one])
    missing = max(g["id"] for g in goroutines) + 1
    run = sonde("-g", str(missing))
    result(run.returncode == 1 and not run.stdout and f"no goroutine {missing}" in run.stderr.decode(),
           "-g: a number that none has", f"exit status {run.returncode}, {run.stderr.decode()}")


def check_text(goroutines):
    """The text says the same as the JSON."""
    text, want = sonde("--all").stdout.decode("utf-8"), []
    for g in goroutines:
        want.append(f"goroutine {g['id']}")
        for f in g["frames"]:
            want += [f["function"], f"{f['file']}:{f['line']}" + ("  [inlined]" if f["inlined"] else f" +{f['offset']:#x}")]
        created = g.get("created_by")
        if created:
            want.append(f"created by {created['function']}" + (f" in goroutine {g['parent']}" if g["parent"] else ""))
            want.append(f"{created['file']}:{created['line']}")
    got = [re.sub(r"^(goroutine \d+) .*", r"\1", re.sub(r"  \[(system stack|interrupted by a signal)\]", "", line.strip()))
           for line in text.splitlines()]
    got = iter(got)
    # In this order, whatever stands between; a creator's offset is checked elsewhere.
    lost = [line for line in want if not any(line in (other, other.rsplit(" +", 1)[0]) for other in got)]
    equal("the text has all that the JSON has", lost[:1], [])


def main():
    everything = report("--all")
    goroutines = everything["goroutines"]
    equal("total", (everything["total"], everything["shown"]), (len(goroutines), len(goroutines)))
    equal("no notes", everything["notes"], [])
    checks = {"crash": [check_crash], "stacks": [check_stacks], "delve": [check_delve],
              "groups": [check_groups, check_filters, check_text]}
    for check in checks[sys.argv[4]]:
        check(goroutines)


main()
