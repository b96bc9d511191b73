// SPDX-License-Identifier: MIT OR Apache-2.0
// Pages in a browser, for tests: Debian's Chromium through playwright-core; without them `skip` says so.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {existsSync, mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {dirname, join} from 'node:path';
import {after, before} from 'node:test';
import {fileURLToPath} from 'node:url';
import {encodeContainer} from './encode.js';

/** @typedef {import('playwright-core').Page} Page */
/** @typedef {import('../../web/types.js').Model} Model */

export const ROOT = join(dirname(fileURLToPath(import.meta.url)), '../..');
const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
/** Of this test program's files. */
export const FOLDER = mkdtempSync(join(tmpdir(), 'assay-page-'));

/** @type {typeof import('playwright-core') | null} */
let playwright = null;
try {
	playwright = await import('playwright-core');
} catch {
	// Said below.
}
export const skip = !playwright
	? 'playwright-core is not installed (npm ci in tests/web)'
	: !existsSync(CHROMIUM)
		? `${CHROMIUM} is not there (apt-get install chromium)`
		: false;

/** @type {import('playwright-core').Browser} */
let browser;

before(async () => {
	if (!skip && playwright)
		browser = await playwright.chromium.launch({
			executablePath: CHROMIUM,
			args: ['--no-sandbox', '--disable-gpu'],
		});
});
after(async () => {
	await browser?.close();
	rmSync(FOLDER, {recursive: true, force: true});
});

/** @param {Parameters<import('playwright-core').Browser['newContext']>[0]} [options] */
export function newContext(options) {
	return browser.newContext(options);
}

/** @param {string} name @param {Model} model @param {Model} [base] @param {string[]} [more] @returns {string} address */
export function makePage(name, model, base, more = []) {
	const args = ['--html', join(FOLDER, `${name}.html`), '--title', name, ...more];
	for (const [option, m] of /** @type {[string, Model | undefined][]} */ ([
		['--data', model],
		['--base', base],
	])) {
		if (!m) continue;
		const file = join(FOLDER, `${name}${option}.bin`);
		writeFileSync(file, encodeContainer(m));
		args.push(option, file);
	}
	execFileSync(join(ROOT, 'tools/pack-web'), args);
	return `file://${join(FOLDER, `${name}.html`)}`;
}

/**
 * A page that is open and has nothing to complain of; what it says on the console ends the test.
 * @param {string} url
 * @param {(page: Page) => Promise<void>} run
 * @param {{width?: number, height?: number, dark?: boolean}} [how]
 */
export async function onPage(url, run, {width = 1280, height = 800, dark = false} = {}) {
	const context = await newContext({
		viewport: {width, height},
		colorScheme: dark ? 'dark' : 'light',
	});
	try {
		const page = await context.newPage();
		/** @type {string[]} */
		const said = [];
		page.on('console', m => said.push(`${m.type()}: ${m.text()}`));
		page.on('pageerror', e => said.push(String(e.stack)));
		page.on(
			'request',
			r => r.url().startsWith(url.replace(/^(\w+:\/\/[^/]*).*/, '$1')) || /^(data|blob):/.test(r.url()) ||
				said.push(`asked for ${r.url()}`),
		);
		page.on('dialog', d => {
			said.push(`dialog: ${d.message()}`);
			d.dismiss();
		});
		await page.addInitScript(() => {
			const w = /** @type {any} */ (window);
			w.copied = [];
			Object.defineProperty(navigator, 'clipboard', {
				value: {writeText: (/** @type {string} */ t) => Promise.resolve(w.copied.push(t))},
			});
		});
		await page.goto(url);
		await page.waitForSelector('html[data-ready]');
		await run(page);
		assert.deepEqual(said, []);
	} finally {
		await context.close();
	}
}

/** @param {Page} page @param {string} name */
export async function view(page, name) {
	await page.click(`#views a[data-view="${name}"]`);
	await page.waitForSelector(`#views a[data-view="${name}"][aria-current]`);
}

/** The views a page has. @param {Page} page */
export function viewNames(page) {
	return page
		.locator('#views a')
		.evaluateAll(links => links.map(a => /** @type {HTMLElement} */ (a).dataset.view ?? ''));
}

/** @param {Page} page @param {string} [within] */
export const names = (page, within = '') =>
	page.locator(`${within} .grid .row:not([hidden]) .name`).allInnerTexts();

/** What the page's policy forbids playwright's own waiting to do: asks again and again. @param {() => Promise<unknown>} ask */
export async function until(ask) {
	for (let i = 0; i < 100; i++) {
		if (await ask()) return;
		await new Promise(done => setTimeout(done, 30));
	}
	assert.fail(`waited in vain: ${ask}`);
}

/** What filters are in force. @param {Page} page */
export const chips = page => page.locator('#filters .chip span').allInnerTexts();

/** Nothing scrolls sideways: neither the page nor a table in it. @param {Page} page @param {string} where */
export async function fitsInWidth(page, where) {
	const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
	assert.ok(wide <= 0, `${where}: ${wide} too wide`);
	const grids = await page.locator('.grid').evaluateAll(g => g.map(e => e.scrollWidth - e.clientWidth));
	assert.ok(grids.every(x => x <= 0), `${where}: a table scrolls`);
}

/** All that is used has a name, and nothing that is used stands in another such thing. @param {Page} page @param {string} where */
export async function hasLabels(page, where) {
	const bare = await page.evaluate(() =>
		[...document.querySelectorAll('button, a, input, select, summary, canvas, [role=grid], [role=treegrid]')]
			.filter(
				e =>
					!e.closest('[hidden]') &&
					e.getAttribute('aria-hidden') !== 'true' &&
					!e.closest('[aria-hidden=true]'),
			)
			.filter(
				e =>
					!e.getAttribute('aria-label') &&
					!e.textContent?.trim() &&
					!e.closest('label') &&
					!e.closest('[tabindex][aria-label]'),
			)
			.map(e => e.outerHTML.slice(0, 120)),
	);
	assert.deepEqual(bare, [], where);
	// axe: nested-interactive
	const nested = await page.evaluate(() =>
		[
			...document.querySelectorAll(
				'button, a, summary, [role=option], [role=button], [role=tab], [role=img], canvas[role]',
			),
		]
			.filter(e => e.querySelector('button, a, input, select, summary, [tabindex]'))
			.map(e => e.outerHTML.slice(0, 160)),
	);
	assert.deepEqual(nested, [], where);
}
