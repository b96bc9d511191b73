// SPDX-License-Identifier: MIT OR Apache-2.0
// The flame graph on a canvas: drawing, pointer, keys. What boxes mean is the host's business.
//
// The canvas has the size of its window and sticks to it while a spacer as high as all rows scrolls,
// so that a stack of 20,000 frames has a real scroll bar and costs its visible rows. Boxes are
// written as pixels (flame.js), names by fillText, in one go per animation frame.
import { el } from './page.js';
import { FlameBoxes, fitFlameName, paintFlame } from './flame.js';

/** @typedef {import('./flame.js').Flame} Flame */
/** @typedef {{x: number, y: number}} At   of the document's window */

/**
 * @typedef {object} FlameHost
 * @property {(node: number) => string} name
 * @property {(node: number) => void} zoom          asked for by click or Enter
 * @property {(from: number, to: number) => void} moved   panned or zoomed freely, when it comes to rest
 * @property {(node: number, at: At) => void} menu
 * @property {(box: {node: number, count: number, depth: number} | null, at: At) => void} hover
 * @property {(node: number, at: At) => void} select   by key; at: below its box
 */

/**
 * @typedef {object} FlameLook
 * @property {string} ink
 * @property {string} paper
 * @property {string} accent      outline of the selected box
 * @property {Uint32Array} pixels   color index -> pixel
 * @property {Uint32Array} faded    the same for boxes that are not meant
 * @property {Uint8Array} index     per node
 * @property {number} hatchA
 * @property {number} hatchB
 */

export const FLAME_ROW = 18;
const FLAME_FONT = '11.5px ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace';
const FLAME_MOVE_MS = 160;
/** Part of the whole that can fill the width; below, sums of doubles are not exact any more. */
const FLAME_CLOSEST = 1e-10;

export class FlameCanvas {
	/** @param {FlameHost} host */
	constructor(host) {
		this.host = host;
		this.canvas = /** @type {HTMLCanvasElement} */(el('canvas', {class: 'flame-canvas'}));
		this.space = el('div', {class: 'flame-space'}, this.canvas);
		this.element = el('div', {
			class: 'flame-scroll', tabindex: '0', role: 'application', 'aria-roledescription': 'flame graph',
		}, this.space);
		this.context = /** @type {CanvasRenderingContext2D} */(this.canvas.getContext('2d', {alpha: false}));
		/** @type {Flame | null} */
		this.flame = null;
		/** @type {FlameLook | null} */
		this.look = null;
		/** @type {Uint8Array | null} per node, see markNodes */
		this.marks = null;
		this.from = 0;
		this.to = 1;
		this.zoomNode = 0;
		this.selected = -1;
		this.hovered = -1;
		this.upwards = false;
		/** of the scrolled space, in CSS pixels */
		this.height = 0;
		this.boxes = new FlameBoxes();
		this.image = new ImageData(1, 1);
		this.asked = 0;
		/** @type {{from: number, to: number, endFrom: number, endTo: number, began: number} | null} */
		this.motion = null;
		/** @type {Map<number, At>} */
		this.pointers = new Map();
		this.dragged = false;
		this.settle = 0;
		/** ms of the last drawings, for tests and measurements */
		this.drawMs = 0;
		this.listen();
	}

	listen() {
		const e = this.element;
		new ResizeObserver(() => {
			this.fitSpace();
			this.redraw();
		}).observe(e);
		e.addEventListener('scroll', () => {
			this.hovered = -1;
			this.redraw();
		});
		e.addEventListener('wheel', ev => this.onWheel(ev), {passive: false});
		e.addEventListener('pointerdown', ev => this.onDown(ev));
		e.addEventListener('pointermove', ev => this.onMove(ev));
		e.addEventListener('pointerup', ev => this.onUp(ev, true));
		e.addEventListener('pointercancel', ev => this.onUp(ev, false));
		e.addEventListener('pointerleave', () => this.setHover(-1, {x: 0, y: 0}));
		e.addEventListener('contextmenu', ev => {
			const box = this.boxAt(ev);
			if (box >= 0 && this.boxes.count[box] === 1) {
				ev.preventDefault();
				this.selected = this.boxes.node[box];
				this.redraw();
				this.host.menu(this.selected, {x: ev.clientX, y: ev.clientY});
			}
		});
	}

	/**
	 * @param {Flame} flame
	 * @param {FlameLook} look
	 */
	set(flame, look) {
		const other = flame !== this.flame;
		this.flame = flame;
		this.look = look;
		if (other) {
			this.hovered = this.selected = -1;
			this.motion = null;
			this.marks = null;
		}
		this.fitSpace();
		this.redraw();
	}

	/**
	 * Shows a node over the whole width, or the window [from, to) with it as the centre of interest.
	 * @param {number} node
	 * @param {boolean} moving   by an animation
	 * @param {number} [from]
	 * @param {number} [to]
	 */
	showNode(node, moving, from, to) {
		const flame = /** @type {Flame} */(this.flame);
		const other = node !== this.zoomNode;
		this.zoomNode = node;
		const a = from ?? flame.start[node], b = to ?? flame.start[node] + flame.size[node];
		const still = matchMedia('(prefers-reduced-motion: reduce)').matches;
		if (moving && !still && (a !== this.from || b !== this.to)) {
			this.motion = {from: this.from, to: this.to, endFrom: a, endTo: b, began: performance.now()};
		} else if (!this.motion || this.motion.endFrom !== a || this.motion.endTo !== b) {
			this.motion = null;
			this.from = a;
			this.to = b;
		}
		this.fitSpace();
		if (other)
			this.scrollToDepth(flame.tree.depth[node]);
		this.redraw();
	}

	get rows() {
		return this.flame && this.flame.tree.n ? this.flame.lowest[this.zoomNode] + 1 : 0;
	}

	fitSpace() {
		const height = Math.max(this.rows * FLAME_ROW + 2, this.element.clientHeight);
		const bottom = this.height - this.element.scrollTop;
		this.space.style.height = `${height}px`;
		this.height = height;
		if (this.upwards)
			this.element.scrollTop = height - bottom;
	}

	/** @param {boolean} upwards  callers below */
	setUpwards(upwards) {
		if (this.upwards === upwards)
			return;
		this.upwards = upwards;
		this.fitSpace();
		this.element.scrollTop = upwards ? this.element.scrollHeight : 0;
		this.redraw();
	}

	/** @param {number} depth @returns {number} y in the scrolled space */
	yOf(depth) {
		return this.upwards ? this.height - (depth + 1) * FLAME_ROW : depth * FLAME_ROW;
	}

	/**
	 * The row becomes visible, with some of its callers; nothing moves if it is well in view.
	 * @param {number} depth
	 */
	scrollToDepth(depth) {
		const y = this.yOf(depth), e = this.element, space = 2 * FLAME_ROW;
		const low = e.scrollTop + space, high = e.scrollTop + e.clientHeight - space - FLAME_ROW;
		if (y >= low && y <= high || e.clientHeight >= this.height)
			return;
		e.scrollTop = this.upwards ? y - e.clientHeight + 4 * FLAME_ROW : y - 3 * FLAME_ROW;
	}

	/**
	 * Scrolls over rows that tell little, unless the first that does is in the near half of the window.
	 * @param {number} depth   of that row
	 * @returns {boolean} whether it did
	 */
	passOver(depth) {
		const e = this.element, far = (depth + 1) * FLAME_ROW;
		if (far < e.clientHeight / 2 || e.clientHeight >= this.height)
			return false;
		const y = this.yOf(depth);
		e.scrollTop = this.upwards ? y - e.clientHeight + 4 * FLAME_ROW : y - 3 * FLAME_ROW;
		return true;
	}

	redraw() {
		if (!this.asked)
			this.asked = requestAnimationFrame(now => {
				this.asked = 0;
				this.step(now);
				this.draw();
			});
	}

	/** @param {number} now */
	step(now) {
		const m = this.motion;
		if (!m)
			return;
		const t = Math.min(1, Math.max(0, (now - m.began) / FLAME_MOVE_MS)), ease = t * (2 - t);
		this.from = m.from + (m.endFrom - m.from) * ease;
		this.to = m.to + (m.endTo - m.to) * ease;
		if (t >= 1)
			this.motion = null;
		else
			this.redraw();
	}

	draw() {
		const {flame, look, element, canvas} = this;
		if (!flame || !look || !element.clientWidth || !flame.tree.n)
			return;
		const began = performance.now(), dpr = devicePixelRatio || 1;
		const width = Math.round(element.clientWidth * dpr), height = Math.round(element.clientHeight * dpr);
		if (canvas.width !== width || canvas.height !== height) {
			canvas.width = width;
			canvas.height = height;
			canvas.style.width = `${element.clientWidth}px`;
			canvas.style.height = `${element.clientHeight}px`;
		}
		if (this.image.width !== width || this.image.height !== height)
			this.image = new ImageData(width, height);
		// Rows stand where pointers look for them, also when a row is no whole number of pixels.
		const row = Math.floor(FLAME_ROW * dpr), scroll = element.scrollTop;
		const top = (/** @type {number} */ d) => Math.round((this.yOf(d) - scroll) * dpr);
		const rows = Math.ceil(element.clientHeight / FLAME_ROW) + 1, rowsEnd = this.height;
		const first = Math.floor((this.upwards ? rowsEnd - scroll - element.clientHeight : scroll) / FLAME_ROW);
		this.boxes.clear();
		flame.cull(this.boxes, {from: this.from, to: this.to, width, first: Math.max(0, first - 1), last: first + rows});
		paintFlame(new Uint32Array(this.image.data.buffer), this.boxes, {
			width, height, row, gap: Math.max(1, Math.round(dpr)), top, paper: look.pixels[look.pixels.length - 1],
			hatchA: look.hatchA, hatchB: look.hatchB, color: this.pixelOf(flame, look),
		});
		this.context.putImageData(this.image, 0, 0);
		this.drawNames(look, row, top, dpr);
		this.outline(look, row, top, dpr);
		this.drawMs = performance.now() - began;
	}

	/**
	 * @param {Flame} flame
	 * @param {FlameLook} look
	 * @returns {(node: number) => number}
	 */
	pixelOf(flame, look) {
		const {index, pixels, faded} = look, {marks, zoomNode} = this, depth = flame.tree.depth;
		const zoomDepth = depth[zoomNode];
		return node => (marks ? marks[node] === 1 : depth[node] >= zoomDepth) ?
			pixels[index[node]] : faded[index[node]];
	}

	/**
	 * @param {FlameLook} look
	 * @param {number} row
	 * @param {(depth: number) => number} top
	 * @param {number} dpr
	 */
	drawNames(look, row, top, dpr) {
		const c = this.context, {boxes} = this;
		c.setTransform(1, 0, 0, 1, 0, 0);
		c.font = FLAME_FONT.replace(/^[\d.]+/, size => String(Number(size) * dpr));
		c.textBaseline = 'middle';
		c.fillStyle = look.ink;
		const char = c.measureText('0'.repeat(64)).width / 64, pad = 4 * dpr;
		for (let i = 0; i < boxes.n; i++) {
			const room = boxes.x1[i] - boxes.x0[i] - 2 * pad;
			if (room < 3 * char || boxes.count[i] > 1)
				continue;
			const label = fitFlameName(this.host.name(boxes.node[i]), Math.floor(room / char));
			const y = top(boxes.depth[i]) + (row - dpr) / 2 + dpr / 2;
			// Only what is not ASCII can be wider than its share of columns.
			if (/^[\x20-\x7e…]*$/.test(label))
				c.fillText(label, boxes.x0[i] + pad, y);
			else
				c.fillText(label, boxes.x0[i] + pad, y, room);
		}
	}

	/**
	 * @param {FlameLook} look
	 * @param {number} row
	 * @param {(depth: number) => number} top
	 * @param {number} dpr
	 */
	outline(look, row, top, dpr) {
		const c = this.context, flame = /** @type {Flame} */(this.flame);
		const scale = this.canvas.width / (this.to - this.from);
		const frame = (/** @type {number} */ node, /** @type {string} */ color, /** @type {number} */ line) => {
			const x0 = Math.max(-9, (flame.start[node] - this.from) * scale);
			const x1 = Math.min(this.canvas.width + 9, Math.max(x0 + 3 * dpr, (flame.start[node] + flame.size[node] - this.from) * scale));
			c.strokeStyle = color;
			c.lineWidth = line * dpr;
			c.strokeRect(x0 + line * dpr / 2, top(flame.tree.depth[node]) + line * dpr / 2, x1 - x0 - (line + 1) * dpr, row - (line + 1) * dpr);
		};
		if (this.hovered >= 0)
			frame(this.hovered, look.ink, 1.25);
		if (this.selected >= 0)
			frame(this.selected, look.accent, 2);
	}

	/** @param {{clientX: number, clientY: number}} ev */
	depthAt(ev) {
		const y = ev.clientY - this.element.getBoundingClientRect().top + this.element.scrollTop;
		return Math.floor(this.upwards ? (this.height - y) / FLAME_ROW : y / FLAME_ROW);
	}

	/** @param {{clientX: number, clientY: number}} ev @returns {number} index into boxes, -1 none */
	boxAt(ev) {
		const x = (ev.clientX - this.element.getBoundingClientRect().left) * (devicePixelRatio || 1);
		return this.boxes.at(Math.floor(x), this.depthAt(ev));
	}

	/** @param {{clientX: number}} ev @returns {number} in weight */
	xAt(ev) {
		const r = this.element.getBoundingClientRect();
		return this.from + (ev.clientX - r.left) / this.element.clientWidth * (this.to - this.from);
	}

	/**
	 * @param {number} box
	 * @param {At} at
	 */
	setHover(box, at) {
		const node = box >= 0 && this.boxes.count[box] === 1 ? this.boxes.node[box] : -1;
		if (node !== this.hovered)
			this.redraw();
		this.hovered = node;
		this.host.hover(box < 0 ? null : {
			node: this.boxes.node[box], count: this.boxes.count[box], depth: this.boxes.depth[box],
		}, at);
	}

	/** @param {WheelEvent} ev */
	onWheel(ev) {
		const unit = ev.deltaMode === 1 ? 16 : ev.deltaMode === 2 ? this.element.clientHeight : 1;
		const dx = (ev.shiftKey && !ev.deltaX ? ev.deltaY : ev.deltaX) * unit;
		if (ev.ctrlKey || ev.metaKey || ev.altKey) {
			ev.preventDefault();
			// A pinch arrives as Ctrl and a wheel of small steps.
			const step = Math.max(-120, Math.min(120, ev.deltaY * unit));
			this.scaleAt(this.xAt(ev), Math.exp(step * (Math.abs(step) < 30 ? 0.012 : 0.004)));
		} else if (Math.abs(dx) > Math.abs(ev.shiftKey ? 0 : ev.deltaY)) {
			ev.preventDefault();
			this.pan(dx);
		}
	}

	/**
	 * @param {number} x        stays where it is
	 * @param {number} factor   of the window's span
	 */
	scaleAt(x, factor) {
		const span = this.to - this.from;
		this.moveTo(x - (x - this.from) * factor, span * factor);
	}

	/** @param {number} pixels */
	pan(pixels) {
		const span = this.to - this.from;
		this.moveTo(this.from + pixels / this.element.clientWidth * span, span);
	}

	/**
	 * @param {number} from
	 * @param {number} span
	 */
	moveTo(from, span) {
		const {flame} = this;
		if (!flame || !(flame.whole > 0))
			return;
		this.motion = null;
		const s = Math.min(flame.whole, Math.max(span, flame.whole * FLAME_CLOSEST));
		this.from = Math.min(Math.max(0, from), flame.whole - s);
		this.to = this.from + s;
		// The zoomed box is left behind when it does not span the window any more.
		while (this.zoomNode > 0 && !this.spans(this.zoomNode))
			this.zoomNode = flame.tree.parent[this.zoomNode];
		this.fitSpace();
		this.redraw();
		clearTimeout(this.settle);
		this.settle = window.setTimeout(() => this.host.moved(this.from, this.to), 250);
	}

	/** @param {number} node */
	spans(node) {
		const {start, size} = /** @type {Flame} */(this.flame), least = (this.to - this.from) * 1e-6;
		return start[node] <= this.from + least && start[node] + size[node] >= this.to - least;
	}

	/** @param {PointerEvent} ev */
	onDown(ev) {
		if (ev.button !== 0 || ev.clientX >= this.element.getBoundingClientRect().left + this.element.clientWidth)
			return;
		this.pointers.set(ev.pointerId, {x: ev.clientX, y: ev.clientY});
		this.dragged = this.pointers.size > 1;
	}

	/** @param {PointerEvent} ev */
	onMove(ev) {
		const old = this.pointers.get(ev.pointerId);
		if (!old) {
			this.setHover(this.boxAt(ev), {x: ev.clientX, y: ev.clientY});
			return;
		}
		const dx = ev.clientX - old.x, dy = ev.clientY - old.y;
		if (!this.dragged && Math.hypot(dx, dy) < 4)
			return;
		if (!this.dragged) {
			this.dragged = true;
			this.setHover(-1, old);
			this.element.setPointerCapture(ev.pointerId);
		}
		const other = [...this.pointers].find(([id]) => id !== ev.pointerId);
		this.pointers.set(ev.pointerId, {x: ev.clientX, y: ev.clientY});
		if (other) {
			const was = Math.abs(old.x - other[1].x), now = Math.abs(ev.clientX - other[1].x);
			this.scaleAt(this.xAt({clientX: (ev.clientX + other[1].x) / 2}), Math.max(was, 20) / Math.max(now, 20));
		} else {
			this.pan(-dx);
			this.element.scrollTop -= dy;
		}
	}

	/**
	 * @param {PointerEvent} ev
	 * @param {boolean} click
	 */
	onUp(ev, click) {
		if (!this.pointers.delete(ev.pointerId) || this.dragged || !click)
			return;
		const box = this.boxAt(ev), flame = this.flame;
		if (box < 0 || !flame)
			return;
		const node = this.boxes.node[box];
		if (this.boxes.count[box] === 1) {
			this.selected = node;
			this.host.zoom(node);
			return;
		}
		const sum = flame.sumOf(this.boxes.depth[box], node, this.boxes.count[box]);
		this.moveTo(flame.start[node] - sum.total * 0.1, sum.total * 1.2);
	}

	/**
	 * A box is selected and brought into view.
	 * @param {number} node
	 */
	select(node) {
		const flame = /** @type {Flame} */(this.flame), span = this.to - this.from;
		this.selected = node;
		const a = flame.start[node], b = a + flame.size[node];
		if (a >= this.to || b <= this.from || (a < this.from || b > this.to) && flame.size[node] <= span)
			this.moveTo(Math.min(a, (a + b - span) / 2), Math.max(span, flame.size[node]));
		if (flame.tree.depth[node] >= this.rows) {
			this.zoomNode = 0;
			this.fitSpace();
		}
		this.scrollToDepth(flame.tree.depth[node]);
		this.redraw();
		this.host.select(node, this.placeOf(node));
	}

	/** Below a box, in the document's window. @param {number} node @returns {At} */
	placeOf(node) {
		const flame = /** @type {Flame} */(this.flame), r = this.element.getBoundingClientRect();
		const scale = this.element.clientWidth / (this.to - this.from);
		const x0 = Math.max(0, (flame.start[node] - this.from) * scale);
		const x1 = Math.min(this.element.clientWidth, (flame.start[node] + flame.size[node] - this.from) * scale);
		return {
			x: r.left + Math.min(x0 + 24, (x0 + x1) / 2),
			y: r.top + this.yOf(flame.tree.depth[node]) + FLAME_ROW - this.element.scrollTop,
		};
	}

	/**
	 * The next or previous box that was searched for, in reading order.
	 * @param {number} step  1 or -1
	 */
	nextMark(step) {
		const {flame, marks} = this;
		if (!flame || !marks)
			return;
		const n = flame.tree.n, order = flame.order, from = this.selected >= 0 ? this.selected : 0;
		let at = order.indexOf(from);
		for (let k = 0; k < n; k++) {
			at = (at + step + n) % n;
			if (marks[order[at]] === 1)
				return this.select(order[at]);
		}
	}

	/**
	 * @param {KeyboardEvent} ev
	 * @returns {boolean} used up
	 */
	key(ev) {
		const {flame} = this;
		if (!flame || !flame.tree.n || ev.altKey || ev.metaKey || ev.ctrlKey)
			return false;
		const at = this.selected >= 0 ? this.selected : this.zoomNode;
		const towards = {ArrowUp: this.upwards ? 'child' : 'parent', ArrowDown: this.upwards ? 'parent' : 'child', ArrowLeft: 'left', ArrowRight: 'right'}[ev.key];
		if (towards) {
			if (ev.shiftKey)
				this.pan(ev.key === 'ArrowLeft' ? -80 : ev.key === 'ArrowRight' ? 80 : 0);
			else
				this.select(this.selected < 0 ? at : flame.step(at, /** @type {'parent'} */(towards)));
			return true;
		}
		if (ev.key === 'Enter' && this.selected >= 0)
			this.host.zoom(this.selected);
		else if ((ev.key === 'Escape' || ev.key === 'Backspace') && (this.zoomNode > 0 || !this.spans(0) || this.to - this.from < flame.whole))
			this.host.zoom(Math.max(0, flame.tree.parent[this.zoomNode]));
		else if (ev.key === 'Home' || ev.key === '0')
			this.host.zoom(0);
		else if (ev.key === '+' || ev.key === '=' || ev.key === '-')
			this.scaleAt(this.middleOf(at), ev.key === '-' ? 1.5 : 1 / 1.5);
		else if (ev.key === 'PageDown' || ev.key === 'PageUp')
			this.element.scrollTop += (ev.key === 'PageDown' ? 0.9 : -0.9) * this.element.clientHeight;
		else if (ev.key === 'n' || ev.key === 'N')
			this.nextMark(ev.key === 'n' ? 1 : -1);
		else if ((ev.key === 'ContextMenu' || ev.key === 'F10' && ev.shiftKey) && this.selected >= 0)
			this.host.menu(this.selected, this.placeOf(this.selected));
		else
			return false;
		return true;
	}

	/** The middle of the part of a box that is in view, or of the view. @param {number} node */
	middleOf(node) {
		const {start, size} = /** @type {Flame} */(this.flame);
		const a = Math.max(this.from, start[node]), b = Math.min(this.to, start[node] + size[node]);
		return a < b ? (a + b) / 2 : (this.from + this.to) / 2;
	}
}
