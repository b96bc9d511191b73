// SPDX-License-Identifier: MIT OR Apache-2.0
// One function with who calls it on the left and what it calls on the right, each as a tree.
import {el, fill} from './page.js';
import {TreeGrid} from './treeview.js';
import {sandwich, table} from './table.js';
import {treeText} from './text.js';
import {term} from './glossary.js';
import {count, shareText, weight} from './format.js';
import {isMemory} from './memory.js';
import {moduleText, whereText} from './cells.js';
import {overviewTarget} from './firstscreen.js';

/** @typedef {import('./page.js').Page} Page */
/** @typedef {import('./page.js').PageState} PageState */
/** @typedef {import('./query.js').Profile} Profile */

export class SandwichView {
	/** @param {Page} page */
	constructor(page) {
		this.page = page;
		/** @type {Profile | null} */
		this.profile = null;
		this.f = -2;
		this.callers = new TreeGrid(page, {label: 'Callers', inverted: true, narrow: true});
		this.callees = new TreeGrid(page, {label: 'Callees', inverted: false, narrow: true});
		this.head = el('div', {class: 'sandwich-head'});
		this.panes = el(
			'div',
			{class: 'panes'},
			el(
				'section',
				{class: 'pane', 'aria-label': 'Callers'},
				el('h3', {}, 'Callers: who leads here'),
				this.callers.element,
			),
			el(
				'section',
				{class: 'pane', 'aria-label': 'Callees'},
				el('h3', {}, 'Callees: what it calls'),
				this.callees.element,
			),
		);
		this.empty = el('p', {class: 'empty'});
		this.element = el('div', {class: 'view'}, this.head, this.empty, this.panes);
	}

	/** The chosen function, or the hottest of what is looked at. */
	chosen() {
		const {state, model} = this.page;
		if (state.f >= 0 && state.f < model.functions.n) return state.f;
		const profile = this.page.profile(),
			row = table(profile, 'function')[0];
		return row ? profile.name(row.key).index : -1;
	}

	show() {
		const profile = this.page.profile(),
			f = this.profile === profile && this.f === this.page.state.f ? this.f : this.chosen();
		if (this.profile === profile && this.f === f) {
			this.callers.grid.draw();
			this.callees.grid.draw();
			return;
		}
		this.profile = profile;
		this.f = f;
		const key = f < 0 ? -1 : profile.keyOf(f);
		const s = key < 0 ? null : sandwich(profile, key);
		this.panes.hidden = !s || !s.total.samples;
		this.empty.hidden = !this.panes.hidden;
		if (!s) {
			fill(this.head);
			fill(this.empty, 'No sample is left to look at: remove a filter above.');
			return;
		}
		const name = profile.name(key),
			{page} = this;
		const link = (/** @type {string} */ label, /** @type {Partial<PageState>} */ to) =>
			el('a', {href: page.href(to)}, label);
		const from = [...new Set([whereText(name), moduleText(name.module)])]
			.filter(Boolean)
			.join(' · ');
		fill(
			this.head,
			el(
				'div',
				{class: 'what'},
				el('h2', {title: name.full}, name.brief),
				el(
					'span',
					{class: 'where', title: name.full},
					name.full !== name.brief ? `${from}   ${name.full}` : from,
				),
			),
			el('span', {class: 'number'}, term('self'), ` ${shareText(s.self)}`),
			el('span', {class: 'number'}, term('total'), ` ${shareText(s.total)}`),
			el(
				'span',
				{class: 'number soft'},
				isMemory(page.model)
					? weight(s.total.value * profile.weight, profile.model.meta.unit)
					: `${count(s.total.samples)} samples`,
			),
			el(
				'span',
				{},
				link(
					overviewTarget(page.model, f) === 'source' ? 'Source and assembly' : 'Source',
					{view: 'source', f},
				),
			),
			el(
				'button',
				{
					'aria-haspopup': 'menu',
					onclick: (/** @type {MouseEvent} */ event) => {
						const box = /** @type {HTMLElement} */ (
							event.currentTarget
						).getBoundingClientRect();
						page.menu({x: box.left, y: box.bottom + 4}, page.functionMenu(f));
					},
				},
				'More ▾',
			),
		);
		if (!s.total.samples) {
			fill(
				this.empty,
				'This function is in no sample of what is looked at: remove a filter above, or choose another function.',
			);
			return;
		}
		this.callers.set(profile, s.callers);
		this.callees.set(profile, s.callees);
	}

	/** @param {KeyboardEvent} event @returns {boolean} */
	key(event) {
		if (
			event.key === 'Tab' ||
			!/^(Arrow|Home|End|Page)/.test(event.key) ||
			document.activeElement !== document.body
		)
			return false;
		this.callers.element.focus();
		return this.callers.grid.key(event);
	}

	text() {
		const {profile} = this;
		if (!profile || !this.callers.tree || !this.callees.tree) return '';
		return `${this.head.querySelector('h2')?.textContent ?? ''}\n\ncallers\n${treeText(
			profile,
			this.callers.tree,
			{minShare: 0.002},
		)}\ncallees\n${treeText(profile, this.callees.tree, {minShare: 0.002})}`;
	}

	/** @type {[string, string][]} */
	keys = [
		['Enter', "look at the row's function"],
		['Tab', 'from callers to callees'],
		['m', 'menu of the row'],
	];
}
