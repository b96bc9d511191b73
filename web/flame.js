// SPDX-License-Identifier: MIT OR Apache-2.0
// The flame graph without its canvas: where boxes stand, which are worth drawing, what is under a
// point, and the pixels. Pure: no DOM, so that node tests it and measures it.
//
//	const flame = new Flame(tree);            // once per tree
//	boxes.clear();
//	flame.cull(boxes, {from, to, width, first, last});
//	paintFlame(pixels, boxes, style);
//
// Boxes of one depth stand in one array, ordered by where they begin; they never overlap. Drawing a
// row is a walk over that array that skips by binary search whatever is narrower than half a
// pixel: what is skipped becomes one hatched box, "n small frames". So a row costs at most two
// steps per pixel of its width and a tree of a million nodes costs no more than its visible rows.
//
// Coordinates: a box begins at start[node] and is size[node] wide, in the tree's weight; a view
// maps [from, to) of that onto `width` device pixels. Rows are depths.

/** @typedef {import('./types.js').Tree} Tree */

/** @typedef {{from: number, to: number, width: number, first: number, last: number}} FlameWindow
 *   first and last: depths to draw, inclusive */

/** Boxes narrower than this many pixels are drawn together. */
export const FLAME_LEAST = 0.5;

/** What is to be drawn, in columns that are used again for each picture. */
export class FlameBoxes {
	constructor() {
		this.n = 0;
		this.capacity = 1024;
		/** The node, or the first of them. */
		this.node = new Int32Array(this.capacity);
		/** Frames this box stands for; 1: `node` itself. */
		this.count = new Uint32Array(this.capacity);
		/** Pixels, whole. */
		this.x0 = new Int32Array(this.capacity);
		this.x1 = new Int32Array(this.capacity);
		this.depth = new Int32Array(this.capacity);
		/** Where each drawn row begins and ends. @type {Map<number, [number, number]>} */
		this.rows = new Map();
	}

	clear() {
		this.n = 0;
		this.rows.clear();
	}

	grow() {
		const longer = (/** @type {Int32Array} */ old) => {
			const made = new Int32Array(this.capacity);
			made.set(old);
			return made;
		};
		this.capacity *= 2;
		this.node = longer(this.node);
		this.x0 = longer(this.x0);
		this.x1 = longer(this.x1);
		this.depth = longer(this.depth);
		const count = new Uint32Array(this.capacity);
		count.set(this.count);
		this.count = count;
	}

	/**
	 * @param {number} node
	 * @param {number} count
	 * @param {number} x0
	 * @param {number} x1
	 * @param {number} depth
	 */
	add(node, count, x0, x1, depth) {
		if (this.n === this.capacity)
			this.grow();
		const i = this.n++;
		this.node[i] = node;
		this.count[i] = count;
		this.x0[i] = x0;
		this.x1[i] = x1;
		this.depth[i] = depth;
	}

	/**
	 * The drawn box at a pixel, -1 none.
	 * @param {number} x
	 * @param {number} depth
	 */
	at(x, depth) {
		const row = this.rows.get(depth);
		if (!row)
			return -1;
		let [low, high] = row;
		while (low < high) {
			const mid = (low + high) >> 1;
			if (this.x1[mid] <= x)
				low = mid + 1;
			else
				high = mid;
		}
		return low < row[1] && this.x0[low] <= x ? low : -1;
	}
}

/** A tree, laid out. */
export class Flame {
	/**
	 * @param {Tree} tree
	 * @param {Float64Array} [size]   widths other than tree.total (a difference drawn by one side)
	 */
	constructor(tree, size) {
		this.tree = tree;
		this.size = size || tree.total;
		this.start = size ? flameStarts(tree, size) : tree.start;
		this.whole = tree.n ? this.size[0] : 0;
		let depths = 0;
		for (let i = 0; i < tree.n; i++)
			depths = Math.max(depths, tree.depth[i] + 1);
		this.depths = depths;
		this.offset = new Uint32Array(depths + 1);
		this.order = this.sorted();
		// In the order of `order`, so that a search touches neighbouring memory.
		/** @type {Float64Array} */
		this.begin = new Float64Array(tree.n);
		/** @type {Float64Array} */
		this.end = new Float64Array(tree.n);
		for (let i = 0; i < tree.n; i++) {
			this.begin[i] = this.start[this.order[i]];
			this.end[i] = this.begin[i] + this.size[this.order[i]];
		}
		this.lowest = lowestDepths(tree);
	}

	/** Nodes by depth, then by start. @returns {Uint32Array} */
	sorted() {
		const {tree, offset, start} = this, order = new Uint32Array(tree.n);
		for (let i = 0; i < tree.n; i++)
			offset[tree.depth[i] + 1]++;
		for (let d = 0; d < this.depths; d++)
			offset[d + 1] += offset[d];
		// Level by level, children in drawing order: they come by start without sorting.
		const {first, next} = tree;
		let end = tree.n ? 1 : 0;
		for (let i = 0; i < end; i++)
			for (let c = first[order[i]]; c >= 0; c = next[c])
				order[end++] = c;
		for (let d = 0; d < this.depths; d++) {
			const row = order.subarray(offset[d], offset[d + 1]);
			for (let i = 1; i < row.length; i++) {
				if (start[row[i]] < start[row[i - 1]]) {
					row.sort((a, b) => start[a] - start[b]);
					break;
				}
			}
		}
		return order;
	}

	/**
	 * First place in `order`, of one depth, whose box begins at or after x (or ends after it).
	 * @param {number} depth
	 * @param {number} x
	 * @param {boolean} byEnd
	 * @returns {number}
	 */
	find(depth, x, byEnd) {
		const {begin, end} = this;
		let low = this.offset[depth], high = this.offset[depth + 1];
		while (low < high) {
			const mid = (low + high) >> 1;
			if (byEnd ? end[mid] > x : begin[mid] >= x)
				high = mid;
			else
				low = mid + 1;
		}
		return low;
	}

	/**
	 * First place from `low` on whose box begins at or after x: by steps that double, since it is
	 * near most of the time.
	 * @param {number} low
	 * @param {number} limit
	 * @param {number} x
	 * @returns {number}
	 */
	skip(low, limit, x) {
		const {begin} = this;
		let step = 1, high = low;
		while (high < limit && begin[high] < x) {
			low = high + 1;
			high += step;
			step *= 2;
		}
		high = Math.min(high, limit);
		while (low < high) {
			const mid = (low + high) >> 1;
			if (begin[mid] >= x)
				high = mid;
			else
				low = mid + 1;
		}
		return low;
	}

	/**
	 * The node at x, -1 where there is none.
	 * @param {number} depth
	 * @param {number} x
	 */
	at(depth, x) {
		if (depth < 0 || depth >= this.depths)
			return -1;
		const i = this.find(depth, x, true);
		return i < this.offset[depth + 1] && this.begin[i] <= x ? this.order[i] : -1;
	}

	/**
	 * The boxes of the rows in a window.
	 * @param {FlameBoxes} boxes
	 * @param {FlameWindow} w
	 */
	cull(boxes, w) {
		const last = Math.min(w.last, this.depths - 1);
		for (let d = Math.max(w.first, 0); d <= last; d++) {
			const from = boxes.n;
			this.cullRow(boxes, w, d);
			boxes.rows.set(d, [from, boxes.n]);
		}
	}

	/**
	 * @param {FlameBoxes} boxes
	 * @param {FlameWindow} w
	 * @param {number} depth
	 */
	cullRow(boxes, w, depth) {
		const {order, begin, end} = this, limit = this.offset[depth + 1];
		const scale = w.width / (w.to - w.from), least = FLAME_LEAST / scale;
		const pixel = (/** @type {number} */ x) => Math.round((x - w.from) * scale);
		let i = this.find(depth, w.from, true), run = -1, runTo = 0, runCount = 0, runNode = 0, shown = 0;
		const flush = () => {
			if (run >= 0)
				boxes.add(runNode, runCount, run, runTo, depth);
			run = -1;
		};
		while (i < limit && begin[i] < w.to) {
			const left = Math.min(w.width - 1, Math.max(0, pixel(begin[i])));
			if (end[i] - begin[i] >= least) {
				flush();
				const right = Math.min(w.width, Math.max(left + 1, pixel(end[i])));
				if (right > shown)
					boxes.add(order[i], 1, left, right, depth);
				shown = Math.max(shown, right);
				i++;
				continue;
			}
			// All that begin within half a pixel are small, but maybe the last.
			let j = this.skip(i + 1, limit, begin[i] + least);
			if (j > i + 1 && end[j - 1] - begin[j - 1] >= least)
				j--;
			const right = Math.min(w.width, Math.max(left + 1, pixel(end[j - 1])));
			if (run >= 0 && left <= runTo) {
				runCount += j - i;
				runTo = Math.max(runTo, right);
			} else {
				flush();
				run = left, runTo = right, runCount = j - i, runNode = order[i];
			}
			i = j;
		}
		flush();
	}

	/**
	 * What a hatched box stands for.
	 * @param {number} depth
	 * @param {number} node   its first
	 * @param {number} count
	 */
	sumOf(depth, node, count) {
		const from = this.find(depth, this.start[node], false);
		let total = 0, samples = 0;
		for (let i = from; i < from + count && i < this.offset[depth + 1]; i++) {
			total += this.size[this.order[i]];
			samples += this.tree.samples[this.order[i]];
		}
		return {total, samples};
	}

	/**
	 * Where an arrow key leads.
	 * @param {number} node
	 * @param {'parent' | 'child' | 'left' | 'right'} way
	 * @returns {number} a node; the same when there is none that way
	 */
	step(node, way) {
		const {tree} = this;
		if (way === 'parent')
			return tree.parent[node] >= 0 ? tree.parent[node] : node;
		if (way === 'child') {
			let best = -1;
			for (let c = tree.first[node]; c >= 0; c = tree.next[c])
				if (best < 0 || this.size[c] > this.size[best])
					best = c;
			return best >= 0 && this.size[best] > 0 ? best : node;
		}
		const depth = tree.depth[node], step = way === 'left' ? -1 : 1;
		let i = this.find(depth, this.start[node], false);
		while (i < this.offset[depth + 1] && this.order[i] !== node)
			i++;
		for (i += step; i >= this.offset[depth] && i < this.offset[depth + 1]; i += step)
			if (this.size[this.order[i]] > 0)
				return this.order[i];
		return node;
	}
}

/**
 * Where boxes of other widths begin: children side by side in drawing order.
 * @param {Tree} tree
 * @param {Float64Array} size
 * @returns {Float64Array}
 */
export function flameStarts(tree, size) {
	const start = new Float64Array(tree.n);
	for (let i = 0; i < tree.n; i++) {
		let x = start[i];
		for (let c = tree.first[i]; c >= 0; c = tree.next[c]) {
			start[c] = x;
			x += size[c];
		}
	}
	return start;
}

/**
 * Per node the depth of the lowest box under it.
 * @param {Tree} tree
 * @returns {Uint32Array}
 */
function lowestDepths(tree) {
	const lowest = Uint32Array.from(tree.depth);
	for (let i = tree.n - 1; i > 0; i--) {
		const p = tree.parent[i];
		if (p >= 0 && lowest[p] < lowest[i])
			lowest[p] = lowest[i];
	}
	return lowest;
}

/**
 * Per node: 1 found itself, 2 below a found one, 0 neither. And the weight of the outermost found.
 * @param {Tree} tree
 * @param {Uint8Array} keys   per key: 1 is looked for
 * @returns {{marks: Uint8Array, total: number, boxes: number}}
 */
export function markNodes(tree, keys) {
	const marks = new Uint8Array(tree.n);
	let total = 0, boxes = 0;
	for (let i = 1; i < tree.n; i++) {
		const under = marks[tree.parent[i]] !== 0;
		if (keys[tree.key[i]]) {
			marks[i] = 1;
			boxes++;
			total += under ? 0 : tree.total[i];
		} else if (under) {
			marks[i] = 2;
		}
	}
	return {marks, total, boxes};
}

/**
 * A name in at most so many characters. The last part of a path says most: it is kept whole with
 * as much of the beginning as fits.
 * @param {string} name
 * @param {number} chars
 */
export function fitFlameName(name, chars) {
	if (name.length <= chars)
		return name;
	if (chars < 3)
		return '';
	let nest = 0, last = -1;
	for (let i = 0; i + 1 < name.length; i++) {
		const c = name[i];
		if (c === '<' || c === '(' || c === '{')
			nest++;
		else if (c === '>' && name[i - 1] !== '-' || c === ')' || c === '}')
			nest--;
		else if (!nest && c === ':' && name[i + 1] === ':')
			last = i;
	}
	const tail = name.length - last;
	if (last > 0 && tail + 4 <= chars)
		return name.slice(0, chars - 1 - tail) + '…' + name.slice(last);
	if (last > 0 && tail - 1 <= chars)
		return '…' + name.slice(last + 2);
	return name.slice(0, chars - 1) + '…';
}

/**
 * @typedef {object} FlameStyle
 * @property {number} width      pixels per line of `pixels`
 * @property {number} height
 * @property {number} row        pixels from one row to the next
 * @property {number} gap        pixels left free right of and under a box
 * @property {(depth: number) => number} top   y of a row's first pixel; may be outside
 * @property {number} paper
 * @property {number} hatchA     pixels of hatched boxes
 * @property {number} hatchB
 * @property {(node: number) => number} color   pixel of a box
 */

/**
 * Draws boxes by writing pixels: one line per row, copied as often as the row is high. The time is
 * that of writing the picture, whatever the number of boxes.
 * @param {Uint32Array} pixels
 * @param {FlameBoxes} boxes
 * @param {FlameStyle} style
 */
export function paintFlame(pixels, boxes, style) {
	const {width, paper} = style, line = new Uint32Array(width);
	pixels.fill(paper);
	for (const [depth, [from, to]] of boxes.rows) {
		const y = style.top(depth), y0 = Math.max(0, y), y1 = Math.min(style.height, y + style.row - style.gap);
		if (y0 >= y1)
			continue;
		line.fill(paper);
		for (let i = from; i < to; i++) {
			const x0 = boxes.x0[i], x1 = boxes.x1[i];
			if (boxes.count[i] === 1)
				line.fill(style.color(boxes.node[i]), x0, x1 - x0 > 2 * style.gap ? x1 - style.gap : x1);
		}
		for (let k = y0; k < y1; k++)
			pixels.set(line, k * width);
		for (let i = from; i < to; i++)
			if (boxes.count[i] > 1)
				paintHatch(pixels, style, boxes.x0[i], boxes.x1[i], y0, y1);
	}
}

/**
 * @param {Uint32Array} pixels
 * @param {FlameStyle} style
 * @param {number} x0
 * @param {number} x1
 * @param {number} y0
 * @param {number} y1
 */
function paintHatch(pixels, style, x0, x1, y0, y1) {
	const part = 2 * style.gap, whole = 3 * part;
	for (let y = y0; y < y1; y++) {
		const at = y * style.width;
		for (let x = x0; x < x1; x++)
			pixels[at + x] = (x + y) % whole < part ? style.hatchA : style.hatchB;
	}
}
