// SPDX-License-Identifier: MIT OR Apache-2.0
// @ts-nocheck: gives the modules half-made models and looks at their insides on purpose
// The highlighter: no text is ever lost, states cross lines, and the usual things have their kind.
import test from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { HIGHLIGHT_MAX, highlightLine, highlightLines, langOfPath } from '../../web/highlight.js';

function kinds(lang, text, state = '') {
	return highlightLine(lang, state, text).tokens.map(t => [t.kind, text.slice(t.from, t.to)])
		.filter(([kind]) => kind);
}

function whole(lang, text, state = '') {
	const r = highlightLine(lang, state, text);
	let at = 0;
	for (const t of r.tokens) {
		assert.equal(t.from, at);
		assert.ok(t.to > t.from);
		at = t.to;
	}
	assert.equal(at, text.length, JSON.stringify(text));
	return r.state;
}

test('Rust: words, types, macros, lifetimes, characters, numbers', () => {
	assert.deepEqual(kinds('rust', "pub fn get<'a>(x: &'a Vec<u8>) -> char { 'a' }"), [
		['keyword', 'pub'], ['keyword', 'fn'], ['life', "'a"], ['life', "'a"], ['type', 'Vec'],
		['type', 'u8'], ['type', 'char'], ['string', "'a'"]]);
	assert.deepEqual(kinds('rust', "println!(\"{x}\\\"\", 0x_ff_u32, 1.5e3, '\\'', b'x')"), [
		['macro', 'println!'], ['string', '"{x}\\""'], ['number', '0x_ff_u32'], ['number', '1.5e3'],
		['string', "'\\''"], ['string', "b'x'"]]);
	assert.deepEqual(kinds('rust', 'a.iter().map::<u8>(f) // end'), [['call', 'iter'], ['call', 'map'],
		['type', 'u8'], ['comment', '// end']]);
	assert.deepEqual(kinds('rust', 'for i in 0..n {'), [['keyword', 'for'], ['keyword', 'in'], ['number', '0']]);
	assert.deepEqual(kinds('rust', '#[inline]'), [['macro', '#[']]);
});

test('Rust: comments nest and strings go on over lines', () => {
	assert.equal(whole('rust', 'a /* b /* c */ d'), 'c1');
	assert.equal(whole('rust', 'x */ y', 'c1'), '');
	assert.deepEqual(kinds('rust', 'x */ let', 'c1'), [['comment', 'x */'], ['keyword', 'let']]);
	assert.equal(whole('rust', 'let s = "abc'), 's');
	assert.deepEqual(kinds('rust', 'def" fn', 's'), [['string', 'def"'], ['keyword', 'fn']]);
	const raw = whole('rust', 'let s = r##"a "# b');
	assert.deepEqual(kinds('rust', 'c"# d"## fn', raw), [['string', 'c"# d"##'], ['keyword', 'fn']]);
});

test('C and C++: preprocessor, comments, raw strings', () => {
	assert.deepEqual(kinds('c', '#include <stdio.h> /* x */'), [['macro', '#include'], ['comment', '/* x */']]);
	assert.deepEqual(kinds('c', 'static uint32_t f(int x) { return g(x, \'\\n\', 1UL); }'), [
		['keyword', 'static'], ['type', 'uint32_t'], ['call', 'f'], ['keyword', 'int'],
		['keyword', 'return'], ['call', 'g'], ['string', "'\\n'"], ['number', '1UL']]);
	assert.equal(whole('c', 'a /* b /* c */'), '');
	assert.equal(whole('c', 'x = "not ended'), '');
	assert.equal(whole('c', 'x = "goes on \\'), 's');
	const raw = whole('c', 'auto s = R"x(a )" b');
	assert.deepEqual(kinds('c', 'c)x" if', raw), [['string', 'c)x"'], ['keyword', 'if']]);
});

test('Intel assembly: mnemonic, registers, numbers, targets', () => {
	assert.deepEqual(kinds('asm', 'mov rax, qword ptr [rsp + 0x10]'), [['mnemonic', 'mov'],
		['register', 'rax'], ['register', 'rsp'], ['number', '0x10']]);
	assert.deepEqual(kinds('asm', 'lock cmpxchg dword ptr [rdi], ecx'), [['mnemonic', 'lock cmpxchg'],
		['register', 'rdi'], ['register', 'ecx']]);
	assert.deepEqual(kinds('asm', 'call <core::iter::next as X>+0x4'), [['jump', 'call'],
		['address', '<core::iter::next as X>+0x4']]);
	assert.deepEqual(kinds('asm', 'jne 0x1234'), [['jump', 'jne'], ['number', '0x1234']]);
	assert.deepEqual(kinds('asm', 'vmovdqu ymm0, ymmword ptr [r8d]'), [['mnemonic', 'vmovdqu'],
		['register', 'ymm0'], ['register', 'r8d']]);
});

test('files have the language of their names', () => {
	assert.equal(langOfPath('/rustc/abc/library/core/src/num/mod.rs'), 'rust');
	assert.equal(langOfPath('../sysdeps/x86_64/multiarch/memmove.c'), 'c');
	assert.equal(langOfPath('/usr/include/c++/12/bits/stl_vector.h'), 'c');
	assert.equal(langOfPath('memmove-vec.S'), 'plain');
});

test('no line loses a character, in any language and state', () => {
	const pieces = ['"', "'", '\\', '/*', '*/', '//', 'r#"', '"#', 'R"x(', ')x"', '\'a', '\ud83d\ude00',
		'\ud83d', '#', ' ', 'fn', '0x', '1.', '<', '>', '\t', '\0', 'é', '!', '::', '(', ')', '[', ';', 'jmp'];
	let seed = 99;
	const random = n => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) % n;
	for (let i = 0; i < 20000; i++) {
		const text = Array.from({length: random(9)}, () => pieces[random(pieces.length)]).join('');
		for (const lang of ['rust', 'c', 'asm', 'plain'])
			whole(lang, text, ['', 'c1', 'c3', 's', 'r"#', 'r)x"'][random(6)]);
	}
	whole('rust', 'x'.repeat(HIGHLIGHT_MAX + 1));
});

test('real sources keep every character and end in no open state', () => {
	const root = new URL('../../', import.meta.url);
	for (const folder of ['src/model/', 'src/unwind/', 'src/cli/']) {
		for (const name of readdirSync(new URL(folder, root)).filter(n => /\.[ch]$/.test(n))) {
			const lines = readFileSync(new URL(folder + name, root), 'utf8').split('\n');
			let state = '';
			for (const line of lines)
				state = whole('c', line, state);
			assert.equal(state, '', name);
			assert.equal(highlightLines('c', lines).length, lines.length);
		}
	}
});
