// SPDX-License-Identifier: MIT OR Apache-2.0
// The page in a browser: every view opens, every way to narrow, sort, move and copy does what it
// says, names stay text, nothing is said on the console. Debian's Chromium through playwright-core;
// without them the tests that need them are skipped and say so.
import assert from 'node:assert/strict';
import {readFileSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {before, test} from 'node:test';
import {GLOSSARY} from '../../web/glossary.js';
import {chips, fitsInWidth, FOLDER, hasLabels, makePage, names, newContext, onPage, ROOT, skip, until, view,
	viewNames} from './browser.js';
import {demoModel, ModelBuilder, syntheticModel} from './synthetic.js';

let demo = '',
	pair = '',
	large = '';

before(() => {
	if (skip) return;
	demo = makePage('demo', demoModel());
	pair = makePage('pair', demoModel(1), demoModel(2));
	large = makePage(
		'large',
		syntheticModel({samples: 60000, stacks: 20000, functions: 50000, threads: 256}),
	);
});
test('the words of the page are those of the glossary', async () => {
	const text = readFileSync(join(ROOT, 'docs/glossary.md'), 'utf8');
	/** @type {{[word: string]: string}} */
	const words = {};
	for (const m of text.matchAll(/^\*\*(.+?)\*\*.*\n:\s+((?:.+\n?)(?: {4}.*\n?)*)/gm))
		words[m[1]] = m[2].replace(/\s+/g, ' ').replace(/[*`]/g, '').trim();
	const ours = Object.fromEntries(
		Object.entries(GLOSSARY).map(([word, said]) => [word, said.replace(/[*`]/g, '')]),
	);
	assert.ok(Object.keys(words).length > 15);
	assert.deepEqual(ours, words);
});

/** @param {string} hex */
function luminance(hex) {
	const [r, g, b] = [1, 3, 5]
		.map(i => parseInt(hex.slice(i, i + 2), 16) / 255)
		.map(c => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
	return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** @param {string} a @param {string} b */
function contrast(a, b) {
	const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p);
	return (x + 0.05) / (y + 0.05);
}

test('text reaches AA contrast on every ground, in light and in dark', () => {
	const css = readFileSync(join(ROOT, 'web/style.css'), 'utf8');
	const blocks = [...css.matchAll(/^:root[^{]*\{([^}]*)\}/gm)]
		.slice(0, 2)
		.map(m =>
			Object.fromEntries(
				[...m[1].matchAll(/(--[\w-]+):\s*(#[0-9a-f]{6})\b/g)].map(v => [v[1], v[2]]),
			),
		);
	for (const [theme, own] of /** @type {[string, {[v: string]: string}][]} */ ([
		['light', blocks[0]],
		['dark', {...blocks[0], ...blocks[1]}],
	])) {
		for (const ink of ['ink', 'soft', 'faint', 'link', 'good', 'warn', 'bad'])
			for (const ground of ['paper', 'panel', 'pick', 'hover']) {
				const ratio = contrast(own[`--${ink}`], own[`--${ground}`]);
				assert.ok(ratio >= 4.5, `${theme}: --${ink} on --${ground} is ${ratio.toFixed(2)}`);
			}
		assert.ok(contrast(own['--ink'], own['--found']) >= 4.5, `${theme}: what was searched`);
		for (const edge of [
			'edge',
			'accent',
			'cat-own',
			'cat-crate',
			'cat-std',
			'cat-runtime',
			'cat-kernel',
			'cat-other',
			'lost',
		])
			assert.ok(
				contrast(own[`--${edge}`], own['--paper']) >=
					(edge === 'edge' || edge === 'accent' || edge === 'lost' ? 3 : 2),
				`${theme}: --${edge} is hardly seen`,
			);
	}
});

test('every view opens by its link and by its number', {skip}, async () => {
	await onPage(pair, async page => {
		const all = await viewNames(page);
		for (const name of [
			'overview',
			'flame',
			'tree',
			'table',
			'sandwich',
			'source',
			'time',
			'diff',
		])
			assert.ok(all.includes(name), name);
		for (const [i, name] of all.entries()) {
			await view(page, name);
			assert.ok((await page.innerText('#main')).length > 20, `${name} is empty`);
			await view(page, 'overview');
			await page.keyboard.press(String(i + 1));
			assert.equal(await page.getAttribute('#views [aria-current]', 'data-view'), name);
		}
	});
});

test('the first screen answers: program, time, hottest, trust, next step', {skip}, async () => {
	await onPage(demo, async page => {
		const text = await page.innerText('#main');
		for (const part of [
			'indexer',
			'CPU time',
			'Hottest functions',
			'How far to trust this',
			'CPU by thread over time',
			'Next steps',
		])
			assert.ok(text.includes(part), part);
		assert.ok((await page.locator('.hot li a').count()) >= 3);
		const bottom = await page
			.locator('.overview .inner')
			.evaluate(e => e.getBoundingClientRect().bottom);
		assert.ok(bottom < 1000, `it is ${bottom} pixels long`);
		await page.locator('.term').first().focus();
		assert.match(await page.innerText('#tip'), /^[\w ]+: .*\.$/);
		const run = page.locator('.run-line').first();
		await run.locator('button').click();
		assert.deepEqual(await page.evaluate('copied'), [await run.locator('code').innerText()]);
		const name = await page.locator('.hot .name').first().innerText();
		await page.locator('.hot a').first().click();
		assert.match(
			(await page.getAttribute('#views [aria-current]', 'data-view')) ?? '',
			/^(source|sandwich)$/,
		);
		assert.ok((await page.innerText('#main')).includes(name.split('::').pop() ?? name));
	});
});

test('the table sorts by each column, both ways, and says so', {skip}, async () => {
	await onPage(demo, async page => {
		await view(page, 'table');
		for (const column of ['total', 'samples', 'name', 'self']) {
			await page.click(`.grid .head [data-column="${column}"] button`);
			const first = await page.getAttribute(
				`.grid .head [data-column="${column}"]`,
				'aria-sort',
			);
			const before = await names(page);
			await page.click(`.grid .head [data-column="${column}"] button`);
			assert.notEqual(
				await page.getAttribute(`.grid .head [data-column="${column}"]`, 'aria-sort'),
				first,
			);
			assert.notDeepEqual(await names(page), before, column);
		}
		const points = await page
			.locator('.grid .row:not([hidden]) .share:first-child .v')
			.evaluateAll(cells =>
				cells
					.filter(c => c.textContent)
					.map(c => Math.round(c.getBoundingClientRect().right)),
			);
		assert.equal(new Set(points).size, 1, 'decimal points stand in one column');
	});
});

test(
	'rows can be functions, lines, files, crates, modules, threads, processes',
	{skip},
	async () => {
		await onPage(demo, async page => {
			await view(page, 'table');
			for (const by of ['line', 'file', 'crate', 'module', 'thread', 'process', 'function']) {
				await page.click(`.segments [data-value="${by}"]`);
				assert.equal(
					await page.getAttribute(`.segments [data-value="${by}"]`, 'aria-checked'),
					'true',
				);
				assert.ok((await names(page)).length > 0, by);
			}
			await page.click('.segments [data-value="crate"]');
			await page.locator('.grid').press('Enter');
			assert.equal(
				await page.getAttribute('.segments [data-value="function"]', 'aria-checked'),
				'true',
			);
			await page.click('.segments [data-value="thread"]');
			await page.locator('.grid').press('Enter');
			assert.equal((await chips(page)).length, 1);
		});
	},
);

test('the search narrows the table, marks, counts, and goes away', {skip}, async () => {
	await onPage(demo, async page => {
		await view(page, 'table');
		const all = (await names(page)).length;
		await page.keyboard.press('/');
		await page.keyboard.type('tokenize');
		await page.waitForSelector('.grid mark');
		const some = await names(page);
		assert.ok(some.length > 0 && some.length < all);
		await until(async () => (await page.innerText('#found')).startsWith('matched'));
		assert.match(await page.innerText('#found'), /matched \d+\.\d.*%/);
		await until(async () => page.url().includes('tokenize'));
		await page.keyboard.press('Escape');
		await until(async () => (await names(page)).length === all);
		await page.keyboard.press('/');
		await page.keyboard.type('no such function at all');
		await until(async () => (await page.innerText('#found')) === 'no match');
	});
});

test('the keyboard alone walks table, sandwich and tree', {skip}, async () => {
	await onPage(demo, async page => {
		await page.keyboard.press('3');
		const order = await page
			.locator('#views a')
			.evaluateAll(a => a.map(x => /** @type {HTMLElement} */ (x).dataset.view));
		await page.keyboard.press(String(order.indexOf('table') + 1));
		await page.keyboard.press('ArrowDown');
		const grid = page.locator('.grid');
		assert.equal(await grid.evaluate(g => g === document.activeElement), true);
		const active = await grid.getAttribute('aria-activedescendant');
		assert.equal(await page.locator(`#${active}`).getAttribute('aria-selected'), 'true');
		const chosen = await page.locator('.grid [aria-selected="true"] .name').innerText();
		await page.keyboard.press('Enter');
		assert.ok(
			(await page.innerText('.sandwich-head h2')).includes(chosen.split('::').pop() ?? ''),
		);
		assert.equal(await page.locator('.pane').count(), 2);
		await page.keyboard.press(String(order.indexOf('tree') + 1));
		await page.keyboard.press('Home');
		const rows = await page.locator('.grid .row:not([hidden])').count();
		await page.keyboard.press('ArrowLeft');
		assert.equal(
			await page.locator('.grid [aria-selected="true"]').getAttribute('aria-expanded'),
			'false',
		);
		assert.ok((await page.locator('.grid .row:not([hidden])').count()) < rows);
		await page.keyboard.press('*');
		assert.ok((await page.locator('.grid .row:not([hidden])').count()) > 2);
		await page.keyboard.press('?');
		assert.ok((await page.innerText('dialog')).includes('heaviest'));
		const [outer, inner] = await page
			.locator('dialog, dialog h2')
			.evaluateAll(all => all.map(e => e.getBoundingClientRect()));
		assert.ok(
			inner.left > outer.left + 10 && inner.bottom < outer.bottom,
			'the heading is inside',
		);
		await page.keyboard.press('Escape');
		await until(async () => (await page.locator('dialog').count()) === 0);
	});
});

test('the tree turns over, groups by thread, and finds the next match', {skip}, async () => {
	await onPage(demo, async page => {
		await view(page, 'tree');
		const down = await names(page);
		await page.click('.segments [data-value="1"]');
		assert.notDeepEqual(await names(page), down);
		await page.click('.segments [data-value="thread"]');
		await page.click('[aria-label="Direction"] [data-value=""]');
		assert.ok(
			(await names(page)).some(n => n.includes('indexer') || n.includes('tokio-worker')),
		);
		await page.click('[aria-label="Roots"] [data-value=""]');
		await page.fill('#tools input', 'grow_one');
		await page.press('#tools input', 'Enter');
		assert.match(
			await page.locator('.grid [aria-selected="true"] .name').innerText(),
			/grow_one/,
		);
		const level = page.locator('.grid [aria-selected="true"]');
		assert.ok(Number(await level.getAttribute('aria-level')) > 2);
		await page.keyboard.press('Escape');
	});
});

test(
	'a range dragged on the strip filters all views, is a chip, and the chip takes it away',
	{skip},
	async () => {
		await onPage(demo, async page => {
			await view(page, 'table');
			const scope = await page.innerText('.scope');
			const box = await page.locator('.strip canvas').boundingBox();
			assert.ok(box);
			await page.mouse.move(box.x + box.width * 0.2, box.y + 10);
			await page.mouse.down();
			await page.mouse.move(box.x + box.width * 0.3, box.y + 12, {steps: 3});
			await page.mouse.move(box.x + box.width * 0.5, box.y + 12, {steps: 3});
			await page.mouse.up();
			assert.equal((await chips(page)).length, 1);
			assert.match((await chips(page))[0], /s – .*s$/);
			assert.match(await page.innerText('.scope'), /^(2[5-9]|3[0-5])\.\d % of the time/);
			await view(page, 'sandwich');
			assert.equal((await chips(page)).length, 1);
			await page.click('.chip button');
			assert.deepEqual(await chips(page), []);
			assert.equal(await page.innerText('.scope'), scope);
		});
	},
);

test('threads, folds and names narrow; each is a chip; u takes the last away', {skip}, async () => {
	await onPage(demo, async page => {
		await view(page, 'table');
		await page.click('text=Threads ▾');
		await page.locator('.panel input[type=checkbox]').first().click();
		assert.equal((await chips(page)).length, 1);
		await page.keyboard.press('Escape');
		assert.equal(await page.locator('.panel').count(), 0);
		await page.click('text=Fold ▾');
		for (const label of ['Generics', 'Std plumbing', 'Async runtime', 'Panic paths', 'Kernel'])
			await page.locator('.panel label', {hasText: label}).first().locator('input').check();
		const folded = await chips(page);
		assert.equal(folded.length, 6, folded.join());
		await page.keyboard.press('Escape');
		const left = await names(page);
		assert.ok(
			!left.some(n =>
				/poll_future|multi_thread::worker|asm_exc_page_fault|panic_bounds/.test(n),
			),
			left.join(),
		);
		assert.equal(left.filter(n => /Vec<.*>::push/.test(n)).length, 0, 'std is folded');
		await page.keyboard.press('u');
		assert.equal((await chips(page)).length, 5);
		await page.click('text=Clear all');
		assert.deepEqual(await chips(page), []);
		await page.click('text=Names ▾');
		await page.locator('.panel input').first().fill('tokenize');
		await page.locator('.panel input').first().press('Enter');
		assert.deepEqual(await chips(page), ['through /tokenize/']);
		await page.locator('.panel input').nth(1).fill('a(');
		await page.locator('.panel input').nth(1).press('Enter');
		assert.ok((await page.innerText('.panel [role=alert]')).length > 5);
		assert.equal(
			await page.locator('.panel input').nth(1).getAttribute('aria-invalid'),
			'true',
		);
	});
});

test('generics fold into one row', {skip}, async () => {
	await onPage(demo, async page => {
		await view(page, 'table');
		assert.equal((await names(page)).filter(n => /^Vec<.*>::push$/.test(n)).length, 2);
		await page.click('text=Fold ▾');
		await page.locator('.panel label', {hasText: 'Generics'}).locator('input').check();
		assert.equal((await names(page)).filter(n => /^Vec(<.*>)?::push$/.test(n)).length, 1);
	});
});

test('the menu of a function transforms the stacks', {skip}, async () => {
	await onPage(demo, async page => {
		for (const [label, chip] of [
			['Only below', 'only below'],
			['Without samples', 'without'],
			['Merge it', 'merged'],
			['Its recursion', 'recursion'],
			['Crate ', 'as one frame'],
		]) {
			await view(page, 'table');
			await page
				.locator('.grid .row', {hasText: 'indexer::tokenize'})
				.first()
				.click({button: 'right'});
			await page.locator('.menu button', {hasText: label}).first().click();
			assert.match((await chips(page)).join(), new RegExp(chip));
			await page.click('.chip button');
		}
		await page.locator('.grid .row').first().click();
		await page.keyboard.press('m');
		await page.keyboard.press('ArrowDown');
		assert.equal(await page.evaluate('document.activeElement.closest(".menu") !== null'), true);
		await page.keyboard.press('Escape');
		assert.equal(await page.locator('.menu').count(), 0);
		assert.equal(
			await page.evaluate('document.activeElement.classList.contains("grid")'),
			true,
			'the focus comes back',
		);
	});
});

test('the time line chooses ranges and threads, by pointer and by keys', {skip}, async () => {
	await onPage(demo, async page => {
		await view(page, 'time');
		const box = await page.locator('.time-scroll').boundingBox();
		assert.ok(box);
		await page.mouse.move(box.x + 500, box.y + 120);
		await page.mouse.down();
		await page.mouse.move(box.x + 600, box.y + 130, {steps: 3});
		await page.mouse.move(box.x + 700, box.y + 130, {steps: 3});
		await page.mouse.up();
		const [range] = await chips(page);
		assert.match(range, /–/);
		await page.locator('.time-scroll canvas').press('ArrowRight');
		assert.notEqual((await chips(page))[0], range);
		await page.locator('.time-scroll canvas').press('Enter');
		await until(async () => page.url().includes('time.from'));
		await page.keyboard.press('0');
		await page.keyboard.press('Escape');
		assert.deepEqual(await chips(page), []);
		await page.locator('button.time-lane').first().focus();
		await page.keyboard.press('ArrowDown');
		assert.equal(
			await page.evaluate(
				'document.activeElement === document.querySelectorAll("button.time-lane")[1]',
			),
			true,
		);
		await page.locator('button.time-lane').nth(1).click();
		assert.match((await chips(page))[0], /^thread /);
		await page
			.locator('button.time-lane')
			.nth(2)
			.click({modifiers: ['Shift']});
		assert.deepEqual(await chips(page), ['2 threads']);
		await page.mouse.move(box.x + 640, box.y + 60);
		await page.mouse.move(box.x + 650, box.y + 60);
		assert.match(await page.innerText('#tip'), /s\b/);
	});
});

test('samples lost are drawn where they were lost', {skip}, async () => {
	await onPage(demo, async page => {
		await view(page, 'time');
		assert.ok((await page.innerText('#main')).includes('lost'), 'the legend names it');
		const red = await page.locator('.time-scroll canvas').evaluate(e => {
			const canvas = /** @type {HTMLCanvasElement} */ (e),
				w = canvas.width;
			const ctx = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
			// Just below the axis, where no area reaches.
			const d = ctx.getImageData(0, 24, w, 1).data,
				at = [];
			for (let x = 0; x < w; x++) if (d[x * 4] - d[x * 4 + 1] > 12) at.push(x / w);
			return at;
		});
		// The demo loses samples in its third second of five; 230 pixels of names stand at the left.
		assert.ok(red.length > 3, 'nothing is hatched');
		assert.ok(
			red.every(x => x > 0.45 && x < 0.72),
			`${Math.min(...red)} … ${Math.max(...red)}`,
		);
	});
});

test(
	'the address holds the state: opened anew it shows the same, back and forward walk',
	{skip},
	async () => {
		await onPage(demo, async page => {
			await view(page, 'table');
			await page.click('.segments [data-value="crate"]');
			await page.click('.grid .head [data-column="total"] button');
			await page.click('text=Fold ▾');
			await page.locator('.panel label', {hasText: 'Kernel'}).locator('input').check();
			await page.keyboard.press('Escape');
			const url = page.url(),
				shown = await names(page),
				inForce = await chips(page);
			await page.goto('about:blank');
			await page.goto(url);
			await page.waitForSelector('html[data-ready]');
			assert.deepEqual(await names(page), shown);
			assert.deepEqual(await chips(page), inForce);
			await page.click('.chip button');
			assert.deepEqual(await chips(page), []);
			await page.goBack();
			assert.deepEqual(await chips(page), inForce);
			await page.goForward();
			assert.deepEqual(await chips(page), []);
			await page.goto(`${url.split('#')[0]}#view=nonsense&f=99999999&from=-1&more=%%%`);
			await page.waitForSelector('#views [aria-current]');
		});
	},
);

test('each view copies as text', {skip}, async () => {
	await onPage(pair, async page => {
		for (const name of ['overview', 'tree', 'table', 'sandwich', 'time', 'diff']) {
			await view(page, name);
			await page.evaluate('copied.length = 0');
			await page.keyboard.press('c');
			const [text] = /** @type {string[]} */ (await page.evaluate('copied'));
			assert.ok(text?.length > 30, name);
			assert.ok(text.includes('tokenize') || name === 'time', name);
			assert.match(await page.innerText('#status'), /Copied/);
		}
	});
});

test('names from a profile stay text', {skip}, async () => {
	const b = new ModelBuilder();
	const evil = [
		'<script>document.title="x"</script>',
		'";--<img src=x onerror=alert(1)>',
		'</script><svg onload=alert(2)>',
		'javascript:alert(3)',
		'${alert(4)}',
		'\u202etxt\u0000',
		'{a|b} {self}',
	];
	const frames = evil.map(name =>
		b.frame([{f: b.func(name, {crate: name, file: name, line: 3})}]),
	);
	for (let i = 0; i < 700; i++) b.sample(i * 1e6, b.stack([frames[i % 7], frames[(i >> 2) % 7]]));
	b.process(evil[1], 1);
	b.thread(evil[0], 0, 1);
	b.module(evil[2]);
	const share = {value: 0.5, low: 0.4, high: 0.6, samples: 300};
	const model = b.model({
		program: evil[1],
		args: evil,
		file: evil[2],
		info: {host: evil[0], kernel: evil[1]},
		hottest: [0, 1, 2, 3].map(f => ({function: f, self: share, total: share, tied: true})),
		next: [{command: evil[0], why: evil[1]}],
		trust: {
			lines: [{level: 'warn', text: evil[1], remedy: evil[0]}],
			samples: 700,
			lost: 0,
			complete: 700,
			repaired: 0,
			truncated: 0,
		},
	});
	await onPage(makePage('evil', model), async page => {
		for (const name of ['overview', 'tree', 'table', 'sandwich', 'time']) {
			await view(page, name);
			assert.equal(
				await page
					.locator(
						'#main img, #main script, #top img, #top script, #main [onerror], #main [onload]',
					)
					.count(),
				0,
				name,
			);
		}
		assert.match(await page.title(), /^";--<img/);
		await view(page, 'table');
		assert.ok((await names(page)).includes(evil[0]));
		await page.locator('.grid .row').first().click({button: 'right'});
		await page.locator('.menu button', {hasText: 'Only below'}).click();
		assert.equal(await page.locator('#filters script, #filters img').count(), 0);
	});
	// Braces and private letters mean something in the first screen's sentences.
	const odd = demoModel();
	odd.meta.program = evil[6];
	odd.strings = odd.strings.map(t => t && `${t}{x|y}\ue000\ue001`);
	await onPage(makePage('odd', odd), async page => {
		assert.ok((await page.innerText('.lead')).startsWith(evil[6]));
		await page.keyboard.press('c');
		assert.ok(/** @type {string[]} */ (await page.evaluate('copied'))[0].includes('{x|y}'));
	});
});

test('a diff colours only what is resolved', {skip}, async () => {
	await onPage(pair, async page => {
		await view(page, 'diff');
		const rows = await page.locator('.grid .row:not([hidden])').evaluateAll(all =>
			all.map(r => ({
				verdict: r.children[1].textContent,
				ink: r.children[0].firstElementChild?.className,
			})),
		);
		assert.ok(rows.length > 3);
		for (const r of rows)
			assert.equal(
				/good|bad|warn/.test(r.ink ?? ''),
				/^(up|down)\b/.test(r.verdict ?? ''),
				JSON.stringify(r),
			);
		await page.click('[aria-label="Shares"] [data-value="total"]');
		await page.click('.grid .head [data-column="name"] button');
		assert.ok((await names(page)).length > 3);
	});
	await onPage(demo, async page => {
		assert.equal(await page.locator('#views a[data-view="diff"]').count(), 0);
	});
});

test('a view keeps its place while another is looked at', {skip}, async () => {
	await onPage(large, async page => {
		await view(page, 'table');
		await page.locator('.grid').evaluate(g => g.scrollTo(0, 24000));
		await until(
			async () => (await page.locator('.grid .row').first().getAttribute('data-row')) !== '0',
		);
		await view(page, 'tree');
		await view(page, 'table');
		assert.equal(await page.locator('.grid').evaluate(g => g.scrollTop), 24000);
		await page.locator('.grid .row:not([hidden])').nth(8).click();
		await page.keyboard.press('s');
		assert.equal(await page.getAttribute('#views [aria-current]', 'data-view'), 'source');
	});
});

test('a part dragged on the first screen opens the time line with it', {skip}, async () => {
	await onPage(demo, async page => {
		const box = await page.locator('.lanes-small canvas').first().boundingBox();
		assert.ok(box);
		await page.mouse.move(box.x + box.width * 0.25, box.y + 8);
		await page.mouse.down();
		await page.mouse.move(box.x + box.width * 0.4, box.y + 8, {steps: 3});
		await page.mouse.move(box.x + box.width * 0.5, box.y + 8, {steps: 3});
		await page.mouse.up();
		assert.equal(await page.getAttribute('#views [aria-current]', 'data-view'), 'time');
		assert.match((await chips(page))[0], /^1\.\d+ s – 2\.\d+ s$/);
		await page.goBack();
		assert.equal(await page.getAttribute('#views [aria-current]', 'data-view'), 'overview');
	});
});

test('nothing scrolls sideways at 1280 and 800 pixels, in both themes', {skip}, async () => {
	for (const [width, height, dark] of /** @type {[number, number, boolean][]} */ ([
		[1280, 800, false],
		[800, 900, true],
	]))
		await onPage(
			pair,
			async page => {
				const all = await viewNames(page);
				for (const name of all) {
					await view(page, name);
					await fitsInWidth(page, `${name} at ${width}`);
				}
				assert.equal(
					await page.getAttribute('html', 'data-theme'),
					dark ? 'dark' : 'light',
				);
				await page.keyboard.press('t');
				assert.equal(
					await page.getAttribute('html', 'data-theme'),
					dark ? 'light' : 'dark',
				);
			},
			{width, height, dark},
		);
});

test('50,000 functions and 256 threads: only what is seen exists', {skip}, async () => {
	await onPage(large, async page => {
		await view(page, 'table');
		assert.ok(Number(await page.getAttribute('.grid', 'aria-rowcount')) > 10000);
		assert.ok((await page.locator('.grid .row').count()) < 80);
		await page.locator('.grid').press('End');
		const last = Number(await page.getAttribute('.grid', 'aria-rowcount'));
		assert.equal(
			await page.getAttribute('.grid [aria-selected="true"]', 'aria-rowindex'),
			String(last),
		);
		await view(page, 'time');
		assert.equal(await page.locator('button.time-lane').count(), 256);
		await page.locator('.time-scroll').evaluate(e => e.scrollTo(0, 1e6));
		assert.ok(await page.locator('button.time-lane').last().isVisible());
	});
});

test('tables, trees and controls have roles and labels', {skip}, async () => {
	await onPage(pair, async page => {
		const all = await viewNames(page);
		for (const name of all) {
			await view(page, name);
			await hasLabels(page, name);
		}
		await view(page, 'tree');
		assert.equal(await page.locator('.grid').getAttribute('role'), 'treegrid');
		for (const attribute of ['aria-level', 'aria-selected', 'aria-rowindex'])
			assert.ok(await page.locator('.grid .row').first().getAttribute(attribute), attribute);
		assert.equal(await page.getAttribute('#status', 'aria-live'), 'polite');
	});
});

test('a print has the rows on paper and is light', {skip}, async () => {
	await onPage(
		demo,
		async page => {
			await view(page, 'table');
			const pdf = await page.pdf({format: 'A4', printBackground: true});
			assert.ok(pdf.length > 15000);
			assert.equal(await page.getAttribute('html', 'data-theme'), 'dark');
		},
		{dark: true},
	);
});

test('damaged data is said, not hidden', {skip}, async () => {
	const file = join(FOLDER, 'damaged.html');
	const text = readFileSync(new URL(demo), 'utf8');
	writeFileSync(file, text.replace(/(id="profile">\s*.{400}).{300}/s, '$1'));
	const context = await newContext();
	const page = await context.newPage();
	await page.goto(`file://${file}`);
	await page.waitForSelector('[role=alert]');
	assert.match(await page.innerText('[role=alert]'), /cannot be shown: /);
	await context.close();
});
