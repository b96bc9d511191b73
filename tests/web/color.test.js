// SPDX-License-Identifier: MIT OR Apache-2.0
// @ts-nocheck: gives the modules half-made models and looks at their insides on purpose
// Colours: contrast of text on boxes by WCAG 2, and the distance of any two groups as seen with
// normal and with each kind of colour-blind sight (matrices of Machado, Oliveira and Fernandes
// 2009 for full deficiency, distances in OKLab times 100; 2 is about what an eye just notices).
import test from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { BOX_INK, BOX_PAPER, COLOR_MODES, DIFF_COLORS, GROUP_COLORS, INTERVAL_COLORS, REST_COLOR,
	contrastOf, diffStep, functionColors, hexOfRgb, intervalStep, mixColors, pixelOfHex, rankGroups,
	rgbOfHex } from '../../web/color.js';

const SIGHT = {
	normal: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
	protan: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
	deutan: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
	tritan: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};
const linear = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;

function oklab(hex, sight) {
	const v = rgbOfHex(hex).map(linear);
	const [r, g, b] = SIGHT[sight].map(m => Math.min(1, Math.max(0, m[0] * v[0] + m[1] * v[1] + m[2] * v[2])));
	const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
	const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
	const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
	return [0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
		1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
		0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s];
}

function distance(a, b, sight) {
	const x = oklab(a, sight), y = oklab(b, sight);
	return 100 * Math.hypot(x[0] - y[0], x[1] - y[1], x[2] - y[2]);
}

for (const theme of ['light', 'dark']) {
	test(`text is readable on every box of the ${theme} theme`, () => {
		const fills = [...GROUP_COLORS[theme], REST_COLOR[theme], ...INTERVAL_COLORS[theme], ...DIFF_COLORS[theme]];
		for (const fill of fills) {
			assert.ok(contrastOf(fill, BOX_INK[theme]) >= 4.5, `${fill}: ${contrastOf(fill, BOX_INK[theme])}`);
			const faded = mixColors(fill, BOX_PAPER[theme], 0.7);
			assert.ok(contrastOf(faded, BOX_INK[theme]) >= 4.5, `${fill} faded`);
		}
	});

	test(`groups of the ${theme} theme are told apart by all eyes`, () => {
		const colors = GROUP_COLORS[theme];
		for (const sight of Object.keys(SIGHT))
			for (const a of colors)
				for (const b of colors)
					if (a !== b)
						assert.ok(distance(a, b, sight) >= 6, `${a} ${b} ${sight} ${distance(a, b, sight)}`);
	});

	test(`more and less of the ${theme} theme differ from each other and from grey for all eyes`, () => {
		const [l3, l2, , none, , m2, m3] = DIFF_COLORS[theme];
		for (const sight of Object.keys(SIGHT))
			for (const [a, b] of [[l3, m3], [l2, m2], [l2, none], [m2, none]])
				assert.ok(distance(a, b, sight) >= 5, `${a} ${b} ${sight} ${distance(a, b, sight)}`);
	});
}

test('contrast is that of WCAG', () => {
	assert.equal(contrastOf('#000000', '#ffffff'), 21);
	assert.ok(Math.abs(contrastOf('#767676', '#ffffff') - 4.54) < 0.01);
	assert.equal(hexOfRgb(rgbOfHex('#0a1bfe')), '#0a1bfe');
	assert.equal(pixelOfHex('#010203'), 0xff030201);
});

test('the step of certainty follows the number of samples', () => {
	assert.deepEqual([1e6, 1537, 400, 100, 20, 1, 0].map(n => intervalStep(n)), [0, 0, 1, 2, 3, 4, 4]);
	assert.equal(intervalStep(1537, 4), 1);
});

test('a difference has a colour only where it is resolved', () => {
	assert.equal(diffStep(0.5, false), 3);
	assert.equal(diffStep(0.5, true), 6);
	assert.equal(diffStep(-0.01, true), 1);
	assert.equal(diffStep(0.001, true), 4);
	assert.equal(diffStep(0, true), 3);
});

/** One function per group, function i with weight 1 + i samples. */
function modelOf(groups) {
	const n = groups.length, weights = groups.map((_, i) => i + 1);
	const each = Uint32Array.from({length: n}, (_, i) => i);
	return {
		strings: ['', ...new Set(groups)], modules: [{name: 'a'}, {name: 'b'}],
		functions: {
			n, crate: Uint32Array.from(groups, g => [...new Set(groups)].indexOf(g) + 1),
			module: Int32Array.from(groups, (_, i) => i % 2 ? 1 : -1), category: Uint8Array.from(groups, (_, i) => i % 9),
		},
		places: {n, function: each}, frames: {n, chain: each}, stacks: {n, frame: each},
		samples: {n, stack: Int32Array.from(each), weight: Float64Array.from(weights)},
	};
}

test('the heaviest groups have the colours, the ninth and further are grey and counted', () => {
	const names = Array.from({length: 11}, (_, i) => `crate${i}`), model = modelOf(names);
	assert.equal(rankGroups(model, f => model.functions.crate[f])[0], model.functions.crate[10]);
	const {index, colors, legend} = functionColors(model, 'crate', false);
	assert.equal(index[10], 0);
	assert.equal(index[2], 8);
	assert.equal(colors[8], REST_COLOR.light);
	assert.equal(legend.length, 9);
	assert.equal(legend[8].label, '3 more');
});

test('functions without a module are grey; categories name themselves', () => {
	const model = modelOf(['x', 'y', 'z']);
	assert.deepEqual([...functionColors(model, 'module', true).index], [8, 0, 8]);
	const {legend} = functionColors(model, 'category', true);
	assert.equal(legend[0].label, 'user');
	for (const {mode} of COLOR_MODES)
		assert.ok(functionColors(model, mode, true).legend.length);
});

test('highlighted code is readable on every background it can have', () => {
	const read = name => readFileSync(new URL(`../../web/${name}`, import.meta.url), 'utf8');
	for (const theme of ['light', 'dark']) {
		const colors = {};
		for (const css of [read('style.css'), read('code.css')]) {
			const blocks = css.matchAll(/:root(\[data-theme="dark"\])?\s*\{([^}]*)\}/g);
			for (const [, dark, body] of blocks)
				if (!dark || theme === 'dark')
					for (const [, name, value] of body.matchAll(/--([\w-]+):\s*(#[\da-f]{6})/g))
						colors[name] = value;
		}
		const inks = Object.keys(colors).filter(n => n.startsWith('hl-'));
		assert.ok(inks.length >= 7);
		for (const ink of [...inks, 'ink', 'soft', 'faint'])
			for (const paper of ['paper', 'linked', 'pick', 'hover'])
				assert.ok(contrastOf(colors[ink], colors[paper]) >= 4.5, `${theme}: ${ink} on ${paper} ${contrastOf(colors[ink], colors[paper])}`);
	}
});
