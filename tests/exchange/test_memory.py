#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Sessions of memory in other programs: valgrind's dh_view.js, heaptrack_print and `go tool pprof` tell
what the simulated program itself counted (tests/cli/make_heap_session.c)."""
import gzip
import json
import os
import re
import sys
import figures as f

MAKE = os.path.join(os.path.dirname(f.MAKE_SESSION), 'make-heap-session')
sessions = f.Sessions()
VIEWERS = ['/usr/libexec/valgrind/dh_view.js', '/usr/lib/valgrind/dh_view.js',
           '/usr/lib/x86_64-linux-gnu/valgrind/dh_view.js']


def session():
    path = sessions.path('memory.assay')
    truth = sessions.path('memory.json')
    if not os.path.exists(path):
        with open(truth, 'wb') as out:
            out.write(f.run(MAKE, path, '20000'))
    with open(truth, encoding='utf-8') as text:
        return path, json.load(text)


def functions(truth):
    return [k for k in truth if '::' in k]


def exported(to, name, *options):
    path = sessions.path(name)
    with open(path, 'wb') as out:
        out.write(f.export(session()[0], to, *options))
    return path


def dhat():
    viewer = next((v for v in VIEWERS if os.path.exists(v)), None)
    if not viewer or not f.which('node'):
        raise f.Skip('no valgrind, which has dh_view.js' if not viewer else 'no node')
    _, truth = session()
    got = json.loads(f.run('node', os.path.join(f.HERE, 'ask_dhat.mjs'), viewer,
                           exported('dhat', 'memory.dhat.json')))
    root = got['root']
    assert (root['bytes'], root['blocks']) == (truth['bytes'], truth['allocs']), (root, truth)
    assert root['peak'] == truth['peak_bytes'] and root['end'] == truth['live_bytes'], root
    assert root['endBlocks'] == truth['live_blocks'] and root['lives'] > 0, root
    for name in functions(truth):
        row = [r for k, r in got['rows'].items() if re.fullmatch(rf'0x[0-9A-F]+: {name} \(.*\)', k)]
        assert len(row) == 1, (name, got['rows'])
        want = truth[name]
        assert row[0] == {'bytes': want['bytes'], 'blocks': want['allocs'],
                          'peak': want['peak_bytes'], 'end': want['live_bytes']}, (name, row, want)


def heaptrack():
    if not f.which('heaptrack_print'):
        raise f.Skip('no heaptrack_print (Debian: heaptrack)')
    _, truth = session()
    path = exported('heaptrack', 'memory.heaptrack.gz')
    for cost, key in (('allocations', 'allocs'), ('peak', 'peak_bytes'), ('leaked', 'live_bytes')):
        stacks = sessions.path('stacks.txt')
        text = f.run('heaptrack_print', '-f', path, '-F', stacks, '--flamegraph-cost-type', cost)
        text = text.decode(errors='replace')
        got = {}
        with open(stacks, encoding='utf-8') as lines:
            for line in lines:
                stack, amount = line.rsplit(' ', 1)
                leaf = stack.rstrip(';').split(';')[-1].removesuffix(' (app.rs)')
                if int(amount):
                    got[leaf] = got.get(leaf, 0) + int(amount)
        want = {n: truth[n][key] for n in functions(truth) if truth[n][key]}
        assert got == want, (cost, got, want, text[:500])
    calls = re.search(r'calls to allocation functions: (\d+)', text)
    assert calls and int(calls[1]) == truth['allocs'], text[-800:]
    report = json.loads(f.assay('report', '--format', 'json', '--measure', 'churn', session()[0]))
    temporary = re.search(r'temporary (?:memory )?allocations: (\d+)', text)
    # churn that was there at the peak cannot go at once
    assert temporary and 0.9 * report['amount'] < int(temporary[1]) <= report['amount'], (
        text[-300:], report['amount'])


def pprof():
    go = f.which('go')
    if not go:
        raise f.Skip('no go tool pprof (Debian: golang-1.19-go)')
    _, truth = session()
    path = exported('pprof', 'memory.pb.gz')
    for index, key, unit in (('alloc_objects', 'allocs', 'count'), ('alloc_space', 'bytes', 'B'),
                             ('inuse_objects', 'live_blocks', 'count'),
                             ('inuse_space', 'live_bytes', 'B'), ('peak_space', 'peak_bytes', 'B')):
        text = f.run(go, 'tool', 'pprof', '-top', f'-sample_index={index}', f'-unit={unit}',
                     '-nodefraction=0', '-edgefraction=0', path,
                     env=os.environ | {'HOME': sessions.folder.name}).decode(errors='replace')
        for name in functions(truth):
            row = re.search(rf'^\s*(\d+)(?:B)?\s.*\s{name}(?: \(.*\))?$', text, re.M)
            assert row and int(row[1]) == truth[name][key], (index, name, text, truth[name])
    with gzip.open(path) as raw:
        assert b'peak_space' in raw.read()


tests = [('valgrind\'s DHAT viewer adds up what the program counted', dhat),
         ('heaptrack_print tells calls, peak and what is left per function', heaptrack),
         ('go tool pprof tells objects and bytes, allocated, in use and at the peak', pprof)]
if __name__ == '__main__':
    sys.exit(f.tap(tests))
