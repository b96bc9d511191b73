// SPDX-License-Identifier: MIT OR Apache-2.0
// Single stacks of a session, as functions with their lines.

/** @typedef {import('./types.js').Model} Model */

/**
 * Functions of a stack, innermost first, inlined ones among them.
 * @param {Model} model
 * @param {number} stack  -1: none
 */
export function stackFunctions(model, stack) {
	const {stacks, frames, places} = model;
	/** @type {{function: number, file: number, line: number}[]} */
	const list = [];
	for (let s = stack; s >= 0; s = stacks.parent[s]) {
		const f = stacks.frame[s];
		for (let i = 0; i < frames.nchain[f]; i++) {
			const p = frames.chain[f] + i;
			list.push({function: places.function[p], file: places.file[p], line: places.line[p]});
		}
	}
	return list;
}
