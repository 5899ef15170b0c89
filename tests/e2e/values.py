#!/usr/bin/env python3
"""Compares what `sonde core` shows with what a program (tests/data/src/values.go) says of its own values.

values.py globals|locals STDOUT < JSON

A value of sonde's JSON becomes a plain one; numbers are compared as numbers, all else as it is. Prints TAP results.
"""
import json
import sys


def number(text):
    try:
        return int(text, 0)
    except ValueError:
        return float(text)


def plain(v):
    """What encoding/json would make of it."""
    t = v.get('type', '')
    if v.get('nil'):
        return None
    if 'note' in v and v['note'] != 'closed':
        return '<%s>' % v['note']
    if 'more' in v:
        return '<%d more>' % v['more']
    if 'fields' in v:
        return {f['name']: plain(f) for f in v['fields']}
    if 'entries' in v:
        flat = [plain(e) for e in v['entries']]
        key = lambda k: ','.join(map(str, k)) if isinstance(k, list) else str(k)
        return {key(k): x for k, x in zip(flat[::2], flat[1::2])}
    if 'elements' in v:
        return [plain(e) for e in v['elements']]
    if 'to' in v:
        return plain(v['to'][0])
    if t.startswith('map['):
        return {}
    if 'value' not in v:
        return [] if 'len' in v else {} if t.startswith('main.') else '<nothing>'
    text = v['value']
    if t == 'string':
        return text
    if t == 'bool':
        return text == 'true'
    return number(text)


def same(got, want):
    if isinstance(want, dict):
        return isinstance(got, dict) and got.keys() == want.keys() and all(same(got[k], want[k]) for k in want)
    if isinstance(want, list):
        return isinstance(got, list) and len(got) == len(want) and all(map(same, got, want))
    if isinstance(want, (int, float)) and not isinstance(want, bool):
        return isinstance(got, (int, float)) and not isinstance(got, bool) and got == want
    return type(got) is type(want) and got == want


def shown(value):
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 600 else text[:600] + '...'


def result(name, good, got, want):
    print(('ok ' if good else 'not ok ') + name)
    if not good:
        print('# is   %s\n# want %s' % (shown(got), shown(want)))


def check_globals(lines, document):
    found = {g['name']: g for g in document['globals']}
    n = 0
    for line in lines:
        kind, _, rest = line.partition(' ')
        name, _, said = rest.partition(' ')
        if kind == 'global':
            want = json.loads(said)
            if name == 'main.scalars':
                # JSON has no single precision; nil of an interface is null as well
                want['F32'] = 0.1
            result(name, name in found and same(plain(found[name]['value']), want),
                   plain(found[name]['value']) if name in found else None, want)
            n += 1
        elif kind == 'text':
            name, _, index = name.partition('.')[0] + '.' + name.split('.')[1], None, name.split('.')[2:]
            value = found[name]['value'] if name in found else {}
            if index:
                value = value['elements'][int(index[0])]
            got = value.get('value')
            if name == 'main.failure':
                got = json.dumps(value['to'][0]['to'][0]['fields'][0]['value'])
            result('%s%s' % (name, index or ''), got == said, got, said)
            n += 1
    ring = found['main.ring']['value']
    notes = []
    while ring:
        notes.append(ring.get('note'))
        ring = ring['to'][0]['fields'][1] if 'to' in ring else None
    result('a ring ends where it begins', notes == [None, None, None, 'shown above'], notes, 'shown above')
    result('values were compared', n > 35, n, 36)


def check_locals(lines, document):
    frames = [f for g in document['goroutines'] for f in g['frames']]
    n = 0
    for line in lines:
        kind, _, rest = line.partition(' ')
        if kind != 'local':
            continue
        function, name, said = rest.split(' ', 2)
        want = json.loads(said)
        frame = next(f for f in frames if f['function'] == function)
        values = {v['name']: v for v in frame['variables']}
        # What escapes lies on the heap as &x; what does not is x itself.
        v = values.get(name) or values.get(name.lstrip('&'))
        got = plain(v['value']) if v and v.get('value') else v
        result('%s %s' % (function, name), v is not None and same(got, want), got, want)
        n += 1
    result('variables were compared', n == 7, n, 7)


def main():
    with open(sys.argv[2], encoding='utf-8') as f:
        lines = f.read().splitlines()
    document = json.load(sys.stdin)
    {'globals': check_globals, 'locals': check_locals}[sys.argv[1]](lines, document)


main()
