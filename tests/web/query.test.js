// SPDX-License-Identifier: MIT OR Apache-2.0
// Trees, tables and searches against a second way to the same figures: every sample's path as a
// list of names, transformed and counted one by one.
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {QueryError} from '../../web/filter.js';
import {CATEGORIES} from '../../web/model.js';
import {closureName, withoutGenerics} from '../../web/names.js';
import {defaultQuery, makeProfile} from '../../web/query.js';
import {addressCosts, keyShare, lineCosts, sandwich, table} from '../../web/table.js';
import {calleesTree, callersTree, callTree, nodePath, nodeShare, nodeShares, searchNames,
	searchShare} from '../../web/tree.js';
import {ModelBuilder, randomOf, syntheticModel} from './synthetic.js';

/** @typedef {import('../../web/types.js').Model} Model */
/** @typedef {import('../../web/types.js').Query} Query */
/** @typedef {import('../../web/types.js').Transform} Transform */
/** @typedef {import('../../web/types.js').Tree} Tree */
/** @typedef {import('../../web/query.js').Profile} Profile */

/** @param {Partial<Query>} [change] @returns {Query} */
const query = change => ({...defaultQuery(), ...change});

const WORDS = ['alpha', 'beta', 'gamma', 'delta', 'eps'];

/** Few functions, so that recursion, repeated frames and shared prefixes are common. @param {number} seed */
function tangledModel(seed) {
	const random = randomOf(seed), b = new ModelBuilder();
	/** @param {number} n */
	const below = n => Math.floor(random() * n);
	b.module('/usr/bin/prog');
	b.module('/lib/libc.so.6');
	const process = b.process('prog', 1), other = b.process('child', 2);
	for (let i = 0; i < 3; i++)
		b.thread(`t${i}`, i === 2 ? other : process, 10 + i);
	for (let i = 0; i < 10; i++)
		b.func(`crate${i % 3}::${WORDS[i % 5]}${i}`, {crate: i === 9 ? '' : `crate${i % 3}`,
			module: i % 2,
			file: `f${i % 4}.rs`, line: i, category: i % 5});
	const frames = Array.from({length: 30}, (_, i) => b.frame(
		Array.from({length: 1 + below(3)}, () => ({f: below(10), line: 1 + below(6)})),
		{module: i % 2, flags: (i % 7 === 0 ? 2 : 0) | i % 2}));
	for (let i = 0; i < 400; i++) {
		const stack = Array.from({length: below(9)}, () => frames[Math.floor(random() ** 2 * 30)]);
		b.sample(i * 1e7 + below(1e6), b.stack(stack), {thread: below(3), weight: 1 + below(5),
			end: random() < 0.1 ? 1 + below(8) : 0});
	}
	return b.model();
}

/**
 * The functions of a sample, outermost first, by the query without its transforms; null: dropped.
 * @param {Model} m @param {Query} q @param {number} i
 */
function framesOf(m, q, i) {
	const list = [];
	for (let s = m.samples.stack[i]; s >= 0; s = m.stacks.parent[s])
		list.unshift(m.stacks.frame[s]);
	const places = list.flatMap(fr => {
		let chain = Array.from({length: m.frames.nchain[fr]}, (_, k) => m.frames.chain[fr] + k);
		if (q.noKernel && m.frames.flags[fr] & 2)
			return [];
		if (q.noInline)
			chain = chain.slice(-1);
		return chain.reverse().map(place =>
			({f: m.places.function[place], line: m.places.line[place],
			file: m.strings[m.places.file[place]], frame: fr}));
	});
	/** @param {string} pattern */
	const any = pattern =>
		places.some(p => new RegExp(pattern).test(m.strings[m.functions.full[p.f]]));
	if ((q.focus && !any(q.focus)) || (q.ignore && any(q.ignore)))
		return null;
	return places.filter(p => !q.hide ||
		!new RegExp(q.hide).test(m.strings[m.functions.full[p.f]]));
}

/**
 * @param {Model} m
 * @param {{key: string, f: number}[]} path
 * @param {Transform} t
 * @returns {{key: string, f: number}[] | null}
 */
function transformed(m, path, t) {
	const name = (/** @type {number} */ f) => m.strings[m.functions.full[f]];
	const own = t.f === undefined ? '' : name(t.f);
	const at = path.findIndex(p => p.key === own);
	/** @param {number} f */
	const crate = f => m.strings[m.functions.crate[f]] ||
		`[${m.modules[m.functions.module[f]]?.name}]`;
	switch (t.kind) {
	case 'focus':
		return at < 0 ? null : path.slice(at);
	case 'drop':
		return at < 0 ? path : null;
	case 'merge':
		return path.filter(p => p.key !== own);
	case 'fold':
		return path.filter(p => m.functions.category[p.f] !== CATEGORIES.indexOf(t.name ?? ''));
	case 'recursion':
		if (t.f === undefined)
			return path.filter((p, i) => i === 0 || path[i - 1].key !== p.key);
		return at < 0 ? path :
			[...path.slice(0, at), ...path.slice(path.map(p => p.key).lastIndexOf(own))];
	case 'crate': {
		const all = t.f === undefined;
		return path.map(p => all || crate(p.f) === crate(t.f ?? -1) ? {...p, key: crate(p.f)} : p)
			.filter((p, i, list) => i === 0 || p.key !== list[i - 1].key || p.key !== crate(p.f));
	}
	}
}

/** Paths of names -> {weight, samples} by the long way. @param {Model} m @param {Query} q */
function slowPaths(m, q) {
	/** @type {{path: string[], weight: number, i: number}[]} */
	const out = [];
	for (let i = 0; i < m.samples.n; i++) {
		if (q.threads && !q.threads.includes(m.samples.thread[i]))
			continue;
		if (m.samples.time[i] < q.from || (q.to && m.samples.time[i] >= q.to))
			continue;
		/** @type {{key: string, f: number}[] | null} */
		let path = framesOf(m, q, i)?.map(p =>
			({key: m.strings[m.functions.full[p.f]], f: p.f})) ?? null;
		for (const t of q.transforms)
			path = path && transformed(m, path, t);
		if (!path)
			continue;
		let end = m.samples.end[i] & 255;
		if (end === 0 && m.samples.stack[i] < 0)
			end = 9;
		const focused = q.transforms.some(t => t.kind === 'focus');
		const marker = end && !focused ? [m.strings[m.functions.full[m.endFunction[end]]]] : [];
		out.push({path: [...marker, ...path.map(p => p.key)], weight: m.samples.weight[i], i});
	}
	return out;
}

/** @param {Profile} p @param {Tree} tree */
function treePaths(p, tree) {
	/** @type {Map<string, {total: number, self: number, samples: number}>} */
	const out = new Map();
	for (let i = 0; i < tree.n; i++) {
		const path = nodePath(tree, i).map(key => p.name(key).full).join(' > ');
		assert.ok(!out.has(path), `two nodes are ${path}`);
		out.set(path, {total: tree.total[i], self: tree.self[i], samples: tree.samples[i]});
	}
	return out;
}

/** @param {{path: string[], weight: number}[]} list */
function countPaths(list) {
	/** @type {Map<string, {total: number, self: number, samples: number}>} */
	const out = new Map([['', {total: 0, self: 0, samples: 0}]]);
	for (const {path, weight} of list) {
		for (let n = 0; n <= path.length; n++) {
			const id = path.slice(0, n).join(' > ');
			const node = out.get(id) ?? {total: 0, self: 0, samples: 0};
			node.total += weight;
			node.samples++;
			node.self += n === path.length ? weight : 0;
			out.set(id, node);
		}
	}
	return out;
}

/** @param {Map<string, any>} a @param {Map<string, any>} b @param {string} what */
function sameMaps(a, b, what) {
	assert.deepEqual(Object.fromEntries([...a].sort()), Object.fromEntries([...b].sort()), what);
}

/** @type {Partial<Query>[]} */
const QUERIES = [
	{}, {noInline: true}, {noKernel: true}, {focus: 'alpha|beta1'}, {ignore: 'gamma'},
		{hide: 'delta|eps'},
	{threads: [1]}, {threads: [0, 2], from: 1e9, to: 3e9}, {focus: 'a', ignore: 'eps', hide: 'beta',
		noKernel: true},
];
/** @type {Transform[][]} */
const TRANSFORMS = [
	[{kind: 'focus', f: 1}], [{kind: 'drop', f: 2}], [{kind: 'merge', f: 3}],
		[{kind: 'fold', name: 'std'}],
	[{kind: 'recursion', f: 0}], [{kind: 'recursion'}], [{kind: 'crate', f: 1}],
	[{kind: 'crate'}], [{kind: 'focus', f: 4}, {kind: 'crate'}],
	[{kind: 'focus', f: 1}, {kind: 'focus', f: 0}], [{kind: 'merge', f: 0}, {kind: 'focus', f: 1}],
	[{kind: 'focus', f: 0}, {kind: 'recursion', f: 1}],
		[{kind: 'fold', name: 'panic'}, {kind: 'crate', f: 0}],
	[{kind: 'recursion', f: 0}, {kind: 'recursion', f: 1}],
		[{kind: 'drop', f: 4}, {kind: 'focus', f: 2}, {kind: 'merge', f: 3}],
];

test('the call tree is that of every sample looked at by itself, for all filters', () => {
	for (let seed = 1; seed <= 5; seed++) {
		const m = tangledModel(seed);
		for (const change of QUERIES) {
			const q = query(change), p = makeProfile(m, q), slow = slowPaths(m, q);
			const tree = callTree(p);
			sameMaps(treePaths(p, tree), countPaths(slow), JSON.stringify(change));
			assert.equal(p.keptSamples, slow.length);
			assert.ok(p.keptWeight <= p.weight);
		}
	}
});

test('transforms change paths as they say, one after the other', () => {
	for (let seed = 1; seed <= 6; seed++) {
		const m = tangledModel(seed);
		for (const transforms of TRANSFORMS) {
			const q = query({transforms}), p = makeProfile(m, q);
			// Two recursions at once need not come out as one after the other where they interleave.
			if (transforms.filter(t => t.kind === 'recursion').length > 1) {
				assert.equal(p.keptSamples, p.samples);
				continue;
			}
			sameMaps(treePaths(p, callTree(p)), countPaths(slowPaths(m, q)),
				JSON.stringify(transforms));
		}
	}
});

test('inverted, callers and callees are the same paths read from the other end', () => {
	const m = tangledModel(3), q = query(), p = makeProfile(m, q), slow = slowPaths(m, q);
	const back = slow.map(s => ({...s, path: [...s.path].reverse()}));
	const inverted = countPaths(back);
	const own = treePaths(p, callTree(p, {inverted: true, minShare: 0}));
	for (const [path, node] of inverted)
		assert.deepEqual([own.get(path)?.total, own.get(path)?.samples], [node.total, node.samples],
			path);
	assert.equal(own.size, inverted.size);
	for (let f = 0; f < 10; f++) {
		const name = m.strings[m.functions.full[f]];
		const through = slow.filter(s => s.path.includes(name));
		const callers = countPaths(
			through.map(s => ({...s, path: s.path.slice(0, s.path.indexOf(name) + 1).reverse()})));
		const callees = countPaths(
			through.map(s => ({...s, path: s.path.slice(s.path.indexOf(name))})));
		const c = treePaths(p, callersTree(p, f, 0));
		for (const [path, node] of callers)
			assert.equal(c.get(path)?.total, node.total, path);
		assert.equal(c.size, callers.size);
		sameMaps(treePaths(p, calleesTree(p, f)), callees, name);
		const s = sandwich(p, f), samples = through.length;
		assert.equal(s.total.samples, samples);
		assert.equal(s.callers.samples[0], samples);
		assert.equal(s.self.samples, slow.filter(x => x.path.at(-1) === name).length);
	}
});

test('threads and processes stand on top when asked for', () => {
	const m = tangledModel(4), p = makeProfile(m, query()), slow = slowPaths(m, query());
	for (const group of /** @type {const} */ (['thread', 'process'])) {
		const named = slow.map(s => {
			const t = m.threads[m.samples.thread[s.i]];
			return {...s, path: [group === 'thread' ? t.name : m.processes[t.process].name,
				...s.path]};
		});
		sameMaps(treePaths(p, callTree(p, {group})), countPaths(named), group);
		const back = countPaths(
			named.map(s => ({...s, path: [s.path[0], ...s.path.slice(1).reverse()]})));
		const own = treePaths(p, callTree(p, {group, inverted: true, minShare: 0}));
		for (const [path, node] of back)
			assert.equal(own.get(path)?.total, node.total, path);
	}
});

test('in time order each thread is its samples from left to right, equal neighbours joined', () => {
	const m = tangledModel(5), p = makeProfile(m, query()), tree = callTree(p, {order: 'time'});
	assert.ok(tree.timeOrdered && tree.cut === 0);
	assert.equal(tree.total[0], p.weight);
	/** @type {string[]} */
	const boxes = [];
	for (let i = 1; i < tree.n; i++) {
		const up = tree.parent[i];
		assert.ok(tree.start[i] >= tree.start[up] && tree.start[i] +
			tree.total[i] <= tree.start[up] + tree.total[up]);
		if (tree.next[i] >= 0)
			assert.ok(tree.start[tree.next[i]] >= tree.start[i] + tree.total[i],
				'siblings do not overlap');
		if (tree.self[i])
			boxes.push(nodePath(tree, i).map(k => p.name(k).full).join(' > '));
	}
	const slow = slowPaths(m, query());
	const heaviest = [0, 1, 2].sort((a, b) => weightOf(b) - weightOf(a));
	/** @param {number} t */
	function weightOf(t) {
		return slow.filter(s => m.samples.thread[s.i] === t).reduce((w, s) => w + s.weight, 0);
	}
	const leaves = heaviest.flatMap(t => slow.filter(s => m.samples.thread[s.i] === t)
		.map(s => [m.threads[t].name, ...s.path].join(' > ')));
	// A box with self figures stands for samples that follow each other under one parent.
	assert.deepEqual(new Set(boxes), new Set(leaves));
	for (const node of [1, 2, 5, tree.n - 1])
		assert.equal(nodeShare(p, tree, node).samples, tree.samples[node]);
});

test('too many boxes in time order are made fewer, no weight is lost', () => {
	const m = syntheticModel({samples: 60000, stacks: 6000, depth: 40});
	const p = makeProfile(m, query()), tree = callTree(p, {order: 'time'});
	assert.ok((tree.slot ?? 1) > 1 && tree.n <= 2 ** 20 + 10, `${tree.slot} ${tree.n}`);
	assert.ok(Math.abs(tree.total[0] - p.weight) < 1e-6 * p.weight);
	assert.equal(tree.samples[0], p.samples);
	for (let i = 1; i < tree.n; i++) {
		const up = tree.parent[i];
		assert.ok(tree.start[i] >= tree.start[up] &&
			tree.start[i] + tree.total[i] <= tree.start[up] + tree.total[up] + 1);
	}
	/** @param {Tree} t */
	const selfOf = t => {
		const sums = new Float64Array(p.keyCount);
		for (let i = 1; i < t.n; i++)
			sums[t.key[i]] += t.self[i];
		return sums;
	};
	if (!tree.cut)
		assert.deepEqual(selfOf(tree), selfOf(callTree(p)));
	for (const node of [1, 2, 77, tree.n - 1])
		assert.equal(nodeShare(p, tree, node).samples, tree.samples[node]);
});

test('children are drawn heaviest first and boxes stand side by side', () => {
	const p = makeProfile(tangledModel(2), query()), tree = callTree(p);
	for (let i = 0; i < tree.n; i++) {
		let x = tree.start[i], last = Infinity, sum = 0;
		for (let c = tree.first[i]; c >= 0; c = tree.next[c]) {
			assert.equal(tree.parent[c], i);
			assert.ok(c > i && tree.total[c] <= last);
			assert.equal(tree.start[c], x);
			x += last = tree.total[c];
			sum += tree.total[c];
		}
		assert.equal(tree.total[i], sum + tree.self[i]);
		assert.equal(tree.depth[i], i ? tree.depth[tree.parent[i]] + 1 : 0);
	}
});

test('what is too light is left out of a tree, its weight is not', () => {
	const p = makeProfile(tangledModel(2), query()), all = callTree(p),
		some = callTree(p, {minShare: 0.05});
	assert.ok(some.n > 1 && some.n < all.n);
	assert.equal(some.total[0], all.total[0]);
	for (let i = 1; i < some.n; i++)
		assert.ok(some.total[i] >= 0.05 * p.weight);
	assert.equal(nodeShare(p, some, 1).value, some.total[1] / p.weight);
});

test('rows count a sample once per key, recursion or not', () => {
	const m = tangledModel(6), p = makeProfile(m, query()), slow = slowPaths(m, query());
	/** @type {[import('../../web/types.js').By, (p: {f: number, line: number, file: string, frame: number}) => string][]} */
	const ways = [
		['function', x => m.strings[m.functions.full[x.f]]],
		['file', x => x.file],
		['crate', x => m.strings[m.functions.crate[x.f]] ||
			`[${m.modules[m.frames.module[x.frame]].name}]`],
		['module', x => m.modules[m.frames.module[x.frame]].path],
		['line', x => `${m.strings[m.functions.full[x.f]]} ${x.file}:${x.line}`],
	];
	for (const [by, idOf] of ways) {
		/** @type {Map<string, [number, number]>} */
		const right = new Map();
		for (const s of slow) {
			const ids = (framesOf(m, query(), s.i) ?? []).map(idOf);
			for (const id of new Set(ids))
				right.set(id, [(right.get(id)?.[0] ?? 0) + 1, right.get(id)?.[1] ?? 0]);
			const leaf = ids.at(-1);
			if (leaf !== undefined)
				right.set(leaf, [right.get(leaf)?.[0] ?? 0, (right.get(leaf)?.[1] ?? 0) + 1]);
		}
		const rows = table(p, by).filter(r => !p.name(r.key).marker);
		const own = new Map(rows.map(r => {
			const n = p.name(r.key);
			return [by === 'line' ? `${n.full} ${n.file}:${n.line}` : n.full,
				[r.total.samples, r.self.samples]];
		}));
		sameMaps(own, right, by);
		for (let i = 1; i < rows.length; i++)
			assert.ok(rows[i - 1].self.value >= rows[i].self.value);
	}
	const shares = table(p, 'thread');
	assert.equal(shares.reduce((n, r) => n + r.self.samples, 0), p.samples);
});

test('one key asked alone has the figures of its row', () => {
	const p = makeProfile(syntheticModel({samples: 5000, stacks: 300}), query());
	for (const row of table(p, 'function').slice(0, 20)) {
		const one = keyShare(p, row.key);
		for (const side of /** @type {const} */ (['self', 'total']))
			for (const what of /** @type {const} */ (['value', 'low', 'high', 'samples']))
				assert.ok(Math.abs(one[side][what] - row[side][what]) < 1e-9, `${side} ${what}`);
	}
});

test('a node asked alone has the interval that all nodes together get', () => {
	const p = makeProfile(syntheticModel({samples: 5000, stacks: 300}), query());
	for (const tree of [callTree(p), callTree(p, {inverted: true}), callTree(p, {order: 'time'}),
		callTree(p, {group: 'thread', minShare: 0.01})]) {
		const {low, high} = nodeShares(p, tree, 0.02);
		let seen = 0;
		for (let i = 0; i < tree.n; i++) {
			if (Number.isNaN(low[i]))
				continue;
			const s = nodeShare(p, tree, i);
			assert.ok(Math.abs(s.low - low[i]) < 1e-9 && Math.abs(s.high - high[i]) < 1e-9,
				`node ${i}`);
			assert.equal(s.samples, tree.samples[i]);
			seen++;
		}
		assert.ok(seen > 3);
	}
});

test('search counts each sample once, whatever matches in it', () => {
	const m = tangledModel(7), p = makeProfile(m, query()), slow = slowPaths(m, query());
	for (const [text, test] of /** @type {[string, (s: string) => boolean][]} */ ([
		['ALPHA', s => s.includes('alpha')],
			['/^crate1::.*[38]$/', s => /^crate1::.*[38]$/.test(s)],
		['nothing', () => false], ['(', s => s.includes('(')]])) {
		const share = searchShare(p, searchNames(p, text));
		assert.equal(share.samples, slow.filter(s => s.path.some(test)).length, text);
	}
	assert.equal(searchShare(p, searchNames(p, '')).samples, 0);
	assert.throws(() => searchNames(p, '/(/'), QueryError);
});

test('lines and instructions get what their samples cost, inlined code at its own lines', () => {
	const m = tangledModel(8), q = query(), p = makeProfile(m, q);
	const costs = lineCosts(p, 'f1.rs');
	/** @type {Map<number, [number, number]>} */
	const right = new Map();
	for (let i = 0; i < m.samples.n; i++) {
		const places = framesOf(m, q, i) ?? [];
		for (const line of new Set(places.filter(x => x.file === 'f1.rs').map(x => x.line)))
			right.set(line, [(right.get(line)?.[0] ?? 0) + 1, right.get(line)?.[1] ?? 0]);
		const leaf = places.at(-1);
		if (leaf?.file === 'f1.rs')
			right.set(leaf.line, [right.get(leaf.line)?.[0] ?? 0, (right.get(leaf.line)?.[1] ?? 0) +
				1]);
	}
	assert.deepEqual(
		new Map([...costs].map(([line, c]) => [line, [c.total.samples, c.self.samples]])), right);
	assert.equal(lineCosts(p, 'none.rs').size, 0);

	const insns = Array.from({length: 100}, (_, i) => ({addr: 4096 + 4 * i, len: 4}));
	const byInsn = addressCosts(p, 1, insns), own = insns.map(() => [0, 0]);
	for (let i = 0; i < m.samples.n; i++) {
		const at = [];
		for (let s = m.samples.stack[i]; s >= 0; s = m.stacks.parent[s]) {
			const fr = m.stacks.frame[s], addr = m.frames.addr[fr] - (m.frames.flags[fr] & 1 ? 0 :
				1);
			at.push(m.frames.module[fr] === 1 ? insns.findIndex(x => addr >= x.addr &&
				addr < x.addr + 4) : -1);
		}
		for (const insn of new Set(at.filter(x => x >= 0)))
			own[insn][0]++;
		if (at.length && at[0] >= 0)
			own[at[0]][1]++;
	}
	assert.deepEqual(byInsn.map(c => c ? [c.total.samples, c.self.samples] : [0, 0]), own);
});

test('generics fold into one function, names that begin with < keep their type', () => {
	assert.equal(closureName('main::{closure}', 9), 'main::{closure:9}');
	assert.equal(closureName('main::{closure}::run', 9), 'main::{closure}::run');
	assert.equal(closureName('main::{closure}', 0), 'main::{closure}');
	assert.equal(withoutGenerics('Vec<u8>::push'), 'Vec<_>::push');
	assert.equal(withoutGenerics('<Foo<T> as Bar<U>>::run::<X>'), '<Foo<_> as Bar<_>>::run::<_>');
	assert.equal(withoutGenerics('HashMap<K,Vec<V>,fn(A) -> B>::get'), 'HashMap<_>::get');
	assert.equal(withoutGenerics('a::operator<'), 'a::operator<');
	assert.equal(withoutGenerics('std::operator<< <char>'), 'std::operator<< <char>');
	assert.equal(withoutGenerics('broken<T'), 'broken<T');
	const b = new ModelBuilder();
	b.module('/p');
	const fs = ['Vec<u8>::push', 'Vec<T>::push', 'Vec<T>::pop', 'main'].map(brief =>
		b.func(`alloc::vec::${brief}`, {brief, crate: 'alloc', file: 'vec.rs'}));
	const [u8, t, pop, main] = fs.map(f => b.frame([{f}]));
	[u8, t, t, pop].forEach((leaf, i) => b.sample(i * 1e6, b.stack([main, leaf])));
	const m = b.model(), folded = makeProfile(m, query({generics: false}));
	const rows = table(folded, 'function').map(r => [folded.name(r.key).brief, r.self.samples]);
	assert.deepEqual(rows, [['Vec<_>::push', 3], ['Vec<T>::pop', 1], ['main', 0]]);
	assert.equal(folded.keyOf(1), 0);
	assert.equal(callTree(folded).n, 4);
	assert.equal(callTree(makeProfile(m, query())).n, 5);
	assert.equal(
		makeProfile(m, query({generics: false, transforms: [{kind: 'drop', f: 1}]})).keptSamples,
		1);
});

test('bad and dangerous expressions are refused with the field they stand in', () => {
	const m = tangledModel(1);
	for (const [field, pattern] of /** @type {const} */ ([['focus', '('], ['ignore', '(a+)+$'],
		['hide', '(a|b)*c'],
		['focus', '((x*)y)*'], ['focus', 'a'.repeat(501)], ['hide', '(?:a{1,9}){2,}']]))
		assert.throws(() => makeProfile(m, query({[field]: pattern})),
			e => e instanceof QueryError && e.field === field, pattern);
	for (const pattern of ['(foo|bar)::baz', '^a.*b+$', '[(+]+', 'x{2}', '(ab)+', '\\(+'])
		makeProfile(m, query({focus: pattern}));
	assert.throws(() => makeProfile(m, query({from: 5, to: 4})), QueryError);
});

test('nothing at all is a profile too', () => {
	for (const m of [new ModelBuilder().model(), tangledModel(1)]) {
		const p = makeProfile(m, query({focus: 'no such name'}));
		for (const o of [{}, {inverted: true}, {order: /** @type {const} */ ('time')},
			{group: /** @type {const} */ ('thread')}])
			assert.equal(callTree(p, o).n, 1);
		assert.deepEqual(table(p, 'function'), []);
		assert.equal(keyShare(p, 0).total.samples, 0);
		assert.equal(p.name(0xffffffff).brief, 'all');
		assert.equal(p.name(1e9).brief, 'all');
	}
});

test('20,000 frames of recursion work in every shape', () => {
	const b = new ModelBuilder(), f = b.func('f'), g = b.func('g');
	const [ff, gf] = [b.frame([{f}]), b.frame([{f: g}])];
	const deep = Array.from({length: 20000}, (_, i) => i % 2 ? gf : ff);
	for (let i = 0; i < 40; i++)
		b.sample(i * 1e6, b.stack(deep.slice(0, 20000 - i * 3)));
	const m = b.model(), p = makeProfile(m, query());
	assert.equal(callTree(p).n, 20001);
	assert.ok(callTree(p, {inverted: true}).n > 20000);
	assert.ok(callTree(p, {order: 'time'}).n > 20000);
	assert.equal(table(p, 'function')[0].total.samples, 40);
	assert.equal(sandwich(p, 0).callees.n, 20001);
	const one = makeProfile(m, query({transforms: [{kind: 'recursion', f: 0}]}));
	assert.ok(callTree(one).n <= 4);
});
