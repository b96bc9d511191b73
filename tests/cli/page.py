#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Reads a page of `assay view` by its documentation (docs/formats/view.md), not by its maker.

usage: page.py FILE [--base] [EXPRESSION…]

Checks the markup and every column, then prints the value of each expression as JSON, with `m` the
model (m['meta'], m['columns']['samples.time'], …), `text(i)` a string and `page` the markup.
"""
import base64
import gzip
import hashlib
import html.parser
import json
import struct
import sys

# table -> its columns; '?' marks those that may be -1, '!' bytes
TABLES = {
    'functions': 'brief full crate file line module? lang! flags! category!',
    'places': 'function file line column flags!',
    'frames': 'module? addr flags! chain nchain',
    'stacks': 'parent? frame',
    'samples': 'time thread stack? weight cpu end',
    'ticks': 'time cpu taken delivered throttled',
    'losses': 'from to count',
    'trials': 'start end',
}
HEAP_TABLES = {
    'heap': 'thread stack? folded? end domain! allocs bytes live peak churn growth leaked',
    'heapMarks': 'moment row bytes',
    'heapTimes': 'process time live high mapped resident',
}


class Page(html.parser.HTMLParser):
    """Scripts, policy, title, and every element's name."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.scripts, self.policy, self.title, self.tags = [], None, '', []
        self.inside = None
        self.text = text
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append(tag)
        for name, value in attrs.items():
            assert not name.startswith('on'), f'<{tag} {name}>'
            if name in ('src', 'href', 'action', 'srcset', 'data'):
                assert value.startswith(('data:', '#')), f'<{tag} {name}={value}>'
        if tag == 'meta' and attrs.get('http-equiv', '').lower() == 'content-security-policy':
            assert self.policy is None
            self.policy = attrs['content']
        if tag == 'script':
            self.scripts.append((attrs, []))
        self.inside = tag

    def handle_endtag(self, tag):
        self.inside = None

    def same_but_for_the_data(self, other):
        """Whether only the data elements and the title differ."""
        def rest(page):
            text = page.text
            for attrs, parts in page.scripts:
                if attrs.get('type') == 'text/plain':
                    text = text.replace(''.join(parts), '')
            return text.replace(html.escape(page.title), '')
        return rest(self) == rest(read(other)[0])

    def handle_data(self, data):
        if self.inside == 'script':
            self.scripts[-1][1].append(data)
        elif self.inside == 'title':
            self.title += data


def varints(data):
    value = shift = 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value
            value = shift = 0
    assert shift == 0, 'a varint is cut'


def column(area, c, optional):
    data = area[c['at']:c['at'] + c['bytes']]
    assert len(data) == c['bytes'], 'a column leaves the area'
    if c['code'] == 'u8':
        values = list(data)
    elif c['code'] == 'uleb':
        values = [v - (1 if optional else 0) for v in varints(data)]
    elif c['code'] == 'delta':
        values, last = [], 0
        for v in varints(data):
            last += (v >> 1) ^ -(v & 1)
            values.append(last)
    else:
        raise AssertionError(f"unknown code {c['code']}")
    assert len(values) == c['n'], (c, len(values))
    assert all(abs(v) < 2 ** 53 for v in values)
    return values


def container(data):
    assert data[:8] == b'ASVIEW1\n'
    n = struct.unpack_from('<I', data, 8)[0]
    header = json.loads(data[12:12 + n].decode('utf-8'))
    start = (12 + n + 7) // 8 * 8
    assert not any(data[12 + n:start])
    area, columns, covered = data[start:], {}, 0
    names = {'endFunction': ('endFunction', '?')}
    tables = {**TABLES, **(HEAP_TABLES if 'memory' in header['meta'] else {})}
    for table, fields in tables.items():
        for field in fields.split():
            names[f"{table}.{field.rstrip('?!')}"] = (table, field[-1])
    assert set(header['columns']) == set(names), set(header['columns']) ^ set(names)
    for name, c in header['columns'].items():
        columns[name] = column(area, c, names[name][1] == '?')
        assert (c['code'] == 'u8') == (names[name][1] == '!'), name
        covered += c['bytes']
    assert covered == len(area), 'the area has gaps'
    for table in tables:
        assert len({len(v) for k, v in columns.items() if k.startswith(table + '.')}) == 1, table
    header['columns'] = columns
    check(header)
    return header


def within(values, n, least=0):
    assert all(least <= v < n for v in values)


def check(m):
    """Every index points to something."""
    c = m['columns']
    n = {t: len(c[f"{t}.{f.split()[0].rstrip('?!')}"]) for t, f in TABLES.items()}
    for name in ('functions.brief', 'functions.full', 'functions.crate', 'functions.file',
                 'places.file'):
        within(c[name], len(m['strings']))
    assert m['strings'][0] == ''
    within(c['functions.module'], len(m['modules']), -1)
    within(c['frames.module'], len(m['modules']), -1)
    within(c['functions.category'], 10)
    within(c['places.function'], n['functions'])
    for chain, k in zip(c['frames.chain'], c['frames.nchain']):
        assert 1 <= k and chain + k <= n['places']
    within(c['stacks.frame'], n['frames'])
    assert all(-1 <= p < i for i, p in enumerate(c['stacks.parent']))
    within(c['samples.stack'], n['stacks'], -1)
    within(c['samples.thread'], len(m['threads']))
    assert c['samples.time'] == sorted(c['samples.time'])
    within(c['endFunction'], n['functions'], -1)
    if 'memory' in m['meta']:
        within(c['heap.thread'], len(m['threads']))
        within(c['heapMarks.row'], len(c['heap.thread']))
        within(c['heapMarks.moment'], len(m['meta']['memory']['moments']))
        for o in (m['meta']['memory']['leaks'] or {'owners': []})['owners']:
            assert -1 <= o['stack'] < n['stacks'] and 0 <= o['process'] < len(m['processes'])
    for t in m['threads']:
        assert 0 <= t['process'] < len(m['processes'])
    for row in m['meta']['hottest']:
        assert 0 <= row['function'] < n['functions']
        for s in (row['self'], row['total']):
            assert 0 <= s['low'] <= s['value'] <= s['high'] <= 1
    for l in m['listings']:
        assert 0 <= l['function'] < n['functions']
        within(l['files'], len(m['sources']))
        within([p['source'] for p in l['places']], len(m['sources']), -1)
        for x in l['insns']:
            assert x['place'] + x['nplaces'] <= len(l['places'])


def read(path, base=False):
    with open(path, encoding='utf-8', newline='') as f:
        text = f.read()
    page = Page(text)
    code = [(a, ''.join(t)) for a, t in page.scripts if a.get('type') != 'text/plain']
    data = {a['id']: ''.join(t) for a, t in page.scripts if a.get('type') == 'text/plain'}
    assert len(code) == 1, f'{len(code)} scripts'
    digest = base64.b64encode(hashlib.sha256(code[0][1].encode()).digest()).decode()
    assert f"'sha256-{digest}'" in page.policy, page.policy
    assert "default-src 'none'" in page.policy and 'unsafe-eval' not in page.policy
    assert set(data) <= {'profile', 'profile-base'} and 'profile' in data
    models = {k: container(gzip.decompress(base64.b64decode(v, validate=True)))
              for k, v in data.items()}
    return page, models['profile-base' if base else 'profile']


if __name__ == '__main__':
    arguments = [a for a in sys.argv[1:] if a != '--base']
    page, m = read(arguments[0], '--base' in sys.argv)
    c = m['columns']

    def text(i):
        return m['strings'][i]

    for expression in arguments[1:]:
        print(json.dumps(eval(expression), ensure_ascii=False))
