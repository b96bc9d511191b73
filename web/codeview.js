// SPDX-License-Identifier: MIT OR Apache-2.0
// A function's source and assembly with the cost of each line and instruction.
//
// Source rows and instruction rows are two lists that know of each other: what the pointer or the
// keys are on in one is marked in the other. In the state: f, source.line (id of a row),
// source.asm ("0": hidden), source.open (1: all inlined calls unfolded, 0: none, "": the hot ones).
import { el, fill } from './page.js';
import { ARROW_LANES, arrowsBetween, jumpsOf, layOutArrows } from './arrows.js';
import { allGroups, codeRows, codeSections, hotGroups, lineText, sumShares } from './codelines.js';
import { highlightLine, highlightLines, langOfPath } from './highlight.js';
import { LINE_HEIGHT, LineList } from './linelist.js';
import { addressCosts, codeWeights, keyShare, lineCosts, table } from './table.js';
import { count, shareParts, shareText } from './format.js';
import { isMemory } from './memory.js';
import { alignedText } from './text.js';

/** @typedef {import('./page.js').Page} Page */
/** @typedef {import('./page.js').View} View */
/** @typedef {import('./types.js').Listing} Listing */
/** @typedef {import('./types.js').SourceFile} SourceFile */
/** @typedef {import('./types.js').Share} Share */
/** @typedef {import('./types.js').Row} Row */
/** @typedef {import('./codelines.js').CodeRow} CodeRow */
/** @typedef {import('./codelines.js').LineCost} LineCost */

/**
 * A listing and what the profile says of it.
 * @typedef {object} CodeScene
 * @property {import('./query.js').Profile} profile
 * @property {Listing} listing
 * @property {SourceFile[]} sources
 * @property {import('./codelines.js').CodeSection[]} sections
 * @property {Int32Array} lineOf
 * @property {(LineCost | null)[]} costs               per instruction
 * @property {Map<number, Map<number, LineCost>>} lines  source -> line
 * @property {import('./arrows.js').Arrow[]} arrows
 * @property {number} lanes
 * @property {number} hottestInsn    self of the hottest, as a scale for bars
 * @property {number} hottestLine
 * @property {'self' | 'total'} what   what heat means here
 * @property {[number, number]} range  first and last line of the function
 */

const CODE_LANE = 7;
const CODE_CHOICES = 60;
/** A function with less of its total in its own code is read by total. */
const CODE_CALLER = 0.15;
const CODE_HOT_SPOTS = 20;
const SVG_NS = 'http://www.w3.org/2000/svg';

const CODE_KEYS = /** @type {[string, string][]} */ ([
	['↑ ↓', 'previous and next line'], ['n p', 'next and previous hot spot'], ['→ ←', 'unfold and fold what was inlined'],
	['a', 'assembly on and off'], ['Tab', 'between source and assembly'],
]);

/** @param {Page} page @returns {View} */
export function makeSourceView(page) {
	const view = new CodeView(page);
	return {
		element: view.element, show: () => view.show(), key: ev => view.key(ev),
		text: () => view.text(), keys: CODE_KEYS,
	};
}

/**
 * "14.6 ±0.7" as `assay annotate` has it, and nothing for what has no sample.
 * @param {Share | undefined | null} s
 */
export function costText(s) {
	if (!s || !s.samples)
		return '';
	return s.value < 0.0005 ? '·' : shareParts(s).filter(Boolean).join(' ');
}

/**
 * How far from its cause a sample may stand; the words of `assay annotate`.
 * @param {import('./types.js').Model} model
 */
export function skidText(model) {
	const event = model.meta.info.event || '';
	if (isMemory(model))
		return 'What is allocated stands at the call that asked for it.';
	if (event === 'cpu-clock')
		return 'Timer samples: the cost stands where the timer’s interrupt met the program, one or a few ' +
			'instructions after the one that took the time; in a virtual machine it may come later still.';
	return event ? 'Counter samples: the cost stands a few instructions after the one that took the time.' :
		'How far samples lie from their cause is not recorded.';
}

/** @param {import('./types.js').Model} model */
function skidShort(model) {
	const event = model.meta.info.event || '';
	if (isMemory(model))
		return 'Counted: at the call that asked for memory';
	return `${event === 'cpu-clock' ? 'Timer samples' : event ? 'Counter samples' : 'Samples'}: a cost may stand one or a few instructions late`;
}

/**
 * Instructions or lines, not only the reasons why there are none.
 * @param {Listing} listing
 * @param {SourceFile[]} sources
 */
export function hasText(listing, sources) {
	return listing.insns.length > 0 || listing.files.some(i => sources[i] && sources[i].lines.length > 0);
}

class CodeView {
	/** @param {Page} page */
	constructor(page) {
		this.page = page;
		this.source = new LineList({
			label: 'source lines', tree: true, row: i => this.sourceRow(i), active: i => this.onLine(i),
			hover: i => this.link(i >= 0 ? this.insnsOfRow(i) : null, i),
		});
		this.asm = new LineList({
			label: 'instructions', row: i => this.asmRow(i), active: i => this.onInsn(i),
			hover: i => this.link(i >= 0 ? [i] : null, -1), drawn: (a, b) => this.drawArrows(a, b),
		});
		this.svg = document.createElementNS(SVG_NS, 'svg');
		this.svg.setAttribute('class', 'code-arrows');
		this.svg.setAttribute('aria-hidden', 'true');
		this.asm.inner.append(this.svg);
		this.head = el('div', {class: 'code-head'});
		this.notes = el('div', {class: 'code-notes'});
		this.sourcePane = el('section', {class: 'code-pane', 'aria-label': 'source'});
		this.asmPane = el('section', {class: 'code-pane', 'aria-label': 'assembly'});
		this.panes = el('div', {class: 'code-panes'}, this.sourcePane, this.asmPane);
		this.controls = el('div', {class: 'code-controls', role: 'toolbar', 'aria-label': 'Source and assembly'});
		this.element = el('div', {class: 'code-view'}, this.head, this.notes, this.panes);
		/** @type {CodeScene | null} */
		this.scene = null;
		/** @type {CodeRow[]} */
		this.rows = [];
		/** @type {Set<string>} */
		this.open = new Set();
		/** @type {Map<number, Listing & {sources: SourceFile[]} | string>} */
		this.fetched = new Map();
		/** @type {Map<SourceFile, import('./highlight.js').Token[][]>} */
		this.tokens = new Map();
		/** @type {Set<number>} */
		this.linked = new Set();
		/** @type {Set<number>} */
		this.linkedRows = new Set();
		this.shown = -2;
		this.opened = this.controlled = '';
		/** @type {HTMLElement | null} */
		this.callers = null;
		/** @type {{profile: import('./query.js').Profile, f: number} | null} */
		this.hottest = null;
	}

	/** @param {string} name @returns {string} */
	get(name) {
		return this.page.state.more[`source.${name}`] || '';
	}

	/**
	 * The function to show: the chosen one, or the one in whose code, inlined calls included, most
	 * time goes of those that there is something to show of.
	 * @returns {number}
	 */
	get function() {
		const {state, model} = this.page;
		return state.f >= 0 ? state.f : this.hottestShown(model);
	}

	/** @param {import('./types.js').Model} model */
	hottestShown(model) {
		const profile = this.page.profile();
		if (this.hottest && this.hottest.profile === profile)
			return this.hottest.f;
		const weights = codeWeights(profile);
		let best = -1;
		for (const l of model.listings)
			if (hasText(l, model.sources) && (best < 0 || weights[l.function] > weights[best]))
				best = l.function;
		if (best < 0)
			best = (model.meta.hottest[0] || {function: -1}).function;
		this.hottest = {profile, f: best};
		return best;
	}

	show() {
		const f = this.function, profile = this.page.profile();
		const listing = this.listingOf(f);
		const old = this.scene;
		this.panes.classList.toggle('no-asm', this.get('asm') === '0');
		if (listing && old && old.listing === listing && old.profile === profile) {
			if (this.opened !== this.get('open'))
				this.unfold();
			return this.showControls();
		}
		this.showHead(f, profile);
		if (!listing) {
			this.scene = null;
			this.shown = -2;
			return this.showMissing(f);
		}
		this.scene = this.makeScene(profile, listing);
		const same = this.shown === f;
		this.shown = f;
		this.showNotes(this.scene);
		this.showPanes(this.scene);
		this.showControls();
		this.unfold();
		if (!same)
			this.goThere();
	}

	/** @param {number} f @returns {Listing & {sources?: SourceFile[]} | null} */
	listingOf(f) {
		const embedded = this.page.model.listings.find(l => l.function === f);
		const got = this.fetched.get(f);
		return embedded || (typeof got === 'object' ? got : null);
	}

	/**
	 * @param {import('./query.js').Profile} profile
	 * @param {Listing & {sources?: SourceFile[]}} listing
	 * @returns {CodeScene}
	 */
	makeScene(profile, listing) {
		const sources = listing.sources || this.page.model.sources;
		const {sections, lineOf} = codeSections(listing);
		if (!listing.insns.length)
			this.addSampledLines(listing, sources, sections);
		const costs = listing.insns.length && listing.module >= 0 ?
			addressCosts(profile, listing.module, listing.insns) : listing.insns.map(() => null);
		/** @type {CodeScene['lines']} */
		const lines = new Map();
		for (const {source} of sections)
			if (sources[source])
				lines.set(source, lineCosts(profile, sources[source].path));
		const arrows = jumpsOf(listing.insns), lanes = layOutArrows(arrows, listing.insns.length, ARROW_LANES);
		/** @type {CodeScene} */
		const scene = {profile, listing, sources, sections, lineOf, costs, lines, arrows, lanes, hottestInsn: 0, hottestLine: 0,
			what: this.isCaller(profile, listing, costs) ? 'total' : 'self', range: this.rangeOf(listing, sections)};
		scene.hottestInsn = costs.reduce((most, c) => Math.max(most, c ? c[scene.what].value : 0), 1e-12);
		return scene;
	}

	/**
	 * Does the function mostly call others?
	 * @param {import('./query.js').Profile} profile
	 * @param {Listing} listing
	 * @param {(LineCost | null)[]} costs
	 */
	isCaller(profile, listing, costs) {
		const own = costs.reduce((sum, c) => sum + (c ? c.self.value : 0), 0);
		return own < CODE_CALLER * keyShare(profile, profile.keyOf(listing.function)).total.value;
	}

	/**
	 * Without code, the lines are those that samples stand on.
	 * @param {Listing} listing
	 * @param {SourceFile[]} sources
	 * @param {import('./codelines.js').CodeSection[]} sections
	 */
	addSampledLines(listing, sources, sections) {
		const {places, strings} = this.page.model;
		for (let i = 0; i < places.n; i++) {
			const path = places.function[i] === listing.function && places.line[i] ? strings[places.file[i]] : '';
			const section = path && sections.find(s => sources[s.source] && sources[s.source].path === path);
			if (section && !section.lines.has(places.line[i]))
				section.lines.set(places.line[i], {line: places.line[i], insns: [], own: [], groups: new Map()});
		}
	}

	/**
	 * @param {Listing} listing
	 * @param {import('./codelines.js').CodeSection[]} sections
	 * @returns {[number, number]}
	 */
	rangeOf(listing, sections) {
		const lines = sections.length ? [...sections[0].lines.keys()] : [], {functions} = this.page.model;
		if (!lines.length)
			return [0, Infinity];
		const first = lines.reduce((a, b) => Math.min(a, b)), last = lines.reduce((a, b) => Math.max(a, b));
		const known = functions.line[listing.function];
		return [known > 0 && known < first && known > first - 200 ? known : first, last];
	}

	// ---- what stands around the code ----

	/**
	 * @param {number} f
	 * @param {import('./query.js').Profile} profile
	 */
	showHead(f, profile) {
		const {model} = this.page;
		const rows = table(profile, 'function').filter(row => {
			const name = profile.name(row.key);
			return name.kind === 'function' && name.index >= 0 && !name.marker;
		});
		const option = (/** @type {Row} */ row, /** @type {'self' | 'total'} */ what) => {
			const {index, brief} = profile.name(row.key);
			listed.add(index);
			return el('option', {value: index, selected: index === f}, `${(row[what].value * 100).toFixed(1).padStart(5, '\u2007')} %  ${brief}`);
		};
		/** @type {Set<number>} */
		const listed = new Set(), bySelf = rows.slice(0, CODE_CHOICES).map(row => option(row, 'self'));
		const byTotal = [...rows].sort((x, y) => y.total.value - x.total.value).slice(0, CODE_CHOICES)
			.filter(row => !listed.has(profile.name(row.key).index)).map(row => option(row, 'total'));
		const file = f >= 0 ? model.strings[model.functions.file[f]] : '';
		const select = el('select', {
			'aria-label': 'function', class: 'code-choice', title: file ? `${file}:${model.functions.line[f]}` : null,
			onchange: (/** @type {Event} */ ev) =>
				this.page.go({f: Number(/** @type {HTMLSelectElement} */(ev.target).value), more: {'source.line': ''}}),
		}, f >= 0 && !listed.has(f) ? el('option', {value: f, selected: true}, model.strings[model.functions.brief[f]]) : null,
		el('optgroup', {label: 'hottest by self'}, ...bySelf), el('optgroup', {label: 'hottest by total'}, ...byTotal));
		if (f < 0)
			return fill(this.head, el('p', {}, 'No function has samples.'));
		const {self, total} = keyShare(profile, profile.keyOf(f));
		fill(this.head, select, el('span', {class: 'code-figures', title: `${count(self.samples)} samples in its own code, ${count(total.samples)} with what it calls`},
			el('span', {class: 'soft'}, 'self '), shareText(self), el('span', {class: 'soft'}, ' · total '), shareText(total)),
		this.controls);
		this.callers = el('button', { onclick: () => this.page.open(f), title: 'callers above, callees below'}, 'Callers, callees');
	}

	showControls() {
		const open = this.get('open'), asm = this.get('asm') !== '0';
		const made = `${open} ${asm} ${this.function}`;
		if (made === this.controlled)
			return;
		this.controlled = made;
		const set = (/** @type {string} */ name, /** @type {string} */ value) =>
			this.page.go({more: {[`source.${name}`]: value}}, 'replace');
		const grouped = (/** @type {string} */ value, /** @type {string} */ text, /** @type {string} */ title) =>
			el('button', {'aria-pressed': String(open === value), title, onclick: () => set('open', value)}, text);
		fill(this.controls,
			el('button', {title: 'p', onclick: () => this.hotSpot(-1)}, '↑ Hotter line'),
			el('button', {title: 'n', onclick: () => this.hotSpot(1)}, '↓ Next hot line'),
			el('span', {class: 'segments', role: 'group', 'aria-label': 'what was inlined'},
				grouped('', 'Hot inlined', 'unfold inlined calls that cost something'), grouped('1', 'All', 'unfold all inlined calls'),
				grouped('0', 'None', 'fold all inlined calls')),
			el('button', {'aria-pressed': String(asm), title: 'a', onclick: () => set('asm', asm ? '0' : '')}, 'Assembly'), this.callers);
	}

	/** @param {CodeScene} scene */
	showNotes(scene) {
		const {listing, sources} = scene, own = sources[listing.files[0]];
		const missing = own && own.why && !own.lines.length;
		fill(this.notes, missing ? el('details', {class: 'code-note'}, el('summary', {},
			`The text of ${shortPath(own.path)} was not found: lines are shown without it`),
		el('p', {class: 'soft'}, own.why)) : null,
		...listing.notes.filter(text => !missing || text !== own.why).map(text => el('p', {class: 'code-note'}, text)),
		el('details', {class: 'code-skid'},
			el('summary', {}, skidShort(this.page.model)), el('p', {}, skidText(this.page.model) +
			' Self is time in the line’s own instructions, total includes what it calls. ± is the 95 % interval, in percent of all samples.')));
	}

	/** @param {CodeScene} scene */
	showPanes(scene) {
		const {listing, sources} = scene, own = sources[listing.files[0]];
		const hasLines = Boolean(own && own.lines.length) || scene.sections.some(s => s.lines.size);
		const hasCode = listing.insns.length > 0;
		this.panes.classList.toggle('no-source', !hasLines);
		this.panes.classList.toggle('no-code', !hasCode);
		const found = own ? own.found || own.path : '';
		fill(this.sourcePane, el('header', {class: 'code-title'}, el('span', {class: 'code-columns', 'aria-hidden': 'true'},
			el('span', {}, 'self %'), el('span', {}, 'total %')), el('span', {class: 'mono', title: found}, found ? shortPath(found) : 'source')), this.source.element);
		const module = this.page.model.modules[listing.module];
		fill(this.asmPane, el('header', {class: 'code-title'}, el('span', {class: 'code-columns', 'aria-hidden': 'true'},
			el('span', {}, `${scene.what} %`)), el('span', {class: 'mono', title: module ? module.path : ''},
			`${count(listing.insns.length)} instructions${module ? ` in ${module.name}` : ''}`)), this.asm.element);
		this.asm.element.style.setProperty('--lanes', `${scene.lanes * CODE_LANE + 14}px`);
		const digits = listing.insns.length ? listing.insns[listing.insns.length - 1].addr.toString(16).length : 1;
		this.asm.element.style.setProperty('--digits', String(digits));
		this.asm.active = -1;
		this.asm.setRows(listing.insns.length, listing.insns.reduce((n, x) => Math.max(n, x.text.length), 0) + digits + 34);
	}

	/** @param {number} f */
	showMissing(f) {
		const {model} = this.page, got = this.fetched.get(f);
		fill(this.notes);
		fill(this.controls, this.callers);
		this.controlled = '';
		fill(this.asmPane);
		this.panes.classList.add('no-code');
		this.panes.classList.remove('no-source');
		if (f < 0)
			return fill(this.sourcePane);
		if (/^https?:$/.test(location.protocol) && got === undefined) {
			this.fetch(f);
			return fill(this.sourcePane, el('p', {class: 'code-empty soft', role: 'status'}, 'Reading source and assembly …'));
		}
		const name = model.strings[model.functions.brief[f]], file = model.meta.file;
		const served = typeof got === 'string';
		const commands = [`assay view --serve ${shellWord(file)}`, `assay annotate ${shellWord(name)} ${shellWord(file)}`];
		fill(this.sourcePane, el('div', {class: 'code-empty'},
			el('p', {}, served ? `The server had no text of this function: ${got}` :
				'The text of this function is not in this file: only that of the hottest is.'),
			served ? null : el('p', {class: 'soft'}, 'To see it:'),
			...(served ? [] : commands).map(c => el('p', {}, el('code', {}, c), ' ',
				el('button', {class: 'quiet', onclick: () => this.page.copy(c, 'the command')}, 'copy')))));
	}

	/** @param {number} f */
	async fetch(f) {
		this.fetched.set(f, 'still reading');
		try {
			const answer = await fetch(`./listing?function=${f}`);
			if (!answer.ok)
				throw new Error((await answer.text()).slice(0, 300) || `${answer.status} ${answer.statusText}`);
			const listing = await answer.json();
			if (!Array.isArray(listing.insns) || !Array.isArray(listing.places) || !Array.isArray(listing.sources))
				throw new Error('an answer that is no listing');
			this.fetched.set(f, listing);
		} catch (e) {
			this.fetched.set(f, e instanceof Error ? e.message : String(e));
		}
		if (this.function === f && this.element.isConnected)
			this.show();
	}

	// ---- source ----

	/** The rows are made again, by what is to be unfolded. */
	unfold() {
		const scene = /** @type {CodeScene} */(this.scene), {sections, costs} = scene;
		this.opened = this.get('open');
		this.open = this.opened === '1' ? allGroups(sections) : this.opened === '0' ? new Set() : hotGroups(sections, costs);
		this.makeRows();
	}

	makeRows() {
		const scene = /** @type {CodeScene} */(this.scene), {sections, sources, costs} = scene;
		const at = this.rows[this.source.active];
		this.rows = codeRows(sections, sources, this.open, costs);
		scene.hottestLine = this.rows.reduce((most, r) => r.depth ? most : Math.max(most, this.heat(r)), 1e-12);
		/** Per instruction the innermost row that shows it. */
		this.rowOfInsn = new Int32Array(scene.listing.insns.length).fill(-1);
		let width = 40;
		this.rows.forEach((row, i) => {
			for (const insn of (row.group || row.at || {insns: []}).insns)
				/** @type {Int32Array} */(this.rowOfInsn)[insn] = i;
			width = Math.max(width, row.depth * 3 + (row.group ? row.group.name.length + 30 :
				(lineText(sources[row.source], row.line) || '').replace(/\t/g, '    ').length));
		});
		this.source.setRows(this.rows.length, width + 8);
		if (at)
			this.source.setActive(this.rows.findIndex(r => r.id === at.id), false);
	}

	/** @param {CodeRow} row @returns {{self: Share, total: Share} | null} */
	costOf(row) {
		const scene = /** @type {CodeScene} */(this.scene);
		if (row.kind === 'file' || row.kind === 'gap' || this.outside(row))
			return null;
		if (row.kind === 'line' && row.depth === 0)
			return scene.lines.get(row.source)?.get(row.line) || null;
		const insns = row.group ? row.group.insns : row.at ? row.at.insns : [];
		return {
			self: sumShares(scene.costs, row.group ? insns : row.at ? row.at.own : [], 'self'),
			total: sumShares(scene.costs, insns, 'total'),
		};
	}

	/** What makes a line hot: time in its instructions, inlined ones too. @param {CodeRow} row */
	heat(row) {
		const scene = /** @type {CodeScene} */(this.scene), {what} = scene;
		const here = row.at ? sumShares(scene.costs, row.at.insns, what).value : 0;
		const cost = row.depth === 0 && row.kind === 'line' && !this.outside(row) ? scene.lines.get(row.source)?.get(row.line) : null;
		return Math.max(here, cost ? cost[what].value : 0);
	}

	/** A line around the function. @param {CodeRow} row */
	outside(row) {
		const {range, listing} = /** @type {CodeScene} */(this.scene);
		return row.depth === 0 && row.kind === 'line' && row.source === listing.files[0] && (row.line < range[0] || row.line > range[1]);
	}

	/** @param {number} i @returns {HTMLElement} */
	sourceRow(i) {
		const scene = /** @type {CodeScene} */(this.scene), row = this.rows[i], cost = this.costOf(row);
		const file = scene.sources[row.source];
		if (row.kind === 'gap')
			return el('div', {class: 'line code-gap'}, el('span', {class: 'code-text'}, row.line === 1 ? '⋯ 1 line' : `⋯ ${count(row.line)} lines`));
		if (row.kind === 'file')
			return el('div', {class: 'line code-file'}, el('span', {class: 'code-text'}, `from ${file ? file.path : 'elsewhere'}`));
		const e = el('div', {class: `line ${row.kind === 'inline' ? 'code-inline' : row.depth ? 'code-inner' : this.outside(row) ? 'code-outside' : ''}`,
			style: {'--depth': row.depth}}, this.costCell(cost?.self, 'self'), this.costCell(cost?.total, 'total'),
		this.bar(row.group ? sumShares(scene.costs, row.group.insns, scene.what).value : this.heat(row), cost ? cost.self.value : 0, scene.hottestLine));
		if (this.linkedRows.has(i))
			e.classList.add('linked');
		e.setAttribute('aria-level', String(row.depth + 1));
		if (row.group) {
			e.setAttribute('aria-expanded', String(row.open));
			const lines = [...row.group.lines.keys()].sort((a, b) => a - b), path = file ? lastParts(file.path, 2) : '';
			e.append(el('span', {class: 'code-number'}), el('span', {class: 'code-text'},
				el('span', {class: 'code-fold', title: row.open ? 'fold' : 'unfold', 'aria-hidden': 'true', onclick: () => this.toggle(i)},
					row.open ? '▾' : '▸'),
				el('span', {class: 'faint'}, 'inlined '), row.group.name,
				el('span', {class: 'faint'}, path ? `  ${path}:${lines[0]}` : '')));
		} else {
			const text = lineText(file, row.line);
			e.append(el('span', {class: 'code-number'}, row.line ? String(row.line) : '?'),
				el('span', {class: 'code-text'}, ...this.colored(file, row.line, text)));
		}
		return e;
	}

	/**
	 * @param {SourceFile | undefined} file
	 * @param {number} line
	 * @param {string | null} text
	 * @returns {(Node | string)[]}
	 */
	colored(file, line, text) {
		if (!file || text === null)
			return [el('span', {class: 'faint'}, file && !file.lines.length ? `${lastParts(file.path, 2)}, no text` : '…')];
		let tokens = this.tokens.get(file);
		if (!tokens)
			this.tokens.set(file, tokens = highlightLines(langOfPath(file.path), file.lines));
		return tokenSpans(text, tokens[line - file.first] || []);
	}

	/**
	 * @param {Share | undefined} s
	 * @param {string} what
	 */
	costCell(s, what) {
		return el('span', {class: 'code-cost', title: s && s.samples ? `${what} ${shareText(s)}, ${count(s.samples)} samples` : null}, costText(s));
	}

	/**
	 * @param {number} value   all of it
	 * @param {number} own     the part that is drawn strong
	 * @param {number} scale
	 */
	bar(value, own, scale) {
		const part = (/** @type {number} */ v) => `${Math.min(100, v / scale * 100).toFixed(1)}%`;
		return el('span', {class: 'code-bar', 'aria-hidden': 'true'}, value > 0 ? el('i', {class: 'weak', style: {width: part(value)}}) : null,
			own > 0 ? el('i', {style: {width: part(own)}}) : null);
	}

	/** @param {number} i */
	toggle(i) {
		const {group, id} = this.rows[i];
		if (!group)
			return;
		if (!this.open.delete(id))
			this.open.add(id);
		this.makeRows();
		this.source.setActive(this.rows.findIndex(r => r.id === id), false);
	}

	// ---- assembly ----

	/** @param {number} i @returns {HTMLElement} */
	asmRow(i) {
		const {listing, costs, lineOf, hottestInsn, sources, what} = /** @type {CodeScene} */(this.scene), insn = listing.insns[i];
		const cost = costs[i], self = cost ? cost[what].value : 0;
		const place = insn.nplaces ? listing.places[insn.place] : null;
		const file = place && sources[place.source];
		const where = !place || !place.line ? '' : place.inlined && place.key !== listing.function && file ? `${file.path.split('/').pop()}:${place.line}` : String(place.line);
		const same = i > 0 && insn.nplaces > 0 && listing.insns[i - 1].place === insn.place;
		const e = el('div', {class: `line${insn.part && i ? ' code-part' : ''}${self >= hottestInsn * 0.5 && self > 0 ? ' hot' : ''}`, title: place ?
			listing.places.slice(insn.place, insn.place + insn.nplaces).map(p => `${p.function}:${p.line}`).join(' ← ') : null},
		this.costCell(cost?.[what], what), this.bar(self, cost ? cost.self.value : 0, hottestInsn), el('span', {class: 'code-lanes'}),
		el('span', {class: 'code-address'}, insn.addr.toString(16)),
		el('span', {class: 'code-text'}, ...tokenSpans(insn.text, highlightLine('asm', '', insn.text).tokens),
			where && !same ? el('span', {class: 'code-place faint'}, `  ${where}`) : null));
		if (this.linked.has(i))
			e.classList.add('linked');
		e.dataset.line = String(lineOf[i]);
		return e;
	}

	/**
	 * @param {number} first
	 * @param {number} last
	 */
	drawArrows(first, last) {
		const scene = this.scene;
		this.svg.replaceChildren();
		if (!scene || last < first)
			return;
		const width = scene.lanes * CODE_LANE + 14, top = first * LINE_HEIGHT, height = (last - first + 1) * LINE_HEIGHT;
		this.svg.setAttribute('width', String(width));
		this.svg.setAttribute('height', String(height));
		this.svg.setAttribute('viewBox', `0 ${top} ${width} ${height}`);
		this.svg.style.top = `${top}px`;
		const hot = this.asm.hovered >= 0 ? this.asm.hovered : this.asm.active;
		for (const a of arrowsBetween(scene.arrows, first, last + 1)) {
			const path = document.createElementNS(SVG_NS, 'path');
			path.setAttribute('d', arrowPath(a, width, first, last));
			path.setAttribute('class', `${a.loop ? 'loop' : ''} ${hot === a.target || a.from.includes(hot) ? 'on' : ''}`);
			this.svg.append(path);
		}
	}

	// ---- links and keys ----

	/** @param {number} i @returns {number[]} */
	insnsOfRow(i) {
		const row = this.rows[i];
		return row ? row.group ? row.group.insns : row.at ? row.at.insns : [] : [];
	}

	/**
	 * Marks what belongs together; null: what the active rows say.
	 * @param {number[] | null} insns
	 * @param {number} row   the one that is meant, -1: those of the instructions
	 */
	link(insns, row) {
		if (!insns) {
			if (this.asm.active >= 0 && document.activeElement === this.asm.element)
				insns = [this.asm.active];
			else
				insns = this.insnsOfRow(row = this.source.active);
		}
		this.linked = new Set(insns);
		this.linkedRows = new Set(row >= 0 ? [row] : insns.map(i => this.rowOfInsn ? this.rowOfInsn[i] : -1));
		this.asm.shown.forEach((e, i) => e.classList.toggle('linked', this.linked.has(i)));
		this.source.shown.forEach((e, i) => e.classList.toggle('linked', this.linkedRows.has(i)));
		this.drawArrows(this.asm.first, this.asm.last);
	}

	/** A source row became the active one. @param {number} i */
	onLine(i) {
		const insns = this.insnsOfRow(i);
		this.link(insns, i);
		if (insns.length) {
			const hottest = this.hottestOf(insns);
			this.asm.setActive(hottest, false);
			this.asm.reveal(hottest);
		}
		this.page.go({more: {'source.line': this.rows[i].id.length < 200 ? this.rows[i].id : ''}}, 'replace');
	}

	/** @param {number} i */
	onInsn(i) {
		this.link([i], -1);
		const row = this.rowOfInsn ? this.rowOfInsn[i] : -1;
		if (row >= 0) {
			this.source.setActive(row, false);
			this.source.reveal(row);
		}
	}

	/** The rows worth a look, hottest first. @returns {number[]} */
	hotSpots() {
		const rated = this.rows.map((row, i) => ({i, heat: row.depth || row.kind !== 'line' ? 0 : this.heat(row)}));
		let hot = rated.filter(r => r.heat > 0);
		if (!hot.length)
			hot = this.rows.map((row, i) => ({i, heat: row.kind === 'line' && !row.depth ? this.costOf(row)?.total.value || 0 : 0})).filter(r => r.heat > 0);
		return hot.sort((a, b) => b.heat - a.heat).slice(0, CODE_HOT_SPOTS).map(r => r.i);
	}

	/** @param {number} step  1: the next cooler one */
	hotSpot(step) {
		if (!this.scene)
			return;
		const source = this.rows.length > 0, spots = source ? this.hotSpots() : this.hotInsns();
		if (!spots.length)
			return this.page.say('no sample in any line');
		const list = source ? this.source : this.asm, at = spots.indexOf(list.active);
		const next = at < 0 ? 0 : Math.min(spots.length - 1, Math.max(0, at + step));
		list.setActive(spots[next], true);
		list.reveal(spots[next]);
		const cost = source ? this.costOf(this.rows[spots[next]]) : this.scene.costs[spots[next]];
		this.page.say(`hot spot ${next + 1} of ${spots.length}${source ? `: line ${this.rows[spots[next]].line}` : ''}${cost ?
			`, self ${shareText(cost.self)}, total ${shareText(cost.total)}` : ''}`);
	}

	/** @param {number[]} insns  at least one */
	hottestOf(insns) {
		const {costs, what} = /** @type {CodeScene} */(this.scene), value = (/** @type {number} */ i) => costs[i]?.[what].value || 0;
		return insns.reduce((best, i) => value(i) > value(best) ? i : best, insns[0]);
	}

	/** @returns {number[]} */
	hotInsns() {
		const {costs, what} = /** @type {CodeScene} */(this.scene);
		return costs.map((c, i) => ({i, v: c ? c[what].value : 0})).filter(c => c.v > 0).sort((a, b) => b.v - a.v)
			.slice(0, CODE_HOT_SPOTS).map(c => c.i);
	}

	/** To the row in the address, or the hottest. */
	goThere() {
		const id = this.get('line'), asked = this.rows.findIndex(r => r.id === id);
		const spots = this.rows.length ? this.hotSpots() : this.hotInsns();
		const list = this.rows.length ? this.source : this.asm, at = asked >= 0 && this.rows.length ? asked : spots[0] ?? 0;
		list.element.scrollTop = Math.max(0, (at + 0.5) * LINE_HEIGHT - list.element.clientHeight / 3);
		list.update();
		list.setActive(at, false);
		if (list === this.source) {
			const insns = this.insnsOfRow(at);
			const hottest = insns.length ? this.hottestOf(insns) : this.hotInsns()[0] ?? -1;
			this.asm.setActive(hottest, false);
			if (hottest >= 0)
				this.asm.element.scrollTop = Math.max(0, (hottest + 0.5) * LINE_HEIGHT - this.asm.element.clientHeight / 3);
			this.asm.update();
			this.link(insns, at);
		}
	}

	/** @param {KeyboardEvent} ev @returns {boolean} */
	key(ev) {
		if (!this.scene || ev.ctrlKey || ev.altKey || ev.metaKey)
			return false;
		if (ev.key === 'n' || ev.key === 'p') {
			this.hotSpot(ev.key === 'n' ? 1 : -1);
			return true;
		}
		if (ev.key === 'a') {
			this.page.go({more: {'source.asm': this.get('asm') === '0' ? '' : '0'}}, 'replace');
			return true;
		}
		const inAsm = document.activeElement === this.asm.element || !this.rows.length, row = this.rows[this.source.active];
		if (!inAsm && row && (ev.key === 'ArrowRight' || ev.key === 'ArrowLeft')) {
			const next = this.rows[this.source.active + 1];
			if (row.group && row.open === (ev.key === 'ArrowLeft'))
				this.toggle(this.source.active);
			else if (ev.key === 'ArrowRight' && next && next.group && !next.open && next.depth === row.depth + 1)
				this.toggle(this.source.active + 1);
			else
				return false;
			return true;
		}
		return (inAsm ? this.asm : this.source).key(ev);
	}

	text() {
		const scene = this.scene;
		if (!scene)
			return '';
		const cells = (/** @type {{self: Share, total: Share} | null} */ c) => [costText(c?.self), costText(c?.total)];
		const source = this.rows.map(row => row.kind === 'gap' ? ['', '', '⋯', ''] : [...cells(this.costOf(row)), row.line ? String(row.line) : '', '   '.repeat(row.depth) +
			(row.group ? `inlined ${row.group.name}` : lineText(scene.sources[row.source], row.line) || '')]);
		const asm = scene.listing.insns.map((insn, i) => [...cells(scene.costs[i]), insn.addr.toString(16), insn.text]);
		const columns = [{title: 'self %', right: true}, {title: 'total %', right: true}, {title: '', right: true}, {title: ''}];
		return [source, asm].filter(rows => rows.length).map(rows => alignedText(columns, rows)).join('\n');
	}
}

/**
 * @param {string} text
 * @param {import('./highlight.js').Token[]} tokens
 * @returns {(Node | string)[]}
 */
export function tokenSpans(text, tokens) {
	return tokens.map(t => t.kind ? el('span', {class: `hl-${t.kind}`}, text.slice(t.from, t.to)) : text.slice(t.from, t.to));
}

/**
 * A jump's bar, its stubs and its head.
 * @param {import('./arrows.js').Arrow} a
 * @param {number} width
 * @param {number} first   rows in view
 * @param {number} last
 */
export function arrowPath(a, width, first, last) {
	const middle = (/** @type {number} */ row) => row * LINE_HEIGHT + LINE_HEIGHT / 2 + 0.5, right = width - 3;
	const x = a.lane < 0 ? right - 5 : width - 10.5 - a.lane * CODE_LANE;
	const top = Math.max(a.top, first - 1), bottom = Math.min(a.bottom, last + 1);
	const parts = a.lane < 0 ? [] : [`M${x} ${middle(top)}V${middle(bottom)}`];
	for (const row of a.from)
		if (row >= first && row <= last)
			parts.push(`M${x} ${middle(row)}H${right}`);
	if (a.target >= first && a.target <= last) {
		const y = middle(a.target);
		parts.push(`M${x} ${y}H${right}M${right - 4} ${y - 3}L${right} ${y}L${right - 4} ${y + 3}`);
	}
	return parts.join('');
}

/** Without the commit of the standard library's sources. @param {string} path */
export function shortPath(path) {
	return path.replace(/^\/rustc\/[0-9a-f]{40}\//, '');
}

/** @param {string} path @param {number} n */
function lastParts(path, n) {
	return path.split('/').slice(-n).join('/');
}

/** @param {string} text @returns {string} as a word of a shell */
export function shellWord(text) {
	return /^[\w./:=+@%-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`;
}
