// SPDX-License-Identifier: MIT OR Apache-2.0
// Two profiles: what changed, and what of it is more than chance. The procedure is that of
// `assay diff` with one session a side; it and its sources are told in src/model/diff/diff.h. In short:
// limits of both sides' shares joined (square-and-add), widened by what self shares differ by beyond
// their samples, levels adjusted for the number of rows. Resolved: the adjusted level is
// below 5 % and the change at least half a percentage point.
//
// Not here, but there: functions that only one build inlines counted for their callers, Rust's two
// manglings, the runs of one session as runs.
//
// Sessions of memory were counted: each difference is one, and there is nothing to judge. Their shares are
// then of a common whole, so that they can be set against each other as amounts.
//
// It speaks of these two runs. How runs of one program differ among themselves more than their rows
// show is for several sessions a side: assay diff A1 A2 A3 --vs B1 B2 B3.
import {KEY_ALL, KeyTree} from './ktree.js';
import {Identity} from './identity.js';
import {erfc, normalQuantile, proportionInterval} from './stats.js';
import {table} from './table.js';
import {callTree, nodeShares} from './tree.js';

/** @typedef {import('./types.js').Share} Share */
/** @typedef {import('./types.js').Tree} Tree */
/** @typedef {import('./types.js').By} By */
/** @typedef {import('./query.js').Profile} Profile */
/** @typedef {import('./names.js').Name} Name */
/** @typedef {'up' | 'down' | 'equal' | 'undecided'} Verdict */

/**
 * @typedef {object} Change
 * @property {number} delta   of shares, now minus base
 * @property {number} low
 * @property {number} high
 * @property {boolean} resolved  verdict is up or down
 * @property {Verdict} verdict   equal: whatever it is, it is less than half a point
 * @property {boolean} shareOnly  the share moved because the rest did: its own CPU time did not
 */
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

const MIN_EFFECT = 0.005;
const LEVEL = 0.05;
const FEW_SAMPLES = 10; // of both sides together; below, a row tells nothing of others
const DRIFT_SAMPLES = 20; // of each side, for the ratio of CPU times
const ROWS_MIN = 20; // that tell a spread of all rows
const CAP = 2; // standard errors
const CAPPED_MEAN = 0.9205372645; // of min(x², CAP²), x ~ N(0, 1)
const SURE = 2.8; // standard errors: a share that moved is the row's own doing
const Z = normalQuantile(0.975);

// ---- one difference ----

/** @typedef {{a: Share, b: Share, delta: number, low: number, high: number, widened: number, p: number, adjusted: number}} Pair */

/**
 * @param {Share} a
 * @param {Share} b
 * @returns {Pair}
 */
function pairOf(a, b) {
	const delta = b.value - a.value;
	return {a, b, delta, widened: 1, p: 1, adjusted: 1,
		low: delta - Math.hypot(b.value - b.low, a.high - a.value),
		high: delta + Math.hypot(b.high - b.value, a.value - a.low)};
}

/** The difference in units of its error on the side towards zero. @param {Pair} p */
function unitsOf(p) {
	const half = p.delta > 0 ? p.delta - p.low : p.high - p.delta;
	return half > 0 ? Z * p.delta / half : 0;
}

/** @param {Pair} p */
function tells(p) {
	return p.a.samples + p.b.samples >= FEW_SAMPLES;
}

/** @param {number[]} v */
function median(v) {
	const s = Float64Array.from(v).sort(), n = s.length;
	return n ? n % 2 ? s[n >> 1] : (s[n / 2 - 1] + s[n / 2]) / 2 : NaN;
}

/** @param {Share} s */
function oddsError(s) {
	return (s.high - s.low) / 2 / Z / (s.value * (1 - s.value));
}

/**
 * What the log odds of self shares, against the usual change, differ by beyond their errors: a standard
 * deviation.
 * @param {Pair[]} pairs
 */
function betweenOf(pairs) {
	const known = pairs.filter(p => Math.min(p.a.samples, p.b.samples) >= DRIFT_SAMPLES &&
		Math.max(p.a.value, p.b.value) < 1);
	const n = known.length, odds = (/** @type {Share} */ s) => Math.log(s.value / (1 - s.value));
	const changes = known.map(p => odds(p.b) - odds(p.a)), middle = median(changes);
	const errors = known.map(p => Math.hypot(oddsError(p.a), oddsError(p.b)));
	const excess = (/** @type {number} */ between) => changes.reduce((sum, c, i) => sum +
		Math.min((c - middle) ** 2 / (errors[i] ** 2 + between ** 2), CAP ** 2), 0) -
		CAPPED_MEAN * (n - 1);
	if (n < ROWS_MIN || excess(0) <= 0)
		return 0;
	let lo = 0, hi = 4;
	for (let i = 0; i < 40; i++) {
		const mid = (lo + hi) / 2;
		if (excess(mid) > 0)
			lo = mid;
		else
			hi = mid;
	}
	return hi;
}

/** The factor by which `between` widens an interval, on the side towards zero. @param {Pair} p @param {number} between */
function wideningOf(p, between) {
	const half = p.delta > 0 ? p.delta - p.low : p.high - p.delta;
	const mean = (p.a.value + p.b.value) / 2;
	return half > 0 ? Math.hypot(1, between * mean * (1 - mean) * Z / half) : 1;
}

/**
 * Widens the intervals and sets the levels, adjusted for the number of pairs (Benjamini-Hochberg).
 * Those that cannot be found, for want of samples or share, are no tests and do not burden the others.
 * @param {Pair[]} pairs
 * @param {number} between
 */
function judge(pairs, between) {
	for (const p of pairs) {
		p.widened = wideningOf(p, between);
		p.low = p.delta - (p.delta - p.low) * p.widened;
		p.high = p.delta + (p.high - p.delta) * p.widened;
		p.p = erfc(Math.abs(unitsOf(p)) * Math.SQRT1_2);
	}
	const tests = pairs.filter(p => tells(p) && p.a.value + p.b.value >= MIN_EFFECT).sort((x, y) => x.p - y.p);
	let least = 1;
	for (let i = tests.length - 1; i >= 0; i--)
		tests[i].adjusted = least = Math.min(least, tests[i].p * tests.length / (i + 1));
	return tests.length;
}

/** @param {Pair} p @returns {Verdict} */
function verdictOf(p) {
	if (p.adjusted <= LEVEL && Math.abs(p.delta) >= MIN_EFFECT)
		return p.delta > 0 ? 'up' : 'down';
	return p.low > -MIN_EFFECT && p.high < MIN_EFFECT ? 'equal' : 'undecided';
}

/** @param {Share} s */
function relativeError(s) {
	return s.value > 0 && s.low > 0 ? Math.log(s.high / s.low) / 2 / Z : Infinity;
}

// ---- rows ----

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
		/** @type {Map<Profile, {identity: Identity, own: Map<number, number>}>} */
		this.sides = new Map();
		for (const profile of [a, b])
			this.sides.set(profile, {identity: new Identity(profile.model), own: new Map()});
		/** What runs differ by beyond samples, and the median ratio of CPU times; NaN: too few rows. */
		this.between = 0;
		/** Rows that levels are adjusted for. */
		this.tests = {self: 0, total: 0};
		this.drift = NaN;
		/** Both sides were counted, not sampled. */
		this.counted = isCounted(a) && isCounted(b);
		/** What shares of each side are fractions of: amounts of memory are compared, not shares. */
		this.wholes = this.counted ? Array(2).fill(Math.max(a.weight, b.weight)) : [a.weight, b.weight];
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
		const side = this.sides.get(profile);
		if (!side)
			return KEY_ALL;
		let own = side.own.get(key);
		if (own === undefined) {
			const name = profile.name(key), meaning = side.identity.of(name);
			own = this.keys.get(meaning);
			if (own === undefined) {
				own = this.names.push(name) - 1;
				this.keys.set(meaning, own);
			}
			side.own.set(key, own);
		}
		return own;
	}

	/**
	 * Of a key that no sample has.
	 * @param {Profile} profile
	 * @returns {Share}
	 */
	none(profile) {
		const n = profile.samples;
		return {value: 0, low: 0, high: n ? proportionInterval(0, n, Z)[1] : 1, samples: 0};
	}

	/** A share of one side as an amount. @param {number} share */
	amount(share) {
		return Math.round(share * this.wholes[1]);
	}

	/**
	 * A share as a fraction of its side's whole here.
	 * @param {Share} s
	 * @param {Profile} profile
	 * @param {number} whole
	 * @returns {Share}
	 */
	scaled(s, profile, whole) {
		if (!this.counted)
			return s;
		const value = whole && profile.weight ? s.value * profile.weight / whole : 0;
		return {value, low: value, high: value, samples: s.samples};
	}

	/** @returns {DiffRow[]} */
	makeRows() {
		const {a, b} = this, noneA = this.none(a), noneB = this.none(b);
		/** @type {Map<number, DiffRow>} */
		const rows = new Map();
		for (const [side, profile] of /** @type {['a' | 'b', Profile][]} */ (
			[['a', a], ['b', b]])) {
			// Keys of one side that mean the same are one row.
			/** @type {Map<number, number>} */
			const firsts = new Map();
			const same = (/** @type {number} */ key) => {
				const own = this.keyOf(profile, key);
				if (!firsts.has(own))
					firsts.set(own, key);
				return firsts.get(own) ?? key;
			};
			for (const r of table(profile, this.by, same)) {
				const key = this.keyOf(profile, r.key);
				const row = rows.get(key) ?? {key, keyA: -1, keyB: -1,
					a: {self: noneA, total: noneA},
					b: {self: noneB, total: noneB}, self: NO_CHANGE, total: NO_CHANGE};
				const whole = this.wholes[side === 'a' ? 0 : 1];
				row[side] = {self: this.scaled(r.self.samples ? r.self : this.none(profile), profile, whole),
					total: this.scaled(r.total, profile, whole)};
				row[side === 'a' ? 'keyA' : 'keyB'] = r.key;
				rows.set(key, row);
			}
		}
		const list = Array.from(rows.values());
		if (this.counted)
			return this.countedRows(list);
		const selfs = list.map(r => pairOf(r.a.self, r.b.self));
		// Crates and files are too few to tell: whatever rows are, it is learned from functions.
		const functions = this.by === 'function' ? null : new Diff(this.a, this.b, 'function');
		this.between = functions ? functions.between : betweenOf(selfs);
		this.drift = functions ? functions.drift : this.driftOf(selfs);
		this.judgeRows(list, 'self');
		this.judgeRows(list, 'total');
		return list.sort((x, y) => Number(y.self.resolved) - Number(x.self.resolved) ||
			Math.abs(y.self.delta) - Math.abs(x.self.delta) ||
			Math.abs(y.total.delta) - Math.abs(x.total.delta) || x.key - y.key);
	}

	/** Rows that have something on a side; each difference is one. @param {DiffRow[]} rows */
	countedRows(rows) {
		for (const r of rows)
			for (const which of /** @type {const} */ (['self', 'total'])) {
				const delta = r.b[which].value - r.a[which].value, steps = this.amount(r.b[which].value) -
					this.amount(r.a[which].value);
				r[which] = {delta, low: delta, high: delta, resolved: steps !== 0, shareOnly: false,
					verdict: steps > 0 ? 'up' : steps < 0 ? 'down' : 'equal'};
			}
		return rows.filter(r => r.a.total.value > 0 || r.b.total.value > 0)
			.sort((x, y) => Math.abs(y.self.delta) - Math.abs(x.self.delta) ||
				y.b.self.value - x.b.self.value || Math.abs(y.total.delta) - Math.abs(x.total.delta) ||
				y.b.total.value - x.b.total.value || x.key - y.key);
	}

	/** @param {DiffRow[]} rows @param {'self' | 'total'} which */
	judgeRows(rows, which) {
		const seen = rows.filter(r => r.a[which].samples || r.b[which].samples);
		const pairs = seen.map(r => pairOf(r.a[which], r.b[which]));
		this.tests[which] = judge(pairs, this.between);
		seen.forEach((r, i) => {
			const p = pairs[i], verdict = verdictOf(p), resolved = verdict === 'up' ||
				verdict === 'down';
			r[which] = {delta: p.delta, low: p.low, high: p.high, verdict, resolved,
				shareOnly: resolved && this.onlyShare(p)};
		});
	}

	/** Median ratio of the CPU times of rows that both sides know well: the machine's doing. @param {Pair[]} pairs */
	driftOf(pairs) {
		const scale = this.b.weight / this.a.weight;
		const ratios = pairs.filter(p => Math.min(p.a.samples, p.b.samples) >= DRIFT_SAMPLES &&
			p.a.value > 0)
			.map(p => Math.log(p.b.value / p.a.value * scale));
		const inTime = this.a.model.meta.unit === 'ns' && this.b.model.meta.unit === 'ns';
		return inTime && ratios.length >= 5 ? Math.exp(median(ratios)) : NaN;
	}

	/** Whether the row's own CPU time, against the rest of the program, is where it was. @param {Pair} p */
	onlyShare(p) {
		const scale = this.b.weight / this.a.weight;
		const ratio = Math.log(p.b.value / p.a.value * scale / this.drift);
		const error = Math.hypot(relativeError(p.a), relativeError(p.b));
		return Number.isFinite(ratio) && Number.isFinite(error) &&
			Math.abs(ratio) < SURE * error * p.widened;
	}
}

/** @type {Change} */
const NO_CHANGE = {delta: 0, low: 0, high: 0, resolved: false, verdict: 'undecided',
	shareOnly: false};

/**
 * @param {Profile} a
 * @param {Profile} b
 * @param {By} [by]
 */
export function makeDiff(a, b, by = 'function') {
	return new Diff(a, b, by);
}

// ---- trees ----

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
	const shares = sides.map(({tree, to}, side) => {
		const share = new Float64Array(union.n), whole = diff.wholes[side];
		for (let i = 0; i < tree.n; i++) {
			if (!whole)
				continue;
			share[to[i]] += tree.total[i] / whole;
			union.self[to[i]] += tree.self[i] / whole / 2;
			union.selfSamples[to[i]] += i ? tree.samples[i] : 0;
		}
		return share;
	});
	return {tree: unionTree(union, shares), a: shares[0], b: shares[1],
		verdict: diff.counted ? Int8Array.from(shares[0], (a, i) =>
			Math.sign(diff.amount(shares[1][i]) - diff.amount(a))) : nodeVerdicts(diff, union.n, sides)};
}

/** @param {Profile} profile */
function isCounted(profile) {
	const {unit} = profile.model.meta;
	return unit === 'bytes' || unit === 'count';
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
 * As rows are judged, over the nodes that are heavy enough to have intervals.
 * @param {Diff} diff
 * @param {number} n
 * @param {{profile: Profile, tree: Tree, to: Int32Array}[]} sides
 */
function nodeVerdicts(diff, n, sides) {
	/** @type {(Share | null)[][]} */
	const shares = sides.map(({profile, tree, to}) => {
		const {low, high} = nodeShares(profile, tree), none = diff.none(profile);
		/** @type {(Share | null)[]} */
		const of = Array(n).fill(none);
		for (let i = 1; i < tree.n; i++) {
			const value = tree.total[i] / profile.weight, known = of[to[i]];
			// Nodes of one side that mean the same: no interval of both together is at hand.
			of[to[i]] = Number.isNaN(low[i]) || known !== none ? null :
				{value, low: low[i], high: high[i], samples: tree.samples[i]};
		}
		return of;
	});
	/** @type {Pair[]} */
	const pairs = [];
	/** @type {number[]} */
	const nodes = [];
	const verdict = new Int8Array(n);
	for (let i = 1; i < n; i++) {
		const a = shares[0][i], b = shares[1][i];
		if (a && b && (a.samples || b.samples)) {
			nodes.push(i);
			pairs.push(pairOf(a, b));
		}
	}
	judge(pairs, diff.between);
	pairs.forEach((p, i) => {
		const v = verdictOf(p);
		verdict[nodes[i]] = v === 'up' ? 1 : v === 'down' ? -1 : 0;
	});
	return verdict;
}
