// SPDX-License-Identifier: MIT OR Apache-2.0
// The rows of the source view: a function's lines, with what was inlined into a line unfolded under
// it, each with its instructions and its cost. Pure.
//
// An instruction stands for a chain of places, innermost first. The outermost one that is of the
// function itself says under which line it belongs; what is inside of it are nested calls that were
// inlined. Costs of the function's lines come from the profile (exact); those of inlined lines are
// sums over their instructions at this call site, with half widths added as squares: instructions
// are nearly independent, and a sum of dependent ones would be wider.

/** @typedef {import('./types.js').Listing} Listing */
/** @typedef {import('./types.js').SourceFile} SourceFile */
/** @typedef {import('./types.js').Share} Share */
/** @typedef {{self: Share, total: Share}} LineCost */

/**
 * Code that one function left at one call site.
 * @typedef {object} InlineGroup
 * @property {string} id        unique within the listing: path of lines and groups
 * @property {string} name
 * @property {number} key       index of the function, -1 none
 * @property {number} source    index into sources, -1 none
 * @property {number[]} insns
 * @property {Map<number, InlineLine>} lines
 */
/**
 * @typedef {object} InlineLine
 * @property {number} line
 * @property {number[]} insns   of it and all that is inlined into it
 * @property {number[]} own     of it alone
 * @property {Map<string, InlineGroup>} groups
 */
/** @typedef {{source: number, lines: Map<number, InlineLine>}} CodeSection   lines of one file */

/**
 * @typedef {object} CodeRow
 * @property {'line' | 'inline' | 'file' | 'gap'} kind   gap: lines that are left out
 * @property {string} id
 * @property {number} depth          0: the function's own lines
 * @property {number} source         index into sources
 * @property {number} line           0: none (kind 'file', 'inline'); gap: how many lines
 * @property {InlineLine | null} at  null: no instruction
 * @property {InlineGroup | null} group   kind 'inline'
 * @property {boolean} open          kind 'inline'
 */

/** More than any chain of inlined calls that a compiler makes. */
const CODE_DEPTH_MAX = 200;

/** @param {number} line @returns {InlineLine} */
function emptyLine(line) {
	return {line, insns: [], own: [], groups: new Map()};
}

/** @param {Map<number, InlineLine>} lines @param {number} line */
function lineIn(lines, line) {
	let found = lines.get(line);
	if (!found)
		lines.set(line, found = emptyLine(line));
	return found;
}

/**
 * Which places of an instruction's chain are the function's own: the outermost that names it.
 * @param {Listing} listing
 * @param {number} insn
 * @returns {number} offset into the chain, -1 no chain
 */
export function ownPlace(listing, insn) {
	const {place, nplaces} = listing.insns[insn];
	for (let k = nplaces - 1; k >= 0; k--)
		if (listing.places[place + k] && listing.places[place + k].key === listing.function)
			return k;
	return Math.min(nplaces, CODE_DEPTH_MAX) - 1;
}

/**
 * @param {Listing} listing
 * @returns {{sections: CodeSection[], lineOf: Int32Array}} the function's own file first; lineOf: per
 *   instruction the line of the first section it belongs to, 0 none
 */
export function codeSections(listing) {
	/** @type {Map<number, CodeSection>} */
	const sections = new Map();
	const own = listing.files.length ? listing.files[0] : -1;
	if (own >= 0)
		sections.set(own, {source: own, lines: new Map()});
	const lineOf = new Int32Array(listing.insns.length);
	listing.insns.forEach((insn, i) => {
		const outer = ownPlace(listing, i), place = listing.places[insn.place + outer];
		if (outer < 0 || !place || !place.line)
			return;
		let section = sections.get(place.source);
		if (!section)
			sections.set(place.source, section = {source: place.source, lines: new Map()});
		if (place.source === own)
			lineOf[i] = place.line;
		let line = lineIn(section.lines, place.line), id = `${place.source}:${place.line}`;
		line.insns.push(i);
		for (let k = outer - 1; k >= 0; k--) {
			const p = listing.places[insn.place + k];
			if (!p)
				break;
			const name = `${p.key}/${p.source}/${p.function}`;
			id += `>${name}`;
			let group = line.groups.get(name);
			if (!group) {
				group = {id, name: p.function, key: p.key, source: p.source, insns: [], lines: new Map()};
				line.groups.set(name, group);
			}
			group.insns.push(i);
			line = lineIn(group.lines, p.line);
			line.insns.push(i);
			id += `:${p.line}`;
		}
		line.own.push(i);
	});
	return {sections: [...sections.values()], lineOf};
}

/**
 * Sum over instructions.
 * @param {(LineCost | null)[]} costs
 * @param {number[]} insns
 * @param {'self' | 'total'} what
 * @returns {Share}
 */
export function sumShares(costs, insns, what) {
	let value = 0, below = 0, above = 0, samples = 0;
	for (const i of insns) {
		const cost = costs[i];
		if (!cost)
			continue;
		const s = cost[what];
		value += s.value;
		samples += s.samples;
		below += (s.value - s.low) ** 2;
		above += (s.high - s.value) ** 2;
	}
	return {value, low: Math.max(0, value - Math.sqrt(below)), high: Math.min(1, value + Math.sqrt(above)), samples};
}

/**
 * The groups that are open without anyone asking: those that cost a good part of the function.
 * @param {CodeSection[]} sections
 * @param {(LineCost | null)[]} costs
 * @param {number} [part]
 * @returns {Set<string>}
 */
export function hotGroups(sections, costs, part = 0.04) {
	/** @type {Set<string>} */
	const open = new Set();
	const value = (/** @type {number[]} */ insns) => sumShares(costs, insns, 'self').value;
	const whole = costs.reduce((sum, c) => sum + (c ? c.self.value : 0), 0);
	const visit = (/** @type {InlineLine} */ line) => {
		for (const group of line.groups.values()) {
			if (whole > 0 && value(group.insns) >= part * whole) {
				open.add(group.id);
				group.lines.forEach(visit);
			}
		}
	};
	for (const section of sections)
		section.lines.forEach(visit);
	return open;
}

/**
 * All groups, for "unfold all".
 * @param {CodeSection[]} sections
 * @returns {Set<string>}
 */
export function allGroups(sections) {
	/** @type {Set<string>} */
	const open = new Set();
	const visit = (/** @type {InlineLine} */ line) => {
		for (const group of line.groups.values()) {
			open.add(group.id);
			group.lines.forEach(visit);
		}
	};
	for (const section of sections)
		section.lines.forEach(visit);
	return open;
}

/**
 * @param {CodeSection[]} sections
 * @param {SourceFile[]} sources
 * @param {Set<string>} open   ids of groups
 * @param {(LineCost | null)[]} costs   hottest group of a line first
 * @returns {CodeRow[]}
 */
export function codeRows(sections, sources, open, costs) {
	/** @type {CodeRow[]} */
	const rows = [];
	sections.forEach((section, n) => {
		const file = sources[section.source];
		if (n > 0 && section.lines.size)
			rows.push({kind: 'file', id: `file ${section.source}`, depth: 0, source: section.source, line: 0, at: null, group: null, open: false});
		const numbers = new Set(section.lines.keys());
		if (n === 0 && file)
			file.lines.forEach((text, i) => text !== null && numbers.add(file.first + i));
		let last = Infinity;
		for (const line of [...numbers].sort((a, b) => a - b)) {
			if (line > last + 1)
				rows.push({kind: 'gap', id: `gap ${section.source}:${line}`, depth: 0, source: section.source, line: line - last - 1, at: null, group: null, open: false});
			last = line;
			pushLine(rows, section.source, line, section.lines.get(line) || null, 0, `${section.source}:${line}`, open, costs);
		}
	});
	return rows;
}

/**
 * @param {CodeRow[]} rows
 * @param {number} source
 * @param {number} line
 * @param {InlineLine | null} at
 * @param {number} depth
 * @param {string} id
 * @param {Set<string>} open
 * @param {(LineCost | null)[]} costs
 */
function pushLine(rows, source, line, at, depth, id, open, costs) {
	rows.push({kind: 'line', id, depth, source, line, at, group: null, open: false});
	if (!at || !at.groups.size)
		return;
	const value = (/** @type {InlineGroup} */ g) => sumShares(costs, g.insns, 'total').value;
	const groups = [...at.groups.values()].map(g => ({g, v: value(g)})).sort((a, b) => b.v - a.v);
	for (const {g} of groups) {
		const isOpen = open.has(g.id);
		rows.push({kind: 'inline', id: g.id, depth: depth + 1, source: g.source, line: 0, at: null, group: g, open: isOpen});
		if (!isOpen)
			continue;
		for (const l of [...g.lines.values()].sort((a, b) => a.line - b.line))
			pushLine(rows, g.source, l.line, l, depth + 1, `${g.id}:${l.line}`, open, costs);
	}
}

/**
 * Text of a line of a source, null when it is not there.
 * @param {SourceFile | undefined} file
 * @param {number} line
 * @returns {string | null}
 */
export function lineText(file, line) {
	return file && line >= file.first ? file.lines[line - file.first] ?? null : null;
}
