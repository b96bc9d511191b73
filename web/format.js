// SPDX-License-Identifier: MIT OR Apache-2.0
// Figures and names as a person reads them; the same manners as the terminal's.

/** @typedef {import('./types.js').Share} Share */

/**
 * @param {number} x
 * @param {number} [digits]
 */
export function percent(x, digits = 1) {
	return Number.isFinite(x) ? `${(x * 100).toFixed(digits)} %` : '?';
}

/**
 * How far the interval reaches, in percent points: one figure when it is about as far both ways.
 * @param {Share} s
 * @returns {string} "±0.8", or "[0.0, 0.4]" where that would mislead
 */
export function spread(s) {
	const down = (s.value - s.low) * 100, up = (s.high - s.value) * 100;
	if (!Number.isFinite(down) || !Number.isFinite(up))
		return '';
	if (Math.max(down, up) > 1.5 * Math.min(down, up) + 0.05)
		return `[${(s.low * 100).toFixed(1)}, ${(s.high * 100).toFixed(1)}]`;
	return `±${Math.max(down, up).toFixed(1)}`;
}

/** @param {Share} s */
export function share(s) {
	const far = spread(s);
	const value = (s.value * 100).toFixed(1);
	if (!far)
		return percent(s.value);
	return far.startsWith('±') ? `${value} ${far} %` : `${value} % ${far}`;
}

/**
 * A difference of shares in percent points, with its sign.
 * @param {number} x
 */
export function points(x) {
	const text = (Math.abs(x) * 100).toFixed(1);
	return text === '0.0' ? '0.0' : (x < 0 ? '−' : '+') + text;
}

/** @param {number} n */
export function count(n) {
	return Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, ',');
}

/** @param {number} ns @returns {string} */
export function duration(ns) {
	if (!Number.isFinite(ns))
		return '?';
	if (ns < 0)
		return '−' + duration(-ns);
	/** @type {[number, string][]} */
	const units = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs']];
	if (ns >= 99.95e9) {
		const s = Math.round(ns / 1e9), h = Math.floor(s / 3600), min = Math.floor(s / 60) % 60;
		return h ? `${h} h ${min} min` : `${min} min ${s % 60} s`;
	}
	for (const [size, name] of units)
		if (ns >= 0.9995 * size)
			return `${three(ns / size)} ${name}`;
	return `${three(ns)} ns`;
}

/** Three digits that mean something. @param {number} x */
function three(x) {
	return x >= 99.95 ? x.toFixed(0) : x >= 9.995 ? x.toFixed(1) : x === 0 ? '0' : x.toFixed(2);
}

/**
 * @param {number} w
 * @param {'ns' | 'cycles'} unit
 */
export function weight(w, unit) {
	if (unit === 'ns')
		return duration(w);
	/** @type {[number, string][]} */
	const sizes = [[1e9, ' G'], [1e6, ' M'], [1e3, ' k']];
	for (const [size, name] of sizes)
		if (w >= 0.9995 * size)
			return `${three(w / size)}${name}cycles`;
	return `${three(w)} cycles`;
}

/**
 * @param {string} text
 * @param {number} max  characters, at least 3
 */
export function middle(text, max) {
	const all = Array.from(text);
	if (all.length <= max)
		return text;
	const head = Math.ceil((max - 1) / 2);
	return all.slice(0, head).join('') + '…' + all.slice(all.length - (max - 1 - head)).join('');
}
