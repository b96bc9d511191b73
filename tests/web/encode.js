// SPDX-License-Identifier: MIT OR Apache-2.0
// A Model as the text the page holds, for tests and for looking at the page with invented figures:
//
//	node tests/web/encode.js --demo OUT.bin [--samples N] [--stacks N] [--depth N] [--seed N]
//	tools/pack-web --html page.html --data OUT.bin
import {writeFileSync} from 'node:fs';
import {gzipSync} from 'node:zlib';
import {MODEL_COLUMNS} from '../../web/decode.js';
import {demoModel, syntheticModel} from './synthetic.js';

/** @typedef {import('../../web/types.js').Model} Model */

/**
 * @param {number[]} out
 * @param {number} value  below 2^54
 */
function putVarint(out, value) {
	while (value >= 128) {
		out.push(value % 128 + 128);
		value = Math.floor(value / 128);
	}
	out.push(value);
}

/**
 * @param {ArrayLike<number>} column
 * @param {string} code
 * @param {number} more
 * @returns {Uint8Array}
 */
function encodeColumn(column, code, more) {
	/** @type {number[]} */
	let out = [], last = 0;
	/** @type {Uint8Array[]} */
	const parts = [];
	for (let i = 0; i < column.length; i++) {
		const v = column[i];
		if (code === 'u8') {
			out.push(v);
		} else if (code === 'delta') {
			const d = v - last;
			putVarint(out, d < 0 ? -d * 2 - 1 : d * 2);
			last = v;
		} else {
			putVarint(out, v + more);
		}
		if (out.length > 1 << 16) {
			parts.push(Uint8Array.from(out));
			out = [];
		}
	}
	parts.push(Uint8Array.from(out));
	return new Uint8Array(Buffer.concat(parts));
}

const DELTA = new Set(['samples.time', 'stacks.frame', 'stacks.parent', 'ticks.time', 'frames.addr',
	'samples.stack']);

/**
 * @param {Model} model
 * @returns {Uint8Array}
 */
export function encodeContainer(model) {
	/** @type {{[name: string]: {at: number, n: number, bytes: number, code: string}}} */
	const columns = {};
	/** @type {Uint8Array[]} */
	const parts = [];
	let at = 0;
	/** @type {any} */
	const header = {...model, endFunction: Array.from(model.endFunction), columns};
	for (const [table, types] of Object.entries(MODEL_COLUMNS)) {
		delete header[table];
		for (const [column, Type] of Object.entries(types)) {
			const name = `${table}.${column}`;
			const code = DELTA.has(name) ? 'delta' : Type === Uint8Array ? 'u8' : 'uleb';
			const bytes = encodeColumn(/** @type {any} */ (model)[table][column], code,
				Type === Int32Array ? 1 : 0);
			columns[name] = {at, n: /** @type {any} */ (model)[table].n, bytes: bytes.length, code};
			parts.push(bytes);
			at += bytes.length;
		}
	}
	const json = Buffer.from(JSON.stringify(header));
	const head = Buffer.alloc(Math.ceil((12 + json.length) / 8) * 8);
	head.write('ASVIEW1\n', 'latin1');
	head.writeUInt32LE(json.length, 8);
	json.copy(head, 12);
	return new Uint8Array(Buffer.concat([head, ...parts]));
}

/**
 * @param {Model} model
 * @returns {string}
 */
export function encodeModel(model) {
	return gzipSync(encodeContainer(model)).toString('base64');
}

const flag = process.argv.indexOf('--demo');
if (flag > 0 && import.meta.url.endsWith('/' + process.argv[1].split('/').pop())) {
	/** @param {string} name @param {number} otherwise */
	const number = (name, otherwise) => {
		const i = process.argv.indexOf(name);
		return i > 0 ? Number(process.argv[i + 1]) : otherwise;
	};
	const seed = number('--seed', 1), samples = number('--samples', 0);
	const model = samples ? syntheticModel({
		samples, seed, stacks: number('--stacks', Math.ceil(samples / 10)),
		depth: number('--depth', 40),
	}) : demoModel(seed);
	writeFileSync(process.argv[flag + 1], encodeContainer(model));
}
