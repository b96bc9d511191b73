# SPDX-License-Identifier: MIT OR Apache-2.0
"""Inputs of the commands in bench/heap-programs.list: the same bytes each time."""
import gzip
import io
import math
import os
import random
import shutil
import struct
import subprocess
import tarfile
import zipfile
import zlib

WORDS = 'int memory of the program heap and block stack a thread to page free zone list node tree map'.split()
C = r'''#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct node { struct node *next; char name[24]; };
static struct node *push(struct node *list, int n)
{
	struct node *new = malloc(sizeof *new);

	new->next = list;
	snprintf(new->name, sizeof new->name, "node %d", n);
	return new;
}
int main(void)
{
	struct node *list = NULL;
	int sum = 0;

	for (int i = 0; i < 1000; i++)
		list = push(list, i);
	while (list) {
		struct node *next = list->next;

		sum += (int)strlen(list->name);
		free(list);
		list = next;
	}
	printf("%d\n", sum);
	return 7;
}
'''
CPP = '''#include <map>
#include <string>
#include <vector>
std::map<std::string, std::vector<int>> table;
int main() { for (int i = 0; i < 1000; i++) table[std::to_string(i % 77)].push_back(i); return table.size() != 77; }
'''
SOURCES = {
    'a.c': C, 'a.cpp': CPP,
    'a.rs': 'use std::collections::HashMap;\nfn main() { let m: HashMap<String, usize> = (0..99)'
            '.map(|i| (i.to_string(), i)).collect(); println!("{}", m.len()); }\n',
    'a.py': 'import os\nimport sys\n\ndef twice( x ):\n    return x*2\nprint(twice(21))\n',
    'serve_curl.py': '''import http.server, subprocess, threading
class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *a): pass
s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Quiet)
threading.Thread(target=s.serve_forever, daemon=True).start()
for _ in range(9):
    print(len(subprocess.run(['curl', '-s', f'http://127.0.0.1:{s.server_port}/text'], capture_output=True).stdout))
''',
    'a.js': 'var a = []; for (var i = 0; i < 5000; i++) a.push({ i: i, s: "" + i }); print(JSON.stringify(a).length);\n',
    'a.tcl': 'for {set i 0} {$i < 5000} {incr i} { lappend l "item $i" }\nputs [llength $l]\nexit 2\n',
    'a.ml': 'let () = print_int (List.length (List.sort compare (List.init 20000 (fun i -> (i * 7919) mod 20011))))\n',
    'a.hs': 'main :: IO ()\nmain = print (sum [x * x | x <- [1 .. 20000 :: Int]])\n',
    'a.go': 'package main\n\nimport "fmt"\n\nfunc main() { fmt.Println(len(make([]int, 99))) }\n',
    'A.java': 'import java.util.*;\nclass A { public static void main(String[] a) { Map<String, Integer> m = new TreeMap<>();'
              ' for (int i = 0; i < 20000; i++) m.put("k" + i % 999, i); System.out.println(m.size()); System.exit(5); } }\n',
    'a.f90': 'program a\n  integer, allocatable :: v(:)\n  allocate(v(1000))\n  v = 7\n  print *, sum(v)\nend program\n',
    'a.pas': 'program a;\nbegin\n  writeln(6 * 7);\nend.\n',
    'a.asm': 'section .text\nglobal start\nstart: mov eax, 60\n syscall\n',
    'a.sh': '#!/bin/sh\nfor f in $(ls); do echo $f; done\n',
    'a.y': '%token N\n%%\ne: e \'+\' t | t;\nt: t \'*\' N | N;\n%%\n',
    'a.l': '%%\n[a-z]+ return 1;\n[0-9]+ return 2;\n%%\n',
    'a.re': '/*!re2c re2c:define:YYCTYPE = char; * { return 0; } [a-z]+ { return 1; } */\n',
    'a.gperf': '%%\nint\nfor\nwhile\n%%\n',
    'a.i': '%module a\nint twice(int x);\n',
    'a.proto': 'syntax = "proto3";\nmessage A { int32 b = 1; repeated string c = 2; }\n',
    'a.fbs': 'table A { b: int; c: [string]; }\nroot_type A;\n',
    'a.capnp': '@0xbf5147cbbecf40c1;\nconst x :Text = "assay";\n',
    'a.m4': 'define(`twice\', `$1$1\')twice(twice(text))\n',
    'a.bc': 'scale = 50\n4 * a(1)\n2 ^ 300\nquit\n',
    'a.gp': 'print(factor(2^101-1))\nprint(#primes(5000))\n',
    'a.scss': '$c: #369; .a { .b { color: $c; &:hover { color: lighten($c, 10%); } } }\n',
    'a.dot': 'digraph { a -> b -> c; a -> c; c -> d [label="x"]; }\n',
    'a.smt2': '(declare-const x Int)(declare-const y Int)(assert (and (> x 3) (= (* x y) 42)))(check-sat)\n',
    'a.cnf': 'p cnf 3 3\n1 -2 0\n2 3 0\n-1 -3 0\n',
    'a.mk': 'all: one two\none two:\n\t@echo $@ >made-$@\n',
    'a.ninja': 'rule echo\n  command = echo $out >$out\nbuild one: echo\nbuild two: echo\n',
    'a.cmake': 'foreach(i RANGE 200)\n  list(APPEND l "x${i}")\nendforeach()\nlist(LENGTH l n)\nmessage("${n}")\n',
    'a.ac': 'AC_INIT([a], [1])\nAC_OUTPUT\n',
    'a.md': '# A title\n\nText with *words* and `code`, ä ö ü.\n\n* one\n* two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n',
    'a.html': '<!DOCTYPE html><html><head><title>a</title></head><body><h1>A</h1><p id=p>text</p><script>'
              'document.getElementById("p").textContent = [...Array(999).keys()].join().length</script></body></html>\n',
    'a.xml': '<?xml version="1.0"?><rows>' + ''.join(f'<row size="{i}">r{i}</row>' for i in range(99)) + '</rows>\n',
    'a.xsl': '<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:template match="/">'
             '<sum><xsl:value-of select="sum(//row/@size)"/></sum></xsl:template></xsl:stylesheet>\n',
    'a.svg': '<svg xmlns="http://www.w3.org/2000/svg" width="64" height="64"><circle cx="32" cy="32" r="20" fill="red"/></svg>\n',
    'a.ms': '.TL\nA title\n.PP\nSome text of a paragraph.\n',
    'a.po': 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "heap"\nmsgstr "Halde"\n',
    'a.ps': '%!PS\n/Helvetica findfont 12 scalefont setfont 72 700 moveto (assay) show showpage\n',
    'a.json': '{"rows": [' + ', '.join(f'{{"name": "r{i}", "size": {i}}}' for i in range(200)) + ']}\n',
    'a.csv': 'name,size\n' + ''.join(f'r{i * 7 % 200},{i}\n' for i in range(200)),
    'pairs': ''.join(f'n{i} n{i + 1}\n' for i in range(50)),
    'none.aff': 'SET UTF-8\n', 'none.dic': '1\nassay\n',
    'nginx.conf': 'daemon off; error_log stderr; pid nginx.pid; events {} http { access_log off; }\n',
    'crate/Cargo.toml': '[package]\nname = "a"\nversion = "0.1.0"\nedition = "2021"\n',
    'crate/src/main.rs': 'fn main() { println!("{}", vec![1; 9].len()); }\n',
    'tree/one/b.c': C, 'tree/two/c.c': C.replace('1000', '9'), 'tree/text': 'int in a text\n', 'lock': '',
}


def chunk(name, data):
    return struct.pack('>I', len(data)) + name + data + struct.pack('>I', zlib.crc32(name + data))


def png(side):
    rows = b''.join(b'\0' + bytes(v for x in range(side) for v in (x * 4 % 256, y * 4 % 256, x * y % 256))
                    for y in range(side))
    return (b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', side, side, 8, 2, 0, 0, 0)) +
            chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b''))


def wav(seconds):
    data = b''.join(struct.pack('<h', int(9000 * math.sin(i / 20))) for i in range(8000 * seconds))
    return (b'RIFF' + struct.pack('<I', 36 + len(data)) + b'WAVEfmt ' +
            struct.pack('<IHHIIHH', 16, 1, 1, 8000, 16000, 2, 16) + b'data' + struct.pack('<I', len(data)) + data)


def packed(folder):
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode='w') as t, \
            zipfile.ZipFile(f'{folder}/tree.zip', 'w', zipfile.ZIP_DEFLATED) as z:
        for path in ('tree/text', 'tree/one/b.c', 'tree/two/c.c'):
            with open(f'{folder}/{path}', 'rb') as f:
                data = f.read()
            info = tarfile.TarInfo(path)
            info.size, info.mtime = len(data), 1700000000
            t.addfile(info, io.BytesIO(data))
            z.writestr(zipfile.ZipInfo(path), data)
    with open(f'{folder}/tree.tar.gz', 'wb') as f:
        f.write(gzip.compress(plain.getvalue(), mtime=0))


def call(folder, *command):
    if shutil.which(command[0]):
        subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, env={
                           **os.environ, 'GIT_AUTHOR_DATE': '1700000000 +0000', 'GIT_COMMITTER_DATE': '1700000000 +0000',
                           'GIT_CONFIG_GLOBAL': '/dev/null'})


def made_by_others(folder):
    call(folder, 'gcc', '-g', '-O1', '-c', 'a.c', '-o', 'a.o')
    call(folder, 'gcc', '-g', '-O1', 'a.c', '-o', 'prog')
    call(folder, 'ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-C', 'a', '-f', 'key')
    call(folder, 'openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', 'key.pem', '-out', 'cert.pem',
         '-subj', '/CN=a')
    shutil.copytree(f'{folder}/tree', f'{folder}/repo')
    shutil.copy(f'{folder}/a.c', f'{folder}/repo/a.c')
    git = ('git', '-C', 'repo', '-c', 'user.name=a', '-c', 'user.email=a@example.org')
    call(folder, 'git', 'init', '-q', '-b', 'main', 'repo')
    call(folder, *git, 'add', '.')
    call(folder, *git, 'commit', '-q', '-m', 'first')
    with open(f'{folder}/repo/a.c', 'a') as f:
        f.write('/* more */\n')
    call(folder, *git, 'commit', '-qam', 'second')


def make(folder):
    r = random.Random(7)
    lines = [' '.join(r.choice(WORDS) for _ in range(r.randrange(1, 9))) + f' {i % 77}' for i in range(3000)]
    for name, text in {**SOURCES, 'text': '\n'.join(lines) + '\n', 'sorted': '\n'.join(sorted(lines)) + '\n'}.items():
        os.makedirs(os.path.dirname(f'{folder}/{name}'), exist_ok=True)
        with open(f'{folder}/{name}', 'w') as f:
            f.write(text)
    with open(f'{folder}/a.patch', 'w') as f:
        f.write('--- a.c\n+++ a.c\n@@ -1,3 +1,3 @@\n #include <stdio.h>\n-#include <stdlib.h>\n+#include "stdlib.h"\n'
                ' #include <string.h>\n')
    side = 64
    pixels = bytes(v for y in range(side) for x in range(side) for v in (x * 4, y * 4, 99))
    for name, data in {'a.png': png(side), 'a.wav': wav(2), 'a.ppm': b'P6 64 64 255\n' + pixels,
                       'a.pbm': b'P4 64 64\n' + bytes(range(256)) * 2, 'disk.img': bytes(8 << 20)}.items():
        with open(f'{folder}/{name}', 'wb') as f:
            f.write(data)
    for name in ('empty', 'gpg', 'nginx'):
        os.makedirs(f'{folder}/{name}', mode=0o700)
    packed(folder)
    made_by_others(folder)
    shutil.move(f'{folder}/nginx.conf', f'{folder}/nginx/nginx.conf')
