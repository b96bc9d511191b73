// SPDX-License-Identifier: MIT OR Apache-2.0
// Invented sessions. All of it follows from the seed.

/** @typedef {import('../../web/types.js').Model} Model */

/**
 * xorshift32; numbers in [0, 1).
 * @param {number} seed
 */
export function randomOf(seed) {
	let s = (seed * 2654435761 >>> 0) || 1;
	return () => {
		s ^= s << 13;
		s ^= s >>> 17;
		s ^= s << 5;
		return (s >>> 0) / 2 ** 32;
	};
}

/** Collects what a Model has, name by name. */
export class ModelBuilder {
	constructor() {
		/** @type {string[]} */
		this.strings = [''];
		/** @type {Map<string, number>} */
		this.ids = new Map([['', 0]]);
		/** @type {{[table: string]: {[column: string]: number[]}}} */
		this.t = {
			functions: {brief: [], full: [], crate: [], file: [], line: [], module: [], lang: [],
				flags: [], category: []},
			places: {function: [], file: [], line: [], column: [], flags: []},
			frames: {module: [], addr: [], flags: [], chain: [], nchain: []},
			stacks: {parent: [], frame: []},
			samples: {time: [], thread: [], stack: [], weight: [], cpu: [], end: []},
			ticks: {time: [], cpu: [], taken: [], delivered: [], throttled: []},
			losses: {from: [], to: [], count: []},
			trials: {start: [], end: []},
			heap: {thread: [], stack: [], folded: [], end: [], domain: [], allocs: [], bytes: [],
				live: [], peak: [], churn: [], growth: [], leaked: []},
			heapMarks: {moment: [], row: [], bytes: []},
			heapTimes: {process: [], time: [], live: [], high: [], mapped: [], resident: []},
		};
		/** @type {Model['modules']} */
		this.modules = [];
		/** @type {Model['processes']} */
		this.processes = [];
		/** @type {Model['threads']} */
		this.threads = [];
		/** @type {Model['listings']} */
		this.listings = [];
		/** @type {Model['sources']} */
		this.sources = [];
		/** @type {Map<string, number>} */
		this.nodes = new Map();
	}

	/** @param {string} text */
	string(text) {
		let id = this.ids.get(text);
		if (id === undefined) {
			id = this.strings.push(text) - 1;
			this.ids.set(text, id);
		}
		return id;
	}

	/** @param {string} path */
	module(path) {
		const name = path.split('/').pop() ?? path;
		return this.modules.push({path, name, buildId: 'ab'.repeat(20),
			kind: path === '[kernel]' ? 2 : 0}) - 1;
	}

	/** @param {string} name @param {number} pid */
	process(name, pid) {
		return this.processes.push({pid, parent: -1, name, start: 0, end: 0}) - 1;
	}

	/** @param {string} name @param {number} process @param {number} tid */
	thread(name, process, tid) {
		return this.threads.push({tid, process, name, start: 0, end: 0}) - 1;
	}

	/** @param {string} table @param {{[column: string]: number}} row */
	add(table, row) {
		const t = this.t[table];
		let n = 0;
		for (const name of Object.keys(t))
			n = t[name].push(row[name] ?? 0);
		return n - 1;
	}

	/**
	 * @param {string} full
	 * @param {{brief?: string, crate?: string, file?: string, line?: number, module?: number,
	 *   category?: number, flags?: number}} [o]
	 */
	func(full, o = {}) {
		return this.add('functions', {
			full: this.string(full), brief: this.string(o.brief ?? full),
			crate: this.string(o.crate ?? ''), file: this.string(o.file ?? ''),
			line: o.line ?? 0, module: o.module ?? 0, lang: 1, flags: o.flags ?? 0,
			category: o.category ?? 0,
		});
	}

	/**
	 * A frame: functions innermost first, the last one physical.
	 * @param {{f: number, line?: number, file?: string}[]} chain
	 * @param {{addr?: number, module?: number, flags?: number}} [o]
	 */
	frame(chain, o = {}) {
		const first = this.t.places.function.length;
		chain.forEach((c, i) => this.add('places', {
			function: c.f, line: c.line ?? 0, column: 1,
			file: c.file === undefined ? this.t.functions.file[c.f] : this.string(c.file),
			flags: i < chain.length - 1 ? 1 : 0,
		}));
		return this.add('frames', {module: o.module ?? this.t.functions.module[chain[0].f],
			addr: o.addr ?? this.t.frames.addr.length * 16 + 4096, flags: o.flags ?? 0,
			chain: first, nchain: chain.length});
	}

	/** @param {number[]} frames  outermost first; "" is none */
	stack(frames) {
		let parent = -1;
		for (const frame of frames) {
			const name = `${parent},${frame}`;
			let node = this.nodes.get(name);
			if (node === undefined) {
				node = this.add('stacks', {parent, frame});
				this.nodes.set(name, node);
			}
			parent = node;
		}
		return parent;
	}

	/** @param {number} time @param {number} stack @param {{thread?: number, weight?: number,
	 *   cpu?: number, end?: number}} [o] */
	sample(time, stack, o = {}) {
		return this.add('samples', {time, stack, thread: o.thread ?? 0, weight: o.weight ?? 1e6,
			cpu: o.cpu ?? 0, end: o.end ?? 0});
	}

	/**
	 * @param {Partial<import('../../web/types.js').Meta>} [meta]
	 * @returns {Model}
	 */
	model(meta = {}) {
		if (!this.processes.length)
			this.process('prog', 100);
		if (!this.threads.length)
			this.thread('prog', 0, 100);
		if (!this.modules.length)
			this.module('/usr/bin/prog');
		const markers = Int32Array.from({length: 10}, (_, e) => e === 0 ? -1 :
			this.func(e === 9 ? '[no user stack]' : `[truncated: reason-${e}]`,
				{flags: 9, module: -1, category: 8}));
		const order = Array.from(this.t.samples.time.keys())
			.sort((a, b) => this.t.samples.time[a] - this.t.samples.time[b] || a - b);
		for (const name of Object.keys(this.t.samples)) {
			const column = this.t.samples[name];
			this.t.samples[name] = order.map(i => column[i]);
		}
		const types = {
			functions: [Uint32Array, {module: Int32Array, lang: Uint8Array, flags: Uint8Array,
				category: Uint8Array}],
			places: [Uint32Array, {flags: Uint8Array}],
			frames: [Uint32Array, {module: Int32Array, addr: Float64Array, flags: Uint8Array}],
			stacks: [Uint32Array, {parent: Int32Array}],
			samples: [Float64Array, {thread: Uint32Array, stack: Int32Array, cpu: Uint16Array,
				end: Uint16Array}],
			ticks: [Float64Array, {cpu: Uint32Array}],
			losses: [Float64Array, {}],
			trials: [Float64Array, {}],
			heap: [Float64Array, {thread: Uint32Array, stack: Int32Array, folded: Int32Array,
				end: Uint16Array, domain: Uint8Array}],
			heapMarks: [Float64Array, {moment: Uint32Array, row: Uint32Array}],
			heapTimes: [Float64Array, {process: Uint32Array}],
		};
		/** @type {any} */
		const tables = {};
		for (const [table, [Usual, special]] of Object.entries(/** @type {any} */ (types))) {
			tables[table] = {n: Object.values(this.t[table])[0].length};
			for (const [name, values] of Object.entries(this.t[table]))
				tables[table][name] = (special[name] ?? Usual).from(values);
		}
		const last = this.t.samples.time.at(-1) ?? 0;
		return {
			...tables, strings: this.strings, modules: this.modules, processes: this.processes,
			threads: this.threads, endFunction: markers, listings: this.listings,
			sources: this.sources,
			meta: {
				version: '0.1.0', program: 'prog', args: ['./prog'], info: {}, startRealtime: 0,
				duration: last, rate: 997, cpus: 2, unit: 'ns', exit: 0, cpuTime: null,
				wall: last, trust: {lines: [], samples: tables.samples.n, lost: 0,
					complete: tables.samples.n, repaired: 0, truncated: 0},
				next: [], hottest: [], notes: [], file: 'prog.assay', ...meta,
			},
		};
	}
}

/**
 * Large and meaningless: for speed and for tests that compare two ways to one figure.
 * @param {{samples: number, stacks: number, depth?: number, functions?: number, threads?: number,
 *   seed?: number}} o  stacks: distinct ones that samples stand on
 * @returns {Model}
 */
export function syntheticModel(o) {
	const random = randomOf(o.seed ?? 1);
	const depth = o.depth ?? 40, nfunctions = o.functions ?? 3000, threads = o.threads ?? 4;
	const b = new ModelBuilder();
	/** @param {number} n */
	const below = n => Math.floor(random() * n);
	b.module('/usr/bin/prog');
	b.module('/lib/libc.so.6');
	const process = b.process('prog', 100);
	for (let i = 0; i < threads; i++)
		b.thread(`worker-${i}`, process, 100 + i);
	for (let i = 0; i < nfunctions; i++) {
		const crate = `crate${i % 40}`;
		b.func(`${crate}::module${i % 300}::Type<T${i % 7}>::function_${i}`, {
			brief: `Type<T${i % 7}>::function_${i}`, crate, file: `src/file${i % 200}.rs`,
			line: 1 + i % 900, module: i % 10 ? 0 : 1, category: i % 6,
		});
	}
	const frames = [];
	for (let i = 0; i < nfunctions * 4; i++) {
		const chain = [{f: i % nfunctions, line: 1 + below(900)}];
		while (random() < 0.3 && chain.length < 5)
			chain.unshift({f: below(nfunctions), line: 1 + below(900)});
		frames.push(b.frame(chain, {addr: 4096 + i * 32, flags: random() < 0.05 ? 2 : 0}));
	}
	/** @type {number[]} */
	const leaves = [], spine = [];
	for (let i = 0; i < depth; i++)
		spine.push(frames[below(frames.length)]);
	while (leaves.length < o.stacks) {
		// The next stack leaves the last one some frames up, as programs do.
		spine.length = Math.max(1, spine.length - 1 - below(random() < 0.9 ? 6 : depth));
		while (spine.length < depth && random() < 0.9)
			spine.push(frames[Math.floor(random() ** 2 * frames.length)]);
		leaves.push(b.stack(spine));
	}
	let time = 0, at = 0;
	for (let i = 0; i < o.samples; i++) {
		time += 1e6 / threads * (0.5 + random());
		if (random() < 0.7)
			at = Math.floor(random() ** 3 * leaves.length);
		b.sample(Math.round(time), random() < 0.002 ? -1 : leaves[at], {
			thread: below(threads), weight: Math.round(9e5 + random() * 2e5), cpu: below(2),
			end: random() < 0.01 ? 6 : 0,
		});
	}
	for (let second = 1; second * 1e9 < time; second++)
		for (let cpu = 0; cpu < 2; cpu++) {
			b.add('ticks', {time: second * 1e9, cpu, taken: 2000, delivered: 1990, throttled: 0});
			if (random() < 0.2)
				b.add('losses', {from: (second - 1) * 1e9, to: second * 1e9, count: 10});
		}
	return b.model({duration: time, wall: time});
}

/**
 * A small program as a person may know it: an indexer in Rust.
 * @param {number} seed
 * @returns {Model}
 */
export function demoModel(seed = 1) {
	const random = randomOf(seed);
	const b = new ModelBuilder();
	const prog = b.module('/home/user/indexer/target/release/indexer');
	const libc = b.module('/lib/x86_64-linux-gnu/libc.so.6');
	const kernel = b.module('[kernel]');
	const process = b.process('indexer', 4711);
	const main = b.thread('indexer', process, 4711);
	const workers = [1, 2, 3].map(i => b.thread(`tokio-worker-${i}`, process, 4711 + i));
	/** @param {string} full @param {string} brief @param {string} crate @param {string} file
	 *  @param {number} line @param {number} category @param {number} [module] */
	const fn = (full, brief, crate, file, line, category, module = prog) =>
		b.func(full, {brief, crate, file, line, category, module});
	const rust = '/rustc/abc/library/';
	const start = fn('_start', '_start', '', '', 0, 5);
	const lang = fn('std::rt::lang_start::<()>', 'rt::lang_start', 'std', rust + 'std/src/rt.rs',
		199, 1);
	const mainF = fn('indexer::main', 'indexer::main', 'indexer', 'src/main.rs', 12, 0);
	const run = fn('indexer::Index::build', 'Index::build', 'indexer', 'src/index.rs', 40, 0);
	const tokenize = fn('indexer::tokenize', 'indexer::tokenize', 'indexer', 'src/tokenize.rs', 88,
		0);
	const closure = fn('indexer::tokenize::{{closure}}', 'indexer::tokenize::{closure}', 'indexer',
		'src/tokenize.rs', 101, 0);
	const find = fn('memchr::memmem::find', 'memchr::memmem::find', 'memchr',
		'/home/user/.cargo/registry/src/memchr-2.7/src/memmem/mod.rs', 322, 5);
	const push8 = fn('<alloc::vec::Vec<u8>>::push', 'Vec<u8>::push', 'alloc', rust +
		'alloc/src/vec/mod.rs', 2000, 1);
	const pushS = fn('<alloc::vec::Vec<alloc::string::String>>::push', 'Vec<String>::push', 'alloc',
		rust + 'alloc/src/vec/mod.rs', 2000, 1);
	const grow = fn('alloc::raw_vec::RawVec<T,A>::grow_one', 'RawVec<T,A>::grow_one', 'alloc',
		rust + 'alloc/src/raw_vec.rs', 300, 1);
	const insert = fn('<std::collections::HashMap<K,V,S>>::insert', 'HashMap<K,V,S>::insert', 'std',
		rust + 'std/src/collections/hash/map.rs', 1200, 1);
	const move_ = fn('__memmove_avx512_unaligned_erms', '__memmove_avx512_unaligned_erms', '', '',
		0, 5, libc);
	const malloc = fn('malloc', 'malloc', '', '', 0, 4, libc);
	const poll = fn('tokio::runtime::task::harness::poll_future', 'task::harness::poll_future',
		'tokio',
		'/home/user/.cargo/registry/src/tokio-1.40/src/runtime/task/harness.rs', 500, 2);
	const worker = fn('tokio::runtime::scheduler::multi_thread::worker::run',
		'multi_thread::worker::run',
		'tokio', '/home/user/.cargo/registry/src/tokio-1.40/src/runtime/scheduler/worker.rs', 480,
			2);
	const hostile = fn('<script>alert("x")</script>', '<script>alert("x")</script>', 'indexer',
		'src/<img src=x onerror=alert(1)>.rs', 7, 0);
	const fault = fn('asm_exc_page_fault', 'asm_exc_page_fault', '', '', 0, 6, kernel);
	const panic = fn('core::panicking::panic_bounds_check', 'panicking::panic_bounds_check', 'core',
		rust + 'core/src/panicking.rs', 280, 3);
	const fib = fn('indexer::score::rank', 'score::rank', 'indexer', 'src/score.rs', 20, 0);
	const fr = {
		start: b.frame([{f: start}], {module: prog}), lang: b.frame([{f: lang, line: 205}]),
		main: b.frame([{f: mainF, line: 18}]), run: b.frame([{f: run, line: 47}]),
		tok: [91, 92, 95, 97, 101].map((line, i) =>
			b.frame([{f: tokenize, line}], {addr: 0x9000 + i * 5})),
		tokInline: b.frame([{f: closure, line: 103}, {f: tokenize, line: 101}], {addr: 0x9040}),
		find: b.frame([{f: find, line: 330}]),
			push8: b.frame([{f: push8, line: 2004}, {f: tokenize, line: 97}],
			{addr: 0x9050}),
		pushS: b.frame([{f: pushS, line: 2004}, {f: run, line: 52}], {addr: 0x8050}),
		grow: b.frame([{f: grow, line: 310}]), insert: b.frame([{f: insert, line: 1207}]),
		move: b.frame([{f: move_}], {module: libc}), malloc: b.frame([{f: malloc}], {module: libc}),
		poll: b.frame([{f: poll, line: 512}]), worker: b.frame([{f: worker, line: 490}]),
		hostile: b.frame([{f: hostile, line: 9}]), panic: b.frame([{f: panic, line: 281}]),
		fault: b.frame([{f: fault}], {module: kernel, flags: 2}),
			fib: b.frame([{f: fib, line: 24}]),
	};
	const base = [fr.start, fr.lang, fr.main, fr.run], task = [fr.worker, fr.poll, fr.run];
	/** @type {[number, number[]][]} */
	const tails = [
		[23, [fr.tok[0], fr.find]], [15, [fr.tok[1]]], [9, [fr.tok[2]]], [6, [fr.tokInline]],
		[10, [fr.push8, fr.grow, fr.move]], [5, [fr.pushS, fr.grow, fr.malloc]], [7, [fr.insert]],
		[6, [fr.pushS, fr.grow]], [4, [fr.hostile]], [3, [fr.push8, fr.grow, fr.fault]],
		[1, [fr.tok[3], fr.panic]], [5, Array(6).fill(fr.fib)], [3, Array(14).fill(fr.fib)],
	];
	const total = tails.reduce((s, [w]) => s + w, 0);
	for (let i = 0; i < 5000; i++) {
		const time = Math.round(i * 1e9 / 997 + random() * 4e5);
		const early = time < 1e9;
		let pick = random() * total, tail = tails[0][1];
		for (const [w, t] of tails) {
			pick -= w;
			if (pick <= 0) {
				tail = t;
				break;
			}
		}
		const thread = early || random() < 0.3 ? main : workers[Math.floor(random() * 3)];
		const cut = random() < 0.004;
		b.sample(time, b.stack([...(cut ? [] : thread === main ? base : task), ...tail]),
			{thread, weight: 1003009, cpu: Math.floor(random() * 2), end: cut ? 6 : 0});
	}
	for (let s = 1; s <= 5; s++)
		for (let cpu = 0; cpu < 2; cpu++)
			b.add('ticks', {time: s * 1e9, cpu, taken: 500, delivered: s === 3 ? 470 : 500, throttled: 0});
	b.add('losses', {from: 2e9, to: 3e9, count: 40});
	b.add('losses', {from: 2.5e9, to: 2.5e9, count: 20});
	addDemoListing(b, tokenize, [closure, push8]);
	/** @param {number} v */
	const share = v => ({value: v, low: v - 0.011, high: v + 0.011, samples: Math.round(v * 5000)});
	return b.model({
		program: 'indexer', args: ['./target/release/indexer', 'corpus/'], duration: 5.1e9,
			wall: 5.1e9,
		cpuTime: 5.0e9, startRealtime: 1764550000000, file: 'indexer.assay',
		info: {host: 'box', kernel: '6.1.0', cpu: 'EPYC', engine: 'kernel', event: 'cpu-clock'},
		trust: {samples: 5000, lost: 60, complete: 4980, repaired: 0, truncated: 20,
			lines: [{level: 'good', text: '5,000 samples at 997 Hz, 60 lost', remedy: ''},
				{level: 'warn', text: '0.4 % of the stacks are cut', remedy: '--dump-size 64K'}]},
		next: [{command: 'assay report --callers RawVec::grow_one', why: 'who grows the vectors'},
			{command: 'assay annotate indexer::tokenize', why: '32 % in one function'}],
		hottest: [
			{function: tokenize, self: share(0.25), total: share(0.6), tied: false},
			{function: find, self: share(0.237), total: share(0.237), tied: false},
			{function: move_, self: share(0.103), total: share(0.103), tied: false},
			{function: insert, self: share(0.072), total: share(0.072), tied: true},
			{function: grow, self: share(0.062), total: share(0.26), tied: false},
		],
	});
}

/**
 * @param {ModelBuilder} b
 * @param {number} f
 * @param {number[]} inlined
 */
function addDemoListing(b, f, inlined) {
	const lines = Array.from({length: 40}, (_, i) => {
		const n = 80 + i;
		return n === 88 ? 'pub fn tokenize(text: &str, out: &mut Vec<u8>) -> usize {' :
			n === 91 ? '\twhile let Some(at) = memmem::find(rest, b"\\n") {' :
			n === 92 ? '\t\tlet word = &rest[..at]; // a "word" <b>' :
			n === 95 ? '\t\tcount += word.len();' : n === 97 ? '\t\tout.push(b\' \');' :
			n === 101 ? '\t\trest.iter().for_each(|c| {' : n === 103 ? '\t\t\thash ^= *c as u64;' :
			n === 118 ? '}' : `\t// line ${n}`;
	});
	b.sources.push({path: 'src/tokenize.rs', found: '/home/user/indexer/src/tokenize.rs', why: '',
		first: 80, total: 140, lines});
	/** @type {import('../../web/types.js').ListingPlace[]} */
	const places = [91, 92, 95, 97, 101].map(line =>
		({function: 'indexer::tokenize', key: f, source: 0,
		line, column: 9, inlined: false}));
	places.push({function: 'indexer::tokenize::{closure}', key: inlined[0], source: 0, line: 103,
		column: 4,
		inlined: true}, places[4]);
	places.push({function: 'Vec<u8>::push', key: inlined[1], source: -1, line: 2004, column: 9,
		inlined: true}, places[3]);
	/** @type {import('../../web/types.js').Insn[]} */
	const insns = [];
	const text = ['mov rax, qword ptr [rdi + 8]', 'cmp rax, rcx', 'jae 0x9041',
		'movzx edx, byte ptr [rsi]',
		'xor r8, rdx', 'add rsi, 1', 'call memchr::memmem::find', 'test eax, eax', 'jne 0x9000',
			'ret'];
	for (let i = 0, addr = 0x9000; i < 24; i++, addr += 5) {
		const t = text[i % text.length];
		const kind = t.startsWith('call') ? 3 : t === 'ret' ? 4 : t.startsWith('j') ? 2 : 0;
		const at = addr >= 0x9050 ? 7 : addr >= 0x9040 ? 5 : Math.min(4, i % 5);
		insns.push({addr, len: 5, kind, text: t, target: kind === 2 ?
			(t.endsWith('41') ? 0x9041 : 0x9000) : 0,
			place: at, nplaces: at >= 5 ? 2 : 1, part: i === 0});
	}
	b.listings.push({function: f, module: 0, notes: [], files: [0], places, insns});
}
