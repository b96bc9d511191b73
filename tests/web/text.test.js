// SPDX-License-Identifier: MIT OR Apache-2.0
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {count, duration, middle, percent, points, shareText, weight} from '../../web/format.js';
import {defaultQuery, makeProfile} from '../../web/query.js';
import {Estimate} from '../../web/stats.js';
import {table} from '../../web/table.js';
import {alignedText, rowsText, treeText} from '../../web/text.js';
import {callTree} from '../../web/tree.js';
import {demoModel, ModelBuilder} from './synthetic.js';

test('figures read as they do in the terminal', () => {
	assert.deepEqual([0.231, 0, 1, NaN].map(x => percent(x)), ['23.1 %', '0.0 %', '100.0 %', '?']);
	assert.deepEqual([0, 999, 1000, 21640, 1234567].map(count),
		['0', '999', '1,000', '21,640', '1,234,567']);
	assert.deepEqual([0, 12, 1234, 380e6, 0.99999e9, 12.4e9, 80e9, 99.96e9, 3725e9, -2e9].map(
		duration),
		['0 ns', '12.0 ns', '1.23 µs', '380 ms', '1.00 s', '12.4 s', '80.0 s', '1 min 40 s',
			'1 h 2 min', '−2.00 s']);
	assert.deepEqual([weight(5e9, 'ns'), weight(5e9, 'cycles'), weight(12, 'cycles')],
		['5.00 s', '5.00 Gcycles', '12.0 cycles']);
	assert.equal(shareText(new Estimate(0.231, 2310, 10000, 1)), '23.1 ±0.8 %');
	assert.equal(shareText(new Estimate(0, 0, 1000, 1)), '≤0.4 %');
	assert.equal(shareText({value: 0.004, low: 0.0001, high: 0.0242, samples: 1}), '0.4 ≤2.5 %');
	assert.equal(shareText({value: 0.19, low: 0.1417, high: 0.2469, samples: 47}), '19.0 ±5.3 %');
	assert.equal(shareText({value: 0.5, low: NaN, high: NaN, samples: 1}), '50.0 %');
	assert.deepEqual([0.0123, -0.2, 0.0001].map(points), ['+1.2', '−20.0', '0.0']);
	assert.deepEqual([middle('short', 10), middle('abcdefghij', 5), middle('😀😀😀😀😀😀', 3)],
		['short', 'ab…ij', '😀…😀']);
});

test('columns align, whatever the cells hold', () => {
	const text = alignedText([{title: 'n', right: true}, {title: 'name'}],
		[['1', 'a\nb'], ['100', '\u202eevil\u0007'], ['', 'é']]);
	assert.equal(text, '  n  name\n  1  a�b\n100  �evil�\n     é\n');
});

test('rows and trees are readable as text and end somewhere', () => {
	const p = makeProfile(demoModel(), defaultQuery()), rows = table(p, 'function');
	const text = rowsText(p, rows, 5);
	assert.match(text, /^ *self +total +name +where\n/);
	assert.match(text, /\n… \d+ more\n/);
	assert.ok(text.split('\n').length <= 9);
	const tree = treeText(p, callTree(p), {minShare: 0.05});
	assert.match(tree, /^  total    self\n100\.0 % +0\.0 %  all\n/);
	assert.match(tree, /    multi_thread::worker::run\n/);
	assert.ok(treeText(p, callTree(p), {minShare: 0, limit: 10}).endsWith('…\n'));
	assert.ok(!/%  {6}/.test(treeText(p, callTree(p), {minShare: 0, maxDepth: 1})));
	const empty = makeProfile(new ModelBuilder().model(), defaultQuery());
	assert.match(treeText(empty, callTree(empty)), /all/);
	assert.equal(rowsText(empty, []), 'self    total  name  where\n');
});
