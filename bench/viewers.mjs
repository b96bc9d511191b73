// SPDX-License-Identifier: MIT OR Apache-2.0
// usage: node bench/viewers.mjs NODE_MODULES_PARENT CHROMIUM assay|speedscope|tasks FILE
//
// tasks: opens each view of assay's page once and prints the CPU time of its longest task in ms, by view.
// Else:
// Opens FILE in a browser of its own and prints {ms, heap, peak}: from the request for the page until
// it says that it is ready, JavaScript heap with its buffers in use after a collection, and the largest resident set
// of a process of the browser, in bytes. Times include reading the file from disk.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [folder, browserPath, kind, file] = process.argv.slice(2);
const require = createRequire(path.join(folder, 'package.json'));
const { chromium } = require('playwright-core');
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'assay-viewers-'));

function address() {
	if (kind !== 'speedscope')
		return pathToFileURL(file).href;
	// how speedscope's own command opens a file without a server
	const loader = path.join(scratch, 'profile.js');
	fs.writeFileSync(loader, `speedscope.loadFileFromBase64(${
		JSON.stringify(path.basename(file))}, "`);
	fs.appendFileSync(loader, fs.readFileSync(file).toString('base64'));
	fs.appendFileSync(loader, '")');
	return `${pathToFileURL(path.join(folder,
		'node_modules/speedscope/dist/release/index.html'))}#localProfilePath=${loader}`;
}

function isReady(which) {
	return which !== 'speedscope' ? 'ready' in document.documentElement.dataset :
		document.title !== 'speedscope' || document.body.innerText.includes('went wrong');
}

/** Largest VmHWM among the browser's processes that show pages. */
function peak(root) {
	const parents = new Map();
	for (const pid of fs.readdirSync('/proc').filter((n) => /^\d+$/.test(n))) {
		try {
			const text = fs.readFileSync(`/proc/${pid}/status`, 'utf8');
			parents.set(pid, [/^PPid:\s*(\d+)/m.exec(text)[1],
				Number(/^VmHWM:\s*(\d+)/m.exec(text)?.[1] ?? 0)]);
		} catch {
			// it has ended
		}
	}
	let most = 0;
	for (const [pid, [, kib]] of parents) {
		let at = pid;
		while (parents.has(at) && at !== String(root))
			at = parents.get(at)[0];
		const line = at === String(root) ? fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8') : '';
		if (line.includes('--type=renderer'))
			most = Math.max(most, kib * 1024);
	}
	return most;
}

/** @returns CPU time of the longest task per view, in the order of the tabs */
async function tasks(page) {
	const longest = {};
	for (const name of await page.locator('#views a').evaluateAll((all) => all.map((a) => a.dataset.view))) {
		await browser.startTracing(page, { categories: ['toplevel', 'devtools.timeline'] });
		await page.click(`#views a[data-view="${name}"]`);
		await page.waitForTimeout(300);
		while (await page.locator('#main[aria-busy]').count())
			await page.waitForTimeout(100);
		await page.waitForTimeout(500);
		const { traceEvents } = JSON.parse((await browser.stopTracing()).toString());
		const main = new Set(traceEvents.filter((e) => e.name === 'thread_name' &&
			e.args.name === 'CrRendererMain').map((e) => `${e.pid} ${e.tid}`));
		longest[name] = Math.max(0, ...traceEvents.filter((e) => main.has(`${e.pid} ${e.tid}`) &&
			e.name.endsWith('RunTask')).map((e) => (e.tdur ?? 0) / 1000));
	}
	return longest;
}

const url = address();
const browser = await chromium.launch({
	executablePath: browserPath,
	args: ['--js-flags=--max-old-space-size=8192', ...process.getuid() === 0 ? ['--no-sandbox'] : []],
});
try {
	const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
	const cdp = await page.context().newCDPSession(page);
	const began = performance.now();
	await page.goto(url, { timeout: 300000 });
	// not waitForFunction: it evaluates text inside the page, which the page's policy refuses
	while (!await page.evaluate(isReady, kind))
		await new Promise((go) => setTimeout(go, 20));
	const ms = performance.now() - began;
	const views = kind === 'tasks' ? await tasks(page) : null;
	const failed = (await page.evaluate(() => document.body.innerText)).includes('went wrong');
	await cdp.send('HeapProfiler.collectGarbage');
	const { usedSize, backingStorageSize = 0 } = await cdp.send('Runtime.getHeapUsage');
	console.log(JSON.stringify(views ?? (failed ? { failed: true } :
		{ ms, heap: usedSize + backingStorageSize, peak: peak(process.pid) })));
} finally {
	await browser.close();
	fs.rmSync(scratch, { recursive: true });
}
