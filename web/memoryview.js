// SPDX-License-Identifier: MIT OR Apache-2.0
// A session of memory: its first screen, and what was allocated over time. Figures were counted, so
// they have no intervals.
import {el, fill, cssColor} from './page.js';
import {plainWords, term, termMark} from './glossary.js';
import {bytes, count, duration, middle, percent, shareText} from './format.js';
import {bucketLine, liveLine, measureOf, withoutTails} from './memory.js';
import {axisLabel, drawAxis, sizedCanvas} from './lanes.js';
import {showTip} from './layer.js';
import {defaultQuery} from './query.js';
import {fact, firstScreen, functionName, hotCard, runSection} from './firstscreen.js';
import {figuresTable, leaksCard, residentCards} from './leaksview.js';

/** @typedef {import('./page.js').Page} Page */
/** @typedef {import('./types.js').Model} Model */
/** @typedef {import('./types.js').Bin} Bin */

const MEMORY_NAME = 90,
	MEMORY_ROWS = 6,
	MEMORY_AXIS = 18,
	MEMORY_SCALE = 64,
	MEMORY_TAIL = 0.002;

/** @param {Model} model */
function memoryOf(model) {
	const {memory} = model.meta;
	if (!memory) throw new Error('no session of memory');
	return memory;
}

/** The process that had most. @param {Model} model */
function mainProcess(model) {
	const {processes} = memoryOf(model);
	return processes.reduce((a, b) => (b.peak > a.peak ? b : a), processes[0]);
}

/**
 * The answer in a few sentences.
 * @param {Model} model
 */
export function memoryLead(model) {
	const {meta} = model,
		memory = memoryOf(model),
		p = mainProcess(model);
	const wall = meta.wall ?? meta.duration,
		of = measureOf(model, defaultQuery());
	let text = `${middle(plainWords(meta.program), MEMORY_NAME)} ran for ${duration(wall)}.`;
	if (!p) return `${text} No allocation was seen.`;
	const several = memory.processes.length > 1;
	text += ` ${several ? `Its process ${plainWords(model.processes[p.process]?.name ?? '')}` : 'It'} had `;
	text += `${bytes(p.peak)} allocated at its ${termMark('peak')}, ${duration(p.peakTime)} after the start`;
	text += p.live
		? `, and ${bytes(p.live)} in ${count(p.liveBlocks)} block${p.liveBlocks === 1 ? '' : 's'} at the end.`
		: ', and nothing at the end.';
	text += ` ${several ? 'All processes' : 'It'} made ${count(memory.allocs)} allocations of ${bytes(memory.bytes)} together.`;
	const hot = meta.hottest[0];
	if (hot && hot.self.value >= 0.2)
		text += ` One function stands out: ${middle(plainWords(functionName(model, hot.function).brief), MEMORY_NAME)} has ${shareText(hot.self)} of ${of?.name === 'peak' ? 'the peak' : 'it'} by itself.`;
	return text;
}

/** @param {Page} page */
export function makeMemoryOverview(page) {
	const {model} = page,
		memory = memoryOf(model),
		lead = memoryLead(model);
	const chart = new MemoryChart(page, {tall: false});
	return firstScreen(page, {
		cards: [
			memoryRun(model, lead),
			el(
				'section',
				{class: 'card wide-card'},
				el('h2', {}, 'Memory over time', el('span', {class: 'note'}, chart.note)),
				chart.element,
				chart.legend,
			),
			memoryHot(page),
			el('div', {class: 'cards'}, memoryTypes(page), memoryReallocs(page)),
			leaksCard(page),
			...residentCards(page),
			memoryBins('Sizes', 'blocks by the bytes that were asked for at first', memory.sizes),
			memoryBins('Lives', 'freed blocks by the time they lived', memory.lifetimes),
		],
		show: () => chart.show(),
		lead,
		rows: MEMORY_ROWS,
	});
}

/** @param {Model} model @param {string} lead */
function memoryRun(model, lead) {
	const {meta} = model,
		memory = memoryOf(model),
		p = mainProcess(model);
	const small = (/** @type {string} */ text) => el('small', {}, text);
	return runSection(model, {
		facts: [
			fact('Ran for', duration(meta.wall ?? meta.duration)),
			fact(term('peak', 'Peak'), bytes(p?.peak ?? 0), small(` after ${duration(p?.peakTime ?? 0)}`)),
			fact(term('live', 'Live at the end'), bytes(p?.live ?? 0), small(` in ${count(p?.liveBlocks ?? 0)} blocks`)),
			fact('Allocations', count(memory.allocs), small(` of ${bytes(memory.bytes)}`)),
		],
		lead,
		host: [],
	});
}

/** @param {Page} page */
function memoryHot(page) {
	const {model} = page,
		hot = model.meta.hottest.filter(h => h.self.value > 0).slice(0, MEMORY_ROWS),
		measure = measureOf(model, defaultQuery());
	return hotCard(page, hot, {
		title: measure?.name === 'peak' ? 'Who has the peak' : 'Who has it',
		note: [measure?.words ?? ''],
		none: 'Nothing was allocated.',
		links: [['Who allocates most often', {view: 'table', query: {...page.state.query, measure: 'allocs'}}]],
	});
}

/** @param {Page} page */
function memoryReallocs(page) {
	const {model} = page,
		rows = memoryOf(model).reallocs.filter(r => r.advice || r.copied).slice(0, MEMORY_ROWS);
	if (!rows.length) return null;
	return el(
		'section',
		{class: 'card'},
		el('h2', {}, 'Growing step by step', el('span', {class: 'note'}, 'bytes that realloc moved')),
		figuresTable(
			['copied', 'reallocs', 'to begin with', 'function'],
			rows.map(r => {
				const name = r.function < 0 ? null : functionName(model, r.function);
				return [
					bytes(r.copied),
					count(r.reallocs),
					r.advice || '–',
					name
						? el('a', {href: page.href({view: 'sandwich', f: r.function}), title: name.full},
							name.brief, el('span', {class: 'faint'}, r.line ? ` :${r.line}` : ''))
						: '[no frames]',
				];
			}),
		),
	);
}

/** @param {Page} page */
function memoryTypes({model}) {
	const measure = measureOf(model, defaultQuery());
	const column = /** @type {'peak'} */ (measure && measure.name !== 'mapped' ? measure.name : 'peak');
	const known = memoryOf(model).types,
		rows = known.filter(t => t.name && t[column] > 0).slice(0, MEMORY_ROWS);
	const whole = known.reduce((s, t) => s + t[column], 0) || 1;
	if (!rows.length) return null;
	return el(
		'section',
		{class: 'card'},
		el('h2', {}, 'Types', el('span', {class: 'note'}, 'the container that allocates')),
		figuresTable(
			[measure?.label.toLowerCase() ?? '', '', 'allocations', 'type'],
			rows.map(t => [
				measure?.unit === 'count' ? count(t[column]) : bytes(t[column]),
				percent(t[column] / whole),
				count(t.allocs),
				t.name,
			]),
		),
	);
}

/** @param {string} title @param {string} note @param {Bin[]} bins */
function memoryBins(title, note, bins) {
	const most = bins.reduce((m, b) => Math.max(m, b.count), 0),
		all = bins.reduce((s, b) => s + b.count, 0);
	if (!most) return null;
	const shown = withoutTails(bins, all * MEMORY_TAIL);
	return el(
		'section',
		{class: 'card'},
		el('h2', {}, title, el('span', {class: 'note'}, note)),
		el(
			'div',
			{class: 'bins', role: 'list'},
			...shown.flatMap(b => [
				el('span', {class: 'label number'}, b.label),
				el(
					'span',
					{class: 'track', role: 'listitem', 'aria-label': `${b.label}: ${count(b.count)}`},
					el('span', {class: 'bar-fill', style: {width: `${(b.count / most) * 100}%`, 'min-width': b.count ? '1px' : '0'}}),
				),
				el('span', {class: 'number soft', title: count(b.count)}, percent(b.count / all)),
			]),
		),
	);
}

/** Round steps of a scale of bytes, at most `n`. @param {number} most @param {number} n */
export function byteSteps(most, n) {
	let step = 1;
	while (most / step > n) step *= 2;
	const steps = [];
	for (let v = step; v <= most; v += step) steps.push(v);
	return steps;
}

/**
 * One process's live bytes as an area, the most in each stretch as its outline, resident memory as a
 * line, the peak and marks where they were.
 */
class MemoryChart {
	/** @param {Page} page @param {{tall: boolean}} how */
	constructor(page, how) {
		this.page = page;
		this.note = el('span', {});
		this.legend = el('div', {class: 'legend', style: {'margin-top': '6px'}});
		this.canvas = /** @type {HTMLCanvasElement} */ (
			el('canvas', {
				role: 'img',
				'aria-label': 'Allocated bytes over time',
				style: {width: '100%', height: how.tall ? '420px' : '180px', display: 'block'},
			})
		);
		this.element = this.canvas;
		this.process = mainProcess(page.model)?.process ?? 0;
		this.canvas.addEventListener('pointermove', event => this.tell(event));
		this.canvas.addEventListener('pointerleave', () => showTip(null, ''));
		/** @type {{from: number, to: number, buckets: number, most: number,
		 *   values: ReturnType<typeof bucketLine>} | null} */
		this.drawn = null;
	}

	/** @param {number} process */
	choose(process) {
		this.process = process;
		this.show();
	}

	show() {
		const {canvas, page} = this,
			w = canvas.clientWidth,
			h = canvas.clientHeight;
		if (!w) return;
		const from = 0,
			to = page.model.meta.duration || 1;
		const line = liveLine(page.model, this.process);
		const buckets = Math.max(1, Math.floor(w - MEMORY_SCALE));
		const values = bucketLine(line, {from, to, buckets});
		const withRss = values.resident.some(x => x > 0);
		let most = 1;
		for (let b = 0; b < buckets; b++) most = Math.max(most, values.high[b], values.resident[b]);
		// Resident memory far above would flatten what was asked for.
		const high = values.high.reduce((a, b) => Math.max(a, b), 1),
			showRss = withRss && most < high * 8;
		if (!showRss) most = high;
		most *= 1.08;
		this.drawn = {from, to, buckets, most, values};
		const ctx = sizedCanvas(canvas, w, h),
			box = {x: MEMORY_SCALE, y: 4, w: w - MEMORY_SCALE, h: h - MEMORY_AXIS - 4};
		this.drawScale(ctx, box, most);
		this.drawLines(ctx, box, showRss);
		this.drawMoments(ctx, box);
		drawAxis(ctx, {x: box.x, y: box.y + box.h, w: box.w, h: MEMORY_AXIS}, from, to);
		this.showLegend(showRss, withRss);
	}

	/** @param {CanvasRenderingContext2D} ctx @param {import('./lanes.js').LaneBox} box @param {number} most */
	drawScale(ctx, box, most) {
		ctx.font = '11px system-ui, sans-serif';
		ctx.textBaseline = 'middle';
		ctx.textAlign = 'right';
		for (const v of byteSteps(most, Math.max(2, Math.floor(box.h / 40)))) {
			const y = Math.round(box.y + box.h - (v / most) * box.h) + 0.5;
			ctx.strokeStyle = cssColor('--line');
			ctx.beginPath();
			ctx.moveTo(box.x, y);
			ctx.lineTo(box.x + box.w, y);
			ctx.stroke();
			ctx.fillStyle = cssColor('--faint');
			ctx.fillText(bytes(v).replace(/\.0+ /, ' '), box.x - 6, y);
		}
		ctx.textAlign = 'left';
	}

	/** @param {CanvasRenderingContext2D} ctx @param {import('./lanes.js').LaneBox} box @param {boolean} rss */
	drawLines(ctx, box, rss) {
		const d = this.drawn;
		if (!d) return;
		const at = (/** @type {number} */ v) => box.y + box.h - Math.min(1, v / d.most) * box.h;
		const path = (/** @type {Float64Array} */ values) => {
			for (let b = 0; b < d.buckets; b++) ctx.lineTo(box.x + b + 0.5, at(values[b]));
		};
		ctx.beginPath();
		ctx.moveTo(box.x, box.y + box.h);
		path(d.values.high);
		ctx.lineTo(box.x + box.w, box.y + box.h);
		ctx.fillStyle = cssColor('--cat-own');
		ctx.globalAlpha = 0.35;
		ctx.fill();
		ctx.globalAlpha = 1;
		ctx.beginPath();
		path(d.values.live);
		ctx.strokeStyle = cssColor('--cat-own');
		ctx.lineWidth = 1.5;
		ctx.stroke();
		ctx.lineWidth = 1;
		if (rss) {
			ctx.beginPath();
			path(d.values.resident);
			ctx.strokeStyle = cssColor('--cat-crate');
			ctx.stroke();
		}
	}

	/** The peak and the marks. @param {CanvasRenderingContext2D} ctx @param {import('./lanes.js').LaneBox} box */
	drawMoments(ctx, box) {
		const d = this.drawn,
			memory = memoryOf(this.page.model),
			p = memory.processes.find(x => x.process === this.process);
		if (!d || !p) return;
		const x = (/** @type {number} */ t) => box.x + ((t - d.from) / (d.to - d.from)) * box.w;
		ctx.fillStyle = ctx.strokeStyle = cssColor('--accent');
		ctx.beginPath();
		ctx.arc(x(p.peakTime), box.y + box.h - Math.min(1, p.peak / d.most) * box.h, 4, 0, 7);
		ctx.fill();
		ctx.setLineDash([3, 3]);
		ctx.strokeStyle = cssColor('--faint');
		ctx.fillStyle = cssColor('--ink');
		let free = -Infinity;
		for (const m of memory.marks.filter(k => k.process === this.process)) {
			const mx = Math.round(x(m.time)) + 0.5;
			ctx.beginPath();
			ctx.moveTo(mx, box.y);
			ctx.lineTo(mx, box.y + box.h);
			ctx.stroke();
			if (mx < free) continue;
			const text = middle(m.name, 24);
			ctx.fillText(text, mx + 3, box.y + 7);
			free = mx + ctx.measureText(text).width + 8;
		}
		ctx.setLineDash([]);
	}

	/** @param {boolean} rss @param {boolean} known */
	showLegend(rss, known) {
		const p = memoryOf(this.page.model).processes.find(x => x.process === this.process);
		const dot = (/** @type {string} */ color, /** @type {string} */ text) =>
			el('span', {}, el('span', {class: 'dot', style: {background: `var(${color})`}}), text);
		fill(this.note, p ? `peak ${bytes(p.peak)} after ${duration(p.peakTime)}` : '');
		fill(
			this.legend,
			dot('--cat-own', 'allocated (the most in each stretch, and at its end)'),
			rss ? dot('--cat-crate', 'resident, as the system counts') : null,
			known && !rss ? el('span', {class: 'faint'}, 'resident memory is far above what was asked for and not drawn') : null,
			dot('--accent', 'peak'),
		);
	}

	/** @param {PointerEvent} event */
	tell(event) {
		const d = this.drawn,
			box = this.canvas.getBoundingClientRect();
		if (!d) return;
		const b = Math.floor(event.clientX - box.left - MEMORY_SCALE);
		if (b < 0 || b >= d.buckets) return;
		const time = d.from + ((d.to - d.from) * (b + 0.5)) / d.buckets,
			rss = d.values.resident[b],
			maps = d.values.mapped[b];
		showTip(
			{x: event.clientX, y: event.clientY},
			`${axisLabel(time, d.to - d.from)} · ${bytes(d.values.live[b])} allocated` +
				(d.values.high[b] > d.values.live[b] ? `, at most ${bytes(d.values.high[b])}` : '') +
				(rss ? ` · resident ${bytes(rss)}` : '') +
				(maps ? ` · mapped ${bytes(maps)}` : ''),
		);
	}
}

/** The time line of a session of memory: a chart per process. @param {Page} page */
export function makeMemoryTime(page) {
	const {model} = page,
		memory = memoryOf(model),
		chart = new MemoryChart(page, {tall: true});
	const choice = el(
		'select',
		{
			'aria-label': 'Process',
			onchange: (/** @type {Event} */ event) =>
				chart.choose(Number(/** @type {HTMLSelectElement} */ (event.target).value)),
		},
		...memory.processes.map(p =>
			el(
				'option',
				{value: p.process, selected: p.process === chart.process},
				`${model.processes[p.process]?.name ?? '?'} ${model.processes[p.process]?.pid ?? ''} · peak ${bytes(p.peak)}`,
			),
		),
	);
	const marks = memory.marks.length
		? figuresTable(
				['time', 'live then', 'mark'],
				memory.marks.map(m => [duration(m.time), bytes(m.live), m.name]),
			)
		: null;
	const element = el(
		'div',
		{class: 'view'},
		el('div', {class: 'bar'}, memory.processes.length > 1 ? choice : null, el('span', {class: 'note number'}, chart.note), el('span', {class: 'fill'})),
		el('div', {class: 'memory-time'}, chart.element, chart.legend, marks),
	);
	new ResizeObserver(() => element.isConnected && chart.show()).observe(element);
	return {
		element,
		show: () => chart.show(),
		text: () => {
			const line = liveLine(model, chart.process);
			return Array.from({length: line.n}, (_, i) =>
				`${duration(line.time[i]).padStart(10)}  ${bytes(line.live[i]).padStart(10)}`).join('\n') + '\n';
		},
	};
}
