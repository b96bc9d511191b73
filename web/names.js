// SPDX-License-Identifier: MIT OR Apache-2.0
// Keys and what they stand for. One space of keys for all kinds, so that a key means the same in
// every tree and table of a profile:
//
//	functions | threads | processes | modules | modules as stand-ins "[libc.so.6]", one more for
//	"[unknown]" | crates and files, by string | lines, numbered as they are met
//
// All but the lines depend on the session alone and may stand in an address.
import {CATEGORIES, FUNCTION_MARKER, FUNCTION_SYNTHETIC} from './model.js';
import {KeyTree} from './ktree.js';

/** @typedef {import('./types.js').Model} Model */
/** @typedef {'all' | 'function' | 'line' | 'file' | 'crate' | 'module' | 'thread' | 'process'} Kind */

/**
 * @typedef {object} Name
 * @property {Kind} kind
 * @property {number} index  function (also of a line), thread, process or module; -1
 * @property {string} brief
 * @property {string} full
 * @property {string} crate
 * @property {string} module
 * @property {string} file
 * @property {number} line   of a thread or process its id
 * @property {number} category
 * @property {boolean} unsymbolized
 * @property {boolean} marker
 */

/** @type {Name} */
const NO_NAME = {kind: 'all', index: -1, brief: 'all', full: 'all', crate: '', module: '', file: '',
	line: 0, category: CATEGORIES.indexOf('unknown'), unsymbolized: false, marker: false};

/**
 * The name without what stands in its type parameters: "Vec<u8>::push" -> "Vec<_>::push". What a
 * name begins with ("<Foo<T> as Bar>::f") is no parameter.
 * @param {string} name
 */
export function withoutGenerics(name) {
	if (!name.includes('<'))
		return name;
	let out = '', depth = 0;
	for (let i = 0; i < name.length; i++) {
		const c = name[i], before = i ? name[i - 1] : '';
		if (c === '<' && (depth || /[\w:]/.test(before)) && !out.endsWith('operator') &&
			!out.endsWith('operator<')) {
			if (depth++ === 0)
				out += '<_';
		} else if (c === '>' && depth && before !== '-') {
			if (--depth === 0)
				out += '>';
		} else if (!depth) {
			out += c;
		}
	}
	return depth ? name : out;
}

/**
 * A closure is named by its line, which is what tells a function's closures apart for a reader:
 * "main::{closure}" -> "main::{closure:9}".
 * @param {string} brief
 * @param {number} line
 */
export function closureName(brief, line) {
	return line && brief.endsWith('{closure}') ? `${brief.slice(0, -1)}:${line}}` : brief;
}

export class Names {
	/**
	 * @param {Model} model
	 * @param {boolean} generics  false: functions that differ in type parameters alone are one
	 */
	constructor(model, generics) {
		this.model = model;
		const texts = model.strings.length, modules = model.modules.length;
		this.threads = model.functions.n;
		this.processes = this.threads + model.threads.length;
		this.modules = this.processes + model.processes.length;
		this.standIns = this.modules + modules;
		this.crates = this.standIns + modules + 1;
		this.files = this.crates + texts;
		this.lines = this.files + texts;
		this.noText = model.strings.indexOf('');
		// (function, file, line) -> a node, whose number follows `lines`.
		this.lineTree = new KeyTree();
		/** @type {Map<number, Name>} */
		this.made = new Map();
		/** @type {Map<number, string>} */
		this.folded = new Map();
		/** The function that stands for each: itself, or the first of its kind. */
		this.functionKey = Uint32Array.from({length: model.functions.n}, (_, i) => i);
		if (!generics)
			this.fold();
		/** @type {Map<number, number> | null} */
		this.crateCategory = null;
	}

	fold() {
		const {functions: f, strings} = this.model;
		/** @type {Map<number, string>} */
		const shorts = new Map();
		/** @type {Map<string, number>} */
		const firsts = new Map();
		for (let i = 0; i < f.n; i++) {
			if (f.flags[i] & FUNCTION_MARKER)
				continue;
			let short = shorts.get(f.brief[i]);
			if (short === undefined) {
				short = withoutGenerics(strings[f.brief[i]]);
				shorts.set(f.brief[i], short);
			}
			const line = short.includes('{closure}') ? f.line[i] : '';
			const meaning = `${f.crate[i]},${f.file[i]},${f.module[i]},${line},${short}`;
			const first = firsts.get(meaning);
			if (first === undefined) {
				firsts.set(meaning, i);
			} else {
				this.functionKey[i] = first;
				if (f.brief[first] !== f.brief[i])
					this.folded.set(first, short);
			}
		}
	}

	/** Keys are below. Grows when lines are numbered. */
	get count() {
		return this.lines + this.lineTree.n;
	}

	/** @param {number} f */
	keyOf(f) {
		return this.functionKey[f] ?? KEY_NOTHING;
	}

	/** @param {number} module  -1 unknown */
	standIn(module) {
		return module >= 0 ? this.standIns + module : this.crates - 1;
	}

	/** @param {number} f @param {number} module  of the frame */
	crateKey(f, module) {
		const crate = this.model.functions.crate[f];
		return this.model.strings[crate] ? this.crates + crate : this.standIn(module);
	}

	/** @param {number} file @param {number} module */
	fileKey(file, module) {
		return this.model.strings[file] ? this.files + file : this.standIn(module);
	}

	/** @param {number} f @param {number} file @param {number} line */
	lineKey(f, file, line) {
		const t = this.lineTree;
		return this.lines + t.child(t.child(t.child(0, this.functionKey[f]), file), line);
	}

	/** Of a line's key. @param {number} key */
	fileAndLine(key) {
		const t = this.lineTree, node = key - this.lines;
		return {file: t.key[t.parent[node]], line: t.key[node], f: t.key[t.parent[t.parent[node]]]};
	}

	/**
	 * The key is a function's or a line's in one: that function; else -1.
	 * @param {number} key
	 */
	functionOf(key) {
		if (key < this.threads)
			return key;
		return key >= this.lines && key < this.count ? this.fileAndLine(key).f : -1;
	}

	/** @param {number} key */
	isMarker(key) {
		const f = this.functionOf(key);
		return f >= 0 && (this.model.functions.flags[f] & FUNCTION_MARKER) !== 0;
	}

	/**
	 * @param {number} key
	 * @returns {Name}
	 */
	name(key) {
		let name = this.made.get(key);
		if (!name) {
			name = this.make(key);
			if (this.made.size < 1e5)
				this.made.set(key, name);
		}
		return name;
	}

	/** @param {number} key @returns {Name} */
	make(key) {
		if (!(key >= 0 && key < this.count))
			return NO_NAME;
		if (key < this.threads)
			return this.ofFunction(key);
		if (key < this.modules)
			return this.ofTask(key);
		if (key < this.crates)
			return this.ofModule(key);
		if (key >= this.lines) {
			const {f, file, line} = this.fileAndLine(key);
			const text = this.model.strings[file] ?? '';
			return {...this.ofFunction(f), kind: 'line', file: text, line};
		}
		const text = this.model.strings[key < this.files ? key - this.crates : key - this.files];
		return key < this.files ? {...NO_NAME, kind: 'crate', brief: text, full: text, crate: text,
			category: this.categoryOfCrate(key - this.crates)} :
			{...NO_NAME, kind: 'file', brief: text, full: text, file: text};
	}

	/** @param {number} f @returns {Name} */
	ofFunction(f) {
		const {functions: t, strings, modules} = this.model;
		return {kind: 'function', index: f, brief: closureName(this.folded.get(f) ?? strings[t.brief[f]], t.line[f]),
			full: this.folded.get(f) ?? strings[t.full[f]], crate: strings[t.crate[f]],
			module: t.module[f] >= 0 ? modules[t.module[f]].name : '', file: strings[t.file[f]],
			line: t.line[f], category: t.category[f],
			unsymbolized: (t.flags[f] & FUNCTION_SYNTHETIC) !== 0,
			marker: (t.flags[f] & FUNCTION_MARKER) !== 0};
	}

	/** @param {number} key @returns {Name} */
	ofTask(key) {
		const isThread = key < this.processes;
		const index = key - (isThread ? this.threads : this.processes);
		const task = isThread ? this.model.threads[index] : this.model.processes[index];
		const name = task.name || '[unnamed]';
		return {...NO_NAME, kind: isThread ? 'thread' : 'process', index, brief: name, full: name,
			line: isThread ? this.model.threads[index].tid : this.model.processes[index].pid};
	}

	/** @param {number} key @returns {Name} */
	ofModule(key) {
		if (key < this.standIns) {
			const m = this.model.modules[key - this.modules];
			return {...NO_NAME, kind: 'module', index: key - this.modules,
				brief: m.name || '[unnamed]',
				full: m.path || m.name || '[unnamed]', module: m.name};
		}
		const m = this.model.modules[key - this.standIns];
		const text = !m ? '[unknown]' : m.name.startsWith('[') ? m.name : `[${m.name}]`;
		return {...NO_NAME, kind: 'module', index: m ? key - this.standIns : -1, brief: text,
			full: text,
			unsymbolized: true};
	}

	/** Of a crate: what its first function is. @param {number} crate */
	categoryOfCrate(crate) {
		const f = this.model.functions;
		if (!this.crateCategory) {
			this.crateCategory = new Map();
			for (let i = f.n - 1; i >= 0; i--)
				this.crateCategory.set(f.crate[i], f.category[i]);
		}
		return this.crateCategory.get(crate) ?? NO_NAME.category;
	}
}

const KEY_NOTHING = 0xfffffffe;
