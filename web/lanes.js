// SPDX-License-Identifier: MIT OR Apache-2.0
// CPU over time as small areas: what the first screen, the strip in the filter bar and the time
// line draw. A lane's height is one CPU or a round part of it (the busiest moment, where weights are
// no times).
import {cssColor} from './page.js';
import {GROUPS, GROUP_OF} from './cells.js';

/** @typedef {import('./types.js').Model} Model */
/** @typedef {{from: number, to: number, buckets: number}} LaneRange */

/**
 * Weight per bucket, thread and group of code. `values[thread]` has `buckets` numbers per group.
 * @typedef {object} LaneData
 * @property {number} from
 * @property {number} to
 * @property {number} buckets
 * @property {number} width   ns of a bucket
 * @property {Map<number, Float64Array>} threads
 * @property {Map<number, number>} weight   of a thread in the range
 * @property {number} most   weight of a bucket that fills a lane: one CPU or a round part of it
 * @property {boolean[]} groups   which are there
 */

/** @type {WeakMap<Model, Uint8Array>} */
const laneGroups = new WeakMap();

/**
 * Per stack the group of its innermost function.
 * @param {Model} model
 */
export function stackGroups(model) {
	const known = laneGroups.get(model);
	if (known) return known;
	const groups = new Uint8Array(model.stacks.n);
	for (let i = 0; i < groups.length; i++) {
		const place = model.frames.chain[model.stacks.frame[i]];
		groups[i] =
			GROUP_OF[model.functions.category[model.places.function[place]]] ?? GROUPS.length - 1;
	}
	laneGroups.set(model, groups);
	return groups;
}

/** The first sample at or after a time. @param {Float64Array} times @param {number} time */
export function firstAt(times, time) {
	let low = 0,
		high = times.length;
	while (low < high) {
		const mid = (low + high) >> 1;
		if (times[mid] < time) low = mid + 1;
		else high = mid;
	}
	return low;
}

/**
 * Buckets wide enough that chance does not draw teeth: about eight samples of one busy CPU, and
 * two pixels.
 * @param {Model} model
 * @param {number} from
 * @param {number} to
 * @param {number} pixels
 */
export function laneBuckets(model, from, to, pixels) {
	const most = (((to - from) / 1e9) * Math.max(1, model.meta.rate)) / 8;
	return Math.max(1, Math.floor(Math.min(pixels / 2, Math.max(most, 12))));
}

/**
 * @param {Model} model
 * @param {LaneRange} range
 * @returns {LaneData}
 */
export function laneData(model, {from, to, buckets}) {
	const groups = stackGroups(model),
		{time, thread, stack, weight} = model.samples;
	const width = (to - from) / buckets || 1,
		spread = model.meta.unit === 'ns';
	/** @type {LaneData} */
	const data = {
		from,
		to,
		buckets,
		width,
		threads: new Map(),
		weight: new Map(),
		most: width,
		groups: [],
	};
	/** @type {Float64Array[]} */
	const lanes = [];
	const sums = new Float64Array(model.threads.length),
		used = new Uint8Array(GROUPS.length);
	for (let i = firstAt(time, from); i < time.length && time[i] <= to; i++) {
		const t = thread[i],
			w = weight[i];
		const values = (lanes[t] ||= new Float64Array(buckets * GROUPS.length));
		const g = stack[i] < 0 ? GROUPS.length - 1 : groups[stack[i]];
		laneSpread(values, g, data, time[i], spread ? w : 0, w);
		used[g] = 1;
		sums[t] += w;
	}
	lanes.forEach((values, t) => {
		data.threads.set(t, values);
		data.weight.set(t, sums[t]);
	});
	data.groups = Array.from(used, x => x === 1);
	const most = laneMost(data);
	// A round part of a CPU that all lanes fit in: threads that share CPUs use little of one each.
	data.most =
		model.meta.unit === 'ns'
			? width * ([0.02, 0.05, 0.1, 0.25, 0.5].find(x => most <= x * width) ?? 1)
			: most;
	return data;
}

/**
 * A sample's weight is the CPU time before its moment, and is drawn there.
 * @param {Float64Array} values
 * @param {number} group
 * @param {LaneData} data
 * @param {number} time
 * @param {number} length  ns; 0: at the moment
 * @param {number} weight
 */
function laneSpread(values, group, {from, width, buckets}, time, length, weight) {
	const end = Math.min(buckets, (time - from) / width),
		begin = (time - length - from) / width;
	if (end - begin < 0.01) {
		values[Math.min(buckets - 1, Math.floor(end)) * GROUPS.length + group] += weight;
		return;
	}
	const density = weight / ((time - from) / width - begin);
	for (let b = Math.max(0, Math.floor(begin)); b < end; b++)
		values[b * GROUPS.length + group] += density * (Math.min(b + 1, end) - Math.max(b, begin));
}

/** @param {LaneData} data */
function laneMost(data) {
	let most = 0;
	for (const values of data.threads.values())
		for (let b = 0; b < data.buckets; b++) most = Math.max(most, laneSum(values, b));
	return most || 1;
}

/** @param {Float64Array} values @param {number} bucket */
export function laneSum(values, bucket) {
	let sum = 0;
	for (let g = 0; g < GROUPS.length; g++) sum += values[bucket * GROUPS.length + g];
	return sum;
}

/** Each group's part of the weight. @param {LaneData} data */
export function groupParts(data) {
	const sums = GROUPS.map(() => 0);
	for (const values of data.threads.values())
		for (let i = 0; i < values.length; i++) sums[i % GROUPS.length] += values[i];
	const all = sums.reduce((a, b) => a + b, 0) || 1;
	return sums.map(x => x / all);
}

/**
 * What a lane's full height stands for.
 * @param {LaneData} data
 * @param {Model} model
 * @param {number} [all]  weight that fills the lane of all threads, where there is one
 */
export function laneScale(data, model, all = data.most) {
	if (model.meta.unit !== 'ns') return '';
	const part = data.most / data.width,
		text = part >= 0.99 ? 'one CPU' : `${Math.round(part * 100)} % of a CPU`,
		sum = all > data.most ? `, of all threads ${(all / data.width).toFixed(1)} CPUs` : '';
	return `full height: ${text}${sum}`;
}

/**
 * All threads in one lane.
 * @param {LaneData} data
 * @returns {Float64Array}
 */
export function laneTotal(data) {
	const all = new Float64Array(data.buckets * GROUPS.length);
	for (const values of data.threads.values())
		for (let i = 0; i < all.length; i++) all[i] += values[i];
	return all;
}

/** A canvas at the screen's resolution. @param {HTMLCanvasElement} canvas @param {number} w @param {number} h */
export function sizedCanvas(canvas, w, h) {
	const scale = Math.min(3, window.devicePixelRatio || 1);
	const [pw, ph] = [Math.max(1, Math.round(w * scale)), Math.max(1, Math.round(h * scale))];
	if (canvas.width !== pw || canvas.height !== ph) {
		canvas.width = pw;
		canvas.height = ph;
	}
	const ctx = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
	ctx.setTransform(scale, 0, 0, scale, 0, 0);
	ctx.clearRect(0, 0, w, h);
	return ctx;
}

/** Colours of the groups in the theme that is on. @returns {string[]} */
export function groupColors() {
	return GROUPS.map(g => cssColor(`--cat-${g.id}`));
}

/**
 * @typedef {object} LaneBox
 * @property {number} x
 * @property {number} y
 * @property {number} w
 * @property {number} h
 */

/**
 * Stacked areas, groups in their order from the bottom.
 * @param {CanvasRenderingContext2D} ctx
 * @param {LaneBox} box
 * @param {Float64Array} values
 * @param {{buckets: number, most: number, colors: string[]}} how
 */
export function drawLane(ctx, box, values, {buckets, most, colors}) {
	const step = box.w / buckets;
	for (let g = GROUPS.length - 1; g >= 0; g--) {
		ctx.beginPath();
		let any = false;
		for (let b = 0; b < buckets; b++) {
			let height = 0;
			for (let k = 0; k <= g; k++) height += values[b * GROUPS.length + k];
			if (!values[b * GROUPS.length + g]) continue;
			const h = Math.min(box.h, Math.max(1, (height / most) * box.h));
			ctx.rect(box.x + b * step, box.y + box.h - h, Math.max(step, 0.5), h);
			any = true;
		}
		ctx.fillStyle = colors[g];
		if (any) ctx.fill();
	}
}

/**
 * The part of a lane whose samples pass a searched name, over the whole lane dimmed.
 * @param {CanvasRenderingContext2D} ctx
 * @param {LaneBox} box
 * @param {Float64Array} found  weight per bucket
 * @param {number} most
 */
export function drawFound(ctx, box, found, most) {
	const step = box.w / found.length;
	ctx.save();
	ctx.fillStyle = cssColor('--paper');
	ctx.globalAlpha = 0.6;
	ctx.fillRect(box.x, box.y, box.w, box.h);
	ctx.globalAlpha = 1;
	ctx.fillStyle = cssColor('--mark');
	for (let b = 0; b < found.length; b++)
		if (found[b] > 0) {
			const h = Math.min(box.h, Math.max(1, (found[b] / most) * box.h));
			ctx.fillRect(box.x + b * step, box.y + box.h - h, Math.max(step, 0.5), h);
		}
	ctx.restore();
}

/**
 * Where samples were lost: hatched over the whole height, denser the more were lost.
 * @param {CanvasRenderingContext2D} ctx
 * @param {LaneBox} box
 * @param {Float64Array} lost
 */
export function drawLost(ctx, box, lost) {
	const step = box.w / lost.length;
	ctx.save();
	ctx.strokeStyle = cssColor('--lost');
	ctx.lineWidth = 1;
	for (let b = 0; b < lost.length; b++) {
		if (!lost[b]) continue;
		const x = box.x + b * step,
			w = Math.max(2, step);
		ctx.save();
		ctx.beginPath();
		ctx.rect(x, box.y, w, box.h);
		ctx.clip();
		ctx.globalAlpha = 0.14;
		ctx.fillStyle = ctx.strokeStyle;
		ctx.fillRect(x, box.y, w, box.h);
		ctx.globalAlpha = 0.8;
		ctx.beginPath();
		for (let at = -box.h; at < w; at += 5) {
			const from = x - ((x + at) % 5) + at;
			ctx.moveTo(from, box.y + box.h);
			ctx.lineTo(from + box.h, box.y);
		}
		ctx.stroke();
		ctx.restore();
	}
	ctx.restore();
}

/**
 * Times for an axis: round steps of at least `least` pixels.
 * @param {number} from
 * @param {number} to
 * @param {number} pixels
 * @param {number} [least]
 * @returns {number[]}
 */
export function axisTimes(from, to, pixels, least = 90) {
	const span = to - from;
	if (!(span > 0) || pixels < 10) return [];
	const rough = (span * least) / pixels,
		power = 10 ** Math.floor(Math.log10(rough));
	const step = [1, 2, 5, 10].map(k => k * power).find(s => s >= rough) ?? rough;
	const times = [];
	for (let t = Math.ceil(from / step) * step; t <= to; t += step) times.push(t);
	return times;
}

/**
 * "0.4 s" with as many decimals as neighbours need to differ.
 * @param {number} time
 * @param {number} span  of the axis
 */
export function axisLabel(time, span) {
	const [unit, of] = span >= 2e9 ? ['s', 1e9] : span >= 2e6 ? ['ms', 1e6] : ['µs', 1e3];
	if (span >= 600e9)
		return `${Math.floor(time / 60e9)}:${String(Math.floor(time / 1e9) % 60).padStart(2, '0')} min`;
	const digits = Math.max(0, Math.ceil(-Math.log10(span / Number(of) / 8)));
	return `${(time / Number(of)).toFixed(Math.min(digits, 3))} ${unit}`;
}

/**
 * An axis of labels and ticks.
 * @param {CanvasRenderingContext2D} ctx
 * @param {LaneBox} box
 * @param {number} from
 * @param {number} to
 */
export function drawAxis(ctx, box, from, to) {
	ctx.font = '11px system-ui, sans-serif';
	ctx.fillStyle = cssColor('--faint');
	ctx.strokeStyle = cssColor('--line');
	ctx.textBaseline = 'middle';
	for (const t of axisTimes(from, to, box.w)) {
		const x = box.x + ((t - from) / (to - from)) * box.w;
		ctx.beginPath();
		ctx.moveTo(Math.round(x) + 0.5, box.y);
		ctx.lineTo(Math.round(x) + 0.5, box.y + box.h);
		ctx.stroke();
		const label = axisLabel(t, to - from);
		if (x + ctx.measureText(label).width + 6 <= box.x + box.w)
			ctx.fillText(label, x + 4, box.y + box.h / 2);
	}
}
