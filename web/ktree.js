// SPDX-License-Identifier: MIT OR Apache-2.0
// A tree of keys in columns: distinct addresses of one function are one node. Node 0 is "all"; a
// node's parent has a smaller index. No function here recurses: depth is the input's.

export const KEY_ALL = 0xffffffff;

/**
 * @template {Int32Array | Uint32Array | Float64Array} T
 * @param {T} column
 * @param {number} n
 * @returns {T}
 */
function resized(column, n) {
	const next = new /** @type {any} */ (column.constructor)(n);
	next.set(column);
	return next;
}

export class KeyTree {
	/** @param {number} [expected] */
	constructor(expected = 1024) {
		let room = 1024;
		while (room < expected)
			room *= 2;
		this.n = 1;
		this.parent = new Int32Array(room);
		this.key = new Uint32Array(room);
		this.parent[0] = -1;
		this.key[0] = KEY_ALL;
		// Pairs: hash, node. Node 0 is an empty slot: "all" is nobody's child.
		this.slots = new Int32Array(room * 4);
		// Figures, per node; made by count() and sum().
		this.self = new Float64Array(0);
		this.selfSamples = new Float64Array(0);
		this.total = new Float64Array(0);
		this.samples = new Float64Array(0);
	}

	/**
	 * The child of `parent` with `key`; made when it is not there.
	 * @param {number} parent
	 * @param {number} key
	 * @returns {number}
	 */
	child(parent, key) {
		const slots = this.slots, mask = slots.length - 1, hash = hashOf(parent, key);
		let at = hash << 1 & mask;
		for (let node = slots[at + 1]; node; node = slots[at + 1]) {
			if (slots[at] === hash && this.parent[node] === parent && this.key[node] === key)
				return node;
			at = at + 2 & mask;
		}
		if (this.n === this.parent.length) {
			this.grow();
			return this.child(parent, key);
		}
		this.parent[this.n] = parent;
		this.key[this.n] = key;
		slots[at] = hash;
		slots[at + 1] = this.n;
		return this.n++;
	}

	grow() {
		const room = this.parent.length * 2, mask = room * 4 - 1, old = this.slots;
		this.parent = resized(this.parent, room);
		this.key = resized(this.key, room);
		const slots = new Int32Array(room * 4);
		for (let i = 0; i < old.length; i += 2) {
			if (!old[i + 1])
				continue;
			let at = old[i] << 1 & mask;
			while (slots[at + 1])
				at = at + 2 & mask;
			slots[at] = old[i];
			slots[at + 1] = old[i + 1];
		}
		this.slots = slots;
	}

	/** The tree is built: frees what building needed and makes room for figures. */
	count() {
		this.slots = new Int32Array(2);
		this.parent = this.parent.slice(0, this.n);
		this.key = this.key.slice(0, this.n);
		this.self = new Float64Array(this.n);
		this.selfSamples = new Float64Array(this.n);
	}

	/** Self figures of all nodes -> totals. */
	sum() {
		const total = this.self.slice(), samples = this.selfSamples.slice(), parent = this.parent;
		for (let i = this.n - 1; i > 0; i--) {
			total[parent[i]] += total[i];
			samples[parent[i]] += samples[i];
		}
		this.total = total;
		this.samples = samples;
	}
}

/**
 * @param {number} parent
 * @param {number} key
 */
function hashOf(parent, key) {
	let h = Math.imul(parent, 0x9e3779b1) ^ Math.imul(key + 1 | 0, 0x85ebca6b);
	h ^= h >>> 15;
	h = Math.imul(h, 0x2c1b3c6d);
	return h ^ h >>> 13;
}

/**
 * Children of all nodes as lists in the order of their indexes.
 * @param {number} n
 * @param {Int32Array} parent
 */
export function childLists(n, parent) {
	const first = new Int32Array(n).fill(-1), next = new Int32Array(n).fill(-1);
	for (let i = n - 1; i > 0; i--) {
		next[i] = first[parent[i]];
		first[parent[i]] = i;
	}
	return {first, next};
}

/**
 * Per node 1 when no node above it has its row: recursion counts once. rows: per node, -1 none.
 * @param {{n: number, parent: Int32Array}} tree
 * @param {ArrayLike<number>} rows
 * @param {number} nrows
 */
export function outermostOf(tree, rows, nrows) {
	const {first, next} = childLists(tree.n, tree.parent);
	const above = new Int32Array(nrows), is = new Uint8Array(tree.n);
	let at = 0;
	is[0] = 1;
	// Depth first without a stack: `first` is used up on the way down.
	for (;;) {
		const down = first[at];
		if (down >= 0) {
			first[at] = next[down];
			at = down;
			if (rows[at] >= 0)
				is[at] = above[rows[at]]++ === 0 ? 1 : 0;
			continue;
		}
		if (at === 0)
			return is;
		if (rows[at] >= 0)
			above[rows[at]]--;
		at = tree.parent[at];
	}
}
