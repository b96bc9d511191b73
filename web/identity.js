// SPDX-License-Identifier: MIT OR Apache-2.0
// What a row is called once everything that another build changes is taken out of its name, so that
// sessions of two builds can be compared: as src/model/diff/identity.c and match.c.

/** @typedef {import('./types.js').Model} Model */
/** @typedef {import('./names.js').Name} Name */

const UNSTABLE = new RegExp([
	'[{}]',
	'(?<=\\w)\\[[0-9a-f]{5,16}\\]', // crate disambiguator
	'#\\d+', // number of a closure or impl, in braces
	'::h[0-9a-f]{16}(?![\\w:])', // hash of a legacy name
	'(?<=.)\\.(?:part|isra|constprop|cold|llvm|lto_priv|localalias|warm|hot)(?!\\w)(?:\\.\\d+)?',
].join('|'), 'gs');

/** @param {string} full */
export function stableFunction(full) {
	let braces = 0;
	return full.replace(UNSTABLE, part => {
		if (part === '{')
			braces++;
		else if (part === '}')
			braces = Math.max(0, braces - 1);
		else if (part[0] !== '#' || braces)
			return '';
		return part;
	});
}

/** Cargo's hash of tests and benches taken off. @param {string} name */
export function stableModule(name) {
	return name.length > 17 ? name.replace(/-[0-9a-f]{16}$/, '') : name;
}

/** Rows of one session under names that survive a rebuild. */
export class Identity {
	/** @param {Model} model */
	constructor(model) {
		this.model = model;
		this.program = (model.meta.info.program ?? '').split('/').pop() ?? '';
		this.cwd = model.meta.info.cwd ?? '';
		/** @type {Map<string, number> | null} */
		this.firstLine = null;
	}

	/** The recorded program's own module is the same whatever its file is called. @param {string} name */
	module(name) {
		return name === this.program ? '' : stableModule(name);
	}

	/** A path without the folder the build was made in. @param {string} file */
	file(file) {
		if (this.cwd.length > 1 && file.startsWith(this.cwd + '/'))
			return file.slice(this.cwd.length + 1);
		return file.replace(/^\/rustc\/[^/]*\//, '/rustc/');
	}

	/** A line keeps its place in its function, which may move as a whole. @param {Name} name */
	line(name) {
		if (!this.firstLine) {
			const {functions: f, strings} = this.model;
			this.firstLine = new Map();
			for (let i = f.n - 1; i >= 0; i--)
				this.firstLine.set(strings[f.full[i]], f.line[i]);
		}
		const first = this.firstLine.get(name.full) ?? 0, f = stableFunction(name.full);
		if (first && name.line >= first)
			return `${f}+${name.line - first}`;
		return `${f}\n${this.file(name.file)}:${name.line}`;
	}

	/** @param {Name} name */
	of(name) {
		switch (name.kind) {
		case 'function':
			return `function ${stableFunction(name.full)}\n${this.module(name.module)}`;
		case 'line':
			return `line ${this.line(name)}`;
		case 'file':
			return `file ${this.file(name.brief)}`;
		case 'module':
			return `module ${this.module(name.brief)}`;
		default:
			return `${name.kind} ${name.brief}`;
		}
	}
}
