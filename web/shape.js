// SPDX-License-Identifier: MIT OR Apache-2.0
// From a profile's tree of keys to one that is drawn: turned (as src/model/profile/shape.c), without its
// lightest nodes, children in drawing order.
import {KeyTree} from './ktree.js';

/** @typedef {import('./types.js').Tree} Tree */
/** @typedef {import('./query.js').Profile} Profile */
/** @typedef {import('./query.js').Base} Base */

/**
 * Where a tree's nodes come from, for intervals.
 * @typedef {object} TreeOrigin
 * @property {Base} base
 * @property {Int32Array} node      per end of base, or per sample: its node, -1 none
 * @property {boolean} bySample
 */

/** @typedef {Tree & {origin: TreeOrigin, cut: number}} BuiltTree */
// cut: what is deeper is left out; 0: nothing is

// As in src/model/profile/shape.c: only recordings of many stacks of many thousand frames come here.
const NODES_MAX = 2 ** 21;
const STEPS_MAX = 2 ** 26;

// ---- from a tree of keys to one that is drawn ----

/**
 * Children of every node heaviest first, lower index first among equals.
 * @param {number} n
 * @param {Int32Array} parent
 * @param {Float64Array} total
 */
function heaviestFirst(n, parent, total) {
	const count = new Int32Array(n + 1);
	for (let i = 1; i < n; i++)
		count[parent[i] + 1]++;
	for (let i = 0; i < n; i++)
		count[i + 1] += count[i];
	const fill = count.slice(), child = new Int32Array(n);
	for (let i = 1; i < n; i++)
		child[fill[parent[i]]++] = i;
	const first = new Int32Array(n).fill(-1), next = new Int32Array(n).fill(-1);
	for (let i = 0; i < n; i++) {
		const from = count[i], to = count[i + 1];
		if (from === to)
			continue;
		if (to - from > 1)
			sortByWeight(child, from, to, total);
		first[i] = child[from];
		for (let k = from + 1; k < to; k++)
			next[child[k - 1]] = child[k];
	}
	return {first, next};
}

/**
 * @param {Int32Array} v
 * @param {number} from
 * @param {number} to
 * @param {Float64Array} weight
 */
function sortByWeight(v, from, to, weight) {
	if (to - from > 24) {
		v.subarray(from, to).sort((a, b) => weight[b] - weight[a] || a - b);
		return;
	}
	for (let i = from + 1; i < to; i++) {
		const x = v[i];
		let k = i;
		for (; k > from && weight[v[k - 1]] < weight[x]; k--)
			v[k] = v[k - 1];
		v[k] = x;
	}
}

/**
 * Where each box begins: in its parent, after its siblings.
 * @param {number} n
 * @param {Int32Array} first
 * @param {Int32Array} next
 * @param {Float64Array} total
 */
function placeBoxes(n, first, next, total) {
	const start = new Float64Array(n);
	for (let i = 0; i < n; i++) {
		let x = start[i];
		for (let c = first[i]; c >= 0; c = next[c]) {
			start[c] = x;
			x += total[c];
		}
	}
	return start;
}

/** @param {number} n @param {Int32Array} parent */
export function depthsOf(n, parent) {
	const depth = new Uint32Array(n);
	for (let i = 1; i < n; i++)
		depth[i] = depth[parent[i]] + 1;
	return depth;
}

/**
 * Without its nodes below `least`, and without those that no sample is left on (transforms drop
 * samples after their stacks were walked); index[node of from] = its node, or that of the nearest
 * kept one.
 * @param {KeyTree} from  summed
 * @param {number} least
 */
function pruned(from, least) {
	const n = from.n, index = new Int32Array(n), kept = new Uint8Array(n);
	let count = 1;
	kept[0] = 1;
	for (let i = 1; i < n; i++) {
		kept[i] = from.total[i] >= least && from.samples[i] && kept[from.parent[i]] ? 1 : 0;
		index[i] = kept[i] ? count++ : index[from.parent[i]];
	}
	const t = {n: count, parent: new Int32Array(count), key: new Uint32Array(count),
		self: new Float64Array(count), total: new Float64Array(count),
			samples: new Float64Array(count)};
	t.parent[0] = -1;
	for (let i = 0; i < n; i++) {
		if (!kept[i])
			continue;
		const to = index[i];
		if (i)
			t.parent[to] = index[from.parent[i]];
		t.key[to] = from.key[i];
		t.self[to] = from.self[i];
		t.total[to] = from.total[i];
		t.samples[to] = from.samples[i];
	}
	return {t, index};
}

/**
 * @param {Profile} profile
 * @param {Base} base
 * @param {{tree: KeyTree, leaf: Int32Array | null}} shape  leaf: per node of base its node; null:
 *   itself
 * @param {number} minShare
 * @returns {BuiltTree}
 */
export function drawn(profile, base, shape, minShare) {
	let t = /** @type {ReturnType<typeof pruned>['t']} */ (shape.tree), index = null;
	if (minShare > 0 || shape.tree.samples.includes(0))
		({t, index} = pruned(shape.tree, minShare * profile.weight));
	const {first, next} = heaviestFirst(t.n, t.parent, t.total);
	const node = Int32Array.from(base.nodeOfEnd, at => {
		const leaf = at < 0 || !shape.leaf ? at : shape.leaf[at];
		return leaf < 0 || !index ? leaf : index[leaf];
	});
	return {n: t.n, parent: t.parent, key: t.key, depth: depthsOf(t.n, t.parent), self: t.self,
		total: t.total, samples: t.samples, first, next,
			start: placeBoxes(t.n, first, next, t.total),
		weight: profile.weight, timeOrdered: false, cut: 0, origin: {base, node, bySample: false}};
}

// ---- shapes ----

/**
 * Paths from `origins` upwards, all at once and level by level, so that light branches stop being
 * followed early.
 * @param {Base} base
 * @param {{origins: Int32Array, whole: boolean, groups: boolean, least: number}} o
 *   whole: an origin weighs what its subtree does; groups: paths end below the first level
 */
export function upwards(base, o) {
	const from = base.tree, tree = new KeyTree(4096);
	const weightOf = o.whole ? from.total : from.self;
	const samplesOf = o.whole ? from.samples : from.selfSamples;
	const leaf = new Int32Array(from.n).fill(-1);
	let weight = new Float64Array(4096);
	// Walkers: the weight of `origin`, seen at `at` on its way up, standing in `node`.
	const origin = o.origins.slice(), at = o.origins.slice();
	const node = new Int32Array(origin.length);
	let n = origin.length, steps = 0;
	for (let i = 0; i < n; i++)
		leaf[origin[i]] = node[i];
	while (n > 0) {
		const last = (steps += n) > STEPS_MAX;
		let kept = 0;
		for (let i = 0; i < n; i++) {
			const a = at[i];
			leaf[origin[i]] = node[i];
			if (last || a === 0 || (o.groups && from.parent[a] === 0) || tree.n >= NODES_MAX)
				continue;
			const to = tree.child(node[i], from.key[a]);
			if (to >= weight.length) {
				const more = new Float64Array(weight.length * 2);
				more.set(weight);
				weight = more;
			}
			weight[to] += weightOf[origin[i]];
			leaf[origin[i]] = to;
			origin[kept] = origin[i];
			at[kept] = from.parent[a];
			node[kept++] = to;
		}
		n = kept;
		kept = 0;
		for (let i = 0; i < n; i++) {
			if (weight[node[i]] < o.least)
				continue;
			origin[kept] = origin[i];
			at[kept] = at[i];
			node[kept++] = node[i];
		}
		n = kept;
	}
	tree.count();
	for (let i = 0; i < o.origins.length; i++) {
		const to = leaf[o.origins[i]];
		tree.self[to] += weightOf[o.origins[i]];
		tree.selfSamples[to] += samplesOf[o.origins[i]];
	}
	tree.sum();
	return {tree, leaf};
}

/**
 * @param {Profile} profile
 * @param {Base} base
 * @param {number} minShare
 */
export function inverted(profile, base, minShare) {
	const from = base.tree, origins = [];
	for (let i = 0; i < from.n; i++)
		if (from.selfSamples[i])
			origins.push(i);
	return upwards(base, {origins: Int32Array.from(origins), whole: false, groups: false,
		least: minShare * profile.weight});
}

/**
 * As the last step of every path its thread would stand at the bottom; so paths are walked thread
 * by thread and put together.
 * @param {Profile} profile
 * @param {Base} base
 * @param {number} minShare
 */
export function invertedGroups(profile, base, minShare) {
	const from = base.tree, tree = new KeyTree(4096);
	const leaf = new Int32Array(from.n).fill(-1), top = new Int32Array(from.n);
	for (let i = 1; i < from.n; i++)
		top[i] = from.parent[i] === 0 ? i : top[from.parent[i]];
	/** @type {Map<number, number[]>} */
	const byTop = new Map();
	for (let i = 0; i < from.n; i++) {
		if (!from.selfSamples[i])
			continue;
		const list = byTop.get(top[i]);
		if (list)
			list.push(i);
		else
			byTop.set(top[i], [i]);
	}
	for (const [thread, list] of byTop) {
		const origins = Int32Array.from(list);
		const part = upwards(base, {origins, whole: false, groups: true,
			least: minShare * profile.weight});
		const to = new Int32Array(part.tree.n);
		to[0] = thread ? tree.child(0, from.key[thread]) : 0;
		for (let i = 1; i < part.tree.n; i++)
			to[i] = tree.child(to[part.tree.parent[i]], part.tree.key[i]);
		for (const i of list)
			leaf[i] = to[part.leaf[i]];
	}
	tree.count();
	for (const list of byTop.values()) {
		for (const i of list) {
			tree.self[leaf[i]] += from.self[i];
			tree.selfSamples[leaf[i]] += from.selfSamples[i];
		}
	}
	tree.sum();
	return {tree, leaf};
}

/**
 * Per node the outermost one at or above it with the key, -1 none.
 * @param {KeyTree} t
 * @param {number} key
 */
export function outermostWith(t, key) {
	const of = new Int32Array(t.n).fill(-1);
	for (let i = 1; i < t.n; i++) {
		of[i] = of[t.parent[i]];
		if (of[i] < 0 && t.key[i] === key)
			of[i] = i;
	}
	return of;
}
