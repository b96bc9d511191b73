/* SPDX-License-Identifier: MIT OR Apache-2.0 */
// Zoom, search and keyboard for the flame graph. Everything it needs stands in the document: a
// frame is <g><title>name, then details</title><rect/><text/></g>, x and width in units of the
// drawing, one row per depth. Without this script the picture is complete, only still.
'use strict';
(() => {
const svg = document.currentScript.closest('svg');
const $ = id => svg.getElementById(id);
const WIDTH = +svg.dataset.width, SIDE = +svg.dataset.side, ROW = +svg.dataset.row;
const CHAR = 6.63, LEAST = 0.1;
const top = +svg.dataset.top;

const frames = [...$('frames').children].map(g => {
	const rect = g.querySelector('rect'), title = g.querySelector('title').textContent;
	const x = +rect.getAttribute('x') - SIDE;
	const span = WIDTH - 2 * SIDE;
	g.setAttribute('tabindex', '-1');
	g.setAttribute('role', 'button');
	g.setAttribute('aria-label', title.replaceAll('\n', ', '));
	return {
		g, rect, text: g.querySelector('text'), title,
		name: title.split('\n')[0], depth: Math.round((+rect.getAttribute('y') - top) / ROW),
		from: x / span, to: (x + +rect.getAttribute('width')) / span, found: false,
	};
}).sort((a, b) => a.depth - b.depth || a.from - b.from);
const byElement = new Map(frames.map(f => [f.g, f]));
let zoomed = frames[0], width = WIDTH, searched = '';

// The last part of a path says most: it is kept whole with as much of the beginning as fits.
function fit(name, chars) {
	if (name.length <= chars)
		return name;
	if (chars < 3)
		return '';
	let nest = 0, last = -1;
	for (let i = 0; i + 1 < name.length; i++) {
		if (name[i] === '<')
			nest++;
		else if (name[i] === '>' && name[i - 1] !== '-')
			nest--;
		else if (!nest && name[i] === ':' && name[i + 1] === ':')
			last = i;
	}
	if (last > 0 && name.length - last + 4 <= chars)
		return name.slice(0, chars - 1 - (name.length - last)) + '…' + name.slice(last);
	if (last > 0 && name.length - last - 1 <= chars)
		return '…' + name.slice(last + 2);
	return name.slice(0, chars - 1) + '…';
}

function draw() {
	const span = width - 2 * SIDE, a = zoomed.from, scale = 1 / Math.max(zoomed.to - a, 1e-12);
	for (const f of frames) {
		const from = Math.max(0, (f.from - a) * scale), to = Math.min(1, (f.to - a) * scale);
		const w = (to - from) * span;
		const above = f.depth < zoomed.depth;
		f.shown = w >= LEAST && (f.depth >= zoomed.depth || f.from <= a + 1e-9 && f.to >= zoomed.to - 1e-9);
		f.g.style.display = f.shown ? '' : 'none';
		if (!f.shown)
			continue;
		f.rect.setAttribute('x', SIDE + from * span);
		f.rect.setAttribute('width', w);
		f.g.classList.toggle('above', above);
		const label = fit(f.name, Math.floor((w - 6) / CHAR));
		if (f.text) {
			f.text.setAttribute('x', SIDE + from * span + 3);
			f.text.textContent = label;
		} else if (label) {
			f.text = document.createElementNS(svg.namespaceURI, 'text');
			f.text.setAttribute('x', SIDE + from * span + 3);
			f.text.setAttribute('y', +f.rect.getAttribute('y') + ROW - 5);
			f.text.textContent = label;
			f.g.append(f.text);
		}
	}
	$('reset').style.display = zoomed === frames[0] ? 'none' : '';
}

function zoom(f) {
	zoomed = f;
	draw();
	tell(f);
}

function tell(f) {
	$('info').textContent = f ? f.title.replaceAll('\n', ' · ') : '';
	placeBar();
}

// Share of the whole that lies under matching frames; nested matches count once.
function search(word) {
	searched = word;
	let test = null, spans = [];
	if (word) {
		try {
			const re = new RegExp(word, 'i');
			test = s => re.test(s);
		} catch {
			const low = word.toLowerCase();
			test = s => s.toLowerCase().includes(low);
		}
	}
	for (const f of frames) {
		f.found = test !== null && test(f.name);
		f.g.classList.toggle('found', f.found);
		if (f.found)
			spans.push(f);
	}
	$('frames').classList.toggle('searching', test !== null);
	spans.sort((a, b) => a.from - b.from);
	let share = 0, end = 0;
	for (const f of spans) {
		share += Math.max(0, f.to - Math.max(f.from, end));
		end = Math.max(end, f.to);
	}
	$('matched').textContent = test === null ? '' :
		spans.length ? `matched ${(share * 100).toFixed(1)} %, ${spans.length} boxes` : 'no match';
}

function openSearch() {
	let box = $('searchbox');
	if (!box) {
		box = document.createElementNS(svg.namespaceURI, 'foreignObject');
		box.id = 'searchbox';
		box.setAttribute('width', 240);
		box.setAttribute('height', 26);
		const input = document.createElementNS('http://www.w3.org/1999/xhtml', 'input');
		input.setAttribute('placeholder', 'search functions (regular expression)');
		input.style.cssText = 'width: 232px; font: 11px monospace;';
		input.addEventListener('input', () => search(input.value));
		input.addEventListener('keydown', e => {
			e.stopPropagation();
			if (e.key === 'Escape') {
				input.value = '';
				search('');
				closeSearch();
			} else if (e.key === 'Enter') {
				const first = frames.find(f => f.found && f.shown);
				if (first)
					focus(first);
			}
		});
		box.append(input);
		svg.append(box);
	}
	box.style.display = '';
	box.setAttribute('x', width - SIDE - 240);
	box.setAttribute('y', 8);
	box.firstChild.focus();
	box.firstChild.select();
}

function closeSearch() {
	const box = $('searchbox');
	if (box)
		box.style.display = 'none';
	svg.focus();
}

function focus(f) {
	frames.forEach(o => o.g.setAttribute('tabindex', '-1'));
	f.g.setAttribute('tabindex', '0');
	f.g.focus();
	f.rect.scrollIntoView({block: 'nearest'});
	tell(f);
}

// Arrow keys: down to what it calls, up to its caller, to the neighbours in a row.
function neighbour(f, key) {
	const shown = frames.filter(o => o.shown);
	if (key === 'ArrowDown')
		return shown.filter(o => o.depth === f.depth + 1 && o.from >= f.from - 1e-9 && o.to <= f.to + 1e-9)
			.sort((a, b) => (b.to - b.from) - (a.to - a.from))[0];
	if (key === 'ArrowUp')
		return shown.find(o => o.depth === f.depth - 1 && o.from <= f.from + 1e-9 && o.to >= f.to - 1e-9);
	const row = shown.filter(o => o.depth === f.depth), at = row.indexOf(f);
	return row[at + (key === 'ArrowRight' ? 1 : -1)];
}

function onKey(e) {
	const f = byElement.get(document.activeElement);
	if (e.key === '/' || (e.key === 'f' && (e.ctrlKey || e.metaKey))) {
		e.preventDefault();
		openSearch();
	} else if (e.key === 'Escape') {
		if (searched)
			search('');
		else
			zoom(frames[0]);
		closeSearch();
	} else if (e.key.startsWith('Arrow') && !e.ctrlKey && !e.altKey) {
		e.preventDefault();
		const next = f ? neighbour(f, e.key) : zoomed;
		if (next)
			focus(next);
	} else if ((e.key === 'Enter' || e.key === ' ') && f) {
		e.preventDefault();
		zoom(f);
	}
}

// The line with details stays at the lower edge of what can be seen.
function placeBar() {
	const height = +svg.getAttribute('height');
	const below = svg.getBoundingClientRect().bottom - window.innerHeight;
	$('bar').setAttribute('transform', `translate(0 ${Math.max(0, height - 22 - Math.max(0, below))})`);
}

function resize() {
	const alone = document.documentElement === svg;
	width = Math.max(480, alone ? window.innerWidth - 18 : svg.parentElement.clientWidth || WIDTH);
	const height = svg.getAttribute('height');
	svg.setAttribute('width', width);
	svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
	$('buttons').setAttribute('transform', `translate(${width - WIDTH} 0)`);
	draw();
	placeBar();
}

$('frames').addEventListener('click', e => {
	const f = byElement.get(e.target.closest('g'));
	if (f)
		zoom(f === zoomed ? frames[0] : f);
});
$('frames').addEventListener('mouseover', e => tell(byElement.get(e.target.closest('g'))));
$('frames').addEventListener('mouseleave', () => tell(null));
$('reset').addEventListener('click', () => zoom(frames[0]));
$('search').addEventListener('click', openSearch);
for (const id of ['reset', 'search']) {
	$(id).setAttribute('tabindex', '0');
	$(id).addEventListener('keydown', e => {
		if (e.key === 'Enter') {
			e.stopPropagation();
			$(id).dispatchEvent(new Event('click'));
		}
	});
}
svg.setAttribute('tabindex', '-1');
document.addEventListener('keydown', onKey);
window.addEventListener('resize', resize);
window.addEventListener('scroll', placeBar);
if (frames.length) {
	frames[0].g.setAttribute('tabindex', '0');
	$('buttons').style.display = '';
	resize();
	placeBar();
}
})();
