// SPDX-License-Identifier: MIT OR Apache-2.0
// Two sessions: what takes a larger or a smaller share now, with the interval of the change.
// Colour and a word stand only where the data decide; the rest is said to be open. Of memory, which is
// counted, amounts: of two sessions, or of two moments of one.
import {el, fill} from './page.js';
import {Grid} from './grid.js';
import {segments, TABLE_BY} from './tableview.js';
import {makeDiff} from './diff.js';
import {alignedText} from './text.js';
import {count, duration, shareText, signed, weight} from './format.js';
import {fillShare, fillMarked, searchPattern, whereText} from './cells.js';
import {term} from './glossary.js';
import {measureOf, momentChoices, momentName, momentsOf} from './memory.js';

/** @typedef {import('./page.js').Page} Page */
/** @typedef {import('./types.js').Model} Model */
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

/**
 * What changed of an amount, beside the figures: "new", "gone", "+12.3 %".
 * @param {number} a
 * @param {number} b
 */
export function amountNote(a, b) {
	if (!a || !b) return a === b ? '' : a ? 'gone' : 'new';
	const change = (100 * (b - a)) / a;
	return a === b ? '' : `${change < 0 ? '−' : '+'}${Math.abs(change).toFixed(Math.abs(change) < 1000 ? 1 : 0)} %`;
}

export class DiffView {
	/** @param {Page} page */
	constructor(page) {
		this.page = page;
		this.counted = !!page.model.meta.memory;
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
				...this.makeMoments(),
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

	/** The two moments of one session that are compared. */
	makeMoments() {
		const {page} = this,
			{model} = page;
		/** @type {HTMLSelectElement[]} */
		const selects = [];
		this.moments = selects;
		if (page.other || !momentsOf(model).length) return [];
		const choice = (/** @type {string} */ label, /** @type {'since' | 'at'} */ field, /** @type {[number, string][]} */ list) => {
			const select = /** @type {HTMLSelectElement} */ (
				el(
					'select',
					{
						'aria-label': label,
						onchange: (/** @type {Event} */ event) => {
							const value = Number(/** @type {HTMLSelectElement} */ (event.target).value);
							page.go({query: {...page.state.query, [field]: value}});
						},
					},
					...list.map(([k, text]) => el('option', {value: k}, text)),
				)
			);
			selects.push(select);
			return el('label', {class: 'moment'}, el('span', {class: 'soft'}, label), select);
		};
		const all = momentChoices(model);
		return [el('span', {class: 'soft note'}, term('mark', 'Marks')), choice('from', 'since', [[0, '–'], ...all]), choice('to', 'at', [...all.slice(1), [0, 'the end']])];
	}

	/** Amounts before and after, with the change. @returns {import('./grid.js').Column[]} */
	amountColumns() {
		const side = (/** @type {number} */ i) => this.amounts(this.rows[i]);
		const column = (
			/** @type {string} */ id,
			/** @type {string} */ title,
			/** @type {string} */ width,
			/** @type {(i: number, cell: HTMLElement) => void} */ cell,
		) => ({id, title, width, class: 'number', right: true, sortable: true, cell});
		return [
			column('change', 'Change', '88px', (i, cell) => {
				const [a, b] = side(i);
				fill(cell, el('span', {class: `v ${a === b ? 'faint' : b > a ? 'bad' : 'good'}`}, signed(b - a, this.unit())));
			}),
			{
				...column('note', '', '84px', (i, cell) => {
					cell.textContent = amountNote(...side(i));
				}),
				sortable: false,
				spare: true,
			},
			{
				...column('before', 'Before', '92px', (i, cell) => {
					cell.textContent = weight(side(i)[0], this.unit());
				}),
				spare: true,
			},
			column('now', 'After', '84px', (i, cell) => {
				cell.textContent = weight(side(i)[1], this.unit());
			}),
		];
	}

	unit() {
		return this.page.profile().model.meta.unit;
	}

	/** Of a row before and after. @param {DiffRow} r @returns {[number, number]} */
	amounts(r) {
		const diff = /** @type {Diff} */ (this.diff),
			which = this.shares();
		return [diff.amount(r.a[which].value), diff.amount(r.b[which].value)];
	}

	/** @returns {import('./grid.js').Column[]} */
	columns() {
		return [...(this.counted ? this.amountColumns() : this.shareColumns()), ...this.nameColumns()];
	}

	/** @returns {import('./grid.js').Column[]} */
	shareColumns() {
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
		];
	}

	/** @returns {import('./grid.js').Column[]} */
	nameColumns() {
		const name = (/** @type {number} */ i) =>
			/** @type {Diff} */ (this.diff).name(this.rows[i].key);
		return [
			{
				id: 'name',
				title: 'Name',
				width: 'minmax(90px, 3fr)',
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
				spare: true,
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
			this.showNothing();
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
		for (const [i, field] of /** @type {['since', 'at']} */ (['since', 'at']).entries())
			if (this.moments?.[i]) this.moments[i].value = String(state.query[field] ?? 0);
		this.which.set(this.shares() === 'total' ? 'total' : '');
		this.arrange(sort);
		this.grid.setSorted(sort.replace(/-$/, ''), !sort.endsWith('-'));
		this.grid.setRows(this.rows.length);
	}

	/** Nothing is compared. */
	showNothing() {
		const asked = this.moments?.length ? 'Choose a mark to begin from.' : 'There is no second session in this report: assay view --diff OLD.assay NEW.assay';
		for (const select of this.moments ?? []) select.value = '0';
		this.diff = null;
		this.of = [null, null];
		this.rows = [];
		fill(this.note, asked);
		fill(this.trust);
		this.grid.setRows(0);
	}

	/** @param {string} sort */
	arrange(sort) {
		const diff = /** @type {Diff} */ (this.diff),
			which = this.shares();
		const re = this.page.state.search ? searchPattern(this.page.state.search) : null;
		this.rows = diff.rows.filter(r => {
			const n = diff.name(r.key);
			// Of memory: what has nothing of the measure is no row, as in assay diff.
			if (this.counted && !r.a[which].value && !r.b[which].value) return false;
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
		if (diff.counted) {
			this.sayAmounts(diff);
			return;
		}
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

	/** @param {Diff} diff */
	sayAmounts(diff) {
		const {page} = this,
			{query} = page.state,
			unit = this.unit();
		const [a, b] = [diff.a.weight, diff.b.weight];
		const which = this.shares(),
			all = diff.rows.filter(r => r.a[which].value || r.b[which].value),
			changed = all.filter(r => r[which].resolved).length;
		fill(this.note, `${count(changed)} changed, ${count(all.length - changed)} the same`);
		const side = (/** @type {Model} */ model, /** @type {number} */ moment) =>
			page.other ? model.meta.file : momentName(model, moment);
		fill(
			this.trust,
			el('b', {}, measureOf(page.model, query)?.label ?? ''),
			`: ${side(diff.a.model, query.since ?? 0)} ${weight(a, unit)}, ${side(diff.b.model, query.at ?? 0)} ${weight(b, unit)}: `,
			el('b', {class: 'number'}, signed(b - a, unit)),
			a && b && a !== b ? `, ${amountNote(a, b)}` : '',
			'. Counted, not sampled: every difference is one.',
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
		if (diff.counted)
			return alignedText(
				[
					{title: 'before', right: true},
					{title: 'after', right: true},
					{title: 'change', right: true},
					{title: '', right: true},
					{title: 'name'},
				],
				this.rows.slice(0, 1000).map(r => {
					const [a, b] = this.amounts(r),
						unit = this.unit();
					return [weight(a, unit), weight(b, unit), signed(b - a, unit), amountNote(a, b), diff.name(r.key).brief];
				}),
			);
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
