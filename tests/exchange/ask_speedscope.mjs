// SPDX-License-Identifier: MIT OR Apache-2.0
// usage: node ask_speedscope.mjs NODE_MODULES_PARENT CHROMIUM FILE…
//
// Each file (.json: held against the format's schema first) is opened in the packaged page, and
// written out again by the page, from what its importer made of it. Prints per file, in ns:
// {schema: true or errors, title, failed, said (on its console), profiles,
// functions: {name: [self, total]}, sandwich}.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [folder, browserPath, ...files] = process.argv.slice(2);
const require = createRequire(path.join(folder, 'package.json'));
const release = path.join(folder, 'node_modules/speedscope/dist/release');
const schema = JSON.parse(fs.readFileSync(path.join(release, 'file-format-schema.json'), 'utf8'));
const Ajv = require('ajv').default;
const validate = new Ajv({ allErrors: false, strict: false }).compile(schema);
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'assay-speedscope-'));

function add(functions, name, self, total) {
	if (!Object.hasOwn(functions, name))
		functions[name] = [0, 0];
	functions[name][0] += self;
	functions[name][1] += total;
}

/** Self and total from the balanced events that the page writes. */
function addEvents(functions, frames, profile) {
	const stack = [];
	const open = new Map();
	let last = profile.startValue;
	for (const e of profile.events) {
		const name = frames[e.frame].name;
		if (stack.length)
			add(functions, stack[stack.length - 1].name, e.at - last, 0);
		last = e.at;
		if (e.type === 'O') {
			stack.push({ name, at: e.at });
			open.set(name, (open.get(name) ?? 0) + 1);
		} else {
			const closed = stack.pop();
			if (closed.name !== name)
				throw new Error(`${name} ends where ${closed.name} is open`);
			open.set(name, open.get(name) - 1);
			add(functions, name, 0, open.get(name) ? 0 : e.at - closed.at);
		}
	}
}

async function ask(browser, file) {
	const text = fs.readFileSync(file);
	const valid = !file.endsWith('.json') || validate(JSON.parse(text.toString('utf8')));
	const loader = path.join(scratch, 'profile.js');
	fs.writeFileSync(loader, `speedscope.loadFileFromBase64(${
		JSON.stringify(path.basename(file))}, "${text.toString('base64')}")`);
	const page = await browser.newPage({ viewport: { width: 1400, height: 1600 } });
	const answer = { schema: valid || validate.errors, errors: [], said: [], functions: {} };
	page.on('pageerror', (e) => answer.errors.push(e.message));
	page.on('console', (m) => m.type() === 'error' && answer.said.push(m.text()));
	await page.goto(`${pathToFileURL(path.join(release, 'index.html'))}#localProfilePath=${loader}`,
		{ timeout: 120000 });
	await page.waitForFunction(() => document.title !== 'speedscope' ||
		document.body.innerText.includes('Something went wrong'), null, { timeout: 120000 });
	answer.title = await page.title();
	answer.failed = (await page.evaluate(() => document.body.innerText))
		.includes('Something went wrong');
	if (!answer.failed) {
		await page.keyboard.press('3');
		await page.waitForFunction(() => document.body.innerText.includes('Symbol Name'));
		answer.sandwich = await page.evaluate(() => document.body.innerText);
		const [download] = await Promise.all([page.waitForEvent('download'),
			page.keyboard.press('Control+s')]);
		const written = JSON.parse(fs.readFileSync(await download.path(), 'utf8'));
		answer.profiles = written.profiles.map((p) => p.name);
		for (const profile of written.profiles)
			addEvents(answer.functions, written.shared.frames, profile);
	}
	await page.close();
	return answer;
}

const { chromium } = require('playwright-core');
const browser = await chromium.launch({
	executablePath: browserPath,
	args: process.getuid() === 0 ? ['--no-sandbox'] : [],
});
try {
	const answers = [];
	for (const file of files)
		answers.push(await ask(browser, file));
	console.log(JSON.stringify(answers));
} finally {
	await browser.close();
	fs.rmSync(scratch, { recursive: true });
}
