// SPDX-License-Identifier: MIT OR Apache-2.0
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {gzipSync} from 'node:zlib';
import {DataError, decodeContainer, decodeModel} from '../../web/decode.js';
import {encodeContainer, encodeModel} from './encode.js';
import {demoModel, ModelBuilder, randomOf, syntheticModel} from './synthetic.js';

/** @param {Uint8Array} bytes */
const packed = bytes => gzipSync(bytes).toString('base64');

test('what was encoded comes back, column by column', async () => {
	for (const model of [demoModel(), syntheticModel({samples: 3000, stacks: 200}),
		new ModelBuilder().model()])
		assert.deepEqual(await decodeModel(encodeModel(model)), model);
});

test('blanks around and in the text do not matter', async () => {
	const text = encodeModel(demoModel());
	const folded = `\n${text.replace(/.{76}/g, '$&\r\n')}\n`;
	assert.equal((await decodeModel(folded)).samples.n, 5000);
});

test('large numbers and negative ones survive', async () => {
	const b = new ModelBuilder(), f = b.func('f', {module: -1});
	const frame = b.frame([{f}], {addr: 2 ** 52 + 12345, module: -1});
	b.sample(5, b.stack([frame]), {weight: 2 ** 40 + 1});
	b.sample(2 ** 45, -1);
	const m = await decodeModel(encodeModel(b.model()));
	assert.equal(m.frames.addr[0], 2 ** 52 + 12345);
	assert.equal(m.frames.module[0], -1);
	assert.equal(m.samples.weight[0], 2 ** 40 + 1);
	assert.deepEqual(Array.from(m.samples.time), [5, 2 ** 45]);
	assert.deepEqual(Array.from(m.samples.stack), [0, -1]);
});

test('damage gives a sentence for people, never a crash or a hang', async () => {
	const whole = encodeContainer(demoModel());
	/** @type {[string, RegExp][]} */
	const cases = [
		['', /there is none/], ['!!!!', /base64/], ['AAAA', /damaged/],
		[packed(new Uint8Array(3)), /does not begin/],
		[packed(Buffer.from('ASVIEW9\n1234')), /another version/],
		[packed(whole.subarray(0, 10)), /cut short/],
		[packed(whole.subarray(0, 2000)), /cut short|outside/],
		[packed(whole).slice(0, 4000), /cut short or damaged/],
	];
	for (const [text, why] of cases)
		await assert.rejects(decodeModel(text), e => e instanceof DataError && why.test(e.message),
			text.slice(0, 20));
});

test('every truncation and many random changes either decode or are refused', () => {
	const whole = encodeContainer(
		syntheticModel({samples: 60, stacks: 10, depth: 6, functions: 20}));
	const random = randomOf(7);
	/** @param {Uint8Array} bytes */
	const attempt = bytes => {
		try {
			return decodeContainer(bytes);
		} catch (e) {
			assert.ok(e instanceof DataError, String(e));
			return null;
		}
	};
	for (let n = 0; n < whole.length; n += 7)
		attempt(whole.subarray(0, n));
	let refused = 0;
	for (let i = 0; i < 3000; i++) {
		const bytes = whole.slice();
		for (let k = 0; k < 3; k++)
			bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
		refused += attempt(bytes) ? 0 : 1;
	}
	assert.ok(refused > 1000);
});

test('references out of range are refused by name', () => {
	/** @param {(m: import('../../web/types.js').Model) => void} harm @param {RegExp} why */
	const refuses = (harm, why) => {
		const m = syntheticModel({samples: 50, stacks: 5});
		harm(m);
		assert.throws(() => decodeContainer(encodeContainer(m)), why);
	};
	refuses(m => m.samples.stack[3] = m.stacks.n, /stack of sample/);
	refuses(m => m.samples.thread[3] = 99, /thread of sample/);
	refuses(m => m.stacks.parent[2] = 2, /before its caller/);
	refuses(m => m.stacks.frame[2] = m.frames.n, /frame of stack/);
	refuses(m => m.frames.nchain[2] = 0, /no place/);
	refuses(m => m.functions.brief[0] = m.strings.length, /name of function/);
	refuses(m => m.samples.time[4] = 1e15, /out of order/);
	refuses(m => m.endFunction[1] = 1e6, /marker/);
});
