// SPDX-License-Identifier: MIT OR Apache-2.0
// Where the arrows of jumps stand beside a list of instructions.
//
// All jumps to one instruction share one arrow: a bar over all rows involved, with a stub at each
// jump and a head at the target. Arrows that overlap get different lanes, the short ones nearest to
// the code, so that loops nest as they do in the source. When there are more than `lanes` at one
// place, the longest have no lane (lane -1): their ends are marked, their bar is not drawn.
//
// Cost: for each arrow its length times the lanes tried, at most n * lanes per arrow; jumps of a
// function with 20,000 instructions take a few ms.

/** @typedef {import('./types.js').Insn} Insn */

/**
 * @typedef {object} Arrow
 * @property {number} target   row of the instruction jumped to
 * @property {number[]} from   rows of the jumps, ascending
 * @property {number} top      smallest and
 * @property {number} bottom   greatest of all these rows
 * @property {number} lane     0 is next to the code; -1 none
 * @property {boolean} loop    a jump comes from below its target, or from the target itself
 */

export const ARROW_LANES = 8;

/** Kinds of Insn: enum as_insn_kind of src/view/listing/listing.h. */
export const INSN = {PLAIN: 0, JUMP: 1, BRANCH: 2, CALL: 3, RETURN: 4, BAD: 5};

/**
 * Jumps within the list, by target. Jumps to outside, and into the middle of an instruction, have
 * no arrow.
 * @param {Insn[]} insns  by address
 * @returns {Arrow[]} by target
 */
export function jumpsOf(insns) {
	/** @type {Map<number, number>} */
	const rows = new Map();
	for (let i = 0; i < insns.length; i++)
		rows.set(insns[i].addr, i);
	/** @type {Map<number, number[]>} */
	const byTarget = new Map();
	for (let i = 0; i < insns.length; i++) {
		if (insns[i].kind !== INSN.JUMP && insns[i].kind !== INSN.BRANCH || !insns[i].target)
			continue;
		const target = rows.get(insns[i].target);
		if (target === undefined)
			continue;
		const list = byTarget.get(target);
		if (list)
			list.push(i);
		else
			byTarget.set(target, [i]);
	}
	return [...byTarget].sort((a, b) => a[0] - b[0]).map(([target, from]) => ({
		target, from, lane: -1, top: Math.min(target, from[0]),
		bottom: Math.max(target, from[from.length - 1]),
		loop: from[from.length - 1] >= target,
	}));
}

/**
 * Gives the arrows their lanes.
 * @param {Arrow[]} arrows  changed in place
 * @param {number} n        rows of the list
 * @param {number} [lanes]
 * @returns {number} lanes in use
 */
export function layOutArrows(arrows, n, lanes = ARROW_LANES) {
	const taken = Array.from({length: lanes}, () => new Uint8Array(n));
	const order = [...arrows].sort((a, b) => (a.bottom - a.top) - (b.bottom - b.top) ||
		a.target - b.target);
	let used = 0;
	for (const arrow of order) {
		arrow.lane = taken.findIndex(rows => {
			for (let i = arrow.top; i <= arrow.bottom; i++)
				if (rows[i])
					return false;
			return true;
		});
		if (arrow.lane < 0)
			continue;
		taken[arrow.lane].fill(1, arrow.top, arrow.bottom + 1);
		used = Math.max(used, arrow.lane + 1);
	}
	return used;
}

/**
 * The arrows to draw between two rows: those with a lane that touch the range, and those without
 * one that begin or end in it.
 * @param {Arrow[]} arrows
 * @param {number} from  first row
 * @param {number} to    behind the last
 * @returns {Arrow[]}
 */
export function arrowsBetween(arrows, from, to) {
	return arrows.filter(a => a.lane >= 0 ? a.top < to && a.bottom >= from :
		[a.target, ...a.from].some(row => row >= from && row < to));
}
