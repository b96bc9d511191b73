// SPDX-License-Identifier: MIT OR Apache-2.0
// A table or a tree of any length of which only the rows on screen exist. The owner says how many
// rows there are and fills cells when asked; the grid scrolls, selects, and answers to the keyboard.
// Rows are reused: a cell may hold what another row left there, `cell()` replaces it.
import {el, fill} from './page.js';
import {explain} from './glossary.js';

/**
 * @typedef {object} Column
 * @property {string} id
 * @property {string} title
 * @property {string} width   a track of CSS grid
 * @property {string} [class]
 * @property {string} [says]  the title where it is not shown
 * @property {boolean} [right]
 * @property {string} [word]  of the glossary
 * @property {boolean} [sortable]
 * @property {boolean} [spare]  left out where the grid is narrow
 * @property {(row: number, cell: HTMLElement) => void} cell
 */

/**
 * @typedef {object} GridOptions
 * @property {string} label
 * @property {Column[]} columns
 * @property {boolean} [tree]
 * @property {(row: number) => void} [open]    Enter, double click
 * @property {(row: number) => void} [select]
 * @property {(row: number, at: {x: number, y: number}) => void} [menu]
 * @property {(column: string) => void} [sort]
 * @property {(row: number) => number} [level]   trees: 1 for roots
 * @property {(row: number) => boolean | null} [expanded]   null: nothing below
 * @property {(row: number, to: boolean, deep: boolean) => void} [expand]
 * @property {(row: number) => number} [up]   the parent's row, -1 none
 */

const GRID_NARROW = 860;
const GRID_ROW = 24,
	GRID_HEAD = 30,
	GRID_SPARE = 6,
	GRID_MOST = 1250000,
	GRID_PRINTED = 300;
let gridCount = 0;

export class Grid {
	/** @param {GridOptions} options */
	constructor(options) {
		this.options = options;
		this.n = 0;
		this.selected = -1;
		this.id = `grid${++gridCount}`;
		/** @type {HTMLElement[]} */
		this.pool = [];
		/** @type {{column: string, down: boolean} | null} */
		this.sorted = null;
		this.printing = false;
		this.narrow = false;
		/** @type {Column[]} */
		this.all = options.columns;
		/** @type {Column[]} */
		this.columns = [];
		this.head = el('div', {class: 'head', role: 'row', 'aria-rowindex': '1'});
		this.space = el('div', {class: 'space', role: 'rowgroup'});
		this.element = el(
			'div',
			{
				class: options.tree ? 'grid tree' : 'grid',
				tabindex: '0',
				'aria-label': options.label,
				role: options.tree ? 'treegrid' : 'grid',
				'aria-readonly': 'true',
			},
			el('div', {role: 'rowgroup', style: {display: 'contents'}}, this.head),
			this.space,
		);
		this.setColumns(options.columns);
		this.element.addEventListener('scroll', () => this.draw());
		this.element.addEventListener('keydown', event => {
			if (event.target === this.element && this.key(event)) event.preventDefault();
		});
		this.space.addEventListener('click', event => this.clicked(event));
		this.space.addEventListener('dblclick', event => {
			if (!this.twisted(event) && this.rowOf(event) >= 0)
				this.options.open?.(this.rowOf(event));
		});
		this.space.addEventListener('contextmenu', event => {
			const row = this.rowOf(event);
			if (row < 0 || !this.options.menu) return;
			event.preventDefault();
			this.select(row);
			this.options.menu(row, {x: event.clientX, y: event.clientY});
		});
		new ResizeObserver(() => this.draw()).observe(this.element);
		window.addEventListener('beforeprint', () => this.print(true));
		window.addEventListener('afterprint', () => this.print(false));
	}

	/** @param {Column[]} all */
	setColumns(all) {
		this.all = all;
		const columns = (this.columns = all.filter(c => !this.narrow || !c.spare));
		this.element.style.setProperty('--cols', columns.map(c => c.width).join(' '));
		for (const row of this.pool) row.remove();
		this.pool = [];
		fill(
			this.head,
			...columns.map(c => {
				const sort = () => this.options.sort?.(c.id);
				const inner = c.sortable
					? el('button', {tabindex: '-1', onclick: sort}, c.title)
					: el(
							'span',
							{class: c.title ? null : 'hide-visually'},
							c.title || c.says || '',
						);
				if (c.word) explain(inner, c.word);
				return el(
					'div',
					{
						class: `cell ${c.right ? 'right' : ''}`,
						role: 'columnheader',
						dataset: {column: c.id},
					},
					inner,
				);
			}),
		);
		this.setSorted(this.sorted?.column ?? '', this.sorted?.down ?? true);
	}

	/** @param {string} column @param {boolean} down */
	setSorted(column, down) {
		this.sorted = {column, down};
		for (const cell of /** @type {HTMLElement[]} */ ([...this.head.children])) {
			const on = cell.dataset.column === column;
			cell.querySelector('.arrow')?.remove();
			cell.removeAttribute('aria-sort');
			if (!on) continue;
			cell.setAttribute('aria-sort', down ? 'descending' : 'ascending');
			cell.append(el('span', {class: 'arrow', 'aria-hidden': 'true'}, down ? '↓' : '↑'));
		}
	}

	/**
	 * The rows have changed. keep: the place and the selection stay.
	 * @param {number} n
	 * @param {boolean} [keep]
	 */
	setRows(n, keep = false) {
		this.n = Math.min(n, GRID_MOST);
		this.space.style.height = `${this.n * GRID_ROW}px`;
		this.element.setAttribute('aria-rowcount', String(n + 1));
		if (!keep) {
			this.element.scrollTop = 0;
			this.selected = n ? 0 : -1;
		}
		if (this.selected >= this.n) this.selected = this.n - 1;
		this.draw();
	}

	draw() {
		if (!this.element.isConnected) return;
		const height = this.element.clientHeight,
			narrow = this.element.clientWidth < GRID_NARROW;
		if (narrow !== this.narrow && height) {
			this.narrow = narrow;
			this.setColumns(this.all);
		}
		let first = Math.max(0, Math.floor(this.element.scrollTop / GRID_ROW) - GRID_SPARE);
		let last = Math.min(
			this.n,
			Math.ceil((this.element.scrollTop + height) / GRID_ROW) + GRID_SPARE,
		);
		if (this.printing) [first, last] = [0, Math.min(this.n, GRID_PRINTED)];
		while (this.pool.length < last - first)
			this.pool.push(this.space.appendChild(this.makeRow()));
		this.pool.forEach((row, i) => {
			row.hidden = i >= last - first;
			if (!row.hidden) this.fillRow(row, first + i);
		});
		if (this.selected >= first && this.selected < last)
			this.element.setAttribute('aria-activedescendant', `${this.id}-${this.selected}`);
		else this.element.removeAttribute('aria-activedescendant');
	}

	makeRow() {
		return el(
			'div',
			{class: 'row', role: 'row'},
			...this.columns.map(c =>
				el('div', {
					class: `cell ${c.class ?? ''} ${c.right ? 'right' : ''}`,
					role: 'gridcell',
				}),
			),
		);
	}

	/** @param {HTMLElement} row @param {number} i */
	fillRow(row, i) {
		row.id = `${this.id}-${i}`;
		row.dataset.row = String(i);
		row.style.transform = `translateY(${i * GRID_ROW}px)`;
		row.setAttribute('aria-rowindex', String(i + 2));
		row.setAttribute('aria-selected', String(i === this.selected));
		if (this.options.tree) {
			row.setAttribute('aria-level', String(this.options.level?.(i) ?? 1));
			const open = this.options.expanded?.(i) ?? null;
			if (open === null) row.removeAttribute('aria-expanded');
			else row.setAttribute('aria-expanded', String(open));
		}
		this.columns.forEach((c, k) => c.cell(i, /** @type {HTMLElement} */ (row.children[k])));
	}

	/** @param {number} row @param {boolean} [quiet] */
	select(row, quiet = false) {
		if (row < 0 || row >= this.n) return;
		this.selected = row;
		const top = row * GRID_ROW,
			view = this.element;
		const height = view.clientHeight - GRID_HEAD;
		if (top < view.scrollTop) view.scrollTop = top;
		else if (top + GRID_ROW > view.scrollTop + height) view.scrollTop = top + GRID_ROW - height;
		this.draw();
		if (!quiet) this.options.select?.(row);
	}

	/** @param {Event} event */
	rowOf(event) {
		const row = event.target instanceof Element ? event.target.closest('[data-row]') : null;
		return row instanceof HTMLElement ? Number(row.dataset.row) : -1;
	}

	/** @param {Event} event */
	twisted(event) {
		return event.target instanceof Element && !!event.target.closest('.twist');
	}

	/** @param {MouseEvent} event */
	clicked(event) {
		const row = this.rowOf(event);
		if (row < 0 || event.button !== 0) return;
		if (this.twisted(event)) this.toggle(row, event.altKey || event.shiftKey);
		this.select(row);
	}

	/** @param {number} row @param {boolean} deep */
	toggle(row, deep) {
		const open = this.options.expanded?.(row) ?? null;
		if (open !== null) this.options.expand?.(row, !open, deep);
	}

	/** @param {KeyboardEvent} event @returns {boolean} */
	key(event) {
		if (event.ctrlKey || event.metaKey || event.altKey || !this.n) return false;
		const page = Math.max(1, Math.floor(this.element.clientHeight / GRID_ROW) - 2),
			at = this.selected;
		const to = /** @type {{[key: string]: number}} */ ({
			ArrowDown: at + 1,
			ArrowUp: at - 1,
			j: at + 1,
			k: at - 1,
			PageDown: at + page,
			PageUp: at - page,
			Home: 0,
			End: this.n - 1,
		})[event.key];
		if (to !== undefined) {
			this.select(Math.min(Math.max(to, 0), this.n - 1));
			return true;
		}
		if (event.key === 'Enter') {
			this.options.open?.(at);
			return true;
		}
		if (
			event.key === 'm' ||
			event.key === 'ContextMenu' ||
			(event.key === 'F10' && event.shiftKey)
		) {
			const row = document.getElementById(`${this.id}-${at}`)?.getBoundingClientRect();
			this.options.menu?.(at, {x: (row?.left ?? 0) + 80, y: row?.bottom ?? 0});
			return true;
		}
		return !!this.options.tree && this.treeKey(event.key);
	}

	/** @param {string} key @returns {boolean} */
	treeKey(key) {
		const at = this.selected,
			open = this.options.expanded?.(at) ?? null;
		if (key === 'ArrowRight' || key === 'l') {
			if (open === false) this.options.expand?.(at, true, false);
			else if (open) this.select(Math.min(at + 1, this.n - 1));
		} else if (key === 'ArrowLeft' || key === 'h') {
			if (open) this.options.expand?.(at, false, false);
			else this.select(this.options.up?.(at) ?? -1);
		} else if (key === '*' && open !== null) this.options.expand?.(at, true, true);
		else if (key === ' ') this.toggle(at, false);
		else return false;
		return true;
	}

	/** @param {boolean} on */
	print(on) {
		this.printing = on;
		this.draw();
	}
}
