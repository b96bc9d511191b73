// SPDX-License-Identifier: MIT OR Apache-2.0
// CPU per thread over time, samples lost over time.
import {onPath} from './tree.js';

/** @typedef {import('./types.js').Model} Model */
/** @typedef {import('./query.js').Profile} Profile */
/** @typedef {{from: number, to: number, buckets: number}} Range   ns; `to` is past the last bucket */
/** @typedef {{thread: number, weight: number, cpu: Float64Array}} ThreadLine */

const BUCKETS_MAX = 10000;

/** @param {Range} r */
function checkedRange(r) {
	const buckets = Math.max(1, Math.min(BUCKETS_MAX, Math.floor(r.buckets) || 1));
	const to = r.to > r.from ? r.to : r.from + 1;
	return {from: r.from, to, buckets, width: (to - r.from) / buckets};
}

/**
 * Adds a sample's weight where it was used: the CPU time before its moment. Cycles tell no
 * duration, so they count at the moment.
 * @param {Float64Array} line
 * @param {ReturnType<typeof checkedRange>} r
 * @param {number} time
 * @param {number} weight
 * @param {number} length  ns the weight stands for
 */
function addSpan(line, r, time, weight, length) {
	let from = (time - length - r.from) / r.width, to = (time - r.from) / r.width;
	if (to - from < 1e-9) {
		const at = Math.floor(to);
		if (at >= 0 && at < line.length)
			line[at] += weight;
		return;
	}
	const density = weight / (to - from);
	from = Math.max(from, 0);
	to = Math.min(to, line.length);
	for (let at = Math.floor(from); at < to; at++)
		line[at] += density * (Math.min(at + 1, to) - Math.max(at, from));
}

/**
 * Samples lost per bucket, where they were lost: at a moment, or evenly over the time that is told.
 * @param {Model} model
 * @param {Range} range
 */
export function lostLine(model, range) {
	const r = checkedRange(range), {n, from, to, count} = model.losses, line = new Float64Array(r.buckets);
	for (let i = 0; i < n; i++)
		addSpan(line, r, to[i], count[i], to[i] - from[i]);
	return line;
}

/**
 * Ticks tell what was throttled in the time since their CPU's last one.
 * @param {Model} model
 * @param {ReturnType<typeof checkedRange>} r
 */
function throttledLine(model, r) {
	const {n, time, cpu, throttled} = model.ticks, line = new Float64Array(r.buckets);
	/** @type {Map<number, number>} */
	const last = new Map();
	for (let i = 0; i < n; i++) {
		const before = last.get(cpu[i]) ?? Math.max(0, time[i] - 1e9);
		last.set(cpu[i], time[i]);
		if (throttled[i] > 0)
			addSpan(line, r, time[i], throttled[i], time[i] - before);
	}
	return line;
}

/**
 * @param {Model} model
 * @param {Range} range
 */
export function timeline(model, range) {
	const r = checkedRange(range), {n, time, thread, weight} = model.samples;
	const inTime = model.meta.unit === 'ns';
	/** @type {Map<number, ThreadLine>} */
	const lines = new Map();
	const all = new Float64Array(r.buckets);
	for (let i = 0; i < n; i++) {
		const length = inTime ? weight[i] : 0;
		if (time[i] < r.from || time[i] - length >= r.to)
			continue;
		let line = lines.get(thread[i]);
		if (!line) {
			line = {thread: thread[i], weight: 0, cpu: new Float64Array(r.buckets)};
			lines.set(thread[i], line);
		}
		line.weight += weight[i];
		addSpan(line.cpu, r, time[i], weight[i], length);
	}
	for (const line of lines.values())
		for (let b = 0; b < r.buckets; b++)
			all[b] += line.cpu[b];
	const threads = Array.from(lines.values())
		.sort((a, b) => b.weight - a.weight || a.thread - b.thread);
	return {from: r.from, to: r.to, width: r.width, threads, all, lost: lostLine(model, r), throttled: throttledLine(model, r)};
}

/**
 * Weight per bucket of the profile's samples with a frame that matches.
 * @param {Profile} profile
 * @param {Uint8Array} matches  per key
 * @param {Range} range
 */
export function marked(profile, matches, range) {
	const r = checkedRange(range), {time, weight} = profile.model.samples;
	const base = profile.base('function', ''), on = onPath(base.tree, matches);
	const inTime = profile.model.meta.unit === 'ns', line = new Float64Array(r.buckets);
	for (let i = 0; i < base.endOf.length; i++) {
		const end = base.endOf[i], at = profile.lo + i;
		if (end >= 0 && on[base.nodeOfEnd[end]] && time[at] >= r.from)
			addSpan(line, r, time[at], weight[at], inTime ? weight[at] : 0);
	}
	return line;
}
