// SPDX-License-Identifier: MIT OR Apache-2.0
// usage: node ask_pprof.mjs NODE_MODULES_PARENT PROFILE.pb.gz
//
// Reads a profile with pprof-format and prints {types, functions: {name: [samples of its own, in
// all]}, systems: {name: system name}, labels, problems: […]}; problems: what its rules forbid.
import fs from 'node:fs';
import path from 'node:path';
import zlib from 'node:zlib';
import { createRequire } from 'node:module';

const [folder, file] = process.argv.slice(2);
const require = createRequire(path.join(folder, 'package.json'));
const { Profile } = require('pprof-format');

const p = Profile.decode(zlib.gunzipSync(fs.readFileSync(file)));
const text = (i) => p.stringTable.strings[Number(i)];
const problems = [];

/** Entries by id; ids are unique and not 0. */
function table(entries, what) {
	const by = new Map();
	for (const e of entries) {
		if (!Number(e.id) || by.has(Number(e.id)))
			problems.push(`${what} ${e.id} is 0 or there twice`);
		by.set(Number(e.id), e);
	}
	return (id) => {
		if (!by.has(Number(id)))
			problems.push(`${what} ${id} is not there`);
		return by.get(Number(id));
	};
}

const fn = table(p.function, 'function');
const location = table(p.location, 'location');
const mapping = table(p.mapping, 'mapping');
if (text(0) !== '')
	problems.push('the first string is not empty');
for (const l of p.location)
	if (Number(l.mappingId))
		mapping(l.mappingId);

const functions = Object.create(null);
const systems = Object.create(null);
const labels = new Set();
for (const f of p.function)
	systems[text(f.name)] = text(f.systemName);
for (const s of p.sample) {
	if (s.value.length !== p.sampleType.length)
		problems.push(`${s.value.length} values`);
	const names = s.locationId.flatMap((id) =>
		location(id).line.map((l) => text(fn(l.functionId).name)));
	const count = Number(s.value[0]);
	for (const name of new Set(names)) {
		functions[name] ??= [0, 0];
		functions[name][1] += count;
	}
	functions[names[0]][0] += count;
	for (const l of s.label)
		labels.add(`${text(l.key)}=${Number(l.str) ? text(l.str) : l.num}`);
}
console.log(JSON.stringify({
	types: p.sampleType.map((t) => `${text(t.type)}/${text(t.unit)}`),
	comments: p.comment.map(text),
	functions, systems, labels: [...labels], problems: problems.slice(0, 10),
}));
