// SPDX-License-Identifier: MIT OR Apache-2.0
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {defaultQuery, makeProfile} from '../../web/query.js';
import {marked, timeline} from '../../web/timeline.js';
import {searchNames} from '../../web/tree.js';
import {demoModel, ModelBuilder} from './synthetic.js';

/** @param {ArrayLike<number>} a */
const sum = a => Array.from(a).reduce((s, v) => s + v, 0);

test('all CPU time of the range is in the buckets, each thread in its own line', () => {
	const m = demoModel(), whole = sum(m.samples.weight);
	for (const buckets of [1, 7, 300, 5000]) {
		const t = timeline(m, {from: -1e9, to: 6e9, buckets});
		assert.ok(Math.abs(sum(t.all) - whole) < 1e-6 * whole);
		assert.equal(t.threads.length, 4);
		assert.equal(t.width, 7e9 / buckets);
		for (const line of t.threads)
			assert.ok(Math.abs(sum(line.cpu) - line.weight) < 1e-6 * whole);
		for (let i = 1; i < 4; i++)
			assert.ok(t.threads[i - 1].weight >= t.threads[i].weight);
	}
});

test('a sample is drawn over the time it stands for, cut at the range', () => {
	const b = new ModelBuilder();
	b.sample(100, -1, {weight: 40});
	b.sample(200, -1, {weight: 10});
	const t = timeline(b.model(), {from: 50, to: 150, buckets: 10});
	assert.deepEqual(Array.from(t.all), [0, 10, 10, 10, 10, 0, 0, 0, 0, 0]);
	assert.deepEqual(Array.from(timeline(b.model(), {from: 80, to: 100, buckets: 2}).all),
		[10, 10]);
	const cycles = timeline(b.model({unit: 'cycles'}), {from: 0, to: 200, buckets: 2});
	assert.deepEqual(Array.from(cycles.all), [0, 40]);
});

test('losses stand in the second that lost them', () => {
	const t = timeline(demoModel(), {from: 0, to: 5e9, buckets: 50});
	assert.ok(Math.abs(sum(t.lost) - 60) < 1e-6);
	assert.ok(Math.abs(sum(t.lost.slice(20, 30)) - 60) < 1e-6);
	assert.ok(Math.abs(t.lost[25] - 24) < 1e-6, 'a loss with a moment stands there');
	assert.ok(Math.abs(t.lost[24] - 4) < 1e-6, 'one of a second is spread over it');
	assert.equal(sum(t.throttled), 0);
});

test('strange ranges end', () => {
	const m = demoModel();
	for (const r of [{from: 0, to: 0, buckets: 0}, {from: 5, to: 1, buckets: NaN},
		{from: 0, to: 1e12, buckets: 1e9}])
		assert.ok(timeline(m, r).all.length <= 10000);
	assert.equal(timeline(new ModelBuilder().model(),
		{from: 0, to: 1e9, buckets: 10}).threads.length, 0);
});

test('marked time is that of samples with a frame that matches', () => {
	const m = demoModel(), p = makeProfile(m, defaultQuery()),
		range = {from: -1e9, to: 6e9, buckets: 100};
	const find = marked(p, searchNames(p, 'memmem::find'), range), all = timeline(m, range).all;
	const share = sum(find) / sum(all);
	assert.ok(share > 0.2 && share < 0.28, String(share));
	for (let i = 0; i < 100; i++)
		assert.ok(find[i] <= all[i] + 1e-6);
	assert.equal(sum(marked(p, searchNames(p, 'no such'), range)), 0);
});
