# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the gates share: the list of our files, C text without comments, one way to fail.

A gate is a program in tools/check-*: it prints each finding as `file:line: what is wrong`, then one
closing line, and exits 0 (held), 1 (broken) or 77 (cannot be checked here, with the reason).
"""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GENERATED = re.compile(r'(^|/)(vmlinux\.h|.*\.skel\.h)$')


def files(*suffixes, under=('src', 'include', 'tests', 'preload', 'rust', 'demo', 'bench', 'web')):
    """Our files with one of the suffixes, relative to the root, sorted; built ones left out."""
    found = []
    for top in under:
        for folder, dirs, names in os.walk(os.path.join(ROOT, top)):
            dirs[:] = [d for d in dirs if d not in ('data', 'corpus', 'target', 'node_modules')]
            for name in names:
                path = os.path.relpath(os.path.join(folder, name), ROOT)
                if name.endswith(suffixes) and not GENERATED.search(path):
                    found.append(path)
    return sorted(found)


def read(path):
    with open(os.path.join(ROOT, path), encoding='utf-8', errors='replace') as f:
        return f.read()


_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def code_only(text):
    """C text with comments and the insides of literals blanked, every line kept in place."""
    def blank(m):
        t = m.group(0)
        if t[0] in '"\'':
            return t[0] + ' ' * (len(t) - 2) + t[0]
        return re.sub(r'[^\n]', ' ', t)
    return _TOKEN.sub(blank, text)


class Gate:
    def __init__(self, name):
        self.name, self.findings = name, []

    def fail(self, path, line, what):
        self.findings.append(f'{path}:{line}: {what}' if line else f'{path}: {what}')

    def skip(self, why):
        print(f'{self.name}: skipped: {why}')
        sys.exit(77)

    def done(self, summary):
        for finding in self.findings:
            print(finding)
        if self.findings:
            print(f'{self.name}: {len(self.findings)} finding(s)')
            sys.exit(1)
        print(f'{self.name}: {summary}')
        sys.exit(0)


def run(*argv, **options):
    return subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors='replace', cwd=ROOT, stdin=subprocess.DEVNULL, **options)
