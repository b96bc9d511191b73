// SPDX-License-Identifier: MIT OR Apache-2.0
// Call trees of a profile: top-down, inverted, callers and callees of a key, in time order; the
// intervals of their nodes; search. No function recurses.
import {compilePattern} from './filter.js';
import {KeyTree} from './ktree.js';
import {runPass, shareOfEnds} from './pass.js';
import {drawn, inverted, invertedGroups, outermostWith, upwards} from './shape.js';
import {timeTree} from './timetree.js';

/** @typedef {import('./types.js').Tree} Tree */
/** @typedef {import('./types.js').Share} Share */
/** @typedef {import('./query.js').Profile} Profile */
/** @typedef {import('./shape.js').BuiltTree} BuiltTree */

/**
 * @typedef {object} TreeOptions
 * @property {boolean} [inverted]
 * @property {'' | 'thread' | 'process'} [group]
 * @property {'weight' | 'time'} [order]
 * @property {number} [minShare]  lighter nodes are left out (their weight stays in their parents)
 */

const INVERTED_MIN_SHARE = 1e-5;
const INTERVAL_MIN_SHARE = 0.0005;

// ---- trees ----

/**
 * "all" -> the key -> who calls it, …
 * @param {Profile} profile
 * @param {number} key
 * @param {number} [minShare]
 * @returns {BuiltTree}
 */
export function callersTree(profile, key, minShare = INVERTED_MIN_SHARE) {
	const base = profile.base('function', ''), of = outermostWith(base.tree, key);
	const origins = [];
	for (let i = 0; i < base.tree.n; i++)
		if (of[i] === i)
			origins.push(i);
	const shape = upwards(base, {origins: Int32Array.from(origins), whole: true,
		groups: false, least: minShare * profile.weight});
	for (let i = 0; i < base.tree.n; i++)
		if (of[i] >= 0)
			shape.leaf[i] = shape.leaf[of[i]];
	return drawn(profile, base, shape, 0);
}

/**
 * "all" -> the key -> whom it calls, …
 * @param {Profile} profile
 * @param {number} key
 * @param {number} [minShare]
 * @returns {BuiltTree}
 */
export function calleesTree(profile, key, minShare = 0) {
	const base = profile.base('function', ''), from = base.tree, of = outermostWith(from, key);
	const tree = new KeyTree(4096), leaf = new Int32Array(from.n).fill(-1);
	for (let i = 1; i < from.n; i++)
		if (of[i] >= 0)
			leaf[i] = tree.child(of[i] === i ? 0 : leaf[from.parent[i]], from.key[i]);
	tree.count();
	for (let i = 1; i < from.n; i++) {
		if (leaf[i] < 0)
			continue;
		tree.self[leaf[i]] += from.self[i];
		tree.selfSamples[leaf[i]] += from.selfSamples[i];
	}
	tree.sum();
	return drawn(profile, base, {tree, leaf}, minShare);
}

/**
 * @param {Profile} profile
 * @param {TreeOptions} [o]
 * @returns {BuiltTree}
 */
export function callTree(profile, o = {}) {
	if (o.order === 'time')
		return timeTree(profile);
	const base = profile.base('function', o.group ?? '');
	if (!o.inverted)
		return drawn(profile, base, {tree: base.tree, leaf: null}, o.minShare ?? 0);
	const least = o.minShare ?? INVERTED_MIN_SHARE;
	const shape = o.group ? invertedGroups(profile, base, least) : inverted(profile, base, least);
	return drawn(profile, base, shape, 0);
}

// ---- figures of nodes ----

/**
 * @param {Profile} profile
 * @param {Tree} tree  of this profile
 * @param {number} node
 * @returns {Share} of its total
 */
export function nodeShare(profile, tree, node) {
	const {base, node: nodeOf, bySample} = /** @type {BuiltTree} */ (tree).origin;
	const below = new Uint8Array(tree.n);
	below[node] = 1;
	for (let i = node + 1; i < tree.n; i++)
		below[i] = below[tree.parent[i]];
	const marked = Uint8Array.from(nodeOf, at => at >= 0 ? below[at] : 0);
	return shareOfEnds(profile, bySample ? sampleIds(base.endOf) : base.endOf, marked);
}

/**
 * @param {Profile} profile
 * @param {Tree} tree  of this profile
 * @param {number} node
 * @returns {Share} of its self
 */
export function nodeSelfShare(profile, tree, node) {
	const {base, node: nodeOf, bySample} = /** @type {BuiltTree} */ (tree).origin;
	const marked = Uint8Array.from(nodeOf, at => at === node ? 1 : 0);
	return shareOfEnds(profile, bySample ? sampleIds(base.endOf) : base.endOf, marked);
}

/** Each sample that counts is its own end. @param {Int32Array} endOf */
function sampleIds(endOf) {
	return endOf.map((end, i) => end < 0 ? -1 : i);
}

/**
 * Intervals of the totals of all nodes that weigh at least minShare; NaN elsewhere.
 * @param {Profile} profile
 * @param {Tree} tree
 * @param {number} [minShare]
 */
export function nodeShares(profile, tree, minShare = INTERVAL_MIN_SHARE) {
	const {base, node, bySample} = /** @type {BuiltTree} */ (tree).origin;
	const row = new Int32Array(tree.n).fill(-1), stands = new Uint8Array(tree.n);
	let rows = 0;
	for (let i = 0; i < tree.n; i++)
		if (tree.total[i] >= minShare * profile.weight)
			row[i] = rows++;
	for (const at of node)
		if (at >= 0)
			stands[at] = 1;
	const shares = runPass(profile, {tree, stands, nodeOfEnd: node,
		endOf: bySample ? sampleIds(base.endOf) : base.endOf,
		selfRow: null, totalRow: row, nrows: rows});
	const low = new Float64Array(tree.n).fill(NaN), high = low.slice();
	for (let i = 0; i < tree.n; i++) {
		if (row[i] < 0)
			continue;
		const e = shares.estimate(row[i], tree.samples[i]);
		low[i] = e.low;
		high[i] = e.high;
	}
	return {low, high};
}

/**
 * Keys from the outermost frame to the node's own; "all" is left out.
 * @param {Tree} tree
 * @param {number} node
 */
export function nodePath(tree, node) {
	const keys = [];
	for (let i = node; i > 0; i = tree.parent[i])
		keys.push(tree.key[i]);
	return keys.reverse();
}

// ---- search ----

/**
 * Which keys a reader's text means: a part of the name, whatever its case; or /expression/.
 * @param {Profile} profile
 * @param {string} text
 */
export function searchNames(profile, text) {
	const matches = new Uint8Array(profile.keyCount), names = profile.names,
		f = profile.model.functions;
	if (!text)
		return matches;
	const strings = profile.model.strings, known = new Uint8Array(strings.length);
	const expression = /^\/(.+)\/i?$/.exec(text);
	const re = expression ? compilePattern('search', expression[1]) : null,
		low = text.toLowerCase();
	const test = (/** @type {string} */ s) => re ? re.test(s) : s.toLowerCase().includes(low);
	const testId = (/** @type {number} */ id) => {
		if (!known[id])
			known[id] = test(strings[id]) ? 2 : 1;
		return known[id] === 2;
	};
	for (let i = 0; i < f.n; i++)
		if (testId(f.brief[i]) || testId(f.full[i]))
			matches[names.functionKey[i]] = matches[i] = 1;
	for (let key = names.threads; key < names.crates; key++)
		matches[key] = test(profile.name(key).brief) ? 1 : 0;
	for (let i = 0; i < f.n; i++)
		if (strings[f.crate[i]])
			matches[names.crates + f.crate[i]] = testId(f.crate[i]) ? 1 : 0;
	return matches;
}

/**
 * The samples with a frame that matches, each once.
 * @param {Profile} profile
 * @param {Uint8Array} matches  per key
 * @returns {Share}
 */
export function searchShare(profile, matches) {
	const base = profile.base('function', ''), on = onPath(base.tree, matches);
	const marked = Uint8Array.from(base.nodeOfEnd, at => at >= 0 ? on[at] : 0);
	return shareOfEnds(profile, base.endOf, marked);
}

/**
 * Per node 1 when it or one above it matches.
 * @param {{n: number, parent: Int32Array, key: Uint32Array}} t
 * @param {Uint8Array} matches
 */
export function onPath(t, matches) {
	const on = new Uint8Array(t.n);
	for (let i = 1; i < t.n; i++)
		on[i] = on[t.parent[i]] || matches[t.key[i]] ? 1 : 0;
	return on;
}

/**
 * How many frames nearly all samples have at the outer end of their stacks.
 * @param {import('./types.js').Tree} tree
 * @returns {number} depth of the first frame that less than nine tenths of the samples have
 */
export function branchDepth(tree) {
	let node = 0, depth = 0;
	for (;;) {
		let best = -1;
		for (let c = tree.first[node]; c >= 0; c = tree.next[c])
			if (best < 0 || tree.total[c] > tree.total[best])
				best = c;
		if (best < 0)
			return depth;
		depth = tree.depth[best];
		if (tree.total[best] < 0.9 * tree.weight)
			return depth;
		node = best;
	}
}
