#!/usr/bin/env python3
"""Runs golden cases of the command line and prints TAP.

run_cases.py --sonde PROGRAM [--set NAME=VALUE]... [--update] FILE.case...

A case file holds cases; each line is told by its first two characters:

    === NAME        a new case
    % NAME          the case needs this variable (see --set); skipped without it
    $ COMMAND       run by bash in a fresh, empty folder; several lines are one script
    ? N             the expected exit status (0)
    | TEXT          the next expected line of standard output
    ! TEXT          the next expected line of standard error
    # TEXT          a comment

In expected text, <n> stands for decimal digits, <addr> for 0x and hexadecimal digits, <share> for a percentage,
<any> for anything within the line; a line that is just <...> stands for any number of lines; a last line that ends
with <no newline> ends so. $SONDE is the program, $TMP the folder. --update writes what came out into the files.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

PLACEHOLDERS = {
    '<n>': r'[0-9]+',
    '<addr>': r'0x[0-9a-f]+',
    '<share>': r'(?:<?[0-9]+\.[0-9]%|-)',
    '<any>': r'[^\n]*',
}
NO_NEWLINE = '<no newline>'
TIMEOUT_S = 60


class Case:
    def __init__(self, name):
        self.name = name
        self.needs, self.script, self.status = [], [], 0
        self.out, self.err = [], []
        self.first = self.last = None  # lines of the file that say what is expected


def parse(path):
    with open(path, encoding='utf-8') as f:
        lines = f.read().split('\n')
    cases = []
    for i, line in enumerate(lines):
        if line.startswith('=== '):
            cases.append(Case(line[4:]))
            continue
        if not line or line.startswith('#'):
            continue
        mark, text = line[0], line[2:]
        if not cases or mark not in '%$?|!' or line[1:2] not in ('', ' '):
            sys.exit(f'{path}:{i + 1}: not a line of a case: {line}')
        case = cases[-1]
        if mark == '%':
            case.needs.append(text)
        elif mark == '$':
            case.script.append(text)
        else:
            case.first = i if case.first is None else case.first
            case.last = i
            if mark == '?':
                case.status = int(text)
            else:
                (case.out if mark == '|' else case.err).append(text)
        if mark == '$':
            case.first, case.last = i + 1, i
    return lines, cases


def pattern(expected):
    parts = []
    for line in expected:
        if line == '<...>':
            parts.append(r'(?:[^\n]*\n)*')
            continue
        newline = not line.endswith(NO_NEWLINE)
        text = line if newline else line[:-len(NO_NEWLINE)]
        pieces = re.split('(' + '|'.join(PLACEHOLDERS) + ')', text)
        parts.append(''.join(PLACEHOLDERS.get(p) or re.escape(p) for p in pieces))
        parts.append(r'\n' if newline else '')
    return re.compile(''.join(parts))


def run(case, variables):
    env = {k: v for k, v in os.environ.items()
           if k not in ('NO_COLOR', 'CLICOLOR', 'CLICOLOR_FORCE', 'PAGER', 'SONDE_PAGER', 'DEBUGINFOD_URLS')}
    env.update(variables, LC_ALL='C', TERM='dumb')
    with tempfile.TemporaryDirectory(prefix='sonde-case-') as folder:
        env['TMP'] = folder
        try:
            done = subprocess.run(['bash', '-c', '\n'.join(case.script)], cwd=folder, env=env, timeout=TIMEOUT_S,
                                  stdin=subprocess.DEVNULL, capture_output=True)
        except subprocess.TimeoutExpired:
            return 'timeout', '', ''
        return (done.returncode, *(b.decode('utf-8', 'backslashreplace').replace(folder, '$TMP')
                                   for b in (done.stdout, done.stderr)))


def golden(mark, text):
    lines = text.split('\n')
    last = lines.pop()
    if last:
        lines.append(last + NO_NEWLINE)
    return [f'{mark} {line}'.rstrip() for line in lines]


def complain(case, status, out, err):
    if status != case.status:
        print(f'# exit status {status}, want {case.status}')
    for name, got, want in (('stdout', out, case.out), ('stderr', err, case.err)):
        if pattern(want).fullmatch(got):
            continue
        print(f'# {name} is:')
        for line in golden('#  ', got):
            print(line)
        print(f'# want:')
        for line in want:
            print('#   ', line)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--sonde', required=True)
    parser.add_argument('--set', action='append', default=[], metavar='NAME=VALUE')
    parser.add_argument('--update', action='store_true')
    parser.add_argument('files', nargs='+')
    args = parser.parse_args()
    variables = dict(s.split('=', 1) for s in args.set)
    variables['SONDE'] = os.path.abspath(args.sonde)

    n = failed = 0
    for path in args.files:
        lines, cases = parse(path)
        new = []
        for case in cases:
            n += 1
            missing = [v for v in case.needs if not (variables.get(v) or os.environ.get(v))]
            if missing:
                print(f'ok {n} - {case.name} # SKIP {missing[0]} is not set')
                continue
            status, out, err = run(case, variables)
            good = (status == case.status and pattern(case.out).fullmatch(out) and pattern(case.err).fullmatch(err))
            if not good and args.update and status != 'timeout':
                text = ([f'? {status}'] if status else []) + golden('|', out) + golden('!', err)
                new.append((case.first, case.last + 1, text))
                good = True
            failed += not good
            print(f"{'ok' if good else 'not ok'} {n} - {case.name}", flush=True)
            if not good:
                complain(case, status, out, err)
        for first, end, text in reversed(new):
            lines[first:end] = text
        if new:
            with open(path, 'w', encoding='utf-8') as f:
                f.write('\n'.join(lines))
    print(f'1..{n}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
