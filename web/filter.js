// SPDX-License-Identifier: MIT OR Apache-2.0
// What a query keeps: samples by time and thread, stacks by focus and ignore, frames by hide,
// kernel and inlining (as src/model/profile/filter.c does it), and the reader's transforms.
import {CATEGORIES, FRAME_KERNEL} from './model.js';

/** @typedef {import('./types.js').Model} Model */
/** @typedef {import('./types.js').Query} Query */
/** @typedef {import('./types.js').Transform} Transform */
/** @typedef {import('./names.js').Names} Names */

const MATCH_FOCUS = 1, MATCH_IGNORE = 2, MATCH_HIDE = 4;
const PATTERN_MAX = 500, NAME_MAX = 4000;

export class QueryError extends Error {
	/**
	 * @param {string} field  of the Query
	 * @param {string} what
	 */
	constructor(field, what) {
		super(what);
		this.name = 'QueryError';
		this.field = field;
	}
}

/**
 * A repetition of something that repeats or chooses, like (a+)+ or (a|b)*, can take longer than
 * any reader waits; addresses with such a pattern come from others. So they are refused.
 * @param {string} pattern
 */
function mayExplode(pattern) {
	/** @type {boolean[]} */
	const open = [];
	let inner = false, inClass = false;
	for (let i = 0; i < pattern.length; i++) {
		const c = pattern[i];
		if (c === '\\') {
			i++;
		} else if (inClass) {
			inClass = c !== ']';
		} else if (c === '[') {
			inClass = true;
		} else if (c === '(') {
			open.push(inner);
			inner = false;
		} else if (c === ')') {
			const repeats = /^([*+]|\{\d*,?\d*\})/.test(pattern.slice(i + 1));
			if (repeats && inner)
				return true;
			inner = (open.pop() ?? false) || inner || repeats;
		} else if (c === '*' || c === '+' || c === '|' ||
			(c === '{' && /^\{\d+,/.test(pattern.slice(i)))) {
			inner = true;
		}
	}
	return false;
}

/**
 * @param {string} field
 * @param {string} pattern
 * @returns {RegExp}
 */
export function compilePattern(field, pattern) {
	if (pattern.length > PATTERN_MAX)
		throw new QueryError(field, `the expression is longer than ${PATTERN_MAX} letters`);
	if (mayExplode(pattern))
		throw new QueryError(field,
			`'${pattern}' repeats a repetition or a choice, which may take forever`);
	try {
		return new RegExp(pattern);
	} catch {
		throw new QueryError(field, `'${pattern}' is no regular expression`);
	}
}

/**
 * Per string whether it matches; asked once each.
 * @param {Model} model
 * @param {RegExp} re
 */
function matcherOf(model, re) {
	const known = new Uint8Array(model.strings.length);
	return (/** @type {number} */ id) => {
		if (!known[id])
			known[id] = re.test(model.strings[id].slice(0, NAME_MAX)) ? 2 : 1;
		return known[id] === 2;
	};
}

/**
 * @param {Model} model
 * @param {Query} query
 * @returns {Uint8Array} MATCH_* per function
 */
function markFunctions(model, query) {
	const f = model.functions, marks = new Uint8Array(f.n);
	/** @type {['focus' | 'ignore' | 'hide', number][]} */
	const fields = [['focus', MATCH_FOCUS], ['ignore', MATCH_IGNORE], ['hide', MATCH_HIDE]];
	for (const [field, bit] of fields) {
		if (!query[field])
			continue;
		const matches = matcherOf(model, compilePattern(field, query[field]));
		for (let i = 0; i < f.n; i++)
			if (matches(f.full[i]) || matches(f.brief[i]))
				marks[i] |= bit;
	}
	return marks;
}

/**
 * First sample at or after t.
 * @param {Model} model
 * @param {number} t
 */
export function sampleAt(model, t) {
	const time = model.samples.time;
	let lo = 0, hi = model.samples.n;
	while (lo < hi) {
		const mid = lo + hi >>> 1;
		if (time[mid] < t)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/**
 * Places [from, to) of a frame that count.
 * @param {Model} model
 * @param {Query} query
 * @param {number} frame
 */
function firstPlace(model, query, frame) {
	const {chain, nchain, flags} = model.frames;
	if (query.noKernel && flags[frame] & FRAME_KERNEL)
		return chain[frame] + nchain[frame];
	return query.noInline ? chain[frame] + nchain[frame] - 1 : chain[frame];
}

/**
 * Marks what stands on a path by looking at the parent's marks: parents come first.
 * @param {Model} model
 * @param {Query} query
 * @param {Uint8Array} functions
 * @returns {Uint8Array | null} per stack 1: dropped
 */
function dropStacks(model, query, functions) {
	if (!query.focus && !query.ignore)
		return null;
	const {frames, stacks, places} = model;
	const ofFrame = new Uint8Array(frames.n), path = new Uint8Array(stacks.n);
	for (let i = 0; i < frames.n; i++)
		for (let p = firstPlace(model, query, i); p < frames.chain[i] + frames.nchain[i]; p++)
			ofFrame[i] |= functions[places.function[p]];
	const dropped = new Uint8Array(stacks.n);
	for (let i = 0; i < stacks.n; i++) {
		const up = stacks.parent[i];
		path[i] = (up < 0 ? 0 : path[up]) | ofFrame[stacks.frame[i]];
		dropped[i] = (query.focus && !(path[i] & MATCH_FOCUS)) || path[i] & MATCH_IGNORE ? 1 : 0;
	}
	return dropped;
}

/**
 * @param {Model} model
 * @param {Query} query
 */
export function makeFilter(model, query) {
	if (query.to && query.to <= query.from)
		throw new QueryError('time', 'the time range ends before it begins');
	const functions = markFunctions(model, query);
	const lo = query.from ? sampleAt(model, query.from) : 0;
	/** @type {Uint8Array | null} */
	let threads = null;
	if (query.threads) {
		threads = new Uint8Array(model.threads.length);
		for (const t of query.threads)
			threads[t] = 1;
	}
	return {
		lo, hi: query.to ? Math.max(lo, sampleAt(model, query.to)) : model.samples.n,
		threads, functions, stacks: dropStacks(model, query, functions),
		noStackDropped: query.focus !== '',
	};
}

/** @typedef {ReturnType<typeof makeFilter>} Filter */

// ---- frames ----

/**
 * The keys of every frame, outermost first: those of frame i stand at first[i] … first[i + 1].
 * @typedef {object} FrameKeys
 * @property {Int32Array} first
 * @property {Uint32Array} key    by the tree's kind
 * @property {Uint32Array} plain  the function's
 * @property {boolean} joins      adjacent frames of one key are one: a file calling itself is no
 *   call
 */

/**
 * @param {Model} model
 * @param {Query} query
 * @param {Filter} filter
 * @param {Names} names
 * @param {import('./types.js').By} by
 * @returns {FrameKeys}
 */
export function frameKeys(model, query, filter, names, by) {
	const {frames, places} = model;
	const first = new Int32Array(frames.n + 1), functionKey = names.functionKey;
	const key = new Uint32Array(places.n), plain = new Uint32Array(places.n);
	const keyOf = placeKey(model, names, by), noHide = !query.hide;
	// Frames may share places, so a frame's keys may be more than there are places.
	let n = 0, keys = key, plains = plain;
	for (let i = 0; i < frames.n; i++) {
		const from = firstPlace(model, query, i);
		first[i] = n;
		for (let p = frames.chain[i] + frames.nchain[i] - 1; p >= from; p--) {
			const f = places.function[p];
			if (!noHide && filter.functions[f] & MATCH_HIDE)
				continue;
			if (n === keys.length) {
				keys = Uint32Array.from({length: n * 2 + 16}, (_, k) => keys[k] ?? 0);
				plains = Uint32Array.from({length: n * 2 + 16}, (_, k) => plains[k] ?? 0);
			}
			plains[n] = functionKey[f];
			keys[n++] = keyOf ? keyOf(p, f, frames.module[i]) : functionKey[f];
		}
	}
	first[frames.n] = n;
	const joins = by === 'file' || by === 'crate' || by === 'module';
	return {first, key: keys, plain: plains, joins};
}

/**
 * @param {Model} model
 * @param {Names} names
 * @param {import('./types.js').By} by
 * @returns {((place: number, f: number, module: number) => number) | null} null: the function's
 */
function placeKey(model, names, by) {
	const {places, functions, strings} = model;
	const fileOf = (/** @type {number} */ p, /** @type {number} */ f) =>
		strings[places.file[p]] ? places.file[p] : functions.file[f];
	switch (by) {
	case 'file':
		return (p, f, module) => names.fileKey(fileOf(p, f), module);
	case 'crate':
		return (_, f, module) => names.crateKey(f, module);
	case 'module':
		return (_p, _f, module) => module >= 0 ? names.modules + module : names.standIn(-1);
	case 'line':
		return (p, f) => names.lineKey(f, fileOf(p, f), places.line[p]);
	default:
		return null;
	}
}

// ---- transforms ----

const KEEP = 0, REMOVE = 1, DROP = 2, STATEFUL = 3;

/**
 * The transforms, made ready. Per function: what becomes of its frames, as far as that does not
 * depend on the rest of the stack.
 * @typedef {object} Changes
 * @property {Transform[]} list
 * @property {boolean} any
 * @property {boolean} focused     there is a focus: everything depends on the stack
 * @property {number} allFocus     bits of all focuses
 * @property {boolean} direct      direct recursion of everything is folded
 * @property {Uint8Array} action   KEEP, REMOVE, DROP, STATEFUL per function key
 * @property {Uint32Array} key     per function key: what it is then called
 */

/**
 * @param {Model} model
 * @param {Names} names
 * @param {Transform[]} transforms
 * @returns {Changes}
 */
export function makeChanges(model, names, transforms) {
	const n = model.functions.n;
	/** @type {Changes} */
	const c = {list: [], any: false, focused: false, allFocus: 0, direct: false,
		action: new Uint8Array(n), key: names.functionKey.slice()};
	for (const t of transforms) {
		if (t.kind === 'recursion' && t.f === undefined) {
			c.direct = true;
			continue;
		}
		const f = t.f !== undefined && t.f < n ? names.functionKey[t.f] : t.f;
		if (t.kind === 'focus') {
			if (c.list.filter(x => x.kind === 'focus').length === 30)
				continue;
			c.focused = true;
			c.allFocus = c.allFocus << 1 | 1;
		}
		c.list.push({...t, f});
	}
	c.any = c.list.length > 0;
	for (let i = 0; c.any && i < n; i++)
		resolve(model, names, c, i);
	return c;
}

/**
 * @param {Model} model
 * @param {Names} names
 * @param {Changes} c
 * @param {number} i  key of a function
 */
function resolve(model, names, c, i) {
	const f = model.functions;
	for (const t of c.list) {
		const hit = t.f === c.key[i];
		if (t.kind === 'drop' && hit)
			c.action[i] = DROP;
		else if (t.kind === 'merge' && hit)
			c.action[i] = REMOVE;
		else if (t.kind === 'fold' && f.category[i] === CATEGORIES.indexOf(t.name ?? ''))
			c.action[i] = REMOVE;
		else if (t.kind === 'crate' &&
			(t.f === undefined || crateOf(names, t.f) === names.crateKey(i, f.module[i])))
			c.key[i] = names.crateKey(i, f.module[i]);
		else if (t.kind === 'focus' || (t.kind === 'recursion' && hit))
			c.action[i] = STATEFUL;
		if (c.action[i])
			return;
	}
}

/** The crate's key that a key of a function or crate means. @param {Names} names @param {number} key */
function crateOf(names, key) {
	return key >= 0 && key < names.threads ?
		names.crateKey(key, names.model.functions.module[key]) : key;
}

export const ACTION_KEEP = KEEP;
export const ACTION_REMOVE = REMOVE;
export const ACTION_DROP = DROP;

/**
 * What becomes of a frame of a function whose action is STATEFUL, in a stack that so far has passed
 * the focuses `seen` and met the functions of recursion transforms at nodes `met`. Writes to `met`
 * are the caller's.
 * @param {Changes} c
 * @param {Model} model
 * @param {Names} names
 * @param {number} plain
 * @param {{seen: number, restart: boolean, jump: number}} s  changed
 * @returns {number} the key; -1: taken out; -2: the sample is dropped
 */
export function changeFrame(c, model, names, plain, s) {
	let key = plain, bit = 1;
	s.restart = false;
	s.jump = -1;
	for (let i = 0; i < c.list.length; i++) {
		const t = c.list[i];
		if (t.kind === 'focus') {
			if (!(s.seen & bit)) {
				if (t.f !== key)
					return -1;
				s.seen |= bit;
				s.restart = true;
			}
			bit <<= 1;
		} else if (t.kind === 'recursion') {
			if (t.f === key)
				s.jump = i;
		} else if (t.kind === 'drop' && t.f === key) {
			return -2;
		} else if (t.kind === 'merge' && t.f === key) {
			return -1;
		} else if (t.kind === 'fold' &&
			model.functions.category[plain] === CATEGORIES.indexOf(t.name ?? '')) {
			return -1;
		} else if (t.kind === 'crate') {
			const crate = names.crateKey(plain, model.functions.module[plain]);
			if (t.f === undefined || crateOf(names, t.f) === crate)
				key = crate;
		}
	}
	return key;
}
