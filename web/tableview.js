// SPDX-License-Identifier: MIT OR Apache-2.0
// Functions as a table: by function, line, file, crate, module, thread or process; sorted by any
// column; narrowed by what is searched.
import {el, fill} from './page.js';
import {Grid} from './grid.js';
import {oneRunText, table} from './table.js';
import {rowsText} from './text.js';
import {count, weight} from './format.js';
import {isMemory} from './memory.js';
import {
	fillMeter,
	fillShare,
	fillMarked,
	searchPattern,
	whereText,
	GROUP_OF,
	GROUPS,
} from './cells.js';

/** @typedef {import('./page.js').Page} Page */
/** @typedef {import('./types.js').Row} Row */
/** @typedef {import('./types.js').By} By */
/** @typedef {import('./names.js').Name} Name */
/** @typedef {{row: Row, name: Name, next: boolean}} TableLine  next: tied with the line below, in this order */

/** @type {{by: By, label: string, title: string}[]} */
export const TABLE_BY = [
	{by: 'function', label: 'Functions', title: 'Function'},
	{by: 'line', label: 'Lines', title: 'Line'},
	{by: 'file', label: 'Files', title: 'File'},
	{by: 'crate', label: 'Crates', title: 'Crate'},
	{by: 'module', label: 'Modules', title: 'Module'},
	{by: 'thread', label: 'Threads', title: 'Thread'},
	{by: 'process', label: 'Processes', title: 'Process'},
];

/**
 * Buttons of which one is on.
 * @param {string} label
 * @param {{value: string, label: string}[]} choices
 * @param {(value: string) => void} pick
 */
export function segments(label, choices, pick) {
	const buttons = choices.map(c =>
		el(
			'button',
			{
				role: 'radio',
				'aria-checked': 'false',
				dataset: {value: c.value},
				onclick: () => pick(c.value),
			},
			c.label,
		),
	);
	const element = el(
		'div',
		{class: 'segments', role: 'radiogroup', 'aria-label': label},
		...buttons,
	);
	element.addEventListener('keydown', event => {
		const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
		const at = buttons.indexOf(/** @type {HTMLElement} */ (document.activeElement));
		if (!step || at < 0) return;
		event.preventDefault();
		const to = buttons[(at + step + buttons.length) % buttons.length];
		to.focus();
		to.click();
	});
	return {
		element,
		/** @param {string} value */
		set(value) {
			for (const b of buttons) {
				b.setAttribute('aria-checked', String(b.dataset.value === value));
				b.tabIndex = b.dataset.value === value ? 0 : -1;
			}
		},
	};
}

export class TableView {
	/** @param {Page} page */
	constructor(page) {
		this.page = page;
		/** @type {{profile: import('./query.js').Profile, by: string, rows: {row: Row, name: Name}[]} | null} */
		this.made = null;
		/** @type {TableLine[]} */
		this.lines = [];
		this.most = 1;
		this.key0 = '';
		this.by = segments(
			'Rows',
			TABLE_BY.map(b => ({value: b.by, label: b.label})),
			by => page.go({by: /** @type {By} */ (by)}),
		);
		this.note = el('span', {class: 'note number', 'aria-live': 'polite'});
		this.grid = new Grid({
			label: 'Functions',
			columns: this.columns('Function'),
			open: i => this.open(i),
			menu: (i, at) => this.menu(i, at),
			sort: c => this.sort(c),
			select: i => {
				const f = this.functionOf(i);
				if (f >= 0) page.go({f}, 'replace');
			},
		});
		this.empty = el('p', {class: 'empty', style: {flex: '10 1 auto'}});
		this.element = el(
			'div',
			{class: 'view'},
			el('div', {class: 'bar'}, this.by.element, el('span', {class: 'fill'}), this.note),
			this.grid.element,
			this.empty,
		);
	}

	/** @param {string} title @returns {import('./grid.js').Column[]} */
	columns(title) {
		const share =
			(/** @type {'self' | 'total'} */ which) =>
			(/** @type {number} */ i, /** @type {HTMLElement} */ cell) =>
				fillShare(cell, this.lines[i].row[which]);
		return [
			{
				id: 'self',
				title: 'Self %',
				width: '96px',
				class: 'share',
				right: true,
				word: 'self',
				sortable: true,
				cell: share('self'),
			},
			{
				id: 'tie',
				title: '',
				says: 'Not separable',
				width: '10px',
				cell: (i, cell) => this.tieCell(i, cell),
			},
			{
				id: 'meter',
				title: '',
				says: 'Bar of self',
				width: '90px',
				cell: (i, cell) => fillMeter(cell, this.lines[i].row.self, this.most),
			},
			{
				id: 'total',
				title: 'Total %',
				width: '96px',
				class: 'share',
				right: true,
				word: 'total',
				sortable: true,
				cell: share('total'),
			},
			isMemory(this.page.model)
				? {
						id: 'samples',
						title: 'Self',
						width: '84px',
						class: 'number',
						right: true,
						word: 'measure',
						cell: (i, cell) => {
							cell.textContent = this.amount(this.lines[i].row.self.value);
							cell.title = `total ${this.amount(this.lines[i].row.total.value)}`;
						},
					}
				: {
						id: 'samples',
						title: 'Samples',
						width: '74px',
						spare: true,
						class: 'number',
						right: true,
						word: 'sample',
						sortable: true,
						cell: (i, cell) => {
							cell.textContent = count(this.lines[i].row.self.samples);
						},
					},
			{
				id: 'name',
				title,
				width: 'minmax(90px, 3fr)',
				class: 'name',
				sortable: true,
				cell: (i, cell) => {
					const {name} = this.lines[i];
					fillMarked(cell, name.brief, this.page.state.search);
					cell.title = name.full;
				},
			},
			{
				id: 'where',
				title: 'Where',
				width: 'minmax(80px, 1fr)',
				class: 'where',
				sortable: true,
				cell: (i, cell) => {
					const {name} = this.lines[i];
					fill(
						cell,
						el('span', {
							class: 'dot',
							style: {
								background: `var(--cat-${GROUPS[GROUP_OF[name.category] ?? 5].id})`,
							},
						}),
						[oneRunText(this.page.model, this.lines[i].row.total), whereText(name)]
							.filter(Boolean)
							.join(' · '),
					);
					cell.title = [
						oneRunText(this.page.model, this.lines[i].row.total),
						name.file && `${name.file}${name.line ? `:${name.line}` : ''}`,
						name.crate,
						name.module,
					]
						.filter(Boolean)
						.join('\n');
				},
			},
		];
	}

	/** A share in the measure's unit. @param {number} share */
	amount(share) {
		const profile = this.page.profile();
		return weight(share * profile.weight, profile.model.meta.unit);
	}

	/** @param {number} i @param {HTMLElement} cell */
	tieCell(i, cell) {
		const above = i > 0 && this.lines[i - 1].next,
			below = this.lines[i].next;
		cell.textContent = above && below ? '│' : above ? '┘' : below ? '┐' : '';
		cell.className = 'cell tie';
		cell.title =
			above || below ? 'not separable: these data do not decide the order of these rows' : '';
	}

	/** @returns {{column: string, down: boolean}} */
	sorted() {
		const text = this.page.state.more['table.sort'] || 'self';
		const up = text.endsWith('-');
		return {column: up ? text.slice(0, -1) : text, down: !up};
	}

	/** @param {string} column */
	sort(column) {
		const now = this.sorted(),
			words = column === 'name' || column === 'where';
		const down = now.column === column ? !now.down : !words;
		const value = column + (down ? '' : '-');
		this.page.go({more: {'table.sort': value === 'self' ? '' : value}});
	}

	show() {
		const {state} = this.page,
			profile = this.page.profile(),
			sorted = this.sorted();
		const key = `${state.by} ${state.search} ${sorted.column} ${sorted.down}`;
		if (this.made?.profile === profile && this.key0 === key) {
			this.grid.draw();
			return;
		}
		const title = TABLE_BY.find(b => b.by === state.by)?.title ?? '';
		if (this.made?.by !== state.by) {
			this.grid.setColumns(this.columns(title));
			this.grid.element.setAttribute(
				'aria-label',
				TABLE_BY.find(b => b.by === state.by)?.label ?? '',
			);
		}
		if (!this.made || this.made.profile !== profile || this.made.by !== state.by)
			this.made = {
				profile,
				by: state.by,
				rows: table(profile, state.by).map(row => ({row, name: profile.name(row.key)})),
			};
		this.key0 = key;
		this.by.set(state.by);
		this.arrange(sorted);
		this.grid.setSorted(sorted.column, sorted.down);
		this.grid.setRows(this.lines.length);
		const at =
			state.f >= 0
				? this.lines.findIndex(l => l.name.kind === 'function' && l.name.index === state.f)
				: -1;
		if (at >= 0) this.grid.select(at, true);
	}

	/** @param {{column: string, down: boolean}} sorted */
	arrange({column, down}) {
		const all = this.made?.rows ?? [],
			{search} = this.page.state;
		const re = search ? searchPattern(search) : null;
		const hit = (/** @type {Name} */ n) =>
			!re ||
			[n.brief, n.full, n.crate, n.module, n.file].some(t => {
				re.lastIndex = 0;
				return t && re.test(t);
			});
		/** @type {TableLine[]} */
		const lines = [];
		all.forEach((r, i) => {
			if (hit(r.name))
				lines.push({...r, next: r.row.tied && i + 1 < all.length && hit(all[i + 1].name)});
		});
		const text = (/** @type {TableLine} */ l) =>
			column === 'name' ? l.name.brief : whereText(l.name);
		const number = (/** @type {TableLine} */ l) =>
			column === 'total'
				? l.row.total.value
				: column === 'samples'
					? l.row.self.samples
					: l.row.self.value;
		const byText = column === 'name' || column === 'where';
		lines.sort(
			(a, b) =>
				(down ? -1 : 1) * (byText ? text(a).localeCompare(text(b)) : number(a) - number(b)),
		);
		if (column !== 'self' || !down) for (const l of lines) l.next = false;
		this.lines = lines;
		this.most = lines.reduce((m, l) => Math.max(m, l.row.self.high || l.row.self.value), 0.001);
		this.empty.hidden = lines.length > 0;
		fill(
			this.empty,
			all.length
				? `No name here has “${search}” in it.`
				: isMemory(this.page.model)
					? 'Nothing of this measure is left: remove a filter above, or take another one.'
					: 'No sample is left to look at: remove a filter above.',
		);
		fill(
			this.note,
			re
				? `${count(lines.length)} of ${count(all.length)} rows match`
				: `${count(all.length)} rows`,
		);
	}

	/** @param {number} i */
	functionOf(i) {
		const name = this.lines[i]?.name;
		return name && (name.kind === 'function' || name.kind === 'line') ? name.index : -1;
	}

	/** @param {number} i */
	open(i) {
		const line = this.lines[i],
			{page} = this;
		if (!line) return;
		const {name} = line,
			{query} = page.state;
		if (name.kind === 'function' && name.index >= 0) page.open(name.index);
		else if (name.kind === 'line')
			page.go(
				name.index >= 0
					? {view: 'source', f: name.index, more: {'source.line': String(name.line)}}
					: {by: 'function', search: name.file},
			);
		else if (name.kind === 'thread')
			page.go({by: 'function', query: {...query, threads: [name.index]}});
		else if (name.kind === 'process')
			page.go({
				by: 'function',
				query: {
					...query,
					threads: page.model.threads.flatMap((t, k) =>
						t.process === name.index ? [k] : [],
					),
				},
			});
		else
			page.go({
				by: 'function',
				search: name.kind === 'file' ? name.file || name.brief : name.brief,
			});
	}

	/** @param {number} i @param {{x: number, y: number}} at */
	menu(i, at) {
		const f = this.functionOf(i),
			{name} = this.lines[i];
		this.page.menu(
			at,
			f >= 0
				? this.page.functionMenu(f)
				: [
						{label: 'Open', key: 'Enter', run: () => this.open(i)},
						{
							label: 'Copy name',
							run: () => this.page.copy(name.full || name.brief, 'the name'),
						},
					],
		);
	}

	/** @param {KeyboardEvent} event @returns {boolean} */
	key(event) {
		if (
			document.activeElement === document.body &&
			[
				'ArrowDown',
				'ArrowUp',
				'Enter',
				'Home',
				'End',
				'PageDown',
				'PageUp',
				'j',
				'k',
			].includes(event.key)
		) {
			this.grid.element.focus();
			return this.grid.key(event);
		}
		return false;
	}

	text() {
		return rowsText(
			this.page.profile(),
			this.lines.map(l => l.row),
		);
	}

	/** @type {[string, string][]} */
	keys = [
		['↑ ↓ PgUp PgDn', 'move'],
		['Enter', 'open: callers and callees'],
		['m', 'menu of the row'],
	];
}
