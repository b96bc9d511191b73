#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""`assay export --to pprof` judged by pprof-format (DataDog's reader, from npm): references hold,
figures are ours, names come through to the byte."""
import sys
import figures as f
import readers

readers.need('pprof-format')
sessions = f.Sessions()


def ask(session, *options):
    path = readers.write(session + '.pb.gz', f.export(session, 'pprof', *options))
    answer = readers.node('ask_pprof.mjs', path)
    assert not answer['problems'], answer['problems']
    assert answer['types'] == ['samples/count', 'cpu/nanoseconds'], answer['types']
    return answer


def same(make, *options):
    session = make()
    ours = f.Export(session, *options).figures(f.full_name)
    theirs = {k: tuple(v) for k, v in
              ask(session, '--full-names', *options)['functions'].items()}
    lost = theirs.pop('[lost]', (0, 0))
    assert lost[0] == (f.rows(session)['trust']['lost'] if not options else lost[0])
    bad = f.differences(ours, theirs)
    assert not bad, bad


def linkage():
    """Both names of a function, where they differ."""
    session = sessions.rust()
    systems = ask(session, '--full-names')['systems']
    checked = 0
    for fn in f.Export(session).functions:
        if fn['linkage_name'] != fn['full_name']:
            assert systems[fn['full_name']], fn
            checked += 1
    assert checked > 10, checked


def labels():
    found = ask(sessions.invent('story'))['labels']
    assert sorted(found) == ['pid=4242', 'process=indexer', 'thread=indexer', 'thread=worker-1',
                             'tid=4242', 'tid=4243'], found


def nothing():
    assert ask(sessions.invent('empty'))['functions'] == {}


tests = [(f'{name}: self and total of every function', lambda make=make: same(make))
         for name, make in sessions.all() + [('hostile', lambda: sessions.invent('hostile'))]]
tests += [('trouble filtered', lambda: same(lambda: sessions.invent('trouble'), '--focus', 'index',
                                            '--hide', 'main', '--thread', 'worker-1')),
          ('linkage names', linkage), ('labels', labels), ('no samples', nothing)]
if __name__ == '__main__':
    sys.exit(f.tap(tests))
