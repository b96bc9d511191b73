# SPDX-License-Identifier: MIT OR Apache-2.0
"""Readers from npm, as package.json pins them: installed by ./check into build/validators.

VALIDATORS is the folder with node_modules (default: ../../build/validators).
"""
import json
import os
import subprocess
import figures as f

FOLDER = os.path.abspath(os.environ.get('VALIDATORS') or
                         os.path.join(f.HERE, '../../build/validators'))


def module(path):
    return os.path.join(FOLDER, 'node_modules', path)


def need(*packages, node=18):
    """Skips the whole file where node of that version or a package is missing."""
    if not f.which('node'):
        f.skip_all('no node (Debian: nodejs)')
    version = f.run('node', '--version').decode().strip()
    if int(version[1:].split('.')[0]) < node:
        f.skip_all(f'node is {version}, {packages[0]} wants {node} or later')
    for package in packages:
        if not os.path.exists(module(package)):
            f.skip_all(f'no {package} from npm in {FOLDER} (npm ci could not get it)')


def node(script, *words, **how):
    """What a script of this folder prints, as JSON."""
    return json.loads(f.run('node', os.path.join(f.HERE, script), FOLDER, *words, **how))


def write(path, data):
    with open(path, 'wb') as out:
        out.write(data)
    return path


def exported(sessions, session, to, *options):
    """Path of an export in the sessions' folder."""
    name = os.path.basename(session) + '.'.join(options).replace('/', '_')
    return write(sessions.path(f'{name}.{to}.json'), f.export(session, to, *options))


def quiet(*words, **how):
    """Status of a program whose failure is an answer, and all it said."""
    done = subprocess.run(words, capture_output=True, check=False, **how)
    return done.returncode, (done.stdout + done.stderr).decode(errors='replace')
