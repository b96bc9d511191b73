// SPDX-License-Identifier: MIT OR Apache-2.0
// The flame graph as a view of the page: trees of the query, colours, details, menu, keys.
//
// In the state: flame.up, flame.inverted, flame.group, flame.order, flame.color, flame.side ("1"
// or a word; "" is the default), flame.zoom ("node.key": a node of the tree that state and data
// give, checked by its key) and flame.at ("from-to": fractions of the whole, when panned).
import { el, fill } from './page.js';
import { BOX_INK, BOX_PAPER, COLOR_MODES, REST_COLOR, diffStep, functionColors, intervalStep,
	mixColors, pixelOfHex, themeName } from './color.js';
import { Flame, markNodes } from './flame.js';
import { FlameCanvas } from './flamecanvas.js';
import { flameSvg } from './flamesvg.js';
import { shortPath } from './codeview.js';
import { branchDepth, callTree, nodePath, nodeSelfShare, nodeShare, searchNames } from './tree.js';
import { keyShare } from './table.js';
import { diffTree, makeDiff } from './diff.js';
import { count, percent, points, shareText, signed, weight } from './format.js';
import { isMemory } from './memory.js';
import { alignedText, treeText } from './text.js';

/** @typedef {import('./page.js').Page} Page */
/** @typedef {import('./page.js').View} View */
/** @typedef {import('./types.js').Tree} Tree */
/** @typedef {import('./diff.js').Change} Change */
/** @typedef {import('./color.js').ColorMode} ColorMode */

/**
 * What is drawn, and what it was made from.
 * @typedef {object} FlameScene
 * @property {string} made     of these settings
 * @property {import('./query.js').Profile} profile
 * @property {import('./diff.js').Diff | null} diff
 * @property {Tree} tree
 * @property {Float64Array | null} a   shares of the base per node
 * @property {Float64Array | null} b
 * @property {Int8Array | null} verdict
 * @property {Flame} flame
 * @property {Map<number, string>} names
 * @property {Map<number, number>} now   key of the diff -> key of profile
 */

const FLAME_KEYS = /** @type {[string, string][]} */ ([
	['← → ↑ ↓', 'go to the neighbour, the caller, the heaviest callee'],
	['Enter', 'zoom to the frame'], ['Esc', 'zoom out to its caller'], ['Home', 'show everything'],
	['+ −', 'zoom in and out (Ctrl and wheel, pinch)'], ['Shift ← →', 'pan (drag, Shift and wheel)'],
	['n N', 'next and previous frame found'], ['Menu', 'what can be done with the frame'],
]);

/** What is drawn in time order, and what is not. @param {import('./types.js').Tree} tree */
function timeHint(tree) {
	const text = 'left to right: CPU time as it passed, per thread';
	if (tree.cut)
		return `${text}; the outermost ${tree.cut} frames (all in a shorter time range)`;
	return (tree.slot ?? 1) > 1 ? `${text}, in steps of ${tree.slot} samples` : text;
}

/** @param {Page} page @returns {View} */
export function makeFlameView(page) {
	const view = new FlameView(page);
	return {
		element: view.element, show: () => view.show(), hide: () => view.hide(),
		key: ev => view.canvas.key(ev), text: () => view.text(), svg: () => view.svg(), keys: FLAME_KEYS,
	};
}

class FlameView {
	/** @param {Page} page */
	constructor(page) {
		this.page = page;
		this.canvas = new FlameCanvas({
			name: node => this.nameOf(node),
			zoom: node => this.zoomTo(node),
			moved: (from, to) => this.moved(from, to),
			menu: (node, at) => this.menu(node, at),
			hover: (box, at) => this.hover(box, at),
			select: (node, at) => this.selected(node, at),
		});
		this.trail = el('div', {class: 'flame-trail'});
		this.found = el('span', {class: 'flame-found', role: 'status'});
		this.legend = el('div', {class: 'flame-legend', 'aria-label': 'colours'});
		this.tip = el('div', {class: 'flame-tip', hidden: true, 'aria-hidden': 'true'});
		this.empty = el('p', {class: 'flame-empty soft', hidden: true}, 'No sample passes the filters.');
		this.controls = el('div', {class: 'flame-controls', role: 'toolbar', 'aria-label': 'Flame graph'});
		// What the keys are on; the page's own status line would cover the picture.
		this.live = el('div', {class: 'hide-visually', 'aria-live': 'polite', role: 'status'});
		this.element = el('div', {class: 'flame-view'}, el('div', {class: 'flame-info'}, this.trail, this.found, this.controls),
			this.empty, this.canvas.element, this.legend, this.tip, this.live);
		/** @type {FlameScene | null} */
		this.scene = null;
		this.began = false;
		/** Rows scrolled over at first. */
		this.passed = 0;
		this.looked = '';
		this.searched = '';
		this.tipFor = '';
		this.tipTimer = 0;
		/** @type {import('./query.js').Profile | null} */
		this.basis = null;
		this.controlled = '';
	}

	/** @param {string} name @returns {string} */
	get(name) {
		return this.page.state.more[`flame.${name}`] || '';
	}

	/**
	 * @param {{[name: string]: string}} change
	 * @param {'push' | 'replace'} [how]
	 */
	set(change, how = 'push') {
		const more = Object.fromEntries(Object.entries(change).map(([k, v]) => [`flame.${k}`, v]));
		this.page.go({more}, how);
	}

	/** @returns {ColorMode} */
	get mode() {
		const asked = this.get('color');
		if (this.page.base && (!asked || asked === 'diff'))
			return 'diff';
		const rust = this.page.model.functions.crate.some(c => this.page.model.strings[c] !== '');
		const known = COLOR_MODES.find(m => m.mode === asked);
		return known ? known.mode : rust ? 'crate' : 'module';
	}

	show() {
		const scene = this.makeScene();
		this.showControls();
		const empty = !(scene.flame.whole > 0);
		this.empty.hidden = !empty;
		this.canvas.element.hidden = empty;
		if (empty) {
			fill(this.trail);
			fill(this.found);
			return;
		}
		this.applyLook(scene);
		this.applySearch(scene);
		this.canvas.setUpwards(this.get('up') === '1');
		this.applyZoom(scene);
		this.beginAtBranch(scene);
		this.showTrail(scene);
		this.canvas.element.setAttribute('aria-label', `${this.get('inverted') ? 'functions with their callers below' :
			'calls'}, ${count(scene.tree.n - 1)} boxes; arrow keys move`);
	}

	hide() {
		this.hideTip();
	}

	/** @returns {FlameScene} */
	makeScene() {
		const {page} = this, profile = page.profile(), base = page.baseProfile();
		const inverted = this.get('inverted') === '1', side = this.get('side');
		const group = /** @type {'' | 'thread' | 'process'} */(base ? '' : this.get('group'));
		const order = !base && !isMemory(this.page.model) && this.get('order') === 'time' ? 'time' : 'weight';
		const made = [inverted, group, order, base ? side : ''].join();
		const old = this.scene;
		if (old && old.made === made && old.profile === profile && (!base || this.basis === base))
			return old;
		/** @type {FlameScene} */
		let scene;
		if (base) {
			const diff = makeDiff(base, profile), {tree, a, b, verdict} = diffTree(diff, {inverted});
			const flame = new Flame(tree, side === 'base' ? a : side === 'both' ? undefined : b);
			scene = {made, profile, diff, tree, a, b, verdict, flame, names: new Map(),
				now: new Map(diff.rows.filter(r => r.keyB >= 0).map(r => [r.key, r.keyB]))};
		} else {
			const tree = callTree(profile, {inverted, group, order});
			scene = {made, profile, diff: null, tree, a: null, b: null, verdict: null,
				flame: new Flame(tree), names: new Map(), now: new Map()};
		}
		this.basis = base;
		this.carryZoom(old, scene);
		this.scene = scene;
		this.looked = this.searched = '';
		return scene;
	}

	/**
	 * The zoomed frame is looked for in the new tree, by the names on its path.
	 * @param {FlameScene | null} old
	 * @param {FlameScene} scene
	 */
	carryZoom(old, scene) {
		this.carried = -1;
		if (!old || !this.canvas.zoomNode || this.canvas.flame !== old.flame)
			return;
		let node = 0;
		for (const key of nodePath(old.tree, this.canvas.zoomNode)) {
			const name = this.keyName(old, key);
			let c = scene.tree.first[node];
			while (c >= 0 && this.keyName(scene, scene.tree.key[c]) !== name)
				c = scene.tree.next[c];
			// Frames that were merged or folded away are passed over.
			if (c >= 0)
				node = c;
		}
		this.carried = node;
	}

	/** @param {FlameScene} scene @param {number} key @returns {string} */
	keyName(scene, key) {
		let name = scene.names.get(key);
		if (name === undefined) {
			name = this.about(scene, key).brief;
			scene.names.set(key, name);
		}
		return name;
	}

	/**
	 * @param {FlameScene} scene
	 * @param {number} key
	 * @returns {import('./names.js').Name} index: of this session, -1 when only the base has it
	 */
	about(scene, key) {
		if (!scene.diff)
			return scene.profile.name(key);
		const now = scene.now.get(key);
		return now === undefined ? {...scene.diff.name(key), index: -1} : scene.profile.name(now);
	}

	/**
	 * Keys of the tree that a text means.
	 * @param {FlameScene} scene
	 * @param {string} text
	 * @returns {Uint8Array}
	 */
	matching(scene, text) {
		if (!scene.diff)
			return searchNames(scene.profile, text);
		const {diff} = scene, found = new Set();
		for (const profile of [diff.a, diff.b])
			searchNames(profile, text).forEach((on, key) => on && found.add(diff.keyOf(profile, key)));
		return Uint8Array.from({length: Math.max(0, ...found) + 1}, (_, key) => found.has(key) ? 1 : 0);
	}

	/** @param {number} node @returns {string} */
	nameOf(node) {
		const scene = /** @type {FlameScene} */(this.scene);
		return node === 0 ? this.get('inverted') ? 'all, by function' : 'all' : this.keyName(scene, scene.tree.key[node]);
	}

	/** @param {FlameScene} scene */
	applyLook(scene) {
		const dark = this.page.dark(), mode = this.mode, theme = themeName(dark);
		const looked = `${mode} ${theme}`;
		if (looked === this.looked && this.canvas.flame === scene.flame)
			return;
		this.looked = looked;
		const {index, colors, legend} = functionColors(scene.profile.model, mode, dark);
		const paper = BOX_PAPER[theme];
		this.colors = colors;
		const rest = colors.length;
		const all = [...colors, REST_COLOR[theme], paper];
		this.nodeColors = this.colorNodes(scene, mode, index, rest);
		this.canvas.set(scene.flame, {
			ink: BOX_INK[theme], paper, accent: dark ? '#ffffff' : '#0b3fd1', index: this.nodeColors,
			pixels: Uint32Array.from(all, pixelOfHex),
			faded: Uint32Array.from(all, c => pixelOfHex(mixColors(c, paper, dark ? 0.62 : 0.68))),
			hatchA: pixelOfHex(mixColors(REST_COLOR[theme], paper, 0.15)),
			hatchB: pixelOfHex(mixColors(REST_COLOR[theme], paper, 0.7)),
		});
		this.palette = all;
		fill(this.legend, ...legend.map(row => el('span', {class: 'flame-key', title: row.title || null},
			el('i', {style: {'background-color': row.color}}), row.label ? el('span', {title: row.label}, row.label) : null)),
		el('span', {class: 'flame-key'}, el('i', {class: 'hatched'}), 'small frames, together'));
	}

	/**
	 * @param {FlameScene} scene
	 * @param {ColorMode} mode
	 * @param {Uint8Array} index  per function
	 * @param {number} rest
	 * @returns {Uint8Array} per node
	 */
	colorNodes(scene, mode, index, rest) {
		const {tree, a, b, verdict} = scene, colors = new Uint8Array(tree.n);
		colors[0] = rest;
		/** @type {Map<number, number>} */
		const byKey = new Map();
		for (let i = 1; i < tree.n; i++) {
			if (mode === 'interval') {
				colors[i] = intervalStep(tree.samples[i]);
			} else if (mode === 'diff' && a && b && verdict) {
				colors[i] = diffStep(b[i] - a[i], verdict[i] !== 0);
			} else {
				const key = tree.key[i];
				let color = byKey.get(key);
				if (color === undefined) {
					const name = this.about(scene, key);
					color = name.kind === 'function' && name.index >= 0 ? index[name.index] : rest;
					byKey.set(key, color);
				}
				colors[i] = color;
			}
		}
		return colors;
	}

	/** @param {FlameScene} scene */
	applySearch(scene) {
		const {search} = this.page.state;
		if (search === this.searched)
			return;
		this.searched = search;
		if (!search) {
			this.canvas.marks = null;
			fill(this.found);
			return this.canvas.redraw();
		}
		let matches;
		try {
			matches = this.matching(scene, search);
		} catch (e) {
			this.canvas.marks = null;
			fill(this.found, e instanceof Error ? e.message : String(e));
			return this.canvas.redraw();
		}
		const {marks, boxes} = markNodes(scene.tree, matches);
		this.canvas.marks = marks;
		this.canvas.redraw();
		// The frame says the share beside the search; here what the keys n and N go through.
		const text = !boxes ? 'nothing found' : boxes === 1 ? '1 box found' : `${count(boxes)} boxes found`;
		fill(this.found, text);
	}

	/** @param {FlameScene} scene */
	applyZoom(scene) {
		const {flame, tree} = scene, [node, key] = this.get('zoom').split('.').map(Number);
		let zoom = node > 0 && node < tree.n && tree.key[node] === key && flame.size[node] > 0 ? node : 0;
		if (this.carried !== undefined && this.carried >= 0) {
			zoom = this.carried;
			this.carried = -1;
			const text = zoom ? `${zoom}.${tree.key[zoom]}` : '';
			if (text !== this.get('zoom') || this.get('at'))
				queueMicrotask(() => this.set({zoom: text, at: ''}, 'replace'));
			return this.canvas.showNode(zoom, false);
		}
		const at = /^([\d.e-]+)_([\d.e-]+)$/.exec(this.get('at'));
		const from = at ? Number(at[1]) : NaN, to = at ? Number(at[2]) : NaN;
		if (from >= 0 && to > from && to <= 1)
			this.canvas.showNode(zoom, false, from * flame.whole, to * flame.whole);
		else
			this.canvas.showNode(zoom, this.drawn === flame);
		this.drawn = flame;
	}

	/**
	 * A runtime's frames stand below everything: the picture begins where the stacks part, when that
	 * is out of the upper half.
	 * @param {FlameScene} scene
	 */
	beginAtBranch(scene) {
		if (this.began)
			return;
		this.began = true;
		const depth = branchDepth(scene.tree);
		this.passed = 0;
		if (this.canvas.zoomNode || this.get('inverted') || scene.tree.timeOrdered || !this.canvas.passOver(depth))
			return;
		this.passed = depth;
	}

	/** @param {number} node */
	zoomTo(node) {
		const scene = /** @type {FlameScene} */(this.scene);
		this.hideTip();
		this.set({zoom: node > 0 ? `${node}.${scene.tree.key[node]}` : '', at: ''});
		fill(this.live, node > 0 ? `zoomed to ${this.nameOf(node)}` : 'everything is shown');
	}

	/**
	 * @param {number} from
	 * @param {number} to
	 */
	moved(from, to) {
		const {flame, tree} = /** @type {FlameScene} */(this.scene), node = this.canvas.zoomNode;
		const whole = from <= 0 && to >= flame.whole;
		this.set({
			zoom: node > 0 ? `${node}.${tree.key[node]}` : '',
			at: whole ? '' : `${(from / flame.whole).toPrecision(10)}_${(to / flame.whole).toPrecision(10)}`,
		}, 'replace');
	}

	/** @param {FlameScene} scene */
	showTrail(scene) {
		const node = this.canvas.zoomNode, {tree} = scene;
		if (!node) {
			const side = scene.diff ? `widths: ${{base: 'the base', both: 'the mean of both'}[this.get('side')] || 'now'}` : '';
			fill(this.trail, el('span', {class: 'faint'}, side || (tree.timeOrdered ?
				timeHint(tree) : this.passed ? `begins where stacks part; scroll back for the ${this.passed} frames that nearly all share` :
					isMemory(this.page.model) ? 'width: share of the measure; click zooms' :
					'width: share of all samples; click zooms')));
			return;
		}
		const parent = tree.parent[node], name = this.nameOf(node);
		const link = (/** @type {number} */ at) => el('button', {class: 'link', title: this.nameOf(at), onclick: () => this.zoomTo(at)}, this.nameOf(at));
		fill(this.trail, link(0), parent > 0 ? el('span', {class: 'faint'}, tree.parent[parent] > 0 ? ' › … › ' : ' › ') : null,
			parent > 0 ? link(parent) : null, el('span', {class: 'faint'}, ' › '), el('b', {title: name}, name),
			el('span', {class: 'soft number'}, scene.diff ? '' : `  ${percent(tree.total[node] / tree.weight)}`));
	}

	/** What is known of a node, in lines. @param {number} node @param {boolean} precise */
	facts(node, precise) {
		const scene = /** @type {FlameScene} */(this.scene), {tree, profile, diff} = scene;
		const name = this.about(scene, tree.key[node]), unit = profile.model.meta.unit;
		/** @type {[string, string][]} */
		const rows = [];
		if (diff?.counted && scene.a && scene.b) {
			rows.push(...this.amountFacts(diff, {a: scene.a[node], b: scene.b[node], key: tree.key[node]}));
		} else if (diff && scene.a && scene.b && scene.verdict) {
			const a = scene.a[node], b = scene.b[node];
			rows.push(['base', percent(a)], ['now', percent(b)], ['change', `${points(b - a)} points, ${
				['resolved: less', 'not resolved', 'resolved: more'][scene.verdict[node] + 1]}`]);
			const row = diff.rows.find(r => r.key === tree.key[node]);
			const change = (/** @type {Change} */ c) => `${points(c.delta)} [${points(c.low)}, ${points(c.high)}]`;
			if (row)
				rows.push(['in all', `self ${change(row.self)}, total ${change(row.total)}`]);
		} else {
			const inverted = this.get('inverted') === '1';
			const total = precise ? shareText(nodeShare(profile, tree, node)) : percent(tree.total[node] / tree.weight);
			rows.push(['total', `${total} · ${weight(tree.total[node], unit)}`]);
			const self = precise && tree.self[node] > 0 && !inverted ? shareText(nodeSelfShare(profile, tree, node)) :
				percent(tree.self[node] / tree.weight);
			rows.push(['self', `${self} · ${weight(tree.self[node], unit)}`]);
			if (unit === 'ns' || unit === 'cycles')
				rows.push(['samples', count(tree.samples[node])]);
			const all = precise && name.kind === 'function' ? keyShare(profile, tree.key[node]) : null;
			if (all && (all.total.samples !== tree.samples[node] || all.self.value * tree.weight > tree.self[node])) {
				rows.push(['in all', `self ${shareText(all.self)}, total ${shareText(all.total)}`]);
			}
		}
		if (name.crate)
			rows.push(['crate', name.crate]);
		if (name.module)
			rows.push(['module', name.module]);
		if (name.file) {
			const file = shortPath(name.file);
			rows.push(['file', name.line ? `${file}:${name.line}` : file]);
		}
		return {title: node ? name.full || name.brief : this.nameOf(0), rows};
	}

	/**
	 * Of memory: amounts of both sides.
	 * @param {import('./diff.js').Diff} diff
	 * @param {{a: number, b: number, key: number}} node
	 * @returns {[string, string][]}
	 */
	amountFacts(diff, {a, b, key}) {
		const {unit} = diff.b.model.meta, row = diff.rows.find(r => r.key === key);
		const text = (/** @type {number} */ share) => weight(diff.amount(share), unit);
		const change = (/** @type {number} */ from, /** @type {number} */ to) => signed(diff.amount(to) - diff.amount(from), unit);
		/** @type {[string, string][]} */
		const rows = [['before', text(a)], ['after', text(b)], ['change', change(a, b)]];
		if (row)
			rows.push(['in all', `self ${change(row.a.self.value, row.b.self.value)}, total ${change(row.a.total.value, row.b.total.value)}`]);
		return rows;
	}

	/**
	 * @param {{node: number, count: number, depth: number} | null} box
	 * @param {{x: number, y: number}} at
	 */
	hover(box, at) {
		if (!box)
			return this.hideTip();
		const wanted = `${box.node} ${box.count} ${box.depth}`;
		if (wanted !== this.tipFor) {
			this.tipFor = wanted;
			clearTimeout(this.tipTimer);
			if (box.count > 1) {
				this.tipOfSmall(box);
			} else {
				this.showTip(box.node, false);
				// The interval needs a pass over the samples: once the pointer rests.
				this.tipTimer = window.setTimeout(() => this.showTip(box.node, true), 120);
			}
		}
		this.placeTip(at.x + 14, at.y + 18);
		this.tipAt = at;
	}

	/** @param {{node: number, count: number, depth: number}} box */
	tipOfSmall(box) {
		const {flame, tree} = /** @type {FlameScene} */(this.scene);
		const sum = flame.sumOf(box.depth, box.node, box.count);
		fill(this.tip, el('b', {}, `${count(box.count)} small frames`), el('p', {class: 'soft'},
			`together ${percent(sum.total / (flame.size === tree.total ? tree.weight : flame.whole))}, ` +
			`${isMemory(this.page.model) ? '' : `${count(sum.samples)} samples; `}click looks closer`));
		this.tip.hidden = false;
	}

	/** @param {number} node @param {boolean} precise */
	showTip(node, precise) {
		const {title, rows} = this.facts(node, precise);
		fill(this.tip, el('b', {}, title), el('dl', {}, ...rows.flatMap(([what, text]) =>
			[el('dt', {}, what), el('dd', {}, text)])));
		this.tip.hidden = false;
		if (precise && this.tipAt)
			this.placeTip(this.tipAt.x + 14, this.tipAt.y + 18);
	}

	/**
	 * Right of and below a point, or where there is room.
	 * @param {number} x
	 * @param {number} y
	 */
	placeTip(x, y) {
		const {offsetWidth: w, offsetHeight: h} = this.tip;
		const left = Math.max(4, Math.min(x, innerWidth - w - 8));
		const top = y + h + 8 > innerHeight ? Math.max(4, y - h - 36) : y;
		this.tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
	}

	hideTip() {
		clearTimeout(this.tipTimer);
		this.tipFor = '';
		this.tip.hidden = true;
	}

	/**
	 * @param {number} node
	 * @param {{x: number, y: number}} at
	 */
	selected(node, at) {
		const scene = /** @type {FlameScene} */(this.scene), {tree} = scene;
		clearTimeout(this.tipTimer);
		this.tipFor = '';
		this.tipAt = {x: at.x - 14, y: at.y - 14};
		this.showTip(node, false);
		this.placeTip(at.x, at.y + 4);
		let callees = 0;
		for (let c = tree.first[node]; c >= 0; c = tree.next[c])
			callees++;
		const say = (/** @type {boolean} */ precise) => fill(this.live, [this.nameOf(node),
			...this.facts(node, precise).rows.slice(0, 2).map(([what, text]) => `${what} ${text}`),
			`depth ${tree.depth[node]}`, callees === 1 ? '1 box below' : `${count(callees)} boxes below`].join(', '));
		this.tipTimer = window.setTimeout(() => {
			this.showTip(node, true);
			say(true);
		}, 150);
	}

	/**
	 * @param {number} node
	 * @param {{x: number, y: number}} at
	 */
	menu(node, at) {
		const scene = /** @type {FlameScene} */(this.scene), name = this.about(scene, scene.tree.key[node]);
		this.hideTip();
		const path = () => nodePath(scene.tree, node).map(key => this.keyName(scene, key)).join('\n');
		/** @type {import('./page.js').MenuItem[]} */
		const items = [
			{label: 'Zoom to this frame', key: 'Enter', run: () => this.zoomTo(node)},
			{label: 'Show everything', key: 'Home', run: () => this.zoomTo(0)},
			{label: 'Copy the stack', run: () => this.page.copy(path(), 'the stack')},
		];
		if (node && name.kind === 'function' && name.index >= 0)
			items.push(null, ...this.page.functionMenu(name.index));
		this.page.menu(at, items);
	}

	showControls() {
		const {page} = this, made = [this.get('inverted'), this.get('up'), this.get('group'), this.get('order'), this.mode,
			this.get('side'), page.base ? 1 : 0].join();
		if (made === this.controlled)
			return;
		this.controlled = made;
		const inverted = this.get('inverted') === '1', up = this.get('up') === '1';
		const segment = (/** @type {string} */ label, /** @type {boolean} */ on, /** @type {string} */ title, /** @type {() => void} */ run) =>
			el('button', {'aria-pressed': String(on), title, onclick: run}, label);
		fill(this.controls, el('span', {class: 'segments', role: 'group', 'aria-label': 'what is below what'},
			segment('Top-down', !inverted, 'callees under their callers', () => this.set({inverted: '', zoom: '', at: ''})),
			segment('Inverted', inverted, 'functions first, their callers under them', () => this.set({inverted: '1', zoom: '', at: ''}))),
		page.base ? this.choice('side', 'widths of', this.get('side'), [['', 'now'], ['base', 'the base'], ['both', 'both, mean']]) :
			el('span', {class: 'flame-pair'}, this.choice('group', 'grouped', this.get('group'),
				[['', 'all together'], ['thread', 'per thread'], ['process', 'per process']], this.get('order') === 'time'),
			// Sums over the run have no order in time.
			isMemory(page.model) ? null :
				this.choice('order', 'order', this.get('order'), [['', 'heaviest first'], ['time', 'as time passed']])),
		this.choice('color', 'colour', this.mode, [...page.base ? /** @type {[string, string][]} */([['diff', 'difference']]) : [],
			...COLOR_MODES.map(m => /** @type {[string, string]} */([m.mode, m.label]))]),
		el('button', {'aria-pressed': String(up), title: 'callers at the bottom, like flames', onclick: () =>
			this.set({up: up ? '' : '1'})}, up ? '↑ upwards' : '↓ downwards'));
	}

	/**
	 * @param {string} name
	 * @param {string} label
	 * @param {string} value
	 * @param {[string, string][]} options
	 * @param {boolean} [fixed]   has no say now
	 */
	choice(name, label, value, options, fixed) {
		const change = (/** @type {Event} */ ev) => {
			const next = /** @type {HTMLSelectElement} */(ev.target).value;
			this.set(name === 'color' || name === 'side' ? {[name]: next} : {[name]: next, zoom: '', at: ''});
		};
		return el('label', {class: 'flame-choice'}, el('span', {class: 'soft'}, label), el('select', {onchange: change, 'aria-label': label, disabled: fixed, title: fixed ? 'time is always per thread' : null},
			...options.map(([v, text]) => el('option', {value: v, selected: v === value}, text))));
	}

	text() {
		const scene = this.makeScene(), {tree, a, b, verdict} = scene;
		if (!a || !b || !verdict)
			return treeText(scene.profile, tree, {minShare: 0.001});
		const rows = [], diff = /** @type {import('./diff.js').Diff} */(scene.diff);
		const side = (/** @type {number} */ share) =>
			diff.counted ? weight(diff.amount(share), diff.b.model.meta.unit) : percent(share);
		for (let i = 1; i < tree.n; i++)
			if (Math.max(a[i], b[i]) >= 0.002)
				rows.push([side(a[i]), side(b[i]), ['less', '', 'more'][verdict[i] + 1], '  '.repeat(tree.depth[i] - 1) + this.nameOf(i)]);
		return alignedText([{title: 'base', right: true}, {title: 'now', right: true}, {title: diff.counted ? 'change' : 'resolved'}, {title: 'function'}], rows);
	}

	svg() {
		const scene = this.makeScene(), {meta} = scene.profile.model, dark = this.page.dark();
		const palette = /** @type {string[]} */(this.palette), colors = /** @type {Uint8Array} */(this.nodeColors);
		const {marks, zoomNode} = this.canvas, theme = themeName(dark);
		return flameSvg({
			flame: scene.flame, from: this.canvas.from, to: this.canvas.to, lowest: scene.flame.lowest[zoomNode],
			upwards: this.canvas.upwards, ink: BOX_INK[theme], paper: BOX_PAPER[theme],
			title: `${meta.program}: ${this.get('inverted') ? 'functions and their callers' : 'calls'}${
				zoomNode ? `, under ${this.nameOf(zoomNode)}` : ''}`,
			name: node => this.nameOf(node),
			about: node => [this.about(scene, scene.tree.key[node]).full || this.nameOf(node),
				...this.facts(node, false).rows.slice(0, 3).map(([what, text]) => `${what} ${text}`)].join('\n'),
			color: node => (marks ? marks[node] === 1 : true) ? palette[colors[node]] :
				mixColors(palette[colors[node]], BOX_PAPER[theme], 0.66),
		});
	}
}
