// SPDX-License-Identifier: MIT OR Apache-2.0
// The flame graph and the source view in a browser: pointer, keys, menus, colours, links, pictures.
// Debian's Chromium through playwright-core; without them the tests are skipped and say so.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {createServer} from 'node:http';
import {before, test} from 'node:test';
import {makePage, newContext, onPage, skip} from './browser.js';
import {demoModel, syntheticModel} from './synthetic.js';

/** @typedef {import('playwright-core').Page} Page */
/** @typedef {import('../../web/types.js').Model} Model */

let demo = '', pair = '', deep = '';

before(() => {
	if (skip)
		return;
	demo = makePage('demo', demoModel());
	pair = makePage('pair', demoModel(), demoModel());
	deep = makePage('deep', deepModel());
});

/** One sample on a stack of 20,000 frames, and the demo's. */
function deepModel() {
	const model = demoModel(), {stacks} = model, n = stacks.n, more = 20000;
	const parent = new Int32Array(n + more), frame = new Uint32Array(n + more);
	parent.set(stacks.parent);
	frame.set(stacks.frame);
	for (let i = 0; i < more; i++) {
		parent[n + i] = i ? n + i - 1 : -1;
		frame[n + i] = frame[i % 3];
	}
	model.samples.stack[0] = n + more - 1;
	return {...model, stacks: {n: n + more, parent, frame}};
}

/** @param {() => Promise<unknown>} ask */
async function until(ask) {
	for (let i = 0; i < 100; i++) {
		if (await ask())
			return;
		await new Promise(done => setTimeout(done, 40));
	}
	assert.fail(`waited in vain: ${ask}`);
}

/** @param {Page} page @param {string} what */
const text = (page, what) => page.locator(what).first().innerText();
/** @param {Page} page */
const trail = page => text(page, '.flame-trail');

/**
 * Distinct colours in a row of the picture.
 * @param {Page} page
 * @param {number} depth
 */
const colors = (page, depth) => page.evaluate(d => {
	const canvas = /** @type {HTMLCanvasElement} */(document.querySelector('.flame-canvas'));
	const copy = new OffscreenCanvas(canvas.width, 1).getContext('2d', {willReadFrequently: true});
	if (!copy)
		return [];
	copy.drawImage(canvas, 0, -(d * 18 + 2));
	const {data} = copy.getImageData(0, 0, canvas.width, 1);
	/** @type {Map<string, number>} */
	const seen = new Map();
	for (let i = 0; i < data.length; i += 4) {
		const c = `${data[i]},${data[i + 1]},${data[i + 2]}`;
		seen.set(c, (seen.get(c) || 0) + 1);
	}
	return [...seen].filter(([, n]) => n > 8).map(([c]) => c).sort();
}, depth);

/** A point in a row of the picture. @param {Page} page @param {number} depth @param {number} [x] */
async function rowAt(page, depth, x = 80) {
	const box = await page.locator('.flame-scroll').boundingBox();
	assert.ok(box);
	return {x: box.x + x, y: box.y + depth * 18 + 9};
}

test('a click zooms, the trail and Escape lead back, the address holds it', {skip}, () => onPage(`${demo}#view=flame`, async page => {
	const at = await rowAt(page, 4);
	await page.mouse.click(at.x, at.y);
	await until(async () => /tokenize/.test(await trail(page)));
	assert.match(page.url(), /flame\.zoom/);
	const url = page.url();
	await page.keyboard.press('Escape');
	await until(async () => !/tokenize/.test(await trail(page)));
	await page.keyboard.press('Home');
	await until(async () => /click zooms/.test(await trail(page)));
	await page.goto('about:blank');
	await page.goto(url);
	await until(async () => /tokenize/.test(await trail(page)));
}));

test('details come by the pointer, with an interval when it rests', {skip}, () => onPage(`${demo}#view=flame`, async page => {
	const at = await rowAt(page, 4);
	await page.mouse.move(at.x, at.y);
	await until(async () => /±/.test(await text(page, '.flame-tip')));
	assert.match(await text(page, '.flame-tip'), /indexer::tokenize[\s\S]*total[\s\S]*%[\s\S]*samples[\s\S]*crate[\s\S]*indexer/);
	await page.mouse.move(3, 3);
	await until(async () => await page.locator('.flame-tip').isHidden());
}));

test('arrow keys move between frames and say where they are', {skip}, () => onPage(`${demo}#view=flame`, async page => {
	const live = page.locator('.flame-view [aria-live]');
	for (const [key, name] of [['ArrowDown', /^all/], ['ArrowDown', /worker::run/], ['ArrowRight', /_start/], ['ArrowUp', /^all/]]) {
		await page.keyboard.press(/** @type {string} */(key));
		await until(async () => /** @type {RegExp} */(name).test(await live.innerText()));
	}
	assert.match(await live.innerText(), /total .*%.*boxes below/);
	await page.keyboard.press('ArrowDown');
	await page.keyboard.press('Enter');
	await until(async () => /worker::run/.test(await trail(page)));
}));

test('the menu of a frame narrows what is looked at', {skip}, () => onPage(`${demo}#view=flame`, async page => {
	const at = await rowAt(page, 4);
	await page.mouse.click(at.x, at.y, {button: 'right'});
	await page.getByRole('menuitem', {name: 'Without samples that pass it'}).click();
	await until(async () => /drop/.test(decodeURIComponent(page.url())));
	assert.equal((await page.locator('#filters .chip').count()) > 0, true);
}));

test('a search marks boxes and says how many; n goes to them', {skip}, () => onPage(`${demo}#view=flame&search=memmem`, async page => {
	await until(async () => /boxes found/.test(await text(page, '.flame-found')));
	await page.locator('.flame-scroll').focus();
	await page.keyboard.press('n');
	await until(async () => /memmem::find/.test(await page.locator('.flame-view [aria-live]').innerText()));
}));

test('shapes, groups, orders and colours redraw', {skip}, () => onPage(`${demo}#view=flame`, async page => {
	const crates = await colors(page, 4);
	await page.locator('.flame-choice', {hasText: 'colour'}).locator('select').selectOption('interval');
	await until(async () => String(await colors(page, 4)) !== String(crates));
	assert.match(await text(page, '.flame-legend'), /≤ 5 %/);
	await page.getByRole('button', {name: 'Inverted'}).click();
	await until(async () => /flame\.inverted=1/.test(page.url()));
	await page.getByRole('button', {name: 'Top-down'}).click();
	await page.locator('.flame-choice', {hasText: 'grouped'}).locator('select').selectOption('thread');
	await until(async () => /flame\.group=thread/.test(page.url()));
	await page.locator('.flame-choice', {hasText: 'order'}).locator('select').selectOption('time');
	await until(async () => /as it passed/.test(await trail(page)));
	await page.getByRole('button', {name: 'downwards'}).click();
	await until(async () => /flame\.up=1/.test(page.url()));
}));

test('two equal sessions have no coloured difference', {skip}, () => onPage(`${pair}#view=flame`, async page => {
	await until(async () => (await colors(page, 4)).length > 0);
	for (let depth = 1; depth < 6; depth++)
		for (const c of await colors(page, depth)) {
			const [r, g, b] = c.split(',').map(Number);
			assert.ok(Math.max(r, g, b) - Math.min(r, g, b) < 8, `${c} at depth ${depth}`);
		}
}));

test('Ctrl and the wheel zoom at the pointer, dragging pans, both end in the address', {skip}, () => onPage(`${demo}#view=flame`, async page => {
	const at = await rowAt(page, 3, 300);
	await page.mouse.move(at.x, at.y);
	await page.keyboard.down('Control');
	await page.mouse.wheel(0, -240);
	await page.keyboard.up('Control');
	await until(async () => /flame\.at/.test(page.url()));
	const before = page.url();
	await page.mouse.down();
	await page.mouse.move(at.x - 200, at.y, {steps: 5});
	await page.mouse.up();
	await until(async () => page.url() !== before);
}));

test('a stack of 20,000 frames scrolls to its end', {skip}, () => onPage(`${deep}#view=flame`, async page => {
	const scroll = page.locator('.flame-scroll');
	await until(async () => await scroll.evaluate(e => e.scrollHeight) > 20000 * 18);
	await scroll.evaluate(e => {
		e.scrollTop = e.scrollHeight;
	});
	await until(async () => (await page.evaluate(() => {
		const canvas = /** @type {HTMLCanvasElement} */(document.querySelector('.flame-canvas'));
		const copy = new OffscreenCanvas(canvas.width, 1).getContext('2d', {willReadFrequently: true});
		if (!copy)
			return false;
		copy.drawImage(canvas, 0, 30 - canvas.height);
		return copy.getImageData(0, 0, canvas.width, 1).data.some((v, i) => i % 4 < 3 && v < 250);
	})));
}));

test('the picture begins where stacks part', {skip}, async () => {
	const model = demoModel(), {stacks} = model, n = stacks.n, more = 60;
	// Sixty frames below every first frame.
	const parent = new Int32Array(n + more), frame = new Uint32Array(n + more);
	for (let i = 0; i < more; i++) {
		parent[i] = i - 1;
		frame[i] = stacks.frame[i % 3];
	}
	for (let i = 0; i < n; i++) {
		parent[more + i] = stacks.parent[i] < 0 ? more - 1 : stacks.parent[i] + more;
		frame[more + i] = stacks.frame[i];
	}
	model.samples.stack = model.samples.stack.map(s => s < 0 ? s : s + more);
	await onPage(`${makePage('trunk', {...model, stacks: {n: n + more, parent, frame}})}#view=flame`, async page => {
		await until(async () => /begins where stacks part/.test(await trail(page)));
		const top = await page.locator('.flame-scroll').evaluate(e => e.scrollTop);
		assert.ok(top > 40 * 18, String(top));
		await page.locator('.flame-scroll').evaluate(e => { e.scrollTop = 0; });
		await page.click('#views a[data-view="table"]');
		await page.click('#views a[data-view="flame"]');
		assert.ok(await page.locator('.flame-scroll').evaluate(e => e.scrollTop) < 40, 'only at first');
	});
	await onPage(`${demo}#view=flame`, async page => assert.match(await trail(page), /^width/));
});

test('the saved picture is an SVG document with the names in it', {skip}, () => onPage(`${demo}#view=flame`, async page => {
	const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', {name: 'SVG'}).click()]);
	const file = await download.path(), svg = readFileSync(file, 'utf8');
	assert.match(svg, /^<\?xml/);
	assert.match(svg, /<title>indexer::tokenize/);
	const parsed = await page.evaluate(t => new DOMParser().parseFromString(t, 'image/svg+xml').querySelectorAll('parsererror').length, svg);
	assert.equal(parsed, 0);
}));

test('source opens at the hottest line, beside its instructions, and they mark each other', {skip}, () => onPage(`${demo}#view=source`, async page => {
	await until(async () => await page.locator('.lines .line.active').count() > 0);
	assert.match(await text(page, '.code-choice'), /./);
	const rows = page.locator('section[aria-label="source"] .line');
	const line = rows.filter({hasText: 'memmem::find(rest'});
	await line.click();
	assert.ok(await page.locator('section[aria-label="assembly"] .line.linked').count() > 0);
	assert.ok(await page.locator('.code-arrows path').count() > 0);
	assert.ok(await rows.locator('.hl-keyword').count() > 0);
	await page.keyboard.press('n');
	await until(async () => /source\.line/.test(page.url()));
	await page.locator('section[aria-label="assembly"] .line').first().click();
	assert.ok(await rows.locator('xpath=self::*[contains(@class, "linked")]').count() > 0);
}));

test('inlined calls unfold under their line and fold again', {skip}, () => onPage(`${demo}#view=source&source.open=0`, async page => {
	const group = page.locator('.code-inline').filter({hasText: 'closure'});
	await group.locator('.code-fold').click();
	await until(async () => await page.locator('.code-inner').count() > 0);
	await page.locator('.code-inline').filter({hasText: 'closure'}).locator('.code-fold').click();
	await until(async () => await page.locator('.code-inner').count() === 0);
}));

test('source opens on the hottest code there is something to show of', {skip}, async () => {
	const model = demoModel(), known = model.listings[0], hot = model.meta.hottest.find(h => h.function !== known.function);
	assert.ok(hot);
	// The hottest has a listing that only says why there is nothing.
	model.listings = [{function: hot.function, module: known.module, insns: [], places: [], files: [], notes: ['nothing is known of it']}, known];
	model.meta.hottest = [hot];
	await onPage(`${makePage('unknown', model)}#view=source`, async page => {
		await until(async () => await page.locator('.lines .line.active').count() > 0);
		assert.equal(await page.locator('.code-choice').inputValue(), String(known.function));
	});
});

test('a function without text says what to do', {skip}, () => onPage(`${demo}#view=source&f=0`, async page => {
	await until(async () => /assay annotate/.test(await text(page, '.code-empty')));
}));

test('text in sources stays text', {skip}, () => onPage(`${demo}#view=source`, async page => {
	await until(async () => await page.locator('.line').filter({hasText: '"word" <b>'}).count() === 1);
	assert.equal(await page.locator('.lines b').count(), 0);
}));

test('a served page fetches what is not embedded', {skip}, async () => {
	const model = demoModel(), listing = {...model.listings[0], sources: model.sources};
	const f = listing.function, file = makePage('served', {...model, listings: [], sources: []}, undefined, ['--serve']);
	const server = createServer((request, response) => {
		const url = new URL(request.url || '/', 'http://x');
		if (url.pathname === '/token/')
			response.setHeader('content-type', 'text/html').end(readFileSync(new URL(file)));
		else if (url.pathname === '/token/listing' && url.searchParams.get('function') === String(f))
			response.setHeader('content-type', 'application/json').end(JSON.stringify(listing));
		else
			response.writeHead(404).end('nothing of that number');
	});
	await new Promise(done => server.listen(0, '127.0.0.1', () => done(null)));
	const address = /** @type {import('node:net').AddressInfo} */(server.address());
	try {
		await onPage(`http://127.0.0.1:${address.port}/token/#view=source&f=${f}`, async page => {
			await until(async () => await page.locator('section[aria-label="source"] .line').count() > 5);
		});
	} finally {
		server.close();
	}
});

test('both views fit 800 px and the dark theme', {skip}, () => onPage(`${demo}#view=flame`, async page => {
	for (const name of ['flame', 'source']) {
		await page.click(`#views a[data-view="${name}"]`);
		await page.waitForSelector(`#views a[data-view="${name}"][aria-current]`);
		assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, name);
	}
}, {width: 800, height: 700, dark: true}));

test('a large session zooms without long frames', {skip}, async () => {
	const url = makePage('large', syntheticModel({samples: 60000, stacks: 20000, seed: 4}));
	await onPage(`${url}#view=flame`, async page => {
		await until(async () => await page.locator('.flame-canvas').evaluate(c => /** @type {HTMLCanvasElement} */(c).width > 300));
		const at = await rowAt(page, 2, 500);
		await page.mouse.move(at.x, at.y);
		await page.keyboard.down('Control');
		for (let i = 0; i < 10; i++)
			await page.mouse.wheel(0, -100);
		await page.keyboard.up('Control');
		await until(async () => /flame\.at/.test(page.url()));
	});
});

test('a zoomed frame stays zoomed when frames above it are merged', {skip}, () => onPage(`${demo}#view=flame`, async page => {
	const zoom = await rowAt(page, 5);
	await page.mouse.click(zoom.x, zoom.y);
	await until(async () => /memmem::find/.test(await trail(page)));
	const above = await rowAt(page, 3);
	await page.mouse.click(above.x, above.y, {button: 'right'});
	await page.getByRole('menuitem', {name: 'Merge it into its callers'}).click();
	await until(async () => /change=merge/.test(page.url()));
	await until(async () => /memmem::find/.test(await trail(page)));
	await page.goBack();
	await until(async () => /memmem::find/.test(await trail(page)));
}));
