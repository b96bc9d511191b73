// SPDX-License-Identifier: MIT OR Apache-2.0
// usage: node bench/viewers.mjs NODE_MODULES_PARENT CHROMIUM assay|speedscope FILE
//
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
	if (kind === 'assay')
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
	return which === 'assay' ? 'ready' in document.documentElement.dataset :
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
	await page.waitForFunction(isReady, kind, { timeout: 300000, polling: 20 });
	const ms = performance.now() - began;
	const failed = (await page.evaluate(() => document.body.innerText)).includes('went wrong');
	await cdp.send('HeapProfiler.collectGarbage');
	const { usedSize, backingStorageSize = 0 } = await cdp.send('Runtime.getHeapUsage');
	console.log(JSON.stringify(failed ? { failed: true } :
		{ ms, heap: usedSize + backingStorageSize, peak: peak(process.pid) }));
} finally {
	await browser.close();
	fs.rmSync(scratch, { recursive: true });
}
