#!/usr/bin/env python3
"""Measures reading execution traces beside Go 1.27's own reader, in one run on one machine.

  bench/trace.py [--build build] [--output bench/RESULTS.md] [--megabytes 10,100,1000]

The traces are written by tests/data/src/tracer.go built with Go 1.27; the peer is the program of
tests/e2e/trace_oracle.sh over internal/trace, once as it is and once with GOMAXPROCS=1. Both decode, order and validate
every event and look at none. CPU seconds of the process, the least of five runs each, in turn (of two above 500 MB).
"""
import argparse
import os
import platform
import re
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RUNS = 5


def figures(text):
    return {k: float(v) for k, v in re.findall(r"(\w+) ([0-9.]+)", text)}


def build(work):
    goroot = subprocess.run([f"{ROOT}/scripts/toolchains.sh", "--path", "1.27"], check=True, capture_output=True,
                            text=True).stdout.strip()
    env = dict(os.environ, GOROOT=goroot, GOTOOLCHAIN="local", GO111MODULE="off", GOFLAGS="",
               GOCACHE=os.environ.get("GOCACHE", f"{work}/cache"))
    subprocess.run([f"{ROOT}/tests/e2e/trace_oracle.sh", f"{work}/oracle"], check=True, env=env)
    subprocess.run([f"{goroot}/bin/go", "build", "-o", f"{work}/tracer", f"{ROOT}/tests/data/src/tracer.go"], check=True,
                   env=env, cwd=work)


def least(runs):
    return min(runs, key=lambda f: f["cpu_s"])


def measure(build_folder, work, trace):
    ours, go, go1 = [], [], []
    for _ in range(RUNS if os.path.getsize(trace) < 500e6 else 2):
        for to, command, env in ((ours, [f"{build_folder}/bench/bench_trace", trace, "1"], {}),
                                 (go, [f"{work}/oracle", "time", trace], {}),
                                 (go1, [f"{work}/oracle", "time", trace], {"GOMAXPROCS": "1"})):
            out = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **env}).stdout
            to.append(figures(out))
    return least(ours), least(go), least(go1)


def row(mb, ours, peers):
    n = ours["events"]
    cells = [f"{mb:.1f}", f"{n / 1e6:.2f}", f"{mb / ours['cpu_s']:.0f}", f"{n / 1e6 / ours['cpu_s']:.1f}",
             f"{ours['cpu_s'] / n * 1e9:.1f}", f"{ours['maxrss_kb'] / 1024:.0f}",
             f"{ours['generation_bytes'] / 1e6:.1f}"]
    for peer in peers:
        cells += [f"{mb / peer['cpu_s']:.0f}", f"{peer['maxrss_kb'] / 1024:.0f}", f"{peer['cpu_s'] / ours['cpu_s']:.2f}"]
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=f"{ROOT}/build")
    parser.add_argument("--output", default=f"{ROOT}/bench/RESULTS.md")
    parser.add_argument("--megabytes", default="10,100,1000")
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as work:
        build(work)
        trace, probe = f"{work}/trace", 20
        subprocess.run([f"{work}/tracer", trace, str(probe)], check=True, stdout=subprocess.DEVNULL)
        per_round = os.path.getsize(trace) / probe
        for megabytes in args.megabytes.split(","):
            rounds = max(1, round(float(megabytes) * 1e6 / per_round))
            subprocess.run([f"{work}/tracer", trace, str(rounds)], check=True, stdout=subprocess.DEVNULL)
            ours, go, go1 = measure(args.build, work, trace)
            rows.append(row(os.path.getsize(trace) / 1e6, ours, (go, go1)))
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    text = "\n".join([
        "<!-- trace.py -->", "## Execution traces: decoded, ordered, validated", "",
        f"{time.strftime('%Y-%m-%d', time.gmtime())}, {cpu}, {os.cpu_count()} CPUs, Linux {platform.release()}, load "
        f"{os.getloadavg()[0]:.2f}; `bench/trace.py`. A trace of Go 1.27 by tests/data/src/tracer.go. CPU time of the whole "
        f"process, the least of {RUNS} runs (2 above 500 MB), in turn. A goroutine that exists takes 32 to 48 bytes of state. Ours always validates: there is no mode without. RSS counts mapped "
        "pages of the file.", "",
        "| MB | M events | MB/s | M events/s | ns an event | RSS MB | largest generation MB | Go MB/s | Go RSS MB | times | "
        "Go, one P, MB/s | its RSS MB | times |", "|" + "--:|" * 13, *rows, "<!-- /trace.py -->", ""])
    old = open(args.output, encoding="utf-8").read() if os.path.exists(args.output) else ""
    begin, end = "<!-- trace.py -->", "<!-- /trace.py -->\n"
    if begin in old:
        old = old[:old.index(begin)] + text + old[old.index(end) + len(end):]
    else:
        old += ("\n" if old else "") + text
    with open(args.output, "w", encoding="utf-8") as f:
        f.write(old)
    print(text)


if __name__ == "__main__":
    main()
