#!/usr/bin/env python3
"""threads_go.py THREADS.json GOROUTINES.json: each thread that runs a goroutine shows the frames that `core goroutines`
shows of it, from the innermost one on to where either ends or Go switches stacks. Exit status 1 where they differ."""
import json
import sys


def pcs(frames):
    return [(f['pc'], f['function']) for f in frames if not f['inlined'] and not f.get('trampoline')]


with open(sys.argv[1]) as f:
    threads = json.load(f)['threads']
with open(sys.argv[2]) as f:
    groups = json.load(f)['groups']
goroutines = {i: pcs(g['frames']) for g in groups for i in g['ids']}
bad = n_threads = n_frames = n_switched = 0
for t in threads:
    want = goroutines.get(t['goroutine'])
    if not want:
        continue
    n_threads += 1
    got = pcs(t['frames'])
    # In a system call the goroutine knows the pc at which it entered, the thread stands further on in the same function.
    names = [f for _, f in got]
    if want[0][1] not in names:
        # The goroutine's own stack begins below the switch.
        if t['cut'] and 'stack switch' in t['cut']:
            n_switched += 1
        else:
            bad += 1
            print('thread %d: %s is not among %s (%s)' % (t['tid'], want[0], got, t['cut']))
        continue
    got = got[names.index(want[0][1]):]
    want = got[:1] + want[1:]
    n = min(len(got), len(want))
    if got[:n] != want[:n] or (len(got) < len(want) and not t['cut']):
        bad += 1
        print('thread %d, %s: %s\ngoroutine %d: %s' % (t['tid'], t['cut'], got, t['goroutine'], want))
    n_frames += n
print('%d threads, %d frames equal, %d stacks switched above, %d differences' % (n_threads, n_frames, n_switched, bad))
sys.exit(bad > 0 or n_frames + n_switched == 0)
