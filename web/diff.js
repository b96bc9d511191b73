// SPDX-License-Identifier: MIT OR Apache-2.0
// Two profiles: what changed, and whether the samples can tell.
//
// A difference is of shares, now minus base. Its interval puts the intervals of both sides together
// (the square-and-add rule of R. G. Newcombe, Stat. Med. 17 (1998) 873, method 10; for intervals of
// any origin G. Y. Zou, A. Donner, Stat. Med. 27 (2008) 1693), so that design effects and few
// samples of either side count. A change is resolved when the interval leaves out 0 and one side
// has enough samples for its own interval to mean something. It speaks of these two runs: how runs
// of one program differ among themselves is for `assay bench` to say.
import {KEY_ALL, KeyTree} from './ktree.js';
import {callTree, nodeShares} from './tree.js';
import {keyShare, table} from './table.js';

/** @typedef {import('./types.js').Share} Share */
/** @typedef {import('./types.js').Tree} Tree */
/** @typedef {import('./types.js').By} By */
/** @typedef {import('./query.js').Profile} Profile */
/** @typedef {import('./names.js').Name} Name */
/** @typedef {{delta: number, low: number, high: number, resolved: boolean}} Change */
/**
 * @typedef {object} DiffRow
 * @property {number} key   of the Diff
 * @property {number} keyA  -1: not there
 * @property {number} keyB
 * @property {{self: Share, total: Share}} a
 * @property {{self: Share, total: Share}} b
 * @property {Change} self
 * @property {Change} total
 */

const SAMPLES_MIN = 6;

/**
 * @param {Share} a
 * @param {Share} b
 * @returns {Change}
 */
export function changeOf(a, b) {
	const delta = b.value - a.value;
	if (a.samples === 0 && b.samples === 0)
		return {delta, low: 0, high: 0, resolved: false};
	const low = delta - Math.hypot(b.value - b.low, a.high - a.value);
	const high = delta + Math.hypot(b.high - b.value, a.value - a.low);
	return {delta, low, high,
		resolved: (low > 0 || high < 0) && Math.max(a.samples, b.samples) >= SAMPLES_MIN};
}

/**
 * What a key is on both sides: its full name and module (its address where it has no name).
 * @param {Name} name
 */
function meaningOf(name) {
	return `${name.kind}\n${name.module}\n${name.full}` +
		(name.kind === 'line' ? `\n${name.file}\n${name.line}` : '');
}

export class Diff {
	/**
	 * @param {Profile} a  base
	 * @param {Profile} b  now
	 * @param {By} by
	 */
	constructor(a, b, by) {
		this.a = a;
		this.b = b;
		this.by = by;
		/** @type {Map<string, number>} */
		this.keys = new Map();
		/** @type {Name[]} */
		this.names = [];
		/** @type {Map<number, number>} */
		this.ofA = new Map();
		/** @type {Map<number, number>} */
		this.ofB = new Map();
		/** @type {DiffRow[]} */
		this.rows = this.makeRows();
	}

	/** @param {number} key  of this diff */
	name(key) {
		return this.names[key] ?? this.b.name(KEY_ALL);
	}

	/**
	 * @param {Profile} profile  one of the two
	 * @param {number} key  of it
	 */
	keyOf(profile, key) {
		const known = profile === this.a ? this.ofA : this.ofB;
		let own = known.get(key);
		if (own === undefined) {
			const name = profile.name(key), meaning = meaningOf(name);
			own = this.keys.get(meaning);
			if (own === undefined) {
				own = this.names.push(name) - 1;
				this.keys.set(meaning, own);
			}
			known.set(key, own);
		}
		return own;
	}

	/** @returns {DiffRow[]} */
	makeRows() {
		const {a, b} = this;
		const none = {a: keyShare(a, KEY_ALL - 1), b: keyShare(b, KEY_ALL - 1)};
		/** @type {Map<number, DiffRow>} */
		const rows = new Map();
		for (const [side, profile] of /** @type {['a' | 'b', Profile][]} */ (
			[['a', a], ['b', b]])) {
			for (const r of table(profile, this.by)) {
				const key = this.keyOf(profile, r.key);
				const row = rows.get(key) ?? {key, keyA: -1, keyB: -1, a: none.a, b: none.b,
					self: NO_CHANGE, total: NO_CHANGE};
				// Functions of one name in one module are one here; the heavier one speaks.
				if (row[side] === none[side]) {
					row[side] = {self: r.self, total: r.total};
					row[side === 'a' ? 'keyA' : 'keyB'] = r.key;
				}
				rows.set(key, row);
			}
		}
		const list = Array.from(rows.values());
		for (const row of list) {
			row.self = changeOf(row.a.self, row.b.self);
			row.total = changeOf(row.a.total, row.b.total);
		}
		return list.sort((x, y) => Math.abs(y.self.delta) - Math.abs(x.self.delta) ||
			Math.abs(y.total.delta) - Math.abs(x.total.delta) || x.key - y.key);
	}
}

/** @type {Change} */
const NO_CHANGE = {delta: 0, low: 0, high: 0, resolved: false};

/**
 * @param {Profile} a
 * @param {Profile} b
 * @param {By} [by]
 */
export function makeDiff(a, b, by = 'function') {
	return new Diff(a, b, by);
}

/**
 * Both trees as one; a box is as wide as the mean of its shares on the two sides, so that what is
 * gone and what is new both show.
 * @param {Diff} diff
 * @param {{inverted?: boolean, minShare?: number}} [o]
 * @returns {{tree: Tree, a: Float64Array, b: Float64Array, verdict: Int8Array}}
 */
export function diffTree(diff, o = {}) {
	const union = new KeyTree(4096);
	const sides = [diff.a, diff.b].map(profile => {
		const tree = callTree(profile, {inverted: o.inverted, minShare: o.minShare});
		const to = new Int32Array(tree.n);
		for (let i = 1; i < tree.n; i++)
			to[i] = union.child(to[tree.parent[i]], diff.keyOf(profile, tree.key[i]));
		return {profile, tree, to};
	});
	union.count();
	const shares = sides.map(({profile, tree, to}) => {
		const share = new Float64Array(union.n);
		for (let i = 0; i < tree.n; i++) {
			if (!profile.weight)
				continue;
			share[to[i]] += tree.total[i] / profile.weight;
			union.self[to[i]] += tree.self[i] / profile.weight / 2;
			union.selfSamples[to[i]] += i ? tree.samples[i] : 0;
		}
		return share;
	});
	return {tree: unionTree(union, shares), a: shares[0], b: shares[1],
		verdict: verdicts(union.n, sides, shares)};
}

/**
 * @param {KeyTree} union
 * @param {Float64Array[]} shares
 * @returns {Tree}
 */
function unionTree(union, shares) {
	const n = union.n, total = shares[0].map((s, i) => (s + shares[1][i]) / 2);
	const first = new Int32Array(n).fill(-1), next = first.slice(), start = new Float64Array(n);
	const depth = new Uint32Array(n);
	const order = Uint32Array.from({length: n - 1}, (_, i) => i + 1)
		.sort((x, y) => total[x] - total[y] || y - x);
	for (const i of order) {
		next[i] = first[union.parent[i]];
		first[union.parent[i]] = i;
	}
	for (let i = 0; i < n; i++) {
		let x = start[i];
		for (let c = first[i]; c >= 0; c = next[c]) {
			start[c] = x;
			x += total[c];
			depth[c] = depth[i] + 1;
		}
	}
	return {n, parent: union.parent, key: union.key, depth, self: union.self, total,
		samples: union.selfSamples, first, next, start, weight: 1, timeOrdered: false};
}

/**
 * @param {number} n
 * @param {{profile: Profile, tree: Tree, to: Int32Array}[]} sides
 * @param {Float64Array[]} shares
 */
function verdicts(n, sides, shares) {
	const bounds = sides.map(({profile, tree, to}, side) => {
		const {low, high} = nodeShares(profile, tree);
		const samples = new Float64Array(n), l = new Float64Array(n),
			h = new Float64Array(n).fill(NaN);
		for (let i = 0; i < tree.n; i++) {
			samples[to[i]] = tree.samples[i];
			l[to[i]] = low[i];
			h[to[i]] = high[i];
		}
		// A node that is not there may yet have up to a share that no sample came of.
		const none = keyShare(profile, KEY_ALL - 1).total.high;
		for (let i = 0; i < n; i++) {
			if (!samples[i]) {
				l[i] = 0;
				h[i] = none;
			}
		}
		return {samples, l, h, share: shares[side]};
	});
	const [a, b] = bounds, verdict = new Int8Array(n);
	for (let i = 1; i < n; i++) {
		const change = changeOf(
			{value: a.share[i], low: a.l[i], high: a.h[i], samples: a.samples[i]},
			{value: b.share[i], low: b.l[i], high: b.h[i], samples: b.samples[i]});
		verdict[i] = change.resolved ? Math.sign(change.delta) : 0;
	}
	return verdict;
}
