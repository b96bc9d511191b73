// SPDX-License-Identifier: MIT OR Apache-2.0
// A tree in time order: each thread is its samples from left to right, neighbours with equal frames
// joined; x is the thread's CPU time, without the pauses.
//
// A long recording would have more boxes than anyone can look at. Then so many samples that follow
// each other (`slot`) are put in the order of their frames that few enough boxes are left: what was
// on the CPU in a slot stays true, its order inside the slot is lost. A shorter range shows it.
import {childLists} from './ktree.js';
import {depthsOf} from './shape.js';

/** @typedef {import('./ktree.js').KeyTree} KeyTree */
/** @typedef {import('./query.js').Profile} Profile */
/** @typedef {import('./query.js').Base} Base */
/** @typedef {import('./shape.js').BuiltTree} BuiltTree */

const BOXES_MAX = 2 ** 20;
const SLOT_MAX = 1024;

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
		if (boxes > BOXES_MAX)
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

/** Nodes in the order in which a walk meets them, so that paths with common frames are neighbours. @param {KeyTree} t */
function ranksOf(t) {
	const size = new Int32Array(t.n).fill(1), rank = new Int32Array(t.n),
		next = new Int32Array(t.n);
	for (let i = t.n - 1; i > 0; i--)
		size[t.parent[i]] += size[i];
	next[0] = 1;
	for (let i = 1; i < t.n; i++) {
		rank[i] = next[t.parent[i]];
		next[t.parent[i]] += size[i];
		next[i] = rank[i] + 1;
	}
	return rank;
}

/**
 * Each `slot` samples of a thread in the order of their frames.
 * @param {Base} base
 * @param {ReturnType<typeof byThread>} threads
 * @param {number} slot
 */
function gathered(base, threads, slot) {
	const {ids, count, order} = threads, rank = ranksOf(base.tree), ranks = base.tree.n;
	const out = new Int32Array(order.length);
	for (let k = 0, from = 0; k < ids.length; from += count[ids[k]], k++) {
		// One number a sample, which sorts by slot, rank and place: below samples x ranks < 2^53.
		const code = new Float64Array(count[ids[k]]);
		for (let i = 0; i < code.length; i++) {
			const node = base.nodeOfEnd[base.endOf[order[from + i]]];
			code[i] = (Math.floor(i / slot) * ranks + rank[node]) * slot + i % slot;
		}
		code.sort();
		for (let i = 0; i < code.length; i++)
			out[from + i] = order[from + Math.floor(i / slot) * slot + code[i] % slot];
	}
	return {ids, count, order: out};
}

/**
 * How many boxes begin at each depth, as steps: one for each frame below where neighbours meet.
 * @param {Base} base
 * @param {Uint32Array} depth
 * @param {ReturnType<typeof byThread>} threads
 */
function countBoxes(base, depth, threads) {
	const {ids, count, order} = threads, from = base.tree;
	let deepest = 0, boxes = 1 + ids.length;
	for (let i = 0; i < from.n; i++)
		deepest = Math.max(deepest, depth[i]);
	const steps = new Float64Array(deepest + 2);
	for (let k = 0, at = 0; k < ids.length; k++) {
		let last = 0;
		for (let end = at + count[ids[k]]; at < end; at++) {
			const node = base.nodeOfEnd[base.endOf[order[at]]];
			if (node === last)
				continue;
			const meet = depth[meetingPoint(from, depth, last, node)];
			steps[meet + 1]++;
			steps[depth[node] + 1]--;
			boxes += depth[node] - meet;
			last = node;
		}
	}
	return {steps, boxes, deepest};
}

/**
 * @param {Profile} profile
 * @returns {BuiltTree & {slot: number}}
 */
export function timeTree(profile) {
	const base = profile.base('function', '');
	const depth = depthsOf(base.tree.n, base.tree.parent), whole = byThread(profile, base);
	let threads = whole, slot = 1, counted = countBoxes(base, depth, threads);
	while (counted.boxes > BOXES_MAX && slot < SLOT_MAX) {
		slot = Math.min(SLOT_MAX, slot * 4 * Math.ceil(counted.boxes / BOXES_MAX));
		threads = gathered(base, whole, slot);
		counted = countBoxes(base, depth, threads);
	}
	const limit = deepestLevel(counted.steps);
	let room = 1 + threads.ids.length, open = 0;
	for (let d = 0; d < counted.steps.length && d <= limit; d++)
		room += open += counted.steps[d];
	const b = new TimeBoxes(profile, base, depth, room, limit);
	for (let k = 0, at = 0; k < threads.ids.length; k++) {
		b.openThread(threads.ids[k]);
		for (let end = at + threads.count[threads.ids[k]]; at < end; at++)
			b.add(threads.order[at]);
	}
	return {...b.finish(limit < counted.deepest ? limit : 0), slot};
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
