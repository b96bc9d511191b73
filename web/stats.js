// SPDX-License-Identifier: MIT OR Apache-2.0
// How sure a share of samples is: the same arithmetic as src/stats/{blocks,interval}.c, where the
// method and its sources are told. Figures agree with those of `assay report`.
//
// A row's sums live in columns (ShareRows), not in objects: a table has tens of thousands of rows.


export const CONFIDENCE = 0.95;
export const BLOCK_SAMPLES = 6;
const BLOCKS_MIN = 8, BLOCKS_MAX = 1024, RUNS_MIN = 3, STOPPED_COST = 2;
const BLOCK_NS_MIN = 20e6;
const TINY = 2.2250738585072014e-308;

// ---- special functions ----

/**
 * Lanczos' approximation with g = 7 and 9 terms: 15 digits.
 * C. Lanczos, SIAM J. Numer. Anal. B 1 (1964) 86; coefficients: P. Godfrey.
 * @param {number} x  > 0
 * @returns {number}
 */
export function logGamma(x) {
	if (x < 0.5)
		return Math.log(Math.PI / Math.sin(Math.PI * x)) - logGamma(1 - x);
	const c = [0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313,
		-176.61502916214059, 12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6,
		1.5056327351493116e-7];
	x -= 1;
	let sum = c[0];
	for (let i = 1; i < 9; i++)
		sum += c[i] / (x + i);
	const t = x + 7.5;
	return 0.5 * Math.log(2 * Math.PI) + (x + 0.5) * Math.log(t) - t + Math.log(sum);
}

/**
 * ln B(a, b). For one large argument the difference of large logarithms loses digits; Stirling's
 * series for both takes the large parts out analytically.
 * @param {number} a
 * @param {number} b
 */
function logBeta(a, b) {
	const small = Math.min(a, b), large = Math.max(a, b);
	if (large < 20)
		return logGamma(a) + logGamma(b) - logGamma(a + b);
	const sum = a + b;
	const big = stirlingRest(large) - stirlingRest(sum);
	if (small < 20)
		return logGamma(small) + big + small - small * Math.log(sum) +
			(large - 0.5) * Math.log1p(-small / sum);
	return stirlingRest(small) + big + 0.5 * Math.log(2 * Math.PI) - 0.5 * Math.log(small) +
		small * Math.log(small / sum) + (large - 0.5) * Math.log1p(-small / sum);
}

/**
 * ln Gamma(x) - ((x - 1/2) ln x - x + ln(2 pi) / 2), x >= 20.
 * @param {number} x
 */
function stirlingRest(x) {
	const r = 1 / (x * x);
	return (1 / 12 - r * (1 / 360 - r * (1 / 1260 - r * (1 / 1680 - r / 1188)))) / x;
}

/**
 * Complementary error function through the incomplete gamma function's series and fraction
 * (Abramowitz & Stegun 7.1.5, 7.1.14); 1e-15 relative.
 * @param {number} x
 * @returns {number}
 */
export function erfc(x) {
	if (x < 0)
		return 2 - erfc(-x);
	if (x < 2) {
		let term = x, sum = x;
		for (let n = 1; n < 200 && Math.abs(term) > 1e-18 * Math.abs(sum); n++) {
			term *= -x * x / n;
			sum += term / (2 * n + 1);
		}
		return 1 - 2 / Math.sqrt(Math.PI) * sum;
	}
	let f = 0;
	for (let k = 120; k > 0; k--)
		f = k / 2 / (x + f);
	return Math.exp(-x * x) / Math.sqrt(Math.PI) / (x + f);
}

/** @param {number} p  0 < p < 1 */
export function normalQuantile(p) {
	if (!(p > 0 && p < 1))
		return NaN;
	const tail = p < 0.5 ? p : 1 - p;
	const t = Math.sqrt(-2 * Math.log(tail));
	let x = t - (2.515517 + t * (0.802853 + t * 0.010328)) /
		(1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
	for (let i = 0; i < 3; i++) {
		const f = (0.5 * erfc(x * Math.SQRT1_2) - tail) *
			Math.sqrt(2 * Math.PI) * Math.exp(x * x / 2);
		x += f / (1 - x * f / 2);
	}
	return p < 0.5 ? -x : x;
}

/**
 * @param {number} x
 * @param {number} a
 * @param {number} b
 */
function betaFraction(x, a, b) {
	const away = (/** @type {number} */ v) => Math.abs(v) < TINY ? TINY : v;
	let c = 1, d = 1 / away(1 - (a + b) * x / (a + 1)), f = d;
	for (let m = 1; m < 100000; m++) {
		const even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		const odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		d = 1 / away(1 + even * d);
		c = away(1 + even / c);
		f *= c * d;
		d = 1 / away(1 + odd * d);
		c = away(1 + odd / c);
		const step = c * d;
		f *= step;
		if (Math.abs(step - 1) < 4 * Number.EPSILON)
			break;
	}
	return f;
}

/**
 * @param {number} x
 * @param {number} a
 * @param {number} b
 * @param {number} lbeta
 */
function betaCdfWith(x, a, b, lbeta) {
	if (x <= 0)
		return 0;
	if (x >= 1)
		return 1;
	const front = Math.exp(a * Math.log(x) + b * Math.log1p(-x) - lbeta);
	if (x < (a + 1) / (a + b + 2))
		return front * betaFraction(x, a, b) / a;
	return 1 - front * betaFraction(1 - x, b, a) / b;
}

/**
 * Regularised incomplete beta function I_x(a, b).
 * @param {number} x
 * @param {number} a
 * @param {number} b
 */
export function betaCdf(x, a, b) {
	if (!(a > 0 && b > 0) || Number.isNaN(x) || a === Infinity || b === Infinity)
		return NaN;
	return betaCdfWith(x, a, b, logBeta(a, b));
}

/**
 * For p <= 1/2; Newton's steps on ln I over ln x, kept inside a bracket.
 * @param {number} p
 * @param {number} a
 * @param {number} b
 */
function betaLowerQuantile(p, a, b) {
	const lbeta = logBeta(a, b);
	let lo = 0, hi = 1, x = a / (a + b);
	for (let i = 0; i < 200; i++) {
		const cdf = betaCdfWith(x, a, b, lbeta);
		const f = Math.log(cdf) - Math.log(p);
		if (Math.abs(f) < 1e-13)
			break;
		if (f > 0)
			hi = x;
		else
			lo = x;
		const slope = Math.exp(a * Math.log(x) + (b - 1) * Math.log1p(-x) - lbeta) / cdf;
		let next = x * Math.exp(-f / slope);
		if (!(next > lo && next < hi))
			next = lo > 0 && hi / lo > 4 ? Math.sqrt(lo * hi) : lo + (hi - lo) / 2;
		if (next === x)
			break;
		x = next;
	}
	return x;
}

/**
 * @param {number} p
 * @param {number} a
 * @param {number} b
 */
export function betaQuantile(p, a, b) {
	if (!(a > 0 && b > 0 && p >= 0 && p <= 1) || a === Infinity || b === Infinity)
		return NaN;
	if (p === 0 || p === 1)
		return p;
	return p <= 0.5 ? betaLowerQuantile(p, a, b) : 1 - betaLowerQuantile(1 - p, b, a);
}

/**
 * @param {number} p
 * @param {number} df
 */
export function studentQuantile(p, df) {
	if (!(p > 0 && p < 1 && df > 0))
		return NaN;
	if (df > 1e8)
		return normalQuantile(p);
	if (p === 0.5)
		return 0;
	const tail = 2 * (p < 0.5 ? p : 1 - p);
	let t;
	if (df < 4) {
		const x = betaQuantile(tail, df / 2, 0.5);
		t = Math.sqrt(df * (1 - x) / x);
	} else {
		const y = betaQuantile(1 - tail, 0.5, df / 2);
		t = Math.sqrt(df * y / (1 - y));
	}
	return p < 0.5 ? -t : t;
}

// ---- intervals of one proportion ----

const EXACT_BELOW = 100;
/** @param {number} v @param {number} lo @param {number} hi */
const clamp = (v, lo, hi) => v < lo ? lo : v > hi ? hi : v;

/**
 * @param {number} share
 * @param {number} n
 * @param {number} z
 * @returns {[number, number]}
 */
export function wilsonInterval(share, n, z) {
	if (!(n > 0))
		return [0, 1];
	share = clamp(share, 0, 1);
	const z2n = z * z / n, centre = (share + z2n / 2) / (1 + z2n);
	const half = Math.sqrt(share * (1 - share) * z2n + z2n * z2n / 4) / (1 + z2n);
	return [clamp(centre - half, 0, share), clamp(centre + half, share, 1)];
}

/**
 * @param {number} k
 * @param {number} n
 * @param {number} confidence
 * @returns {[number, number]}
 */
export function exactInterval(k, n, confidence) {
	if (!(n > 0))
		return [0, 1];
	k = clamp(k, 0, n);
	const tail = (1 - confidence) / 2;
	return [k > 0 ? betaQuantile(tail, k, n - k + 1) : 0,
		k < n ? betaQuantile(1 - tail, k + 1, n - k) : 1];
}

/**
 * @param {number} k
 * @param {number} n
 * @param {number} z
 * @returns {[number, number]}
 */
export function proportionInterval(k, n, z) {
	if (!(n > 0))
		return [0, 1];
	if (k < EXACT_BELOW || n - k < EXACT_BELOW)
		return exactInterval(k, n, 1 - erfc(z * Math.SQRT1_2));
	return wilsonInterval(k / n, n, z);
}

// ---- blocks and shares ----

const QUANTILE = normalQuantile(0.5 + CONFIDENCE / 2);

/** @typedef {{n: number, start: ArrayLike<number>, end: ArrayLike<number>}} Trials  in order, apart */
/** @typedef {{start: number, first: number, n: number, w: number}} Run  n blocks from `first` on */

/**
 * Those of several runs that reach into a stretch of time, cut to it; none: fewer than two do.
 * @param {Trials} trials
 * @param {number} start
 * @param {number} end
 * @returns {{start: number, end: number}[]}
 */
function runsWithin(trials, start, end) {
	let from = 0, to = trials.n;
	while (to > 0 && trials.start[to - 1] > end)
		to--;
	while (from + 1 < to && trials.start[from + 1] <= start)
		from++;
	if (to < from + 2)
		return [];
	return Array.from({length: to - from}, (_, i) => {
		const at = Math.max(trials.start[from + i], start);
		return {start: at, end: Math.max(Math.min(trials.end[from + i], end), at)};
	});
}

/** @type {Trials} */
const ONE_RUN = {n: 0, start: [], end: []};

/** The run, or runs, cut into time blocks. finish() before rows are added to. */
export class Blocks {
	/**
	 * @param {number} start  of the first sample, ns
	 * @param {number} end    of the last
	 * @param {number} samples
	 * @param {Trials} [trials]  the session's runs
	 * @param {boolean} [stopped]  they ended because they were enough
	 */
	constructor(start, end, samples, trials = ONE_RUN, stopped = false) {
		this.stopped = stopped;
		/** Weights are amounts that were counted: shares are known. */
		this.counted = false;
		const spans = runsWithin(trials, start, end);
		const length = Math.max(spans.length ?
			spans.reduce((sum, s) => sum + s.end - s.start, 0) : end - start, 1);
		const want = Math.min(Math.floor(samples / BLOCK_SAMPLES), BLOCKS_MAX);
		const n = Math.max(Math.min(want, Math.floor(length / BLOCK_NS_MIN)), 1);
		this.start = start;
		this.length = Math.ceil(length / n);
		this.n = n;
		/** @type {Run[]} */
		this.runs = [];
		if (spans.length)
			this.layOut(spans);
		this.runOf = new Int32Array(spans.length ? this.n : 0);
		this.runs.forEach((run, i) => this.runOf.fill(i, run.first, run.first + run.n));
		this.w = new Float64Array(this.n);
		this.samples = 0;
		this.sumW = 0;
		this.sumWeight2 = 0;
		this.sumW2 = 0;
		this.sumDw2 = 0;
		this.quantile = NaN;
		this.runsUsed = 0;
		this.runsWorth = 0;
		this.sumRw2 = 0;
		this.runQuantile = NaN;
	}

	/** @param {{start: number, end: number}[]} spans */
	layOut(spans) {
		this.n = 0;
		for (const s of spans) {
			const n = Math.floor((s.end - s.start + Math.floor(this.length / 2)) / this.length);
			this.runs.push({start: s.start, first: this.n, n: Math.max(n, 1), w: 0});
			this.n += Math.max(n, 1);
		}
	}

	/** @param {number} time */
	indexInRuns(time) {
		let lo = 0, hi = this.runs.length;
		while (hi - lo > 1) {
			const mid = (lo + hi) >> 1;
			if (this.runs[mid].start <= time)
				lo = mid;
			else
				hi = mid;
		}
		const r = this.runs[lo];
		const i = time > r.start ? Math.floor((time - r.start) / this.length) : 0;
		return r.first + Math.min(i, r.n - 1);
	}

	/** @param {number} time */
	index(time) {
		if (this.runs.length)
			return this.indexInRuns(time);
		if (time <= this.start)
			return 0;
		const i = Math.floor((time - this.start) / this.length);
		return i < this.n ? i : this.n - 1;
	}

	/**
	 * @param {number} block
	 * @param {number} weight
	 */
	add(block, weight) {
		this.w[block] += weight;
		this.sumW += weight;
		this.sumWeight2 += weight * weight;
		this.samples++;
	}

	finishRuns() {
		this.sumRw2 = this.runsUsed = 0;
		for (const r of this.runs) {
			r.w = 0;
			for (let k = 0; k < r.n; k++)
				r.w += this.w[r.first + k];
			this.sumRw2 += r.w * r.w;
			this.runsUsed += r.w > 0 ? 1 : 0;
		}
		if (this.runsUsed < RUNS_MIN)
			return;
		this.runsWorth = Math.max(this.sumW * this.sumW / this.sumRw2, 2);
		this.runQuantile = studentQuantile(0.5 + CONFIDENCE / 2, this.runsWorth - 1);
		if (this.stopped)
			this.runQuantile *= Math.sqrt(1 + STOPPED_COST / this.runsWorth);
	}

	finish() {
		this.finishRuns();
		this.sumW2 = this.sumDw2 = 0;
		for (let i = 0; i < this.n; i++) {
			this.sumW2 += this.w[i] * this.w[i];
			if (i)
				this.sumDw2 += (this.w[i] - this.w[i - 1]) ** 2;
		}
		this.quantile = studentQuantile(0.5 + CONFIDENCE / 2, 2 * this.n / 3);
	}
}

/** Rows of shares in columns; add() in ascending order of blocks. */
export class ShareRows {
	/**
	 * @param {Blocks} blocks  finished
	 * @param {number} n
	 */
	constructor(blocks, n) {
		this.blocks = blocks;
		this.n = n;
		this.sumX = new Float64Array(n);
		this.sumX2 = new Float64Array(n);
		this.sumXw = new Float64Array(n);
		this.sumDx2 = new Float64Array(n);
		this.sumDxdw = new Float64Array(n);
		this.open = new Float64Array(n);
		this.prev = new Float64Array(n);
		this.block = new Int32Array(n).fill(-1);
		const runs = blocks.runs.length ? n : 0;
		this.xRun = new Float64Array(runs);
		this.sumRx2 = new Float64Array(runs);
		this.sumRxw = new Float64Array(runs);
		this.nRuns = new Float64Array(runs);
	}

	/**
	 * @param {number} row
	 * @param {number} block
	 * @param {number} weight  of all its samples there
	 */
	add(row, block, weight) {
		const open = this.block[row];
		this.sumX[row] += weight;
		if (open >= block) {
			this.open[row] += weight;
			return;
		}
		if (open >= 0)
			this.close(row, block);
		this.block[row] = block;
		this.open[row] = weight;
	}

	/**
	 * The row's open block is over; `next` is its next one, or the number of blocks.
	 * @param {number} row
	 * @param {number} next
	 */
	close(row, next) {
		const at = this.block[row], w = this.blocks.w, x = this.open[row];
		this.sumX2[row] += x * x;
		this.sumXw[row] += x * w[at];
		if (this.blocks.runs.length)
			this.closeInRun(row, next);
		if (at > 0)
			this.step(row, at - 1, x - this.prev[row]);
		if (next !== at + 1) {
			if (at + 1 < this.blocks.n)
				this.step(row, at, -x);
			this.prev[row] = 0;
		} else {
			this.prev[row] = x;
		}
	}

	/**
	 * The open block is over; so is its run when the next one is in another.
	 * @param {number} row
	 * @param {number} next
	 */
	closeInRun(row, next) {
		const {runs, runOf, n} = this.blocks, run = runOf[this.block[row]];
		this.xRun[row] += this.open[row];
		if (next < n && runOf[next] === run)
			return;
		const x = this.xRun[row];
		this.sumRx2[row] += x * x;
		this.sumRxw[row] += x * runs[run].w;
		this.nRuns[row] += x > 0 ? 1 : 0;
		this.xRun[row] = 0;
	}

	/**
	 * @param {number} row
	 * @param {number} block
	 * @param {number} dx
	 */
	step(row, block, dx) {
		const w = this.blocks.w;
		this.sumDx2[row] += dx * dx;
		this.sumDxdw[row] += dx * (w[block + 1] - w[block]);
	}

	/**
	 * Ends the row: call once per row.
	 * @param {number} row
	 * @param {number} samples
	 */
	estimate(row, samples) {
		if (this.block[row] >= 0)
			this.close(row, this.blocks.n);
		return estimateOf(this.blocks, samples, {x: this.sumX[row], x2: this.sumX2[row],
			xw: this.sumXw[row], dx2: this.sumDx2[row], dxdw: this.sumDxdw[row],
			rx2: this.sumRx2[row] ?? 0, rxw: this.sumRxw[row] ?? 0, runs: this.nRuns[row] ?? 0});
	}
}

/** A Share. The interval is made when it is first asked for: most rows are never shown. */
export class Estimate {
	/**
	 * @param {number} value
	 * @param {number} samples
	 * @param {number} nEff  independent, equal samples that would be as sure; 0: nothing known
	 * @param {number} deff
	 * @param {number} [runs]  of several, those where there are samples; 0: one run
	 */
	constructor(value, samples, nEff, deff, runs = 0) {
		this.value = value;
		this.samples = samples;
		this.nEff = nEff;
		this.deff = deff;
		this.runs = runs;
		/** @type {[number, number] | null} */
		this.bounds = null;
	}

	interval() {
		if (this.nEff === Infinity)
			this.bounds = [this.value, this.value];
		this.bounds ??= proportionInterval(this.value * this.nEff, this.nEff, QUANTILE);
		return this.bounds;
	}

	get low() {
		return Math.min(this.interval()[0], this.value);
	}

	get high() {
		return Math.max(this.interval()[1], this.value);
	}
}

/** @param {number} xx @param {number} xw @param {number} ww @param {number} p */
function residual2(xx, xw, ww, p) {
	const v = xx - 2 * p * xw + p * p * ww;
	return v > 0 ? v : 0;
}

/**
 * @param {Blocks} b
 * @param {number} samples
 * @param {{x: number, x2: number, xw: number, dx2: number, dxdw: number, rx2: number, rxw: number,
 *   runs: number}} r
 */
function estimateOf(b, samples, r) {
	if (!(b.sumW > 0))
		return new Estimate(0, samples, 0, 1);
	const n = b.n, p = Math.min(r.x / b.sumW, 1);
	if (b.counted)
		return new Estimate(p, samples, Infinity, 1);
	const kish = b.sumW * b.sumW / b.sumWeight2;
	const independent = p * (1 - p) / kish;
	let inflate = 1, deff = 1;
	if (independent > 0) {
		if (n >= BLOCKS_MIN) {
			const unsure = b.quantile / QUANTILE;
			const near = n / (2 * (n - 1)) / (b.sumW * b.sumW) *
				residual2(r.dx2, r.dxdw, b.sumDw2, p);
			deff = Math.max(1, near / independent);
			inflate = near / independent * unsure * unsure;
		}
		if (b.runsUsed >= RUNS_MIN) {
			const unsure = b.runQuantile / QUANTILE, R = b.runsWorth;
			const between = R / (R - 1) / (b.sumW * b.sumW) *
				residual2(r.rx2, r.rxw, b.sumRw2, p);
			deff = Math.max(deff, between / independent);
			inflate = Math.max(inflate, between / independent * unsure * unsure);
		}
		// However alike, the samples of a row are one observation at least.
		inflate = Math.max(1, Math.min(inflate, Math.min(p, 1 - p) * kish));
	}
	return new Estimate(p, samples, kish / inflate, deff, r.runs);
}

/**
 * Of a row without samples.
 * @param {Blocks} b
 */
export function emptyEstimate(b) {
	return estimateOf(b, 0, {x: 0, x2: 0, xw: 0, dx2: 0, dxdw: 0, rx2: 0, rxw: 0, runs: 0});
}

/**
 * Whether the data ranks two rows apart at 95 % (src/stats/blocks.h: McNemar's test).
 * @param {Estimate} a
 * @param {Estimate} b
 */
export function rowsSeparable(a, b) {
	if (a.nEff === Infinity)
		return true;
	const n = Math.min(a.nEff, b.nEff), ka = a.value * n, kb = b.value * n, both = ka + kb;
	if (!(both > 0) || a.value === b.value)
		return false;
	if (both < 40) {
		const less = Math.min(ka, kb);
		return 2 * betaCdf(0.5, both - less, less + 1) < 1 - CONFIDENCE;
	}
	return Math.abs(ka - kb) > QUANTILE * Math.sqrt(both);
}
