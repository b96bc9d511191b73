// SPDX-License-Identifier: MIT OR Apache-2.0
// Weights per time block onto rows (as src/model/profile/pass.c, where the reasons stand).
//
// Nodes with one child and no samples of their own weigh what their child weighs: such chains
// become one link. A block costs by the links it touches and by the rows listed on them.
import {ShareRows} from './stats.js';

/**
 * @typedef {object} Pass
 * @property {{n: number, parent: Int32Array}} tree
 * @property {Uint8Array} stands       per node: 1 samples stand on it
 * @property {Int32Array} nodeOfEnd    node of the tree; -1: does not appear
 * @property {Int32Array} endOf        of sample lo + i; negative: does not count
 * @property {Int32Array | null} selfRow   per node; -1 none
 * @property {Int32Array} totalRow     likewise
 * @property {number} nrows
 */

/** @typedef {import('./query.js').Profile} Profile */

/** @param {Pass} p */
function makeLinks(p) {
	const {n, parent} = p.tree;
	const children = new Int32Array(n), only = new Int32Array(n), ofNode = new Int32Array(n);
	for (let i = 1; i < n; i++) {
		children[parent[i]]++;
		only[parent[i]] = i;
	}
	let links = 0;
	for (let i = 0; i < n; i++)
		ofNode[i] = i === 0 || children[i] !== 1 || p.stands[i] ? links++ : -1;
	for (let i = n - 1; i >= 0; i--)
		if (ofNode[i] < 0)
			ofNode[i] = ofNode[only[i]];
	const up = new Int32Array(links), first = new Int32Array(links + 2);
	for (let i = 0; i < n; i++) {
		const link = ofNode[i], above = i ? ofNode[parent[i]] : 0;
		if (above !== link)
			up[link] = above;
		if (p.totalRow[i] >= 0)
			first[link + 2]++;
	}
	for (let i = 2; i <= links + 1; i++)
		first[i] += first[i - 1];
	const row = new Int32Array(first[links + 1]);
	for (let i = 0; i < n; i++)
		if (p.totalRow[i] >= 0)
			row[first[ofNode[i] + 1]++] = p.totalRow[i];
	return {n: links, ofNode, up, first, row};
}

/** The open block: weights on links, and on rows what has been settled. */
class Sheet {
	/**
	 * @param {ReturnType<typeof makeLinks>} links
	 * @param {ShareRows} rows
	 */
	constructor(links, rows) {
		this.links = links;
		this.rows = rows;
		this.link = new Float64Array(links.n);
		this.row = new Float64Array(rows.n);
		// Two levels of bits give touched links from the highest down: children before parents.
		this.touched = new Int32Array((links.n >>> 5) + 1);
		this.words = new Int32Array((links.n >>> 10) + 1);
		this.open = new Int32Array(rows.n); // touched rows
		this.nopen = 0;
	}

	/** @param {number} link @param {number} weight */
	addLink(link, weight) {
		this.link[link] += weight;
		this.touched[link >>> 5] |= 1 << (link & 31);
		this.words[link >>> 10] |= 1 << (link >>> 5 & 31);
	}

	/** @param {number} row @param {number} weight  > 0 */
	addRow(row, weight) {
		if (this.row[row] === 0)
			this.open[this.nopen++] = row;
		this.row[row] += weight;
	}

	/** @param {number} link */
	settle(link) {
		const {first, row, up} = this.links, weight = this.link[link];
		this.link[link] = 0;
		for (let i = first[link]; i < first[link + 1]; i++)
			this.addRow(row[i], weight);
		if (link)
			this.addLink(up[link], weight);
	}

	/** @param {number} block */
	close(block) {
		for (let i = this.words.length - 1; i >= 0; i--) {
			while (this.words[i]) {
				const word = i * 32 + 31 - Math.clz32(this.words[i]);
				while (this.touched[word]) {
					const bit = 31 - Math.clz32(this.touched[word]);
					this.touched[word] &= ~(1 << bit);
					this.settle(word * 32 + bit);
				}
				this.words[i] &= ~(1 << (word & 31));
			}
		}
		for (let i = 0; i < this.nopen; i++) {
			const row = this.open[i];
			this.rows.add(row, block, this.row[row]);
			this.row[row] = 0;
		}
		this.nopen = 0;
	}
}

/**
 * @param {Profile} profile
 * @param {Pass} p
 * @returns {ShareRows}
 */
export function runPass(profile, p) {
	const {blocks, lo} = profile, {time, weight} = profile.model.samples;
	const links = makeLinks(p), rows = new ShareRows(blocks, p.nrows);
	const sheet = new Sheet(links, rows), {nodeOfEnd, endOf, selfRow} = p;
	const linkOfEnd = Int32Array.from(nodeOfEnd, node => node < 0 ? -1 : links.ofNode[node]);
	let block = 0;
	for (let i = 0; i < endOf.length; i++) {
		const end = endOf[i];
		if (end < 0 || linkOfEnd[end] < 0 || !weight[lo + i])
			continue;
		const now = blocks.index(time[lo + i]);
		if (now !== block)
			sheet.close(block);
		block = now;
		sheet.addLink(linkOfEnd[end], weight[lo + i]);
		const row = selfRow ? selfRow[nodeOfEnd[end]] : -1;
		if (row >= 0)
			sheet.addRow(row, weight[lo + i]);
	}
	sheet.close(block);
	return rows;
}

/**
 * One row: the samples whose end is marked.
 * @param {Profile} profile
 * @param {Int32Array} endOf
 * @param {Uint8Array} marked  per end
 */
export function shareOfEnds(profile, endOf, marked) {
	const {blocks, lo} = profile, {time, weight} = profile.model.samples;
	const row = new ShareRows(blocks, 1);
	let samples = 0;
	for (let i = 0; i < endOf.length; i++) {
		if (endOf[i] < 0 || !marked[endOf[i]])
			continue;
		row.add(0, blocks.index(time[lo + i]), weight[lo + i]);
		samples++;
	}
	return row.estimate(0, samples);
}
