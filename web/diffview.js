// SPDX-License-Identifier: MIT OR Apache-2.0
// Two sessions: what takes a larger or a smaller share now, with the interval of the change.
// Colour and a word stand only where the data decide; the rest is said to be open.
import {el, fill} from './page.js';
import {Grid} from './grid.js';
import {segments, TABLE_BY} from './tableview.js';
import {makeDiff} from './diff.js';
import {alignedText} from './text.js';
import {count, duration, shareText} from './format.js';
import {fillShare, fillMarked, searchPattern, whereText} from './cells.js';

/** @typedef {import('./page.js').Page} Page */
/** @typedef {import('./diff.js').DiffRow} DiffRow */
/** @typedef {import('./diff.js').Diff} Diff */
/** @typedef {import('./types.js').By} By */
/** @typedef {import('./diff.js').Change} Change */

/** @param {Change} c */
export function changeText(c) {
	const half = ((c.high - c.low) / 2) * 100,
		value = c.delta * 100;
	return `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(1)}${half >= 0.005 ? ` ±${half.toFixed(1)}` : ''}`;
}

/**
 * The words of `assay diff`, and the ink. A share that moved only because the rest did is no
 * reason to be glad or sorry.
 * @param {DiffRow} row
 * @param {'self' | 'total'} which
 * @returns {[string, string]}
 */
export function changeVerdict(row, which) {
	const c = row[which];
	const presence = row.keyA < 0 ? ', new' : row.keyB < 0 ? ', gone' : '';
	if (!c.resolved) return [`${c.verdict}${presence}`, 'faint'];
	if (c.shareOnly) return [`${c.verdict}, as a share only`, 'warn'];
	return [`${c.verdict}${presence}`, c.verdict === 'up' ? 'bad' : 'good'];
}

export class DiffView {
	/** @param {Page} page */
	constructor(page) {
		this.page = page;
		/** @type {DiffRow[]} */
		this.rows = [];
		/** @type {import('./diff.js').Diff | null} */
		this.diff = null;
		this.key0 = '';
		/** @type {[object | null, object | null]} */
		this.of = [null, null];
		this.by = segments(
			'Rows',
			TABLE_BY.filter(b => b.by !== 'thread' && b.by !== 'process' && b.by !== 'line').map(
				b => ({value: b.by, label: b.label}),
			),
			by => page.go({by: /** @type {By} */ (by)}),
		);
		this.which = segments(
			'Shares',
			[
				{value: '', label: 'Self'},
				{value: 'total', label: 'Total'},
			],
			value => page.go({more: {'diff.which': value}}),
		);
		this.note = el('span', {class: 'note'});
		this.trust = el('p', {class: 'below-bar soft'});
		this.grid = new Grid({
			label: 'Changes',
			columns: this.columns(),
			sort: c => this.sort(c),
			open: i => this.functionOf(i) >= 0 && page.open(this.functionOf(i)),
			menu: (i, at) =>
				page.menu(at, this.functionOf(i) >= 0 ? page.functionMenu(this.functionOf(i)) : []),
		});
		this.element = el(
			'div',
			{class: 'view'},
			el(
				'div',
				{class: 'bar'},
				this.by.element,
				this.which.element,
				el('span', {class: 'fill'}),
				this.note,
			),
			this.trust,
			this.grid.element,
		);
	}

	/** @returns {'self' | 'total'} */
	shares() {
		return this.page.state.more['diff.which'] === 'total' ? 'total' : 'self';
	}

	/** @returns {import('./grid.js').Column[]} */
	columns() {
		const name = (/** @type {number} */ i) =>
			/** @type {Diff} */ (this.diff).name(this.rows[i].key);
		return [
			{
				id: 'change',
				title: 'Points',
				width: '108px',
				class: 'share',
				right: true,
				sortable: true,
				cell: (i, cell) => {
					const [value, half] = changeText(this.rows[i][this.shares()]).split(' ');
					const [, ink] = changeVerdict(this.rows[i], this.shares());
					fill(
						cell,
						el('span', {class: `v ${ink}`}, value),
						el('span', {class: 'i'}, half ?? ''),
					);
				},
			},
			{
				id: 'verdict',
				title: 'Verdict',
				width: '158px',
				cell: (i, cell) => {
					const [word, ink] = changeVerdict(this.rows[i], this.shares());
					cell.textContent = word;
					cell.className = `cell ${ink}`;
				},
			},
			{
				id: 'before',
				title: 'Before %',
				width: '104px',
				class: 'share',
				right: true,
				sortable: true,
				word: 'interval',
				cell: (i, cell) => fillShare(cell, this.rows[i].a[this.shares()]),
			},
			{
				id: 'now',
				title: 'After %',
				width: '104px',
				class: 'share',
				right: true,
				sortable: true,
				word: 'interval',
				cell: (i, cell) => fillShare(cell, this.rows[i].b[this.shares()]),
			},
			...(this.inTime()
				? [
						{
							id: 'cpu',
							title: 'CPU',
							width: '72px',
							class: 'number',
							right: true,
							spare: true,
							sortable: true,
							word: 'CPU time',
							cell: (/** @type {number} */ i, /** @type {HTMLElement} */ cell) => {
								const d = this.cpuDelta(this.rows[i]);
								cell.textContent = `${d < 0 ? '−' : '+'}${duration(Math.abs(d))}`;
							},
						},
					]
				: []),
			{
				id: 'name',
				title: 'Name',
				width: 'minmax(0, 3fr)',
				class: 'name',
				sortable: true,
				cell: (i, cell) => {
					fillMarked(cell, name(i).brief, this.page.state.search);
					cell.title = name(i).full;
				},
			},
			{
				id: 'where',
				title: 'Where',
				width: 'minmax(80px, 1fr)',
				class: 'where',
				cell: (i, cell) => {
					cell.textContent = whereText(name(i));
				},
			},
		];
	}

	inTime() {
		return this.page.model.meta.unit === 'ns' && this.page.base?.meta.unit === 'ns';
	}

	/** How much more CPU time the row took. @param {DiffRow} r */
	cpuDelta(r) {
		const which = this.shares();
		const weight = [this.page.baseProfile()?.weight ?? 0, this.page.profile().weight];
		return r.b[which].value * weight[1] - r.a[which].value * weight[0];
	}

	/** @param {string} column */
	sort(column) {
		const now = this.page.state.more['diff.sort'] || 'change';
		this.page.go({
			more: {'diff.sort': now === column ? `${column}-` : column === 'change' ? '' : column},
		});
	}

	show() {
		const {page} = this,
			{state} = page,
			now = page.profile(),
			base = page.baseProfile();
		if (!base) {
			fill(
				this.note,
				'There is no second session in this report: assay view --diff OLD.assay NEW.assay',
			);
			return;
		}
		const by = ['function', 'file', 'crate', 'module'].includes(state.by)
			? state.by
			: 'function';
		const sort = state.more['diff.sort'] || 'change',
			key = `${by} ${this.shares()} ${sort} ${state.search}`;
		if (this.of[0] === base && this.of[1] === now && this.key0 === key) {
			this.grid.draw();
			return;
		}
		if (this.of[0] !== base || this.of[1] !== now || this.key0.split(' ')[0] !== by)
			this.diff = makeDiff(base, now, by);
		this.of = [base, now];
		this.key0 = key;
		this.by.set(by);
		this.which.set(this.shares() === 'total' ? 'total' : '');
		this.arrange(sort);
		this.grid.setSorted(sort.replace(/-$/, ''), !sort.endsWith('-'));
		this.grid.setRows(this.rows.length);
	}

	/** @param {string} sort */
	arrange(sort) {
		const diff = /** @type {Diff} */ (this.diff),
			which = this.shares();
		const re = this.page.state.search ? searchPattern(this.page.state.search) : null;
		this.rows = diff.rows.filter(r => {
			const n = diff.name(r.key);
			return !re || [n.brief, n.full, n.crate, n.module].some(t => t && t.search(re) >= 0);
		});
		const column = sort.replace(/-$/, ''),
			down = sort.endsWith('-') ? -1 : 1;
		const value = (/** @type {DiffRow} */ r) =>
			column === 'before'
				? r.a[which].value
				: column === 'now'
					? r.b[which].value
					: column === 'cpu'
						? this.cpuDelta(r)
						: Math.abs(r[which].delta) + (r[which].resolved ? 1 : 0);
		this.rows.sort(
			(a, b) =>
				down *
				(column === 'name'
					? diff.name(a.key).brief.localeCompare(diff.name(b.key).brief)
					: value(b) - value(a)),
		);
		this.say(diff, which);
	}

	/** What the rows come to, and how far that can be believed. @param {Diff} diff @param {'self' | 'total'} which */
	say(diff, which) {
		const n = {up: 0, down: 0, equal: 0, undecided: 0};
		for (const r of diff.rows) n[r[which].verdict]++;
		fill(
			this.note,
			n.up + n.down ? `${n.up} up, ${n.down} down; ` : 'no difference is resolved; ',
			`${count(n.equal)} equal within 0.5 points, ${count(n.undecided)} undecided`,
		);
		const between = diff.between,
			drift = diff.drift;
		fill(
			this.trust,
			`Before: ${this.page.base?.meta.file ?? ''}. 95 % intervals, levels adjusted for `,
			`${count(diff.tests[which])} rows`,
			between > 0.005
				? `; widened by ${(100 * between).toPrecision(2)} % of a row: so much do rows differ beyond their samples`
				: '',
			'. ',
			Math.abs(drift - 1) > 0.02
				? `The typical row took ×${drift.toFixed(2)} the CPU time: with one run a side that may be the machine. `
				: '',
			'Run-to-run variation is not in these intervals, and functions that one build inlines are compared as they are: assay diff has both.',
		);
	}

	/** @param {number} i */
	functionOf(i) {
		const row = this.rows[i],
			name = row && this.diff?.name(row.key);
		return name && name.kind === 'function' && row.keyB >= 0
			? this.page.profile().name(row.keyB).index
			: -1;
	}

	text() {
		const {diff} = this,
			which = this.shares();
		if (!diff) return '';
		return alignedText(
			[
				{title: 'change', right: true},
				{title: 'verdict'},
				{title: 'before', right: true},
				{title: 'after', right: true},
				{title: 'name'},
			],
			this.rows
				.slice(0, 1000)
				.map(r => [
					changeText(r[which]),
					changeVerdict(r, which)[0],
					shareText(r.a[which]),
					shareText(r.b[which]),
					diff.name(r.key).brief,
				]),
		);
	}

	/** @type {[string, string][]} */
	keys = [
		['↑ ↓', 'move'],
		['Enter', 'callers and callees'],
		['m', 'menu of the row'],
	];
}
