// SPDX-License-Identifier: MIT OR Apache-2.0
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {diffTree, makeDiff} from '../../web/diff.js';
import {Identity, stableFunction, stableModule} from '../../web/identity.js';
import {defaultQuery, makeProfile} from '../../web/query.js';
import {demoModel, ModelBuilder, randomOf, syntheticModel} from './synthetic.js';

/** @typedef {import('../../web/types.js').Model} Model */

/**
 * The model with the samples that `keep` chooses.
 * @param {Model} m
 * @param {(i: number) => boolean} keep
 * @returns {Model}
 */
function thinned(m, keep) {
	const ids = Array.from({length: m.samples.n}, (_, i) => i).filter(keep);
	/** @type {any} */
	const samples = {n: ids.length};
	for (const [name, column] of Object.entries(m.samples))
		if (typeof column !== 'number')
			samples[name] = new /** @type {any} */ (column.constructor)(ids.map(i => column[i]));
	return {...m, samples};
}

/** @param {Model} m */
const profileOf = m => makeProfile(m, defaultQuery());

/**
 * A program whose functions f0, f1, … have so many samples, one after the other in small turns.
 * @param {number[]} counts
 * @param {string} [module]
 * @param {(i: number) => string} [nameOf]
 */
function counted(counts, module = '/usr/bin/prog', nameOf = i => `f${i}`) {
	const b = new ModelBuilder();
	b.module(module);
	const stacks = counts.map((_, i) => b.stack([b.frame([{f: b.func(nameOf(i))}])]));
	const total = counts.reduce((s, n) => s + n, 0);
	/** @type {{at: number, stack: number}[]} */
	const list = [];
	counts.forEach((n, i) => {
		for (let k = 0; k < n; k++)
			list.push({at: (k + (i % 17 + 1) / 19) / n, stack: stacks[i]});
	});
	list.sort((x, y) => x.at - y.at).forEach((s, i) => b.sample(i * 1e6, s.stack));
	return {profile: profileOf(b.model({info: {program: '/usr/bin/prog', cwd: '/home/u'}})), total};
}

/** @param {number[]} a @param {number[]} b */
function diffOf(a, b) {
	const diff = makeDiff(counted(a).profile, counted(b).profile);
	return Object.fromEntries(diff.rows.map(r => [diff.name(r.key).full, r]));
}

test('no sample against one, and few against few, is never a change', () => {
	const rest = 60;
	for (const [a, b] of [[0, 1], [1, 0], [0, 2], [0, 3], [1, 4], [0, 4], [2, 5], [5, 4]]) {
		const row = diffOf([rest, a], [rest, b]).f1;
		assert.ok(!row.self.resolved && !row.total.resolved, `${a} against ${b}`);
	}
});

test('a clear change is resolved, its interval holds the truth, half a point is nothing', () => {
	const {f0, f1, f2} = diffOf([5000, 1000, 4000], [4500, 1500, 4000]);
	assert.equal(f1.self.verdict, 'up');
	assert.ok(f1.self.resolved && f1.self.low > 0.03 && f1.self.low < 0.05 && f1.self.high > 0.05);
	assert.equal(f0.self.verdict, 'down');
	assert.equal(f2.self.verdict, 'undecided');
	const many = diffOf([2e5, 3e3], [2e5, 3.4e3]);
	assert.equal(many.f1.self.verdict, 'equal', 'a difference of 0.2 points of 200,000 samples');
});

test('what moved only because the rest did is told apart', () => {
	// One function takes 40 % less time; all others as much as before, so their shares grow.
	const counts = Array.from({length: 12}, () => 500);
	const {f0, f5} = diffOf([6000, ...counts.slice(1)], [3000, ...counts.slice(1)]);
	assert.equal(f0.self.verdict, 'down');
	assert.ok(!f0.self.shareOnly);
	assert.ok(f5.self.verdict !== 'down' && (!f5.self.resolved || f5.self.shareOnly));
});

test('two halves of one recording differ in at most 5 % of rows and nodes (seeded)', () => {
	let rows = 0, flagged = 0, nodes = 0, flaggedNodes = 0;
	for (let seed = 1; seed <= 8; seed++) {
		const random = randomOf(seed * 77);
		const whole = seed % 2 ? demoModel(seed) :
			syntheticModel({samples: 8000, stacks: 400, functions: 200, depth: 15, seed});
		const side = Uint8Array.from({length: whole.samples.n}, () => random() < 0.5 ? 1 : 0);
		const a = profileOf(thinned(whole, i => side[i] === 1)),
			b = profileOf(thinned(whole, i => side[i] === 0));
		const diff = makeDiff(a, b);
		for (const r of diff.rows) {
			for (const c of [r.self, r.total]) {
				rows += c.delta !== 0 ? 1 : 0;
				flagged += c.resolved ? 1 : 0;
			}
		}
		const tree = diffTree(diff);
		nodes += tree.tree.n;
		flaggedNodes += tree.verdict.reduce((n, v) => n + Math.abs(v), 0);
	}
	assert.ok(rows > 500 && flagged <= 0.05 * rows, `${flagged} of ${rows} rows`);
	assert.ok(flaggedNodes <= 0.05 * nodes, `${flaggedNodes} of ${nodes} nodes`);
});

test('a function that became slower is found, what it pushes aside is shown as less', () => {
	const a = demoModel(5), b = demoModel(6);
	const slow = a.functions.brief.findIndex(id => a.strings[id] === 'memchr::memmem::find');
	const leafOf = (/** @type {Model} */ m, /** @type {number} */ i) => {
		const stack = m.samples.stack[i];
		return stack < 0 ? -1 : m.places.function[m.frames.chain[m.stacks.frame[stack]]];
	};
	for (let i = 0; i < b.samples.n; i++)
		if (leafOf(b, i) === slow)
			b.samples.weight[i] *= 2;
	const diff = makeDiff(profileOf(a), profileOf(b));
	const top = diff.rows[0];
	assert.equal(diff.name(top.key).brief, 'memchr::memmem::find');
	assert.ok(top.self.resolved && top.self.delta > 0.1);
	assert.equal(top.keyA, slow);
	const {tree, a: before, b: after, verdict} = diffTree(diff);
	for (let i = 1; i < tree.n; i++) {
		assert.ok(Math.abs(tree.total[i] - (before[i] + after[i]) / 2) < 1e-12);
		assert.ok(tree.parent[i] < i);
		if (diff.name(tree.key[i]).brief === 'memchr::memmem::find' && before[i] > 0.05)
			assert.equal(verdict[i], 1);
	}
	assert.ok(Math.abs(tree.total[0] - 1) < 1e-9 && verdict.includes(-1));
});

test('sides are matched by name and module without what a rebuild changes', () => {
	const a = counted([300, 300, 300], '/a/prog', i => ['one', 'two[5f3a1b2c]::x', 'gone'][i]);
	const b = counted([300, 300, 300], '/b/prog', i => ['new', 'two[77aa1b2c]::x', 'one'][i]);
	const diff = makeDiff(a.profile, b.profile);
	const rows = Object.fromEntries(diff.rows.map(r => [diff.name(r.key).full, r]));
	assert.deepEqual(Object.keys(rows).sort(), ['gone', 'new', 'one', 'two[5f3a1b2c]::x']);
	assert.deepEqual([rows.one.keyA, rows.one.keyB, rows.gone.keyB, rows.new.keyA], [0, 2, -1, -1]);
	assert.ok(!rows.one.self.resolved && rows.gone.self.verdict === 'down' &&
		rows.new.self.verdict === 'up');
	const other = makeDiff(counted([300], '/a/prog').profile,
		counted([300], '/a/elsewhere').profile);
	assert.equal(other.rows.length, 2);
});

test('functions of one side that mean the same are one row with the interval of both', () => {
	const names = ['f::{closure#0}', 'f::{closure#1}', 'g'];
	const a = counted([100, 200, 700], undefined, i => names[i]);
	const diff = makeDiff(a.profile, a.profile);
	assert.equal(diff.rows.length, 2);
	const row = diff.rows.find(r => diff.name(r.key).full.startsWith('f'));
	assert.equal(row?.a.self.samples, 300);
	assert.ok(row && row.self.delta === 0 && !row.self.resolved);
});

test('names lose what compilers and cargo make up, and nothing else', () => {
	/** @type {[string, string][]} */
	const names = [
		['core[5f3a1b2c]::fmt::write', 'core::fmt::write'],
		['app::parse::h0123456789abcdef', 'app::parse'],
			['app::parse::h0123456789abcde', 'app::parse::h0123456789abcde'],
		['app::run::{closure#3}', 'app::run::{closure}'],
			['app::{impl#2}::next', 'app::{impl}::next'],
		['ns::f(int)::{lambda(int)#2}', 'ns::f(int)::{lambda(int)}'], ['a#2', 'a#2'],
		['parse.part.0', 'parse'], ['parse.isra.3.cold', 'parse'], ['f.llvm.1234', 'f'],
			['f.partial', 'f.partial'],
		['[u8; 5]::x', '[u8; 5]::x'], ['.cold', '.cold'], ['x[12345]', 'x'], ['x[1234]', 'x[1234]'],
	];
	for (const [full, stable] of names)
		assert.equal(stableFunction(full), stable);
	assert.equal(stableModule('t_one-598974d6c5b10e84'), 't_one');
	assert.equal(stableModule('libfoo-1.2.so'), 'libfoo-1.2.so');
	const id = new Identity(new ModelBuilder().model({info: {program: '/x/prog', cwd: '/home/u'}}));
	assert.deepEqual([id.module('prog'), id.file('/home/u/src/a.rs'),
		id.file('/rustc/abc/library/a.rs'), id.file('/home/user/a')],
		['', 'src/a.rs', '/rustc/library/a.rs', '/home/user/a']);
});

test('empty sides are no trouble', () => {
	const none = profileOf(new ModelBuilder().model()), some = profileOf(demoModel());
	for (const [a, b] of [[none, some], [some, none], [none, none]]) {
		const diff = makeDiff(a, b);
		assert.ok(diff.rows.every(r => !r.self.resolved && !r.total.resolved));
		assert.ok(diffTree(diff).verdict.every(v => v === 0));
	}
});
