// SPDX-License-Identifier: MIT OR Apache-2.0
// What valgrind's dh_view.js makes of a profile: node ask_dhat.mjs DH_VIEW.js PROFILE
// It is loaded as it is; of the page only its list of sort metrics is needed. Printed as JSON: the
// root's totals, and per innermost frame what its program points have.
import {readFileSync} from 'node:fs';
import vm from 'node:vm';

const [, , viewer, profile] = process.argv;
const context = vm.createContext({console, document: {}});
vm.runInContext(readFileSync(viewer, 'utf8'), context, {filename: viewer});
context.text = readFileSync(profile, 'utf8');
const answer = vm.runInContext(`
	gData = JSON.parse(text);
	gSelect = {childNodes: gSelectData.map(() => ({})), selectedIndex: 0};
	buildTree();
	const root = {bytes: gRoot._totalBytes, blocks: gRoot._totalBlocks, lives: gRoot._totalLifetimes,
		peak: gRoot._atTGmaxBytes, peakBlocks: gRoot._atTGmaxBlocks,
		end: gRoot._atTEndBytes, endBlocks: gRoot._atTEndBlocks};
	const rows = {};
	for (const p of gData.pps) {
		const name = gData.ftbl[p.fs[0]];
		const row = rows[name] ??= {bytes: 0, blocks: 0, peak: 0, end: 0};
		row.bytes += p.tb; row.blocks += p.tbk; row.peak += p.gb; row.end += p.eb;
	}
	JSON.stringify({root, rows, frames: gData.ftbl.length, first: gData.ftbl[0]});
`, context);
console.log(answer);
