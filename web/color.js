// SPDX-License-Identifier: MIT OR Apache-2.0
// The colours of boxes: by crate, module, category, interval width, and for differences.
//
// Every fill carries text in BOX_INK of its theme with a contrast of at least 4.5 (WCAG AA; 6 in
// the light theme). The eight colours of groups were searched for by the least distance (in OKLab)
// between any two of them as seen with normal, protanopic, deuteranopic and tritanopic sight; more
// than eight colours do not stay distinguishable, so the ninth and further groups share a grey.
// Differences are orange against blue, which all of these tell apart, and grey where the data do
// not resolve one. tests/web/color.test.js computes all this again.
import { CATEGORIES } from './model.js';

/** @typedef {import('./types.js').Model} Model */
/** @typedef {'crate' | 'module' | 'category' | 'interval' | 'diff'} ColorMode */
/** @typedef {{color: string, label: string, title?: string}} LegendRow */

export const BOX_INK = {light: '#16181c', dark: '#f4f6f8'};
export const BOX_PAPER = {light: '#ffffff', dark: '#121417'};

export const GROUP_COLORS = {
	light: ['#f3b94c', '#b6bcff', '#4ce1b6', '#e28247', '#b7f0ff', '#b984df', '#dcf687', '#80a99a'],
	dark: ['#9d5300', '#2f2978', '#54715a', '#9e5598', '#00535f', '#64162b', '#644395', '#663e00'],
};
export const REST_COLOR = {light: '#d9dce0', dark: '#3d434b'};

/** Narrow to wide interval. */
export const INTERVAL_COLORS = {
	light: ['#4f9de0', '#7db8ec', '#a8d0f4', '#cfe4f9', '#ecf3fa'],
	dark: ['#1f6fb2', '#1d5a90', '#1d4870', '#1f3953', '#252f3b'],
};
/** Half width of the 95 % interval, as a fraction of the value, up to which each colour goes. */
export const INTERVAL_STEPS = [0.05, 0.1, 0.25, 0.5, Infinity];

/** Much less, less, little less, not resolved, little more, more, much more. */
export const DIFF_COLORS = {
	light: ['#5b9ddf', '#93c0ef', '#cbe0f8', '#e2e4e7', '#fbd5b5', '#f3a869', '#e07b30'],
	dark: ['#2b6db3', '#275b92', '#23456a', '#3a3f46', '#6b4526', '#8a4f1c', '#a85910'],
};
/** Change as a fraction of the whole from which a resolved difference is "more" and "much more". */
export const DIFF_STEPS = [0.005, 0.02];

export const COLOR_MODES = /** @type {{mode: ColorMode, label: string, title: string}[]} */ ([
	{mode: 'crate', label: 'crate', title: 'Rust crate, or library, that the function comes from'},
	{mode: 'module', label: 'module', title: 'Executable or shared library that holds the code'},
	{mode: 'category', label: 'kind', title: 'Your code, standard library, runtime or kernel'},
	{mode: 'interval', label: 'certainty', title: 'How wide the 95 % interval of the total is'},
]);

/** Colours of categories, by name, as indexes into GROUP_COLORS. */
const CATEGORY_COLOR = new Map([['user', 0], ['std', 1], ['kernel', 2], ['runtime', 3],
	['library', 4], ['panic', 5], ['allocator', 6], ['jit', 7]]);

/** @param {boolean} dark @returns {'dark' | 'light'} */
export function themeName(dark) {
	return dark ? 'dark' : 'light';
}

/** @param {string} hex @returns {[number, number, number]} */
export function rgbOfHex(hex) {
	const n = parseInt(hex.slice(1), 16);
	return [n >> 16 & 255, n >> 8 & 255, n & 255];
}

/** @param {number[]} c @returns {string} */
export function hexOfRgb(c) {
	return '#' + c.map(v => Math.round(v).toString(16).padStart(2, '0')).join('');
}

/**
 * The colour as ImageData holds it on a little-endian machine.
 * @param {string} hex
 */
export function pixelOfHex(hex) {
	const [r, g, b] = rgbOfHex(hex);
	return (255 << 24 | b << 16 | g << 8 | r) >>> 0;
}

/**
 * @param {string} a
 * @param {string} b
 * @param {number} part  of b
 */
export function mixColors(a, b, part) {
	const x = rgbOfHex(a), y = rgbOfHex(b);
	return hexOfRgb([0, 1, 2].map(i => x[i] + (y[i] - x[i]) * part));
}

/** @param {string} hex  @returns {number} relative luminance, WCAG 2 */
export function luminanceOf(hex) {
	const [r, g, b] = rgbOfHex(hex).map(v => {
		const c = v / 255;
		return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
	});
	return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** @param {string} a @param {string} b @returns {number} 1 … 21 */
export function contrastOf(a, b) {
	const x = luminanceOf(a), y = luminanceOf(b);
	return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}

/**
 * Which of INTERVAL_COLORS a node has, from the number of its samples: the half width of a count's
 * 95 % interval is 1.96 / sqrt(n) of it, times the root of the design effect.
 * @param {number} samples
 * @param {number} [deff]
 */
export function intervalStep(samples, deff = 1) {
	const half = samples > 0 ? 1.96 * Math.sqrt(deff / samples) : Infinity;
	return INTERVAL_STEPS.findIndex(limit => half <= limit);
}

/**
 * Which of DIFF_COLORS a change has.
 * @param {number} change    of the share: head - base
 * @param {boolean} resolved  the interval of the change leaves out 0
 */
export function diffStep(change, resolved) {
	if (!resolved || !change)
		return 3;
	const size = Math.abs(change);
	const step = size >= DIFF_STEPS[1] ? 3 : size >= DIFF_STEPS[0] ? 2 : 1;
	return change > 0 ? 3 + step : 3 - step;
}

/**
 * Groups by weight, heaviest first; the order is of the whole recording, so that a colour stays
 * what it is when filters change.
 * @param {Model} model
 * @param {(f: number) => number} groupOf  function to group; -1: none
 * @returns {number[]}
 */
export function rankGroups(model, groupOf) {
	const own = new Float64Array(model.functions.n), {samples, stacks, frames, places} = model;
	for (let i = 0; i < samples.n; i++) {
		if (samples.stack[i] >= 0)
			own[places.function[frames.chain[stacks.frame[samples.stack[i]]]]] += samples.weight[i];
	}
	/** @type {Map<number, number>} */
	const sums = new Map();
	for (let f = 0; f < own.length; f++) {
		const g = groupOf(f);
		if (g >= 0)
			sums.set(g, (sums.get(g) || 0) + own[f]);
	}
	return [...sums].sort((a, b) => b[1] - a[1] || a[0] - b[0]).map(([g]) => g);
}

/**
 * The colours of functions in one mode.
 * @typedef {object} FunctionColors
 * @property {Uint8Array} index     per function, into colors
 * @property {string[]} colors      the last is that of everything else
 * @property {LegendRow[]} legend
 */

/**
 * @param {Model} model
 * @param {ColorMode} mode  crate, module or category; others give legend and colours only
 * @param {boolean} dark
 * @returns {FunctionColors}
 */
export function functionColors(model, mode, dark) {
	const theme = themeName(dark);
	if (mode === 'interval')
		return scaleColors(model, INTERVAL_COLORS[theme], ['± ≤ 5 %', '≤ 10 %', '≤ 25 %', '≤ 50 %', 'wider'],
			'half width of the 95 % interval, as part of the value');
	if (mode === 'diff')
		return scaleColors(model, DIFF_COLORS[theme], ['less', '', '', model.meta.memory ? 'the same' : 'not resolved', '', '', 'more'],
			'colour only where the interval of the change leaves out 0');
	const colors = [...GROUP_COLORS[theme], REST_COLOR[theme]], rest = colors.length - 1;
	const index = new Uint8Array(model.functions.n).fill(rest);
	if (mode === 'category')
		return categoryColors(model, index, colors);
	const {crate, module} = model.functions, modules = model.modules.length;
	// Modules first, then crates. What is not Rust has no crate: it goes by its module.
	const group = (/** @type {number} */ f) => mode === 'crate' && model.strings[crate[f]] ? modules + crate[f] :
		module[f] >= 0 ? module[f] : -1;
	const name = (/** @type {number} */ g) => g < modules ? model.modules[g].name : model.strings[g - modules];
	const ranked = rankGroups(model, group), place = new Map(ranked.slice(0, rest).map((g, i) => [g, i]));
	for (let f = 0; f < index.length; f++)
		index[f] = place.get(group(f)) ?? rest;
	const legend = [...place].map(([g, i]) => ({color: colors[i], label: name(g)}));
	if (ranked.length > rest)
		legend.push({color: colors[rest], label: `${ranked.length - rest} more`});
	return {index, colors, legend};
}

/**
 * @param {Model} model
 * @param {Uint8Array} index
 * @param {string[]} colors
 * @returns {FunctionColors}
 */
function categoryColors(model, index, colors) {
	const rest = colors.length - 1, seen = new Set();
	for (let f = 0; f < index.length; f++) {
		index[f] = Math.min(CATEGORY_COLOR.get(CATEGORIES[model.functions.category[f]]) ?? rest, rest);
		seen.add(model.functions.category[f]);
	}
	const legend = CATEGORIES.flatMap((label, i) => seen.has(i) ?
		[{label, color: colors[Math.min(CATEGORY_COLOR.get(label) ?? rest, rest)]}] : []);
	return {index, colors, legend};
}

/**
 * @param {Model} model
 * @param {string[]} colors
 * @param {string[]} labels
 * @param {string} title
 * @returns {FunctionColors}
 */
function scaleColors(model, colors, labels, title) {
	return {
		index: new Uint8Array(model.functions.n), colors: [...colors],
		legend: colors.map((color, i) => ({color, label: labels[i], title})),
	};
}
