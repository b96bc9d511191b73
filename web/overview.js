// SPDX-License-Identifier: MIT OR Apache-2.0
// The first screen of a session of time: what ran, where its time went, how sure that is, and what to do next.
import {el, fill} from './page.js';
import {plainWords, term, termMark} from './glossary.js';
import {duration, count, middle, shareText, weight} from './format.js';
import {fact, firstScreen, functionName, hotCard, runSection} from './firstscreen.js';
import {lostLine} from './timeline.js';
import {lanePart, groupLegend} from './cells.js';
import {dragRange, shadeOutside} from './filterbar.js';
import {
	laneData,
	laneBuckets,
	laneScale,
	groupParts,
	drawLane,
	drawLost,
	drawAxis,
	groupColors,
	sizedCanvas,
} from './lanes.js';

/** @typedef {import('./page.js').Page} Page */

const OVERVIEW_LANES = 6,
	OVERVIEW_HOT = 5;
const LEAD_NAME = 90;

/**
 * The answer in two or three sentences.
 * @param {import('./types.js').Model} model
 */
export function leadText(model) {
	const {meta} = model,
		cpu = meta.cpuTime,
		hot = meta.hottest;
	const wall = meta.wall ?? meta.duration;
	let text = `${middle(plainWords(meta.program), LEAD_NAME)} ran for ${duration(wall)}`;
	if (cpu !== null && wall > 0) {
		const busy = cpu / wall;
		text += ` and used ${duration(cpu)} of ${termMark('CPU time')}: `;
		text +=
			busy < 0.95
				? `${Math.round(busy * 100)} % of one CPU. The rest of the time it waited, for a CPU or for something else, which is not in this profile.`
				: busy < 1.1
					? 'one CPU was busy all the time.'
					: `${busy.toFixed(1)} CPUs were busy on average.`;
	} else text += '.';
	if (!hot.length) return `${text} No ${termMark('sample')} was taken.`;
	const name = middle(plainWords(functionName(model, hot[0].function).brief), LEAD_NAME);
	const sum = hot.reduce((a, h) => a + h.self.value, 0);
	if (hot[0].self.value >= 0.2)
		text += ` One function stands out: ${name} takes ${shareText(hot[0].self)} of it by itself.`;
	else if (sum < 0.25)
		text +=
			` No function stands out: the five hottest take ${Math.round(sum * 100)} % together, so look at the` +
			' call tree for what was being done.';
	else text += ` The five hottest functions take ${Math.round(sum * 100)} % together.`;
	const warnings = meta.trust.lines.filter(l => l.level === 'warn').length;
	if (warnings)
		text += ` ${warnings === 1 ? 'One thing limits' : `${warnings} things limit`} what these figures can say: see the ${termMark('trust block')}.`;
	return text;
}

/** @param {Page} page */
export function makeOverview(page) {
	const lanes = el('div', {class: 'lanes-small'});
	const legend = el('div'),
		note = el('span', {class: 'note'}),
		lead = leadText(page.model);
	let drawn = '';
	const view = firstScreen(page, {
		cards: [
			overviewRun(page.model, lead),
			overviewHot(page),
			el('section', {class: 'card'}, el('h2', {}, 'CPU by thread over time', note), lanes, legend),
		],
		show: () => {
			const now = `${view.element.clientWidth} ${page.dark()}`;
			if (now === drawn) return;
			drawn = now;
			note.textContent = overviewLanes(page, lanes, legend);
		},
		lead,
		rows: OVERVIEW_HOT,
	});
	return view;
}

/** @param {import('./types.js').Model} model @param {string} lead */
function overviewRun(model, lead) {
	const {meta} = model,
		seen = new Uint8Array(model.threads.length);
	for (const t of model.samples.thread) seen[t] = 1;
	const ran = seen.reduce((n, x) => n + x, 0);
	const threads = [
		model.processes.length > 1 ? ` in ${count(model.processes.length)} processes` : '',
		ran < model.threads.length ? ` ${count(ran)} with samples` : '',
	];
	return runSection(model, {
		facts: [
			fact('Ran for', duration(meta.wall ?? meta.duration)),
			fact(term('CPU time'), meta.cpuTime === null ? 'unknown' : duration(meta.cpuTime)),
			fact(
				'Threads',
				count(model.threads.length),
				el(
					'small',
					{title: 'Threads that ran too briefly for a sample are counted, too'},
					threads.filter(Boolean).join(','),
				),
			),
			fact(
				term('sample', 'Samples'),
				count(meta.trust.samples),
				el('small', {}, ` at ${count(meta.rate)} Hz`),
			),
		],
		lead,
		host: [meta.info.cpu, `${meta.cpus} CPUs`],
	});
}

/** @param {Page} page */
function overviewHot(page) {
	const hot = page.model.meta.hottest.slice(0, OVERVIEW_HOT);
	return hotCard(page, hot, {
		title: 'Hottest functions',
		note: [
			'by ',
			term('self'),
			', with 95 % ',
			term('interval'),
			...(hot.some((h, i) => h.tied && i + 1 < hot.length)
				? [el('span', {}, ' · joined: ', term('not separable'))]
				: []),
		],
		none: 'No sample was taken.',
	});
}

/** @param {Page} page @param {HTMLElement} lanes @param {HTMLElement} legend @returns {string} the scale */
function overviewLanes(page, lanes, legend) {
	const {model} = page,
		to = model.meta.duration || 1;
	const pixels = Math.max(120, lanes.clientWidth - 200);
	const data = laneData(model, {from: 0, to, buckets: laneBuckets(model, 0, to, pixels)});
	const lost = lostLine(model, {from: 0, to, buckets: data.buckets});
	const all = [...data.weight].sort((a, b) => b[1] - a[1]);
	const sum = all.reduce((s, [, w]) => s + w, 0) || 1;
	const colors = groupColors(),
		shown = Math.min(all.length, OVERVIEW_LANES);
	lanes.style.setProperty(
		'--lane',
		`${shown <= 2 ? 60 : shown === 3 ? 44 : shown === 4 ? 34 : 24}px`,
	);
	fill(lanes);
	/** @type {((range: [number, number] | null) => void)[]} */
	const draws = [];
	const draw = (/** @type {[number, number] | null} */ range) => draws.forEach(d => d(range));
	for (const [t, w] of all.slice(0, OVERVIEW_LANES)) {
		const thread = model.threads[t],
			canvas = /** @type {HTMLCanvasElement} */ (
				el('canvas', {
					role: 'img',
					'aria-label': `CPU of thread ${thread.name} over time`,
					style: {cursor: 'crosshair'},
				})
			);
		dragRange(canvas, {
			at: x => {
				const {left, width} = canvas.getBoundingClientRect();
				return Math.round(Math.max(0, Math.min(1, (x - left) / (width || 1))) * to);
			},
			drag: (a, b) => draw([a, b]),
			done: range => {
				draw(null);
				const query = {...page.state.query, from: range?.[0] ?? 0, to: range?.[1] ?? 0};
				page.go(range ? {view: 'time', query} : {view: 'time'});
			},
		});
		lanes.append(
			el(
				'span',
				{
					class: 'label',
					title: `thread ${thread.tid} of ${model.processes[thread.process]?.name ?? ''}`,
				},
				thread.name,
				' ',
				el('span', {class: 'faint'}, String(thread.tid)),
			),
			canvas,
			el(
				'span',
				{
					class: 'number soft',
					title: weight(w, model.meta.unit),
					style: {'text-align': 'right'},
				},
				lanePart(w / sum),
			),
		);
		draws.push(range => {
			const box = {x: 0, y: 0, w: canvas.clientWidth, h: canvas.clientHeight};
			const ctx = sizedCanvas(canvas, box.w, box.h);
			drawLane(ctx, box, /** @type {Float64Array} */ (data.threads.get(t)), {
				buckets: data.buckets,
				most: data.most,
				colors,
			});
			drawLost(ctx, box, lost);
			if (range) shadeOutside(ctx, box, (range[0] / to) * box.w, (range[1] / to) * box.w);
		});
	}
	const axis = /** @type {HTMLCanvasElement} */ (
		el('canvas', {class: 'axis', 'aria-hidden': 'true'})
	);
	const more = all.length - OVERVIEW_LANES;
	lanes.append(
		el(
			'a',
			{href: page.href({view: 'time'})},
			more > 0 ? `${count(more)} more thread${more > 1 ? 's' : ''}` : 'Time line',
		),
		axis,
		el('span'),
	);
	draw(null);
	const box = {x: 0, y: 0, w: axis.clientWidth, h: axis.clientHeight};
	drawAxis(sizedCanvas(axis, box.w, box.h), box, 0, to);
	const any = lost.some(x => x > 0);
	fill(legend, groupLegend(data.groups, groupParts(data)));
	if (any)
		legend.firstElementChild?.append(
			el(
				'span',
				{},
				el('span', {class: 'dot', style: {background: 'var(--lost)'}}),
				`${count(model.meta.trust.lost)} samples `,
				term('lost'),
				' here',
			),
		);
	legend.style.marginTop = '8px';
	return laneScale(data, model);
}
