// SPDX-License-Identifier: MIT OR Apache-2.0
// usage: node ask_chrome.mjs NODE_MODULES_PARENT TRACE.json
//
// Reads a time line with the engine of Chrome's DevTools and prints, from the call trees that the
// engine built, CPU time per function name in ns: {threads, names, functions: {name: [self, total]}}.
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [folder, file] = process.argv.slice(2);
const engine = path.join(folder, 'node_modules/@paulirish/trace_engine');
const load = (name) => import(pathToFileURL(path.join(engine, name)).href);
const { polyfillDOMRect } = await load('analyze-trace.mjs');
polyfillDOMRect(); // the engine takes itself to be in a browser
const Trace = await load('models/trace/trace.js');

const model = Trace.TraceModel.Model.createWithAllHandlers();
await model.parse(JSON.parse(fs.readFileSync(file, 'utf8')).traceEvents);
const parsed = model.parsedTrace();
if (!parsed)
	throw new Error('the engine gave no trace');

const functions = new Map();
function add(name, self, total) {
	const row = functions.get(name) ?? [0, 0];
	row[0] += self;
	row[1] += total;
	functions.set(name, row);
}

/** Nodes on the way down with their names open; iterative, as recursion can be deep. */
function addTree(root) {
	const open = new Map();
	const todo = [{ node: root, leave: false }];
	while (todo.length) {
		const { node, leave } = todo.pop();
		const { name, tdur } = node.entry;
		const ns = Math.round(tdur * 1000);
		if (leave) {
			open.set(name, open.get(name) - 1);
			continue;
		}
		let below = 0;
		todo.push({ node, leave: true });
		for (const child of node.children) {
			below += Math.round(child.entry.tdur * 1000);
			todo.push({ node: child, leave: false });
		}
		add(name, ns - below, open.get(name) ? 0 : ns);
		open.set(name, (open.get(name) ?? 0) + 1);
	}
}

const threads = Trace.Handlers.Threads.threadsInTrace(parsed.data);
for (const thread of threads)
	for (const root of thread.tree?.roots ?? [])
		addTree(root);
console.log(JSON.stringify({
	generic: parsed.data.Meta.traceIsGeneric,
	threads: threads.map((t) => [t.pid, t.tid, t.name]),
	processes: [...parsed.data.Meta.processNames.values()].map((e) => [e.pid, e.args.name]),
	functions: Object.fromEntries(functions),
}));
