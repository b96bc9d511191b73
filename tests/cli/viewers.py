#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Adds up what a viewer would show, and compares it with a report of the same session.

usage: viewers.py firefox|speedscope|chrome EXPORT REPORT.json

Reads the export as its format's documentation says (an independent second reading: the viewers
themselves are asked by tests/exchange), checks its structure, and holds self and total of every
function against the report's.
"""
import json
import sys
from collections import defaultdict

NO_FRAMES = '[no frames]'
MARKERS = ('[truncated: ', '[no user stack]')


def add_path(self_, total, path, weight):
    """path: (identity, name) outermost first; recursion counts once in total."""
    self_[path[-1][1]] += weight
    for identity in set(path):
        total[identity[1]] += weight


def column_lengths(table, skip=('length',)):
    for name, column in table.items():
        if name not in skip and isinstance(column, list):
            assert len(column) == table['length'], (name, len(column), table['length'])


def firefox(doc):
    self_, total = defaultdict(float), defaultdict(float)
    shared, meta = doc['shared'], doc['meta']
    strings = shared['stringArray']
    assert len(set(strings)) == len(strings)
    assert meta['preprocessedProfileVersion'] == 70 and meta['symbolicated'] is True
    grey = [c for c in meta['categories'] if c['color'] == 'grey']
    assert len(grey) == 1 and all(c['subcategories'][0] == 'Other' for c in meta['categories'])
    for name in ('stackTable', 'frameTable', 'funcTable', 'resourceTable', 'sources',
                 'nativeSymbols', 'sourceLocationTable'):
        column_lengths(shared[name])
    stacks, frames, funcs = shared['stackTable'], shared['frameTable'], shared['funcTable']
    for i in range(frames['length']):
        assert frames['func'][i] < funcs['length'] and frames['lib'][i] < len(doc['libs'])
        assert 0 <= frames['category'][i] < len(meta['categories'])
        assert -1 <= frames['address'][i] < 2**53
        symbol = frames['nativeSymbol'][i]
        if symbol is not None:
            symbols = shared['nativeSymbols']
            start, size = symbols['address'][symbol], symbols['functionSize'][symbol]
            assert symbols['libIndex'][symbol] == frames['lib'][i]
            assert start <= frames['address'][i] < start + size
    for r in funcs['resource']:
        assert -1 <= r < shared['resourceTable']['length']
    for lib in doc['libs']:
        assert len(lib['breakpadId']) == 33, lib
    paths = []
    for i in range(stacks['length']):
        up = stacks['prefixOffset'][i]
        frame = stacks['frame'][i]
        f = frames['func'][frame]
        paths.append((paths[i - up] if up else ()) + ((f, strings[funcs['name'][f]]),))
        depth = frames['inlineDepth'][frame]
        if depth:  # an inlined frame stands on the frame it is inlined into
            caller = stacks['frame'][i - up]
            assert frames['inlineDepth'][caller] == depth - 1
            assert frames['address'][caller] == frames['address'][frame]
            assert frames['lib'][caller] == frames['lib'][frame]
    for thread in doc['threads']:
        s = thread['samples']
        column_lengths(s)
        column_lengths(thread['markers'])
        assert isinstance(thread['pid'], str)
        assert s['time'] == sorted(s['time'])
        for stack, weight, delta in zip(s['stack'], s['weight'], s['threadCPUDelta']):
            assert round(weight * 1e6) == delta
            add_path(self_, total, paths[stack], delta)
    assert len({(t['pid'], t['tid']) for t in doc['threads']}) == len(doc['threads'])
    return self_, total


def speedscope(doc):
    self_, total = defaultdict(float), defaultdict(float)
    frames = doc['shared']['frames']
    assert 0 <= doc['activeProfileIndex'] < len(doc['profiles'])
    for p in doc['profiles']:
        assert p['type'] == 'sampled' and p['unit'] == 'nanoseconds'
        assert len(p['samples']) == len(p['weights'])
        assert p['endValue'] - p['startValue'] == sum(p['weights'])
        for stack, weight in zip(p['samples'], p['weights']):
            add_path(self_, total, tuple((i, frames[i]['name']) for i in stack), weight)
    return self_, total


def chrome(doc):
    self_, total = defaultdict(float), defaultdict(float)
    threads = defaultdict(list)
    named = set()
    for e in doc['traceEvents']:
        assert e['cat'] and e['ph'] in 'XMi', e
        if e['ph'] == 'X':
            threads[e['pid'], e['tid']].append(e)
        elif e['ph'] == 'M':
            named.add((e['name'], e['pid'], e['tid']))
    for (pid, tid), events in threads.items():
        assert ('thread_name', pid, tid) in named
        assert any(n == 'process_name' and p == pid for n, p, _ in named)
        # in ns, whole numbers; of events with one start and end the first is the outer one
        events = [(round(e['ts'] * 1000), round((e['ts'] + e['dur']) * 1000),
                   round(e['tdur'] * 1000), e['name'], i) for i, e in enumerate(events)]
        events.sort(key=lambda e: (e[0], -e[1], e[4]))
        open_ = []
        for start, end, cpu, name, _ in events:
            while open_ and open_[-1][1] <= start:
                open_.pop()
            if open_:
                assert end <= open_[-1][1], ('not nested', name, open_[-1])
                self_[open_[-1][3]] -= cpu
            self_[name] += cpu
            if name not in (o[3] for o in open_):
                total[name] += cpu
            open_.append((start, end, cpu, name))
    return self_, total


def main():
    kind, export, report = sys.argv[1:]
    with open(export, encoding='utf-8') as f:
        doc = json.load(f)
    with open(report, encoding='utf-8') as f:
        report = json.load(f)
    self_, total = {'firefox': firefox, 'speedscope': speedscope, 'chrome': chrome}[kind](doc)
    all_ = sum(self_.values())
    rows = defaultdict(lambda: [0.0, 0.0])
    count = defaultdict(int)
    for r in report['rows']:  # different functions of one name are one here
        rows[r['name']][0] += r['self']
        rows[r['name']][1] += r['total']
        count[r['name']] += 1
    # a report lists a marker only where it stands alone
    names = {n for n in total if total[n] and (n in rows or not n.startswith(MARKERS))}
    names -= {NO_FRAMES}
    assert names == {n for n in rows if rows[n][1]}, names ^ set(rows)
    for name in names:
        own = self_[name] / all_, total[name] / all_
        assert abs(own[0] - rows[name][0]) < 2e-6, (name, 'self', own, rows[name])
        if kind == 'chrome' and count[name] > 1:
            continue  # knows functions by their names: one below another counts once
        assert abs(own[1] - rows[name][1]) < 2e-6, (name, 'total', own, rows[name])
    print(f'{len(names)} functions agree, {all_ / 1e6:.6f} ms')


main()
