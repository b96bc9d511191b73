// SPDX-License-Identifier: MIT OR Apache-2.0
// The page of sessions of memory in a browser, as assay view writes it: leaks, resident memory, differences of
// sessions and of marks.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {existsSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {before, test} from 'node:test';
import {bytes, count} from '../../web/format.js';
import {chips, fitsInWidth, FOLDER, hasLabels, names, onPage, ROOT, skip as noBrowser, until, view, viewNames} from './browser.js';

const assay = process.env.ASSAY ?? join(ROOT, 'build/src/cli/assay');
const maker = join(dirname(assay), '../../tests/cli/make-heap-session');
const skip = noBrowser || (existsSync(maker) ? false : `no make-heap-session at ${maker}`);
/** What is so of the last session, by its maker. @type {{[key: string]: any}} */
let truth = {};
let both = '',
	bothMemory = '',
	one = '',
	pair = '',
	marks = '';

before(() => {
	if (skip) return;
	const [a, b] = ['3000', '20000'].map(rounds => {
		const file = join(FOLDER, `heap${rounds}.heap.assay`);
		truth = JSON.parse(execFileSync(maker, [file, rounds, 'leaks'], {encoding: 'utf8'}));
		return file;
	});
	const write = (/** @type {string} */ name, /** @type {string[]} */ ...options) => {
		const file = join(FOLDER, `${name}.html`);
		execFileSync(assay, ['view', '--no-open', '-o', file, ...options], {
			stdio: 'ignore',
			env: {...process.env, XDG_CACHE_HOME: FOLDER},
		});
		return `file://${file}`;
	};
	const beside = join(FOLDER, 'beside.assay');
	truth.both = JSON.parse(execFileSync(maker, [beside, '3000', 'both'], {encoding: 'utf8'}));
	both = write('both', beside);
	bothMemory = write('bothmemory', '--measure', 'peak', beside);
	one = write('one', b);
	pair = write('pair', '--diff', a, b);
	marks = write('marks', '--marks', '..half', b);
});

test('each lost tree stands once with its owner, and unfolds to its stack by keyboard', {skip}, async () => {
	await onPage(one, async page => {
		const card = page.locator('.leaks'),
			text = await card.innerText();
		const sum = (/** @type {string} */ key) => `${bytes(truth[key][1])} in ${count(truth[key][0])} block${truth[key][0] === 1 ? '' : 's'}`;
		for (const [label, key] of [['lost', 'lost'], ['indirectly lost', 'indirect'], ['possibly lost', 'possible'],
			['still reachable', 'reachable']])
			assert.ok(text.includes(`${label}\n${sum(key)}`), `${label} ${sum(key)}: ${text}`);
		const rows = card.locator('summary'),
			owners = Object.keys(truth).filter(k => k.startsWith('lost(') && truth[k][0]);
		assert.equal(await rows.count(), owners.length);
		for (const owner of owners) {
			const said = await rows.filter({hasText: owner.slice(5, -1)}).innerText(),
				led = owner.replace('lost', 'indirect');
			assert.ok(said.includes(`${sum(owner)} lost`), said);
			assert.equal(said.includes(`and ${sum(led)} that only these lead to`), truth[led][0] > 0, said);
			assert.ok(said.startsWith(bytes(truth[owner][1] + truth[led][1])), said);
		}
		await rows.first().focus();
		await page.keyboard.press('Enter');
		assert.match(await card.locator('details[open] .stack').innerText(), /^app::\w+.*\napp::(main|worker)/);
		await card.locator('text=All that leaked').click();
		assert.equal(await page.locator('#filters select').inputValue(), 'leaked');
		assert.ok((await page.innerText('.scope')).startsWith(bytes(truth.lost[1] + truth.indirect[1])));
		assert.ok((await names(page)).length >= 2);
		await page.goBack();
		await card.locator('.stack a').first().click();
		assert.equal(await page.getAttribute('#views [aria-current]', 'data-view'), 'sandwich');
	});
});

test('parts of resident memory begin where those above end, and come to the whole', {skip}, async () => {
	await onPage(one, async page => {
		const bars = await page
			.locator('.fall .bar-fill')
			.evaluateAll(all => all.map(e => e.getBoundingClientRect()).map(r => [r.left, r.right]));
		assert.ok(bars.length > 5);
		for (let i = 1; i + 1 < bars.length; i++) assert.ok(Math.abs(bars[i][0] - bars[i - 1][1]) < 1.5, `part ${i}`);
		const whole = bars[bars.length - 1];
		assert.ok(Math.abs(bars[0][0] - whole[0]) < 1.5 && Math.abs(bars[bars.length - 2][1] - whole[1]) < 1.5);
		const text = await page.locator('.fall').innerText();
		assert.match(text, /libc\.so\.6 1\.46 MiB, app 900 KiB/);
		assert.ok(text.includes(bytes(truth.resident)), text);
		assert.match(await page.locator('.pinned').innerText(), /152 KiB are free, but in 40 pages/);
		assert.equal(await page.locator('.pinned + .figures tbody tr').count(), 1);
	});
});

test('a session of both: CPU time first, the way to its memory, and there what was counted', {skip}, async () => {
	const said = truth.both,
		functions = Object.keys(said).filter(k => k.startsWith('app::'));
	await onPage(both, async page => {
		const text = await page.innerText('main');
		assert.ok(text.includes('Hottest functions'), text);
		assert.ok(text.includes('assay view --measure peak ') && text.includes('beside.assay'), text);
		assert.ok(text.includes(`a peak of ${bytes(said.peak_bytes)}, ${count(said.allocs)} allocations`), text);
		await view(page, 'table');
		assert.ok((await page.innerText('.scope')).startsWith('3,000 samples'));
	});
	await onPage(bothMemory, async page => {
		assert.ok((await page.innerText('main')).includes('Who has the peak'));
		for (const [measure, key] of [['peak', 'peak_bytes'], ['live', 'live_bytes'], ['bytes', 'bytes'], ['allocs', 'allocs']]) {
			const figure = measure === 'allocs' ? count : bytes;
			await view(page, 'table');
			await page.selectOption('#filters select', measure);
			assert.ok((await page.innerText('.scope')).startsWith(figure(said[key])), `${measure}: ${await page.innerText('.scope')}`);
			const shown = await page.locator('.grid').innerText();
			for (const f of functions)
				if (said[f][key]) assert.ok(shown.includes(f) && shown.includes(figure(said[f][key])), `${measure} of ${f}: ${shown}`);
			for (const name of ['flame', 'tree']) {
				await view(page, name);
				await fitsInWidth(page, `${measure}, ${name}`);
			}
		}
	});
});

test('two sessions are compared in the measure that is chosen, as amounts', {skip}, async () => {
	await onPage(pair, async page => {
		await view(page, 'diff');
		const note = page.locator('.below-bar');
		assert.match(await note.innerText(), /^Peak: .*3000.heap.assay .*, .*20000.heap.assay .*every difference is one/);
		const rows = await page.locator('.grid .row:not([hidden])').evaluateAll(all =>
			all.map(r => [...r.children].slice(0, 4).map(c => c.textContent ?? '')),
		);
		assert.ok(rows.length >= 3);
		for (const [change, part] of rows) assert.match(`${change} ${part}`, /^([+−][\d.]+ [KM]?i?B (\+|−|new|gone)|0 B )/);
		await page.selectOption('#filters select', 'allocs');
		assert.match(await note.innerText(), /^Allocations: /);
		assert.match(await page.locator('.grid .row').first().innerText(), /^\+[\d,]+\n/);
		await page.click('[aria-label="Shares"] [data-value="total"]');
		assert.ok((await names(page)).includes('app::main'));
		await page.evaluate('copied.length = 0');
		await page.keyboard.press('c');
		assert.match(/** @type {string[]} */ (await page.evaluate('copied'))[0], /before +after +change/);
		await view(page, 'flame');
		await page.locator('canvas').first().focus();
		await page.keyboard.press('ArrowDown');
		await until(async () => /before .*, after /.test(await page.locator('.flame-view [aria-live]').innerText()));
	});
});

test('two marks are compared, others are chosen, and every view follows', {skip}, async () => {
	await onPage(marks, async page => {
		assert.equal(await page.getAttribute('#views [aria-current]', 'data-view'), 'diff');
		const note = page.locator('.below-bar');
		assert.match(await note.innerText(), /the start 0 B, half [\d.]+ KiB: \+/);
		assert.deepEqual(await chips(page), ['since the start', 'at half']);
		assert.match(await page.locator('.grid .row').first().innerText(), /\nnew\n/);
		await page.selectOption('[aria-label="from"]', {label: 'half'});
		await page.selectOption('[aria-label="to"]', {label: 'the end'});
		assert.match(await note.innerText(), /half [\d.]+ KiB, the end [\d.]+ KiB: /);
		assert.deepEqual(await chips(page), ['since half']);
		const url = page.url();
		await view(page, 'flame');
		assert.ok(await page.locator('[aria-label="colour"] option[value="diff"]').count());
		await page.goto('about:blank');
		await page.goto(url);
		await page.waitForSelector('html[data-ready]');
		assert.match(await note.innerText(), /half [\d.]+ KiB, the end/);
		await page.click('.chip button');
		await page.selectOption('#filters select', 'peak');
		assert.deepEqual(await chips(page), []);
		await view(page, 'table');
		assert.ok((await page.innerText('.scope')).startsWith(bytes(truth.peak_bytes)));
	});
	await onPage(one, async page => {
		// Without an option: since the last mark, once the view is opened.
		await view(page, 'diff');
		await until(async () => (await chips(page)).join() === 'since half');
	});
});

test('pages of memory fit at 1280 and 400 pixels in both themes, and have labels', {skip}, async () => {
	for (const [width, dark] of /** @type {[number, boolean][]} */ ([
		[1280, true],
		[400, false],
	]))
		for (const url of [pair, marks])
			await onPage(
				url,
				async page => {
					for (const name of await viewNames(page)) {
						await view(page, name);
						if (width > 1000) await fitsInWidth(page, `${name} at ${width}`);
						else
							assert.ok(
								(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0,
								`${name} at ${width}`,
							);
						await hasLabels(page, name);
						const cells = await page.locator('.grid .row:not([hidden]) .name').evaluateAll(all => all.map(e => e.clientWidth));
						assert.ok(cells.every(w => w > 60), `${name} at ${width}: names have no room`);
					}
				},
				{width, height: 800, dark},
			);
});
