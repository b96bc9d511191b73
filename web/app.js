// SPDX-License-Identifier: MIT OR Apache-2.0
// The page's frame: reads the data, keeps the state and the address the same, shows the view that
// is asked for, and answers to what all views share: search, keys, menus, theme, copying, help.
import {el, fill} from './page.js';
import {decodeModel} from './decode.js';
import {decodeState, defaultState, encodeState} from './state.js';
import {defaultQuery, makeProfile} from './query.js';
import {searchNames, searchShare} from './tree.js';
import {duration, shareText} from './format.js';
import {closeLayer, openDialog, openMenu, sayStatus, showTip, watchLayer} from './layer.js';
import {glossaryList} from './glossary.js';
import {FilterBar} from './filterbar.js';
import {makeMemoryOverview, makeMemoryTime} from './memoryview.js';
import {isMemory, momentName, momentsOf} from './memory.js';
import {makeOverview} from './overview.js';
import {exitText, functionName} from './firstscreen.js';
import {TableView} from './tableview.js';
import {TreeView} from './treeview.js';
import {SandwichView} from './sandwichview.js';
import {TimeView} from './timeview.js';
import {DiffView} from './diffview.js';
import {makeFlameView} from './flameview.js';
import {makeSourceView} from './codeview.js';

/** @typedef {import('./page.js').Page} Page */
/** @typedef {import('./page.js').PageState} PageState */
/** @typedef {import('./page.js').View} View */
/** @typedef {import('./page.js').ViewName} ViewName */
/** @typedef {import('./page.js').MenuItem} MenuItem */
/** @typedef {import('./types.js').Model} Model */

/** @type {{name: ViewName, label: string, make: (page: Page) => View}[]} */
const APP_VIEWS = [
	{name: 'overview', label: 'Overview', make: page => (isMemory(page.model) ? makeMemoryOverview(page) : makeOverview(page))},
	{name: 'flame', label: 'Flame graph', make: makeFlameView},
	{name: 'tree', label: 'Call tree', make: page => new TreeView(page)},
	{name: 'table', label: 'Functions', make: page => new TableView(page)},
	{name: 'sandwich', label: 'Sandwich', make: page => new SandwichView(page)},
	{name: 'source', label: 'Source', make: makeSourceView},
	{name: 'time', label: 'Time line', make: page => (isMemory(page.model) ? makeMemoryTime(page) : new TimeView(page))},
	{name: 'diff', label: 'Diff', make: page => new DiffView(page)},
];

/** @type {[string, string][]} */
const FRAME_KEYS = [
	['1 … 8', 'the views in their order'],
	['/', 'search in all views'],
	['Esc', 'close, or clear the search'],
	['u', 'take the last filter away'],
	['s', 'source of the chosen function'],
	['c', 'copy the view as text'],
	['t', 'light or dark'],
	['?', 'this help'],
];

// From where on what a view computes is felt, and the page says that it computes.
const SLOW_SAMPLES = 150000,
	SLOW_DELAY = 30;
const SEARCH_DELAY = 200,
	ADDRESS_DELAY = 250;

/** @param {string} id @returns {HTMLElement} */
function part(id) {
	const e = document.getElementById(id);
	if (!e) throw new Error(`index.html has no #${id}`);
	return e;
}

/** @type {WeakMap<Element, number>} */
const scrolledTo = new WeakMap();

/** Elements forget their place when they leave the document. @param {Element} root */
function keepScroll(root) {
	for (const e of [root, ...root.querySelectorAll('div')])
		if (e.scrollTop > 0) scrolledTo.set(e, e.scrollTop);
		else scrolledTo.delete(e);
}

/** @param {Element} root */
function restoreScroll(root) {
	for (const e of [root, ...root.querySelectorAll('div')]) {
		const top = scrolledTo.get(e);
		if (top) e.scrollTop = top;
	}
}

/** @implements {Page} */
class App {
	/** @param {Model} model @param {Model | null} base */
	constructor(model, base) {
		this.model = model;
		this.other = base;
		this.state = defaultState();
		/** @type {Map<ViewName, View>} */
		this.views = new Map();
		/** @type {{key: string, profile: import('./query.js').Profile} | null} */
		this.made = null;
		/** @type {{key: string, profile: import('./query.js').Profile} | null} */
		this.madeBase = null;
		/** @type {Error | null} */
		this.error = null;
		this.found = {key: /** @type {unknown} */ (null), text: ''};
		this.addressTimer = 0;
		this.searchTimer = 0;
		this.slowTimer = 0;
		this.slowKey = '';
		/** @type {View | null} */
		this.shown = null;
		this.list = APP_VIEWS.filter(v => v.name !== 'diff' || base || momentsOf(model).length);
		this.filters = new FilterBar(this, part('filters'));
		this.makeFrame();
		this.listen();
		// The command line's filters are where an address without any begins, in a view that has them.
		if (location.hash.length < 2 && this.model.meta.query)
			history.replaceState(null, '', '#' +
				encodeState({...defaultState(), view: this.model.meta.query.since ? 'diff' : 'flame',
					query: this.model.meta.query}));
		this.arrive();
	}

	// ---- what views use (page.js) ----

	/** @param {Partial<PageState>} change @returns {PageState} */
	merged(change) {
		const more = {...this.state.more, ...change.more};
		for (const [k, v] of Object.entries(more)) if (!v) delete more[k];
		const view = change.view ?? this.state.view;
		let query = change.query ?? this.state.query;
		// Of one session with marks: what came since the last one, until others are chosen.
		if (change.view === 'diff' && !this.other && !query.since && momentsOf(this.model).length)
			query = {...query, since: momentsOf(this.model).length + 1};
		return {
			...this.state,
			...change,
			query,
			more,
			view: this.list.some(v => v.name === view) ? view : 'sandwich',
		};
	}

	/** @param {Partial<PageState>} change @param {'push' | 'replace'} [how] */
	go(change, how = 'push') {
		const before = encodeState(this.state);
		this.state = this.merged(change);
		const now = encodeState(this.state);
		if (now === before) return;
		if (how === 'push') {
			this.writeAddress();
			history.pushState(null, '', `#${now}`);
		} else {
			clearTimeout(this.addressTimer);
			this.addressTimer = window.setTimeout(() => this.writeAddress(), ADDRESS_DELAY);
		}
		this.render();
	}

	/** Puts a state that was 'replaced' into the address before another step is made of it. */
	writeAddress() {
		if (!this.addressTimer) return;
		clearTimeout(this.addressTimer);
		this.addressTimer = 0;
		history.replaceState(null, '', `#${encodeState(this.state)}`);
	}

	/** @param {Partial<PageState>} change */
	href(change) {
		return `#${encodeState(this.merged(change))}`;
	}

	profile() {
		const key = JSON.stringify(this.state.query);
		if (this.made?.key === key) return this.made.profile;
		try {
			this.made = {key, profile: makeProfile(this.model, this.state.query)};
			this.error = null;
		} catch (error) {
			this.error = error instanceof Error ? error : new Error(String(error));
			this.made = {
				key,
				profile: this.made?.profile ?? makeProfile(this.model, defaultQuery()),
			};
			this.say(this.error.message);
		}
		return this.made.profile;
	}

	queryError() {
		return this.error;
	}

	get base() {
		return this.other ?? (this.state.query.since ? this.model : null);
	}

	baseName() {
		const {since} = this.state.query;
		return this.other ? this.other.meta.file : since ? momentName(this.model, since) : '';
	}

	baseProfile() {
		if (!this.other && this.base) return this.momentProfile();
		const {threads, transforms, from, to, ...query} = this.state.query;
		const key = JSON.stringify(query);
		if (!this.base) return null;
		// Ranges, threads and functions are the new session's; names and switches hold for both.
		const both = {
			...defaultQuery(),
			...query,
			transforms: transforms.filter(t => t.f === undefined),
		};
		if (this.madeBase?.key !== key + JSON.stringify(both.transforms))
			try {
				this.madeBase = {
					key: key + JSON.stringify(both.transforms),
					profile: makeProfile(this.base, both),
				};
			} catch {
				this.madeBase ??= {key: '', profile: makeProfile(this.base, defaultQuery())};
			}
		return this.madeBase.profile;
	}

	/** The same session at the moment it is compared with, under the same query. */
	momentProfile() {
		const {since, ...query} = this.state.query,
			key = JSON.stringify(this.state.query);
		if (this.madeBase?.key !== key)
			try {
				this.madeBase = {key, profile: makeProfile(this.model, {...query, at: since})};
			} catch {
				this.madeBase = {key, profile: makeProfile(this.model, {...defaultQuery(), at: since})};
			}
		return this.madeBase.profile;
	}

	/** @param {number} f @param {ViewName} [view] */
	open(f, view = 'sandwich') {
		this.go({f, view});
	}

	/** @param {import('./types.js').Transform} t */
	transform(t) {
		const {query} = this.state;
		this.go({query: {...query, transforms: [...query.transforms, t]}});
	}

	/** @param {string} text */
	say(text) {
		sayStatus(text);
	}

	/** @param {string} text @param {string} what */
	copy(text, what) {
		const done = () => this.say(`Copied: ${what}`);
		const byHand = () => {
			// Pages from disk may not use the clipboard API in all browsers.
			const area = /** @type {HTMLTextAreaElement} */ (
				el('textarea', {class: 'hide-visually'})
			);
			area.value = text;
			const from = document.activeElement;
			document.body.append(area);
			area.select();
			const ok = document.execCommand('copy');
			area.remove();
			if (from instanceof HTMLElement) from.focus();
			if (ok) done();
			else this.say('The browser does not let this page copy');
		};
		if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, byHand);
		else byHand();
	}

	/** @param {string} name @param {string} type @param {string} text */
	save(name, type, text) {
		const url = URL.createObjectURL(new Blob([text], {type}));
		const link = /** @type {HTMLAnchorElement} */ (el('a', {href: url, download: name}));
		link.click();
		setTimeout(() => URL.revokeObjectURL(url), 10000);
		this.say(`Saved: ${name}`);
	}

	/** @param {{x: number, y: number}} at @param {MenuItem[]} items */
	menu(at, items) {
		if (items.length) openMenu(at, items);
	}

	/** @param {HTMLElement | null} anchor @param {string} text */
	tip(anchor, text) {
		showTip(anchor, text);
	}

	dark() {
		return document.documentElement.dataset.theme === 'dark';
	}

	/** @param {number} f @returns {MenuItem[]} */
	functionMenu(f) {
		const name = functionName(this.model, f);
		const add = (
			/** @type {string} */ label,
			/** @type {'focus' | 'drop' | 'merge' | 'recursion' | 'crate'} */ kind,
		) => ({label, run: () => this.transform({kind, f})});
		return [
			{label: 'Callers and callees', run: () => this.open(f)},
			{label: 'Source and assembly', run: () => this.open(f, 'source')},
			{label: 'Mark it in all views', run: () => this.go({f, search: name.brief})},
			null,
			add('Only below this function', 'focus'),
			add('Without samples that pass it', 'drop'),
			add('Merge it into its callers', 'merge'),
			add('Its recursion as one frame', 'recursion'),
			...(name.crate ? [add(`Crate ${name.crate} as one frame`, 'crate')] : []),
			null,
			{label: 'Copy name', run: () => this.copy(name.full || name.brief, 'the name')},
			...(name.file
				? [
						{
							label: 'Copy place',
							run: () =>
								this.copy(
									`${name.file}${name.line ? `:${name.line}` : ''}`,
									'the place',
								),
						},
					]
				: []),
		].filter(
			item =>
				!item ||
				item.label !== 'Source and assembly' ||
				this.list.some(v => v.name === 'source'),
		);
	}

	// ---- the frame ----

	makeFrame() {
		const {meta} = this.model;
		const [exit] = exitText(meta.exit),
			wall = meta.wall ?? meta.duration;
		document.title = `${meta.program} – assay`;
		fill(
			part('program'),
			el('h1', {}, meta.program),
			el(
				'span',
				{class: 'run number'},
				duration(wall),
				meta.cpuTime === null ? '' : ` · ${duration(meta.cpuTime)} CPU`,
				el('span', {class: 'more'}, meta.exit === null ? '' : ` · exit ${exit}`),
			),
			el('span', {class: 'brand', title: meta.file}, `assay ${meta.version}`),
		);
		this.search = /** @type {HTMLInputElement} */ (
			el('input', {
				type: 'search',
				placeholder: 'Search names  /',
				'aria-label': 'Search names in all views',
				spellcheck: 'false',
				autocomplete: 'off',
			})
		);
		this.foundText = el('span', {id: 'found', class: 'number', 'aria-live': 'polite'});
		fill(
			part('tools'),
			this.foundText,
			this.search,
			el(
				'button',
				{
					class: 'quiet',
					onclick: () => this.copyView(),
					title: 'Copy the view as text (c)',
				},
				'Copy',
			),
			(this.saveButton = el(
				'button',
				{
					class: 'quiet',
					hidden: true,
					onclick: () => this.saveView(),
					title: 'Save as SVG',
				},
				'SVG',
			)),
			el(
				'button',
				{
					class: 'quiet icon',
					'aria-label': 'Light or dark',
					title: 'Light or dark (t)',
					onclick: () => this.toggleTheme(),
				},
				'◐',
			),
			el(
				'button',
				{
					class: 'quiet icon',
					'aria-label': 'Keys and words',
					title: 'Keys and words (?)',
					onclick: () => this.help(),
				},
				'?',
			),
		);
		this.links = this.list.map((v, i) =>
			el('a', {href: '#', title: `${v.label} (${i + 1})`, dataset: {view: v.name}}, v.label),
		);
		fill(part('views'), ...this.links);
		fill(part('main'));
	}

	listen() {
		watchLayer();
		addEventListener('popstate', () => this.arrive());
		addEventListener('hashchange', () => this.arrive());
		const search = /** @type {HTMLInputElement} */ (this.search);
		search.addEventListener('input', () => {
			clearTimeout(this.searchTimer);
			this.searchTimer = window.setTimeout(
				() => this.go({search: search.value}, 'replace'),
				SEARCH_DELAY,
			);
		});
		search.addEventListener('keydown', event => this.searchKey(event));
		document.addEventListener('keydown', event => {
			if (this.key(event)) event.preventDefault();
		});
		part('skip').addEventListener('click', event => {
			event.preventDefault();
			part('main').focus();
		});
		const scheme = matchMedia('(prefers-color-scheme: dark)');
		scheme.addEventListener('change', () => this.applyTheme());
		addEventListener('beforeprint', () => {
			document.documentElement.dataset.theme = 'light';
			this.current()?.show();
		});
		addEventListener('afterprint', () => this.applyTheme());
		// Links within the page are shown by arrive(); a link to where we are does nothing.
	}

	/** Shows what the address says. */
	arrive() {
		const state = decodeState(location.hash.slice(1), this.model);
		if (!this.list.some(v => v.name === state.view)) state.view = 'overview';
		if (this.shown && encodeState(state) === encodeState(this.state)) return;
		clearTimeout(this.addressTimer);
		this.addressTimer = 0;
		closeLayer();
		this.state = state;
		this.render();
	}

	/** @returns {View | undefined} */
	current() {
		return this.views.get(this.state.view);
	}

	render() {
		const {view: name} = this.state;
		let view = this.views.get(name);
		if (!view) {
			const made = this.list.find(v => v.name === name) ?? this.list[0];
			view = made.make(this);
			this.views.set(name, view);
		}
		if (this.shown !== view) {
			showTip(null, '');
			this.shown?.hide?.();
			if (this.shown) keepScroll(this.shown.element);
			fill(
				part('main'),
				view.controls ? el('div', {class: 'bar'}, view.controls) : null,
				view.element,
			);
			restoreScroll(view.element);
			this.shown = view;
		}
		for (const [i, link] of (this.links ?? []).entries()) {
			link.setAttribute('href', this.href({view: this.list[i].name}));
			if (link.dataset.view === name) link.setAttribute('aria-current', 'page');
			else link.removeAttribute('aria-current');
		}
		part('filters').hidden = name === 'overview';
		part('filters').classList.toggle('no-strip', name === 'time');
		if (this.saveButton) this.saveButton.hidden = !view.svg;
		if (this.search && document.activeElement !== this.search)
			this.search.value = this.state.search;
		clearTimeout(this.slowTimer);
		const {search, by, query, more} = this.state,
			key = JSON.stringify([name, search, by, query, more]);
		if (this.model.samples.n < SLOW_SAMPLES || name === 'overview' || key === this.slowKey) {
			this.finish(view);
			return;
		}
		this.slowKey = key;
		part('main').setAttribute('aria-busy', 'true');
		this.slowTimer = window.setTimeout(
			() => this.finish(/** @type {View} */ (view)),
			SLOW_DELAY,
		);
	}

	/** The part of render() that computes. @param {View} view */
	finish(view) {
		if (this.state.view !== 'overview') this.filters.show();
		view.show();
		this.showFound();
		part('main').removeAttribute('aria-busy');
	}

	/** What the searched names take, beside the search. */
	showFound() {
		const {search, view} = this.state;
		if (!this.foundText) return;
		if (!search || view === 'overview') {
			fill(this.foundText);
			return;
		}
		const profile = this.profile(),
			key = `${search} ${this.made?.key}`;
		if (this.found.key !== key) {
			const share = searchShare(profile, searchNames(profile, search));
			this.found = {key, text: share.samples ? `matched ${shareText(share)}` : 'no match'};
		}
		fill(this.foundText, this.found.text);
	}

	/** @param {KeyboardEvent} event */
	searchKey(event) {
		const search = /** @type {HTMLInputElement} */ (this.search);
		if (event.key === 'Escape') {
			search.value = '';
			this.go({search: ''}, 'replace');
			search.blur();
		} else if (event.key === 'Enter') {
			clearTimeout(this.searchTimer);
			this.go({
				search: search.value,
				...(this.state.view === 'overview' ? {view: 'table'} : {}),
			});
			this.current()?.key?.(new KeyboardEvent('keydown', {key: event.shiftKey ? 'N' : 'n'}));
		} else if (event.key === 'ArrowDown') {
			/** @type {HTMLElement | null} */ (
				part('main').querySelector('.grid, canvas[tabindex]')
			)?.focus();
		} else return;
		event.preventDefault();
	}

	/** @param {KeyboardEvent} event @returns {boolean} */
	key(event) {
		const target = event.target;
		if (
			event.defaultPrevented ||
			event.ctrlKey ||
			event.metaKey ||
			event.altKey ||
			document.querySelector('dialog[open]')
		)
			return false;
		if (
			target instanceof HTMLElement &&
			target.closest('input, select, textarea, .menu, .panel')
		)
			return false;
		if (this.current()?.key?.(event)) return true;
		if (/^[1-9]$/.test(event.key) && this.list[Number(event.key) - 1]) {
			this.go({view: this.list[Number(event.key) - 1].name});
			return true;
		}
		return this.frameKey(event.key);
	}

	/** @param {string} key @returns {boolean} */
	frameKey(key) {
		switch (key) {
			case '/':
				this.search?.focus();
				this.search?.select();
				return true;
			case '?':
				this.help();
				return true;
			case 'c':
				this.copyView();
				return true;
			case 't':
				this.toggleTheme();
				return true;
			case 's':
				if (this.state.f < 0) return false;
				this.open(this.state.f, 'source');
				return true;
			case 'u':
				this.undo();
				return true;
			case 'Escape':
				if (!this.state.search) return false;
				this.go({search: ''});
				return true;
		}
		return false;
	}

	/** Takes the last transform away, else the last of the other filters. */
	undo() {
		const {query} = this.state;
		if (query.transforms.length)
			this.go({query: {...query, transforms: query.transforms.slice(0, -1)}});
		else if (query.hide || query.ignore || query.focus)
			this.go({
				query: {
					...query,
					hide: '',
					ignore: query.hide ? query.ignore : '',
					focus: query.hide || query.ignore ? query.focus : '',
				},
			});
		else if (query.threads) this.go({query: {...query, threads: null}});
		else if (query.to) this.go({query: {...query, from: 0, to: 0}});
		else this.say('No filter is in force');
	}

	copyView() {
		const text = this.current()?.text?.();
		if (text) this.copy(text, 'this view as text');
		else this.say('There is nothing to copy here');
	}

	saveView() {
		const svg = this.current()?.svg?.();
		if (svg)
			this.save(`${this.model.meta.program}-${this.state.view}.svg`, 'image/svg+xml', svg);
	}

	help() {
		const list = (/** @type {[string, string][]} */ keys) =>
			el(
				'div',
				{class: 'keys'},
				...keys.flatMap(([key, what]) => [
					el(
						'span',
						{},
						...key
							.split(' ')
							.flatMap((k, i) => [i ? ' ' : '', k === '…' ? k : el('kbd', {}, k)]),
					),
					el('span', {}, what),
				]),
			);
		const view = this.current(),
			label = this.list.find(v => v.name === this.state.view)?.label ?? '';
		openDialog(
			'Keys and words',
			...(view?.keys?.length ? [el('h3', {}, label), list(view.keys)] : []),
			el('h3', {}, 'Everywhere'),
			list(FRAME_KEYS),
			el('h3', {}, 'Words'),
			glossaryList(),
		);
	}

	/** The reader's choice, else the system's. */
	applyTheme() {
		let chosen = '';
		try {
			chosen = localStorage.getItem('assay.theme') ?? '';
		} catch {
			// Storage may be closed to pages from disk.
		}
		const system = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
		document.documentElement.dataset.theme =
			chosen === 'dark' || chosen === 'light' ? chosen : system;
		if (this.shown) {
			this.filters.draw();
			this.shown.show();
		}
	}

	toggleTheme() {
		const to = this.dark() ? 'light' : 'dark';
		document.documentElement.dataset.theme = to;
		try {
			localStorage.setItem('assay.theme', to);
		} catch {
			// It then holds until the page is closed.
		}
		this.filters.draw();
		this.current()?.show();
	}
}

/** What the reader sees when the data cannot be read. @param {unknown} error */
function fail(error) {
	const text = error instanceof Error ? error.message : String(error);
	fill(
		part('main'),
		el(
			'div',
			{class: 'empty', role: 'alert'},
			el('p', {class: 'bad'}, `This report cannot be shown: ${text}`),
			el('p', {}, 'The session file has the same figures: assay report'),
		),
	);
}

/** @param {string} id @returns {Promise<Model | null>} */
async function readModel(id) {
	const element = document.getElementById(id),
		text = element?.textContent;
	if (!element || !text) return null;
	const model = await decodeModel(text);
	element.remove();
	return model;
}

async function start() {
	document.documentElement.dataset.theme = matchMedia('(prefers-color-scheme: dark)').matches
		? 'dark'
		: 'light';
	try {
		const model = await readModel('profile');
		if (!model) throw new Error('it holds no profile');
		const app = new App(model, await readModel('profile-base'));
		app.applyTheme();
		document.documentElement.dataset.ready = 'yes';
	} catch (error) {
		fail(error);
		throw error;
	}
}

start();
