// SPDX-License-Identifier: MIT OR Apache-2.0
// What a look at a process found, on the first screen of a session of memory: blocks that nothing leads to, by the
// stack that owns each lost tree, and of what its resident memory consisted.
import {el} from './page.js';
import {term} from './glossary.js';
import {bytes, count, duration, percent} from './format.js';
import {whereText} from './cells.js';
import {functionName, linkLine} from './firstscreen.js';
import {stackFunctions} from './stacks.js';

/** @typedef {import('./page.js').Page} Page */
/** @typedef {import('./types.js').Model} Model */
/** @typedef {import('./types.js').BlockSum} BlockSum */
/** @typedef {import('./types.js').LeakOwner} LeakOwner */
/** @typedef {import('./types.js').Resident} Resident */

const LEAKS_SHOWN = 10,
	GROWING_SHOWN = 3,
	STACK_SHOWN = 64,
	RESIDENT_SHOWN = 3,
	PINS_SHOWN = 6;

/** Rows of text and figures. @param {(string | Node)[]} heads @param {(string | Node)[][]} rows */
export function figuresTable(heads, rows) {
	return el(
		'table',
		{class: 'figures'},
		el('thead', {}, el('tr', {}, ...heads.map(h => el('th', {scope: 'col'}, h)))),
		el('tbody', {}, ...rows.map(r => el('tr', {}, ...r.map(c => el('td', {}, c))))),
	);
}

/** "1.20 MiB in 12 blocks". @param {BlockSum} s */
export function blocksText(s) {
	return `${bytes(s.bytes)} in ${count(s.blocks)} block${s.blocks === 1 ? '' : 's'}`;
}

/** A function that leads to its callers. @param {Page} page @param {number} f @param {string} [after] */
function functionLink(page, f, after = '') {
	if (f < 0) return el('span', {}, '[no frames]');
	const name = functionName(page.model, f);
	return el(
		'a',
		{href: page.href({view: 'sandwich', f}), title: name.full},
		name.brief,
		el('span', {class: 'faint'}, after),
	);
}

// ---- leaks ----

/** @param {LeakOwner} o */
function ownerFigures(o) {
	return [
		`${blocksText(o.lost)} lost`,
		o.owned.blocks ? `and ${blocksText(o.owned)} that only these lead to` : '',
		o.grows ? `growing in ${o.rises} of ${o.steps} steps of the run` : '',
	]
		.filter(Boolean)
		.join(', ');
}

/** A lost tree: its owner's stack, to be unfolded. @param {Page} page @param {LeakOwner} o @param {string} figures @param {number} sum */
function ownerRow(page, o, figures, sum) {
	const {model} = page,
		list = stackFunctions(model, o.stack),
		name = list.length ? functionName(model, list[0].function) : null;
	const where = name ? whereText({...name, line: list[0].line || name.line}) : '';
	const process = model.meta.memory && model.meta.memory.processes.length > 1 ? model.processes[o.process]?.name : '';
	return el(
		'details',
		{},
		el(
			'summary',
			{title: name?.full ?? ''},
			el('span', {class: 'v number'}, bytes(sum)),
			el('span', {class: 'name'}, name?.brief ?? '[no frames]'),
			el('span', {class: 'where'}, [process, where, figures].filter(Boolean).join(' · ')),
		),
		el(
			'ol',
			{class: 'stack', 'aria-label': 'Stack, innermost first'},
			...list.slice(0, STACK_SHOWN).map(p =>
				el('li', {}, functionLink(page, p.function, p.line ? `  ${model.strings[p.file].split('/').slice(-2).join('/')}:${p.line}` : '')),
			),
			list.length > STACK_SHOWN ? el('li', {class: 'faint'}, `… ${count(list.length - STACK_SHOWN)} more`) : null,
		),
	);
}

/** Classes with bars of their bytes. @param {LeakOwner} sum */
function leakClasses(sum) {
	const rows = /** @type {[string, BlockSum][]} */ ([
		['lost', sum.lost],
		['indirectly lost', sum.owned],
		['possibly lost', sum.possible],
		['still reachable', sum.reachable],
		['kept by the runtime', sum.runtime],
	]).filter(([, s], i) => s.blocks || !i);
	const most = Math.max(1, ...rows.map(([, s]) => s.bytes));
	return el(
		'div',
		{class: 'bins classes', role: 'list'},
		...rows.flatMap(([label, s]) => [
			el('span', {class: 'label'}, label),
			el(
				'span',
				{class: 'track', role: 'listitem', 'aria-label': `${label}: ${blocksText(s)}`},
				el('span', {class: 'bar-fill', style: {width: `${(s.bytes / most) * 100}%`, 'min-width': s.bytes ? '1px' : '0'}}),
			),
			el('span', {class: 'number soft', title: `${count(s.bytes)} B`}, blocksText(s)),
		]),
	);
}

/** @param {Page} page @returns {HTMLElement | null} */
export function leaksCard(page) {
	const leaks = page.model.meta.memory?.leaks;
	if (!leaks) return null;
	const lost = leaks.owners.filter(o => o.lost.blocks),
		shown = lost.slice(0, LEAKS_SHOWN);
	const growing = leaks.owners.filter(o => !o.lost.blocks && o.grows).slice(0, GROWING_SHOWN);
	const rest = {owners: leaks.rest.owners, blocks: leaks.rest.sum.blocks, bytes: leaks.rest.sum.bytes};
	for (const o of lost.slice(LEAKS_SHOWN)) {
		rest.owners++;
		rest.blocks += o.lost.blocks + o.owned.blocks;
		rest.bytes += o.lost.bytes + o.owned.bytes;
	}
	const leaked = {...page.state.query, measure: 'leaked'};
	return el(
		'section',
		{class: 'card wide-card leaks'},
		el(
			'h2',
			{},
			'Leaks',
			el(
				'span',
				{class: 'note'},
				term('lost block', 'what nothing points to'),
				leaks.atExit ? ' when the program ended' : ' when it was looked for',
			),
		),
		leakClasses(leaks.sum),
		lost.length ? null : el('p', {class: 'soft'}, 'Nothing was lost.'),
		...shown.map(o => ownerRow(page, o, ownerFigures(o), o.lost.bytes + o.owned.bytes)),
		rest.owners
			? el('p', {class: 'soft'}, `… ${count(rest.owners)} more stack${rest.owners === 1 ? '' : 's'}, together ${blocksText(rest)}`)
			: null,
		...growing.map(o => ownerRow(page, o, `not lost, but it grew in ${o.rises} of ${o.steps} steps of the run`, o.live)),
		lost.length
			? linkLine(page, [
					['All that leaked', {view: 'table', query: leaked}],
					['as a flame graph', {view: 'flame', query: leaked}],
				])
			: null,
	);
}

// ---- resident memory ----

/** What the parts leave open, as a part. @param {Resident} r */
function openPart(r) {
	const sum = r.kinds.reduce((s, k) => s + k.bytes, 0),
		off = Math.abs(sum - r.rss);
	if (off * 100 < r.rss) return [];
	const label = sum > r.rss ? 'too much above: pages that were read and never written' : 'not explained';
	return [{kind: '', label, bytes: sum > r.rss ? -off : off, mapped: 0, names: []}];
}

/** What the program mapped and does not use; guards of stacks are not worth a word.
 * @param {Resident} r @param {string} kind @param {number} least */
function unused(r, kind, least) {
	const k = r.kinds.find(k => k.kind === kind);
	return k && k.mapped - k.bytes >= least ? bytes(k.mapped - k.bytes) : '';
}

/** @param {Resident} r */
function unusedNote(r) {
	const untouched = unused(r, 'mapping', 1),
		reserved = unused(r, 'reserved', 1 << 20);
	return [untouched && `${untouched} more were never touched`, reserved && `${reserved} more are only reserved`].filter(Boolean).join('; ');
}

/** @param {Model} model @param {Resident['kinds'][number]} k @param {Resident} r */
function partNote(model, k, r) {
	const named = k.names.map(n => `${n.function < 0 ? n.name : functionName(model, n.function).brief} ${bytes(n.bytes)}`);
	return [
		named.join(', '),
		k.kind === 'live' && r.untouched ? `${bytes(r.untouched)} more were never touched, or are swapped out` : '',
		k.kind === 'mapping' ? unusedNote(r) : '',
		k.kind === 'held' && r.free ? `${bytes(r.free)} of it in pages without a live block` : '',
	]
		.filter(Boolean)
		.join('; ');
}

/** Parts one after the other, each from where the one above ends. @param {Model} model @param {Resident} r */
function waterFall(model, r) {
	const parts = [...r.kinds.filter(k => k.bytes || k.kind === 'live' || (k.kind === 'mapping' && unusedNote(r))), ...openPart(r)];
	const most = Math.max(r.rss, parts.reduce((s, k) => s + Math.max(0, k.bytes), 0), 1);
	let at = 0;
	const row = (/** @type {{label: string | Node, name: string, note: string, from: number, bytes: number, sum?: boolean}} */ p) => [
		el('span', {class: `label ${p.sum ? 'sum' : ''}`}, p.label, p.note ? el('small', {class: 'faint', title: p.note}, p.note) : null),
		el(
			'span',
			{class: 'track', role: 'listitem', 'aria-label': `${p.name}: ${bytes(Math.abs(p.bytes))}`},
			el('span', {
				class: `bar-fill ${p.sum ? 'sum' : ''} ${p.bytes < 0 ? 'less' : ''}`,
				style: {
					'margin-left': `${(Math.min(p.from, p.from + p.bytes) / most) * 100}%`,
					width: `${(Math.abs(p.bytes) / most) * 100}%`,
					'min-width': p.bytes ? '1px' : '0',
				},
			}),
		),
		el('span', {class: 'number'}, `${p.bytes < 0 ? '−' : ''}${bytes(Math.abs(p.bytes))}`),
		el('span', {class: 'number soft'}, percent(p.bytes / (r.rss || 1))),
	];
	const rows = parts.flatMap(k => {
		const cells = row({label: k.label, name: k.label, note: partNote(model, k, r), from: at, bytes: k.bytes});
		at += k.bytes;
		return cells;
	});
	return el(
		'div',
		{class: 'bins fall', role: 'list'},
		...rows,
		...row({label: term('resident'), name: 'resident', note: '', from: 0, bytes: r.rss, sum: true}),
	);
}

/** Pages that few live bytes keep. @param {Page} page @param {Resident} r */
function pinnedPages(page, r) {
	if (!r.pinnedPages) return [];
	return [
		el(
			'p',
			{class: 'pinned'},
			el('b', {}, term('pinned page', 'Pinned'), ': '),
			`${bytes(r.pinned)} are free, but in ${count(r.pinnedPages)} pages that less than a tenth of live bytes keep.`,
		),
		figuresTable(
			['kept', 'pages', 'blocks', 'live in them', 'by the blocks of'],
			r.pins
				.slice(0, PINS_SHOWN)
				.map(p => [bytes(p.bytes), count(p.pages), count(p.blocks), bytes(p.live), functionLink(page, p.function)]),
		),
	];
}

/** A card per process that was looked at. @param {Page} page */
export function residentCards(page) {
	const {model} = page,
		all = model.meta.memory?.resident ?? [];
	return all.slice(0, RESIDENT_SHOWN).map(r =>
		el(
			'section',
			{class: 'card wide-card'},
			el(
				'h2',
				{},
				all.length > 1 ? `Resident memory of ${model.processes[r.process]?.name ?? '?'} (${model.processes[r.process]?.pid ?? ''})` : 'Resident memory',
				el(
					'span',
					{class: 'note'},
					[
						`${bytes(r.rss)} of the machine's memory${r.time ? ` after ${duration(r.time)}` : ''}`,
						r.swapped ? `${bytes(r.swapped)} more swapped out` : '',
					]
						.filter(Boolean)
						.join(', '),
				),
			),
			waterFall(model, r),
			...pinnedPages(page, r),
		),
	);
}
