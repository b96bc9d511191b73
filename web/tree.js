// SPDX-License-Identifier: MIT OR Apache-2.0
// Call trees of a profile: top-down, inverted, callers and callees of a key, in time order; the
// intervals of their nodes; search. As src/model/{shape,nodes}.c. No function recurses.
import {childLists, KeyTree} from './ktree.js';
import {runPass, shareOfEnds} from './pass.js';
import {compilePattern} from './filter.js';

/** @typedef {import('./types.js').Tree} Tree */
/** @typedef {import('./types.js').Share} Share */
/** @typedef {import('./query.js').Profile} Profile */
/** @typedef {import('./query.js').Base} Base */

/**
 * @typedef {object} TreeOptions
 * @property {boolean} [inverted]
 * @property {'' | 'thread' | 'process'} [group]
 * @property {'weight' | 'time'} [order]
 * @property {number} [minShare]  lighter nodes are left out (their weight stays in their parents)
 */

/**
 * Where a tree's nodes come from, for intervals.
 * @typedef {object} TreeOrigin
 * @property {Base} base
 * @property {Int32Array} node      per end of base, or per sample: its node, -1 none
 * @property {boolean} bySample
 */

/** @typedef {Tree & {origin: TreeOrigin, cut: number}} BuiltTree  cut: deeper is left out; 0 nothing is */

// As in src/model/shape.c: only recordings of many stacks of many thousand frames come here.
const NODES_MAX = 2 ** 21;
const STEPS_MAX = 2 ** 26;
const INVERTED_MIN_SHARE = 1e-5;
const INTERVAL_MIN_SHARE = 0.0005;

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
function depthsOf(n, parent) {
	const depth = new Uint32Array(n);
	for (let i = 1; i < n; i++)
		depth[i] = depth[parent[i]] + 1;
	return depth;
}

/**
 * Without its nodes below `least`, and without those that no sample is left on (transforms drop
 * samples after their stacks were walked); index[node of from] = its node, or that of the nearest kept one.
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
		self: new Float64Array(count), total: new Float64Array(count), samples: new Float64Array(count)};
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
 * @param {{tree: KeyTree, leaf: Int32Array | null}} shape  leaf: per node of base its node; null: itself
 * @param {number} minShare
 * @returns {BuiltTree}
 */
function drawn(profile, base, shape, minShare) {
	let t = /** @type {ReturnType<typeof pruned>['t']} */ (shape.tree), index = null;
	if (minShare > 0 || shape.tree.samples.includes(0))
		({t, index} = pruned(shape.tree, minShare * profile.weight));
	const {first, next} = heaviestFirst(t.n, t.parent, t.total);
	const node = Int32Array.from(base.nodeOfEnd, at => {
		const leaf = at < 0 || !shape.leaf ? at : shape.leaf[at];
		return leaf < 0 || !index ? leaf : index[leaf];
	});
	return {n: t.n, parent: t.parent, key: t.key, depth: depthsOf(t.n, t.parent), self: t.self,
		total: t.total, samples: t.samples, first, next, start: placeBoxes(t.n, first, next, t.total),
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
function upwards(base, o) {
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
function inverted(profile, base, minShare) {
	const from = base.tree, origins = [];
	for (let i = 0; i < from.n; i++)
		if (from.selfSamples[i])
			origins.push(i);
	return upwards(base, {origins: Int32Array.from(origins), whole: false, groups: false,
		least: minShare * profile.weight});
}

/**
 * As the last step of every path its thread would stand at the bottom; so paths are walked thread by
 * thread and put together.
 * @param {Profile} profile
 * @param {Base} base
 * @param {number} minShare
 */
function invertedGroups(profile, base, minShare) {
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
function outermostWith(t, key) {
	const of = new Int32Array(t.n).fill(-1);
	for (let i = 1; i < t.n; i++) {
		of[i] = of[t.parent[i]];
		if (of[i] < 0 && t.key[i] === key)
			of[i] = i;
	}
	return of;
}

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

// ---- in time order ----

/** Kept samples thread by thread, heaviest thread first. @param {Profile} profile @param {Base} base */
function byThread(profile, base) {
	const {thread, weight} = profile.model.samples, threads = profile.model.threads.length;
	const sums = new Float64Array(threads), count = new Int32Array(threads);
	for (let i = 0; i < base.endOf.length; i++) {
		if (base.endOf[i] < 0)
			continue;
		sums[thread[profile.lo + i]] += weight[profile.lo + i];
		count[thread[profile.lo + i]]++;
	}
	const ids = Array.from(sums.keys()).filter(t => count[t]).sort((a, b) => sums[b] - sums[a] || a - b);
	const fill = new Int32Array(threads);
	let at = 0;
	for (const t of ids) {
		fill[t] = at;
		at += count[t];
	}
	const order = new Int32Array(at);
	for (let i = 0; i < base.endOf.length; i++)
		if (base.endOf[i] >= 0)
			order[fill[thread[profile.lo + i]]++] = i;
	return {ids, count, order};
}

/** The deepest level at which all boxes down to it are few enough. @param {Float64Array} steps */
function deepestLevel(steps) {
	let boxes = 0, open = 0;
	for (let d = 0; d < steps.length; d++) {
		open += steps[d];
		boxes += open;
		if (boxes > NODES_MAX)
			return Math.max(1, d - 1);
	}
	return steps.length;
}

/**
 * Nodes of the base tree from which two paths differ.
 * @param {KeyTree} t
 * @param {Uint32Array} depth
 * @param {number} a
 * @param {number} b
 */
function meetingPoint(t, depth, a, b) {
	while (a !== b) {
		if (depth[a] >= depth[b])
			a = t.parent[a];
		else
			b = t.parent[b];
	}
	return a;
}

/**
 * @param {Profile} profile
 * @returns {BuiltTree}
 */
function timeTree(profile) {
	const base = profile.base('function', ''), from = base.tree, depth = depthsOf(from.n, from.parent);
	const {ids, count, order} = byThread(profile, base);
	// How many boxes begin at each depth, as steps: one for each frame below where neighbours meet.
	let deepest = 0;
	for (let i = 0; i < from.n; i++)
		deepest = Math.max(deepest, depth[i]);
	const steps = new Float64Array(deepest + 2);
	for (let k = 0, at = 0; k < ids.length; k++) {
		let last = 0;
		for (let end = at + count[ids[k]]; at < end; at++) {
			const node = base.nodeOfEnd[base.endOf[order[at]]];
			if (node === last)
				continue;
			const meet = meetingPoint(from, depth, last, node);
			steps[depth[meet] + 1]++;
			steps[depth[node] + 1]--;
			last = node;
		}
	}
	const limit = deepestLevel(steps);
	let boxes = 1 + ids.length, open = 0;
	for (let d = 0; d < steps.length && d <= limit; d++)
		boxes += open += steps[d];
	const b = new TimeBoxes(profile, base, depth, boxes, limit);
	for (let k = 0, at = 0; k < ids.length; k++) {
		b.openThread(ids[k]);
		for (let end = at + count[ids[k]]; at < end; at++)
			b.add(order[at]);
	}
	return b.finish(limit < deepest ? limit : 0);
}

class TimeBoxes {
	/**
	 * @param {Profile} profile
	 * @param {Base} base
	 * @param {Uint32Array} depth
	 * @param {number} room
	 * @param {number} limit  deepest level of frames that is drawn
	 */
	constructor(profile, base, depth, room, limit) {
		this.profile = profile;
		this.base = base;
		this.depth = depth;
		this.limit = limit;
		this.n = 1;
		this.parent = new Int32Array(room);
		this.key = new Uint32Array(room);
		this.self = new Float64Array(room);
		this.samples = new Float64Array(room);
		this.start = new Float64Array(room);
		this.parent[0] = -1;
		this.key[0] = base.tree.key[0];
		this.node = new Int32Array(base.endOf.length).fill(-1);
		this.box = new Int32Array(this.limit + 2); // open boxes by depth of the base's node
		this.path = new Int32Array(this.limit + 2);
		this.last = 0;
		this.x = 0;
	}

	/** @param {number} parent @param {number} key */
	make(parent, key) {
		this.parent[this.n] = parent;
		this.key[this.n] = key;
		this.start[this.n] = this.x;
		return this.n++;
	}

	/** @param {number} thread */
	openThread(thread) {
		this.box[0] = this.make(0, this.profile.names.threads + thread);
		this.last = 0;
	}

	/** @param {number} i  sample lo + i */
	add(i) {
		const {tree, nodeOfEnd, endOf} = this.base, {depth} = this;
		const node = nodeOfEnd[endOf[i]];
		if (node !== this.last) {
			const meet = depth[meetingPoint(tree, depth, this.last, node)];
			let n = 0;
			for (let at = node; depth[at] > meet; at = tree.parent[at])
				if (depth[at] <= this.limit)
					this.path[n++] = at;
			while (n > 0) {
				const at = this.path[--n];
				this.box[depth[at]] = this.make(this.box[depth[at] - 1], tree.key[at]);
			}
			this.last = node;
		}
		const to = this.box[Math.min(depth[node], this.limit)];
		const weight = this.profile.model.samples.weight[this.profile.lo + i];
		this.node[i] = to;
		this.self[to] += weight;
		this.samples[to]++;
		this.x += weight;
	}

	/** @param {number} cut @returns {BuiltTree} */
	finish(cut) {
		const n = this.n, parent = this.parent.subarray(0, n), total = this.self.slice(0, n);
		const samples = this.samples.slice(0, n);
		for (let i = n - 1; i > 0; i--) {
			total[parent[i]] += total[i];
			samples[parent[i]] += samples[i];
		}
		const {first, next} = childLists(n, parent);
		return {n, parent, key: this.key.subarray(0, n), depth: depthsOf(n, parent),
			self: this.self.subarray(0, n), total, samples, first, next, start: this.start.subarray(0, n),
			weight: this.profile.weight, timeOrdered: true, cut,
			origin: {base: this.base, node: this.node, bySample: true}};
	}
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
		endOf: bySample ? sampleIds(base.endOf) : base.endOf, selfRow: null, totalRow: row, nrows: rows});
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
	const matches = new Uint8Array(profile.keyCount), names = profile.names, f = profile.model.functions;
	if (!text)
		return matches;
	const strings = profile.model.strings, known = new Uint8Array(strings.length);
	const expression = /^\/(.+)\/i?$/.exec(text);
	const re = expression ? compilePattern('search', expression[1]) : null, low = text.toLowerCase();
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
	return shareOfEnds(profile, base.endOf, Uint8Array.from(base.nodeOfEnd, at => at >= 0 ? on[at] : 0));
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
