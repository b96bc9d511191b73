// SPDX-License-Identifier: MIT OR Apache-2.0
// The text of a data element -> Model: base64, gzip, then the container of web/README.md.
//
// Everything that refers to something is checked here, once, so that nothing behind this module
// meets an index out of range. Damaged data throws a DataError whose message is for people.

/** @typedef {import('./types.js').Model} Model */
/** @typedef {{at: number, n: number, bytes: number, code: string}} ColumnPlace */
/** @typedef {Uint8Array | Uint16Array | Uint32Array | Int32Array | Float64Array} Column */
/** @typedef {Uint8ArrayConstructor | Uint16ArrayConstructor | Uint32ArrayConstructor
 *   | Int32ArrayConstructor | Float64ArrayConstructor} ColumnType */

export class DataError extends Error {
	/** @param {string} what */
	constructor(what) {
		super(`The data of this page cannot be read: ${what}.`);
		this.name = 'DataError';
	}
}

/** @type {{[table: string]: {[column: string]: ColumnType}}} */
export const MODEL_COLUMNS = {
	functions: {
		brief: Uint32Array, full: Uint32Array, crate: Uint32Array, file: Uint32Array,
		line: Uint32Array, module: Int32Array, lang: Uint8Array, flags: Uint8Array,
		category: Uint8Array,
	},
	places: {
		function: Uint32Array, file: Uint32Array, line: Uint32Array, column: Uint32Array,
		flags: Uint8Array,
	},
	frames: {
		module: Int32Array, addr: Float64Array, flags: Uint8Array, chain: Uint32Array,
		nchain: Uint32Array,
	},
	stacks: {parent: Int32Array, frame: Uint32Array},
	samples: {
		time: Float64Array, thread: Uint32Array, stack: Int32Array, weight: Float64Array,
		cpu: Uint16Array, end: Uint16Array,
	},
	ticks: {
		time: Float64Array, cpu: Uint32Array, taken: Float64Array, delivered: Float64Array,
		throttled: Float64Array,
	},
	losses: {from: Float64Array, to: Float64Array, count: Float64Array},
	trials: {start: Float64Array, end: Float64Array},
	heap: {
		thread: Uint32Array, stack: Int32Array, folded: Int32Array, end: Uint16Array,
		domain: Uint8Array, allocs: Float64Array, bytes: Float64Array, live: Float64Array,
		peak: Float64Array, churn: Float64Array, growth: Float64Array, leaked: Float64Array,
	},
	heapMarks: {moment: Uint32Array, row: Uint32Array, bytes: Float64Array},
	heapTimes: {
		process: Uint32Array, time: Float64Array, live: Float64Array, high: Float64Array,
		mapped: Float64Array, resident: Float64Array,
	},
};

const UNPACKED_MAX = 2 ** 30;
const MAGIC = 'ASVIEW1\n';

// ---- bytes ----

/**
 * @param {string} text  base64; blanks are skipped
 * @returns {Uint8Array}
 */
function fromBase64(text) {
	const native = /** @type {any} */ (Uint8Array).fromBase64;
	if (native) {
		try {
			return native.call(Uint8Array, text);
		} catch {
			throw new DataError('it is no base64 text');
		}
	}
	const value = new Uint8Array(128).fill(255);
	const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
	for (let i = 0; i < 64; i++)
		value[alphabet.charCodeAt(i)] = i;
	const out = new Uint8Array(Math.ceil(text.length * 3 / 4));
	let bits = 0, held = 0, at = 0;
	for (let i = 0; i < text.length; i++) {
		const c = text.charCodeAt(i);
		const v = c < 128 ? value[c] : 255;
		if (v === 255) {
			if (c === 61)
				break;
			if (c > 32)
				throw new DataError('it is no base64 text');
			continue;
		}
		bits = (bits << 6 | v) & 0xffffff;
		held += 6;
		if (held >= 8) {
			held -= 8;
			out[at++] = bits >> held & 255;
		}
	}
	return out.subarray(0, at);
}

/**
 * @param {Uint8Array} packed
 * @returns {Promise<Uint8Array>}
 */
async function gunzip(packed) {
	if (typeof DecompressionStream === 'undefined')
		throw new DataError('this browser is too old (it lacks DecompressionStream)');
	const stream = new Blob([/** @type {any} */ (packed)]).stream()
		.pipeThrough(new DecompressionStream('gzip'));
	const reader = stream.getReader();
	/** @type {Uint8Array[]} */
	const chunks = [];
	let total = 0;
	try {
		for (;;) {
			const {done, value} = await reader.read();
			if (done)
				break;
			chunks.push(value);
			total += value.length;
			if (total > UNPACKED_MAX) {
				await reader.cancel();
				throw new DataError('it unpacks to more than 1 GiB');
			}
		}
	} catch (e) {
		throw e instanceof DataError ? e : new DataError('it is cut short or damaged (gzip)');
	}
	const all = new Uint8Array(total);
	let at = 0;
	for (const chunk of chunks) {
		all.set(chunk, at);
		at += chunk.length;
	}
	return all;
}

// ---- columns ----

/**
 * Varints of `bytes` into `out`; each is below 2^53.
 * @param {Uint8Array} bytes
 * @param {Column} out
 * @param {number} less  subtracted from each
 */
function readVarints(bytes, out, less) {
	const end = bytes.length, n = out.length;
	let at = 0;
	for (let i = 0; i < n; i++) {
		let b = at < end ? bytes[at++] : 256;
		if (b < 128) {
			out[i] = b - less;
			continue;
		}
		let value = b & 127, shift = 7;
		while (b >= 128) {
			if (at >= end || shift > 49 || b > 255)
				throw new DataError('a column ends early');
			b = bytes[at++];
			value = shift < 28 ? value | (b & 127) << shift : value + (b & 127) * 2 ** shift;
			shift += 7;
		}
		out[i] = value - less;
	}
	if (at !== end)
		throw new DataError('a column has bytes left over');
}

/**
 * Zigzag varints of differences.
 * @param {Uint8Array} bytes
 * @param {Column} out
 */
function readDeltas(bytes, out) {
	const end = bytes.length, n = out.length;
	let at = 0, last = 0;
	for (let i = 0; i < n; i++) {
		let b = at < end ? bytes[at++] : 256;
		let value = b & 127, shift = 7;
		while (b >= 128) {
			if (at >= end || shift > 56 || b > 255)
				throw new DataError('a column ends early');
			b = bytes[at++];
			value = shift < 28 ? value | (b & 127) << shift : value + (b & 127) * 2 ** shift;
			shift += 7;
		}
		last += value % 2 ? -(value + 1) / 2 : value / 2;
		out[i] = last;
	}
	if (at !== end)
		throw new DataError('a column has bytes left over');
}

/**
 * @param {Uint8Array} area
 * @param {string} name
 * @param {ColumnPlace} place
 * @param {ColumnType} Type
 * @returns {Column}
 */
function readColumn(area, name, place, Type) {
	const {at, n, bytes, code} = place;
	if (!Number.isInteger(at) || !Number.isInteger(n) || !Number.isInteger(bytes) || at < 0 ||
		bytes < 0 || n < 0 || n > bytes || at + bytes > area.length)
		throw new DataError(`column ${name} lies outside of it`);
	const part = area.subarray(at, at + bytes);
	const out = new Type(n);
	if (code === 'uleb')
		readVarints(part, out, Type === Int32Array ? 1 : 0);
	else if (code === 'delta')
		readDeltas(part, out);
	else if (code === 'u8' && n === bytes)
		out.set(part);
	else
		throw new DataError(`column ${name} has an unknown code`);
	return out;
}

/**
 * @param {any} header
 * @param {Uint8Array} area
 */
function readTables(header, area) {
	const columns = header.columns;
	if (typeof columns !== 'object' || columns === null)
		throw new DataError('it names no columns');
	/** @type {any} */
	const tables = {};
	for (const [table, types] of Object.entries(MODEL_COLUMNS)) {
		/** @type {any} */
		const t = {n: -1};
		for (const [column, Type] of Object.entries(types)) {
			const name = `${table}.${column}`;
			if (!Object.hasOwn(columns, name))
				continue;
			t[column] = readColumn(area, name, columns[name], Type);
			if (t.n >= 0 && t.n !== t[column].length)
				throw new DataError(`column ${name} has another length than its table`);
			t.n = t[column].length;
		}
		t.n = Math.max(t.n, 0);
		for (const [column, Type] of Object.entries(types))
			t[column] ??= new Type(t.n);
		tables[table] = t;
	}
	return tables;
}

// ---- checks ----

/**
 * @param {string} name
 * @param {Column} column
 * @param {number} limit  values are below it
 * @param {number} [least]
 */
function checkRange(name, column, limit, least = 0) {
	for (let i = 0; i < column.length; i++)
		if (!(column[i] >= least && column[i] < limit))
			throw new DataError(`${name} ${i} refers to ${column[i]} of ${limit}`);
}

/** @param {Model} m */
function checkModel(m) {
	const {functions: f, places: p, frames: fr, stacks: st, samples: s} = m;
	const texts = m.strings.length;
	for (const column of [f.brief, f.full, f.crate, f.file])
		checkRange('a name of function', column, texts);
	checkRange('module of function', f.module, m.modules.length, -1);
	checkRange('function of place', p.function, f.n);
	checkRange('file of place', p.file, texts);
	checkRange('module of frame', fr.module, m.modules.length, -1);
	for (let i = 0; i < fr.n; i++)
		if (!fr.nchain[i] || fr.chain[i] + fr.nchain[i] > p.n)
			throw new DataError(`frame ${i} has no place`);
	checkRange('frame of stack', st.frame, fr.n);
	for (let i = 0; i < st.n; i++)
		if (st.parent[i] < -1 || st.parent[i] >= i)
			throw new DataError(`stack ${i} stands before its caller`);
	checkRange('thread of sample', s.thread, m.threads.length);
	checkRange('stack of sample', s.stack, st.n, -1);
	for (let i = 0; i < s.n; i++)
		if (!(s.weight[i] >= 0) || (i && s.time[i] < s.time[i - 1]))
			throw new DataError(`sample ${i} is out of order`);
	for (let i = 0; i < m.trials.n; i++)
		if (!(m.trials.end[i] >= m.trials.start[i]) ||
			(i && m.trials.start[i] < m.trials.end[i - 1]))
			throw new DataError(`trial ${i} is out of order`);
	for (const o of [...m.modules, ...m.processes, ...m.threads])
		if (typeof o !== 'object' || o === null || typeof o.name !== 'string')
			throw new DataError('a module, process or thread has no name');
	for (const o of m.modules)
		if (typeof o.path !== 'string')
			throw new DataError('a module has no path');
	for (const t of m.threads)
		if (!(t.process >= 0 && t.process < m.processes.length))
			throw new DataError('a thread has no process');
	checkRange('marker of stack end', m.endFunction, f.n, -1);
	checkRange('thread of memory', m.heap.thread, m.threads.length);
	checkRange('stack of memory', m.heap.stack, st.n, -1);
	checkRange('folded stack of memory', m.heap.folded, st.n, -1);
	checkRange('row of a mark', m.heapMarks.row, m.heap.n);
	checkRange('process of memory', m.heapTimes.process, m.processes.length);
}

/**
 * @param {any} header
 * @param {string} name
 * @returns {any[]}
 */
function listOf(header, name) {
	const list = header[name] ?? [];
	if (!Array.isArray(list))
		throw new DataError(`its ${name} are no list`);
	return list;
}

// ---- the whole ----

/**
 * @param {Uint8Array} bytes
 * @returns {{header: any, area: Uint8Array}}
 */
function openContainer(bytes) {
	const start = String.fromCharCode(...bytes.subarray(0, MAGIC.length));
	if (start !== MAGIC)
		throw new DataError(start.startsWith('ASVIEW') ? 'it is of another version' :
			'it does not begin as it should');
	if (bytes.length < 12)
		throw new DataError('it is cut short');
	const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(8, true);
	if (12 + length > bytes.length)
		throw new DataError('it is cut short');
	let header;
	try {
		header = JSON.parse(new TextDecoder().decode(bytes.subarray(12, 12 + length)));
	} catch {
		throw new DataError('its header is damaged');
	}
	if (typeof header !== 'object' || header === null)
		throw new DataError('its header is damaged');
	return {header, area: bytes.subarray(Math.min(Math.ceil((12 + length) / 8) * 8, bytes.length))};
}

/**
 * @param {Uint8Array} bytes  a container, not compressed
 * @returns {Model}
 */
export function decodeContainer(bytes) {
	const {header, area} = openContainer(bytes);
	const tables = readTables(header, area);
	const strings = listOf(header, 'strings');
	if (!strings.every(s => typeof s === 'string'))
		throw new DataError('one of its texts is none');
	if (typeof header.meta !== 'object' || header.meta === null)
		throw new DataError('it says nothing about the recording');
	const ends = header.columns.endFunction ?
		readColumn(area, 'endFunction', header.columns.endFunction, Int32Array) :
		Int32Array.from(listOf(header, 'endFunction'));
	/** @type {Model} */
	const model = {
		...tables, meta: header.meta, strings,
		modules: listOf(header, 'modules'), processes: listOf(header, 'processes'),
		threads: listOf(header, 'threads'), endFunction: /** @type {Int32Array} */ (ends),
		listings: listOf(header, 'listings'), sources: listOf(header, 'sources'),
	};
	if (!strings.length)
		strings.push('');
	checkModel(model);
	return model;
}

/**
 * @param {string} text  of a data element
 * @returns {Promise<Model>}
 */
export async function decodeModel(text) {
	const bytes = fromBase64(text.trim());
	if (!bytes.length)
		throw new DataError('there is none');
	return decodeContainer(await gunzip(bytes));
}
