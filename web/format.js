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
 * A share as the terminal prints it: "23.1" and "±0.8"; "2.5" and "≤8.6" where the interval is
 * wider than the value; "97.0" and "≥80.1" towards all; "" and "≤0.4" where next to nothing was
 * seen; "" and "<0.1" for next to nothing without an interval. Percent without the sign.
 * @param {Share} s
 * @returns {[string, string]}
 */
export function shareParts(s) {
	const half = (s.high - s.low) / 2,
		value = (s.value * 100).toFixed(1);
	if (s.value > 0 && s.value < 0.0005 && !(half >= 0)) return ['', '<0.1'];
	if (!(half >= 0.00005) || (half < 0.0005 && s.value > 0.9995)) return [value, ''];
	const high = (Math.ceil(s.high * 1000 - 1e-9) / 10).toFixed(1);
	if (s.value < 0.0005 && half >= s.value) return ['', `≤${high}`];
	if (half >= s.value) return [value, `≤${high}`];
	if (half >= 0.05 && s.value + half > 1)
		return [value, `≥${(Math.floor(s.low * 1000 + 1e-9) / 10).toFixed(1)}`];
	if (s.value + half > 1) return [value, `±${((s.value - s.low) * 100).toFixed(1)}`];
	return [value, `±${(half * 100).toFixed(half < 0.0005 ? 2 : 1)}`];
}

/** @param {Share} s */
export function shareText(s) {
	const [v, i] = shareParts(s);
	return `${v}${v && i ? ' ' : ''}${i} %`;
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

/** As the terminal's: "212 KiB", "1.20 MiB", "340 B". @param {number} n */
export function bytes(n) {
	const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
	let u = 0;
	while (u < 4 && n >= (u ? 1023.5 : 1024)) {
		n /= 1024;
		u++;
	}
	return `${u ? three(n) : Math.round(n)} ${units[u]}`;
}

/**
 * @param {number} w
 * @param {import('./types.js').Unit} unit
 */
export function weight(w, unit) {
	if (unit === 'ns')
		return duration(w);
	if (unit === 'bytes')
		return bytes(w);
	if (unit === 'count')
		return count(w);
	/** @type {[number, string][]} */
	const sizes = [[1e9, ' G'], [1e6, ' M'], [1e3, ' k']];
	for (const [size, name] of sizes)
		if (w >= 0.9995 * size)
			return `${three(w / size)}${name}cycles`;
	return `${three(w)} cycles`;
}

/**
 * A difference with its sign; none has none.
 * @param {number} w
 * @param {import('./types.js').Unit} unit
 */
export function signed(w, unit) {
	return `${w > 0 ? '+' : w < 0 ? '−' : ''}${weight(Math.abs(w), unit)}`;
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
