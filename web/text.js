// SPDX-License-Identifier: MIT OR Apache-2.0
// Tables and trees as plain text, for "copy as text".
import {percent, shareText} from './format.js';
import {oneRunText} from './table.js';

/** @typedef {import('./types.js').Tree} Tree */
/** @typedef {import('./types.js').Row} Row */
/** @typedef {import('./query.js').Profile} Profile */
/** @typedef {{title: string, right?: boolean}} TextColumn */

const LINES_MAX = 5000;

/** What would break a line or move a cursor becomes visible. @param {string} s */
function plain(s) {
	return s.replace(/[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, '�');
}

/** Characters, near enough the columns of a terminal. @param {string} s */
function widthOf(s) {
	let n = 0;
	for (const c of s) {
		void c;
		n++;
	}
	return n;
}

/**
 * @param {TextColumn[]} columns
 * @param {string[][]} rows
 * @returns {string}
 */
export function alignedText(columns, rows) {
	const cells = [columns.map(c => c.title),
		...rows.map(r => columns.map((_, i) => plain(r[i] ?? '')))];
	const widths = columns.map((_, i) => cells.reduce((w, r) => Math.max(w, widthOf(r[i])), 0));
	return cells.map(r => r.map((cell, i) => {
		const pad = ' '.repeat(widths[i] - widthOf(cell));
		return columns[i].right ? pad + cell : cell + pad;
	}).join('  ').trimEnd() + '\n').join('');
}

/**
 * @param {Profile} profile
 * @param {Row[]} rows
 * @param {number} [limit]
 */
export function rowsText(profile, rows, limit = 100) {
	const shown = rows.slice(0, limit);
	const text = alignedText(
		[{title: 'self', right: true}, {title: '', right: false}, {title: 'total', right: true},
			{title: 'name'}, {title: 'where'}],
		shown.map(r => {
			const name = profile.name(r.key);
			const where = name.kind === 'line' || (name.kind === 'function' && name.file) ?
				name.file + (name.line ? `:${name.line}` : '') : name.module;
			const once = oneRunText(profile.model, r.total);
			return [shareText(r.self), r.tied ? '~' : '', shareText(r.total), name.brief,
				once ? `${where}  ${once}` : where];
		}));
	const tied = shown.some(r => r.tied) ?
		'~ not separable from the next row by these samples\n' : '';
	const more = rows.length > shown.length ? `… ${rows.length - shown.length} more\n` : '';
	return text + more + tied;
}

/**
 * @param {Profile} profile
 * @param {Tree} tree
 * @param {{minShare?: number, maxDepth?: number, limit?: number}} [o]
 */
export function treeText(profile, tree, o = {}) {
	const {minShare = 0.01, maxDepth = 60, limit = LINES_MAX} = o;
	const whole = tree.weight || 1;
	/** @type {string[]} */
	const lines = [];
	let node = 0, more = false;
	for (;;) {
		const deep = tree.depth[node] <= maxDepth;
		if (deep && (node === 0 || tree.total[node] >= minShare * whole)) {
			if (lines.length === limit) {
				more = true;
				break;
			}
			lines.push(`${percent(tree.total[node] / whole).padStart(7)} ` +
				`${percent(tree.self[node] / whole).padStart(7)}  ` +
				`${'  '.repeat(tree.depth[node])}${plain(profile.name(tree.key[node]).brief)}\n`);
			if (tree.first[node] >= 0 && tree.depth[node] < maxDepth) {
				node = tree.first[node];
				continue;
			}
		}
		while (node > 0 && tree.next[node] < 0)
			node = tree.parent[node];
		if (node <= 0)
			break;
		node = tree.next[node];
	}
	return `${'total'.padStart(7)} ${'self'.padStart(7)}\n${lines.join('')}${more ? '…\n' : ''}`;
}
