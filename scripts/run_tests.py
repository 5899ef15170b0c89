#!/usr/bin/env python3
"""Runs test programs that print TAP, counts their results, shows what failed.

    run_tests.py [--jobs N] [--counts FILE] [--label TEXT] [--timeout SECONDS] (--meson BUILD | [--exit] PROGRAM...)

--meson BUILD  the tests of a meson build folder, TAP or by exit status as each says
PROGRAM        a path; arguments follow it behind tabs
--exit         the programs print no TAP: their exit status is the result (0 passed, 77 skipped)
--counts FILE  appends a line "PASSED FAILED SKIPPED"
A program that crashes, runs too long or prints fewer results than its plan says counts as failed. Exit status: 1 if
anything failed.
"""
import argparse
import concurrent.futures
import json
import os
import re
import signal
import subprocess
import sys
import time

RESULT = re.compile(r"^(not )?ok\b(?:\s+(\d+))?([^#]*)(?:#\s*(SKIP|TODO)\b.*)?", re.IGNORECASE)
PLAN = re.compile(r"^1\.\.(\d+)(?:\s*#\s*SKIP\b(.*))?", re.IGNORECASE)


class Test:
    def __init__(self, name, command, cwd=None, env=None, timeout=60, tap=True, parallel=True):
        self.name, self.command, self.cwd, self.env = name, command, cwd, env or {}
        self.timeout, self.tap, self.parallel = timeout, tap, parallel
        self.passed = self.failed = self.skipped = 0
        self.problems = []
        self.output = ""
        self.seconds = 0.0

    def fail(self, problem, n=1):
        self.failed += n
        self.problems.append(problem)

    def run(self):
        started = time.monotonic()
        environment = dict(os.environ)
        environment.setdefault("MALLOC_PERTURB_", "85")
        environment.setdefault("ASAN_OPTIONS", "detect_stack_use_after_return=1:strict_string_checks=1")
        environment.setdefault("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1")
        environment.update(self.env)
        expired = False
        try:
            process = subprocess.Popen(self.command, cwd=self.cwd, env=environment, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        except OSError as error:
            self.fail(f"cannot start: {error}")
            return self
        try:
            output, _ = process.communicate(timeout=self.timeout)
        except subprocess.TimeoutExpired:
            expired = True
            # Its own scripts clean up on SIGTERM.
            for number in (signal.SIGTERM, signal.SIGKILL):
                try:
                    os.killpg(process.pid, number)
                except ProcessLookupError:
                    pass
                try:
                    output, _ = process.communicate(timeout=5)
                    break
                except subprocess.TimeoutExpired:
                    output = b""
        self.output = output.decode("utf-8", "replace")
        self.seconds = time.monotonic() - started
        if expired:
            self.fail(f"still running after {self.timeout} s")
        if self.tap:
            self.count_tap(process.returncode, expired)
        elif not expired:
            self.count_status(process.returncode)
        return self

    def count_status(self, status):
        if status == 0:
            self.passed = 1
        elif status == 77:
            self.skipped = 1
        else:
            self.fail(describe(status))

    def count_tap(self, status, expired):
        plan, seen, bad = None, 0, 0
        for line in self.output.splitlines():
            match = PLAN.match(line)
            if match:
                plan = int(match.group(1))
                if plan == 0:
                    self.skipped += 1
                continue
            if line.startswith("Bail out!"):
                self.fail(line)
                expired = True
                break
            match = RESULT.match(line)
            if not match:
                continue
            seen += 1
            directive = (match.group(4) or "").upper()
            if directive == "SKIP":
                self.skipped += 1
            elif match.group(1) and directive != "TODO":
                bad += 1
                self.fail(line)
            else:
                self.passed += 1
        if plan is None:
            if not expired:
                self.fail(f"no plan ({describe(status)})")
        elif seen < plan:
            self.fail(f"{plan - seen} of {plan} results are missing ({describe(status)})", plan - seen)
        elif seen > plan > 0:
            self.fail(f"{seen} results, {plan} planned")
        elif status != 0 and not bad and not expired and not (status == 77 and self.skipped):
            self.fail(describe(status))


def describe(status):
    if status is None:
        return "no exit status"
    return f"signal {-status}" if status < 0 else f"exit status {status}"


def meson_tests(build):
    listing = subprocess.run(["meson", "introspect", "--tests", build], check=True, stdout=subprocess.PIPE).stdout
    for entry in json.loads(listing):
        suites = [suite.split(":")[-1] for suite in entry.get("suite", [])]
        name = "/".join([suite for suite in suites if suite] + [entry["name"]])
        yield Test(name, entry["cmd"], entry.get("workdir") or build, entry.get("env"),
                   entry.get("timeout") or 60, entry.get("protocol") == "tap", entry.get("is_parallel", True))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--counts")
    parser.add_argument("--label", default="")
    parser.add_argument("--timeout", type=float, default=900)
    parser.add_argument("--meson")
    parser.add_argument("--exit", action="store_true")
    parser.add_argument("programs", nargs="*")
    options = parser.parse_args()

    if options.meson:
        tests = list(meson_tests(options.meson))
        if options.label:  # a sanitized build is slower
            for test in tests:
                test.timeout *= 4
    else:
        tests = [Test(os.path.basename(program).replace("\t", " "), program.split("\t"), timeout=options.timeout, tap=not options.exit)
                 for program in options.programs]

    def show(test):
        tail = f", {test.skipped} skipped" if test.skipped else ""
        print(f"{'FAIL' if test.failed else 'ok  '} {options.label}{test.name}: {test.passed} passed, "
              f"{test.failed} failed{tail} ({test.seconds:.1f} s)")
        if test.failed:
            for line in test.output.splitlines():
                print("    | " + line)
            for problem in test.problems:
                print("    " + problem)
        else:
            for line in test.output.splitlines():
                if re.match(r"^(ok\b.*|1\.\.0\s*)#\s*SKIP", line, re.IGNORECASE):
                    print("    " + line)
        sys.stdout.flush()

    with concurrent.futures.ThreadPoolExecutor(max(1, options.jobs)) as pool:
        for future in concurrent.futures.as_completed([pool.submit(test.run) for test in tests if test.parallel]):
            show(future.result())
    for test in tests:
        if not test.parallel:
            show(test.run())

    passed, failed, skipped = (sum(getattr(test, key) for test in tests) for key in ("passed", "failed", "skipped"))
    if options.counts:
        with open(options.counts, "a", encoding="ascii") as counts:
            counts.write(f"{passed} {failed} {skipped}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
