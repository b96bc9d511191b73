#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""`assay export --to firefox` judged by profiler-cli, the Firefox Profiler's own loader: it brings
our version up to its own, and its figures are ours to the nanosecond."""
import collections
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
import figures as f
import readers

PACKAGE = '@firefox-devtools/profiler-cli'
readers.need(PACKAGE, node=20)
sessions = f.Sessions()
environment = os.environ | {'HOME': sessions.folder.name,
                            'PROFILER_CLI_SESSION_DIR': sessions.path('profiler-cli')}
CLI = readers.module(PACKAGE + '/dist/profiler-cli.js')


def cli(*words):
    return f.run('node', CLI, *words, env=environment).decode(errors='replace')


LOADING_SECONDS = 60


class Loaded:
    """A profile in the loader's daemon, a child of ours that ends with the block. (The loader's own
    `load` starts it detached and gives up on it after half a second. Asking it while it starts
    makes the asker take its session for a dead one and remove it: its log tells when it is ready.)"""

    def __init__(self, path):
        self.path = path
        self.name = f'assay-{os.getpid()}-{abs(hash(path)) % 10**8}'
        self.log = os.path.join(environment['PROFILER_CLI_SESSION_DIR'], self.name + '.log')

    def said(self):
        try:
            with open(self.log, encoding='utf-8', errors='replace') as log:
                return log.read()
        except FileNotFoundError:
            return ''

    def __enter__(self):
        if os.path.exists(self.log):
            os.unlink(self.log)
        self.daemon = subprocess.Popen(
            ['node', CLI, '--daemon', self.path, '--session', self.name], env=environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + LOADING_SECONDS
        while 'Profile loaded successfully' not in self.said():
            if self.daemon.poll() is not None or time.monotonic() > until or \
                    '[ERROR]' in self.said():
                self.__exit__()
                raise AssertionError(f'not loaded: {self.said()[-2000:]}')
            time.sleep(0.02)
        return self

    def __exit__(self, *_):
        self.daemon.terminate()
        self.daemon.wait(10)

    def ask(self, *words):
        return json.loads(cli(*words, '--json', '--session', self.name))

    def functions(self):
        """{library!name: (self, total)} in ns over all threads, by the loader's call trees."""
        handles = [t['threadHandle'] for t in self.ask('thread', 'list', '--limit', '0')['threads']]
        sums = collections.defaultdict(lambda: [0, 0])

        def of(handle):
            answer = self.ask('thread', 'functions', '--thread', handle, '--limit', '0',
                              '--include-idle')
            assert answer['weightType'] == 'tracing-ms'
            return answer['functions']

        with ThreadPoolExecutor(2) as pool:
            for functions in pool.map(of, handles):
                for row in functions:
                    own = sums[row['nameWithLibrary']]
                    own[0] += round(row['selfSamples'] * 1e6)
                    own[1] += round(row['totalSamples'] * 1e6)
        return {k: tuple(v) for k, v in sums.items()}


def name_in_library(export, function):
    """As the loader calls it: the kernel and std may both have a futex_wake."""
    row = export.functions[function]
    module = row['module']
    library = export.d['modules'][module]['name'] + '!' if module >= 0 else ''
    if library == row['full_name'] + '!':
        library = ''
    return library + row['full_name']


def load(session, *options):
    return Loaded(readers.exported(sessions, session, 'firefox', '--full-names', *options))


def same(make, *options):
    session = make()
    ours = f.Export(session, *options).figures(name_in_library, 'weight')
    with load(session, *options) as profile:
        bad = f.differences(ours, profile.functions())
    assert not bad, bad


def memory():
    """Native allocations and what is retained of them, per function; the memory track."""
    path = sessions.path('memory.assay')
    maker = os.path.join(os.path.dirname(f.MAKE_SESSION), 'make-heap-session')
    truth = json.loads(f.run(maker, path, '20000'))
    with load(path) as profile:
        for strategy, key in (('native-allocations', 'bytes'),
                              ('native-retained-allocations', 'peak_bytes')):
            cli('strategy', strategy, '--session', profile.name)
            own = collections.Counter()
            for thread in profile.ask('thread', 'list', '--limit', '0')['threads']:
                cli('strategy', strategy, '--session', profile.name)
                for row in profile.ask('thread', 'functions', '--thread', thread['threadHandle'],
                                       '--limit', '0', '--include-idle')['functions']:
                    own[row['nameWithLibrary'].split('!')[-1]] += round(row['selfSamples'])
            for name in (n for n in truth if '::' in n):
                assert own[name] == truth[name][key], (strategy, name, own, truth[name])
        counters = cli('counter', 'list', '--session', profile.name)
        assert '(Memory)' in counters and 'range in the graph' in counters, counters


def threads():
    with load(sessions.invent('family')) as profile:
        found = {(t['pid'], t['processName'], t['tid'], t['name']): t['cpuMs']
                 for t in profile.ask('thread', 'list')['threads']}
        report = f.rows(sessions.invent('family'), '--by', 'thread')
        cpu = f.Export(sessions.invent('family'))
        assert report['kept'] == 1
    assert set(found) == {('4242', 'indexer', 4242, 'indexer'), ('4242', 'indexer', 4243, 'worker-1'),
                          ('300', 'cc', 300, 'cc'), ('300.1', 'ld', 300, 'cc'),
                          ('300.1', 'ld', '300.1', '[unnamed]')}, found
    # the loader does not count a thread's first sample: nothing came before it
    assert 0.98 < sum(found.values()) * 1e6 / sum(cpu.d['samples']['weight']) <= 1


def categories():
    with load(sessions.invent('story')) as profile:
        text = cli('thread', 'samples', '--thread', 't-0', '--session', profile.name)
    for line in ('Libraries ', 'Program ', 'Standard library ', 'Allocator '):
        assert line in text.split('Top Functions')[0], text


def losses():
    with load(sessions.invent('family')) as profile:
        text = cli('thread', 'markers', '--thread', 't-0', '--session', profile.name)
        assert 'samples lost' in text and '1 markers' in text, text
    with load(sessions.invent('story')) as profile:
        assert '0 markers' in cli('thread', 'markers', '--thread', 't-0', '--session', profile.name)


def meta():
    with load(sessions.invent('story')) as profile:
        text = cli('profile', 'meta', '--session', profile.name)
    assert 'Symbolicated: yes' in text and 'Imported from: assay' in text, text


def too_new_is_refused():
    """The judge must be able to say no."""
    path = readers.exported(sessions, sessions.invent('story'), 'firefox')
    with open(path, encoding='utf-8') as one:
        text = one.read()
    bad = text.replace('"preprocessedProfileVersion":70', '"preprocessedProfileVersion":7000')
    assert bad != text
    try:
        with Loaded(readers.write(path + '.bad', bad.encode())):
            pass
    except AssertionError:
        return
    raise AssertionError('version 7000 was loaded')


compared = sessions.all() + [('family', lambda: sessions.invent('family')),
                             ('hostile', lambda: sessions.invent('hostile'))]
sys.exit(f.tap(
    [(f'CPU time per function is ours: {name}', lambda m=make: same(m))
     for name, make in compared] +
    [('... without the kernel', lambda: same(lambda: sessions.invent('family'), '--no-kernel')),
     ('... without inlined functions', lambda: same(lambda: sessions.invent('story'), '--no-inline')),
     ('threads and processes, two of one number', threads),
     ('categories are named', categories),
     ('losses are markers', losses),
     ('memory: native allocations, what is retained, the memory track', memory),
     ('it is symbolicated and says where it comes from', meta),
     ('the loader refuses a version from the future', too_new_is_refused)]))
