// SPDX-License-Identifier: MIT OR Apache-2.0
// The flame graph that is shown, as an SVG file: still, complete, every box with its figures as a
// title. Pure. Text from the profile is escaped, and characters XML does not know are replaced.
import { FlameBoxes, fitFlameName } from './flame.js';

/**
 * @typedef {object} FlamePicture
 * @property {import('./flame.js').Flame} flame
 * @property {number} from     window, in weight
 * @property {number} to
 * @property {number} lowest   last depth
 * @property {boolean} upwards
 * @property {string} title
 * @property {string} ink
 * @property {string} paper
 * @property {(node: number) => string} name
 * @property {(node: number) => string} about   more lines
 * @property {(node: number) => string} color
 */

const SVG_WIDTH = 1200;
const SVG_SIDE = 10;
const SVG_ROW = 17;
const SVG_TOP = 34;
const SVG_CHAR = 6.63;
/** More rows than a picture can be looked at with. */
const SVG_ROWS_MAX = 2000;

/** @param {string} text @returns {string} */
export function svgText(text) {
	return text.replace(/[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, '\ufffd')
		.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;');
}

/** @param {FlamePicture} p @returns {string} */
export function flameSvg(p) {
	const span = SVG_WIDTH - 2 * SVG_SIDE, boxes = new FlameBoxes();
	const lowest = Math.min(p.lowest, SVG_ROWS_MAX - 1);
	// Half a pixel of the file; ten times as fine, so that edges are exact.
	p.flame.cull(boxes, {from: p.from, to: p.to, width: span, first: 0, last: lowest});
	const rows = boxes.depth.subarray(0, boxes.n).reduce((most, d) => Math.max(most, d), 0) + 1;
	const height = SVG_TOP + rows * SVG_ROW + SVG_SIDE;
	const out = ['<?xml version="1.0" encoding="UTF-8"?>\n',
		`<svg xmlns="http://www.w3.org/2000/svg" width="${SVG_WIDTH}" height="${height}" viewBox="0 0 ${SVG_WIDTH} ${height}">\n`,
		'<style>text { font: 11px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }</style>\n',
		'<defs><pattern id="small" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">',
		`<rect width="6" height="6" fill="${p.ink}" opacity="0.08"/><rect width="2" height="6" fill="${p.ink}" opacity="0.25"/></pattern></defs>\n`,
		`<rect width="100%" height="100%" fill="${p.paper}"/>\n`,
		`<text x="${SVG_SIDE}" y="21" fill="${p.ink}" style="font-size: 14px">${svgText(p.title)}</text>\n`];
	for (let i = 0; i < boxes.n; i++) {
		const depth = boxes.depth[i];
		const y = p.upwards ? height - SVG_SIDE - (depth + 1) * SVG_ROW : SVG_TOP + depth * SVG_ROW;
		out.push(svgBox(p, boxes, i, y));
	}
	out.push('</svg>\n');
	return out.join('');
}

/**
 * @param {FlamePicture} p
 * @param {FlameBoxes} boxes
 * @param {number} i
 * @param {number} y
 */
function svgBox(p, boxes, i, y) {
	const node = boxes.node[i], {flame} = p, scale = (SVG_WIDTH - 2 * SVG_SIDE) / (p.to - p.from);
	const small = boxes.count[i] > 1;
	const from = small ? boxes.x0[i] : Math.max(0, (flame.start[node] - p.from) * scale);
	const to = small ? boxes.x1[i] : Math.min(SVG_WIDTH - 2 * SVG_SIDE, (flame.start[node] + flame.size[node] - p.from) * scale);
	const wide = Math.max(to - from, 0.5), x = SVG_SIDE + from;
	const title = small ? `${boxes.count[i]} small frames` : p.about(node);
	const label = small ? '' : fitFlameName(p.name(node), Math.floor((wide - 6) / SVG_CHAR));
	return `<g><title>${svgText(title)}</title><rect x="${x.toFixed(2)}" y="${y}" width="${wide.toFixed(2)}" height="${SVG_ROW - 1}" ` +
		`fill="${small ? 'url(#small)' : p.color(node)}" stroke="${p.paper}" stroke-width="0.5"/>` +
		(label ? `<text x="${(x + 3).toFixed(2)}" y="${y + 12}" fill="${p.ink}">${svgText(label)}</text>` : '') + '</g>\n';
}
