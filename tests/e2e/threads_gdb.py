#!/usr/bin/env python3
"""Compares the native stacks of `sonde core threads` with gdb's, frame by frame.

threads_gdb.py SONDE CORE EXE [--debug-dir DIR]... [--up-to N]

Every frame that is neither inlined nor a tail call of gdb's guessing must have the same pc on both sides, and the same
function where both know one; gdb follows the stack past main. Exit status 1 where they differ. --up-to: look at the
first N frames of each thread only. --go: each thread as far as to where its
stack is switched to a goroutine's, or Go's function tables say that it ends. The last line of output counts.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

GDB = r"""
import gdb, json, os
out = {}
for thread in gdb.selected_inferior().threads():
    thread.switch()
    frames, frame, why = [], gdb.newest_frame(), None
    try:
        while frame is not None and len(frames) < 70000:
            frames.append((frame.pc(), frame.name(), frame.type()))
            why = frame.unwind_stop_reason()
            frame = frame.older()
    except gdb.error as err:
        why = str(err)
    out[thread.ptid[1]] = [frames, str(why)]
json.dump({'threads': out, 'inline': gdb.INLINE_FRAME, 'tail': gdb.TAILCALL_FRAME, 'sig': gdb.SIGTRAMP_FRAME},
          open(os.environ['SONDE_GDB_OUT'], 'w'))
"""


def bare(name):
    """Without parameters, template arguments, return type, clones."""
    if not name:
        return None
    name = re.sub(r'\(anonymous namespace\)::', '', name)
    name = re.sub(r'\{[^{}]*\}', 'local', name.split('@')[0])
    while True:
        shorter = re.sub(r'<[^<>]*>', '', name)
        if shorter == name:
            break
        name = shorter
    name = name.replace('operator()', 'operator!')
    name = re.sub(r'\([^()]*\)', '', re.sub(r' const\b', '', name))
    name = name.split('(')[0].split(' [clone')[0].split('.')[0].strip()
    name = name.split(' ')[-1].split('::')[-1].replace('operator!', 'operator()')
    # A function has several names in the C library: __GI_raise, raise; __clone3, clone3.
    name = re.sub(r'^_*(GI_)?_*(libc_(?=pause))?', '', name)
    return {'gsignal': 'raise', 'libc_start_main_impl': 'libc_start_main'}.get(name, name)


def gdb_threads(core, exe, debug_dirs, folder):
    script, out = os.path.join(folder, 'walk.py'), os.path.join(folder, 'gdb.json')
    with open(script, 'w') as f:
        f.write(GDB)
    command = ['gdb', '-nx', '-q', '-batch', '-iex', 'set auto-load off', '-iex', 'set debuginfod enabled off']
    if debug_dirs:
        command += ['-iex', 'set debug-file-directory ' + ':'.join(debug_dirs)]
    command += ['-ex', 'set backtrace past-main on', '-ex', 'source ' + script, exe, core]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env=dict(os.environ, SONDE_GDB_OUT=out))
    if not os.path.exists(out):
        sys.exit('gdb failed: ' + done.stderr)
    with open(out) as f:
        found = json.load(f)
    skip = (found['inline'], found['tail'])
    return {int(tid): ([f for f in frames if f[2] not in skip], why)
            for tid, (frames, why) in found['threads'].items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('sonde')
    parser.add_argument('core')
    parser.add_argument('exe')
    parser.add_argument('--debug-dir', action='append', default=[])
    parser.add_argument('--go', action='store_true')
    parser.add_argument('--up-to', type=int, default=1 << 30)
    args = parser.parse_args()
    command = [args.sonde, 'core', 'threads', args.core, '--exe', args.exe, '--json']
    for d in args.debug_dir:
        command += ['--debug-dir', d]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    with tempfile.TemporaryDirectory() as folder:
        gdb = gdb_threads(args.core, args.exe, args.debug_dir, folder)
    n_frames = n_names = n_nameless = n_ends = 0
    bad = []
    if sorted(gdb) != sorted(t['tid'] for t in report['threads']):
        bad.append('threads differ: %s, gdb %s' % ([t['tid'] for t in report['threads']], sorted(gdb)))
    for thread in report['threads']:
        frames = [f for f in thread['frames'] if not f['inlined']]
        want, why = gdb.get(thread['tid'], ([], None))
        for i in range(min(args.up_to, max(len(frames), len(want)))):
            # gdb follows no switch to a goroutine's stack, and does not know where Go's stacks end.
            if args.go and (i < len(frames) and frames[i]['found_by'] == 'runtime' or i >= len(frames)):
                n_ends += 1
                break
            if i >= len(frames) or i >= len(want):
                bad.append('thread %d: %d frames (%s), gdb %d (%s): next %s' % (
                    thread['tid'], len(frames), thread['cut'], len(want), why,
                    want[i] if i < len(want) else frames[i]))
                break
            pc = int(frames[i]['pc'], 16) if isinstance(frames[i]['pc'], str) else frames[i]['pc']
            if pc != want[i][0]:
                bad.append('thread %d frame %d: pc %#x, gdb %#x %s' % (thread['tid'], i, pc, want[i][0], want[i][1]))
                break
            n_frames += 1
            ours, theirs = bare(frames[i]['function']), bare(want[i][1])
            if frames[i]['trampoline'] or not theirs:
                continue
            if not ours:
                n_nameless += 1
            elif ours != theirs:
                bad.append('thread %d frame %d: %s, gdb %s' % (thread['tid'], i, frames[i]['function'], want[i][1]))
            else:
                n_names += 1
    print('\n'.join(bad[:20]))
    if args.go and (n_ends == 0 or n_frames == 0):
        bad.append('no thread of Go')
    print('%d threads, %d frames equal, %d names equal, %d that only gdb names, %d differences' % (
        len(report['threads']), n_frames, n_names, n_nameless, len(bad)))
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
