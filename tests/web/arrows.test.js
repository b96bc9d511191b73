// SPDX-License-Identifier: MIT OR Apache-2.0
// @ts-nocheck: gives the modules half-made models and looks at their insides on purpose
// Arrows of jumps: which exist, and that those that overlap do not share a lane.
import test from 'node:test';
import assert from 'node:assert/strict';
import { INSN, arrowsBetween, jumpsOf, layOutArrows } from '../../web/arrows.js';

const insn = (addr, kind = INSN.PLAIN, target = 0) =>
	({addr, kind, target, len: 1, text: '', place: 0, nplaces: 0, part: false});

test('jumps to one place share an arrow; calls and jumps to outside have none', () => {
	const list = [insn(10), insn(11, INSN.BRANCH, 16), insn(12, INSN.CALL, 15),
		insn(13, INSN.JUMP, 99), insn(14, INSN.BRANCH, 16), insn(15), insn(16),
		insn(17, INSN.JUMP, 10)];
	const arrows = jumpsOf(list);
	assert.deepEqual(arrows.map(a => [a.target, a.from, a.top, a.bottom, a.loop]),
		[[0, [7], 0, 7, true], [6, [1, 4], 1, 6, false]]);
	assert.equal(layOutArrows(arrows, list.length), 2);
	assert.equal(arrows[1].lane, 0, 'the short one is next to the code');
	assert.equal(arrows[0].lane, 1);
});

test('an instruction may jump to itself', () => {
	const arrows = jumpsOf([insn(0), insn(1, INSN.JUMP, 1)]);
	assert.deepEqual([arrows[0].top, arrows[0].bottom, arrows[0].loop], [1, 1, true]);
	assert.equal(layOutArrows(arrows, 2), 1);
});

test('a target inside of an instruction has no arrow', () => {
	assert.deepEqual(jumpsOf([insn(0, INSN.JUMP, 3), insn(2), insn(5)]), []);
});

test('arrows that overlap never share a lane, whatever the jumps', () => {
	let seed = 7;
	const random = n => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) % n;
	for (let round = 0; round < 40; round++) {
		const n = 2 + random(300);
		const list = Array.from({length: n}, (_, i) =>
			random(4) ? insn(i) : insn(i, INSN.BRANCH, random(n)));
		const arrows = jumpsOf(list), lanes = 1 + random(8);
		const used = layOutArrows(arrows, n, lanes);
		assert.ok(used <= lanes);
		for (const a of arrows)
			for (const b of arrows)
				if (a !== b && a.lane >= 0 && a.lane === b.lane)
					assert.ok(a.bottom < b.top || b.bottom < a.top);
	}
});

test('arrows without a lane are shown where they begin and end only', () => {
	const list = Array.from({length: 100}, (_, i) => i < 5 ? insn(i, INSN.BRANCH, 90 + i) : insn(i));
	const arrows = jumpsOf(list);
	layOutArrows(arrows, 100, 2);
	assert.equal(arrows.filter(a => a.lane < 0).length, 3);
	assert.equal(arrowsBetween(arrows, 40, 60).length, 2);
	assert.equal(arrowsBetween(arrows, 0, 100).length, 5);
});
