// SPDX-License-Identifier: MIT OR Apache-2.0
// The page's state in the address, and back. The address holds what differs from the default, as
// name=value pairs. It may come from anyone: each field is checked by itself, and what does not fit
// is left out, so that a page always comes up.
import {MEASURES, momentChoices} from './memory.js';
import {defaultQuery} from './query.js';

/** @typedef {import('./page.js').PageState} PageState */
/** @typedef {import('./types.js').Model} Model */
/** @typedef {import('./types.js').Query} Query */
/** @typedef {import('./types.js').Transform} Transform */

/** @type {PageState['view'][]} */
const VIEWS = ['overview', 'flame', 'tree', 'table', 'sandwich', 'time', 'source', 'diff'];
/** @type {PageState['by'][]} */
const BYS = ['function', 'line', 'file', 'crate', 'module', 'thread', 'process'];
/** @type {Transform['kind'][]} */
const KINDS = ['focus', 'drop', 'merge', 'recursion', 'crate', 'fold'];
const LENGTH_MAX = 20000, TEXT_MAX = 500, LIST_MAX = 1000, TRANSFORMS_MAX = 100, MORE_MAX = 50;
const MORE_NAME = /^[a-z]{1,20}\.[A-Za-z0-9-]{1,30}$/;

/** @returns {PageState} */
export function defaultState() {
	return {view: 'overview', f: -1, search: '', by: 'function', query: defaultQuery(), more: {}};
}

/** @param {Transform} t */
function transformText(t) {
	return [t.kind, t.f, t.name].filter(part => part !== undefined).join(':');
}

/**
 * @param {PageState} state
 * @returns {string} without '#'
 */
export function encodeState(state) {
	/** @type {string[]} */
	const out = [];
	const d = defaultState(), q = state.query;
	/** @param {string} name @param {string | number} value @param {string | number} [usual] */
	const put = (name, value, usual = '') => {
		if (value !== usual)
			out.push(`${name}=${escapeText(String(value))}`);
	};
	put('view', state.view, d.view);
	put('f', state.f, d.f);
	put('search', state.search);
	put('by', state.by, d.by);
	put('from', q.from, 0);
	put('to', q.to, 0);
	if (q.threads)
		out.push(`threads=${q.threads.join(',')}`);
	put('focus', q.focus);
	put('ignore', q.ignore);
	put('hide', q.hide);
	put('change', q.transforms.map(transformText).join(','));
	if (q.noInline)
		out.push('noinline');
	if (q.noKernel)
		out.push('nokernel');
	if (!q.generics)
		out.push('folded');
	put('measure', q.measure ?? '');
	if (q.plumbing)
		out.push('plumbing');
	put('at', q.at ?? 0, 0);
	put('since', q.since ?? 0, 0);
	for (const name of Object.keys(state.more).sort())
		if (MORE_NAME.test(name))
			put(name, state.more[name]);
	return out.join('&');
}

/** What an address may hold as it is stays readable. @param {string} s */
function escapeText(s) {
	return encodeURIComponent(wellFormed(s)).replace(/%(3A|2C|2F|40|24|3B)/g,
		(_, hex) => String.fromCharCode(parseInt(hex, 16)));
}

/** Half a surrogate pair would throw. @param {string} s */
function wellFormed(s) {
	const half = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
	return s.replace(half, '\ufffd');
}

/**
 * A whole number below `limit`, or null.
 * @param {string} text
 * @param {number} limit
 */
function numberIn(text, limit) {
	const n = /^\d{1,16}$/.test(text) ? Number(text) : NaN;
	return n < limit ? n : null;
}

/**
 * @param {string} text
 * @param {Model} [model]
 * @returns {Transform | null}
 */
function readTransform(text, model) {
	const [kindText, ...rest] = text.split(':'), kind = KINDS.find(k => k === kindText);
	if (!kind)
		return null;
	if (kind === 'fold')
		return /^[a-z]{1,20}$/.test(rest[0] ?? '') ? {kind, name: rest[0]} : null;
	if (rest.length === 0)
		return kind === 'recursion' || kind === 'crate' ? {kind} : null;
	const f = numberIn(rest[0], model ? keyLimit(model) : 2 ** 32 - 2);
	return f === null ? null : {kind, f};
}

/** Keys that depend on the session alone (names.js). @param {Model} model */
function keyLimit(model) {
	return model.functions.n + model.threads.length + model.processes.length +
		2 * model.modules.length + 1 + 2 * model.strings.length;
}

/**
 * @param {Query} q  filled in
 * @param {Map<string, string>} fields
 * @param {Model} [model]
 */
function readQuery(q, fields, model) {
	q.from = numberIn(fields.get('from') ?? '', 2 ** 53) ?? 0;
	q.to = numberIn(fields.get('to') ?? '', 2 ** 53) ?? 0;
	if (q.to && q.to <= q.from)
		q.from = q.to = 0;
	const threads = fields.get('threads');
	if (threads !== undefined) {
		const limit = model ? model.threads.length : 2 ** 31;
		const list = threads.split(',').slice(0, LIST_MAX).map(t => numberIn(t, limit))
			.filter(t => t !== null);
		q.threads = list.length ? Array.from(new Set(list)) : null;
	}
	for (const name of /** @type {const} */ (['focus', 'ignore', 'hide']))
		q[name] = (fields.get(name) ?? '').slice(0, TEXT_MAX);
	q.transforms = (fields.get('change') ?? '').split(',').slice(0, TRANSFORMS_MAX)
		.map(t => readTransform(t, model)).filter(t => t !== null);
	q.noInline = fields.has('noinline');
	q.noKernel = fields.has('nokernel');
	q.generics = !fields.has('folded');
	q.measure = MEASURES.find(m => m.name === fields.get('measure'))?.name ?? '';
	q.plumbing = fields.has('plumbing');
	const moments = model ? model.meta.memory ? momentChoices(model).length + 1 : 1 : 2 ** 31;
	q.at = numberIn(fields.get('at') ?? '', moments) ?? 0;
	q.since = numberIn(fields.get('since') ?? '', moments) ?? 0;
}

/** @param {string} fragment @returns {Map<string, string>} */
function fieldsOf(fragment) {
	/** @type {Map<string, string>} */
	const fields = new Map();
	for (const pair of fragment.replace(/^#/, '').slice(0, LENGTH_MAX).split('&')) {
		const at = pair.indexOf('=');
		try {
			fields.set(at < 0 ? pair : pair.slice(0, at), at < 0 ? '' :
				decodeURIComponent(pair.slice(at + 1)));
		} catch {
			// not as we write it: left out
		}
	}
	return fields;
}

/**
 * @param {string} fragment  with or without '#'
 * @param {Model} [model]  numbers that refer to nothing in it are left out
 * @returns {PageState}
 */
export function decodeState(fragment, model) {
	const state = defaultState(), fields = fieldsOf(fragment);
	state.view = VIEWS.find(v => v === fields.get('view')) ?? state.view;
	state.by = BYS.find(b => b === fields.get('by')) ?? state.by;
	state.f = numberIn(fields.get('f') ?? '', model ? model.functions.n : 2 ** 32 - 2) ?? -1;
	state.search = (fields.get('search') ?? '').slice(0, TEXT_MAX);
	readQuery(state.query, fields, model);
	let n = 0;
	for (const [name, value] of fields)
		if (MORE_NAME.test(name) && n++ < MORE_MAX)
			state.more[name] = value.slice(0, TEXT_MAX);
	return state;
}
