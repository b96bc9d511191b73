// SPDX-License-Identifier: MIT OR Apache-2.0
// Rows: self and total per key with intervals (as src/model/profile/rows.c); the figures of one key, of the
// lines of a file, of the instructions of a function.
import {emptyEstimate, rowsSeparable, ShareRows} from './stats.js';
import {KeyTree, outermostOf} from './ktree.js';
import {runPass, shareOfEnds} from './pass.js';
import {calleesTree, callersTree} from './tree.js';
import {FRAME_EXACT} from './model.js';

/** @typedef {import('./types.js').Row} Row */
/** @typedef {import('./types.js').Share} Share */
/** @typedef {import('./types.js').By} By */
/** @typedef {import('./query.js').Profile} Profile */
/** @typedef {import('./query.js').Base} Base */
/** @typedef {import('./stats.js').Estimate} Estimate */
/** @typedef {{self: Share, total: Share}} Cost */

/**
 * Self and total of every row over the nodes of a tree.
 * @param {Profile} profile
 * @param {{tree: KeyTree, nodeOfEnd: Int32Array, endOf: Int32Array}} base  tree with its sums
 * @param {Int32Array} rowOf  per node, -1 none
 * @param {number} nrows
 * @returns {{self: Estimate, total: Estimate}[]}
 */
function sumRows(profile, base, rowOf, nrows) {
	const t = base.tree, outermost = outermostOf(t, rowOf, nrows);
	const selfRow = new Int32Array(t.n).fill(-1), totalRow = selfRow.slice();
	const samples = new Float64Array(2 * nrows), stands = new Uint8Array(t.n);
	for (let i = 0; i < t.n; i++) {
		stands[i] = t.selfSamples[i] ? 1 : 0;
		const row = rowOf[i];
		if (row < 0)
			continue;
		selfRow[i] = row + nrows;
		samples[row + nrows] += t.selfSamples[i];
		if (outermost[i]) {
			totalRow[i] = row;
			samples[row] += t.samples[i];
		}
	}
	const shares = runPass(profile, {tree: t, stands, nodeOfEnd: base.nodeOfEnd, endOf: base.endOf,
		selfRow, totalRow, nrows: 2 * nrows});
	const none = emptyEstimate(profile.blocks);
	const of = (/** @type {number} */ row) =>
		samples[row] ? shares.estimate(row, samples[row]) : none;
	return Array.from({length: nrows}, (_, row) => ({self: of(row + nrows), total: of(row)}));
}

/**
 * @param {Profile} profile
 * @param {{key: number, self: Estimate, total: Estimate}[]} drafts
 * @returns {Row[]}
 */
function sorted(profile, drafts) {
	drafts.sort((a, b) => b.self.value - a.self.value || b.total.value - a.total.value ||
		compareBytes(profile.name(a.key).brief, profile.name(b.key).brief));
	return drafts.map((d, i) => ({...d, tied: i + 1 < drafts.length &&
		!rowsSeparable(d.self, drafts[i + 1].self)}));
}

/**
 * What is to be said of a row that only one of a session's runs has; '' of all others.
 * @param {import('./types.js').Model} model
 * @param {import('./types.js').Share} total
 */
export function oneRunText(model, total) {
	return total.runs === 1 && total.samples > 1 ? `in one run of ${model.trials.n}` : '';
}

/** @param {string} a @param {string} b */
function compareBytes(a, b) {
	return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * Threads and processes: frames do not matter.
 * @param {Profile} profile
 * @param {'thread' | 'process'} by
 * @param {(key: number) => number} [same]
 */
function taskTable(profile, by, same = key => key) {
	const {model, names, lo, blocks} = profile, {thread, time, weight} = model.samples;
	const {endOf} = profile.base('function', '');
	const n = by === 'thread' ? model.threads.length : model.processes.length;
	const firstKey = by === 'thread' ? names.threads : names.processes;
	const rowOf = Int32Array.from({length: n}, (_, i) => same(firstKey + i) - firstKey);
	const rows = new ShareRows(blocks, n), samples = new Float64Array(n);
	for (let i = 0; i < endOf.length; i++) {
		if (endOf[i] < 0)
			continue;
		const t = thread[lo + i], row = rowOf[by === 'thread' ? t : model.threads[t].process];
		rows.add(row, blocks.index(time[lo + i]), weight[lo + i]);
		samples[row]++;
	}
	const drafts = [];
	for (let i = 0; i < n; i++) {
		if (!samples[i])
			continue;
		const e = rows.estimate(i, samples[i]);
		drafts.push({key: firstKey + i, self: e, total: e});
	}
	return sorted(profile, drafts);
}

/** @type {WeakMap<Profile, Map<By, Row[]>>} */
const tablesKept = new WeakMap();

/**
 * All rows, by self, heaviest first; made once per profile, as several views begin with them.
 * @param {Profile} profile
 * @param {By} by
 * @param {(key: number) => number} [same]  the key that stands for a key: rows put together
 * @returns {Row[]}  to be read only
 */
export function table(profile, by, same) {
	if (same)
		return makeTable(profile, by, same);
	const kept = tablesKept.get(profile) ?? new Map(), rows = kept.get(by) ?? makeTable(profile, by, key => key);
	tablesKept.set(profile, kept.set(by, rows));
	return rows;
}

/**
 * @param {Profile} profile
 * @param {By} by
 * @param {(key: number) => number} same
 * @returns {Row[]}
 */
function makeTable(profile, by, same) {
	if (by === 'thread' || by === 'process')
		return taskTable(profile, by, same);
	const base = profile.base(by, ''), t = base.tree, names = profile.names;
	const rowOfKey = new Int32Array(profile.keyCount).fill(-1),
		rowOf = new Int32Array(t.n).fill(-1);
	/** @type {number[]} */
	const keys = [];
	for (let i = 1; i < t.n; i++) {
		const key = t.key[i];
		if (rowOfKey[key] < 0) {
			const main = same(key);
			if (rowOfKey[main] < 0)
				rowOfKey[main] = keys.push(main) - 1;
			rowOfKey[key] = rowOfKey[main];
		}
		rowOf[i] = rowOfKey[key];
	}
	// A marker is a place in a tree; it is a row only where it holds samples itself.
	const drafts = sumRows(profile, base, rowOf, keys.length)
		.map((r, i) => ({key: keys[i], ...r}))
		.filter(r => r.self.samples || (r.total.samples && !names.isMarker(r.key)));
	return sorted(profile, drafts);
}

/**
 * @param {Profile} profile
 * @param {number} key  of a function, or of a thread or process
 * @returns {Cost}
 */
export function keyShare(profile, key) {
	const base = profile.base('function', ''), t = base.tree, {names} = profile;
	if (key >= names.threads && key < names.modules) {
		const row = taskTable(profile, key < names.processes ? 'thread' : 'process')
			.find(r => r.key === key);
		const none = emptyEstimate(profile.blocks);
		return row ? {self: row.self, total: row.total} : {self: none, total: none};
	}
	const on = new Uint8Array(t.n);
	for (let i = 1; i < t.n; i++)
		on[i] = on[t.parent[i]] || t.key[i] === key ? 1 : 0;
	const {nodeOfEnd, endOf} = base;
	const self = Uint8Array.from(nodeOfEnd, at => at > 0 && t.key[at] === key ? 1 : 0);
	const total = Uint8Array.from(nodeOfEnd, at => at > 0 ? on[at] : 0);
	return {self: shareOfEnds(profile, endOf, self), total: shareOfEnds(profile, endOf, total)};
}

/**
 * @param {Profile} profile
 * @param {number} key
 */
export function sandwich(profile, key) {
	return {...keyShare(profile, key), callers: callersTree(profile, key),
		callees: calleesTree(profile, key)};
}

// ---- lines and addresses ----

/**
 * Costs of a file's lines: self where the line is the innermost one (inlined code counts at its own
 * lines), total where it stands anywhere in the stack, once per sample.
 * @param {Profile} profile
 * @param {string} path  as places have it
 * @returns {Map<number, Cost>}
 */
export function lineCosts(profile, path) {
	const base = profile.base('line', ''), t = base.tree, {names, model} = profile;
	const rowOf = new Int32Array(t.n).fill(-1), isFile = new Uint8Array(model.strings.length);
	model.strings.forEach((s, i) => {
		if (s === path)
			isFile[i] = 1;
	});
	/** @type {Map<number, number>} */
	const rows = new Map();
	for (let i = 1; i < t.n; i++) {
		const {file, line} = names.fileAndLine(t.key[i]);
		if (!isFile[file] || !line)
			continue;
		let row = rows.get(line);
		if (row === undefined)
			rows.set(line, row = rows.size);
		rowOf[i] = row;
	}
	const costs = sumRows(profile, base, rowOf, rows.size);
	return new Map(Array.from(rows, ([line, row]) => [line, costs[row]]));
}

/**
 * Weight of the samples taken in a function's code, what was inlined into it included.
 * @param {Profile} profile
 * @returns {Float64Array} by function
 */
export function codeWeights(profile) {
	const {stacks, samples, frames, places, functions} = profile.model, {endOf} = profile.base('function', '');
	const ofFrame = new Float64Array(frames.n), of = new Float64Array(functions.n);
	for (let i = 0; i < endOf.length; i++) {
		const stack = endOf[i] < 0 ? -1 : samples.stack[profile.lo + i];
		if (stack >= 0)
			ofFrame[stacks.frame[stack]] += samples.weight[profile.lo + i];
	}
	for (let i = 0; i < frames.n; i++) {
		const from = frames.chain[i], n = frames.nchain[i];
		for (let k = from; ofFrame[i] && k < from + n; k++) {
			const f = places.function[k]; // in a chain more than once: its recursion was inlined
			if (places.function.subarray(from, k).indexOf(f) < 0)
				of[f] += ofFrame[i];
		}
	}
	return of;
}

/**
 * Per frame the instruction it stands on: -1 another function's, -2 the frame does not count.
 * @param {Profile} profile
 * @param {number} module
 * @param {{addr: number, len: number}[]} insns
 */
function insnOfFrames(profile, module, insns) {
	const {frames} = profile.model, {first} = profile.frameKeys('function');
	const of = new Int32Array(frames.n).fill(-1);
	for (let i = 0; i < frames.n; i++) {
		if (first[i] === first[i + 1])
			of[i] = -2;
		if (of[i] === -2 || frames.module[i] !== module)
			continue;
		// A return address stands behind the call that counts.
		const addr = frames.flags[i] & FRAME_EXACT ? frames.addr[i] : frames.addr[i] - 1;
		let lo = 0, hi = insns.length;
		while (lo < hi) {
			const mid = lo + hi >>> 1;
			if (insns[mid].addr <= addr)
				lo = mid + 1;
			else
				hi = mid;
		}
		if (lo > 0 && addr < insns[lo - 1].addr + Math.max(insns[lo - 1].len, 1))
			of[i] = lo - 1;
	}
	return of;
}

/**
 * Costs of instructions: self where the sample was taken there, total where it stands in the stack.
 * @param {Profile} profile
 * @param {number} module
 * @param {{addr: number, len: number}[]} insns  by address
 * @returns {(Cost | null)[]} null: no sample
 */
export function addressCosts(profile, module, insns) {
	const {stacks, samples} = profile.model, of = insnOfFrames(profile, module, insns);
	const other = insns.length, tree = new KeyTree(1024), node = new Int32Array(stacks.n);
	for (let i = 0; i < stacks.n; i++) {
		const up = stacks.parent[i] < 0 ? 0 : node[stacks.parent[i]], insn = of[stacks.frame[i]];
		if (insn >= 0)
			node[i] = tree.child(up, insn);
		else // all of other functions' frames in a row are one
			node[i] = insn === -2 || up === 0 || tree.key[up] === other ? up :
				tree.child(up, other);
	}
	tree.count();
	const kept = profile.base('function', '').endOf;
	const endOf = kept.map((end, i) => end < 0 ? -1 : samples.stack[profile.lo + i]);
	for (let i = 0; i < endOf.length; i++) {
		if (endOf[i] < 0)
			continue;
		tree.self[node[endOf[i]]] += samples.weight[profile.lo + i];
		tree.selfSamples[node[endOf[i]]]++;
	}
	tree.sum();
	const rowOf = Int32Array.from(tree.key, (key, i) => i && key < other ? key : -1);
	return sumRows(profile, {tree, nodeOfEnd: node, endOf}, rowOf, other)
		.map(cost => cost.total.samples ? cost : null);
}

// ---- trees as rows ----

/**
 * A node's children in drawing order.
 * @param {import('./types.js').Tree} tree
 * @param {number} node
 */
export function childrenOf(tree, node) {
	const list = [];
	for (let c = tree.first[node]; c >= 0; c = tree.next[c])
		list.push(c);
	return list;
}
