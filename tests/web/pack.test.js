// SPDX-License-Identifier: MIT OR Apache-2.0
// tools/pack-web: the page is one file whose only script is the one its policy names.
import assert from 'node:assert/strict';
import {spawnSync} from 'node:child_process';
import {createHash} from 'node:crypto';
import {mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import path from 'node:path';
import {after, test} from 'node:test';
import {decodeModel} from '../../web/decode.js';
import {encodeContainer} from './encode.js';
import {demoModel} from './synthetic.js';

const root = path.resolve(import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname),
	'../..');
const dir = mkdtempSync(path.join(tmpdir(), 'assay-pack-'));
after(() => rmSync(dir, {recursive: true, force: true}));

/** @param {string[]} argv */
function pack(...argv) {
	return spawnSync('python3', [path.join(root, 'tools/pack-web'), ...argv], {encoding: 'utf8'});
}

/** @param {{[name: string]: string}} files */
function packed(files) {
	const web = mkdtempSync(path.join(dir, 'web-'));
	const usual = '<html><head>\n<!-- assay:csp -->\n<title><!-- assay:title --></title></head><body>' +
		'<script type="module" src="app.js"></script><!-- assay:data --></body></html>\n';
	for (const [name, text] of Object.entries({'index.html': usual, ...files}))
		writeFileSync(path.join(web, name), text);
	const out = path.join(web, 'out.html'), r = pack('--web', web, '--html', out);
	return {error: r.stderr, html: r.status === 0 ? readFileSync(out, 'utf8') : ''};
}

/** @param {string} html */
const scriptOf = html => /<script type="module">([^]*?)<\/script>/.exec(html)?.[1] ?? '';

test('our page packs, its policy names its script and nothing else may run or be fetched',
	async () => {
	const data = path.join(dir, 'demo.bin'), out = path.join(dir, 'demo.html');
	writeFileSync(data, encodeContainer(demoModel()));
	const r = pack('--html', out, '--data', data, '--title', '</title><script>alert(1)</script>');
	assert.equal(r.stderr, '');
	const html = readFileSync(out, 'utf8'), script = scriptOf(html);
	const hash = createHash('sha256').update(script).digest('base64');
	const policy = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(html)?.[1] ?? '';
	assert.ok(policy.startsWith("default-src 'none';") &&
		policy.includes(`script-src 'sha256-${hash}';`), policy);
	assert.ok(policy.endsWith("connect-src 'none'"));
	assert.equal(html.match(/<script\b/g)?.length, 2);
	assert.ok(html.indexOf('http-equiv="Content-Security-Policy"') < html.indexOf('<script'));
	assert.ok(!/\b(src|href)="(?!#|data:)/.test(html.replace(script, '')), 'nothing is loaded');
	assert.ok(html.includes('<title>&lt;/title&gt;'));
	const element = /id="profile">([^<]*)</.exec(html)?.[1] ?? '';
	assert.equal((await decodeModel(element)).samples.n, 5000);
});

test('the same text stands in the C file, in pieces', () => {
	const c = path.join(dir, 'page.c'), out = path.join(dir, 'plain.html');
	assert.equal(pack('--c', c, '--depfile', c + '.d').status, 0);
	assert.equal(pack('--html', out).status, 0);
	const pieces = readFileSync(c, 'utf8').split(/^const char \w+\[\] =$/m).slice(1).map(text =>
		Buffer.from(Array.from(text.matchAll(/^\t"(.*)";?$/gm), m => m[1]).join('')
			.replace(/\\([0-7]{3})|\\n/g, (_, o) => o ? String.fromCharCode(parseInt(o, 8)) : '\n'),
				'latin1').toString());
	assert.equal(pieces.length, 4);
	assert.equal(pieces[0] + "'none'" + pieces[1] + 'assay' + pieces[2] + pieces[3],
		readFileSync(out, 'utf8'));
	assert.match(readFileSync(c + '.d', 'utf8'), /web\/decode\.js/);
});

test('modules come in the order of their imports, comments stay out, texts stay whole', () => {
	const {html, error} = packed({
		'app.js': "// SPDX\nimport {b,\n\tc} from './b.js';\n/** doc\n * @x */\nconst t = `\n// kept\n/* kept */\n`;\nb(c, t); // stays\n",
		'b.js': "import { a } from './a.js';\nexport function b() { return a; }\nexport const c = '//';\nexport {};\n",
		'a.js': 'export class a {\n\t// gone\n\tm() { return 1; } /* stays */\n}\n',
	});
	assert.equal(error, '');
	assert.equal(scriptOf(html),
		'\n// a.js\nclass a {\n\tm() { return 1; } /* stays */\n}\n// b.js\n' +
		"function b() { return a; }\nconst c = '//';\n// app.js\nconst t = `\n// kept\n/* kept */\n`;\nb(c, t); // stays\n");
});

test('what would break the page breaks the build, with the place', () => {
	/** @type {[{[name: string]: string}, RegExp][]} */
	const cases = [
		[{'app.js': "import {x} from './no.js';\n"}, /no\.js: No such file/],
		[{'app.js': "import {x} from './a.js';\n", 'a.js': 'export const y = 1;\n'},
			/app\.js: 'x' is not exported by a\.js/],
		[{'app.js': "import {x} from './a.js';\nconst x2 = 1;\n",
			'a.js': 'export const x = 1;\nfunction x2() {}\n'},
			/app\.js: 'x2' is also a top-level name of a\.js/],
		[{'app.js': "import {x} from './a.js';\n",
			'a.js': "import {y} from './b.js';\nexport const x = y;\n",
			'b.js': "import {x} from './a.js';\nexport const y = x;\n"}, /imports itself/],
		[{'app.js': "const s = '</SCRIPT>';\n"}, /app\.js: holds '<\/script'/],
		[{'app.js': "const s = '<!-- ';\n"}, /app\.js: holds '<!--'/],
		[{'app.js': "import x from './a.js';\n", 'a.js': ''}, /not understood: import x/],
		[{'app.js': "import('./a.js');\n"}, /not understood/],
		[{'app.js': 'export default 1;\n'}, /not understood: export default/],
		[{'app.js': '', 'index.html': '<script type="module" src="app.js"></script>'}, /assay:csp/],
	];
	for (const [files, why] of cases)
		assert.match(packed(files).error, why);
});

test('a module may not be packed twice', () => {
	const {html} = packed(
		{'app.js': "import {a} from './a.js';\nimport {b} from './b.js';\nb(a);\n",
		'a.js': 'export const a = 1;\n',
			'b.js': "import {a} from './a.js';\nexport function b() { return a; }\n"});
	assert.equal(html.split('const a = 1').length, 2);
});
