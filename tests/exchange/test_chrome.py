#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""`assay export --to chrome` judged by the engine of Chrome's DevTools: it builds call trees from
it, whose CPU times per function are ours to the nanosecond."""
import shutil
import sys
import figures as f
import readers

readers.need('@paulirish/trace_engine')
sessions = f.Sessions()


def ask(session, *options):
    return readers.node('ask_chrome.mjs',
                        readers.exported(sessions, session, 'chrome', '--full-names', *options))


def same(make, *options):
    session = make()
    ours = f.Export(session, *options).figures(f.full_name, 'weight')
    answer = ask(session, *options)
    assert answer['generic'] is True
    bad = f.differences(ours, {k: tuple(v) for k, v in answer['functions'].items()})
    if bad:  # what was recorded cannot be recorded again
        shutil.copy(session, readers.FOLDER)
        bad += f'; the session is kept in {readers.FOLDER}'
    assert not bad, bad


def names():
    answer = ask(sessions.invent('family'))
    assert answer['processes'] == [[4242, 'indexer'], [300, 'cc'], [300 + 4194304, 'ld']], answer
    again = 300 + 4194304
    assert [t[1:] for t in answer['threads']] == [
        [4242, 'indexer'], [4243, 'worker-1'], [300, 'cc'], [300, 'cc'], [again, '[unnamed]']], answer


def nothing():
    answer = ask(sessions.invent('empty'))
    assert answer['functions'] == {} and answer['threads'] == []


sessions_compared = [(n, m) for n, m in sessions.all() if n != 'deep'] + [
    ('family', lambda: sessions.invent('family'))]
sys.exit(f.tap(
    [(f'CPU time per function is ours: {name}', lambda m=make: same(m))
     for name, make in sessions_compared] +
    [('... of one thread', lambda: same(lambda: sessions.invent('story'), '--thread', 'worker')),
     ('... without the kernel', lambda: same(lambda: sessions.invent('family'), '--no-kernel')),
     ('processes and threads have their names', names),
     ('a session without samples is a time line without events', nothing)]))
