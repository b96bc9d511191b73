// SPDX-License-Identifier: MIT OR Apache-2.0
// What all first screens share, of time and of memory: the run, its hottest rows, how far to trust them, what to
// do next. It needs what the recorder computed (Meta); nothing else has been computed yet when it stands.
import {el} from './page.js';
import {sentence, sentenceText, term} from './glossary.js';
import {count, shareParts, shareText} from './format.js';
import {closureName} from './names.js';
import {momentsOf} from './memory.js';
import {oneRunText} from './table.js';
import {fillMeter, whereText} from './cells.js';

/** @typedef {import('./page.js').Page} Page */
/** @typedef {import('./page.js').PageState} PageState */
/** @typedef {import('./types.js').HotRow} HotRow */
/** @typedef {import('./types.js').Model} Model */

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
 * @param {Page} page
 * @param {{cards: (HTMLElement | null)[], show: () => void, lead: string, rows: number}} of  rows: of the
 *   hottest, as text
 * @returns {import('./page.js').View}
 */
export function firstScreen(page, {cards, show, lead, rows}) {
	const element = el(
		'div',
		{class: 'view overview', 'aria-label': 'Overview', role: 'region', tabindex: '-1'},
		el('div', {class: 'inner'}, ...cards, trustCard(page), nextCard(page)),
	);
	new ResizeObserver(() => element.isConnected && show()).observe(element);
	return {element, show, text: () => firstScreenText(page.model, lead, rows)};
}

/** @param {string | Node} name @param {...(string | Node)} value */
export function fact(name, ...value) {
	return el('div', {}, el('dt', {}, name), el('dd', {}, ...value));
}

/**
 * @param {Model} model
 * @param {{facts: HTMLElement[], lead: string, host: (string | undefined)[]}} run  host: beside its name and kernel
 */
export function runSection({meta}, {facts, lead, host}) {
	const [exit, ink] = exitText(meta.exit);
	const where = [
		meta.startRealtime ? new Date(meta.startRealtime).toLocaleString() : '',
		meta.info.host,
		meta.info.kernel && `Linux ${meta.info.kernel.replace(/^Linux /, '')}`,
		...host,
	];
	return el(
		'section',
		{class: 'wide', 'aria-label': 'The run'},
		el(
			'dl',
			{class: 'facts'},
			el('div', {class: 'program'}, el('dt', {}, 'Program'), el('dd', {}, meta.program)),
			...facts,
			fact('Exit', el('span', {class: ink}, exit)),
		),
		el('p', {class: 'lead'}, ...sentence(lead)),
		el(
			'p',
			{class: 'command'},
			meta.args.length
				? el('code', {title: 'The recorded command'}, `$ ${meta.args.join(' ')}`)
				: null,
			el('span', {class: 'faint'}, where.filter(Boolean).join(' · ')),
		),
	);
}

/** One of the hottest. @param {Page} page @param {HotRow} h @param {{most: number, above: boolean, below: boolean}} how */
function hotRow(page, h, {most, above, below}) {
	const {model} = page,
		name = functionName(model, h.function),
		[v, interval] = shareParts(h.self),
		meter = el('div');
	fillMeter(meter, h.self, most);
	return el(
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
				el('span', {class: 'v'}, interval ? v : `${v} %`),
				interval ? el('span', {class: 'i'}, ` ${interval} %`) : null,
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
				below ? el('span', {class: 'hide-visually'}, 'not separable from the next') : null,
			),
		),
	);
}

/**
 * @param {Page} page
 * @param {HotRow[]} hot
 * @param {{title: string, note: (string | Node)[], none: string, links?: [string, Partial<PageState>][]}} words
 */
export function hotCard(page, hot, {title, note, none, links = []}) {
	const most = Math.max(...hot.map(h => Math.max(h.self.high, h.self.value)), 0.01);
	/** @type {[string, Partial<PageState>][]} */
	const all = [
		['All functions', {view: 'table'}],
		['Flame graph', {view: 'flame'}],
		['Call tree', {view: 'tree'}],
		...links,
	];
	const rows = hot.map((h, i) =>
		hotRow(page, h, {most, above: i > 0 && hot[i - 1].tied, below: h.tied && i + 1 < hot.length}),
	);
	return el(
		'section',
		{class: 'card'},
		el('h2', {}, title, el('span', {class: 'note'}, ...note)),
		hot.length ? el('ol', {class: 'hot'}, ...rows) : el('p', {class: 'soft'}, none),
		linkLine(page, all),
	);
}

/** Links beside each other. @param {Page} page @param {[string, Partial<PageState>][]} links */
export function linkLine(page, links) {
	return el(
		'p',
		{class: 'links'},
		...links.flatMap(([label, to], i) => [i ? ' · ' : '', el('a', {href: page.href(to)}, label)]),
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
function trustCard(page) {
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
function nextCard(page) {
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
				...(page.other
					? [' · ', link(`what changed against ${page.other.meta.file}`, {view: 'diff'})]
					: momentsOf(page.model).length
						? [' · ', link('what came and went between two marks', {view: 'diff'})]
						: []),
			),
			...next.map(n =>
				el('li', {}, runLine(page, n.command), el('div', {class: 'why'}, n.why)),
			),
		),
	);
}

/** @param {Model} model @param {string} lead @param {number} rows */
function firstScreenText(model, lead, rows) {
	const {meta} = model;
	return [
		sentenceText(lead),
		'',
		...meta.hottest
			.slice(0, rows)
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
