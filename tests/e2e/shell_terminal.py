#!/usr/bin/env python3
"""The shell of `sonde core` on a pseudo-terminal, as a person uses it. Prints "ok TEXT" and "not ok TEXT".

    shell_terminal.py SONDE CORE EXE WORK [edit]

edit: the program was built with libedit. WORK is an empty folder.
"""
import json
import os
import pty
import re
import select
import shutil
import signal
import stat
import subprocess
import sys
import time

SONDE, CORE, EXE, WORK = map(os.path.abspath, sys.argv[1:5])
EDIT = "edit" in sys.argv[5:]
PROMPT = b"sonde> "
WAIT_S = 60


class Shell:
    def __init__(self, core=CORE, exe=EXE, state=os.path.join(WORK, "state"), options=(), pager=""):
        # Quiet: how far something is is shown where it takes long, whenever that is.
        self.seen = b""  # since the last wait
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            for name in list(os.environ):
                if name.startswith(("CLICOLOR", "SONDE_PAGER", "NO_COLOR")):
                    del os.environ[name]
            os.environ.update(TERM="xterm", PAGER=pager, XDG_STATE_HOME=state, HOME=WORK, NO_COLOR="1")
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            try:
                os.execv(SONDE, [SONDE, "core", core, "--exe", exe, "--quiet", *options])
            finally:
                os._exit(127)

    def read(self, most=65536):
        if not select.select([self.fd], [], [], WAIT_S)[0]:
            raise TimeoutError(f"nothing more behind {self.seen[-500:]!r}")
        try:
            data = os.read(self.fd, most)
        except OSError:
            data = b""
        self.seen += data
        return data

    def until(self, text):
        """What is shown up to text."""
        while text not in self.seen:
            if not self.read():
                raise EOFError(f"ended behind {self.seen[-500:]!r}")
        shown, self.seen = self.seen.split(text, 1)
        return shown

    def type(self, keys):
        while keys:
            keys = keys[os.write(self.fd, keys):]

    def run(self, line):
        """What a command shows."""
        self.type(line.encode() + b"\n")
        self.until(b"\n")  # its echo
        return self.until(PROMPT).replace(b"\r\n", b"\n").decode()

    def end(self):
        """Reads to the end; the exit status, negative for a signal."""
        while self.read():
            pass
        _, status = os.waitpid(self.pid, 0)
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status)


def once(*arguments):
    """The same by a process of its own."""
    command = [SONDE, "core", arguments[0], CORE, "--exe", EXE, *arguments[1:]]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def strip(text):
    """Without the editor's own sequences."""
    return re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]|\r|\x07", b"", text)


def commands_show_what_they_show_alone():
    shell = Shell()
    shell.until(PROMPT)
    for line in ("overview", "goroutines", "histogram -n 5", "retained --by root -n 3", "histogram -n 5", "overview"):
        assert shell.run(line) == once(*line.split()), line
    shell.type(b"quit\n")
    assert shell.end() == 0


def one_load_serves_all():
    folder = os.path.join(WORK, "gone")
    os.mkdir(folder)
    core, exe = os.path.join(folder, "core"), os.path.join(folder, "exe")
    shutil.copy(CORE, core)
    shutil.copy(EXE, exe)
    shell = Shell(core, exe)
    shell.until(PROMPT)
    first = shell.run("histogram")
    shutil.rmtree(folder)
    assert "main.Order" in first
    assert shell.run("histogram") == first
    assert "main.Order" in shell.run("retained --by type")
    shell.type(b"\x04")
    assert shell.end() == 0


def errors_do_not_end_it():
    shell = Shell()
    shell.until(PROMPT)
    assert "unknown command 'histgram'; did you mean 'histogram'?" in shell.run("histgram")
    assert "ADDR is missing" in shell.run("reachable")
    assert "unknown option '--exe'" in shell.run("overview --exe x")
    assert "unknown command 'shell'" in shell.run("shell")
    assert "a quote is not closed" in shell.run("overview 'x")
    assert "in no slot" in shell.run("reachable 10")
    assert shell.run("") == shell.run("# nothing") == ""
    assert shell.run("overview") == once("overview")
    shell.type(b"quit\n")
    assert shell.end() == 0


def help_is_of_the_shell():
    shell = Shell()
    shell.until(PROMPT)
    everything, one = shell.run("help"), shell.run("help reachable")
    assert "\n  histogram " in everything and "\n  quit " in everything and "\n  shell" not in everything
    assert one.startswith("Usage: reachable [OPTION...] ADDR\n") and "CORE" not in one and "--exe" not in one
    assert one == shell.run("reachable --help")
    assert "no command 'nonsense'" in shell.run("help nonsense")
    shell.type(b"exit\n")
    assert shell.end() == 0


def results_go_to_files_and_programs():
    shell = Shell()
    shell.until(PROMPT)
    out = os.path.join(WORK, "out put")
    assert shell.run(f"overview > '{out}'") == ""
    assert open(out).read() == once("overview")
    assert shell.run(f"overview --json -o '{out}'") == ""
    assert open(out).read() == once("overview", "--json")
    assert shell.run("mappings | wc -l").split() == [str(len(once("mappings").splitlines()))]
    assert shell.run("mappings | head -n 1") == once("mappings").splitlines(True)[0]
    assert "more than one of" in shell.run("overview -o a | cat")
    assert "No such file" in shell.run(f"overview > {WORK}/none/x")
    assert "is the file to be read" in shell.run(f"overview > {CORE}")
    shell.type(b"quit\n")
    assert shell.end() == 0


def a_pager_shows_them():
    shell = Shell(pager="sed s/^/paged:/")
    shell.until(PROMPT)
    for line in ("mappings", "overview"):
        assert shell.run(line) == "".join("paged:" + row for row in once(line).splitlines(True))
    shell.type(b"quit\n")
    assert shell.end() == 0


def ctrl_c_at_the_prompt_says_how_to_leave():
    shell = Shell()
    shell.until(PROMPT)
    shell.type(b"half a li\x03")
    assert b"leaves" not in shell.until(b"C\r\n" + PROMPT)
    shell.type(b"\x03")
    assert b"'quit' or Ctrl-D leaves" in shell.until(PROMPT)
    assert shell.run("overview") == once("overview")
    shell.type(b"\x04")
    assert shell.end() == 0


def ctrl_c_stops_a_command():
    shell = Shell()
    shell.until(PROMPT)
    # 30 MB of bytes: their text is more than a terminal takes before it is read.
    rows = [row.split() for row in once("mappings", "--no-legend").splitlines()]
    largest = max(rows, key=lambda row: int(row[3]) if row[2].startswith("r") else 0)
    line = f"read {largest[0]} {largest[3]}"
    whole = int(largest[3]) // 16 * 60
    shell.type(line.encode() + b"\n")
    got = 0
    while got < 100000:
        got += len(shell.read())
    shell.seen = b""
    shell.type(b"\x03")
    rest = shell.until(PROMPT)
    assert b"sonde: interrupted" in rest, rest[-300:]
    assert got + len(rest) < whole / 4, (got, len(rest), whole)
    assert shell.run("overview") == once("overview")
    # And twice: whoever is impatient loses no shell.
    shell.type(b"overview | trap 'echo over; exit' INT; echo ready; while :; do sleep 0.1; done\n")
    shell.until(b"\nready")
    shell.type(b"\x03")
    assert b"over" in shell.until(PROMPT)
    assert shell.run("overview") == once("overview")
    shell.type(b"quit\n")
    assert shell.end() == 0


def signals_that_end_programs_end_it():
    for number in (signal.SIGTERM, signal.SIGHUP):
        shell = Shell()
        shell.until(PROMPT)
        os.kill(shell.pid, number)
        assert shell.end() == 1


def tab_completes():
    shell = Shell()
    shell.until(PROMPT)

    def completed(keys, want):
        shell.type(b"\x15" + keys + b"\t")
        shown = b""
        while want not in strip(shown):
            shown += shell.read()
        shell.seen = b""
        shell.type(b"\x15")

    completed(b"hist", b"histogram ")
    completed(b"histogram --", b"--no-legend")
    completed(b"histogram --b", b"--by ")
    completed(b"histogram --by p", b"package ")
    completed(b"histogram --by=p", b"--by=package ")
    completed(b"goroutines --function main.(*Service).e", b"main.(*Service).expire ")
    completed(b"goroutines --state 'chan rec", b"chan\\ receive ")
    completed(b"goroutines --state chan\\ rec", b"chan\\ receive ")
    completed(b"help re", b"retained")
    ids = sorted(str(g["id"]) for g in json.loads(once("goroutines", "--all", "--json"))["goroutines"])
    assert len(ids) > 50
    completed(b"goroutines -g " + ids[-1][:-1].encode() + b"\t", ids[-1].encode() + b"\nsonde> ")  # twice: they are listed
    shell.type(b"\x15histogram -n 1 --by\tpack\t\n")
    shell.until(b"\n")
    assert shell.until(PROMPT).replace(b"\r\n", b"\n").decode() == once("histogram", "-n", "1", "--by", "package")
    shell.type(b"\x15quit\n")
    assert shell.end() == 0


def history_is_kept():
    state = os.path.join(WORK, "history state")
    path = os.path.join(state, "sonde", "core_history")
    shell = Shell(state=state)
    shell.until(PROMPT)
    shell.run("overview")
    shell.run("mappings | wc -l")
    shell.run("mappings | wc -l")
    shell.run(" overview --json")  # a blank in front: not to be kept
    shell.type(b"quit\n")
    assert shell.end() == 0
    assert open(path).read() == "overview\nmappings | wc -l\nquit\n", open(path).read()
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700
    shell = Shell(state=state)
    shell.until(PROMPT)
    shell.type(b"\x1b[A\x1b[A\n")
    shell.until(b"\n")
    assert shell.until(PROMPT).split() == [str(len(once("mappings").splitlines())).encode()]
    shell.type(b"quit\n")
    assert shell.end() == 0
    before = open(path).read()
    shell = Shell(state=state, options=["--no-history"])
    shell.until(PROMPT)
    shell.run("mappings | wc -l")
    shell.type(b"quit\n")
    assert shell.end() == 0 and open(path).read() == before


def a_long_history_is_cut():
    folder = os.path.join(WORK, "long", "sonde")
    os.makedirs(folder)
    path = os.path.join(folder, "core_history")
    with open(path, "w") as f:
        f.writelines(f"read {i:x}\n" for i in range(150000))
    os.chmod(path, 0o600)
    shell = Shell(state=os.path.dirname(folder))
    shell.until(PROMPT)
    shell.type(b"quit\n")
    assert shell.end() == 0
    lines = open(path).read().splitlines()
    assert lines[-2:] == [f"read {149999:x}", "quit"] and os.stat(path).st_size < 300000
    assert re.fullmatch("read [0-9a-f]+", lines[0]) and stat.S_IMODE(os.stat(path).st_mode) == 0o600


def history_that_cannot_be_kept_is_no_failure():
    os.mkdir(os.path.join(WORK, "blocked"))
    os.symlink("/dev/full", os.path.join(WORK, "blocked", "sonde"))
    for state in ("/proc/nothing", os.path.join(WORK, "blocked")):
        shell = Shell(state=state)
        shell.until(PROMPT)
        assert shell.run("overview") == once("overview")
        shell.type(b"quit\n")
        assert shell.end() == 0


def main():
    os.chdir(WORK)
    tests = [
        commands_show_what_they_show_alone, one_load_serves_all, errors_do_not_end_it, help_is_of_the_shell,
        results_go_to_files_and_programs, a_pager_shows_them, ctrl_c_at_the_prompt_says_how_to_leave,
        ctrl_c_stops_a_command, signals_that_end_programs_end_it, history_that_cannot_be_kept_is_no_failure,
    ]
    if EDIT:
        tests += [tab_completes, history_is_kept, a_long_history_is_cut]
    for test in tests:
        name = "on a terminal: " + test.__name__.replace("_", " ")
        try:
            test()
            print("ok", name)
        except Exception as error:  # noqa: what went wrong is the result
            print("not ok", name)
            print("#", f"line {error.__traceback__.tb_next.tb_lineno if error.__traceback__.tb_next else 0}:", repr(error)[:2000])
        sys.stdout.flush()


main()
