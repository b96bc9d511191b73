#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""speedscope's importers of callgrind and pprof on what `assay export` writes, in Chromium.

Of callgrind it makes a profile per event; without recursion their sum is ours. Of a pprof location
it takes the physical function alone, so its figures are compared with --no-inline."""
import os
import sys
import figures as f
import readers

readers.need('speedscope', 'ajv', 'playwright-core')
chromium = os.environ.get('CHROMIUM') or f.which('chromium') or f.which('chromium-browser')
if not chromium:
    f.skip_all('no chromium (Debian: chromium)')
# It divides a function's cost among its calls in fractions and rounds the times at which they begin
# and end: now and then (its arithmetic done again: 2 in 152) a frame so ends before it began.
ROUNDING = 'in increasing order of cumulative value'
sessions = f.Sessions()


def ask(session, to, suffix, *options):
    path = readers.write(session + suffix, f.export(session, to, '--full-names', *options))
    [answer] = readers.node('ask_speedscope.mjs', chromium, path)
    if any(ROUNDING in line for line in answer['said']):
        raise f.Skip('its importer of callgrind tripped over its own rounding')
    assert not answer['errors'] and not answer['failed'], answer
    return answer['profiles'], {k: tuple(v) for k, v in answer['functions'].items()}


def callgrind():
    session = sessions.invent('story')
    profiles, theirs = ask(session, 'callgrind', '.callgrind')
    assert [p.split(' -- ')[1] for p in profiles] == ['samples', 'ns'], profiles
    e = f.Export(session)
    samples, weight = e.figures(f.full_name), e.figures(f.full_name, 'weight')
    ours = {k: tuple(a + b for a, b in zip(samples[k], weight[k])) for k in samples}
    ours['[all]'] = (0, e.d['kept_samples'] + e.d['kept_weight'])
    # it multiplies fractions: a ns more or less
    near = {k: ours[k] if k in ours and all(abs(a - b) <= 2 for a, b in zip(ours[k], v)) else v
            for k, v in theirs.items()}
    bad = f.differences(ours, near)
    assert not bad, bad


def callgrind_is_read(make):
    assert len(ask(make(), 'callgrind', '.callgrind')[0]) == 2


def pprof(make):
    session = make()
    _, theirs = ask(session, 'pprof', '.pb.gz', '--no-inline')
    theirs.pop('[lost]', None)
    bad = f.differences(f.Export(session, '--no-inline').figures(f.full_name, 'weight'), theirs)
    assert not bad, bad


tests = [('callgrind story: self and total of every function', callgrind)]
tests += [(f'callgrind {name} is read', lambda make=make: callgrind_is_read(make))
          for name, make in sessions.all() if name != 'deep']
# 20,000 frames in one sample are too many for its importer.
tests += [(f'pprof {name}: self and total of every function', lambda make=make: pprof(make))
          for name, make in sessions.all() if name not in ('deep', 'rustc')]
if __name__ == '__main__':
    sys.exit(f.tap(tests))
