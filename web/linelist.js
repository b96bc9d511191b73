// SPDX-License-Identifier: MIT OR Apache-2.0
// A scrolling list of many rows of one height, of which only those in view exist as elements. For
// assistive technology it is a list box, or a tree: one row is the active one, arrow keys move it.
import { el } from './page.js';

/**
 * @typedef {object} LineListHost
 * @property {(i: number) => HTMLElement} row      a new element for a row; its place is set here
 * @property {(i: number) => void} active          the active row changed by key or click
 * @property {(i: number) => void} [hover]         -1: none
 * @property {(first: number, last: number) => void} [drawn]   rows in view changed
 * @property {string} label
 * @property {boolean} [tree]   rows fold: they say aria-level, and aria-expanded where they can
 */

export const LINE_HEIGHT = 19;
const LINE_MARGIN = 12;
/** Numbers lists, so that ids of rows are unique. */
const lineLists = {made: 0};

export class LineList {
	/** @param {LineListHost} host */
	constructor(host) {
		this.host = host;
		this.id = `lines${lineLists.made++}`;
		this.inner = el('div', {class: 'lines-inner', role: 'presentation'});
		this.element = el('div', {class: 'lines', tabindex: '0', role: host.tree ? 'tree' : 'listbox', 'aria-label': host.label}, this.inner);
		this.n = 0;
		this.active = -1;
		/** @type {Map<number, HTMLElement>} */
		this.shown = new Map();
		this.first = this.last = -1;
		this.element.addEventListener('scroll', () => this.update());
		new ResizeObserver(() => this.update()).observe(this.element);
		this.element.addEventListener('click', ev => {
			const i = this.rowOf(ev);
			if (i >= 0)
				this.setActive(i, true);
		});
		this.element.addEventListener('pointermove', ev => this.setHover(this.rowOf(ev)));
		this.element.addEventListener('pointerleave', () => this.setHover(-1));
		this.hovered = -1;
	}

	/** @param {MouseEvent} ev */
	rowOf(ev) {
		const y = ev.clientY - this.inner.getBoundingClientRect().top, i = Math.floor(y / LINE_HEIGHT);
		return i >= 0 && i < this.n ? i : -1;
	}

	/** @param {number} i */
	setHover(i) {
		if (i === this.hovered)
			return;
		this.hovered = i;
		if (this.host.hover)
			this.host.hover(i);
	}

	/**
	 * @param {number} n
	 * @param {number} width   of the widest row, in characters
	 */
	setRows(n, width) {
		this.n = n;
		this.inner.style.height = `${n * LINE_HEIGHT}px`;
		this.inner.style.setProperty('--chars', String(Math.min(width, 400)));
		this.active = Math.min(this.active, n - 1);
		this.renew();
	}

	/** All rows in view are made again. */
	renew() {
		this.shown.forEach(e => e.remove());
		this.shown.clear();
		this.first = this.last = -1;
		this.update();
	}

	update() {
		const top = this.element.scrollTop, height = this.element.clientHeight;
		const first = Math.max(0, Math.floor(top / LINE_HEIGHT) - LINE_MARGIN);
		const last = Math.min(this.n - 1, Math.ceil((top + height) / LINE_HEIGHT) + LINE_MARGIN);
		if (first === this.first && last === this.last)
			return;
		for (const [i, e] of this.shown) {
			if (i < first || i > last) {
				e.remove();
				this.shown.delete(i);
			}
		}
		for (let i = first; i <= last; i++) {
			if (this.shown.has(i))
				continue;
			const e = this.host.row(i);
			e.style.top = `${i * LINE_HEIGHT}px`;
			e.id = `${this.id}-${i}`;
			e.setAttribute('role', this.host.tree ? 'treeitem' : 'option');
			e.setAttribute('aria-setsize', String(this.n));
			e.setAttribute('aria-posinset', String(i + 1));
			this.mark(e, i === this.active);
			this.shown.set(i, e);
			this.inner.append(e);
		}
		this.first = first;
		this.last = last;
		if (this.host.drawn)
			this.host.drawn(first, last);
	}

	/** @param {HTMLElement} e @param {boolean} on */
	mark(e, on) {
		e.setAttribute('aria-selected', String(on));
		e.classList.toggle('active', on);
	}

	/**
	 * @param {number} i
	 * @param {boolean} tell   the host
	 */
	setActive(i, tell) {
		const old = this.shown.get(this.active);
		if (old)
			this.mark(old, false);
		this.active = i;
		this.element.setAttribute('aria-activedescendant', i >= 0 ? `${this.id}-${i}` : '');
		const now = this.shown.get(i);
		if (now)
			this.mark(now, true);
		if (tell && i >= 0)
			this.host.active(i);
	}

	/**
	 * Brings a row into view: at a third of the height when it is not there yet.
	 * @param {number} i
	 */
	reveal(i) {
		const e = this.element, y = i * LINE_HEIGHT;
		if (y < e.scrollTop + LINE_HEIGHT || y > e.scrollTop + e.clientHeight - 2 * LINE_HEIGHT)
			e.scrollTop = Math.max(0, y - e.clientHeight / 3);
		this.update();
	}

	/**
	 * @param {KeyboardEvent} ev
	 * @returns {boolean}
	 */
	key(ev) {
		const page = Math.max(1, Math.floor(this.element.clientHeight / LINE_HEIGHT) - 2), at = this.active;
		const to = {ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: this.n - 1}[ev.key];
		if (to === undefined || !this.n || ev.ctrlKey || ev.altKey || ev.metaKey)
			return false;
		const i = Math.min(this.n - 1, Math.max(0, to));
		this.setActive(i, true);
		this.reveal(i);
		return true;
	}
}
