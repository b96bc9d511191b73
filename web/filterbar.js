// SPDX-License-Identifier: MIT OR Apache-2.0
// The bar above all views but the first: the recording as one strip to drag a range on, threads,
// what Rust readers want folded, names, and each thing that is in force as a chip with its ✕.
import {el, fill, cssColor} from './page.js';
import {count, percent, weight} from './format.js';
import {openPanel, showTip} from './layer.js';
import {isMemory, measureOf, measuredModel, measuresOf, momentName} from './memory.js';
import {defaultQuery} from './query.js';
import {searchNames} from './tree.js';
import {lostLine, marked} from './timeline.js';
import {
	axisLabel,
	laneBuckets,
	laneData,
	laneTotal,
	laneSum,
	drawFound,
	drawLane,
	drawLost,
	groupColors,
	sizedCanvas,
} from './lanes.js';

/** @typedef {import('./page.js').Page} Page */
/** @typedef {import('./types.js').Query} Query */
/** @typedef {import('./types.js').Transform} Transform */

/** @type {{name: string, label: string, why: string}[]} */
const FOLDS = [
	{
		name: 'std',
		label: 'std plumbing',
		why: 'closures called, iterators stepped, options unwrapped',
	},
	{name: 'runtime', label: 'async runtime', why: 'executors and polls between your futures'},
	{name: 'panic', label: 'panic paths', why: 'catch_unwind and what starts threads and main'},
	{name: 'kernel', label: 'kernel', why: 'its time goes to the functions that called it'},
];

/**
 * A transform in words.
 * @param {Transform} t
 * @param {(f: number) => string} name
 * @param {(f: number) => string} crate
 */
export function transformWords(t, name, crate) {
	const f = t.f ?? -1;
	switch (t.kind) {
		case 'focus':
			return `only below ${name(f)}`;
		case 'drop':
			return `without ${name(f)}`;
		case 'merge':
			return `${name(f)} merged into callers`;
		case 'recursion':
			return `recursion of ${name(f)} as one`;
		case 'crate':
			return f < 0 ? 'one frame per crate' : `crate ${crate(f)} as one frame`;
		case 'fold':
			return `${FOLDS.find(x => x.name === t.name)?.label ?? t.name} folded`;
	}
}

/**
 * Each thing in force: what it is called, and the query without it.
 * @param {Page} page
 * @returns {{label: string, title: string, without: Partial<Query>}[]}
 */
export function queryChips(page) {
	const {query} = page.state,
		{model} = page;
	const {functions, strings} = model;
	/** @type {{label: string, title: string, without: Partial<Query>}[]} */
	const chips = [];
	if (query.from || query.to)
		chips.push({
			label: `${axisLabel(query.from, model.meta.duration)} – ${axisLabel(query.to, model.meta.duration)}`,
			title: 'time range',
			without: {from: 0, to: 0},
		});
	if (query.threads)
		chips.push({
			label:
				query.threads.length === 1
					? `thread ${model.threads[query.threads[0]]?.name ?? '?'} ${model.threads[query.threads[0]]?.tid ?? ''}`
					: `${query.threads.length} threads`,
			title: query.threads
				.slice(0, 20)
				.map(t => model.threads[t]?.name)
				.join(', '),
			without: {threads: null},
		});
	for (const [field, label] of /** @type {['focus' | 'ignore' | 'hide', string][]} */ ([
		['focus', 'through'],
		['ignore', 'not through'],
		['hide', 'hidden:'],
	]))
		if (query[field])
			chips.push({
				label: `${label} /${query[field]}/`,
				title: 'names',
				without: {[field]: ''},
			});
	if (!query.generics)
		chips.push({
			label: 'generics folded',
			title: 'names with type parameters folded are one function',
			without: {generics: true},
		});
	if (query.noInline)
		chips.push({
			label: 'inlined functions in their callers',
			title: '',
			without: {noInline: false},
		});
	if (query.noKernel) chips.push({label: 'kernel hidden', title: '', without: {noKernel: false}});
	if (query.plumbing)
		chips.push({
			label: 'plumbing shown',
			title: 'what stands between the program and its allocator',
			without: {plumbing: false},
		});
	for (const [field, label] of /** @type {['since' | 'at', string][]} */ ([['since', 'since'], ['at', 'at']]))
		if (query[field])
			chips.push({
				label: `${label} ${momentName(model, query[field] ?? 0)}`,
				title: field === 'since' ? 'compared with what was live then' : 'what was live then',
				without: {[field]: 0},
			});
	const brief = (/** @type {number} */ f) => strings[functions.brief[f]] ?? '?';
	const crate = (/** @type {number} */ f) => strings[functions.crate[f]] || '?';
	query.transforms.forEach((t, i) => {
		const label = transformWords(t, brief, crate);
		chips.push({
			label,
			title: label,
			without: {transforms: query.transforms.filter((_, k) => k !== i)},
		});
	});
	return chips;
}

/**
 * Drag on a canvas chooses a range of time. `at` says the time under a pointer.
 * @param {HTMLCanvasElement} canvas
 * @param {{at: (x: number) => number, drag: (from: number, to: number) => void,
 *   done: (range: [number, number] | null) => void, starts?: (event: PointerEvent) => boolean}} how  done(null): a click
 */
export function dragRange(canvas, {at, drag, done, starts}) {
	let from = -1,
		x0 = 0;
	canvas.addEventListener('pointerdown', event => {
		if (event.button !== 0 || (starts && !starts(event))) return;
		canvas.setPointerCapture(event.pointerId);
		[from, x0] = [at(event.clientX), event.clientX];
	});
	canvas.addEventListener('pointermove', event => {
		if (from >= 0 && Math.abs(event.clientX - x0) > 3) {
			const to = at(event.clientX);
			drag(Math.min(from, to), Math.max(from, to));
		}
	});
	canvas.addEventListener('pointerup', event => {
		if (from < 0) return;
		const to = at(event.clientX);
		done(
			Math.abs(event.clientX - x0) > 3 && from !== to
				? [Math.min(from, to), Math.max(from, to)]
				: null,
		);
		from = -1;
	});
	canvas.addEventListener('pointercancel', () => {
		from = -1;
	});
}

export class FilterBar {
	/** @param {Page} page @param {HTMLElement} element */
	constructor(page, element) {
		this.page = page;
		this.element = element;
		this.canvas = /** @type {HTMLCanvasElement} */ (
			el('canvas', {
				role: 'img',
				'aria-label':
					'CPU over time; drag to look at a part. The time line view does the same by keyboard.',
			})
		);
		this.chips = el('div', {class: 'chips', role: 'list', 'aria-label': 'In force'});
		this.scope = el('span', {class: 'scope number'});
		this.threads = el(
			'button',
			{
				'aria-haspopup': 'dialog',
				'aria-expanded': 'false',
				onclick: () => this.openThreads(),
			},
			'Threads ▾',
		);
		this.reading = el(
			'button',
			{
				'aria-haspopup': 'dialog',
				'aria-expanded': 'false',
				onclick: () => this.openReading(),
			},
			'Fold ▾',
		);
		this.names = el(
			'button',
			{'aria-haspopup': 'dialog', 'aria-expanded': 'false', onclick: () => this.openNames()},
			'Names ▾',
		);
		/** @type {{data: import('./lanes.js').LaneData, all: Float64Array, lost: Float64Array} | null} */
		this.strip = null;
		/** @type {[number, number] | null} */
		this.dragged = null;
		this.whole = 0;
		this.memory = isMemory(page.model);
		this.measure = this.memory ? this.makeMeasure() : null;
		fill(
			element,
			this.memory ? null : el('div', {class: 'strip'}, this.canvas),
			this.measure,
			this.threads,
			this.reading,
			this.names,
			this.chips,
			this.scope,
		);
		this.listen();
		new ResizeObserver(() => this.draw()).observe(this.canvas);
	}

	/** What is counted, in a session of memory. */
	makeMeasure() {
		const {model} = this.page;
		return /** @type {HTMLSelectElement} */ (
			el(
				'select',
				{
					'aria-label': 'Measure',
					onchange: (/** @type {Event} */ event) => {
						const {value} = /** @type {HTMLSelectElement} */ (event.target);
						// Moments are of what is live.
						this.change({measure: value === model.meta.memory?.measure ? '' : value, at: 0, since: 0});
					},
				},
				...measuresOf(model).map(m => el('option', {value: m.name, title: m.words}, m.label)),
			)
		);
	}

	/** @param {Partial<Query>} change @param {'push' | 'replace'} [how] */
	change(change, how) {
		this.page.go({query: {...this.page.state.query, ...change}}, how);
	}

	listen() {
		const span = this.page.model.meta.duration || 1;
		const at = (/** @type {number} */ x) => {
			const box = this.canvas.getBoundingClientRect();
			return Math.round(Math.max(0, Math.min(1, (x - box.left) / (box.width || 1))) * span);
		};
		dragRange(this.canvas, {
			at,
			drag: (from, to) => {
				this.dragged = [from, to];
				this.draw();
			},
			done: range => {
				this.dragged = null;
				this.change(range ? {from: range[0], to: range[1]} : {from: 0, to: 0});
			},
		});
		this.canvas.addEventListener('pointermove', event => {
			const t = at(event.clientX),
				strip = this.strip;
			if (!strip) return;
			const b = Math.min(strip.data.buckets - 1, Math.floor(t / strip.data.width));
			const lost = Math.round(strip.lost[b]);
			const cpu =
				this.page.model.meta.unit === 'ns'
					? ` · ${(laneSum(strip.all, b) / strip.data.width).toFixed(1)} CPUs`
					: '';
			showTip(
				{x: event.clientX, y: event.clientY},
				`${axisLabel(t, span)}${cpu}${lost ? ` · ${count(lost)} samples lost` : ''}`,
			);
		});
		this.canvas.addEventListener('pointerleave', () => showTip(null, ''));
	}

	show() {
		const {page} = this,
			chips = queryChips(page);
		fill(
			this.chips,
			...chips.map(c =>
				el(
					'span',
					{class: 'chip', role: 'listitem', title: c.title},
					el('span', {}, c.label),
					el(
						'button',
						{
							'aria-label': `Remove: ${c.label}`,
							onclick: () => this.change(c.without),
						},
						'✕',
					),
				),
			),
			chips.length > 1
				? el(
						'button',
						{
							class: 'link',
							onclick: () => this.page.go({query: defaultQuery()}),
						},
						'Clear all',
					)
				: null,
		);
		this.showScope(chips.length > 0);
		this.draw();
	}

	/** @param {boolean} narrowed */
	showScope(narrowed) {
		const {page} = this,
			profile = page.profile(),
			measure = measureOf(page.model, page.state.query);
		if (measure && this.measure) {
			let whole = 0;
			for (const w of profile.model.samples.weight) whole += w;
			this.measure.value = measure.name;
			this.measure.title = measure.words;
			fill(
				this.scope,
				weight(profile.keptWeight, measure.unit),
				narrowed && whole ? ` · ${percent(profile.keptWeight / whole)}` : '',
			);
			return;
		}
		if (!this.whole) for (const w of page.model.samples.weight) this.whole += w;
		const part = this.whole ? profile.keptWeight / this.whole : 0;
		fill(
			this.scope,
			narrowed
				? `${percent(part)} of the time · ${count(profile.keptSamples)} samples`
				: `${count(profile.keptSamples)} samples`,
		);
	}

	draw() {
		const {page, canvas} = this,
			w = canvas.clientWidth,
			h = canvas.clientHeight;
		if (this.memory || !w || !this.element.isConnected) return;
		const span = page.model.meta.duration || 1,
			buckets = laneBuckets(page.model, 0, span, w);
		if (!this.strip || this.strip.data.buckets !== buckets) {
			const data = laneData(page.model, {from: 0, to: span, buckets});
			this.strip = {
				data,
				all: laneTotal(data),
				lost: lostLine(page.model, {from: 0, to: span, buckets}),
			};
		}
		const {all, lost, data} = this.strip,
			ctx = sizedCanvas(canvas, w, h),
			box = {x: 0, y: 0, w, h};
		let most = 0;
		for (let b = 0; b < buckets; b++) most = Math.max(most, laneSum(all, b));
		const full = Math.max(most * 1.05, data.most * 0.2);
		drawLane(ctx, box, all, {buckets, most: full, colors: groupColors()});
		const found = foundOver(page, {from: 0, to: span, buckets});
		if (found) drawFound(ctx, box, found, full);
		drawLost(ctx, box, lost);
		const {query} = page.state;
		const range = this.dragged ?? (query.from || query.to ? [query.from, query.to] : null);
		if (range) shadeOutside(ctx, box, (range[0] / span) * w, (range[1] / span) * w);
	}

	/** Per thread what it has of the measure. @returns {Map<number, number>} */
	threadAmounts() {
		const {samples} = measuredModel(this.page.model, this.page.state.query);
		/** @type {Map<number, number>} */
		const sums = new Map();
		for (let i = 0; i < samples.n; i++)
			sums.set(samples.thread[i], (sums.get(samples.thread[i]) ?? 0) + samples.weight[i]);
		return sums;
	}

	openThreads() {
		const {page} = this,
			{model} = page;
		/** @type {Map<number, number>} */
		const weights = this.memory
			? this.threadAmounts()
			: (this.strip?.data.weight ?? new Map());
		const all = [...weights].sort((a, b) => b[1] - a[1]);
		const sum = all.reduce((s, [, w]) => s + w, 0) || 1;
		const now = page.state.query.threads;
		const boxes = all.map(([t, w]) => {
			const box = /** @type {HTMLInputElement} */ (
				el('input', {type: 'checkbox', value: t, onchange: () => apply()})
			);
			box.checked = !now || now.includes(t);
			const thread = model.threads[t];
			return {
				t,
				box,
				label: el(
					'label',
					{},
					box,
					el(
						'span',
						{style: {flex: '1'}},
						thread.name,
						' ',
						el(
							'small',
							{},
							`${thread.tid}${model.processes.length > 1 ? ` · ${model.processes[thread.process]?.name ?? ''}` : ''}`,
						),
					),
					el('small', {class: 'number'}, percent(w / sum)),
				),
			};
		});
		const apply = () => {
			const on = boxes
				.filter(b => b.box.checked)
				.map(b => b.t)
				.sort((a, b) => a - b);
			this.change({threads: on.length === boxes.length ? null : on});
		};
		const set = (/** @type {boolean} */ to) => () => {
			for (const b of boxes) b.box.checked = to;
			apply();
		};
		openPanel(
			this.threads,
			'Threads',
			el(
				'div',
				{class: 'entry'},
				el('button', {onclick: set(true)}, 'All'),
				el('button', {onclick: set(false)}, 'None'),
			),
			el('div', {class: 'threads'}, ...boxes.map(b => b.label)),
		);
	}

	openReading() {
		const {query} = this.page.state;
		const line = (
			/** @type {string} */ label,
			/** @type {string} */ why,
			/** @type {boolean} */ on,
			/** @type {(on: boolean) => void} */ set,
		) => {
			const box = /** @type {HTMLInputElement} */ (
				el('input', {type: 'checkbox', onchange: () => set(box.checked)})
			);
			box.checked = on;
			return el('label', {}, box, el('span', {}, label, el('br'), el('small', {}, why)));
		};
		const fold = (/** @type {string} */ name) => (/** @type {boolean} */ on) => {
			const rest = this.page.state.query.transforms.filter(
				t => !(t.kind === 'fold' && t.name === name),
			);
			this.change({transforms: on ? [...rest, {kind: 'fold', name}] : rest});
		};
		const crates = (/** @type {boolean} */ on) => {
			const rest = this.page.state.query.transforms.filter(
				t => !(t.kind === 'crate' && t.f === undefined),
			);
			this.change({transforms: on ? [...rest, {kind: 'crate'}] : rest});
		};
		const has = (/** @type {string} */ name) =>
			query.transforms.some(t => t.kind === 'fold' && t.name === name);
		openPanel(
			this.reading,
			'What is folded',
			el('h3', {}, 'Rust reading'),
			line(
				'Generics',
				'Vec<u8>::push and Vec<String>::push are one function',
				!query.generics,
				on => this.change({generics: !on}),
			),
			...FOLDS.map(f =>
				line(f.label[0].toUpperCase() + f.label.slice(1), f.why, has(f.name), fold(f.name)),
			),
			...(this.memory
				? [
						line(
							'Plumbing',
							'alloc::, RawVec, operator new and malloc count for the function that allocates',
							!query.plumbing,
							on => this.change({plumbing: !on}),
						),
					]
				: []),
			el('h3', {}, 'Roll up'),
			line(
				'One frame per crate',
				'runs of frames of one crate become the crate',
				query.transforms.some(t => t.kind === 'crate' && t.f === undefined),
				crates,
			),
			line(
				'Inlined functions',
				'their time goes to the functions they were compiled into',
				query.noInline,
				on => this.change({noInline: on}),
			),
		);
	}

	openNames() {
		const {query} = this.page.state;
		const error = el('p', {class: 'bad', role: 'alert', style: {'font-size': '12px'}});
		const line = (
			/** @type {'focus' | 'ignore' | 'hide'} */ field,
			/** @type {string} */ label,
			/** @type {string} */ why,
		) => {
			const input = /** @type {HTMLInputElement} */ (
				el('input', {
					type: 'text',
					spellcheck: 'false',
					autocomplete: 'off',
					'aria-label': `${label}: ${why}`,
					placeholder: why,
				})
			);
			input.value = query[field];
			input.addEventListener('change', () => {
				this.change({[field]: input.value});
				const bad = this.page.queryError();
				input.setAttribute(
					'aria-invalid',
					String(!!bad && 'field' in bad && bad.field === field),
				);
				error.textContent = bad ? bad.message : '';
			});
			return el('div', {class: 'entry'}, el('span', {}, label), input);
		};
		openPanel(
			this.names,
			'Names',
			line('focus', 'Only through', 'samples with such a function, e.g. parse|lex'),
			line('ignore', 'Not through', 'leave such samples out'),
			line('hide', 'Hide', 'take such frames out of the stacks'),
			error,
			el(
				'p',
				{class: 'faint', style: {'font-size': '12px', 'margin-top': '6px'}},
				'Regular expressions on names; shares stay shares of the whole time.',
			),
		);
	}
}

/** @type {WeakMap<object, {key: string, line: Float64Array}[]>} */
const foundLines = new WeakMap();

/**
 * Weight over time of samples that pass a searched name; null: nothing is searched.
 * @param {Page} page
 * @param {{from: number, to: number, buckets: number}} range
 */
export function foundOver(page, range) {
	const {search} = page.state;
	if (!search) return null;
	const profile = page.profile(),
		key = `${search} ${range.from} ${range.to} ${range.buckets}`;
	const known = foundLines.get(profile) ?? [];
	let hit = known.find(k => k.key === key);
	if (!hit) {
		hit = {key, line: marked(profile, searchNames(profile, search), range)};
		foundLines.set(profile, [hit, ...known.slice(0, 2)]);
	}
	return hit.line;
}

/**
 * Dims what is outside of a chosen range and draws its edges.
 * @param {CanvasRenderingContext2D} ctx
 * @param {import('./lanes.js').LaneBox} box
 * @param {number} x0
 * @param {number} x1
 */
export function shadeOutside(ctx, box, x0, x1) {
	ctx.save();
	ctx.fillStyle = cssColor('--paper');
	ctx.globalAlpha = 0.72;
	const [a, b] = [
		Math.max(box.x, Math.min(box.x + box.w, x0)),
		Math.max(box.x, Math.min(box.x + box.w, x1)),
	];
	ctx.fillRect(box.x, box.y, a - box.x, box.h);
	ctx.fillRect(b, box.y, box.x + box.w - b, box.h);
	ctx.globalAlpha = 1;
	ctx.fillStyle = cssColor('--accent');
	for (const x of [x0, x1])
		if (x >= box.x - 1 && x <= box.x + box.w + 1) ctx.fillRect(x - 0.75, box.y, 1.5, box.h);
	ctx.restore();
}
