// SPDX-License-Identifier: MIT OR Apache-2.0
// @ts-nocheck: gives the module half-made listings on purpose
// Rows of the source view: what was inlined stands under its call, and every instruction once.
import test from 'node:test';
import assert from 'node:assert/strict';
import { allGroups, codeRows, codeSections, hotGroups, lineText, ownPlace, sumShares } from '../../web/codelines.js';

const share = (value, half = 0.01, samples = 10) => ({value, low: Math.max(0, value - half), high: value + half, samples});
const cost = value => ({self: share(value), total: share(value * 2)});

/** f (key 7) calls g (key 8) at line 12, and g calls h (no key) at its line 40; all inlined into f. */
function listingOf() {
	const f12 = {function: 'f', key: 7, source: 0, line: 12, column: 1, inlined: false};
	const g40 = {function: 'g', key: 8, source: 1, line: 40, column: 1, inlined: true};
	const places = [
		{...f12, line: 11}, f12, g40, f12,
		{function: 'h', key: -1, source: -1, line: 3, column: 1, inlined: true}, g40, f12,
		{...f12, source: 2, line: 5}];
	const insn = (addr, place, nplaces) => ({addr, len: 4, kind: 0, text: 'nop', target: 0, place, nplaces, part: false});
	return {
		function: 7, module: 0, notes: [], files: [0, 1, 2], places,
		insns: [insn(0, 0, 1), insn(4, 1, 1), insn(8, 2, 2), insn(12, 4, 3), insn(16, 4, 3), insn(20, 7, 1), insn(24, 0, 0)],
	};
}
const sources = [
	{path: 'f.rs', first: 10, total: 30, lines: ['ten', 'eleven', 'twelve', null, null, 'fifteen'], why: '', found: 'f.rs'},
	{path: 'g.rs', first: 39, total: 50, lines: ['a', 'b'], why: '', found: 'g.rs'},
	{path: 'm.rs', first: 1, total: 0, lines: [], why: 'not found', found: ''}];

test('lines have their instructions, and inlined calls stand under them, nested', () => {
	const {sections, lineOf} = codeSections(listingOf());
	assert.deepEqual([...lineOf], [11, 12, 12, 12, 12, 0, 0]);
	const rows = codeRows(sections, sources, allGroups(sections), []);
	assert.deepEqual(rows.map(r => [r.kind, r.depth, r.line, r.group ? r.group.name : '']), [
		['line', 0, 10, ''], ['line', 0, 11, ''], ['line', 0, 12, ''], ['inline', 1, 0, 'g'], ['line', 1, 40, ''],
		['inline', 2, 0, 'h'], ['line', 2, 3, ''], ['gap', 0, 2, ''], ['line', 0, 15, ''], ['file', 0, 0, ''], ['line', 0, 5, '']]);
	assert.equal(new Set(rows.map(r => r.id)).size, rows.length, 'ids are unique');
	const own = rows.flatMap(r => r.at ? r.at.own : []).sort((a, b) => a - b);
	assert.deepEqual(own, [0, 1, 2, 3, 4, 5], 'each instruction with a place is one row’s own');
	assert.deepEqual(rows[2].at.insns, [1, 2, 3, 4]);
});

test('folded groups hide what is in them', () => {
	const {sections} = codeSections(listingOf());
	const rows = codeRows(sections, sources, new Set(), []);
	assert.equal(rows.filter(r => r.kind === 'inline').length, 1);
	assert.equal(rows.find(r => r.kind === 'inline').open, false);
});

test('what costs little stays folded', () => {
	const {sections} = codeSections(listingOf());
	const costs = [cost(0.5), cost(0.1), cost(0.1), cost(0.001), null, null, null];
	const open = hotGroups(sections, costs);
	assert.equal(open.size, 1);
	assert.ok([...open][0].endsWith('8/1/g'));
});

test('the outermost place of the function itself says the line', () => {
	const listing = listingOf();
	listing.function = 8;
	assert.equal(ownPlace(listing, 3), 1);
	assert.equal(ownPlace(listing, 6), -1);
	const {sections} = codeSections({...listing, files: [1]});
	assert.deepEqual([...sections[0].lines.keys()], [40]);
	assert.deepEqual(sections[0].lines.get(40).insns, [2, 3, 4]);
});

test('sums of intervals grow with the root of the sum of squares', () => {
	const s = sumShares([cost(0.1), null, cost(0.2)], [0, 1, 2], 'self');
	assert.ok(Math.abs(s.value - 0.3) < 1e-12);
	assert.ok(Math.abs(s.high - 0.3 - 0.01 * Math.SQRT2) < 1e-12);
	assert.equal(s.samples, 20);
});

test('a listing without files, places or instructions gives no rows', () => {
	const {sections, lineOf} = codeSections({function: 1, module: -1, notes: [], files: [], places: [], insns: []});
	assert.deepEqual(codeRows(sections, [], new Set(), []), []);
	assert.equal(lineOf.length, 0);
	assert.equal(lineText(undefined, 4), null);
	assert.equal(lineText(sources[0], 13), null);
	assert.equal(lineText(sources[0], 12), 'twelve');
});
