// SPDX-License-Identifier: MIT OR Apache-2.0
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {changeOf, diffTree, makeDiff} from '../../web/diff.js';
import {defaultQuery, makeProfile} from '../../web/query.js';
import {Estimate} from '../../web/stats.js';
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

/** @param {number} k @param {number} n */
const seen = (k, n) => new Estimate(k / n, k, n, 1);

test('no sample against one, and few against few, is never a change', () => {
	for (const n of [50, 1000, 1e6]) {
		for (const [a, b] of [[0, 1], [1, 0], [0, 2], [0, 3], [1, 4], [0, 4], [2, 5], [5, 5],
			[0, 0]])
			assert.ok(!changeOf(seen(a, n), seen(b, n)).resolved, `${a} against ${b} of ${n}`);
	}
});

test('a clear change is resolved and its interval holds the truth', () => {
	const c = changeOf(seen(1000, 10000), seen(1500, 10000));
	assert.ok(c.resolved && c.low > 0.03 && c.low < 0.05 && c.high > 0.05 && c.high < 0.07);
	assert.ok(changeOf(seen(30, 10000), seen(0, 10000)).resolved);
	const same = changeOf(seen(1000, 10000), seen(1020, 10000));
	assert.ok(!same.resolved && same.low < 0 && same.high > 0);
});

test('intervals of a difference cover as they promise', () => {
	const random = randomOf(11), rounds = 1500;
	for (const [p, n] of [[0.02, 500], [0.1, 2000], [0.5, 300]]) {
		let missed = 0, flagged = 0;
		for (let i = 0; i < rounds; i++) {
			let a = 0, b = 0;
			for (let k = 0; k < n; k++) {
				a += random() < p ? 1 : 0;
				b += random() < p ? 1 : 0;
			}
			const c = changeOf(seen(a, n), seen(b, n));
			missed += c.low > 0 || c.high < 0 ? 1 : 0;
			flagged += c.resolved ? 1 : 0;
		}
		assert.ok(missed <= 0.06 * rounds && flagged <= missed,
			`${missed} of ${rounds} at ${p} of ${n}`);
	}
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

test('sides are matched by full name and module, whatever their numbers', () => {
	/** @param {string[]} names @param {string} module */
	const make = (names, module) => {
		const b = new ModelBuilder();
		b.module(module);
		const frames = names.map(n => b.frame([{f: b.func(n)}]));
		for (let i = 0; i < 300; i++)
			b.sample(i * 1e6, b.stack([frames[i % frames.length]]));
		return profileOf(b.model());
	};
	const diff = makeDiff(make(['one', 'two', 'gone'], '/a/prog'),
		make(['new', 'two', 'one'], '/b/prog'));
	const rows = Object.fromEntries(diff.rows.map(r => [diff.name(r.key).full, r]));
	assert.deepEqual(Object.keys(rows).sort(), ['gone', 'new', 'one', 'two']);
	assert.deepEqual([rows.one.keyA, rows.one.keyB, rows.gone.keyB, rows.new.keyA], [0, 2, -1, -1]);
	assert.ok(!rows.two.self.resolved && rows.gone.self.resolved && rows.new.self.resolved);
	const other = makeDiff(make(['one'], '/a/prog'), make(['one'], '/a/elsewhere'));
	assert.equal(other.rows.length, 2);
});

test('empty sides are no trouble', () => {
	const none = profileOf(new ModelBuilder().model()), some = profileOf(demoModel());
	for (const [a, b] of [[none, some], [some, none], [none, none]]) {
		const diff = makeDiff(a, b);
		assert.ok(diff.rows.every(r => !r.self.resolved || a !== none && b !== none));
		diffTree(diff);
	}
});
