// SPDX-License-Identifier: MIT OR Apache-2.0
// What stands in the cells of all views: shares with their intervals, names with what was searched
// for, places.
import {el, fill} from './page.js';
import {shareParts} from './format.js';
import {CATEGORIES} from './model.js';

/** @typedef {import('./types.js').Share} Share */
/** @typedef {{brief: string, full: string, crate: string, module: string, file: string, line: number,
 *   category: number, kind?: string}} NameLike */

/** A thread's part of all, in few letters. @param {number} x */
export function lanePart(x) {
	return x > 0 && x < 0.001 ? '< 0.1 %' : `${(x * 100).toFixed(x < 0.0995 ? 1 : 0)} %`;
}

/**
 * A share for a cell: value right, interval left of a common line, so that points stand in a column.
 * @param {HTMLElement} cell
 * @param {Share | null} s
 */
export function fillShare(cell, s) {
	const [v, i] = s ? shareParts(s) : ['', ''];
	if (cell.children.length !== 2) fill(cell, el('span', {class: 'v'}), el('span', {class: 'i'}));
	cell.children[0].textContent = v;
	cell.children[1].textContent = i;
}

/**
 * A bar of the share with its interval as a thin line in front.
 * @param {HTMLElement} cell
 * @param {Share} s
 * @param {number} most  the share that fills the cell
 */
export function fillMeter(cell, s, most) {
	let meter = /** @type {HTMLElement | null} */ (cell.querySelector('.meter'));
	if (!meter) {
		meter = el('div', {class: 'meter', 'aria-hidden': 'true'}, el('i'), el('b'));
		fill(cell, meter);
	}
	const [bar, whisker] = /** @type {HTMLElement[]} */ ([...meter.children]);
	const at = (/** @type {number} */ x) => Math.max(0, Math.min(100, (x / (most || 1)) * 100));
	bar.style.width = `${at(s.value)}%`;
	whisker.style.left = `${at(s.low)}%`;
	whisker.style.width = `${Math.max(0, at(s.high) - at(s.low))}%`;
	whisker.hidden = !(s.high > s.low);
}

/**
 * Text with each place of `search` marked; ignores case. "/…/" is a regular expression.
 * @param {HTMLElement} cell
 * @param {string} text
 * @param {string} search
 */
export function fillMarked(cell, text, search) {
	const re = search ? searchPattern(search) : null;
	if (!re) {
		cell.textContent = text;
		return;
	}
	/** @type {(Node | string)[]} */
	const parts = [];
	let at = 0;
	for (const m of text.matchAll(re)) {
		if (!m[0]) continue;
		parts.push(text.slice(at, m.index), el('mark', {}, m[0]));
		at = m.index + m[0].length;
	}
	fill(cell, ...parts, text.slice(at));
}

/**
 * @param {string} search
 * @returns {RegExp | null} null: not a regular expression
 */
export function searchPattern(search) {
	const m = /^\/(.+)\/$/.exec(search);
	try {
		return new RegExp(m ? m[1] : search.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'gi');
	} catch {
		return null;
	}
}

/**
 * Where a function comes from, in few letters: file and line for the program's own code, else its
 * crate, else its module.
 * @param {NameLike} name
 */
export function whereText(name) {
	if (name.file && (CATEGORIES[name.category] === 'user' || name.kind === 'line'))
		return `${name.file.split('/').slice(-2).join('/')}${name.line ? `:${name.line}` : ''}`;
	return name.crate || moduleText(name.module) || name.file;
}

/** "libc" of "/lib/libc.so.6". @param {string} module */
export function moduleText(module) {
	return module.replace(/^.*\//, '').replace(/(.)\.so(\..*)?$/, '$1');
}

// Categories of code in the six colours that a strip of 30 pixels can tell apart.
/** @type {{id: string, label: string, of: string[]}[]} */
export const GROUPS = [
	{id: 'own', label: 'the program', of: ['user']},
	{id: 'crate', label: 'libraries', of: ['library', 'allocator']},
	{id: 'std', label: 'std', of: ['std']},
	{id: 'runtime', label: 'runtime, panics', of: ['runtime', 'panic']},
	{id: 'kernel', label: 'kernel', of: ['kernel']},
	{id: 'other', label: 'unknown', of: ['jit', 'marker', 'unknown']},
];

/** Per category the index of its group. */
export const GROUP_OF = CATEGORIES.map(c =>
	Math.max(
		0,
		GROUPS.findIndex(g => g.of.includes(c)),
	),
);

/**
 * The names of the groups that are there, with their colours, and their parts of all.
 * @param {boolean[]} used
 * @param {number[]} [parts]
 */
export function groupLegend(used, parts) {
	return el(
		'div',
		{class: 'legend'},
		...GROUPS.flatMap((g, i) =>
			used[i]
				? [
						el(
							'span',
							{},
							el('span', {class: 'dot', style: {background: `var(--cat-${g.id})`}}),
							parts ? `${g.label} ${lanePart(parts[i])}` : g.label,
						),
					]
				: [],
		),
	);
}
