// SPDX-License-Identifier: MIT OR Apache-2.0
// What floats above the page: tips, menus, panels, the help, and the line that says what happened.
// One of each at a time; Escape and a press outside close menus and panels, and the focus goes
// back to where it was.
import {el, fill} from './page.js';

/** @typedef {import('./page.js').MenuItem} MenuItem */

/** @type {HTMLElement | null} */
let layerTip = null;
/** @type {{element: HTMLElement, from: Element | null, closed: () => void} | null} */
let layerOpen = null;
let layerSpoken = 0;

/** @returns {HTMLElement} */
function layerRoot() {
	return /** @type {HTMLElement} */ (document.getElementById('layer'));
}

/**
 * A tip at an element, or at a point for canvases; null hides it.
 * @param {HTMLElement | {x: number, y: number} | null} anchor
 * @param {string} text
 */
export function showTip(anchor, text) {
	layerTip ||= layerRoot().appendChild(
		el('div', {class: 'tip', id: 'tip', role: 'tooltip', hidden: true}),
	);
	layerTip.hidden = !anchor || !text;
	if (!anchor || !text) return;
	layerTip.textContent = text;
	const point = !(anchor instanceof HTMLElement);
	const a = point ? new DOMRect(anchor.x, anchor.y, 0, 18) : anchor.getBoundingClientRect();
	const t = layerTip.getBoundingClientRect(),
		edge = 8;
	const x = Math.min(point ? a.left + 12 : a.left, innerWidth - t.width - edge);
	const below = a.bottom + 6,
		above = a.top - t.height - 6;
	layerTip.style.left = `${Math.max(edge, x)}px`;
	layerTip.style.top = `${below + t.height + edge > innerHeight && above > 0 ? above : below}px`;
}

/** Closes what is open. @returns {boolean} whether there was something */
export function closeLayer() {
	if (!layerOpen) return false;
	const {element, from, closed} = layerOpen;
	layerOpen = null;
	const inside = element.contains(document.activeElement);
	element.remove();
	closed();
	if (inside && from instanceof HTMLElement && from.isConnected) from.focus();
	return true;
}

/**
 * @param {HTMLElement} element
 * @param {DOMRect} at
 * @param {() => void} closed
 */
function layerPlace(element, at, closed) {
	closeLayer();
	showTip(null, '');
	const from = document.activeElement;
	layerRoot().append(element);
	const box = element.getBoundingClientRect(),
		edge = 8;
	const x = Math.min(at.left, innerWidth - box.width - edge);
	const y =
		at.bottom + 4 + box.height + edge > innerHeight && at.top > box.height + edge
			? at.top - box.height - 4
			: Math.min(at.bottom + 4, innerHeight - box.height - edge);
	element.style.left = `${Math.max(edge, x)}px`;
	element.style.top = `${Math.max(edge, y)}px`;
	layerOpen = {element, from, closed};
}

/**
 * A menu; arrows move, Enter runs, letters jump.
 * @param {{x: number, y: number}} at
 * @param {MenuItem[]} items
 */
export function openMenu(at, items) {
	const menu = el('div', {class: 'menu', role: 'menu'});
	for (const item of items)
		menu.append(
			item
				? el(
						'button',
						{
							role: 'menuitem',
							tabindex: '-1',
							onclick: () => {
								closeLayer();
								item.run();
							},
						},
						el('span', {}, item.label),
						item.key ? el('kbd', {}, item.key) : null,
					)
				: el('hr', {role: 'separator'}),
		);
	menu.addEventListener('keydown', event => {
		const all = /** @type {HTMLElement[]} */ ([...menu.querySelectorAll('button')]);
		const now = all.indexOf(/** @type {HTMLElement} */ (document.activeElement));
		let to = -1;
		if (event.key === 'ArrowDown') to = (now + 1) % all.length;
		else if (event.key === 'ArrowUp') to = (now + all.length - 1) % all.length;
		else if (event.key === 'Home') to = 0;
		else if (event.key === 'End') to = all.length - 1;
		else if (event.key === 'Tab') closeLayer();
		else if (event.key.length === 1 && !event.ctrlKey && !event.metaKey && event.key !== ' ')
			to = all.findIndex(
				(b, i) =>
					i > now && b.textContent?.toLowerCase().startsWith(event.key.toLowerCase()),
			);
		else return;
		event.preventDefault();
		event.stopPropagation();
		if (to >= 0) all[to].focus();
	});
	layerPlace(menu, new DOMRect(at.x, at.y - 4, 0, 0), () => {});
	/** @type {HTMLElement | null} */ (menu.querySelector('button'))?.focus();
}

/**
 * A panel under its button, or closes it when it is open.
 * @param {HTMLElement} button
 * @param {string} label
 * @param {...(Node | string)} children
 */
export function openPanel(button, label, ...children) {
	if (button.getAttribute('aria-expanded') === 'true') {
		closeLayer();
		return;
	}
	const panel = el('div', {class: 'panel', role: 'dialog', 'aria-label': label}, ...children);
	layerPlace(panel, button.getBoundingClientRect(), () =>
		button.setAttribute('aria-expanded', 'false'),
	);
	button.setAttribute('aria-expanded', 'true');
	/** @type {HTMLElement | null} */ (panel.querySelector('input, button'))?.focus();
}

/**
 * @param {string} title
 * @param {...(Node | string)} children
 */
export function openDialog(title, ...children) {
	closeLayer();
	const close = el(
		'button',
		{class: 'quiet icon', 'aria-label': 'Close', onclick: () => dialog.close()},
		'✕',
	);
	const head = el(
		'div',
		{class: 'entry', style: {display: 'flex'}},
		el('h2', {style: {flex: '1'}}, title),
		close,
	);
	const dialog = /** @type {HTMLDialogElement} */ (
		el('dialog', {'aria-label': title}, head, ...children)
	);
	dialog.addEventListener('close', () => dialog.remove());
	dialog.addEventListener('click', event => {
		if (event.target === dialog) dialog.close();
	});
	layerRoot().append(dialog);
	dialog.showModal();
}

/**
 * Says something to everyone: on screen for a while, and to screen readers.
 * @param {string} text
 */
export function sayStatus(text) {
	const status = /** @type {HTMLElement} */ (document.getElementById('status'));
	fill(status, text);
	status.classList.add('on');
	clearTimeout(layerSpoken);
	layerSpoken = window.setTimeout(() => status.classList.remove('on'), 2500);
}

/** Escape and presses outside. Once, by the frame. */
export function watchLayer() {
	document.addEventListener(
		'pointerdown',
		event => {
			if (
				!layerOpen ||
				!(event.target instanceof Node) ||
				layerOpen.element.contains(event.target)
			)
				return;
			const button =
				event.target instanceof Element
					? event.target.closest('[aria-expanded="true"]')
					: null;
			if (!button) closeLayer();
		},
		true,
	);
	document.addEventListener(
		'keydown',
		event => {
			if (event.key === 'Escape' && closeLayer()) {
				event.preventDefault();
				event.stopPropagation();
			}
		},
		true,
	);
	window.addEventListener('scroll', () => showTip(null, ''), true);
	window.addEventListener('resize', () => closeLayer());
}
