// SPDX-License-Identifier: MIT OR Apache-2.0
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {betaCdf, betaQuantile, Blocks, emptyEstimate, erfc, exactInterval, logGamma, normalQuantile,
	proportionInterval, rowsSeparable, ShareRows, studentQuantile,
		wilsonInterval} from '../../web/stats.js';
import {randomOf} from './synthetic.js';

/** @param {number} ours @param {number} right @param {number} [digits] */
function same(ours, right, digits = 1e-10) {
	assert.ok(Math.abs(ours - right) <= digits * Math.max(Math.abs(right), 1e-300),
		`${ours} is not ${right}`);
}

test('quantiles and special functions agree with published tables', () => {
	same(normalQuantile(0.975), 1.959963984540054);
	same(normalQuantile(0.0001), -3.719016485455709);
	same(studentQuantile(0.975, 10), 2.2281388519649385);
	same(studentQuantile(0.975, 1), 12.706204736432095);
	same(studentQuantile(0.025, 120), -1.9799304050824413);
	same(logGamma(0.5), Math.log(Math.PI) / 2, 1e-13);
	same(logGamma(101), 363.73937555556349, 1e-13);
	same(erfc(0.3), 0.6713732405408726, 1e-13);
	same(erfc(3), 2.209049699858544e-5, 1e-12);
	same(erfc(-1), 1.8427007929497148, 1e-13);
});

test('the incomplete beta function and its quantile undo each other, for large sizes too', () => {
	same(betaCdf(0.5, 2, 3), 0.6875);
	for (const [a, b] of [[0.5, 0.5], [1, 1], [3, 20], [90, 5e5], [30, 1e6], [400, 600]])
		for (const p of [1e-4, 0.025, 0.3, 0.5, 0.975])
			same(betaCdf(betaQuantile(p, a, b), a, b), p, 1e-9);
});

test('intervals agree with published examples', () => {
	// Clopper-Pearson 10 of 100 and 0 of 100; Wilson 10 of 100.
	const [lo, hi] = exactInterval(10, 100, 0.95);
	same(lo, 0.04900469, 1e-6);
	same(hi, 0.17622260, 1e-6);
	same(exactInterval(0, 100, 0.95)[1], 0.03621669, 1e-6);
	const [wlo, whi] = wilsonInterval(0.1, 100, normalQuantile(0.975));
	same(wlo, 0.0552291, 1e-5);
	same(whi, 0.1743657, 1e-5);
	assert.deepEqual(proportionInterval(0, 0, 1.96), [0, 1]);
});

test('rows of a steady run have the interval of independent samples, clustered ones a wider one',
	() => {
	const random = randomOf(3), n = 4000;
	const blocks = new Blocks(0, 4e9, 1536);
	for (let i = 0; i < n; i++)
		blocks.add(blocks.index(i * 1e6), 1e6);
	blocks.finish();
	const rows = new ShareRows(blocks, 2);
	let independent = 0, clustered = 0;
	for (let i = 0; i < n; i++) {
		if (random() < 0.25) {
			rows.add(0, blocks.index(i * 1e6), 1e6);
			independent++;
		}
		if (Math.floor(i / 60) * 7 % 4 === 0) {
			rows.add(1, blocks.index(i * 1e6), 1e6);
			clustered++;
		}
	}
	const a = rows.estimate(0, independent), b = rows.estimate(1, clustered);
	assert.ok(a.deff < 1.4, `deff ${a.deff}`);
	assert.ok(b.deff > 2, `deff ${b.deff}`);
	assert.ok(b.high - b.low > 1.4 * (a.high - a.low));
	assert.ok(a.low < a.value && a.value < a.high && a.samples === independent);
});

test('rows are ranked apart only when the samples say so', () => {
	const blocks = new Blocks(0, 4e9, 1000);
	for (let i = 0; i < 1000; i++)
		blocks.add(blocks.index(i * 4e6), 1);
	blocks.finish();
	const rows = new ShareRows(blocks, 4);
	for (let i = 0; i < 1000; i++) {
		const at = blocks.index(i * 4e6);
		if (i % 2)
			rows.add(0, at, 1);
		if (i % 20 === 0)
			rows.add(1, at, 1);
		if (i % 21 === 0)
			rows.add(2, at, 1);
	}
	const e = [0, 1, 2].map(i => rows.estimate(i, 1)), none = emptyEstimate(blocks);
	assert.ok(rowsSeparable(e[0], e[1]));
	assert.ok(!rowsSeparable(e[1], e[2]));
	assert.ok(rowsSeparable(e[1], none));
	assert.ok(!rowsSeparable(none, none));
	assert.equal(none.low, 0);
	assert.ok(none.high > 0 && none.high < 0.01);
});

test('a session without samples knows nothing', () => {
	const blocks = new Blocks(0, 0, 0);
	blocks.finish();
	const e = emptyEstimate(blocks);
	assert.deepEqual([e.value, e.low, e.high, e.samples], [0, 0, 1, 0]);
});
