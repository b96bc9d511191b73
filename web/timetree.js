// SPDX-License-Identifier: MIT OR Apache-2.0
// A tree in time order: each thread is its samples from left to right, neighbours with equal frames
// joined; x is the thread's CPU time, without the pauses.
import {childLists} from './ktree.js';
import {depthsOf, NODES_MAX} from './shape.js';

/** @typedef {import('./ktree.js').KeyTree} KeyTree */
/** @typedef {import('./query.js').Profile} Profile */
/** @typedef {import('./query.js').Base} Base */
/** @typedef {import('./shape.js').BuiltTree} BuiltTree */

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
	const ids = Array.from(sums.keys()).filter(t => count[t]).sort((a, b) => sums[b] - sums[a] ||
		a - b);
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
export function timeTree(profile) {
	const base = profile.base('function', ''), from = base.tree,
		depth = depthsOf(from.n, from.parent);
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
			self: this.self.subarray(0, n), total, samples, first, next,
				start: this.start.subarray(0, n),
			weight: this.profile.weight, timeOrdered: true, cut,
			origin: {base: this.base, node: this.node, bySample: true}};
	}
}
