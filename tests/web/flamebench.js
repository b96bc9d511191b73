// SPDX-License-Identifier: MIT OR Apache-2.0
// @ts-nocheck: its functions run in the page
// Frame times of the flame graph: `node tests/web/flamebench.js [pixel ratio]` (not a test: times
// depend on the machine). A tree of a million nodes whose sizes vary as those of programs do, zoomed,
// panned and scrolled, and a stack of 20,000 frames, in Debian's Chromium without a GPU.
import {createServer} from 'node:http';
import {readFileSync} from 'node:fs';
import {chromium} from 'playwright-core';

const web = new URL('../../web/', import.meta.url);
const page = `<!doctype html><html data-theme="light"><link rel="stylesheet" href="/style.css">
<link rel="stylesheet" href="/flame.css"><link rel="icon" href="data:,"><body>
<div id="app" style="flex:1;min-height:0;display:flex;flex-direction:column"></div></body></html>`;
const server = createServer((request, response) => {
	const name = (request.url || '').slice(1), js = name.endsWith('.js');
	response.setHeader('content-type', js ? 'text/javascript' : name ? 'text/css' : 'text/html');
	response.end(/^\w+\.(js|css)$/.test(name) ? readFileSync(new URL(name, web)) : page);
});
await new Promise(done => server.listen(0, '127.0.0.1', done));

async function measure({n, deep}) {
	const {FlameCanvas} = await import('/flamecanvas.js'), {Flame} = await import('/flame.js');
	const {GROUP_COLORS, REST_COLOR, mixColors, pixelOfHex} = await import('/color.js');
	let seed = 2463534242;
	const random = () => {
		seed ^= seed << 13, seed ^= seed >>> 17, seed ^= seed << 5;
		return (seed >>> 0) / 2 ** 32;
	};
	const column = Type => new Type(n);
	const t = {n, parent: column(Int32Array), key: column(Uint32Array), depth: column(Uint32Array), self: column(Float64Array),
		total: column(Float64Array), first: column(Int32Array).fill(-1), next: column(Int32Array).fill(-1), start: column(Float64Array)};
	t.parent[0] = -1;
	// Preferring recent nodes makes depth; a weight that halves at each step makes few heavy paths.
	const heavy = new Float64Array(n);
	heavy[0] = 1;
	for (let i = 1; i < n; i++) {
		const p = deep ? i - 1 : random() < 0.7 ? Math.max(0, i - 1 - Math.floor(random() ** 4 * 60)) : Math.floor(random() ** 3 * i);
		const at = t.depth[p] < 90 || deep ? p : 0;
		t.parent[i] = at;
		t.depth[i] = t.depth[at] + 1;
		t.key[i] = Math.floor(random() * 3000);
		heavy[i] = heavy[at] * (0.3 + 0.7 * random());
		t.self[i] = heavy[i] * random() ** 3;
		t.next[i] = t.first[at];
		t.first[at] = i;
	}
	for (let i = n - 1; i >= 0; i--) {
		t.total[i] += t.self[i];
		if (i)
			t.total[t.parent[i]] += t.total[i];
	}
	for (let i = 0; i < n; i++)
		for (let c = t.first[i], x = t.start[i]; c >= 0; x += t.total[c], c = t.next[c])
			t.start[c] = x;
	const began = performance.now(), flame = new Flame({...t, samples: t.total, weight: t.total[0], timeOrdered: false});
	const layout = performance.now() - began;
	const canvas = new FlameCanvas({name: i => `core::module${t.key[i] % 77}::Type<T>::function_${t.key[i]}`,
		zoom() {}, moved() {}, menu() {}, hover() {}, select() {}});
	document.getElementById('app').replaceChildren(canvas.element);
	const all = [...GROUP_COLORS.light, REST_COLOR.light, '#ffffff'];
	canvas.set(flame, {ink: '#16181c', paper: '#ffffff', accent: '#0b3fd1', index: Uint8Array.from(t.key, k => k % 9),
		pixels: Uint32Array.from(all, pixelOfHex), faded: Uint32Array.from(all, c => pixelOfHex(mixColors(c, '#ffffff', 0.68))),
		hatchA: pixelOfHex('#c0c4c8'), hatchB: pixelOfHex('#e4e6e8')});
	canvas.showNode(0, false);
	const frame = () => new Promise(requestAnimationFrame);
	const run = async step => {
		const gaps = [], draws = [];
		for (let i = 0, last = await frame(); i < 120; i++) {
			step(i);
			const now = await frame();
			gaps.push(now - last);
			last = now;
			draws.push(canvas.drawMs);
		}
		const at = (list, q) => [...list].sort((a, b) => a - b)[Math.floor((list.length - 1) * q)].toFixed(1);
		return `frame ${at(gaps, 0.5)} ms, 95 % ${at(gaps, 0.95)}, longest ${at(gaps, 1)}; drawing ${at(draws, 0.5)}, 95 % ${at(draws, 0.95)}`;
	};
	await frame();
	await frame();
	const out = [`${n} nodes, ${flame.depths} deep: laid out in ${layout.toFixed(0)} ms`];
	out.push(`zoom    ${await run(i => canvas.scaleAt(flame.whole * 0.37, i < 60 ? 1 / 1.12 : 1.12))}`);
	canvas.moveTo(0, flame.whole * 0.2);
	out.push(`pan     ${await run(i => canvas.pan(i < 60 ? 40 : -40))}`);
	canvas.moveTo(0, flame.whole);
	const range = canvas.element.scrollHeight - canvas.element.clientHeight;
	out.push(`scroll  ${await run(i => {
		canvas.element.scrollTop = range * i / 119;
	})} over ${range} px`);
	return out.join('\n  ');
}

const browser = await chromium.launch({executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox']});
const tab = await browser.newPage({viewport: {width: 1280, height: 800}, deviceScaleFactor: Number(process.argv[2] || 1)});
tab.on('pageerror', e => console.error(e.stack));
await tab.goto(`http://127.0.0.1:${server.address().port}/`);
for (const what of [{n: 1e6, deep: false}, {n: 20001, deep: true}])
	console.log(await tab.evaluate(measure, what));
if (process.argv[3])
	await tab.screenshot({path: process.argv[3]});
await browser.close();
server.close();
