// SPDX-License-Identifier: MIT OR Apache-2.0
// The types that the report's modules share. Types only: nothing here runs.
//
// Times are nanoseconds from the start of the recording, as numbers. Weights are in the
// recording's unit (ns of CPU time, or cycles). Strings are indexes into `strings` where a column
// says so. -1 stands for "none". Columns of one table have one length, `n`.

/**
 * What the page holds of one session: the columns of the session model, as typed arrays.
 * @typedef {object} Model
 * @property {Meta} meta
 * @property {string[]} strings
 * @property {{path: string, name: string, buildId: string, kind: number}[]} modules
 * @property {{pid: number, parent: number, name: string, start: number, end: number}[]} processes
 * @property {{tid: number, process: number, name: string, start: number, end: number}[]} threads
 * @property {{n: number, brief: Uint32Array, full: Uint32Array, crate: Uint32Array, file: Uint32Array,
 *   line: Uint32Array, module: Int32Array, lang: Uint8Array, flags: Uint8Array,
 *   category: Uint8Array}} functions  flags: FUNCTION_*; category: index into CATEGORIES
 * @property {{n: number, function: Uint32Array, file: Uint32Array, line: Uint32Array,
 *   column: Uint32Array, flags: Uint8Array}} places  flags: 1 inlined, 2 line taken from a call
 * @property {{n: number, module: Int32Array, addr: Float64Array, flags: Uint8Array,
 *   chain: Uint32Array, nchain: Uint32Array}} frames  chain: into places, innermost first
 * @property {{n: number, parent: Int32Array, frame: Uint32Array}} stacks  parent < own index
 * @property {{n: number, time: Float64Array, thread: Uint32Array, stack: Int32Array,
 *   weight: Float64Array, cpu: Uint16Array, end: Uint16Array}} samples  sorted by time
 * @property {{n: number, time: Float64Array, cpu: Uint32Array, taken: Float64Array,
 *   delivered: Float64Array, throttled: Float64Array}} ticks
 * @property {{n: number, from: Float64Array, to: Float64Array, count: Float64Array}} losses  samples lost in that time
 * @property {{n: number, thread: Uint32Array, stack: Int32Array, folded: Int32Array, end: Uint16Array,
 *   domain: Uint8Array, allocs: Float64Array, bytes: Float64Array, live: Float64Array, peak: Float64Array,
 *   churn: Float64Array, growth: Float64Array, leaked: Float64Array}} heap  of a session of memory: a row per stack and thread,
 *   domain 0 blocks, 1 mappings; folded: the stack without plumbing
 * @property {{n: number, process: Uint32Array, time: Float64Array, live: Float64Array, high: Float64Array,
 *   mapped: Float64Array, resident: Float64Array}} heapTimes  high: the most since the row before
 * @property {{n: number, moment: Uint32Array, row: Uint32Array, bytes: Float64Array}} heapMarks  live bytes of
 *   rows of heap at Memory.moments
 * @property {{n: number, start: Float64Array, end: Float64Array}} trials  several runs in one session, in
 *   order and apart; none: one run
 * @property {Int32Array} endFunction  per enum as_stack_end the marker's function, -1 none
 * @property {Listing[]} listings  hot functions, embedded; more come from the server (Source)
 * @property {SourceFile[]} sources
 */

/**
 * @typedef {object} Meta
 * @property {string} version  of assay
 * @property {string} program  short name
 * @property {string[]} args
 * @property {{[key: string]: string}} info  host, kernel, cpu, engine, event, …
 * @property {number} startRealtime  ms since 1970
 * @property {number} duration
 * @property {number} rate  Hz
 * @property {number} cpus
 * @property {Unit} unit
 * @property {number | null} exit  wait status; null: attached or unknown
 * @property {number | null} cpuTime  of everything that was followed
 * @property {number | null} wall
 * @property {Trust} trust
 * @property {{command: string, why: string}[]} next
 * @property {HotRow[]} hottest  by self, as `assay report` prints them; shown before anything else is computed
 * @property {{level: number, about: string, text: string, remedy: string}[]} notes
 * @property {string} file  name of the session
 * @property {Memory} [memory]  of a session of memory
 * @property {Query} [query]  filters of the command line: what the page begins with when its
 *   address says nothing
 */

/** @typedef {'ns' | 'cycles' | 'bytes' | 'count'} Unit   of weights */
/** @typedef {'allocs' | 'bytes' | 'live' | 'peak' | 'churn' | 'growth' | 'leaked' | 'mapped'} MeasureName */
/** @typedef {{label: string, count: number}} Bin */
/** @typedef {{name: string, time: number, live: number}} Moment   a mark in all processes that have it */
/** @typedef {{blocks: number, bytes: number}} BlockSum */
/**
 * Blocks of one stack of one process by what leads to them.
 * @typedef {object} LeakOwner
 * @property {number} process
 * @property {number} stack  -1: no frames
 * @property {BlockSum} lost
 * @property {BlockSum} owned  that only the lost ones lead to, of any stack
 * @property {BlockSum} possible
 * @property {BlockSum} reachable
 * @property {BlockSum} runtime  of the runtime, once
 * @property {number} live
 * @property {number} exit  bytes that were freed only while the process ended
 * @property {number} steps  of the run, in which it grew `rises` times
 * @property {number} rises
 * @property {boolean} grows
 */
/** @typedef {{atExit: boolean, sum: LeakOwner, owners: LeakOwner[], rest: {owners: number, sum: BlockSum}}} Leaks   owners: by
 *   bytes lost and owned; rest: of those that are left out */
/**
 * Of what a process's resident memory consisted.
 * @typedef {object} Resident
 * @property {number} process
 * @property {number} time
 * @property {number} rss
 * @property {number} swapped
 * @property {number} untouched  bytes of live blocks that are not resident
 * @property {number} free  in pages of allocators without a live block
 * @property {number} pinnedPages
 * @property {number} pinned  free bytes in pages that few live bytes keep
 * @property {{kind: string, label: string, bytes: number, mapped: number, names: {name: string, function: number,
 *   bytes: number}[]}[]} kinds  mapped: of address space; names: the largest; function -1: none
 * @property {{function: number, pages: number, bytes: number, blocks: number, live: number}[]} pins
 */

/**
 * What a session of memory says beside its stacks.
 * @typedef {object} Memory
 * @property {MeasureName} measure  the page begins with
 * @property {number} allocs
 * @property {number} bytes  asked for
 * @property {{process: number, peak: number, peakTime: number, live: number, liveBlocks: number,
 *   mappedPeak: number, allocs: number, frees: number}[]} processes
 * @property {{process: number, time: number, name: string, live: number}[]} marks
 * @property {Moment[]} moments  marks by name and number, at which live bytes are known
 * @property {Leaks | null} leaks  null: not looked for
 * @property {Resident[]} resident
 * @property {Bin[]} sizes  allocations by bytes
 * @property {Bin[]} lifetimes  freed blocks by time
 * @property {Bin[]} ages  freed blocks by allocations meanwhile
 * @property {{name: string, allocs: number, bytes: number, live: number, peak: number, churn: number,
 *   growth: number}[]} types  name '': no container
 * @property {{function: number, line: number, type: string, reallocs: number, copied: number, blocks: number,
 *   last: number, advice: string}[]} reallocs
 */

/** @typedef {{function: number, self: Share, total: Share, tied: boolean}} HotRow */
/** @typedef {{value: number, low: number, high: number, samples: number, runs?: number}} Share  runs: of
 *   several, those where there are samples */

/**
 * @typedef {object} Trust
 * @property {{level: 'good' | 'warn', text: string, remedy: string}[]} lines  the block in plain words
 * @property {number} samples
 * @property {number} lost
 * @property {number} complete
 * @property {number} repaired
 * @property {number} truncated
 */

/**
 * A function's text (src/view/listing/listing.h). Lines stand in Model.sources.
 * @typedef {object} Listing
 * @property {number} function
 * @property {number} module
 * @property {string[]} notes
 * @property {number[]} files  indexes into Model.sources, the function's own first
 * @property {ListingPlace[]} places
 * @property {Insn[]} insns
 */
/** @typedef {{function: string, key: number, source: number, line: number, column: number, inlined: boolean}} ListingPlace */
/** @typedef {{addr: number, len: number, kind: number, text: string, target: number, place: number, nplaces: number, part: boolean}} Insn */
/** @typedef {{path: string, found: string, why: string, first: number, total: number, lines: (string | null)[]}} SourceFile  null: a line that is left out */

/**
 * What is looked at. All filters hold at once.
 * @typedef {object} Query
 * @property {number} from  ns; 0 and 0: everything
 * @property {number} to
 * @property {number[] | null} threads  indexes; null: all
 * @property {string} focus  regular expressions on brief and full names, "" none
 * @property {string} ignore
 * @property {string} hide
 * @property {Transform[]} transforms  in the order the reader applied them
 * @property {boolean} noInline
 * @property {boolean} noKernel
 * @property {string} [measure]  of a session of memory; '': the session's own
 * @property {boolean} [plumbing]  of a session of memory: keep what stands between program and allocator
 * @property {number} [at]  of a session of memory: what was live at this moment; 0 the end (memory.js)
 * @property {number} [since]  likewise: compare with what was live at this moment; 0 no comparison
 * @property {boolean} generics  names with type parameters folded are one function when false
 */

/**
 * Changes to the stacks:
 *   focus      only what is below function f (it becomes the root)
 *   drop       samples that pass f are left out
 *   merge      f's frames are taken out, their time goes to the callers
 *   recursion  runs of f calling itself, directly or through others, are one frame
 *   crate      runs of frames of f's crate are one frame, named after the crate; without f: of
 *              every crate
 *   fold       frames of a class are taken out; name: 'std' | 'runtime' | 'panic' | 'kernel'
 * @typedef {object} Transform
 * @property {'focus' | 'drop' | 'merge' | 'recursion' | 'crate' | 'fold'} kind
 * @property {number} [f]  key of a function
 * @property {string} [name]
 */

/**
 * A call tree in columns; node 0 is "all". Parents come before children; children of a node are
 * in drawing order (heaviest first, or by time) through first and next.
 * @typedef {object} Tree
 * @property {number} n
 * @property {Int32Array} parent
 * @property {Uint32Array} key   of the view: see View.name
 * @property {Uint32Array} depth
 * @property {Float64Array} self
 * @property {Float64Array} total
 * @property {Float64Array} samples
 * @property {Int32Array} first
 * @property {Int32Array} next
 * @property {Float64Array} start  where the box begins, in weight (or in ns: time-ordered)
 * @property {number} weight  of everything in scope: what shares are fractions of
 * @property {boolean} timeOrdered
 * @property {number} [slot]  time-ordered: so many samples are put together, their order is lost
 * @property {number} [cut]   deeper frames are left out; 0: none are
 */

/**
 * @typedef {object} Row
 * @property {number} key
 * @property {Share} self
 * @property {Share} total
 * @property {boolean} tied  with the next row, by self
 */

/** @typedef {'function' | 'line' | 'file' | 'crate' | 'module' | 'thread' | 'process'} By */

export {};
