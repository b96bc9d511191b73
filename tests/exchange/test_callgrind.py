#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""`assay export --to callgrind` judged by callgrind_annotate: it reads it, its figures are ours."""
import re
import sys
import figures as f

annotate = f.which('callgrind_annotate')
if not annotate:
    f.skip_all('no callgrind_annotate (Debian: valgrind)')
sessions = f.Sessions()
ROW = re.compile(r'^ *([\d,]+) \( ?[\d.]+%\) +([\d,]+) \( ?[\d.]+%\)  (.*?)(?: \[(\[?[^\[\]]*\]?)\])?$')


def read(session, *options, export=()):
    """{file:function: (samples, weight)} and the program's totals."""
    path = session + '.callgrind'
    with open(path, 'wb') as out:
        out.write(f.export(session, 'callgrind', *export))
    # elsewhere: it takes the current folder's name from some of the names
    text = f.run(annotate, '--threshold=100', '--auto=no', *options, path, cwd='/').decode(errors='replace')
    found, total = {}, None
    for line in text.split('\n'):
        m = ROW.match(line)
        if not m:
            continue
        amounts = tuple(int(v.replace(',', '')) for v in (m[1], m[2]))
        if m[3] == 'PROGRAM TOTALS':
            total = amounts
        else:
            assert m[3] not in found, f'{m[3]!r} twice'
            found[m[3]] = amounts
    return found, total


def key(e, function):
    """As callgrind_annotate knows a function."""
    return f'{e.file_of(function) or "???"}:{e.functions[function]["full_name"]}'


def our_figures(session, options, count):
    e = f.Export(session, *options)
    return e, {('???:[no frames]' if k == '[no frames]' else k): v
               for k, v in e.figures(key, count).items()}


def same_total(make, *options):
    session = make()
    theirs, all_of = read(session, '--inclusive=yes', export=('--full-names', *options))
    for at, count in ((0, 'samples'), (1, 'weight')):
        e, ours = our_figures(session, options, count)
        assert all_of[at] == e.d['kept_' + count], (all_of, count)
        wanted = {k: v[1] for k, v in ours.items()}
        got = {k: theirs.get(k, (0, 0))[at] for k in wanted}
        bad = f.differences(wanted, got)
        assert not bad, f'{count}: {bad}'
    assert theirs['???:[all]'][0] == all_of[0]


def same_self(make, *options):
    """Lines of a function in another file (macros, included code) stand under that file there."""
    session = make()
    theirs, all_of = read(session, export=('--full-names', *options))
    e, _ = our_figures(session, options, 'samples')
    names = {k for k in theirs if k != '???:[all]'}
    assert all_of[0] == e.d['kept_samples']
    seen = sum(theirs[k][0] for k in names)
    assert seen == all_of[0], (seen, all_of)
    wanted, got = {}, {}
    for k, (own, _) in e.figures(f.full_name).items():
        if own:
            wanted[k] = own
    by_length = sorted(wanted, key=len, reverse=True)
    for k in names:
        name = next((n for n in by_length if k.endswith(':' + n)), k)
        got[name] = got.get(name, 0) + theirs[k][0]
    bad = f.differences(wanted, got)
    assert not bad, bad


def lines():
    """The lines of the program's own file carry what the report says they do."""
    session = sessions.rust()
    report = f.rows(session, '--by', 'line')['rows']
    wanted = {}
    for r in report:
        if r['file'] and r['file'].endswith('hot.rs') and r['self_samples']:
            wanted[r['line']] = wanted.get(r['line'], 0) + r['self_samples']
    got, file, names, skip = {}, None, {}, False
    for line in f.export(session, 'callgrind').decode().split('\n'):
        m = re.match(r'(?:fl|fi|fe|cfi)=\((\d+)\)(?: (.*))?$', line)
        if m:
            names.setdefault(m[1], m[2])
            if not line.startswith('cfi'):
                file = names[m[1]]
        elif line.startswith('calls='):
            skip = True
        elif re.match(r'\d+ \d+ \d+$', line):
            number, samples, _ = map(int, line.split())
            if not skip and samples and file.endswith('hot.rs'):
                got[number] = got.get(number, 0) + samples
            skip = False
    assert wanted, 'no lines'
    bad = f.differences(wanted, got)
    assert not bad, bad


def hostile():
    theirs, _ = read(sessions.invent('hostile'))
    assert any(k.endswith(':<script>alert(1)</script>') for k in theirs), theirs
    assert any(r'a,b;c "quoted"\x0d\x0anew line' in k for k in theirs), theirs
    assert len([k for k in theirs if k != '???:[all]']) == 8, theirs
    text = f.export(sessions.invent('hostile'), 'callgrind').decode('utf-8', errors='strict')
    assert not re.search(r'[\x00-\x09\x0b-\x1f\x7f]', text)


def sizes():
    small, large = (len(f.export(sessions.invent('big', n), 'callgrind'))
                    for n in (400000, 4000000))
    assert large < small * 1.25, (small, large)  # a digit more on every line


tests = []
for name, make in sessions.all():
    tests += [(f'{name}: total of every function', lambda make=make: same_total(make)),
              (f'{name}: self of every function', lambda make=make: same_self(make))]
for o in (('--hide', 'main|grow'), ('--no-inline',), ('--no-kernel', '--focus', 'index')):
    tests += [(f'trouble {" ".join(o)}: total of every function',
               lambda o=o: same_total(lambda: sessions.invent('trouble'), *o))]
tests += [('lines carry what they cost', lines),
          ('hostile names stay on their lines', hostile),
          ('no samples', lambda: f.export(sessions.invent('empty'), 'callgrind')),
          ('the size is that of the distinct stacks', sizes)]
if __name__ == '__main__':
    sys.exit(f.tap(tests))
