// SPDX-License-Identifier: MIT OR Apache-2.0
// The call tree: top-down or inverted, whole or per thread or process. A function that is the only
// one called is not moved to the right, so that the depth of the picture is that of the branching.
import {el, fill} from './page.js';
import {Grid} from './grid.js';
import {segments} from './tableview.js';
import {callTree, nodeShares, searchNames} from './tree.js';
import {treeText} from './text.js';
import {count, weight} from './format.js';
import {isMemory} from './memory.js';
import {fillMeter, fillShare, fillMarked, whereText, GROUP_OF, GROUPS} from './cells.js';

/** @typedef {import('./page.js').Page} Page */
/** @typedef {import('./types.js').Tree} Tree */
/** @typedef {import('./query.js').Profile} Profile */

const TREE_INDENT = 12;
const TREE_OPEN_SHARE = 0.5,
	TREE_OPEN_MOST = 24,
	TREE_INDENT_MOST = 40,
	TREE_DEEP_MOST = 5000;

/** A tree of which parts are open, as rows of a grid. */
export class TreeGrid {
	/**
	 * @param {Page} page
	 * @param {{label: string, inverted: boolean, narrow?: boolean}} how  narrow: half a page, bars
	 *   are parts of the whole tree
	 */
	constructor(page, how) {
		this.page = page;
		this.how = how;
		/** @type {Tree | null} */
		this.tree = null;
		/** @type {Profile | null} */
		this.profile = null;
		this.opened = new Uint8Array(0);
		/** @type {number[]} */
		this.rows = [];
		/** @type {Map<number, number>} */
		this.indents = new Map();
		/** @type {{low: Float64Array, high: Float64Array} | null} */
		this.shares = null;
		this.grid = new Grid({
			label: how.label,
			tree: true,
			columns: this.columns(),
			level: i => this.tree?.depth[this.rows[i]] || 1,
			expanded: i =>
				this.hasChildren(this.rows[i]) ? this.opened[this.rows[i]] === 1 : null,
			expand: (i, to, deep) => this.expand(i, to, deep),
			up: i => this.rows.lastIndexOf(this.tree?.parent[this.rows[i]] ?? -1, i),
			open: i => {
				const f = this.functionOf(i);
				if (f >= 0) page.open(f);
			},
			select: i => {
				const f = this.functionOf(i);
				if (f >= 0) page.go({f}, 'replace');
			},
			menu: (i, at) => {
				const f = this.functionOf(i);
				page.menu(at, [
					{
						label: 'Open the heaviest path',
						key: '*',
						run: () => this.expand(i, true, true),
					},
					{label: 'Copy this path', run: () => this.copyPath(i)},
					...(f >= 0 ? [null, ...page.functionMenu(f)] : []),
				]);
			},
		});
		this.element = this.grid.element;
	}

	/** @returns {import('./grid.js').Column[]} */
	columns() {
		return [
			{
				id: 'total',
				title: 'Total %',
				width: '96px',
				class: 'share',
				right: true,
				word: 'total',
				cell: (i, cell) => fillShare(cell, this.share(this.rows[i])),
			},
			{
				id: 'meter',
				title: '',
				says: 'Bar of total',
				width: this.how.narrow ? '40px' : '64px',
				cell: (i, cell) =>
					fillMeter(
						cell,
						this.share(this.rows[i]),
						this.tree && this.how.narrow ? this.tree.total[0] / this.tree.weight : 1,
					),
			},
			{
				id: 'self',
				title: 'Self %',
				width: '52px',
				class: 'number',
				right: true,
				word: 'self',
				cell: (i, cell) => {
					const node = this.rows[i],
						x = this.tree ? this.tree.self[node] / this.tree.weight : 0;
					cell.textContent = x >= 0.0005 ? (x * 100).toFixed(1) : '';
				},
			},
			isMemory(this.page.model)
				? {
						id: 'samples',
						title: 'Total',
						width: '84px',
						class: 'number',
						right: true,
						word: 'measure',
						cell: (i, cell) => {
							cell.textContent = weight(
								this.tree?.total[this.rows[i]] ?? 0,
								this.profile?.model.meta.unit ?? 'bytes',
							);
						},
					}
				: {
						id: 'samples',
						title: 'Samples',
						width: '64px',
						spare: true,
						class: 'number',
						right: true,
						word: 'sample',
						cell: (i, cell) => {
							cell.textContent = count(this.tree?.samples[this.rows[i]] ?? 0);
						},
					},
			{
				id: 'name',
				title: 'Function',
				width: 'minmax(90px, 1fr)',
				class: 'name',
				cell: (i, cell) => this.nameCell(i, cell),
			},
		];
	}

	/** @param {number} node @returns {import('./types.js').Share} */
	share(node) {
		const {tree} = this;
		if (!tree || !tree.weight) return {value: 0, low: 0, high: 0, samples: 0};
		const value = tree.total[node] / tree.weight;
		if (!this.shares && this.profile) this.shares = nodeShares(this.profile, tree);
		const low = this.shares?.low[node] ?? NaN,
			high = this.shares?.high[node] ?? NaN;
		return {value, low, high, samples: tree.samples[node]};
	}

	/** @param {number} i @param {HTMLElement} cell */
	nameCell(i, cell) {
		const node = this.rows[i],
			{tree, profile} = this;
		if (!tree || !profile) return;
		const name = profile.name(tree.key[node]),
			depth = tree.depth[node];
		const indent = Math.min(TREE_INDENT_MOST, this.indents.get(node) ?? 0);
		const open = this.hasChildren(node) ? (this.opened[node] ? '▾' : '▸') : '';
		const text = el('span', {class: 'text', title: `${name.full}\n${depth} deep`});
		fillMarked(text, name.brief, this.page.state.search);
		cell.style.paddingLeft = `${indent * TREE_INDENT}px`;
		fill(
			cell,
			el('span', {class: 'twist', 'aria-hidden': 'true'}, open),
			el('span', {
				class: 'dot',
				style: {background: `var(--cat-${GROUPS[GROUP_OF[name.category] ?? 5].id})`},
			}),
			text,
			name.kind === 'function' ? el('span', {class: 'where'}, whereText(name)) : null,
		);
	}

	/**
	 * @param {Profile} profile
	 * @param {Tree} tree
	 */
	set(profile, tree) {
		this.profile = profile;
		this.tree = tree;
		this.shares = null;
		this.opened = new Uint8Array(tree.n);
		this.opened[0] = 1;
		this.openHot(0, TREE_OPEN_MOST);
		this.flatten();
		this.grid.setRows(this.rows.length);
	}

	/** @param {number} node */
	hasChildren(node) {
		return !!this.tree && this.tree.first[node] >= 0;
	}

	/** Opens the heaviest child, and its, while it holds most of its parent. @param {number} from @param {number} most */
	openHot(from, most) {
		const {tree} = this;
		if (!tree) return;
		let node = from;
		for (let i = 0; i < most && this.hasChildren(node); i++) {
			this.opened[node] = 1;
			const child = this.heaviest(node);
			if (tree.total[child] < tree.total[node] * TREE_OPEN_SHARE) break;
			node = child;
		}
	}

	/** @param {number} node */
	heaviest(node) {
		const tree = /** @type {Tree} */ (this.tree);
		let best = tree.first[node];
		for (let c = best; c >= 0; c = tree.next[c]) if (tree.total[c] > tree.total[best]) best = c;
		return best;
	}

	flatten() {
		const {tree} = this;
		this.rows = [];
		this.indents.clear();
		if (!tree || !tree.n) return;
		let node = tree.first[0],
			indent = 0;
		/** @type {number[]} */
		const indents = [];
		while (node >= 0) {
			this.rows.push(node);
			if (indent) this.indents.set(node, indent);
			if (this.opened[node] && tree.first[node] >= 0) {
				indents.push(indent);
				if (tree.next[tree.first[node]] >= 0) indent++;
				node = tree.first[node];
				continue;
			}
			while (node > 0 && tree.next[node] < 0) {
				node = tree.parent[node];
				indent = indents.pop() ?? 0;
			}
			node = node > 0 ? tree.next[node] : -1;
		}
	}

	/** @param {number} i @param {boolean} to @param {boolean} deep */
	expand(i, to, deep) {
		const node = this.rows[i];
		if (to && deep) this.openHot(node, TREE_DEEP_MOST);
		this.opened[node] = to ? 1 : 0;
		// A chain without branches opens as one: each click would show one more row of nothing new.
		for (
			let c = node;
			to &&
			!deep &&
			this.tree &&
			this.hasChildren(c) &&
			this.tree.next[this.tree.first[c]] < 0;
			c = this.tree.first[c]
		)
			this.opened[c] = this.opened[this.tree.first[c]] = 1;
		this.flatten();
		this.grid.setRows(this.rows.length, true);
		this.grid.select(i, true);
	}

	closeAll() {
		this.opened.fill(0);
		this.opened[0] = 1;
		this.flatten();
		this.grid.setRows(this.rows.length);
	}

	/** @param {number} i */
	functionOf(i) {
		const {tree, profile} = this;
		if (!tree || !profile || i < 0 || i >= this.rows.length) return -1;
		const name = profile.name(tree.key[this.rows[i]]);
		return name.kind === 'function' ? name.index : -1;
	}

	/** @param {number} i */
	copyPath(i) {
		const {tree, profile} = this,
			names = [];
		for (let node = this.rows[i]; tree && profile && node > 0; node = tree.parent[node])
			names.push(profile.name(tree.key[node]).full);
		if (!this.how.inverted) names.reverse();
		this.page.copy(names.join('\n') + '\n', 'the path');
	}

	/** The next row with a matching name, opening what hides it. @param {1 | -1} step @returns {boolean} */
	findNext(step) {
		const {tree, profile} = this,
			{search} = this.page.state;
		if (!tree || !profile || !search) return false;
		const matches = searchNames(profile, search),
			order = treeOrder(tree);
		const place = new Int32Array(tree.n);
		order.forEach((node, i) => {
			place[node] = i;
		});
		let at = place[this.rows[this.grid.selected] ?? 0];
		for (let i = 0; i < order.length; i++) {
			at = (at + step + order.length) % order.length;
			const node = order[at];
			if (node > 0 && matches[tree.key[node]]) {
				this.reveal(node);
				return true;
			}
		}
		return false;
	}

	/** @param {number} node */
	reveal(node) {
		const {tree} = this;
		if (!tree) return;
		for (let p = tree.parent[node]; p >= 0; p = tree.parent[p]) this.opened[p] = 1;
		this.flatten();
		this.grid.setRows(this.rows.length, true);
		this.grid.select(this.rows.indexOf(node));
	}

	text() {
		return this.tree && this.profile
			? treeText(this.profile, this.tree, {minShare: 0.005})
			: '';
	}
}

/** All nodes, parents before children, children in their order. @param {Tree} tree */
export function treeOrder(tree) {
	const order = new Int32Array(tree.n);
	let n = 0,
		node = 0;
	while (node >= 0 && n < tree.n) {
		order[n++] = node;
		if (tree.first[node] >= 0) {
			node = tree.first[node];
			continue;
		}
		while (node > 0 && tree.next[node] < 0) node = tree.parent[node];
		node = node > 0 ? tree.next[node] : -1;
	}
	return order.subarray(0, n);
}

export class TreeView {
	/** @param {Page} page */
	constructor(page) {
		this.page = page;
		this.key0 = '';
		/** @type {Profile | null} */
		this.profile = null;
		const more = (/** @type {string} */ name) => (/** @type {string} */ value) =>
			page.go({more: {[`tree.${name}`]: value}});
		this.direction = segments(
			'Direction',
			[
				{value: '', label: 'Top-down'},
				{value: '1', label: 'Inverted'},
			],
			more('inverted'),
		);
		this.group = segments(
			'Roots',
			[
				{value: '', label: 'Together'},
				{value: 'thread', label: 'By thread'},
				{value: 'process', label: 'By process'},
			],
			more('group'),
		);
		this.how = {label: 'Call tree', inverted: false};
		this.tree = new TreeGrid(page, this.how);
		this.note = el('span', {class: 'note'});
		this.element = el(
			'div',
			{class: 'view'},
			el(
				'div',
				{class: 'bar'},
				this.direction.element,
				this.group.element,
				el('button', {onclick: () => this.tree.closeAll()}, 'Close all'),
				el('span', {class: 'fill'}),
				this.note,
			),
			this.tree.element,
		);
	}

	show() {
		const {more} = this.page.state,
			profile = this.page.profile();
		const inverted = more['tree.inverted'] === '1',
			group = more['tree.group'] ?? '';
		const key = `${inverted} ${group}`;
		this.direction.set(inverted ? '1' : '');
		this.group.set(group);
		if (this.profile !== profile || this.key0 !== key) {
			this.profile = profile;
			this.key0 = key;
			this.how.inverted = inverted;
			this.tree.set(
				profile,
				callTree(profile, {
					inverted,
					group: group === 'thread' || group === 'process' ? group : '',
				}),
			);
			fill(
				this.note,
				inverted
					? 'What runs, below it who called it'
					: 'What was called, below it what that called',
			);
		} else this.tree.grid.draw();
	}

	/** @param {KeyboardEvent} event @returns {boolean} */
	key(event) {
		if (event.key === 'n' || event.key === 'N') {
			if (!this.tree.findNext(event.key === 'n' ? 1 : -1))
				this.page.say(
					this.page.state.search
						? 'No row has such a name'
						: 'Nothing is searched: press / first',
				);
			return true;
		}
		if (
			document.activeElement === document.body &&
			/^(Arrow|Home|End|Page|Enter|\*)/.test(event.key)
		) {
			this.tree.element.focus();
			return this.tree.grid.key(event);
		}
		return false;
	}

	text() {
		return this.tree.text();
	}

	/** @type {[string, string][]} */
	keys = [
		['↑ ↓ ← →', 'move, open, close'],
		['*', 'open the heaviest path'],
		['n N', 'next and previous match'],
		['Enter', 'callers and callees'],
		['m', 'menu of the row'],
	];
}
