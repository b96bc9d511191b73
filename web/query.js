// SPDX-License-Identifier: MIT OR Apache-2.0
// A query's answer: which samples count, and the tree of keys they stand on. Trees, tables and
// searches (tree.js, table.js) are made from it on demand.
//
// Semantics are those of src/model/model.h: shares are fractions of the weight of all samples of
// the query's threads and time range, before focus, ignore and transforms. Each distinct stack is
// walked once; each sample costs a few look-ups.
import {END_NOSTACK, END_ROOT, END_COUNT, SAMPLE_END_MASK} from './model.js';
import {Blocks, BLOCK_SAMPLES} from './stats.js';
import {KeyTree} from './ktree.js';
import {Names} from './names.js';
import {measuredModel} from './memory.js';
import {ACTION_DROP, ACTION_KEEP, ACTION_REMOVE, changeFrame, frameKeys, makeChanges,
	makeFilter} from './filter.js';

/** @typedef {import('./types.js').Model} Model */
/** @typedef {import('./types.js').Query} Query */
/** @typedef {import('./types.js').By} By */
/** @typedef {'' | 'thread' | 'process'} Group */

// As in src/model/profile/shares.c: 256 blocks leave 170 degrees of freedom to a variance.
const ASKED_SAMPLES = 256 * BLOCK_SAMPLES;
const BASES_KEPT = 4;
const OUT_OF_SCOPE = -2, DROPPED = -1;

/** @returns {Query} */
export function defaultQuery() {
	return {from: 0, to: 0, threads: null, focus: '', ignore: '', hide: '', transforms: [],
		noInline: false, noKernel: false, generics: true, measure: '', plumbing: false, at: 0, since: 0};
}

/**
 * Samples on a tree of keys. Samples that share a stack share an end.
 * @typedef {object} Base
 * @property {KeyTree} tree
 * @property {Int32Array} nodeOfEnd
 * @property {Int32Array} endOf  of sample lo + i; negative: it does not count
 */

export class Profile {
	/**
	 * @param {Model} model
	 * @param {Query} query
	 */
	constructor(model, query) {
		model = measuredModel(model, query);
		this.model = model;
		this.query = query;
		this.filter = makeFilter(model, query);
		this.names = new Names(model, query.generics);
		this.changes = makeChanges(model, this.names, query.transforms);
		this.lo = this.filter.lo;
		this.hi = this.filter.hi;
		this.samples = 0;
		this.weight = 0;
		this.keptSamples = 0;
		this.keptWeight = 0;
		this.blocks = this.cutBlocks();
		/** @type {Map<string, Base>} */
		this.bases = new Map();
		const base = this.base('function', '');
		this.keptSamples = base.tree.samples[0];
		this.keptWeight = base.tree.total[0];
	}

	get keyCount() {
		return this.names.count;
	}

	/** @param {number} key */
	name(key) {
		return this.names.name(key);
	}

	/** @param {number} f */
	keyOf(f) {
		return this.names.keyOf(f);
	}

	/** @param {By} by */
	frameKeys(by) {
		return frameKeys(this.model, this.query, this.filter, this.names, by);
	}

	cutBlocks() {
		const {time, thread, weight} = this.model.samples, mask = this.filter.threads;
		let n = 0, first = 0, last = 0;
		for (let i = this.lo; i < this.hi; i++) {
			if (mask && !mask[thread[i]])
				continue;
			if (n++ === 0)
				first = time[i];
			last = time[i];
		}
		const blocks = new Blocks(first, last, Math.min(n, ASKED_SAMPLES), this.model.trials,
			Boolean(this.model.meta.info.until));
		for (let i = this.lo; i < this.hi; i++)
			if (!mask || mask[thread[i]])
				blocks.add(blocks.index(time[i]), weight[i]);
		blocks.counted = this.model.meta.unit === 'bytes' || this.model.meta.unit === 'count';
		blocks.finish();
		this.samples = n;
		this.weight = blocks.sumW;
		return blocks;
	}

	/**
	 * @param {By} by        thread and process: as function
	 * @param {Group} group  what stands above the first frames
	 * @returns {Base}
	 */
	base(by, group) {
		const id = `${by} ${group}`;
		let base = this.bases.get(id);
		this.bases.delete(id);
		base ??= new BaseBuilder(this, by, group).build();
		this.bases.set(id, base);
		for (const old of this.bases.keys()) {
			if (this.bases.size <= BASES_KEPT)
				break;
			if (old !== 'function ')
				this.bases.delete(old);
		}
		return base;
	}
}

/**
 * @param {Model} model
 * @param {Query} query
 */
export function makeProfile(model, query) {
	return new Profile(model, query);
}

/**
 * Puts stacks into a tree. Samples are taken group by group, a group being what stands above the
 * first frame (thread, marker of a cut stack), so that what is known of a stack is one look-up.
 */
class BaseBuilder {
	/**
	 * @param {Profile} profile
	 * @param {By} by
	 * @param {Group} group
	 */
	constructor(profile, by, group) {
		const {model, names} = profile, stacks = model.stacks.n;
		this.profile = profile;
		this.model = model;
		this.names = names;
		this.changes = profile.changes;
		this.plainKeys = by === 'function' || by === 'thread' || by === 'process';
		this.group = group;
		this.frames = profile.frameKeys(by);
		this.tree = new KeyTree(Math.min(stacks, 1 << 20));
		// Per stack, valid where the stamp is the group's number.
		this.stamp = new Int32Array(stacks).fill(-1);
		this.node = new Int32Array(stacks);
		this.endStamp = new Int32Array(stacks).fill(-1);
		this.endOfStack = new Int32Array(stacks);
		/** Focuses passed, per stack. */
		this.seen = this.changes.focused ? new Int32Array(stacks) : null;
		/** Per recursion transform and stack: where its function was first met. */
		this.met = this.changes.list.map(t =>
			t.kind === 'recursion' ? new Int32Array(stacks) : null);
		this.state = {seen: 0, restart: false, jump: -1};
		this.metNow = new Int32Array(this.changes.list.length);
		this.path = new Int32Array(256);
		this.nodeOfEnd = new Int32Array(1024);
		this.ends = 0;
		this.root = 0; // of the open group
		this.owner = 0; // its thread's node
	}

	/** @returns {Base} */
	build() {
		const {endOf, order, bounds, groups} = this.sortByGroup();
		const {stack} = this.model.samples, lo = this.profile.lo;
		const {endStamp, endOfStack} = this;
		for (let g = 0; g < groups.length; g++) {
			this.openGroup(groups[g]);
			let bare = -1;
			for (let i = bounds[g], to = bounds[g + 1]; i < to; i++) {
				const s = stack[lo + order[i]];
				if (s >= 0) {
					if (endStamp[s] !== g) {
						endStamp[s] = g;
						endOfStack[s] = this.addEnd(this.walk(s, g));
					}
					endOf[order[i]] = endOfStack[s];
				} else {
					if (bare < 0)
						bare = this.addEnd(this.changes.focused ? -1 : this.root);
					endOf[order[i]] = bare;
				}
			}
		}
		this.tree.count();
		const nodeOfEnd = this.nodeOfEnd.slice(0, this.ends);
		this.addSamples(endOf, nodeOfEnd);
		return {tree: this.tree, nodeOfEnd, endOf};
	}

	/**
	 * @param {Int32Array} endOf
	 * @param {Int32Array} nodeOfEnd
	 */
	addSamples(endOf, nodeOfEnd) {
		const {self, selfSamples} = this.tree, {weight} = this.model.samples, lo = this.profile.lo;
		const ends = nodeOfEnd.length, sums = new Float64Array(ends), counts = new Float64Array(ends);
		for (let i = 0; i < endOf.length; i++) {
			const end = endOf[i];
			if (end < 0)
				continue;
			if (nodeOfEnd[end] < 0) {
				endOf[i] = DROPPED;
				continue;
			}
			sums[end] += weight[lo + i];
			counts[end]++;
		}
		for (let end = 0; end < ends; end++) {
			if (nodeOfEnd[end] < 0)
				continue;
			self[nodeOfEnd[end]] += sums[end];
			selfSamples[nodeOfEnd[end]] += counts[end];
		}
		this.tree.sum();
	}

	/** Kept samples, group by group; groups in the order in which they are first met. */
	sortByGroup() {
		const {profile, model} = this, {lo, hi, filter} = profile;
		const {thread, stack, end} = model.samples, n = hi - lo;
		const endOf = new Int32Array(n).fill(OUT_OF_SCOPE), groupOf = new Int32Array(n);
		const owners = this.group === 'thread' ? model.threads.length : model.processes.length;
		const known = new Int32Array((owners + 1) * END_COUNT).fill(-1);
		/** @type {{owner: number, end: number}[]} */
		const groups = [];
		/** @type {number[]} */
		const sizes = [];
		for (let i = 0; i < n; i++) {
			const at = lo + i;
			if (filter.threads && !filter.threads[thread[at]])
				continue;
			endOf[i] = DROPPED;
			const s = stack[at];
			if (s < 0 ? filter.noStackDropped : filter.stacks !== null && filter.stacks[s])
				continue;
			let why = end[at] & SAMPLE_END_MASK;
			if (why >= END_COUNT || (why === END_ROOT && s < 0))
				why = END_NOSTACK;
			const owner = this.group === '' ? 0 : 1 + (this.group === 'thread' ? thread[at] :
				model.threads[thread[at]].process);
			const which = owner * END_COUNT + why;
			if (known[which] < 0) {
				known[which] = groups.push({owner, end: why}) - 1;
				sizes.push(0);
			}
			sizes[known[which]]++;
			groupOf[i] = known[which];
			endOf[i] = 0;
		}
		const bounds = new Int32Array(groups.length + 1);
		for (let g = 0; g < groups.length; g++)
			bounds[g + 1] = bounds[g] + sizes[g];
		const fill = bounds.slice(), order = new Int32Array(bounds[groups.length]);
		for (let i = 0; i < n; i++)
			if (endOf[i] >= 0)
				order[fill[groupOf[i]]++] = i;
		return {endOf, order, bounds, groups};
	}

	/** @param {{owner: number, end: number}} group */
	openGroup(group) {
		const names = this.names;
		this.owner = !group.owner ? 0 : this.tree.child(0, group.owner - 1 +
			(this.group === 'thread' ? names.threads : names.processes));
		const marker = group.end === END_ROOT ? -1 : this.model.endFunction[group.end] ?? -1;
		this.root = marker < 0 ? this.owner : this.tree.child(this.owner,
			this.plainKeys ? marker : names.lineKey(marker, names.noText, 0));
	}

	/** @param {number} node  -1: dropped */
	addEnd(node) {
		if (this.ends === this.nodeOfEnd.length) {
			const more = new Int32Array(this.ends * 2);
			more.set(this.nodeOfEnd);
			this.nodeOfEnd = more;
		}
		this.nodeOfEnd[this.ends] = node;
		return this.ends++;
	}

	/**
	 * The node of a stack in the open group; new parts of its path are added to the tree.
	 * @param {number} stack
	 * @param {number} group
	 * @returns {number} -1: dropped
	 */
	walk(stack, group) {
		const {parent} = this.model.stacks;
		let n = 0, at = stack;
		while (at >= 0 && this.stamp[at] !== group) {
			if (n === this.path.length) {
				const more = new Int32Array(n * 2);
				more.set(this.path);
				this.path = more;
			}
			this.path[n++] = at;
			at = parent[at];
		}
		let node = at < 0 ? this.root : this.node[at];
		if (this.changes.any)
			this.restore(at);
		while (n > 0) {
			at = this.path[--n];
			node = this.changes.any ? this.addChanged(node, at) : this.addFrame(node, at);
			this.stamp[at] = group;
			this.node[at] = node;
		}
		if (this.seen && node >= 0 && this.seen[stack] !== this.changes.allFocus)
			return -1;
		return node;
	}

	/**
	 * @param {number} node
	 * @param {number} stack
	 */
	addFrame(node, stack) {
		const {first, key, joins} = this.frames, tree = this.tree;
		const frame = this.model.stacks.frame[stack];
		const join = joins || this.changes.direct;
		for (let i = first[frame]; i < first[frame + 1]; i++)
			if (!join || tree.key[node] !== key[i])
				node = tree.child(node, key[i]);
		return node;
	}

	/** The transforms' state at a stack; -1: before the first frame. @param {number} stack */
	restore(stack) {
		this.state.seen = stack >= 0 && this.seen ? this.seen[stack] : 0;
		for (let i = 0; i < this.met.length; i++)
			this.metNow[i] = stack >= 0 ? this.met[i]?.[stack] ?? -1 : -1;
	}

	/**
	 * As addFrame, with transforms.
	 * @param {number} node  -1: dropped
	 * @param {number} stack
	 */
	addChanged(node, stack) {
		const {first} = this.frames, frame = this.model.stacks.frame[stack];
		for (let i = first[frame]; node >= 0 && i < first[frame + 1]; i++)
			node = this.addOne(node, i);
		if (this.seen)
			this.seen[stack] = this.state.seen;
		for (let i = 0; i < this.met.length; i++) {
			const met = this.met[i];
			if (met)
				met[stack] = this.metNow[i];
		}
		return node;
	}

	/** @param {number} node @param {number} i  into frames.key */
	addOne(node, i) {
		const {changes, state, tree, frames} = this, plain = frames.plain[i];
		const action = changes.action[plain];
		let key = changes.key[plain];
		state.jump = -1;
		if (action === ACTION_REMOVE)
			return node;
		if (action === ACTION_DROP)
			return -1;
		if (action !== ACTION_KEEP) {
			key = changeFrame(changes, this.model, this.names, plain, state);
			if (key < 0)
				return key === -2 ? -1 : node;
			if (state.restart) {
				node = this.owner;
				this.metNow.fill(-1);
			}
			if (state.jump >= 0 && this.metNow[state.jump] >= 0)
				return this.metNow[state.jump];
		}
		const joins = frames.joins || changes.direct || key >= this.names.standIns;
		if (!this.plainKeys)
			key = frames.key[i];
		if (!joins || tree.key[node] !== key)
			node = tree.child(node, key);
		if (state.jump >= 0)
			this.metNow[state.jump] = node;
		return node;
	}
}
