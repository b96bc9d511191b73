// SPDX-License-Identifier: MIT OR Apache-2.0
// @ts-nocheck: gives the modules half-made models and looks at their insides on purpose
// The flame graph's layout: what is drawn, what is under a point, where keys lead, the pixels.
import test from 'node:test';
import assert from 'node:assert/strict';
import { Flame, FlameBoxes, flameStarts, markNodes, fitFlameName, paintFlame } from '../../web/flame.js';

/**
 * A tree from nested arrays: [key, self, ...children].
 * @param {any[]} root
 */
function treeOf(root) {
	const rows = [];
	const visit = (node, parent, depth, start) => {
		const at = rows.push({key: node[0], self: node[1], parent, depth, start, total: node[1], children: []}) - 1;
		let x = start;
		for (const child of node.slice(2)) {
			const c = visit(child, at, depth + 1, x);
			rows[at].children.push(c);
			rows[at].total += rows[c].total;
			x += rows[c].total;
		}
		return at;
	};
	visit(root, -1, 0, 0);
	const n = rows.length, column = (make, f) => make.from(rows, f);
	const next = new Int32Array(n).fill(-1);
	for (const r of rows)
		r.children.forEach((c, i) => next[c] = r.children[i + 1] ?? -1);
	return {
		n, parent: column(Int32Array, r => r.parent), key: column(Uint32Array, r => r.key),
		depth: column(Uint32Array, r => r.depth), self: column(Float64Array, r => r.self),
		total: column(Float64Array, r => r.total), samples: column(Float64Array, r => r.total),
		first: column(Int32Array, r => r.children[0] ?? -1), next,
		start: column(Float64Array, r => r.start), weight: rows[0].total, timeOrdered: false,
	};
}

/** @param {number} n  a reproducible tree with many tiny boxes */
function randomTree(n) {
	let seed = 12345;
	const random = () => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) / 0x7fffffff;
	const make = (left, depth) => {
		const node = [Math.floor(random() * 50), random() < 0.5 ? 1 : 0];
		while (left > 1 && depth < 40) {
			const part = Math.max(1, Math.floor(left * random() ** 3));
			node.push(make(part, depth + 1));
			left -= part;
		}
		if (node.length === 2)
			node[1] = 1;
		return node;
	};
	return treeOf(make(n, 0));
}

const small = () => treeOf([0, 0, [1, 2, [2, 3], [3, 5, [2, 1]]], [4, 9]]);

function drawn(flame, w) {
	const boxes = new FlameBoxes();
	boxes.clear();
	flame.cull(boxes, {first: 0, last: 1e9, ...w});
	return boxes;
}

test('boxes stand where their weight puts them', () => {
	const flame = new Flame(small()), boxes = drawn(flame, {from: 0, to: 20, width: 200});
	const seen = [];
	for (let i = 0; i < boxes.n; i++)
		seen.push([flame.tree.key[boxes.node[i]], boxes.depth[i], boxes.x0[i], boxes.x1[i]]);
	assert.deepEqual(seen, [[0, 0, 0, 200], [1, 1, 0, 110], [4, 1, 110, 200], [2, 2, 0, 30],
		[3, 2, 30, 90], [2, 3, 30, 40]]);
});

test('a window shows its part, cut at the edges', () => {
	const flame = new Flame(small()), boxes = drawn(flame, {from: 10, to: 12, width: 100});
	assert.deepEqual([...boxes.x0.subarray(0, boxes.n)], [0, 0, 50]);
	assert.deepEqual([...boxes.x1.subarray(0, boxes.n)], [100, 50, 100]);
});

test('every frame is drawn itself or counted in a hatched box, at any zoom', () => {
	const tree = randomTree(30000), flame = new Flame(tree);
	for (const [from, to] of [[0, tree.weight], [tree.weight * 0.3, tree.weight * 0.31]]) {
		const boxes = drawn(flame, {from, to, width: 777}), scale = 777 / (to - from);
		const sums = new Map();
		for (let i = 0; i < boxes.n; i++)
			sums.set(boxes.depth[i], (sums.get(boxes.depth[i]) || 0) + boxes.count[i]);
		const want = new Map();
		let hidden = 0;
		for (let i = 0; i < tree.n; i++)
			if (tree.start[i] < to && tree.start[i] + tree.total[i] > from)
				want.set(tree.depth[i], (want.get(tree.depth[i]) || 0) + 1);
		for (const [d, n] of want)
			hidden += n - (sums.get(d) || 0);
		// Left out are only boxes of half a pixel to one whose pixel another has.
		const fits = [...tree.total.keys()].filter(i => tree.total[i] * scale >= 0.5 &&
			tree.total[i] * scale < 1).length;
		assert.ok(hidden >= 0 && hidden <= fits, `${hidden} of at most ${fits}`);
	}
});

test('no box narrower than half a pixel is drawn by itself among others', () => {
	const tree = randomTree(30000), flame = new Flame(tree), scale = 500 / tree.weight;
	const boxes = drawn(flame, {from: 0, to: tree.weight, width: 500});
	for (let i = 0; i < boxes.n; i++) {
		if (boxes.count[i] > 1) {
			const sum = flame.sumOf(boxes.depth[i], boxes.node[i], boxes.count[i]);
			assert.ok(sum.total * scale <= boxes.x1[i] - boxes.x0[i] + 1);
		}
		if (i && boxes.depth[i] === boxes.depth[i - 1])
			assert.ok(boxes.x1[i] > boxes.x0[i] && boxes.x0[i] >= boxes.x0[i - 1]);
	}
});

test('a row costs by its pixels, not by its frames', () => {
	const leaves = Array.from({length: 200000}, (_, i) => [i, 1]);
	const flame = new Flame(treeOf([0, 0, ...leaves])), tree = flame.tree;
	let asked = 0;
	flame.begin = new Proxy(flame.begin, {get: (a, k) => (asked++, Reflect.get(a, k))});
	const boxes = drawn(flame, {from: 0, to: tree.weight, width: 1000});
	assert.ok(asked < 1000 * 60, `${asked} looks at boxes`);
	assert.equal(boxes.n, 2);
	assert.equal(boxes.count[1], 200000);
});

test('the node under a point is found, and nothing where nothing is', () => {
	const flame = new Flame(small());
	assert.equal(flame.tree.key[flame.at(2, 3)], 3);
	assert.equal(flame.at(2, 10), -1);
	assert.equal(flame.at(9, 0), -1);
	const boxes = drawn(flame, {from: 0, to: 20, width: 200});
	assert.equal(boxes.node[boxes.at(35, 3)], flame.at(3, 3.5));
	assert.equal(boxes.at(100, 2), -1);
	assert.equal(boxes.at(100, 7), -1);
});

test('arrows lead to callers, the heaviest callee and the neighbours of a row', () => {
	const flame = new Flame(small()), key = n => flame.tree.key[n];
	const one = flame.step(0, 'child');
	assert.equal(key(one), 1);
	assert.equal(key(flame.step(one, 'child')), 3);
	assert.equal(key(flame.step(one, 'right')), 4);
	assert.equal(flame.step(one, 'left'), one);
	assert.equal(flame.step(one, 'parent'), 0);
	assert.equal(flame.step(0, 'parent'), 0);
	const leaf = flame.step(one, 'right');
	assert.equal(flame.step(leaf, 'child'), leaf);
});

test('a stack 20,000 deep is laid out and culled by its rows in view', () => {
	const n = 20001;
	const index = Int32Array.from({length: n}, (_, i) => i - 1);
	const tree = {
		n, parent: index, key: new Uint32Array(n), depth: Uint32Array.from({length: n}, (_, i) => i),
		self: new Float64Array(n), total: new Float64Array(n).fill(7), samples: new Float64Array(n).fill(7),
		first: Int32Array.from({length: n}, (_, i) => i + 1 < n ? i + 1 : -1), next: new Int32Array(n).fill(-1),
		start: new Float64Array(n), weight: 7, timeOrdered: false,
	};
	const flame = new Flame(tree), boxes = new FlameBoxes();
	boxes.clear();
	flame.cull(boxes, {from: 0, to: 7, width: 100, first: 19990, last: 20040});
	assert.equal(boxes.n, 11);
	assert.equal(flame.lowest[0], 20000);
});

test('rows that come unordered are put in order', () => {
	const tree = small();
	const flame = new Flame({...tree, start: tree.start.map((x, i) => tree.depth[i] === 1 ? 20 - x - tree.total[i] : x)});
	const row = flame.order.subarray(flame.offset[1], flame.offset[2]);
	assert.deepEqual([...row].map(i => tree.key[i]), [4, 1]);
});

test('other widths put children side by side in the same order', () => {
	const tree = small(), size = Float64Array.from([10, 4, 1, 3, 0, 6]);
	assert.deepEqual([...flameStarts(tree, size)], [0, 0, 0, 1, 1, 4]);
	assert.equal(new Flame(tree, size).whole, 10);
});

test('what is found counts once, however it nests', () => {
	const tree = small();
	const {marks, total, boxes} = markNodes(tree, Uint8Array.from([0, 0, 1, 1, 0]));
	assert.equal(boxes, 3);
	assert.equal(total, 9);
	assert.deepEqual([...marks].sort(), [0, 0, 0, 1, 1, 1]);
});

test('a name too long keeps its last part', () => {
	assert.equal(fitFlameName('core::iter::Iterator::next', 40), 'core::iter::Iterator::next');
	assert.equal(fitFlameName('core::iter::Iterator::next', 14), 'core::i…::next');
	assert.equal(fitFlameName('core::iter::Iterator::next', 6), '…next');
	assert.equal(fitFlameName('<a::B as c::D>::long_name', 12), '…long_name');
	assert.equal(fitFlameName('abcdefghij', 5), 'abcd…');
	assert.equal(fitFlameName('abcdefghij', 2), '');
	for (let n = 0; n < 30; n++)
		assert.ok(fitFlameName('core::iter::Iterator::next', n).length <= n);
});

test('pixels: rows, gaps and hatches, cut at the picture', () => {
	const tree = treeOf([0, 0, [1, 10], ...Array.from({length: 60}, (_, i) => [i, 1 / 6])]);
	const flame = new Flame(tree), boxes = drawn(flame, {from: 0, to: 20, width: 40});
	const pixels = new Uint32Array(40 * 10);
	paintFlame(pixels, boxes, {
		width: 40, height: 10, row: 6, gap: 1, top: d => d * 6, paper: 1, hatchA: 2, hatchB: 3,
		color: () => 9,
	});
	assert.equal(pixels[0], 9);
	assert.equal(pixels[39], 1);
	assert.equal(pixels[5 * 40], 1);
	const hatch = new Set(pixels.subarray(6 * 40 + 21, 7 * 40));
	assert.deepEqual([...hatch].sort(), [2, 3]);
	assert.equal(pixels[9 * 40], 9);
});
