#!/usr/bin/env python3
"""Measures `sonde core` on a heap of 17 million objects beside its peers, in one run on one machine.

  bench/core.py [--versions 1.24,1.27] [--millions 17] [--build build] [--output bench/RESULTS.md]

Peers: the program's own collector (its GODEBUG=gctrace=1 line of a forced collection on the same heap, two Ps) and
delve. viewcore is in no registry: its figures of a quiet machine stand beside ours as an anchor, named as such.
CPU seconds are user + system of the whole command; each is the median of five runs behind one that warms the cache.
"""
import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RUNS = 5
# viewcore HEAD on a quiet machine of two vCPUs, a core of this size (Go 1.24): seconds of CPU.
VIEWCORE_OVERVIEW_S = 4.2
VIEWCORE_HISTOGRAM_S = 12.9


def cpu_of(command, stdin=None):
    """Median CPU and wall seconds, largest peak RSS of the command in MB."""
    cpus, walls, peak = [], [], 0
    for i in range(RUNS + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.monotonic()
        done = subprocess.run(command, input=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        wall = time.monotonic() - start
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode:
            sys.exit(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()[-300:]}")
        if i:
            cpus.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
            walls.append(wall)
    return statistics.median(cpus), statistics.median(walls)


def marks_of(bench, core, exe):
    """The steps that bench_mark prints: name -> list of dicts."""
    out = subprocess.run([bench, core, exe, str(RUNS)], check=True, capture_output=True, text=True).stdout
    steps = {}
    for line in out.splitlines():
        name, figures = line[:16].strip(), line[16:]
        steps.setdefault(name, []).append({k: float(v) for k, v in re.findall(r"(\w+)=(\S+)", figures)})
    return steps


def median(steps, name, key):
    return statistics.median(s[key] for s in steps[name])


def collector_of(folder):
    """Wall and CPU seconds of concurrent mark of the last forced collection, from gctrace."""
    found = None
    with open(os.path.join(folder, "stderr")) as f:
        for line in f:
            if line.startswith("gc ") and "(forced)" in line:
                found = line
    clock = re.search(r"([\d.]+)\+([\d.]+)\+([\d.]+) ms clock", found)
    cpu = re.search(r"([\d.]+)\+([\d.]+)/([\d.]+)/([\d.]+)\+([\d.]+) ms cpu", found)
    return float(clock[2]) / 1e3, sum(map(float, (cpu[2], cpu[3], cpu[4]))) / 1e3, found.strip()


def delve():
    path = subprocess.run([os.path.join(ROOT, "scripts/toolchains.sh"), "--peer", "delve"], capture_output=True, text=True)
    folder = path.stdout.strip()
    return os.path.join(folder, "usr/bin/dlv") if path.returncode == 0 and folder else None


def measure(version, millions, build, rows):
    with tempfile.TemporaryDirectory(prefix="sonde-bench.") as work:
        env = dict(os.environ, SONDE_RUN_ENV="GODEBUG=gctrace=1 GOMAXPROCS=2")
        subprocess.run([os.path.join(ROOT, "tests/e2e/make_core.sh"), "big", version, "kernel", work, "abort",
                        str(millions)], check=True, env=env, stdout=subprocess.DEVNULL)
        core, exe = os.path.join(work, "core"), os.path.join(work, "exe")
        sonde = os.path.join(build, "sonde")
        wall, cpu, trace = collector_of(work)
        steps = marks_of(os.path.join(build, "bench/bench_mark"), core, exe)
        one, two = median(steps, "mark, 1 thread", "cpu_s"), median(steps, "mark, 2 threads", "wall_s")
        per_object = steps["heap index"][0]["bytes_per_object"] + steps["mark, 1 thread"][0]["bytes_per_object"]
        rows.append((f"Go {version}: mark, CPU, one thread", f"{one:.2f} s ({median(steps, 'mark, 1 thread', 'ns_per_object'):.0f} ns an object)",
                     f"{cpu:.2f} s (collector)", f"{one / cpu:.2f}", "<= 1.5"))
        rows.append((f"Go {version}: mark, wall, two threads", f"{two:.2f} s", f"{wall:.2f} s (collector, two Ps)",
                     f"{two / wall:.2f}", "<= 1.0"))
        rows.append((f"Go {version}: memory for index and marks", f"{per_object:.2f} bytes an object", "-", "-", "<= 1 byte"))
        over, _ = cpu_of([sonde, "core", "overview", core, "--exe", exe])
        rows.append((f"Go {version}: overview, CPU", f"{over:.3f} s", f"{VIEWCORE_OVERVIEW_S} s (viewcore, anchor)",
                     f"1/{VIEWCORE_OVERVIEW_S / over:.0f}", "<= 1/25"))
        hist, hist_wall = cpu_of([sonde, "core", "histogram", core, "--exe", exe])
        rows.append((f"Go {version}: histogram, CPU (wall {hist_wall:.2f} s)", f"{hist:.2f} s",
                     f"{VIEWCORE_HISTOGRAM_S} s (viewcore, anchor)", f"1/{VIEWCORE_HISTOGRAM_S / hist:.0f}", "-"))
        ours, _ = cpu_of([sonde, "core", "goroutines", core, "--exe", exe])
        dlv = delve()
        if dlv:
            theirs, _ = cpu_of([dlv, "core", exe, core, "--check-go-version=false", "--allow-non-terminal-interactive=true"], stdin="goroutines\nexit\n")
            rows.append((f"Go {version}: goroutines, CPU", f"{ours:.3f} s", f"{theirs:.2f} s (delve)",
                         f"{ours / theirs:.2f}", "<= 0.25"))
        return trace


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--versions", default="1.24,1.27")
    p.add_argument("--millions", type=int, default=17)
    p.add_argument("--build", default=os.path.join(ROOT, "build"))
    p.add_argument("--output")
    a = p.parse_args()
    rows, traces = [], []
    for version in a.versions.split(","):
        traces.append((version, measure(version, a.millions, os.path.abspath(a.build), rows)))
    with open("/proc/cpuinfo") as f:
        cpu = next((l.split(":", 1)[1].strip() for l in f if l.startswith("model name")), "?")
    text = [f"## `sonde core` on {a.millions} million objects, {time.strftime('%Y-%m-%d')}", "",
            f"{os.cpu_count()} CPUs ({cpu}), Linux {os.uname().release}, load {os.getloadavg()[0]:.1f} at the end; `bench/core.py "
            f"--versions {a.versions} --millions {a.millions}`.", "",
            "| what | sonde | peer | ratio | target |", "|---|---|---|---|---|"]
    text += ["| " + " | ".join(r) + " |" for r in rows]
    text += [""] + [f"Go {v}: `{t}`" for v, t in traces] + [""]
    print("\n".join(text))
    if a.output:
        with open(a.output, "a") as f:
            f.write("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
