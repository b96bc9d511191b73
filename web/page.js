// SPDX-License-Identifier: MIT OR Apache-2.0
// What a view and the page's frame (app.js) are to each other, and the few DOM tools all views use.
//
// A view is made once, when it is first shown: `makeFlameView(page)`, `makeSourceView(page)`,
// `makeTableView(page)`, …. It builds its own element and nothing outside of it. The frame calls
// `show()` whenever the view is on screen and something it may depend on has changed (state,
// size, theme); a view keeps what it computed and compares. A view never writes the address: it
// calls `page.go()`, the frame encodes the state, and calls `show()` again.
//
// Text from a profile reaches the document through textContent and attributes only.

/** @typedef {import('./types.js').Model} Model */
/** @typedef {import('./types.js').Query} Query */

/** @typedef {'overview' | 'flame' | 'tree' | 'table' | 'sandwich' | 'time' | 'source' | 'diff'} ViewName */

/**
 * Everything the address holds. Fields a view invents stand in `more`, prefixed with the view's
 * name ("flame.zoom", "source.line"); values are short strings.
 * @typedef {object} PageState
 * @property {ViewName} view
 * @property {number} f         the chosen function (index into model.functions); -1 none
 * @property {string} search    what is marked in all views; "" nothing
 * @property {import('./types.js').By} by   rows of the table
 * @property {Query} query
 * @property {{[key: string]: string}} more
 */

/**
 * @typedef {object} Page
 * @property {Model} model
 * @property {Model | null} base   the session to compare with; this one itself, at `query.since`
 * @property {Model | null} other  the other session of the page, if it has one
 * @property {() => string} baseName   of the base, '' when there is none
 * @property {PageState} state     now; never written by a view
 * @property {(change: Partial<PageState>, how?: 'push' | 'replace') => void} go
 *   merges the change into the state (`more` is merged key by key, "" removes). 'push' (the
 *   default) makes a step for the back button, 'replace' does not: for sliders and typing
 * @property {(change: Partial<PageState>) => string} href   the address go() would lead to, for links
 * @property {() => import('./query.js').Profile} profile   of state.query, made once; with a query
 *   that cannot be read the last one that could
 * @property {() => Error | null} queryError   why state.query cannot be read
 * @property {() => import('./query.js').Profile | null} baseProfile   the same of `base`
 * @property {(f: number, view?: ViewName) => void} open   go({f, view}); default: sandwich
 * @property {(t: import('./types.js').Transform) => void} transform   adds one to the query
 * @property {(text: string) => void} say    to the live region and the status line
 * @property {(text: string, what: string) => void} copy   to the clipboard; says "copied: what"
 * @property {(name: string, type: string, text: string) => void} save   as a file
 * @property {(at: {x: number, y: number}, items: MenuItem[]) => void} menu   a context menu
 * @property {(f: number) => MenuItem[]} functionMenu   what can be done with a function: focus,
 *   drop, merge, collapse, source, sandwich, copy; the same in all views
 * @property {(anchor: HTMLElement | null, text: string) => void} tip   by the pointer; null hides
 * @property {() => boolean} dark
 */

/** @typedef {{label: string, key?: string, run: () => void} | null} MenuItem   null: a line */

/**
 * @typedef {object} View
 * @property {HTMLElement} element
 * @property {HTMLElement} [controls]  its buttons; the frame puts them right of the view's title
 * @property {() => void} show
 * @property {() => void} [hide]
 * @property {(event: KeyboardEvent) => boolean} [key]  true: used up. Asked before the frame
 * @property {() => string} [text]     for "copy as text"
 * @property {() => string} [svg]      for "save as SVG"
 * @property {[string, string][]} [keys]   for the help: key, what it does
 */

/**
 * An element: `el('button', {class: 'quiet', title: name, onclick: f}, 'text', child)`.
 * Names that begin with "on" are listeners, `dataset` and `style` are objects, true and false set
 * or leave a boolean attribute, null leaves out. Strings become text nodes.
 * @param {string} tag
 * @param {{[name: string]: any}} [attributes]
 * @param {...(Node | string | null | undefined)} children
 * @returns {HTMLElement}
 */
export function el(tag, attributes = {}, ...children) {
	const e = document.createElement(tag);
	for (const [name, value] of Object.entries(attributes)) {
		if (value === null || value === undefined || value === false) continue;
		if (name.startsWith('on')) e.addEventListener(name.slice(2), value);
		else if (name === 'style')
			for (const [k, v] of Object.entries(value)) e.style.setProperty(k, String(v));
		else if (name === 'dataset') Object.assign(e.dataset, value);
		else e.setAttribute(name, value === true ? '' : String(value));
	}
	for (const child of children) if (child !== null && child !== undefined) e.append(child);
	return e;
}

/**
 * Replaces all children.
 * @param {Element} e
 * @param {...(Node | string | null | undefined)} children
 */
export function fill(e, ...children) {
	e.replaceChildren(...children.filter(c => c !== null && c !== undefined));
}

/**
 * The value of a colour of style.css ("--ink"), for canvases. Ask again when the theme changes.
 * @param {string} name
 */
export function cssColor(name) {
	return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
