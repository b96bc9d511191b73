// SPDX-License-Identifier: MIT OR Apache-2.0
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {QueryError} from '../../web/filter.js';
import {makeProfile} from '../../web/query.js';
import {decodeState, defaultState, encodeState} from '../../web/state.js';
import {demoModel, randomOf} from './synthetic.js';

/** @typedef {import('../../web/page.js').PageState} PageState */

const model = demoModel();

/** @type {PageState} */
const FULL = {
	view: 'flame', f: 3, search: 'a b&c=d#e%f"\'<script>é', by: 'crate',
	more: {'flame.zoom': '12,0.5', 'source.line': '=&#', 'tree.open': ''},
	query: {from: 1, to: 2 ** 52, threads: [2, 0], focus: '^a|b+', ignore: '&', hide: '<\u2028>',
		transforms: [{kind: 'focus', f: 1}, {kind: 'fold', name: 'std'}, {kind: 'recursion'},
			{kind: 'recursion', f: 2}, {kind: 'crate', f: 0}, {kind: 'drop', f: 4},
				{kind: 'merge', f: 5}],
		noInline: true, noKernel: true, generics: false, measure: 'live', plumbing: true,
		at: 1, since: 1},
};

test('a state comes back from its address', () => {
	const {'tree.open': _, ...more} = FULL.more;
	assert.deepEqual(decodeState(encodeState(FULL)), {...FULL, more});
	// A session of time has no moments.
	assert.deepEqual(decodeState('#' + encodeState(FULL), model), {...FULL, more, query: {...FULL.query, at: 0, since: 0}});
	assert.deepEqual(decodeState(encodeState(defaultState())), defaultState());
	assert.equal(encodeState(defaultState()), '');
	assert.match(encodeState(FULL), /^[\x21-\x7e]*$/);
});

test('half a character in a search does not break the address', () => {
	assert.equal(decodeState(encodeState({...defaultState(), search: 'a\ud800'})).search,
		'a\ufffd');
});

test('what is unknown, out of range or of the wrong kind is left out, the rest stays', () => {
	const s = decodeState(
		'view=evil&f=99999999&by=nothing&new=1&search=ok&threads=0,x,77,1&from=9&to=3' +
		'&change=focus:999999999,explode:1,merge:2,fold:<b>,drop,focus:-1&flame.zoom=1&__proto__=1&toString=2' +
		'&constructor.prototype=3&more=%E0%A4%A', model);
	assert.deepEqual(s,
		{...defaultState(), search: 'ok', more: {'flame.zoom': '1', 'constructor.prototype': '3'},
		query: {...defaultState().query, threads: [0, 1], transforms: [{kind: 'merge', f: 2}]}});
	assert.equal(/** @type {any} */ ({}).flame, undefined);
});

test('an address without end is cut, not followed', () => {
	const s = decodeState('search=' + 'x'.repeat(1e6) + '&f=1');
	assert.equal(s.search.length, 500);
	const many = decodeState(Array.from({length: 5000}, (_, i) => `a.b${i}=1`).join('&'));
	assert.ok(Object.keys(many.more).length <= 50);
	assert.ok(decodeState('change=' + 'recursion,'.repeat(1e5)).query.transforms.length <= 100);
});

test('any text as address gives a state that a profile can be made of, or says which field is bad',
	() => {
	const random = randomOf(5), parts = ['view=', 'f=', 'focus=', 'hide=', 'change=', 'focus:',
		'crate:', '1', '25',
		'999', '&', ',', '%', '(', 'a*', '+', '#', 'threads=', 'from=', 'to=', '1e3', 'fold:std',
			' ', '\u0000', 'folded'];
	for (let i = 0; i < 400; i++) {
		let text = '';
		for (let k = 0; k < 12; k++)
			text += parts[Math.floor(random() * parts.length)];
		const state = decodeState(text, model);
		assert.deepEqual(decodeState(encodeState(state), model), state, text);
		try {
			makeProfile(model, state.query);
		} catch (e) {
			assert.ok(e instanceof QueryError, String(e));
		}
	}
});
