#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""`assay export --to pprof` judged by `go tool pprof`: it reads it, its figures are ours."""
import gzip
import os
import re
import sys
import figures as f

go = f.which('go')
if not go:
    f.skip_all('no go tool pprof (Debian: golang-1.19-go)')
sessions = f.Sessions()
ROW = re.compile(r'^\s*(\S+)\s+\S+%\s+\S+%\s+(\S+)\s+\S+%\s{1,2}(.*?)(?: \((?:partial-)?inline\))?$')


def pprof(session, *options, export=()):
    path = session + '.pb.gz'
    with open(path, 'wb') as out:
        out.write(f.export(session, 'pprof', *export))
    return f.run(go, 'tool', 'pprof', *options, path,
                 env=os.environ | {'HOME': sessions.folder.name}).decode(errors='replace')


def top(session, index, unit, export=()):
    text = pprof(session, '-top', f'-sample_index={index}', f'-unit={unit}', '-nodecount=1000000',
                 '-nodefraction=0', '-edgefraction=0', export=export)
    found = {}
    for line in text.split('flat  flat%')[1].split('\n')[1:]:
        if line.strip():
            m = ROW.match(line)
            assert m, repr(line)
            assert m[3] not in found, f'{m[3]!r} twice'
            found[m[3]] = tuple(int(float(v.removesuffix('ns'))) for v in (m[1], m[2]))
    return found


def same(make, *options):
    session = make()
    ours = f.Export(session, *options).figures(f.full_name)
    export = ('--full-names', *options)
    theirs = top(session, 'samples', 'count', export)
    lost = theirs.pop('[lost]', None)
    report = f.rows(session, *options)
    told = report['trust']['lost'] if report['kept'] == 1 else 0
    assert (lost or (0, 0)) == (told, told), (lost, told)
    bad = f.differences(ours, theirs)
    assert not bad, bad


def same_time(make):
    """CPU time, as far as pprof prints it: it rounds nanoseconds to floats."""
    session = make()
    ours = f.Export(session).figures(f.full_name, 'weight')
    theirs = top(session, 'cpu', 'ns', ('--full-names',))
    for name, (own, total) in ours.items():
        for a, b in ((own, theirs[name][0]), (total, theirs[name][1])):
            assert abs(a - b) <= 1 + a * 1e-3, (name, a, b)


def brief():
    """With brief names pprof joins what we call the same."""
    session = sessions.rust()
    ours = f.Export(session).figures(lambda e, i: e.functions[i]['name'])
    bad = f.differences(ours, top(session, 'samples', 'count'))
    assert not bad, bad


def mappings():
    session = sessions.rust()
    raw = pprof(session, '-raw')
    maps = re.findall(r'^(\d+): 0x([0-9a-f]+)/0x([0-9a-f]+)/0x([0-9a-f]+) (\S+) (\S*) ?(.*)$',
                      raw.split('\nMappings\n')[1], re.M)
    assert maps[0][4].endswith('/hot'), maps[0]
    notes = f.run('readelf', '-n', maps[0][4]).decode()
    assert re.search(r'Build ID: ([0-9a-f]+)', notes)[1] == maps[0][5], (maps[0], notes)
    assert '[FN][FL][LN][IN]' in maps[0][6], maps[0]
    by_id = {m[0]: m for m in maps}
    locations = raw.split('\nLocations\n')[1].split('\nMappings\n')[0]
    checked = 0
    for address, mapping in re.findall(r'^ +\d+: 0x([0-9a-f]+) M=(\d+)', locations, re.M):
        m = by_id[mapping]
        assert int(m[1], 16) <= int(address, 16) < int(m[2], 16), (address, m)
        checked += 1
    assert checked > 20, checked
    # The file offset is that of an executable segment of the file.
    loads = re.findall(r'LOAD +0x([0-9a-f]+) .*\n.* R E ', f.run('readelf', '-lW', maps[0][4])
                       .decode().replace(' R E ', '\n  R E ')) or \
        re.findall(r'LOAD +0x([0-9a-f]+).*R E', f.run('readelf', '-lW', maps[0][4]).decode())
    assert any(int(o, 16) // 4096 * 4096 == int(maps[0][3], 16) for o in loads), (maps[0], loads)


def inside():
    """Of several processes too: every location lies in its mapping."""
    raw = pprof(sessions.processes(), '-raw')
    maps = {m[0]: (int(m[1], 16), int(m[2], 16)) for m in re.findall(
        r'^(\d+): 0x([0-9a-f]+)/0x([0-9a-f]+)/', raw.split('\nMappings\n')[1], re.M)}
    assert len(maps) > 5, maps
    locations = re.findall(r'^ +\d+: 0x([0-9a-f]+) M=(\d+)', raw.split('\nLocations\n')[1], re.M)
    bad = [(a, m) for a, m in locations if not maps[m][0] <= int(a, 16) < maps[m][1]]
    assert len(locations) > 100 and not bad, bad


def lines_are_true():
    """addr2line at the address that pprof would look up names the same function."""
    if not f.which('addr2line'):
        raise f.Skip('no addr2line')
    session = sessions.rust()
    raw = pprof(session, '-raw', export=('--full-names',))
    head = re.search(r'^1: 0x([0-9a-f]+)/0x[0-9a-f]+/0x([0-9a-f]+) (\S+)',
                     raw.split('\nMappings\n')[1], re.M)
    start, offset, path = int(head[1], 16), int(head[2], 16), head[3]
    segment = re.search(r'LOAD +0x([0-9a-f]+) 0x([0-9a-f]+) .*R E', f.run(
        'readelf', '-lW', path).decode())
    bias = start - offset + int(segment[1], 16) - int(segment[2], 16)
    checked = 0
    for address, line in re.findall(r'^ +\d+: 0x([0-9a-f]+) M=1 .*?hot\.rs:(\d+)',
                                    raw.split('\nLocations\n')[1], re.M)[:40]:
        said = f.run('addr2line', '-e', path, hex(int(address, 16) - bias)).decode()
        if ':?' in said:  # the table gives code there no line; we name the one before it
            continue
        assert re.search(rf':{line}\b', said), (address, line, said)
        checked += 1
    assert checked > 3, checked


def threads():
    session = sessions.invent('story')
    tags = pprof(session, '-tags', '-sample_index=samples').split(' thread: ')[1]
    own = {r['name']: r['self_samples'] for r in f.rows(session, '--by', 'thread')['rows']}
    for name, samples in own.items():
        share = 100 * samples / 6000
        m = re.search(rf'([\d.]+)%\): {name}\n', tags)
        assert m and abs(float(m[1]) - share) < 0.1, (name, share, tags)


def hostile():
    raw = pprof(sessions.invent('hostile'), '-raw')
    assert '<script>alert(1)</script>' in raw
    for session in (sessions.invent('empty'), sessions.invent('deep')):
        pprof(session, '-raw')


def damaged():
    """That the judge judges: it refuses what is cut or bent."""
    data = gzip.decompress(f.export(sessions.invent('story'), 'pprof'))
    for bad in (data[:len(data) // 2], data.replace(b'\x12', b'\x17', 5)):
        path = sessions.path('bad.pb')
        with open(path, 'wb') as out:
            out.write(bad)
        try:
            f.run(go, 'tool', 'pprof', '-raw', path)
        except AssertionError:
            continue
        raise AssertionError('a damaged file was read')


def comments():
    text = pprof(sessions.invent('trouble'), '-comments')
    for part in ('lost: 1250', 'truncated, no-unwind-info', 'copy-too-short',
                 'command: ./target/release/indexer corpus/', 'note: /usr/lib/libplugin.so'):
        assert part in text, (part, text)


def sizes():
    small, large = (len(gzip.decompress(f.export(sessions.invent('big', n), 'pprof')))
                    for n in (400000, 4000000))
    assert large < small * 1.1, (small, large)


tests = [(f'{name}: self and total of every function', lambda make=make: same(make))
         for name, make in sessions.all()]
tests += [(f'trouble {" ".join(o)}: self and total of every function',
           lambda o=o: same(lambda: sessions.invent('trouble'), *o))
          for o in (('--hide', 'main|grow'), ('--no-inline',), ('--no-kernel', '--focus', 'index'))]
tests += [('CPU time of every function', lambda: same_time(sessions.rust)),
          ('brief names join functions', brief),
          ('mappings: the program first, its build-id, all addresses inside', mappings),
          ('mappings of several processes hold their locations', inside),
          ('addresses lead to the lines the file names', lines_are_true),
          ('threads are labels', threads), ('lost samples and trust are comments', comments),
          ('hostile names, no samples, 20,000 frames are read', hostile),
          ('damaged files are refused', damaged),
          ('the size is that of the distinct stacks', sizes)]
if __name__ == '__main__':
    sys.exit(f.tap(tests))
