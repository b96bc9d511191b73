#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""`assay export --to json` against `assay report`: self and total of every function, in samples."""
import collections
import json
import sys
import figures as f

sessions = f.Sessions()


def strict(text):
    """Parses as JSON and nothing more: no NaN, no repeated member."""
    def pairs(items):
        names = [k for k, _ in items]
        assert len(names) == len(set(names)), f'a name twice in {names}'
        return dict(items)

    def constant(word):
        raise AssertionError(f'{word} is no JSON')
    return json.loads(text.decode('utf-8', errors='strict'), object_pairs_hook=pairs,
                      parse_constant=constant)


def identity(e, function):
    fn = e.functions[function]
    module = e.d['modules'][fn['module']]['name'] if fn['module'] >= 0 else ''
    file = e.d['files'][fn['file']] if fn['file'] >= 0 else ''
    return fn['full_name'], file, fn['line'], fn['crate'], module, function


def same(make, *options):
    session = make()
    e = f.Export(session, *options)
    ours = collections.Counter(
        (r['full_name'], r['file'] or '', r['line'] or 0, r['crate'] or '', r['module'] or '',
         r['self_samples'], r['total_samples']) for r in f.rows(session, *options)['rows'])
    # A marker is no function: the report has no row for it.
    theirs = collections.Counter(
        k[:5] + v for k, v in e.figures(identity).items()
        if k != '[no frames]' and (e.functions[k[5]]['category'] != 'marker' or v[0]))
    assert ours == theirs, f'{list((ours - theirs).items())[:3]} {list((theirs - ours).items())[:3]}'
    assert ours, 'no functions'
    assert sum(e.d['samples']['samples']) == e.d['kept_samples']
    assert sum(e.d['samples']['weight']) == e.d['kept_weight']


def references(e):
    d = e.d
    for i, parent in enumerate(d['stacks']['parent']):
        assert -1 <= parent < i
    for name, table in (('thread', 'threads'), ('marker', 'functions')):
        assert all(-1 <= v < len(d[table]) for v in d['samples'][name]), name
    assert all(-1 <= v < len(d['stacks']['frame']) for v in d['samples']['stack'])
    assert all(0 <= v < len(d['frames']) for v in d['stacks']['frame'])
    lengths = {len(c) for c in d['samples'].values()}
    assert len(lengths) == 1, lengths
    for frame in d['frames']:
        assert -1 <= frame['module'] < len(d['modules'])
        int(frame['address'], 16)
        for p in frame['chain']:
            assert 0 <= p['function'] < len(d['functions'])
            assert -1 <= p['file'] < len(d['files'])


def hostile():
    session = sessions.invent('hostile')
    strict(f.export(session, 'json'))
    names = {fn['name'] for fn in f.Export(session).functions}
    assert '<script>alert(1)</script>' in names and 'a,b;c "quoted"\r\nnew line' in names
    assert '\x1b[31mred\x07\x01\x7f' in names, names


def sizes():
    """Ten times the samples of the same program: the same stacks, a few more digits."""
    small, large = (len(f.export(sessions.invent('big', n), 'json')) for n in (400000, 4000000))
    assert large < small * 1.1, (small, large)


tests = [(f'{name}: every function as in the report', lambda make=make: same(make))
         for name, make in sessions.all()]
filters = [('--no-inline',), ('--no-kernel',), ('--focus', 'tokenize'), ('--ignore', 'malloc'),
           ('--hide', 'grow|main'), ('--thread', 'worker-1'), ('--time', '1s..2s'),
           ('--module', 'libc')]
tests += [(f'story {" ".join(o)}: every function as in the report',
           lambda o=o: same(lambda: sessions.invent('story'), *o)) for o in filters]
tests += [('trouble --no-kernel --hide: every function as in the report',
           lambda: same(lambda: sessions.invent('trouble'), '--no-kernel', '--hide', 'main')),
          ('what refers to something refers to what is there',
           lambda: references(f.Export(sessions.invent('trouble')))),
          ('hostile names come through as they are, and as strict JSON', hostile),
          ('no samples: strict JSON', lambda: strict(f.export(sessions.invent('empty'), 'json'))),
          ('the size is that of the distinct stacks', sizes)]
if __name__ == '__main__':
    sys.exit(f.tap(tests))
