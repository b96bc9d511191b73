#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Asks a running `assay view --serve` what it should refuse.

usage: serve.py SESSION   ($ASSAY is the program); prints a line per fact, ends with a traceback on a wrong one
"""
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading

assay, session = os.environ['ASSAY'], sys.argv[1]


def start(*arguments):
    p = subprocess.Popen([assay, 'view', '--serve', '--no-open', *arguments, session],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = p.stderr.readline()
    m = re.search(r'http://127\.0\.0\.1:(\d+)(/[0-9a-f]{32}/)$', line.strip())
    assert m, line + p.stderr.read()
    return p, int(m.group(1)), m.group(2)


def ask(path, method='GET', host=None, body=None):
    c = http.client.HTTPConnection('127.0.0.1', port, timeout=20)
    headers = {} if host is None else {'Host': host}
    c.request(method, path, body=body, headers=headers)
    r = c.getresponse()
    data = r.read()
    c.close()
    return r.status, r.headers, data


def raw(text):
    with socket.create_connection(('127.0.0.1', port), timeout=20) as s:
        s.sendall(text.encode())
        s.shutdown(socket.SHUT_WR)
        got = b''
        while part := s.recv(65536):
            got += part
    return got


server, port, token = start()
try:
    status, headers, page = ask(token)
    assert status == 200 and page.startswith(b'<!doctype html>') and b'id="profile"' in page
    assert headers['Content-Type'] == 'text/html; charset=utf-8'
    policy = headers['Content-Security-Policy']
    assert "default-src 'none'" in policy and "connect-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy and 'unsafe-eval' not in policy
    # What the header allows, the page's own policy allows too: both hold in a browser.
    assert policy.split('; frame-ancestors')[0].encode() in page
    assert headers['X-Content-Type-Options'] == 'nosniff'
    assert headers['X-Frame-Options'] == 'DENY'
    assert headers['Referrer-Policy'] == 'no-referrer'
    assert headers['Cache-Control'] == 'no-store'
    assert 'Access-Control-Allow-Origin' not in headers
    print('page and headers')

    wrong = '/' + '0' * 32 + '/'
    for path in ('/', '/favicon.ico', wrong, wrong + 'listing?function=0', token[:-1], token[:-2] + '/',
                 token.upper() if token.upper() != token else wrong, token + 'x', token + 'listing/',
                 '/' + token, token + token[1:]):
        assert ask(path)[0] == 404, path
    print('without the token: 404')

    for path in ('../../etc/passwd', '..%2f..%2fetc%2fpasswd', '%2e%2e/', '/etc/passwd',
                 'listing/../../../etc/passwd', 'listing%00', 'index.html', 'listing?file=/etc/passwd'):
        status, _, data = ask(token + path)
        assert status in (400, 404) and b'root:' not in data, (path, status)
    for text in (f'GET {token}../../../../etc/passwd HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n',
                 f'GET file:///etc/passwd HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n',
                 f'GET http://evil.example{token} HTTP/1.1\r\nHost: evil.example\r\n\r\n'):
        got = raw(text)
        assert b' 200 ' not in got.split(b'\r\n')[0] and b'root:' not in got, got[:200]
    print('no file comes from a request')

    for host in ('evil.example', f'evil.example:{port}', '127.0.0.1', 'localhost', f'127.0.0.1:{port + 1}',
                 f'127.0.0.1.evil.example:{port}', f'localhost.:{port}', f'127.0.0.1:{port}.evil', ''):
        for path in (token, token + 'listing?function=0', '/'):
            assert ask(path, host=host)[0] == 403, (host, path)
    for host in (f'127.0.0.1:{port}', f'localhost:{port}', f'LocalHost:{port}', f'[::1]:{port}'):
        assert ask(token, host=host)[0] == 200, host
    assert b' 403 ' in raw(f'GET {token} HTTP/1.0\r\n\r\n').split(b'\r\n')[0]
    print('another host: 403')

    for method in ('POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'TRACE', 'NONSENSE'):
        status, headers, _ = ask(token, method=method, body=b'x' * 100 if method == 'POST' else None)
        assert status == 405 and headers['Allow'] == 'GET, HEAD', (method, status)
    status, headers, data = ask(token, method='HEAD')
    assert status == 200 and data == b'' and int(headers['Content-Length']) == len(page)
    print('GET and HEAD only')

    for n in ('', '-1', '99999999', 'x', '0%20', '1;2', '18446744073709551616'):
        assert ask(f'{token}listing?function={n}')[0] == 400, n
    assert ask(token + 'listing')[0] == 400
    status, headers, data = ask(token + 'listing?function=3')
    assert status == 200 and headers['Content-Type'] == 'application/json'
    listing = json.loads(data)
    assert listing['function'] == 3 and {'sources', 'insns', 'files', 'places', 'notes'} <= set(listing)
    assert all(0 <= i < len(listing['sources']) for i in listing['files'])
    print('a listing is JSON')

    # Two who ask at once, and one who says nothing, each get what is theirs.
    silent = socket.create_connection(('127.0.0.1', port))
    results = []
    threads = [threading.Thread(target=lambda: results.append(ask(token)[2] == page)) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [True] * 8, results
    print('several at once')

    other = subprocess.run([assay, 'view', '--serve', '--no-open', '--port', str(port), session],
                           capture_output=True, text=True, timeout=20)
    assert other.returncode == 1 and f'port {port} of 127.0.0.1 is taken' in other.stderr, other.stderr
    print('a taken port is said')

    # Nobody outside: not on another address of this machine.
    for address in ('127.0.0.2', '::1'):
        try:
            socket.create_connection((address, port), timeout=2).close()
        except OSError:
            continue
        raise AssertionError(f'it listens on {address}')
    print('127.0.0.1 only')

    second, port2, token2 = start()
    assert token2 != token and port2 != port
    second.send_signal(signal.SIGTERM)
    assert second.wait(10) == 0
    server.send_signal(signal.SIGINT)
    assert server.wait(10) == 0
    again, port3, _ = start('--port', str(port))
    assert port3 == port
    again.send_signal(signal.SIGINT)
    assert again.wait(10) == 0
    print('Ctrl-C ends it')
finally:
    for p in ('server', 'second', 'again'):
        if p in globals() and globals()[p].poll() is None:
            globals()[p].kill()
