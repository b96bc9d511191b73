// SPDX-License-Identifier: MIT OR Apache-2.0
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {decodeModel} from '../../web/decode.js';
import {diffTree, makeDiff} from '../../web/diff.js';
import {bytes, shareParts, signed, weight} from '../../web/format.js';
import {bucketLine, liveLine, measureOf, measuredModel, measuresOf, momentChoices, momentName, withoutTails} from '../../web/memory.js';
import {defaultQuery, makeProfile} from '../../web/query.js';
import {decodeState, defaultState, encodeState} from '../../web/state.js';
import {table} from '../../web/table.js';
import {callTree} from '../../web/tree.js';
import {encodeModel} from './encode.js';
import {ModelBuilder} from './synthetic.js';

/** main -> load -> malloc and main -> parse, a mapping in main; folded: without malloc. */
function memoryModel() {
	const b = new ModelBuilder();
	const f = ['main', 'load', 'malloc', 'parse'].map(name => b.frame([{f: b.func(name)}]));
	const load = b.stack([f[0], f[1]]), malloc = b.stack([f[0], f[1], f[2]]), parse = b.stack([f[0], f[3]]),
		main = b.stack([f[0]]);
	b.process('prog', 100);
	b.thread('prog', 0, 100);
	b.thread('worker', 0, 101);
	b.add('heap', {thread: 0, stack: malloc, folded: load, allocs: 10, bytes: 4000, peak: 3000, live: 5, leaked: 3});
	b.add('heap', {thread: 1, stack: parse, folded: parse, allocs: 90, bytes: 900, peak: 1000, churn: 80});
	b.add('heap', {thread: 0, stack: main, folded: main, domain: 1, allocs: 1, bytes: 2 ** 30, peak: 2 ** 30});
	for (const [moment, row, bytes] of [[0, 0, 700], [1, 0, 2000], [1, 1, 50]])
		b.add('heapMarks', {moment, row, bytes});
	for (const [time, live, high] of [[1e6, 100, 100], [2e6, 300, 4000], [5e6, 50, 900]])
		b.add('heapTimes', {process: 0, time, live, high, resident: time === 2e6 ? 9000 : 0});
	return b.model({unit: 'bytes', duration: 10e6, memory: {measure: 'peak', allocs: 100, bytes: 4900,
		processes: [], marks: [], moments: [{name: 'loaded', time: 1e6, live: 700},
			{name: 'loaded#2', time: 3e6, live: 2050}], leaks: null, resident: [], sizes: [], lifetimes: [], ages: [], types: [], reallocs: []}});
}

test('a measure is what its rows weigh, and they add up', () => {
	const m = memoryModel();
	for (const [name, whole, self] of /** @type {[string, number, number][]} */ ([
		['', 4000, 3000], ['peak', 4000, 3000], ['allocs', 100, 10], ['bytes', 4900, 4000], ['live', 5, 5],
		['churn', 80, 0], ['leaked', 3, 3]])) {
		const profile = makeProfile(m, {...defaultQuery(), measure: name});
		assert.equal(profile.weight, whole, name);
		const row = table(profile, 'function').find(r => profile.name(r.key).brief === 'load');
		assert.equal((row?.self.value ?? 0) * profile.weight, self, name);
	}
	const mapped = makeProfile(m, {...defaultQuery(), measure: 'mapped'});
	assert.equal(mapped.weight, 2 ** 30);
	assert.equal(mapped.samples, 1);
	assert.deepEqual(measuresOf(m).map(x => x.name), ['peak', 'live', 'allocs', 'bytes', 'churn', 'leaked', 'mapped']);
});

test('shares are known: no interval, no ties', () => {
	const profile = makeProfile(memoryModel(), defaultQuery()), rows = table(profile, 'function');
	for (const r of rows) {
		assert.equal(r.self.low, r.self.value);
		assert.equal(r.total.high, r.total.value);
		assert.equal(r.tied, false);
		assert.equal(shareParts(r.self)[1], '');
	}
	assert.deepEqual(rows.map(r => profile.name(r.key).brief), ['load', 'parse', 'main']);
});

test('plumbing is folded until it is asked for', () => {
	const m = memoryModel(), names = (/** @type {boolean} */ plumbing) => {
		const profile = makeProfile(m, {...defaultQuery(), plumbing}), tree = callTree(profile);
		return Array.from({length: tree.n}, (_, i) => profile.name(tree.key[i]).brief);
	};
	assert.ok(!names(false).includes('malloc'));
	assert.ok(names(true).includes('malloc'));
});

test('the same question has the same model, another one its own unit', () => {
	const m = memoryModel(), q = defaultQuery();
	assert.equal(measuredModel(m, q), measuredModel(m, {...q, measure: 'peak'}));
	assert.equal(measuredModel(m, {...q, measure: 'allocs'}).meta.unit, 'count');
	assert.equal(measureOf(m, {...q, measure: 'nonsense'})?.name, 'peak');
	const time = new ModelBuilder().model();
	assert.equal(measuredModel(time, {...q, measure: 'allocs'}), time);
	assert.equal(measureOf(time, q), null);
});

test('live bytes over time: the most in each stretch, and its end', () => {
	const line = liveLine(memoryModel(), 0);
	assert.equal(line.n, 3);
	const b = bucketLine(line, {from: 0, to: 10e6, buckets: 10});
	assert.deepEqual(Array.from(b.live), [100, 300, 300, 300, 50, 50, 50, 50, 50, 50]);
	assert.deepEqual(Array.from(b.high), [100, 4000, 900, 900, 900, 50, 50, 50, 50, 50]);
	assert.equal(b.resident[9], 9000);
	assert.equal(bucketLine(line, {from: 3e6, to: 4e6, buckets: 2}).live[0], 300);
	assert.equal(liveLine(memoryModel(), 7).n, 0);
});

test('amounts read as the terminal prints them', () => {
	assert.equal(bytes(0), '0 B');
	assert.equal(bytes(1023), '1023 B');
	assert.equal(bytes(1024), '1.00 KiB');
	assert.equal(bytes(64172032), '61.2 MiB');
	assert.equal(weight(1234567, 'count'), '1,234,567');
	assert.equal(weight(2048, 'bytes'), '2.00 KiB');
});

/** @param {import('../../web/types.js').Query} q */
const profileOf = q => makeProfile(memoryModel(), q);

test('a moment is what was live then', () => {
	const m = memoryModel(), q = defaultQuery();
	assert.deepEqual(momentChoices(m), [[1, 'the start'], [2, 'loaded'], [3, 'loaded#2']]);
	assert.equal(momentName(m, 0), 'the end');
	for (const [at, whole] of [[1, 0], [2, 700], [3, 2050]])
		assert.equal(makeProfile(m, {...q, at, measure: 'allocs'}).weight, whole, 'a moment is of what is live');
	assert.equal(makeProfile(m, {...q, since: 2}).weight, 5);
	const state = {...defaultState(), query: {...q, at: 3, since: 2}};
	assert.equal(encodeState(state), 'at=3&since=2');
	assert.deepEqual(decodeState('at=3&since=2', m).query, state.query);
	assert.deepEqual(decodeState('at=4&since=-1', m).query, q, 'there is no such mark');
	assert.equal(decodeState('since=1', new ModelBuilder().model()).query.since, 0);
});

test('a difference of memory is of amounts, and each is one', () => {
	const q = defaultQuery(), a = profileOf({...q, at: 2}), b = profileOf({...q, at: 3});
	const diff = makeDiff(a, b), row = (/** @type {string} */ name) => {
		const r = diff.rows.find(x => diff.name(x.key).brief === name);
		assert.ok(r, name);
		return [r.self.verdict, ...[r.a.self, r.b.self, r.a.total, r.b.total].map(s => diff.amount(s.value))];
	};
	assert.deepEqual(row('load'), ['up', 700, 2000, 700, 2000]);
	assert.deepEqual(row('parse'), ['up', 0, 50, 0, 50]);
	assert.deepEqual(row('main'), ['equal', 0, 0, 700, 2050]);
	assert.deepEqual(diff.rows.map(r => diff.name(r.key).brief), ['load', 'parse', 'main']);
	assert.deepEqual(makeDiff(b, a).rows.map(r => r.self.verdict), ['down', 'down', 'equal']);
	const {tree, a: before, b: after, verdict} = diffTree(diff);
	for (let i = 0; i < tree.n; i++)
		assert.equal(verdict[i], 1);
	assert.deepEqual([before[0], after[0]].map(x => diff.amount(x)), [700, 2050]);
	const nothing = makeDiff(profileOf({...q, at: 1}), profileOf({...q, at: 2}));
	assert.deepEqual(nothing.rows.map(r => [nothing.amount(r.a.total.value), nothing.amount(r.b.total.value)]), [[0, 700], [0, 700]]);
	assert.equal(makeDiff(a, a).rows.some(r => r.self.resolved || r.total.resolved), false);
	assert.deepEqual([signed(2048, 'bytes'), signed(-3, 'count'), signed(0, 'bytes')], ['+2.00 KiB', '−3', '0 B']);
});

test('the address keeps the measure, and takes no other', () => {
	const state = defaultState();
	state.query.measure = 'allocs';
	state.query.plumbing = true;
	assert.equal(encodeState(state), 'measure=allocs&plumbing');
	assert.deepEqual(decodeState(encodeState(state)).query, state.query);
	assert.equal(decodeState('measure=evil').query.measure, '');
});

test('the columns come back from the page, and damage is told', async () => {
	const m = memoryModel(), back = await decodeModel(encodeModel(m));
	assert.deepEqual(back.heap, m.heap);
	assert.deepEqual(back.heapTimes, m.heapTimes);
	assert.deepEqual(back.heapMarks, m.heapMarks);
	m.heap.folded[1] = 99;
	await assert.rejects(decodeModel(encodeModel(m)), /folded stack of memory/);
});

test('long tails of bins are one', () => {
	const bins = [1, 2, 500, 400, 3, 1].map((count, i) => ({label: String(i), count}));
	assert.deepEqual(withoutTails(bins, 5).map(b => [b.label, b.count]),
		[['less', 3], ['2', 500], ['3', 400], ['more', 4]]);
	assert.deepEqual(withoutTails(bins, 1), bins);
	assert.deepEqual(withoutTails([], 5), []);
});
