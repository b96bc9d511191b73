// SPDX-License-Identifier: MIT OR Apache-2.0
// The first screen: what ran, where its time went, how sure that is, and what to do next. It needs
// what the recorder computed (Meta) and the samples' times; nothing else has been computed yet
// when it stands.
import {el, fill} from './page.js';
import {plainWords, sentence, sentenceText, term, termMark} from './glossary.js';
import {duration, count, middle, shareParts, shareText, weight} from './format.js';
import {closureName} from './names.js';
import {lostLine} from './timeline.js';
import {oneRunText} from './table.js';
import {fillMeter, lanePart, whereText, groupLegend} from './cells.js';
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
/** @typedef {import('./page.js').PageState} PageState */
/** @typedef {import('./types.js').HotRow} HotRow */

const OVERVIEW_LANES = 6;
const LEAD_NAME = 90;

/**
 * A wait status in words.
 * @param {number | null} status
 * @returns {[string, 'good' | 'bad' | 'soft']}
 */
export function exitText(status) {
	if (status === null) return ['still running or unknown', 'soft'];
	if ((status & 0x7f) !== 0) return [`signal ${status & 0x7f}`, 'bad'];
	return [String((status >> 8) & 0xff), status ? 'bad' : 'good'];
}

/**
 * What a function is called before any profile was made.
 * @param {import('./types.js').Model} model
 * @param {number} f
 */
export function functionName(model, f) {
	const {functions, strings, modules} = model;
	const module = functions.module[f];
	return {
		brief: closureName(strings[functions.brief[f]], functions.line[f]),
		full: strings[functions.full[f]],
		crate: strings[functions.crate[f]],
		file: strings[functions.file[f]],
		line: functions.line[f],
		category: functions.category[f],
		module: module < 0 ? '' : modules[module].name,
	};
}

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
	const {model} = page;
	const lanes = el('div', {class: 'lanes-small'});
	const legend = el('div'),
		note = el('span', {class: 'note'});
	const element = el(
		'div',
		{class: 'view overview', 'aria-label': 'Overview', role: 'region', tabindex: '-1'},
		el(
			'div',
			{class: 'inner'},
			overviewFacts(page),
			overviewHot(page),
			el(
				'section',
				{class: 'card'},
				el('h2', {}, 'CPU by thread over time', note),
				lanes,
				legend,
			),
			overviewTrust(page),
			overviewNext(page),
		),
	);
	let drawn = '';
	const show = () => {
		const now = `${element.clientWidth} ${page.dark()}`;
		if (now === drawn) return;
		drawn = now;
		note.textContent = overviewLanes(page, lanes, legend);
	};
	new ResizeObserver(() => element.isConnected && show()).observe(element);
	return {element, show, text: () => overviewText(model)};
}

/** @param {Page} page */
function overviewFacts({model}) {
	const {meta} = model,
		wall = meta.wall ?? meta.duration;
	const [exit, ink] = exitText(meta.exit);
	const seen = new Uint8Array(model.threads.length);
	for (const t of model.samples.thread) seen[t] = 1;
	const ran = seen.reduce((n, x) => n + x, 0);
	const fact = (/** @type {string | Node} */ name, /** @type {(string | Node)[]} */ ...value) =>
		el('div', {}, el('dt', {}, name), el('dd', {}, ...value));
	const host = [
		meta.startRealtime ? new Date(meta.startRealtime).toLocaleString() : '',
		meta.info.host,
		meta.info.kernel && `Linux ${meta.info.kernel.replace(/^Linux /, '')}`,
		meta.info.cpu,
		`${meta.cpus} CPUs`,
	];
	return el(
		'section',
		{class: 'wide', 'aria-label': 'The run'},
		el(
			'dl',
			{class: 'facts'},
			el('div', {class: 'program'}, el('dt', {}, 'Program'), el('dd', {}, meta.program)),
			fact('Ran for', duration(wall)),
			fact(term('CPU time'), meta.cpuTime === null ? 'unknown' : duration(meta.cpuTime)),
			fact(
				'Threads',
				count(model.threads.length),
				el(
					'small',
					{title: 'Threads that ran too briefly for a sample are counted, too'},
					[
						model.processes.length > 1
							? ` in ${count(model.processes.length)} processes`
							: '',
						ran < model.threads.length ? ` ${count(ran)} with samples` : '',
					]
						.filter(Boolean)
						.join(','),
				),
			),
			fact('Exit', el('span', {class: ink}, exit)),
			fact(
				term('sample', 'Samples'),
				count(meta.trust.samples),
				el('small', {}, ` at ${count(meta.rate)} Hz`),
			),
		),
		el('p', {class: 'lead'}, ...sentence(leadText(model))),
		el(
			'p',
			{class: 'command'},
			meta.args.length
				? el('code', {title: 'The recorded command'}, `$ ${meta.args.join(' ')}`)
				: null,
			el('span', {class: 'faint'}, host.filter(Boolean).join(' · ')),
		),
	);
}

/** @param {Page} page */
function overviewHot(page) {
	const {model} = page,
		hot = model.meta.hottest.slice(0, 5);
	const most = Math.max(...hot.map(h => h.self.high), 0.01);
	const list = el('ol', {class: 'hot'});
	hot.forEach((h, i) => {
		const name = functionName(model, h.function),
			[v, interval] = shareParts(h.self);
		const meter = el('div');
		fillMeter(meter, h.self, most);
		const above = i > 0 && hot[i - 1].tied,
			below = h.tied && i + 1 < hot.length;
		list.append(
			el(
				'li',
				{},
				el(
					'a',
					{
						href: page.href({view: overviewTarget(model, h.function), f: h.function}),
						title: name.full,
					},
					el(
						'span',
						{},
						el('span', {class: 'v'}, v),
						el('span', {class: 'i'}, ` ${interval} %`),
						meter,
					),
					el('span', {
						class: `tie-mark ${above ? 'above' : ''} ${below ? 'below' : ''}`,
						'aria-hidden': 'true',
					}),
					el(
						'span',
						{style: {'min-width': '0'}},
						el('span', {class: 'name'}, name.brief),
						el(
							'span',
							{class: 'where'},
							[whereText(name), `total ${shareText(h.total)}`, oneRunText(model, h.total)]
								.filter(Boolean)
								.join(' · '),
						),
						below
							? el('span', {class: 'hide-visually'}, 'not separable from the next')
							: null,
					),
				),
			),
		);
	});
	return el(
		'section',
		{class: 'card'},
		el(
			'h2',
			{},
			'Hottest functions',
			el(
				'span',
				{class: 'note'},
				'by ',
				term('self'),
				', with 95 % ',
				term('interval'),
				...(hot.some((h, i) => h.tied && i + 1 < hot.length)
					? [el('span', {}, ' · joined: ', term('not separable'))]
					: []),
			),
		),
		hot.length ? list : el('p', {class: 'soft'}, 'No sample was taken.'),
		el(
			'p',
			{style: {'margin-top': '8px', 'font-size': '13px'}},
			el('a', {href: page.href({view: 'table'})}, 'All functions'),
			' · ',
			el('a', {href: page.href({view: 'flame'})}, 'Flame graph'),
			' · ',
			el('a', {href: page.href({view: 'tree'})}, 'Call tree'),
		),
	);
}

/**
 * Where a hot function leads: to its text when the page or its server has it, else to who calls it.
 * @param {import('./types.js').Model} model
 * @param {number} f
 */
export function overviewTarget(model, f) {
	return model.listings.some(l => l.function === f) || /^http/.test(location.protocol)
		? 'source'
		: 'sandwich';
}

const REMEDY_COMMAND = /\b(?:sudo |apt-get |assay |cargo |sysctl )[^,;()]*[^,;()\s.]/;

/**
 * A command ready to paste.
 * @param {Page} page
 * @param {string} command
 */
function runLine(page, command) {
	return el(
		'div',
		{class: 'run-line'},
		el('code', {}, command),
		el(
			'button',
			{
				'aria-label': `Copy ${command}`,
				onclick: () => page.copy(command, 'the command'),
			},
			'Copy',
		),
	);
}

/**
 * What mends it: lines, each a sentence or a command, or a sentence with one at its end.
 * @param {Page} page
 * @param {string} text
 */
function remedyLines(page, text) {
	return text
		.split('\n')
		.map(line => line.trim())
		.filter(Boolean)
		.map(line => {
			const m = REMEDY_COMMAND.exec(line);
			if (m && m.index === 0 && m[0].length === line.length)
				return el('div', {class: 'remedy'}, runLine(page, line));
			return el(
				'div',
				{class: 'remedy'},
				'→ ',
				...(m
					? [
							line.slice(0, m.index),
							el('code', {}, m[0]),
							line.slice(m.index + m[0].length),
						]
					: [line]),
			);
		});
}

/** @param {Page} page */
export function overviewTrust(page) {
	const {trust, notes} = page.model.meta;
	const lines = trust.lines.length
		? trust.lines
		: [
				{
					level: /** @type {'good'} */ ('good'),
					text: `${count(trust.samples)} samples`,
					remedy: '',
				},
			];
	const order = [...lines].sort(
		(a, b) => Number(a.level === 'good') - Number(b.level === 'good'),
	);
	const row = (
		/** @type {string} */ level,
		/** @type {string} */ text,
		/** @type {string} */ remedy,
	) =>
		el(
			'li',
			{},
			el(
				'span',
				{
					class: `mark ${level}`,
					role: 'img',
					'aria-label': level === 'good' ? 'good' : 'attention',
				},
				level === 'good' ? '✓' : '!',
			),
			el('span', {}, ...trustSentence(text)),
			...(remedy ? remedyLines(page, remedy) : []),
		);
	const shown = new Set(order.map(l => l.text));
	return el(
		'section',
		{class: 'card'},
		el('h2', {}, 'How far to trust this', el('span', {class: 'note'}, term('trust block'))),
		el(
			'ul',
			{class: 'trust'},
			...order.map(l => row(l.level, l.text, l.remedy)),
			...notes
				.filter(n => n.level > 0 && !shown.has(n.text))
				.map(n => row('warn', n.text, n.remedy)),
		),
	);
}

const TRUST_WORDS =
	/\b(samples?|lost|repaired|truncated|complete|engine|recorder|CPU time|modules?|stacks?)\b/g;
/** @type {{[text: string]: string}} */
const TRUST_TERMS = {
	samples: 'sample',
	sample: 'sample',
	lost: 'lost',
	repaired: 'repaired stack',
	truncated: 'truncated stack',
	complete: 'complete stack',
	engine: 'engine',
	recorder: 'recorder',
	'CPU time': 'CPU time',
	module: 'module',
	modules: 'module',
	stack: 'stack',
	stacks: 'stack',
};

/** Each word of the glossary once. @param {string} text @returns {(Node | string)[]} */
function trustSentence(text) {
	const seen = new Set();
	/** @type {(Node | string)[]} */
	const parts = [];
	let at = 0;
	for (const m of text.matchAll(TRUST_WORDS)) {
		const word = TRUST_TERMS[m[0]];
		if (seen.has(word)) continue;
		seen.add(word);
		parts.push(text.slice(at, m.index), term(word, m[0]));
		at = m.index + m[0].length;
	}
	return [...parts, text.slice(at)];
}

/** @param {Page} page */
export function overviewNext(page) {
	const {next, hottest} = page.model.meta;
	const link = (/** @type {string} */ label, /** @type {Partial<PageState>} */ to) =>
		el('a', {href: page.href(to)}, label);
	return el(
		'section',
		{class: 'card'},
		el('h2', {}, 'Next steps'),
		el(
			'ul',
			{class: 'next'},
			el(
				'li',
				{},
				hottest.length
					? el(
							'span',
							{},
							link('Who calls the hottest function', {
								view: 'sandwich',
								f: hottest[0].function,
							}),
							' · ',
						)
					: null,
				link('what was being done, as a call tree', {view: 'tree'}),
				' · ',
				link('when', {view: 'time'}),
				...(page.base
					? [' · ', link(`what changed against ${page.base.meta.file}`, {view: 'diff'})]
					: []),
			),
			...next.map(n =>
				el('li', {}, runLine(page, n.command), el('div', {class: 'why'}, n.why)),
			),
		),
	);
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

/** @param {import('./types.js').Model} model */
function overviewText(model) {
	const {meta} = model;
	return [
		sentenceText(leadText(model)),
		'',
		...meta.hottest
			.slice(0, 5)
			.map(
				h =>
					`${shareText(h.self).padStart(14)}  ${functionName(model, h.function).brief}${
						h.tied ? '  (not separable from the next)' : ''
					}`,
			),
		'',
		...meta.trust.lines.flatMap(l => [
			`${l.level === 'good' ? ' ' : '!'} ${l.text}`,
			...l.remedy
				.split('\n')
				.filter(Boolean)
				.map(r => `  → ${r.trim()}`),
		]),
		'',
		...meta.next.map(n => `${n.command}    ${n.why}`),
		'',
	].join('\n');
}
