// SPDX-License-Identifier: MIT OR Apache-2.0
// The time line: one lane per thread, all threads above them, samples lost where they were lost.
// A drag chooses the range all views look at; wheel and keys zoom and move. Lanes are drawn on one
// canvas of the window's size that stays while the lanes scroll below it: 256 threads cost what
// the visible ones cost.
import {el, fill, cssColor} from './page.js';
import {count, duration, weight} from './format.js';
import {explain} from './glossary.js';
import {GROUPS, groupLegend, lanePart} from './cells.js';
import {dragRange, foundOver, shadeOutside} from './filterbar.js';
import {showTip} from './layer.js';
import {lostLine} from './timeline.js';
import {
	axisLabel,
	drawAxis,
	drawFound,
	drawLane,
	drawLost,
	groupColors,
	laneBuckets,
	laneData,
	laneScale,
	laneSum,
	laneTotal,
	sizedCanvas,
} from './lanes.js';

/** @typedef {import('./page.js').Page} Page */

const TIME_LANE = 34,
	TIME_AXIS = 22,
	TIME_ALL = 56,
	TIME_HEAD = TIME_AXIS + TIME_ALL;

export class TimeView {
	/** @param {Page} page */
	constructor(page) {
		this.page = page;
		this.canvas = /** @type {HTMLCanvasElement} */ (
			el('canvas', {
				tabindex: '0',
				role: 'application',
				'aria-label':
					'Time line. Arrows move the chosen range, with Shift they widen it, plus and minus zoom, Enter zooms to the range, Escape clears it.',
			})
		);
		this.lanes = el('div', {class: 'time-lanes'}, this.canvas);
		this.scroll = el('div', {class: 'time-scroll'}, this.lanes);
		this.note = el('span', {class: 'note number', 'aria-live': 'polite'});
		this.legend = el('div');
		const button = (
			/** @type {string} */ label,
			/** @type {string} */ text,
			/** @type {() => void} */ run,
		) =>
			el(
				'button',
				{'aria-label': text.length > 1 ? null : label, title: label, onclick: run},
				text,
			);
		this.zoomTo = /** @type {HTMLButtonElement} */ (
			button('Zoom to the chosen range', 'Zoom to range', () => this.zoomRange())
		);
		this.clear = /** @type {HTMLButtonElement} */ (
			button('Clear the chosen range', 'Clear range', () => this.choose(0, 0))
		);
		this.bar = el(
			'div',
			{class: 'bar'},
			el(
				'span',
				{class: 'segments'},
				button('Zoom in', '+', () => this.zoom(0.5)),
				button('Zoom out', '−', () => this.zoom(2)),
				button('Show everything', 'All', () => this.look(0, this.span)),
			),
			this.zoomTo,
			this.clear,
			this.note,
			el('span', {class: 'fill'}),
			this.legend,
		);
		this.element = el('div', {class: 'view'}, this.bar, this.scroll);
		this.span = page.model.meta.duration || 1;
		this.order = this.threadOrder();
		/** @type {{key: string, data: import('./lanes.js').LaneData, all: Float64Array, most: number, lost: Float64Array} | null} */
		this.cache = null;
		/** @type {[number, number] | null} */
		this.dragged = null;
		this.makeLabels();
		this.listen();
	}

	/** Threads with samples, heaviest first. */
	threadOrder() {
		const {thread, weight: w, n} = this.page.model.samples;
		const sums = new Float64Array(this.page.model.threads.length).fill(-1);
		for (let i = 0; i < n; i++) sums[thread[i]] = Math.max(0, sums[thread[i]]) + w[i];
		return Array.from(sums, (sum, t) => /** @type {[number, number]} */ ([t, sum]))
			.filter(x => x[1] >= 0)
			.sort((a, b) => b[1] - a[1]);
	}

	/** What is on screen. @returns {[number, number]} */
	window() {
		const {more} = this.page.state;
		const from = Number(more['time.from'] || 0),
			to = Number(more['time.to'] || this.span);
		return to > from && from >= 0 ? [from, Math.min(to, this.span)] : [0, this.span];
	}

	/** @param {number} from @param {number} to */
	look(from, to) {
		const least = Math.min(this.span, Math.max(1000, this.span / 1e5));
		let [a, b] = [from, Math.max(to, from + least)];
		if (b - a >= this.span) [a, b] = [0, this.span];
		if (a < 0) [a, b] = [0, b - a];
		if (b > this.span) [a, b] = [a - (b - this.span), this.span];
		const all = a <= 0 && b >= this.span;
		this.page.go(
			{
				more: {
					'time.from': all ? '' : String(Math.round(a)),
					'time.to': all ? '' : String(Math.round(b)),
				},
			},
			'replace',
		);
	}

	/** @param {number} factor @param {number} [at] */
	zoom(factor, at) {
		const [from, to] = this.window(),
			mid = at ?? (from + to) / 2;
		this.look(mid - (mid - from) * factor, mid + (to - mid) * factor);
	}

	zoomRange() {
		const {query} = this.page.state;
		if (query.to > query.from)
			this.look(
				query.from - (query.to - query.from) * 0.05,
				query.to + (query.to - query.from) * 0.05,
			);
	}

	/** @param {number} from @param {number} to */
	choose(from, to) {
		this.page.go({
			query: {...this.page.state.query, from: Math.round(from), to: Math.round(to)},
		});
	}

	makeLabels() {
		const {model} = this.page,
			sum = this.order.reduce((s, [, w]) => s + w, 0) || 1;
		this.lanes.style.height = `${TIME_HEAD + this.order.length * TIME_LANE}px`;
		this.first = el(
			'div',
			{
				class: 'time-lane first',
				style: {height: `${TIME_HEAD - 1}px`, 'padding-top': `${TIME_AXIS}px`},
			},
			el('strong', {class: 'label'}, 'All threads'),
			el('span', {class: 'number soft'}, weight(sum, model.meta.unit)),
		);
		this.buttons = this.order.map(([t, w], i) => {
			const thread = model.threads[t],
				process = model.processes[thread.process];
			const from = `${thread.tid}${model.processes.length > 1 && process && process.name !== thread.name ? ` ${process.name}` : ''}`;
			const button = el(
				'button',
				{
					class: 'time-lane',
					style: {top: `${TIME_HEAD + i * TIME_LANE}px`},
					'aria-pressed': 'false',
					title: `thread ${thread.tid} of ${process?.name ?? '?'}: press to look at this thread only`,
					onclick: (/** @type {MouseEvent} */ event) =>
						this.pick(t, event.shiftKey || event.ctrlKey || event.metaKey),
				},
				el('span', {class: 'label'}, thread.name, ' ', el('span', {class: 'faint'}, from)),
				el(
					'span',
					{class: 'number soft', title: weight(w, model.meta.unit)},
					lanePart(w / sum),
				),
			);
			return button;
		});
		this.buttons.forEach((b, i) => (b.tabIndex = i ? -1 : 0));
		this.lanes.addEventListener('keydown', event => this.laneKey(event));
		this.lanes.append(...this.buttons, this.first);
	}

	/** Arrows walk the threads: they are one stop for Tab. @param {KeyboardEvent} event */
	laneKey(event) {
		const all = this.buttons ?? [],
			now = all.indexOf(/** @type {HTMLElement} */ (document.activeElement));
		const to = {ArrowDown: now + 1, ArrowUp: now - 1, Home: 0, End: all.length - 1}[event.key];
		if (now < 0 || to === undefined || !all[to]) return;
		event.preventDefault();
		all[now].tabIndex = -1;
		all[to].tabIndex = 0;
		all[to].focus();
	}

	/** @param {number} t @param {boolean} add */
	pick(t, add) {
		const {query} = this.page.state,
			now = query.threads;
		let threads = /** @type {number[] | null} */ ([t]);
		if (add && now)
			threads = now.includes(t)
				? now.filter(x => x !== t)
				: [...now, t].sort((a, b) => a - b);
		else if (now?.length === 1 && now[0] === t) threads = null;
		this.page.go({query: {...query, threads: threads?.length ? threads : null}});
	}

	listen() {
		const {canvas} = this;
		dragRange(canvas, {
			at: x => this.timeAt(x),
			starts: event => event.clientX >= canvas.getBoundingClientRect().left + this.left(),
			drag: (from, to) => {
				this.dragged = [from, to];
				this.draw();
			},
			done: range => {
				this.dragged = null;
				const {query} = this.page.state;
				if (range) this.choose(range[0], range[1]);
				else if (query.from || query.to) this.choose(0, 0);
			},
		});
		canvas.addEventListener('dblclick', () => this.zoomRange());
		canvas.addEventListener('wheel', event => this.wheel(event), {passive: false});
		canvas.addEventListener('keydown', event => {
			if (this.canvasKey(event)) event.preventDefault();
		});
		canvas.addEventListener('pointermove', event => this.tip(event));
		canvas.addEventListener('pointerleave', () => showTip(null, ''));
		this.scroll.addEventListener('scroll', () => this.draw());
		new ResizeObserver(() => this.draw()).observe(this.scroll);
		window.addEventListener('beforeprint', () => this.draw());
	}

	/** Width of the names. */
	left() {
		return this.buttons?.[0]?.offsetWidth || 230;
	}

	/** @param {number} x  of a pointer */
	timeAt(x) {
		const box = this.canvas.getBoundingClientRect(),
			left = this.left(),
			[from, to] = this.window();
		const part = (x - box.left - left) / Math.max(1, box.width - left - 12);
		return Math.max(
			0,
			Math.min(this.span, from + Math.max(0, Math.min(1, part)) * (to - from)),
		);
	}

	/** @param {WheelEvent} event */
	wheel(event) {
		const [from, to] = this.window();
		if (event.ctrlKey || event.metaKey) {
			event.preventDefault();
			this.zoom(
				Math.exp(Math.max(-1, Math.min(1, event.deltaY / 200))),
				this.timeAt(event.clientX),
			);
		} else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
			event.preventDefault();
			const by =
				((event.deltaX || event.deltaY) / Math.max(200, this.canvas.clientWidth)) *
				(to - from);
			this.look(from + by, to + by);
		}
	}

	/** @param {KeyboardEvent} event @returns {boolean} */
	canvasKey(event) {
		if (
			event.ctrlKey ||
			event.metaKey ||
			event.altKey ||
			!['ArrowLeft', 'ArrowRight', 'Enter'].includes(event.key)
		)
			return false;
		if (event.key === 'Enter') {
			this.zoomRange();
			return true;
		}
		const [from, to] = this.window(),
			step = ((to - from) / 20) * (event.key === 'ArrowLeft' ? -1 : 1);
		const {query} = this.page.state;
		if (!query.to) this.choose(from, from + Math.abs(step) * 2);
		else if (event.shiftKey)
			this.choose(
				query.from,
				Math.min(this.span, Math.max(query.from + Math.abs(step) / 4, query.to + step)),
			);
		else if (query.from + step >= 0 && query.to + step <= this.span)
			this.choose(query.from + step, query.to + step);
		return true;
	}

	/** @param {KeyboardEvent} event @returns {boolean} */
	key(event) {
		if (event.key === '+' || event.key === '=') this.zoom(0.5);
		else if (event.key === '-') this.zoom(2);
		else if (event.key === '0') this.look(0, this.span);
		else if (event.key === 'Escape' && (this.page.state.query.from || this.page.state.query.to))
			this.choose(0, 0);
		else return false;
		return true;
	}

	/** @param {PointerEvent} event */
	tip(event) {
		const box = this.canvas.getBoundingClientRect(),
			y = event.clientY - box.top;
		if (!this.cache || event.clientX < box.left + this.left() || y < TIME_AXIS) {
			showTip(null, '');
			return;
		}
		const t = this.timeAt(event.clientX),
			{data, all, lost} = this.cache,
			{model} = this.page;
		const b = Math.max(0, Math.min(data.buckets - 1, Math.floor((t - data.from) / data.width)));
		const i = Math.floor((y - TIME_HEAD + this.scroll.scrollTop) / TIME_LANE);
		const thread = y >= TIME_HEAD ? this.order[i]?.[0] : undefined;
		const values =
			y < TIME_HEAD ? all : thread === undefined ? undefined : data.threads.get(thread);
		const lines = [axisLabel(t, (data.to - data.from) / 10)];
		if (thread !== undefined)
			lines[0] += `  ${model.threads[thread].name} ${model.threads[thread].tid}`;
		if (values && laneSum(values, b) > 0)
			for (let g = 0; g < GROUPS.length; g++) {
				const w = values[b * GROUPS.length + g];
				if (w)
					lines.push(
						`${((w / (model.meta.unit === 'ns' ? data.width : data.most)) * 100).toFixed(0)} % ${GROUPS[g].label}`,
					);
			}
		else if (values || thread !== undefined) lines.push('no sample here');
		if (lost[b] > 0)
			lines.push(`about ${count(Math.max(1, Math.round(lost[b])))} samples lost here`);
		showTip({x: event.clientX, y: event.clientY}, lines.join('\n'));
	}

	show() {
		const {query} = this.page.state,
			chosen = query.to > query.from;
		this.zoomTo.disabled = this.clear.disabled = !chosen;
		this.buttons?.forEach((button, i) => {
			const on = query.threads?.includes(this.order[i][0]) ?? false;
			button.setAttribute('aria-pressed', String(on));
			button.classList.toggle('off', !!query.threads && !on);
		});
		fill(
			this.note,
			chosen
				? `${duration(query.to - query.from)} chosen; all views show this part`
				: 'Drag to choose a part for all views; Ctrl and wheel zooms',
		);
		this.draw();
	}

	draw() {
		const w = this.scroll.clientWidth,
			h = this.scroll.clientHeight;
		if (!w || !this.element.isConnected) return;
		const left = this.left(),
			right = 12,
			[from, to] = this.window(),
			{model, state} = this.page;
		this.canvas.style.width = `${w}px`;
		this.canvas.style.height = `${h}px`;
		const box = {x: left, y: TIME_AXIS, w: Math.max(10, w - left - right), h: TIME_ALL};
		const range = {from, to, buckets: laneBuckets(model, from, to, box.w)};
		const key = `${from} ${to} ${range.buckets}`;
		if (this.cache?.key !== key) {
			const data = laneData(model, range);
			const all = laneTotal(data);
			let most = data.most;
			for (let b = 0; b < data.buckets; b++) most = Math.max(most, laneSum(all, b));
			this.cache = {key, data, all, most, lost: lostLine(model, range)};
			fill(this.legend, groupLegend(data.groups));
			this.legend.firstElementChild?.prepend(
				el('span', {}, laneScale(data, model, most)),
			);
			if (this.cache.lost.some(x => x > 0))
				this.legend.firstElementChild?.append(
					el(
						'span',
						{},
						el('span', {class: 'dot', style: {background: 'var(--lost)'}}),
						explain(el('span', {class: 'term', tabindex: '0'}, 'lost'), 'lost'),
					),
				);
		}
		const ctx = sizedCanvas(this.canvas, w, h);
		this.drawLanes(ctx, box, h);
		const chosen =
			this.dragged ??
			(state.query.to > state.query.from ? [state.query.from, state.query.to] : null);
		if (chosen) {
			const x = (/** @type {number} */ t) => box.x + ((t - from) / (to - from)) * box.w;
			shadeOutside(ctx, {...box, h: h - TIME_AXIS}, x(chosen[0]), x(chosen[1]));
		}
	}

	/** @param {CanvasRenderingContext2D} ctx @param {import('./lanes.js').LaneBox} box @param {number} h */
	drawLanes(ctx, box, h) {
		const {data, all, most, lost} = /** @type {NonNullable<TimeView['cache']>} */ (this.cache);
		const colors = groupColors(),
			how = {buckets: data.buckets, most: data.most, colors};
		const top = this.scroll.scrollTop,
			line = cssColor('--line'),
			{threads} = this.page.state.query;
		for (let i = Math.max(0, Math.floor(top / TIME_LANE)); i < this.order.length; i++) {
			const y = TIME_HEAD + i * TIME_LANE - top;
			if (y > h) break;
			ctx.fillStyle = line;
			ctx.fillRect(0, y + TIME_LANE - 1, box.x + box.w + 12, 1);
			const values = data.threads.get(this.order[i][0]);
			const lane = {x: box.x, y: y + 4, w: box.w, h: TIME_LANE - 6};
			ctx.globalAlpha = threads && !threads.includes(this.order[i][0]) ? 0.3 : 1;
			if (values) drawLane(ctx, lane, values, how);
			ctx.globalAlpha = 1;
		}
		drawLost(
			ctx,
			{
				...box,
				y: TIME_HEAD,
				h: Math.max(0, Math.min(h - TIME_HEAD, this.order.length * TIME_LANE - top)),
			},
			lost,
		);
		ctx.fillStyle = cssColor('--paper');
		ctx.fillRect(0, 0, box.x + box.w + 12, TIME_HEAD);
		drawAxis(ctx, {...box, y: 0, h: TIME_AXIS}, data.from, data.to);
		drawLane(ctx, {...box, y: box.y + 4, h: box.h - 8}, all, {...how, most});
		const found = foundOver(this.page, {from: data.from, to: data.to, buckets: data.buckets});
		if (found) drawFound(ctx, {...box, y: box.y + 4, h: box.h - 8}, found, most);
		drawLost(ctx, box, lost);
		ctx.fillStyle = line;
		ctx.fillRect(0, TIME_HEAD - 1, box.x + box.w + 12, 1);
		this.first?.style.setProperty('transform', `translateY(${top}px)`);
	}

	text() {
		const {model} = this.page;
		return (
			this.order
				.map(
					([t, w]) =>
						`${weight(w, model.meta.unit).padStart(10)}  ${model.threads[t].name} ${model.threads[t].tid}`,
				)
				.join('\n') + '\n'
		);
	}

	/** @type {[string, string][]} */
	keys = [
		['+ − 0', 'zoom in, out, everything'],
		['↑ ↓', 'walk the threads (a name focused)'],
		['← →', 'move the chosen range (lanes focused)'],
		['Shift ← →', 'make it longer or shorter'],
		['Enter', 'zoom to it'],
		['Esc', 'clear it'],
	];
}
