#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""`assay export --to speedscope` judged by the format's schema and by the packaged page in
Chromium: what its importer made of a file, written out again, has our figures."""
import os
import sys
import figures as f
import readers

readers.need('speedscope', 'ajv', 'playwright-core')
chromium = os.environ.get('CHROMIUM') or f.which('chromium') or f.which('chromium-browser')
if not chromium:
    f.skip_all('no chromium (Debian: chromium)')
sessions = f.Sessions()
# The page gives up on stacks of many thousand frames: not "deep".
MADE = dict([(n, m) for n, m in sessions.all() if n != 'deep'] +
            [(n, lambda n=n: sessions.invent(n)) for n in ('family', 'hostile', 'empty')])
CASES = [(name, ()) for name in MADE] + [('family', ('--no-kernel',))]
BAD_UNIT = ('story', ('as', 'fortnights'))
answers = {}


def ask_all():
    """One browser for all files; what cannot be made here is left out."""
    files = {}
    for name, options in CASES:
        try:
            files[name, options] = readers.exported(sessions, MADE[name](), 'speedscope',
                                                    '--full-names', *options)
        except f.Skip as why:
            answers[name, options] = why
    with open(files['story', ()], encoding='utf-8') as one:
        text = one.read()
    files[BAD_UNIT] = readers.write(sessions.path('bad.json'), text.replace(
        '"nanoseconds"', '"fortnights"').encode())
    found = readers.node('ask_speedscope.mjs', chromium, *files.values())
    answers.update(zip(files, found))


def answer_of(name, options=()):
    answer = answers[name, options]
    if isinstance(answer, f.Skip):
        raise answer
    return answer


def opened(name, options=()):
    answer = answer_of(name, options)
    assert answer['schema'] is True, answer['schema']
    assert not answer['errors'] and not answer['failed'], answer
    session = os.path.basename(MADE[name]())
    assert answer['title'].startswith(session), answer['title']
    return answer


def same(name, options):
    answer = opened(name, options)
    ours = f.Export(MADE[name](), *options).figures(f.full_name, 'weight')
    bad = f.differences(ours, {k: tuple(v) for k, v in answer['functions'].items()})
    assert not bad, bad


def sandwich():
    # the busiest thread is open: its functions by self, as the page shows them
    rows = opened('story')['sandwich'].split('Symbol Name')[1].split('\n')
    assert [w.strip() for w in rows[1:5]] == [
        '979.94ms (24%)', '979.94ms (24%)', 'memchr::memmem::find::<&str, alloc::string::String>',
        '2.19s (54%)'], rows[:6]


def threads():
    assert opened('family')['profiles'] == ['indexer (4242)', 'indexer worker-1 (4243)',
                                            'cc (300)', 'ld cc (300)', 'ld [unnamed] (300)']


def lost():
    assert '[1250 samples lost]' in opened('trouble')['title']


def judge_says_no():
    assert answer_of(*BAD_UNIT)['schema'] is not True


try:
    ask_all()
except AssertionError as why:
    print(f'1..1\nnot ok 1 the page opens in Chromium\n# {str(why)[:2000]!r}')
    sys.exit(1)
sys.exit(f.tap(
    [(' '.join(['the schema holds, time per function is ours:', name, *options]),
      lambda n=name, o=options: same(n, o)) for name, options in CASES if name != 'empty'] +
    [('the sandwich view shows our figures', sandwich),
     ('a profile per thread, named after it', threads),
     ('losses stand in the title', lost),
     ('a session without samples opens', lambda: opened('empty')),
     ('the schema refuses another unit', judge_says_no)]))
