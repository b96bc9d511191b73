// SPDX-License-Identifier: MIT OR Apache-2.0
// Sessions of memory: measures, and the model in one of them. Its samples are then the rows of the
// session (a stack of a thread each) with that figure as their weight, so that profiles, trees and
// tables answer in it. Figures were counted: shares have no interval.

/** @typedef {import('./types.js').Model} Model */
/** @typedef {import('./types.js').Query} Query */
/** @typedef {import('./types.js').MeasureName} MeasureName */
/** @typedef {import('./types.js').Bin} Bin */

// Moments of a session in a query (`at`, `since`): 0 none, 1 the start, from 2 on the marks.
export const MOMENT_START = 1;
const MOMENT_FIRST_MARK = 2;

/** @type {{name: MeasureName, label: string, unit: 'bytes' | 'count', words: string, domain: number}[]} */
export const MEASURES = [
	{name: 'peak', label: 'Peak', unit: 'bytes', domain: 0, words: 'bytes that were allocated when the whole was at its peak'},
	{name: 'live', label: 'Live at the end', unit: 'bytes', domain: 0, words: 'bytes that are allocated at the end'},
	{name: 'allocs', label: 'Allocations', unit: 'count', domain: 0, words: 'calls that allocate'},
	{name: 'bytes', label: 'Bytes', unit: 'bytes', domain: 0, words: 'bytes asked for'},
	{name: 'churn', label: 'Churn', unit: 'count', domain: 0, words: 'blocks freed before their thread had made 1,024 more allocations'},
	{name: 'growth', label: 'Growth', unit: 'bytes', domain: 0, words: 'bytes grown over the run, as a line through it'},
	{name: 'leaked', label: 'Leaked', unit: 'bytes', domain: 0, words: 'bytes that nothing points to, and what only these lead to'},
	{name: 'mapped', label: 'Mapped', unit: 'bytes', domain: 1, words: 'bytes mapped outside the allocator when mappings were at their peak'},
];

/** @param {Model} model */
export function isMemory(model) {
	return !!model.meta.memory;
}

/**
 * The measure a query is in; null: a session of time.
 * @param {Model} model
 * @param {Query} query
 */
export function measureOf(model, query) {
	const {memory} = model.meta;
	if (!memory)
		return null;
	if (query.at || query.since)
		return MEASURES.find(m => m.name === 'live') ?? MEASURES[0];
	return MEASURES.find(m => m.name === query.measure) ??
		MEASURES.find(m => m.name === memory.measure) ?? MEASURES[0];
}

/** Those that have anything to say. @param {Model} model */
export function measuresOf(model) {
	return MEASURES.filter(m => {
		const column = columnOf(model, m.name);
		for (let i = 0; i < model.heap.n; i++)
			if (model.heap.domain[i] === m.domain && column[i] > 0)
				return true;
		return m.name === model.meta.memory?.measure;
	});
}

/** @param {Model} model @param {MeasureName} name */
function columnOf(model, name) {
	return name === 'mapped' ? model.heap.peak : model.heap[name];
}

/** @param {Model} model @returns {import('./types.js').Moment[]} */
export function momentsOf(model) {
	return model.meta.memory?.moments ?? [];
}

/** How a query's moment is called. @param {Model} model @param {number} moment */
export function momentName(model, moment) {
	return moment === MOMENT_START ? 'the start' : momentsOf(model)[moment - MOMENT_FIRST_MARK]?.name ?? 'the end';
}

/** All that a query may name, with their names. @param {Model} model @returns {[number, string][]} */
export function momentChoices(model) {
	return [MOMENT_START, ...momentsOf(model).map((_, i) => i + MOMENT_FIRST_MARK)].map(k => [k, momentName(model, k)]);
}

/**
 * Live bytes per row at a moment.
 * @param {Model} model
 * @param {number} moment
 */
function liveAt(model, moment) {
	const {heap, heapMarks: marks} = model, live = new Float64Array(heap.n);
	for (let i = 0; i < marks.n; i++)
		if (marks.moment[i] === moment - MOMENT_FIRST_MARK)
			live[marks.row[i]] += marks.bytes[i];
	return live;
}

/** @type {WeakMap<Model, Map<string, Model>>} */
const measuredModels = new WeakMap();

/**
 * The model in the query's measure, with plumbing folded or not; itself for a session of time. The same
 * object for the same question.
 * @param {Model} model
 * @param {Query} query
 * @returns {Model}
 */
export function measuredModel(model, query) {
	const measure = measureOf(model, query);
	if (!measure)
		return model;
	const at = query.at ?? 0, key = `${measure.name} ${query.plumbing ? 1 : 0} ${at}`, known = measuredModels.get(model) ?? new Map();
	measuredModels.set(model, known);
	let made = known.get(key);
	if (!made) {
		made = {...model, meta: {...model.meta, unit: measure.unit},
			samples: heapSamples(model, {domain: measure.domain, plumbing: !!query.plumbing,
				weight: at ? liveAt(model, at) : columnOf(model, measure.name)})};
		known.set(key, made);
	}
	return made;
}

/**
 * @param {Model} model
 * @param {{domain: number, plumbing: boolean, weight: Float64Array}} what
 * @returns {Model['samples']}
 */
function heapSamples(model, {domain, plumbing, weight}) {
	const {heap} = model;
	const rows = [];
	for (let i = 0; i < heap.n; i++)
		if (heap.domain[i] === domain)
			rows.push(i);
	const stack = plumbing ? heap.stack : heap.folded;
	return {n: rows.length, time: new Float64Array(rows.length), cpu: new Uint16Array(rows.length),
		thread: Uint32Array.from(rows, i => heap.thread[i]), stack: Int32Array.from(rows, i => stack[i]),
		weight: Float64Array.from(rows, i => weight[i]), end: Uint16Array.from(rows, i => heap.end[i])};
}

/**
 * Live bytes of a process over time as steps: at `time[i]` there were `live[i]`, and since the point
 * before at most `high[i]`.
 * @param {Model} model
 * @param {number} process
 */
export function liveLine(model, process) {
	const {heapTimes: t} = model;
	/** @type {number[]} */
	const at = [];
	for (let i = 0; i < t.n; i++)
		if (t.process[i] === process)
			at.push(i);
	at.sort((a, b) => t.time[a] - t.time[b]);
	const pick = (/** @type {Float64Array} */ column) => Float64Array.from(at, i => column[i]);
	return {n: at.length, time: pick(t.time), live: pick(t.live), high: pick(t.high),
		mapped: pick(t.mapped), resident: pick(t.resident)};
}

/**
 * A line per bucket, for drawing: `live` as it was at the bucket's end, `high` the most there may have
 * been in it: what is told of a stretch holds for all of it.
 * @param {ReturnType<typeof liveLine>} line
 * @param {{from: number, to: number, buckets: number}} range
 */
export function bucketLine(line, {from, to, buckets}) {
	const width = (to - from) / buckets || 1;
	const live = new Float64Array(buckets), high = new Float64Array(buckets),
		resident = new Float64Array(buckets), mapped = new Float64Array(buckets);
	// The bucket a moment is in; one at its end is still in it.
	const at = (/** @type {number} */ time) => Math.ceil((time - from) / width) - 1;
	let k = 0, now = 0, rss = 0, maps = 0;
	for (let b = 0; b < buckets; b++) {
		for (; k < line.n && at(line.time[k]) <= b; k++) {
			now = line.live[k];
			rss = line.resident[k] || rss;
			maps = line.mapped[k];
		}
		live[b] = high[b] = now;
		resident[b] = rss;
		mapped[b] = maps;
	}
	for (k = 0; k < line.n; k++) {
		const first = k ? at(line.time[k - 1]) + 1 : 0, last = Math.min(at(line.time[k]), buckets - 1);
		for (let b = Math.max(0, Math.min(first, last)); b <= last; b++)
			high[b] = Math.max(high[b], line.high[k], line.live[k]);
	}
	return {live, high, resident, mapped};
}

/**
 * Bins at both ends that come to less than `least` together are one.
 * @param {Bin[]} bins
 * @param {number} least
 * @returns {Bin[]}
 */
export function withoutTails(bins, least) {
	let lo = 0,
		hi = bins.length,
		below = 0,
		above = 0;
	while (lo < hi && below + bins[lo].count < least) below += bins[lo++].count;
	while (hi > lo && above + bins[hi - 1].count < least) above += bins[--hi].count;
	const tail = (/** @type {string} */ label, /** @type {number} */ n) => (n ? [{label, count: n}] : []);
	return [...tail('less', below), ...bins.slice(lo, hi), ...tail('more', above)];
}
