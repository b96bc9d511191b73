// SPDX-License-Identifier: MIT OR Apache-2.0
// The words of assay where they are used: one sentence each, shown on hover and on focus. The
// sentences are those of docs/glossary.md; tests/web/page.test.js compares them.
import {el} from './page.js';
import {showTip} from './layer.js';

/** @type {{[word: string]: string}} */
export const GLOSSARY = {
	bound: 'The upper end of an interval that is wider than its share: the share is not larger than this.',
	'complete stack':
		'A stack that was followed from the innermost function to the first function of its thread.',
	crate: "The Rust package a function's source belongs to; for other languages the module stands in.",
	'CPU time':
		"Time in which the program's threads ran on a processor, added up over them; waiting is not in it.",
	'effective rate':
		'Samples really taken per second of CPU time; below the asked rate when the kernel throttled.',
	engine: 'The way stacks are taken: kernel (unwound in the kernel, any size) or ring (unwound from a copy of the stack).',
	event: 'What triggers a sample: cycles of a hardware counter, or cpu-clock, a timer, where there is none.',
	frame: 'One function in a stack; an inlined function is a frame of its own.',
	'inlined function':
		'A function whose code the compiler put into its caller; assay takes it from the debug information.',
	interval:
		"The range in which the true share lies with 95 % confidence, computed from blocks of time in each thread so that a program's phases widen it.",
	live: 'Allocated and not given back: at the end of the run, or at a mark.',
	lost: 'Samples that were due but are not in the session, because the kernel or assay could not keep up.',
	'lost block':
		'One that nothing points to any more; indirectly lost: only lost blocks do. Possibly: all ways to it go through a pointer inside of a block. Still reachable: pointers lead to it.',
	mark: 'A named moment of a run, set from outside or by the program itself; what was live then is kept.',
	measure:
		'What the figures of a session of memory are in: allocs (calls that allocate), bytes (asked for), live (at the end), peak (when the process had most), churn (freed almost at once), growth (over the run), leaked (lost, where leaks were looked for), mapped (outside the allocator).',
	module: 'A file with code that the program ran: the executable, a library, the kernel, the vDSO.',
	'not separable':
		'Rows whose order these data do not decide: their difference is smaller than its own error.',
	peak: 'The moment when a process had most bytes allocated; what each stack had just then adds up to it.',
	'pinned page':
		'A page of memory that is nearly empty and cannot be given back, because a few live blocks lie in it.',
	recorder: 'The part of assay that runs beside the program; its CPU time is measured and shown.',
	'repaired stack':
		'A stack whose outer part was read a moment after the sample and checked to belong to it.',
	resident:
		"In the machine's memory, as the system counts it; what was asked for and never touched is not.",
	sample: 'One look at one thread: which stack it has, after a stretch of CPU time.',
	self: 'Time in the function itself, without what it called.',
	session:
		'The file a recording writes (*.assay); it holds samples, names and all that reports need.',
	skid: 'How far behind the instruction that took the time a sample stands; single instructions are told apart less surely than lines.',
	stack: 'The functions a thread was in, each called by the next outer one.',
	step: 'A place in a history of runs from which on the level differs; a single slow run is none.',
	total: 'Time in the function or in anything it called; a function that calls itself counts once.',
	trend: 'Figures of different times beside each other: the machine of either time is in them, so they are no verdict.',
	'truncated stack':
		'A stack whose outer part is missing, with the reason; its innermost functions are right.',
	'trust block':
		'The lines below a report that say how far its figures can be believed, and what mends them.',
	weight: 'The CPU time a sample stands for.',
};

/**
 * Gives an element the sentence of a word as its tip.
 * @template {HTMLElement} T
 * @param {T} element
 * @param {string} word
 * @returns {T}
 */
export function explain(element, word) {
	const text = GLOSSARY[word];
	if (!text) throw new Error(`no such word in the glossary: ${word}`);
	const on = () => showTip(element, `${word}: ${text}`);
	const off = () => showTip(null, '');
	element.addEventListener('pointerenter', on);
	element.addEventListener('focus', on);
	element.addEventListener('pointerleave', off);
	element.addEventListener('blur', off);
	element.setAttribute('aria-description', text);
	return element;
}

/**
 * A word that explains itself.
 * @param {string} word
 * @param {string} [label]  what is shown, when another form of the word fits the sentence
 */
export function term(word, label = word) {
	return explain(el('span', {class: 'term', tabindex: '0'}, label), word);
}

// Marks of a term within a text; private letters, which names lose (plainWords).
const TERM_BEGIN = '\ue000';
const TERM_WORD = '\ue001';
const TERM_END = '\ue002';

/**
 * A word within a text for `sentence()`.
 * @param {string} word
 * @param {string} [label]
 */
export function termMark(word, label = word) {
	return `${TERM_BEGIN}${label}${TERM_WORD}${word}${TERM_END}`;
}

/** Text from a profile for within a marked text. @param {string} text */
export function plainWords(text) {
	return text.replace(/[\ue000-\ue002]/g, '\ufffd');
}

/**
 * A marked text as what stands in the document.
 * @param {string} text
 * @returns {(Node | string)[]}
 */
export function sentence(text) {
	return text.split(/\ue000([^\ue002]*)\ue002/).map((part, i) => {
		if (i % 2 === 0) return part;
		const [label, word] = part.split(TERM_WORD);
		return term(word, label);
	});
}

/** A marked text without its marks. @param {string} text */
export function sentenceText(text) {
	return text.replace(/\ue000([^\ue001]*)\ue001[^\ue002]*\ue002/g, '$1');
}

/** The whole list, for the help. */
export function glossaryList() {
	return el(
		'dl',
		{class: 'words'},
		...Object.entries(GLOSSARY).flatMap(([word, text]) => [
			el('dt', {}, word),
			el('dd', {}, text),
		]),
	);
}
