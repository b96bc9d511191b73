# SPDX-License-Identifier: MIT OR Apache-2.0
"""Our figures, to hold another program's against, and TAP to say how that went.

rows(session, *options)		what `assay report` says, per function
figures(session, key, *options)	{key(function): (self, total)} in samples, added up here from the
				stacks of `assay export --to json`: functions that share a key are one,
				as in programs that know functions by their name

ASSAY is the program (default: ../../build/src/cli/assay), MAKE_SESSION the maker of sessions.
"""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ASSAY = os.path.abspath(os.environ.get('ASSAY') or
                        os.path.join(HERE, '../../build/src/cli/assay'))
MAKE_SESSION = os.environ.get('MAKE_SESSION') or os.path.join(
    os.path.dirname(ASSAY), '../../tests/cli/make-session')


def run(*words, **how):
    """Standard output of a program that must succeed."""
    done = subprocess.run([str(w) for w in words], capture_output=True, check=False, **how)
    if done.returncode:
        raise AssertionError(f'{words} ended with {done.returncode}: '
                             f'{done.stderr.decode(errors="replace")[:2000]}')
    return done.stdout


def assay(*words):
    return run(ASSAY, *words)


def rows(session, *options):
    return json.loads(assay('report', '--full-names', '--format', 'json', *options, session))


def export(session, to, *options):
    return assay('export', '--to', to, '-o', '-', *options, session)


class Export:
    """An export as JSON, with its stacks walked."""

    def __init__(self, session, *options):
        self.d = json.loads(export(session, 'json', *options))
        self.functions = self.d['functions']
        self.file = [f['file'] for f in self.functions]
        for frame in self.d['frames']:
            for place in frame['chain']:
                if self.file[place['function']] < 0:
                    self.file[place['function']] = place['file']

    def file_of(self, function):
        at = self.file[function]
        return self.d['files'][at] if at >= 0 else ''

    def stacks(self):
        """(sample row, functions from the innermost outwards) per sample row."""
        parents, frames = self.d['stacks']['parent'], self.d['stacks']['frame']
        chains = [[p['function'] for p in f['chain']] for f in self.d['frames']]
        samples = self.d['samples']
        for row, at in enumerate(samples['stack']):
            path = []
            while at >= 0:
                path += chains[frames[at]]
                at = parents[at]
            if samples['marker'][row] >= 0:
                path.append(samples['marker'][row])
            yield row, path

    def figures(self, key, count='samples'):
        amount = self.d['samples'][count]
        own, total = {}, {}
        for row, path in self.stacks():
            keys = [key(self, f) for f in path] or ['[no frames]']
            own[keys[0]] = own.get(keys[0], 0) + amount[row]
            for k in set(keys):
                total[k] = total.get(k, 0) + amount[row]
        return {k: (own.get(k, 0), total[k]) for k in total}


def full_name(e, function):
    return e.functions[function]['full_name']


def differences(ours, theirs, most=5):
    """Text about what differs; '' when nothing does."""
    bad = [(k, ours.get(k), theirs.get(k)) for k in sorted(set(ours) | set(theirs), key=repr)
           if ours.get(k) != theirs.get(k)]
    text = [f'{k!r}: ours {a}, theirs {b}' for k, a, b in bad[:most]]
    return f'{len(bad)} of {len(ours)} differ: ' + '; '.join(text) if bad else ''


RUST = r"""
use std::collections::BTreeMap;
#[inline(always)] fn mix(a: u64) -> u64 { (a ^ (a >> 31)).wrapping_mul(0x9e3779b97f4a7c15) }
#[inline(never)] fn odd(n: u64) -> u64 { if n == 0 { 1 } else { mix(even(n - 1)) } }
#[inline(never)] fn even(n: u64) -> u64 { if n == 0 { 2 } else { mix(odd(n - 1)).rotate_left(3) } }
#[inline(never)] fn fib(n: u64) -> u64 { if n < 2 { mix(n) } else { fib(n - 1) + fib(n - 2) } }
fn fill<T: Ord + Clone>(make: impl Fn(u64) -> T) -> usize {
    let mut m = BTreeMap::new();
    for i in 0..900_000 { *m.entry(make(mix(i) % 5_000)).or_insert(0u64) += i; }
    m.len()
}
fn main() {
    let t = std::thread::Builder::new().name("worker".into())
        .spawn(|| fill(|i| format!("key {i}")) + fill(|i| i)).unwrap();
    let mut s = fib(37);
    for i in 0..12_000 { s ^= odd(2_000 + i % 7); }
    println!("{} {}", s, t.join().unwrap());
}
"""


class Skip(Exception):
    pass


class Sessions:
    """Sessions to try things on: invented ones, and recordings where recording is possible."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix='assay-exchange.')
        self.made = {}

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def invent(self, kind, *more):
        name = '-'.join([kind, *map(str, more)]) + '.assay'
        if name not in self.made:
            run(MAKE_SESSION, kind, self.path(name), *more)
            self.made[name] = True
        return self.path(name)

    def record(self, name, *command):
        to = self.path(name + '.assay')
        if not os.path.exists(to):
            done = subprocess.run([ASSAY, 'record', '-q', '-o', to, '--', *command],
                                  capture_output=True, check=False)
            if not os.path.exists(to):
                raise Skip('nothing can be recorded here: ' +
                           done.stderr.decode(errors='replace').split('\n')[0])
        return to

    def rust(self):
        source, program = self.path('hot.rs'), self.path('hot')
        if not os.path.exists(program):
            with open(source, 'w', encoding='utf-8') as f:
                f.write(RUST)
            done = subprocess.run(['rustc', '-O', '-g', '-o', program, source],
                                  capture_output=True, check=False) if which('rustc') else None
            if not os.path.exists(program):
                raise Skip('no rustc' if done is None else 'rustc cannot build here')
        return self.record('hot', program)

    def processes(self):
        """Several programs, one of them in Python, kernel work, short-lived children."""
        return self.record('processes', 'sh', '-c', """
            python3 -c 'import json
for i in range(60): json.loads(json.dumps([{"a": k, "b": [str(k)] * 5} for k in range(800)]))' &
            for i in 1 2 3 4 5 6; do head -c 4000000 /dev/urandom | sort -a 2>/dev/null |
                gzip -1 >/dev/null; head -c 6000000 /dev/urandom | gzip >/dev/null; done
            wait""")

    def rustc(self):
        self.rust()
        return self.record('rustc', 'rustc', '-O', '-g', '-o', self.path('hot2'),
                           self.path('hot.rs'))

    def all(self):
        """(name, maker) of the sessions whose figures are compared."""
        return [('story', lambda: self.invent('story')), ('trouble', lambda: self.invent('trouble')),
                ('deep', lambda: self.invent('deep')), ('rust', self.rust),
                ('processes', self.processes), ('rustc', self.rustc)]


def which(program):
    for folder in os.environ.get('PATH', '').split(':') + ['/usr/lib/go-1.19/bin']:
        if os.access(os.path.join(folder, program), os.X_OK):
            return os.path.join(folder, program)
    return None


def tap(tests):
    """Runs (name, function) pairs; a Skip raised is a skip. The script's exit status."""
    failed = 0
    print(f'1..{len(tests)}', flush=True)
    for number, (name, test) in enumerate(tests, 1):
        try:
            test()
            print(f'ok {number} {name}', flush=True)
        except Skip as why:
            print(f'ok {number} {name} # SKIP {why}', flush=True)
        except Exception as why:  # pylint: disable=broad-except
            failed += 1
            print(f'not ok {number} {name}', flush=True)
            for line in f'{type(why).__name__}: {why}'.split('\n')[:30]:
                print(f'# {line}', flush=True)
    return 1 if failed else 0


def skip_all(why):
    print(f'1..0 # SKIP {why}')
    sys.exit(0)
