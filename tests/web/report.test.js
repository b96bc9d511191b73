// SPDX-License-Identifier: MIT OR Apache-2.0
// The page's figures are those of `assay report`: same session, same question, row by row and node
// by node. Needs the program: ASSAY=build/src/cli/assay (and make-session beside it, or in
// MAKE_SESSION).
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import path from 'node:path';
import {after, before, test} from 'node:test';
import {decodeModel} from '../../web/decode.js';
import {defaultQuery, makeProfile} from '../../web/query.js';
import {callTree, nodeShares, calleesTree, callersTree} from '../../web/tree.js';
import {makeDiff} from '../../web/diff.js';
import {addressCosts, oneRunText, table} from '../../web/table.js';
import {rowsText} from '../../web/text.js';
import {stackFunctions} from '../../web/stacks.js';

/** @typedef {import('../../web/types.js').Model} Model */
/** @typedef {import('../../web/types.js').Query} Query */
/** @typedef {import('../../web/types.js').Tree} Tree */
/** @typedef {import('../../web/query.js').Profile} Profile */

const assay = process.env.ASSAY ?? path.resolve('build/src/cli/assay');
const maker = process.env.MAKE_SESSION ?? path.resolve(path.dirname(assay),
	'../../tests/cli/make-session');
const why = !existsSync(assay) ? `no assay at ${assay}` : !existsSync(maker) ?
	`no make-session at ${maker}` : '';
const OPTIONS = {skip: why || false};
let dir = '';

/** @param {string[]} argv */
function run(...argv) {
	return execFileSync(assay, argv, {encoding: 'utf8', maxBuffer: 1 << 29,
		stdio: ['ignore', 'pipe', 'pipe'],
		env: {...process.env, XDG_CACHE_HOME: dir, NO_COLOR: '1'}});
}

/** @param {string} file @param {string[]} options */
function report(file, ...options) {
	return JSON.parse(run('report', file, '--format', 'json', '--min', '0', ...options));
}

/** @param {string} file @returns {Promise<Model>} */
async function modelOf(file) {
	const page = file.replace(/\.assay$/, '.html');
	run('view', file, '--no-open', '--no-source', '-o', page);
	const element = /id="profile"[^>]*>([^<]*)</.exec(readFileSync(page, 'utf8'));
	assert.ok(element, 'the page has its data');
	return decodeModel(element[1]);
}

/**
 * The program prints six digits.
 * @param {number | null} theirs
 * @param {number} ours
 */
function near(theirs, ours) {
	return theirs === null ? Number.isNaN(ours) : Math.abs(theirs - ours) <= 2e-5 * Math.abs(ours) +
		1e-9;
}

/** @param {any} row @param {string[]} names */
function idOf(row, names) {
	return names.map(n => row[n] ?? '').join('|');
}

/**
 * @param {Profile} profile
 * @param {import('../../web/types.js').By} by
 * @param {any} theirs
 */
function compareRows(profile, by, theirs) {
	assert.equal(profile.samples, theirs.samples);
	assert.equal(profile.keptSamples, theirs.kept_samples);
	const ours = table(profile, by).map(r => {
		const name = profile.name(r.key);
		return {name: name.brief, full_name: name.full, line: name.line || '', row: r};
	});
	assert.equal(ours.length, theirs.rows.length, 'as many rows');
	const names = ['name', 'full_name', 'line'];
	/** @type {Map<string, typeof ours>} */
	const byId = new Map();
	for (const o of ours)
		byId.set(idOf(o, names), [...byId.get(idOf(o, names)) ?? [], o]);
	theirs.rows.forEach((/** @type {any} */ t, /** @type {number} */ i) => {
		assert.equal(ours[i].row.self.samples, t.self_samples, `row ${i} in the same order`);
		const candidates = byId.get(idOf(t, names)) ?? [];
		const found = candidates.some(({row}) => row.self.samples === t.self_samples &&
			row.total.samples === t.total_samples &&
			near(t.self, row.self.value) && near(t.self_low, row.self.low) &&
			near(t.self_high, row.self.high) && near(t.total, row.total.value) &&
			near(t.total_low, row.total.low) && near(t.total_high, row.total.high));
		assert.ok(found, `${JSON.stringify(t)}\nours: ${JSON.stringify(candidates.map(c => ({
			self: [c.row.self.value, c.row.self.low, c.row.self.high, c.row.self.samples],
			total: [c.row.total.value, c.row.total.low, c.row.total.high,
				c.row.total.samples]})))}`);
	});
}

/**
 * Both trees as sorted paths with figures. Of callers and callees the program leaves out "all".
 * @param {Profile} profile
 * @param {Tree} tree
 * @param {any} theirs
 * @param {boolean} [noAll]
 */
function compareTree(profile, tree, theirs, noAll = false) {
	const {low, high} = nodeShares(profile, tree);
	/** @type {Map<string, number>} */
	const ids = new Map();
	/** @param {number} parent @param {string} name */
	const pathId = (parent, name) => {
		const text = `${parent} ${name}`, id = ids.get(text) ?? ids.size + 1;
		ids.set(text, id);
		return id;
	};
	/** @type {number[]} */
	const paths = [0];
	const ours = Array.from({length: tree.n}, (_, i) => {
		const name = profile.name(tree.key[i]);
		if (i)
			paths[i] = pathId(paths[tree.parent[i]],
				`${name.full}@${name.module}#${name.file ? 0 : name.line}`);
		return {path: paths[i], samples: tree.samples[i], total: tree.total[i] / (profile.weight ||
			1),
			self: tree.self[i] / (profile.weight || 1), low: low[i], high: high[i]};
	}).slice(noAll && theirs.rows[0]?.name !== 'all' ? 1 : 0);
	/** @type {number[]} */
	const theirPaths = [];
	const list = theirs.rows.map((/** @type {any} */ t, /** @type {number} */ i) => {
		theirPaths[i] = t.parent === null && t.name === 'all' ? 0 :
			pathId(t.parent === null ? 0 : theirPaths[t.parent],
				`${t.full_name}@${t.module ?? ''}#${t.file ? 0 : t.line ?? 0}`);
		return {...t, path: theirPaths[i], samples: t.total_samples};
	});
	/** @param {{path: number, samples: number}} a @param {{path: number, samples: number}} b */
	const order = (a, b) => a.path - b.path || a.samples - b.samples;
	assert.equal(ours.length, list.length, 'as many nodes');
	ours.sort(order);
	list.sort(order);
	ours.forEach((o, i) => {
		const t = list[i];
		const same = o.path === t.path && o.samples === t.total_samples && near(t.total, o.total) &&
			(t.self === null || near(t.self, o.self)) &&
			(t.total_low === null ? true : near(t.total_low, o.low) && near(t.total_high, o.high));
		assert.ok(same, `node ${JSON.stringify(o)}\ntheirs: ${JSON.stringify(t)}`);
	});
}

/** @type {[string[], Partial<Query>][]} */
const QUESTIONS = [
	[[], {}],
	[['--no-inline'], {noInline: true}],
	[['--no-kernel'], {noKernel: true}],
	[['--focus', 'parse|main|work'], {focus: 'parse|main|work'}],
	[['--ignore', 'alloc|find'], {ignore: 'alloc|find'}],
	[['--hide', 'e'], {hide: 'e'}],
	[['--hide', 'a', '--no-inline', '--no-kernel'], {hide: 'a', noInline: true, noKernel: true}],
	[['--time', '200ms..900ms'], {from: 2e8, to: 9e8}],
];

before(() => {
	dir = mkdtempSync(path.join(tmpdir(), 'assay-web-'));
});
after(() => {
	rmSync(dir, {recursive: true, force: true});
});

for (const kind of ['story', 'trouble', 'family', 'hostile', 'deep', 'empty', 'trials', 'until', 'big']) {
	test(`figures equal those of assay report: ${kind}`, OPTIONS, async () => {
		const file = path.join(dir, `${kind}.assay`);
		execFileSync(maker, [kind, file, ...kind === 'big' ? ['3000'] : kind === 'trials' || kind === 'until' ? ['7'] : []]);
		await compareSession(file, kind === 'deep' ? 1 : kind === 'big' ? 2 : QUESTIONS.length);
	});
}

test('figures equal those of assay report: a recording made here, or SESSION=FILE', OPTIONS,
	async t => {
	const file = path.join(dir, 'live.assay');
	if (process.env.SESSION) {
		copyFileSync(process.env.SESSION, file);
	} else {
		try {
			execFileSync(assay, ['record', '-o', file, '--', 'sh', '-c',
				'i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done; ls -R /usr/lib >/dev/null'],
			{stdio: 'ignore', timeout: 60000, env: {...process.env, XDG_CACHE_HOME: dir}});
		} catch {
			t.skip('cannot record here');
			return;
		}
	}
	await compareSession(file);
	await compareInstructions(file, t);
});

/**
 * Costs of instructions are those of assay annotate (its `code`: the samples taken there, inlined or
 * not).
 * @param {string} file
 * @param {import('node:test').TestContext} t
 */
async function compareInstructions(file, t) {
	const model = await modelOf(file), profile = makeProfile(model, defaultQuery());
	const hot = table(profile, 'function').filter(r => r.key < model.functions.n &&
		model.functions.module[r.key] >= 0 && !profile.name(r.key).unsymbolized).slice(0, 8);
	let compared = 0;
	for (const {key} of hot) {
		const name = profile.name(key),
			theirs = JSON.parse(run('annotate', name.full, file, '--format', 'json'));
		/** @type {any[]} */
		const rows = theirs.instructions ?? [];
		const module = model.modules.findIndex(m => m.name === theirs.function.module);
		if (theirs.function.full_name !== name.full || theirs.also_fits?.length || !rows.length ||
			rows.some(r => !r.size || r.module !== theirs.function.module))
			continue;
		const costs = addressCosts(profile, module,
			rows.map(r => ({addr: Number(r.address), len: r.size})));
		rows.forEach((r, i) => {
			const c = costs[i];
			assert.equal(c?.total.samples ?? 0, r.total_samples ?? 0, `${name.full} ${r.address}`);
			if (!c)
				return;
			compared++;
			assert.ok(c.self.samples === r.code_samples && near(r.code, c.self.value) &&
				near(r.code_high, c.self.high) &&
				near(r.total_low, c.total.low) && near(r.total_high, c.total.high),
					JSON.stringify(r));
		});
	}
	t.diagnostic(`${compared} instructions of ${hot.length} functions compared`);
}

test('a row that only one of the runs has is marked on the page as in the report', OPTIONS, async () => {
	const file = path.join(dir, 'runs.assay');
	execFileSync(maker, ['trials', file, '7']);
	const model = await modelOf(file), profile = makeProfile(model, defaultQuery());
	const theirs = report(file).rows;
	for (const row of table(profile, 'function')) {
		const name = profile.name(row.key).brief;
		assert.equal(row.total.runs, theirs.find((/** @type {any} */ t) => t.name === name).runs, name);
		assert.equal(oneRunText(model, row.total), name === 'app::retry' ? 'in one run of 7' : '');
	}
	assert.match(rowsText(profile, table(profile, 'function')), /app::retry.*in one run of 7\n/);
	const hot = model.meta.hottest.filter(h => oneRunText(model, h.total));
	assert.deepEqual(hot.map(h => profile.name(h.function).brief), ['app::retry']);
});

test('differences and verdicts equal those of assay diff', OPTIONS, async () => {
	const make = async (/** @type {string} */ kind, /** @type {string} */ name,
		/** @type {string[]} */ ...more) => {
		const file = path.join(dir, `diff-${name}.assay`);
		execFileSync(maker, [kind, file, ...more]);
		return {file, model: await modelOf(file)};
	};
	const story = await make('story', 'story'), trouble = await make('trouble', 'trouble');
	const few = await make('big', 'few', '800'), many = await make('big', 'many', '3000');
	const family = await make('family', 'family');
	for (const [a, b] of [[story, trouble], [trouble, story], [few, many], [family, story],
		[story, story]])
		await compareDiff(a, b);
	const own = [process.env.SESSION, process.env.SESSION2];
	if (own[0] && own[1]) {
		const [a, b] = await Promise.all(own.map(async (from, i) => {
			const file = path.join(dir, `own${i}.assay`);
			copyFileSync(from ?? '', file);
			return {file, model: await modelOf(file)};
		}));
		await compareDiff(a, b);
	}
});

const heapMaker = path.join(path.dirname(maker), 'make-heap-session');

test('differences of memory equal those of assay diff: of sessions, and of marks', OPTIONS, async () => {
	const [a, b] = await Promise.all(['2000', '9000'].map(async rounds => {
		const file = path.join(dir, `heap${rounds}.assay`);
		execFileSync(heapMaker, [file, rounds, 'leaks'], {stdio: 'ignore'});
		return {file, model: await modelOf(file)};
	}));
	let changed = 0;
	for (const measure of ['peak', 'live', 'allocs', 'bytes', 'churn', 'leaked'])
		for (const by of MEMORY_BYS) {
			const q = {...defaultQuery(), measure};
			const diff = makeDiff(makeProfile(a.model, q), makeProfile(b.model, q), by);
			changed += compareAmounts(diff, by, ['--measure', measure, a.file, b.file]);
		}
	const q = defaultQuery();
	for (const [range, since, at] of /** @type {[string, number, number][]} */ ([['half..', 2, 0], ['..half', 1, 2], ['..', 1, 0]]))
		for (const by of MEMORY_BYS) {
			const diff = makeDiff(makeProfile(b.model, {...q, at: since}), makeProfile(b.model, {...q, since, at}), by);
			changed += compareAmounts(diff, by, ['--marks', range, b.file]);
		}
	assert.ok(changed > 30, `only ${changed} differences`);
});

/** @type {import('../../web/types.js').By[]} */
const MEMORY_BYS = ['function', 'line', 'crate', 'module'];

/**
 * Every row, both ways. Returns how many changed.
 * @param {import('../../web/diff.js').Diff} diff
 * @param {string} by
 * @param {string[]} asked
 */
function compareAmounts(diff, by, asked) {
	let changed = 0;
	for (const which of /** @type {const} */ (['self', 'total'])) {
		const theirs = JSON.parse(run('diff', '--by', by, ...which === 'total' ? ['--total'] : [], ...asked, '--format', 'json'));
		const sums = [diff.a.weight, diff.b.weight];
		assert.deepEqual(sums, [theirs.amount_a, theirs.amount_b], asked.join(' '));
		const ours = diff.rows.map(r => ({name: diff.name(r.key), a: diff.amount(r.a[which].value),
			b: diff.amount(r.b[which].value)})).filter(r => r.a || r.b);
		const text = (/** @type {string} */ name, /** @type {number} */ x, /** @type {number} */ y) => `${name}: ${x} ${y}`;
		assert.deepEqual(
			ours.map(r => text(r.name.full, r.a, r.b)).sort(),
			theirs.rows.map((/** @type {any} */ t) => text(t.full_name, t.amount_a, t.amount_b)).sort(),
			`${which} ${asked.join(' ')} --by ${by}`);
		changed += ours.filter(r => r.a !== r.b).length;
	}
	return changed;
}

test('leaks and resident memory of the page are those of the report', OPTIONS, async () => {
	const file = path.join(dir, 'leaks.assay');
	execFileSync(heapMaker, [file, '4000', 'leaks'], {stdio: 'ignore'});
	const {leaks: theirs, resident: rss} = report(file), model = await modelOf(file), memory = model.meta.memory;
	assert.ok(memory?.leaks);
	const sums = (/** @type {any} */ o) => [o.lost, o.owned ?? o.indirect, o.possible, o.reachable, o.runtime]
		.map(s => [s.blocks, s.bytes]);
	assert.deepEqual(sums(memory.leaks.sum), sums(theirs));
	const lost = theirs.stacks.filter((/** @type {any} */ s) => s.lost.blocks);
	assert.ok(lost.length > 1);
	assert.deepEqual(memory.leaks.owners.filter(o => o.lost.blocks).map(sums), lost.map(sums));
	assert.deepEqual(memory.leaks.owners.filter(o => o.lost.blocks).map(o => stackFunctions(model, o.stack)
		.map(p => model.strings[model.functions.full[p.function]])),
	lost.map((/** @type {any} */ s) => s.stack));
	const [ours] = memory.resident;
	assert.deepEqual([ours.rss, ours.pinned, ours.pinnedPages, ours.untouched, ours.free],
		['rss_bytes', 'pinned_bytes', 'pinned_pages', 'untouched_bytes', 'free_bytes'].map(k => rss[0][k]));
	for (const k of ours.kinds)
		assert.equal(k.bytes, rss[0].parts.filter((/** @type {any} */ p) => p.kind === k.kind)
			.reduce((/** @type {number} */ s, /** @type {any} */ p) => s + p.bytes, 0), k.kind);
	assert.deepEqual(ours.pins.map(p => [model.strings[model.functions.brief[p.function]], p.pages, p.bytes]),
		rss[0].pins.map((/** @type {any} */ p) => [p.function, p.pages, p.bytes])
			.sort((/** @type {any} */ x, /** @type {any} */ y) => y[2] - x[2]));
});

/** @param {{file: string, model: Model}} a @param {{file: string, model: Model}} b */
async function compareDiff(a, b) {
	const pa = makeProfile(a.model, defaultQuery()), pb = makeProfile(b.model, defaultQuery());
	for (const by of ALL_BYS) {
		const diff = makeDiff(pa, pb, by);
		for (const which of /** @type {const} */ (['self', 'total'])) {
			const theirs = JSON.parse(run('diff', a.file, b.file, '--format', 'json', '--by', by,
				'--measure', which));
			await named(`diff --by ${by} --measure ${which}`, () => sameDiff(diff, which, theirs));
		}
	}
}

/** @param {import('../../web/diff.js').Diff} diff @param {'self' | 'total'} which @param {any} theirs */
function sameDiff(diff, which, theirs) {
	const rows = diff.rows.filter(r => r.a[which].samples || r.b[which].samples);
	assert.equal(rows.length, theirs.rows.length, 'as many rows');
	for (const t of theirs.rows) {
		const same = rows.filter(r => {
			const c = r[which], n = diff.name(r.key);
			return n.brief === t.name && r.a[which].samples === t.samples_a &&
				r.b[which].samples === t.samples_b &&
				near(t.share_a, r.a[which].value) && near(t.share_b, r.b[which].value) &&
				Math.abs(t.delta - c.delta) < 2e-6 && Math.abs(t.delta_low - c.low) < 1e-5 &&
				Math.abs(t.delta_high - c.high) < 1e-5 &&
				t.verdict === c.verdict &&
					t.share_only === c.shareOnly;
		});
		assert.ok(same.length, `${JSON.stringify(t)}\nours: ${JSON.stringify(rows.filter(r =>
			diff.name(r.key).brief === t.name).map(r =>
				({a: r.a[which].value, b: r.b[which].value, ...r[which]})))}`);
	}
}

/** @type {import('../../web/types.js').By[]} */
const ALL_BYS = ['function', 'line', 'file', 'crate', 'module', 'thread', 'process'];

/** @param {string} file @param {number} [questions] */
async function compareSession(file, questions = QUESTIONS.length) {
	const model = await modelOf(file);
	for (const [options, change] of QUESTIONS.slice(0, questions)) {
		const profile = makeProfile(model, {...defaultQuery(), ...change});
		for (const by of options.length ? ALL_BYS.slice(0, 2) : ALL_BYS)
			await named(`--by ${by} ${options.join(' ')}`, () =>
				compareRows(profile, by, report(file, '--by', by, ...options)));
		await named(`--tree ${options.join(' ')}`, () =>
			compareTree(profile, callTree(profile), report(file, '--tree', ...options)));
	}
	const profile = makeProfile(model, defaultQuery());
	await named('--inverted', () =>
		compareTree(profile, callTree(profile, {inverted: true, minShare: 0}),
		report(file, '--inverted')));
	await named('--tree --by thread', () =>
		compareTree(profile, callTree(profile, {group: 'thread'}),
		report(file, '--tree', '--by', 'thread')));
	await named('--inverted --by thread', () => compareTree(profile,
		callTree(profile, {group: 'thread', inverted: true, minShare: 0}),
		report(file, '--inverted', '--by', 'thread')));
	await compareSandwich(file, model, profile);
}

/** @param {string} file @param {Model} model @param {Profile} profile */
async function compareSandwich(file, model, profile) {
	const briefs = new Map();
	for (const b of model.functions.brief)
		briefs.set(b, (briefs.get(b) ?? 0) + 1);
	// The program means all functions of a name, the page one: only names that are one's own.
	const rows = table(profile, 'function').filter(r => {
		const name = profile.name(r.key);
		return !name.marker && r.total.samples &&
			briefs.get(model.functions.brief[name.index]) === 1;
	});
	for (const r of rows.slice(0, 3)) {
		const of = profile.name(r.key).brief;
		await named(`--callers ${of}`, () =>
			compareTree(profile, callersTree(profile, r.key, 0), report(file, '--callers', of),
				true));
		await named(`--callees ${of}`, () =>
			compareTree(profile, calleesTree(profile, r.key), report(file, '--callees', of), true));
	}
}

/** @param {string} what @param {() => void} f */
async function named(what, f) {
	try {
		f();
	} catch (e) {
		if (e instanceof Error)
			e.message = `${what}: ${e.message}`;
		throw e;
	}
}
