/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Stacks as nodes. What a walk finds depends on the words of memory it reads and nothing else, so
 * a stack that was captured before is the same when all those words are. Four ways, cheapest
 * first; 1 and 4 are exact, 2 and 3 are as far as 64 bits tell:
 *
 * 1. The last stack with this innermost frame (its slot and return address), as a flat list of
 *    words to compare: half a nanosecond a frame.
 * 2. One of the others with this innermost frame, by a hash of what is now in the places where the
 *    first of them had its words: the stack itself where its words are in the same places, else
 *    the one to compare as in 1.
 * 3. Where stacks of this innermost frame have their words in different places: by a hash of the frames
 *    that the unwind rules lead to. Nothing is read but the stack and the rules.
 * 4. Node by node: the last node with this frame, and its parents as long as memory holds what
 *    they remember. Where it does not, one frame is unwound by the compact table and the search
 *    goes on from there. The frames passed on the way become children of what was found: known
 *    ones, mostly, else new nodes.
 */
#include "rt/pairs.h"
#include "rt/rt_priv.h"
#include "rt/walk.h"

/* Odd numbers without pattern (from the golden ratio and square roots). */
#define MIX_SLOT   0x9e3779b97f4a7c15ull
#define MIX_RA     0xbf58476d1ce4e5b9ull
#define MIX_PARENT 0x94d049bb133111ebull
#define MIX_PATH   0xd6e8feb86659fd93ull

/* ---- which memory can be read ---- */

/*
 * Asks the kernel, without any effect: it copies the set before it finds that there is no such
 * way to change a mask (the method of Abseil's AddressIsReadable).
 */
static bool page_readable(const struct rt_context *c, uint64_t page)
{
	if (c->control->flags & (AS_RT_NO_PROBE | AS_RT_NO_SYSCALLS))
		return false;
	return rt_syscall(RT_SYS_SIGPROCMASK, ~0ull, page, 0, 8) != -RT_EFAULT;
}

/*
 * The thread's own stack, when sp is on it: everything from sp's page to where the stack ends is
 * readable. Thread libraries put the thread's descriptor (fs) at the end of the stack, and a page
 * that cannot be read at its other end, so that no other stack can be taken for it.
 */
static void find_own_stack(struct rt_context *c, uint64_t sp)
{
	uint64_t stack_end = c->control->stack_end_avma, end = 0, lo = rt_page(sp);
	if (c->own_tries > 64)
		return;
	c->own_tries++;
	if (sp < stack_end)
		end = stack_end;
	if (sp < c->fs && (!end || c->fs < end))
		end = c->fs & ~7ull;
	if (!end || end - sp > 1u << 20)
		return;
	if (!(c->control->flags & (AS_RT_NO_PROBE | AS_RT_NO_SYSCALLS))) {
		for (uint64_t page = lo; page < end; page += RT_PAGE)
			if (!page_readable(c, page))
				return;
	} else if (end != stack_end) {
		return;
	}
	c->own_lo = lo; /* in this order: at no time does the range hold more than is so */
	RT_BARRIER();
	c->own_last = end - 8;
}

/* sp's stack is about to be read: makes own_* hold it, or starts other_* anew. */
static void enter_stack(struct rt_context *c, uint64_t sp)
{
	if (RT_LIKELY(sp >= c->own_lo && sp <= c->own_last))
		return;
	if (c->own_lo > c->own_last) {
		find_own_stack(c, sp);
		if (c->own_lo <= c->own_last)
			return;
	} else if (sp < c->own_lo && c->own_lo - sp < 1u << 20) {
		/* deeper than ever, unless a page between cannot be read: then it is another */
		uint64_t lo = c->own_lo;
		while (lo > sp && page_readable(c, lo - RT_PAGE))
			lo -= RT_PAGE;
		if (lo <= sp) {
			c->own_lo = lo;
			return;
		}
	}
	c->other_last = 0;
	c->other_lo = rt_page(sp);
	RT_BARRIER();
	c->other_last = c->other_lo + RT_PAGE - 8;
}

bool as_rt_readable(struct rt_context *c, uint64_t avma)
{
	if (avma >= c->other_lo && avma <= c->other_last)
		return true;
	uint64_t first = rt_page(avma), last = rt_page(avma + 7);
	if (last < first)
		return false;
	for (uint64_t page = first; page <= last; page += RT_PAGE)
		if (!page_readable(c, page))
			return false;
	if (c->other_lo < c->other_last && first == c->other_last + 8) {
		c->other_last = last + RT_PAGE - 8;
	} else if (first > c->other_last || last + RT_PAGE < c->other_lo) {
		c->other_last = 0;
		RT_BARRIER();
		c->other_lo = first;
		RT_BARRIER();
		c->other_last = last + RT_PAGE - 8;
	}
	return true;
}

/* ---- rules ---- */

static struct as_rt_rule rule_of(struct rt_capture *k, uint64_t pc, bool exact)
{
	struct rt_context *c = k->c;
	uint64_t avma = pc - !exact;
	struct rt_rule *e = &c->rule[(avma ^ avma >> 10) & (RT_RULES - 1)];
	if (RT_LIKELY(e->avma == avma))
		return (struct as_rt_rule){.w0 = e->w0, .w1 = e->w1, .known = true};
	struct as_rt_rule r = as_rt_find_rule(c->control, c->modules_seq, avma, exact);
	if (r.known && !k->shared) {
		e->avma = 0;
		RT_BARRIER();
		e->w0 = r.w0;
		e->w1 = r.w1;
		RT_BARRIER();
		e->avma = avma;
	}
	return r;
}

/* What a node of this rule has to remember, besides slot and return address. */
static uint16_t flags_of(const struct as_rt_rule *r, int16_t *ret_off)
{
	uint16_t f = 0;
	*ret_off = (int16_t)(r->w0 >> 16);
	switch (r->w0 & 0xff) {
	case AS_UT_CFA_NONE:
		*ret_off = -16;
		return RT_NODE_BY_FP | RT_NODE_USES_FP | RT_NODE_SAVES_FP;
	case AS_UT_CFA_FP:
		f = RT_NODE_USES_FP;
		break;
	case AS_UT_CFA_DEREF_FP:
		f = RT_NODE_USES_FP | RT_NODE_STEP;
		break;
	case AS_UT_CFA_DEREF_SP:
		f = RT_NODE_STEP;
		break;
	default:
		break;
	}
	switch (r->w0 >> 8 & 0xff) {
	case AS_UT_FP_CFA:
		return f | RT_NODE_SAVES_FP;
	case AS_UT_FP_MEM:
		return f | RT_NODE_USES_FP | RT_NODE_STEP;
	case AS_UT_FP_UNDEF:
		return f | RT_NODE_ZERO_FP;
	default:
		return f;
	}
}

/* ---- the table ---- */

static struct rt_node *node_at(struct rt_context *c, uint32_t index)
{
	return &c->node[index & (c->max_nodes - 1)];
}

static uint32_t probe_place(uint64_t slot, uint64_t ra)
{
	return (uint32_t)((slot * MIX_SLOT + ra * MIX_RA) >> 50);
}

static bool same_frame(const struct rt_node *n, uint64_t slot, uint64_t ra, uint64_t fp)
{
	return n->slot == slot && n->ra == ra &&
	       (!(n->flags & RT_NODE_NEEDS_FP) || n->fp == fp);
}

/* The last node of this frame, whatever its parents; 0: none. */
static uint32_t probe(struct rt_context *c, uint64_t slot, uint64_t ra, uint64_t fp)
{
	uint32_t i = c->probe[probe_place(slot, ra)];
	return i < c->nnodes && same_frame(node_at(c, i), slot, ra, fp) ? i : 0;
}

/* Is p what comes after n, by a step? Moves *fp to p's. */
static bool stepped_to(struct rt_capture *k, const struct rt_node *n, const struct rt_node *p,
		       uint64_t *fp)
{
	struct as_rt_walk w = {.pc = n->ra, .sp = n->slot + 8, .fp = *fp, .slot = n->slot};
	struct as_rt_rule r = rule_of(k, n->ra, false);
	if (as_rt_step(k->c, &w, &r) != AS_RT_STEP_CALLER || w.slot != p->slot || w.pc != p->ra)
		return false;
	*fp = w.fp;
	return true;
}

/*
 * Does memory still hold what the chain from node `first` on remembers? fp: rbp in its frame.
 * False: *ret_last is the last node of which it is so.
 */
static bool verify(struct rt_capture *k, uint32_t first, uint64_t fp, uint32_t *ret_last)
{
	struct rt_context *c = k->c;
	const struct rt_node *n = node_at(c, first);
	uint32_t at = first;
	/* beyond that many frames the rest is taken for granted */
	for (uint32_t i = 0; n->parent && i < RT_DEPTH_MAX; i++) {
		const struct rt_node *p = node_at(c, n->parent);
		if (RT_UNLIKELY(n->flags & (RT_NODE_STEP | RT_NODE_CUT | RT_NODE_ZERO_FP))) {
			if (n->flags & RT_NODE_STEP && !stepped_to(k, n, p, &fp))
				goto differs;
			if (n->flags & RT_NODE_ZERO_FP)
				fp = 0;
			if (n->flags & RT_NODE_CUT)
				fp = p->fp;
		}
		if (!rt_readable(c, p->slot) || rt_word(p->slot) != p->ra)
			goto differs;
		if (n->flags & RT_NODE_LOADS_FP) {
			uint64_t from = p->slot + 8 + (uint64_t)(int64_t)n->fp_off;
			if (!rt_read(c, from, &fp))
				goto differs;
		}
		if (p->flags & RT_NODE_NEEDS_FP && p->fp != fp)
			goto differs;
		at = n->parent;
		n = p;
	}
	return true;
differs:
	*ret_last = at;
	return false;
}

/* ---- whole stacks ---- */

static struct rt_stack *stack_at(struct rt_context *c, uint32_t number)
{
	return &c->stack[number & (RT_STACKS - 1)];
}

/* Stack `number` when it is kept still and of this innermost frame. */
static inline struct rt_stack *stack_of(struct rt_context *c, uint32_t number,
					const struct rt_frame *frame)
{
	struct rt_stack *s = stack_at(c, number);
	if (number <= c->stack_base || s->number != number ||
	    c->pair_count - s->pairs > RT_PAIRS || s->slot != (uintptr_t)&frame->ra ||
	    s->ra != frame->ra)
		return 0;
	return s;
}

static inline bool same_stack(struct rt_context *c, const struct rt_stack *s,
			      const struct rt_frame *frame)
{
	const struct rt_pair *p = &c->pair[s->pairs & (RT_PAIRS - 1)], *end = p + s->npairs;
	uint64_t differs = 0;
	if ((s->needs_fp && s->fp != frame->fp) || s->last_avma > c->own_last)
		return false;
	/* all of them can be read, and a branch for each would take longer than the rest */
	for (; end - p >= 4; p += 4)
		differs |=
			(rt_word(p[0].avma) ^ p[0].value) | (rt_word(p[1].avma) ^ p[1].value) |
			(rt_word(p[2].avma) ^ p[2].value) | (rt_word(p[3].avma) ^ p[3].value);
	for (; p < end; p++)
		differs |= rt_word(p->avma) ^ p->value;
	return !differs;
}

/* Of what is now in the places of `shape`, and of its innermost frame. */
static uint64_t hash_words(struct rt_context *c, const struct rt_stack *shape,
			   const struct rt_frame *frame)
{
	const struct rt_pair *p = &c->pair[shape->pairs & (RT_PAIRS - 1)];
	uint64_t h[4] = {shape->slot, shape->ra, shape->needs_fp ? frame->fp : 0,
			 shape->npairs};
	uint32_t i = 0;
	/* four sums at a time: one multiplication after the other would be most of the time */
	for (; i + 4 <= shape->npairs; i += 4) {
		h[0] = (h[0] + rt_word(p[i].avma)) * MIX_SLOT;
		h[1] = (h[1] + rt_word(p[i + 1].avma)) * MIX_RA;
		h[2] = (h[2] + rt_word(p[i + 2].avma)) * MIX_PARENT;
		h[3] = (h[3] + rt_word(p[i + 3].avma)) * MIX_PATH;
	}
	for (; i < shape->npairs; i++)
		h[i & 3] = (h[i & 3] + rt_word(p[i].avma)) * MIX_SLOT;
	uint64_t a = h[0] * MIX_RA + h[1], b = h[2] * MIX_PATH + h[3];
	a = (a ^ a >> 31) * MIX_PARENT + (b ^ b >> 29) * MIX_SLOT;
	return a ^ a >> 32;
}

static uint32_t path_set(const struct rt_context *c, uint64_t hash)
{
	return (uint32_t)(hash >> 40) & (c->path_sets - 1);
}

static struct rt_path *find_path(struct rt_context *c, uint64_t hash)
{
	struct rt_path *p = c->path[path_set(c, hash)];
	for (uint32_t i = 0; i < RT_PATH_WAYS; i++)
		if (p[i].hash == hash)
			return &p[i];
	return 0;
}

/* Twice as many sets, each path in the one it belongs to. */
static void grow_paths(struct rt_context *c)
{
	uint32_t before = c->path_sets;
	c->path_sets = 2 * before;
	c->npaths = 0;
	for (uint32_t set = 0; set < before; set++)
		for (uint32_t i = 0; i < RT_PATH_WAYS; i++) {
			struct rt_path *p = &c->path[set][i], *to = &c->path[set + before][i];
			*to = (struct rt_path){0};
			if (path_set(c, p->hash) == set)
				continue;
			*to = *p;
			*p = (struct rt_path){0};
		}
}

/* In place of the one with this hash, else of one that is void, else of any. */
static void put_path(struct rt_context *c, uint64_t hash, uint32_t number, uint32_t node)
{
	if (c->npaths >= 2 * c->path_sets && c->many && c->path_sets < RT_PATH_SETS)
		grow_paths(c);
	struct rt_path *set = c->path[path_set(c, hash)], *to = find_path(c, hash);
	for (uint32_t i = 0; !to && i < RT_PATH_WAYS; i++)
		if (set[i].node ? set[i].number != c->nodes_number
				: set[i].number <= c->stack_base)
			to = &set[i];
	if (!to)
		to = &set[hash >> 20 & (RT_PATH_WAYS - 1)];
	*to = (struct rt_path){hash, number, node};
	c->npaths++;
}

static struct rt_leaf *leaf_at(struct rt_context *c, const struct rt_frame *frame)
{
	return &c->leaf[probe_place((uintptr_t)&frame->ra, frame->ra) & (RT_LEAVES - 1)];
}

/* A stack captured before, by ways 1 and 2; 0: none. Its words are on the thread's own stack. */
static inline uint32_t find_stack(struct rt_context *c, const struct rt_frame *frame)
{
	uint64_t slot = (uintptr_t)&frame->ra;
	if (RT_UNLIKELY(slot < c->own_lo || slot > c->own_last))
		return 0;
	struct rt_leaf *leaf = leaf_at(c, frame);
	const struct rt_stack *s, *last = stack_of(c, leaf->last, frame);
	if (RT_LIKELY(last && !leaf->varied) && same_stack(c, last, frame))
		return last->node;
	const struct rt_stack *shape = stack_of(c, leaf->shape, frame);
	if (shape && shape->last_avma <= c->own_last) {
		const struct rt_path *p = find_path(c, hash_words(c, shape, frame));
		if (p && p->node && p->number == c->nodes_number) {
			leaf->varied = !last || last->node != p->node;
			return p->node;
		}
		if (p && !p->node) {
			leaf->varied = p->number != leaf->last;
			leaf->last = p->number;
			s = stack_of(c, p->number, frame);
			if (s && same_stack(c, s, frame))
				return s->node;
		}
	}
	if (last && leaf->varied && same_stack(c, last, frame)) {
		leaf->varied = false;
		return last->node;
	}
	return 0;
}

/* Adds the words of node's chain; false: too many, or more than words decides. */
static bool add_pairs(struct rt_context *c, struct rt_stack *s)
{
	const struct rt_node *n = node_at(c, s->node);
	/* in one piece */
	if (RT_PAIRS - (c->pair_count & (RT_PAIRS - 1)) < RT_PAIRS_MAX)
		c->pair_count = (c->pair_count | (RT_PAIRS - 1)) + 1;
	s->pairs = c->pair_count;
	struct rt_pair *to = &c->pair[s->pairs & (RT_PAIRS - 1)];
	for (; n->parent; n = node_at(c, n->parent)) {
		const struct rt_node *p = node_at(c, n->parent);
		if (n->flags & RT_NODE_STEP || s->npairs + 2u > RT_PAIRS_MAX)
			return false;
		to[s->npairs++] = (struct rt_pair){p->slot, p->ra};
		if (p->slot > s->last_avma)
			s->last_avma = p->slot;
		if (n->flags & RT_NODE_LOADS_FP)
			to[s->npairs++] = (struct rt_pair){
				p->slot + 8 + (uint64_t)(int64_t)n->fp_off, p->fp};
	}
	c->pair_count += s->npairs;
	return true;
}

/* Whether the words that decide a node's stack lie where those of `shape` do. */
static bool has_shape(struct rt_context *c, uint32_t node, const struct rt_stack *shape)
{
	const struct rt_node *n = node_at(c, node);
	const struct rt_pair *p = &c->pair[shape->pairs & (RT_PAIRS - 1)],
			     *end = p + shape->npairs;
	if (shape->needs_fp != !!(n->flags & RT_NODE_NEEDS_FP))
		return false;
	for (; n->parent; n = node_at(c, n->parent)) {
		uint64_t slot = node_at(c, n->parent)->slot;
		if (n->flags & RT_NODE_STEP || p == end || p++->avma != slot)
			return false;
		if (n->flags & RT_NODE_LOADS_FP &&
		    (p == end || p++->avma != slot + 8 + (uint64_t)(int64_t)n->fp_off))
			return false;
	}
	return p == end;
}

static void begin_walk(struct as_rt_walk *w, const struct rt_frame *frame)
{
	uint64_t slot = (uintptr_t)&frame->ra;
	*w = (struct as_rt_walk){
		.pc = frame->ra, .sp = slot + 8, .fp = frame->fp, .slot = slot};
}

/* Of the frames that the rules lead to. False: they do not end at the root of the thread's own stack. */
static bool hash_frames(struct rt_capture *k, const struct rt_frame *frame, uint64_t *ret)
{
	struct as_rt_walk w;
	uint64_t h = MIX_PATH;
	begin_walk(&w, frame);
	for (uint32_t i = 0; i < RT_DEPTH_MAX; i++) {
		struct as_rt_rule r = rule_of(k, w.pc, false);
		h = (h ^ (w.slot * MIX_SLOT + w.pc)) * MIX_RA;
		h ^= h >> 29;
		switch (as_rt_step(k->c, &w, &r)) {
		case AS_RT_STEP_CALLER:
			break;
		case AS_RT_STEP_SIGNAL:
			return false;
		case AS_RT_STEP_END:
			*ret = h * MIX_PARENT;
			*ret ^= *ret >> 32;
			return w.end == AS_END_ROOT;
		}
	}
	return false;
}

/* A stack captured before, by way 3; 0: none. */
static __attribute__((noinline)) uint32_t find_frames(struct rt_capture *k,
						      const struct rt_frame *frame)
{
	uint64_t hash;
	if (!hash_frames(k, frame, &hash))
		return 0;
	const struct rt_path *p = find_path(k->c, hash);
	return p && p->node && p->number == k->c->nodes_number ? p->node : 0;
}

/* Keeps the stack of a node for the cheaper ways. */
static void keep_stack(struct rt_capture *k, const struct rt_frame *frame, uint32_t node)
{
	struct rt_context *c = k->c;
	struct rt_stack s = {.slot = (uintptr_t)&frame->ra, .ra = frame->ra, .node = node};
	const struct rt_node *n = node_at(c, node);
	uint64_t hash;
	if (!node || node & AS_RT_NODE_ONCE || s.slot < c->own_lo || s.slot > c->own_last)
		return;
	struct rt_leaf *leaf = leaf_at(c, frame);
	const struct rt_stack *shape = stack_of(c, leaf->shape, frame);
	if (shape && shape->last_avma > c->own_last)
		shape = 0;
	if (shape && has_shape(c, node, shape)) {
		leaf->varied = true;
		put_path(c, hash_words(c, shape, frame), c->nodes_number, node);
		return;
	}
	s.needs_fp = n->flags & RT_NODE_NEEDS_FP;
	s.fp = n->fp;
	if (!add_pairs(c, &s) || s.last_avma > c->own_last)
		return;
	s.number = ++c->stack_count;
	*stack_at(c, s.number) = s;
	leaf->last = s.number;
	if (!shape) {
		leaf->shape = s.number;
		leaf->walked = false;
		put_path(c, hash_words(c, stack_at(c, s.number), frame), c->nodes_number, node);
		return;
	}
	put_path(c, hash_words(c, shape, frame), s.number, 0);
	if (hash_frames(k, frame, &hash)) {
		leaf->walked = true;
		put_path(c, hash, c->nodes_number, node);
	}
}

void as_rt_forget_nodes(struct rt_context *c)
{
	for (uint32_t i = 0; i < c->child_sets; i++)
		for (uint32_t j = 0; j < RT_CHILD_WAYS; j++)
			c->child[i][j] = 0;
	c->child_sets = RT_CHILD_SETS_LEAST;
	if (!c->path_sets)
		c->path_sets = RT_PATH_SETS_LEAST;
	c->node = c->many ? c->many->node : c->node0;
	c->child = c->many ? c->many->child : c->child0;
	c->path = c->many ? c->many->path : c->path0;
	c->max_nodes = c->many ? AS_RT_NODES : RT_NODES_LEAST;
	c->nnodes = 1;
	c->stack_base = c->stack_count;
	c->nodes_number++;
}

/* What names a child in its parent, and its place in the table. */
static uint64_t hash_child(uint64_t slot, uint64_t ra, uint32_t parent)
{
	return slot * MIX_SLOT + ra * MIX_RA + parent * MIX_PARENT;
}

#define TAG_OF(hash) ((uint32_t)((hash) >> 32) << AS_RT_NODE_BITS)

static uint32_t *child_set(struct rt_context *c, uint64_t hash)
{
	return c->child[(uint32_t)(hash >> 46) & (c->child_sets - 1)];
}

/* Where the set is full another one is forgotten: it would become two nodes. */
static void put_child(struct rt_context *c, uint64_t hash, uint32_t at)
{
	uint32_t *set = child_set(c, hash), free = (uint32_t)(hash >> 29) & (RT_CHILD_WAYS - 1);
	for (uint32_t i = 0; i < RT_CHILD_WAYS; i++)
		if (!(set[i] & (AS_RT_NODES - 1)))
			free = i;
	set[free] = at | TAG_OF(hash);
}

static void grow_children(struct rt_context *c)
{
	for (uint32_t i = 0; i < c->child_sets; i++)
		for (uint32_t j = 0; j < RT_CHILD_WAYS; j++)
			c->child[i][j] = 0;
	c->child_sets *= 2;
	for (uint32_t i = 1; i < c->nnodes; i++) {
		const struct rt_node *n = node_at(c, i);
		put_child(c, hash_child(n->slot, n->ra, n->parent), i);
	}
}

/* What follows on the first 2 MiB of a table is touched only when the table is as large as that: there a
 * large page costs a hundredth of the small ones, and at most doubles what is resident. */
static void wish_large_pages(void *table, uint64_t bytes)
{
	const uint64_t large = 2 << 20, hugepage = 14;
	(void)rt_syscall(RT_SYS_MADVISE, (uintptr_t)table + large, bytes - large, hugepage, 0);
}

/* Memory for many nodes, which a fork's child does not find, like all of a context. NULL: there is none. */
static struct rt_nodes *map_many(struct rt_context *c)
{
	const uint64_t rw = 3, private_anonymous_noreserve = 0x4022, wipe_on_fork = 18,
		       dont_dump = 16;
	if (c->no_more || !rt_has_syscalls(c->control))
		return 0;
	int64_t at = rt_syscall6(RT_SYS_MMAP, 0, sizeof(struct rt_nodes), rw,
				 private_anonymous_noreserve, ~0ull, 0);
	c->no_more = at < 0 && at > -4096;
	if (c->no_more)
		return 0;
	if (rt_syscall(RT_SYS_MADVISE, (uint64_t)at, sizeof(struct rt_nodes), wipe_on_fork,
		       0)) {
		(void)rt_syscall(RT_SYS_MUNMAP, (uint64_t)at, sizeof(struct rt_nodes), 0, 0);
		c->no_more = true;
		return 0;
	}
	(void)rt_syscall(RT_SYS_MADVISE, (uint64_t)at, sizeof(struct rt_nodes), dont_dump, 0);
	struct rt_nodes *many = (struct rt_nodes *)(uintptr_t)at;
	wish_large_pages(many->node, sizeof many->node);
	wish_large_pages(many->path, sizeof many->path);
	return many;
}

/* Room for many more nodes; those that are there stay. False: there is none. */
static bool grow_nodes(struct rt_context *c)
{
	struct rt_nodes *many = c->many ? 0 : map_many(c);
	if (!many)
		return false;
	for (uint32_t i = 1; i < c->nnodes; i++)
		many->node[i] = c->node0[i];
	for (uint32_t i = 0; i < c->path_sets; i++)
		for (uint32_t j = 0; j < RT_PATH_WAYS; j++)
			many->path[i][j] = c->path0[i][j];
	c->many = many;
	c->node = many->node;
	c->child = many->child;
	c->path = many->path;
	c->max_nodes = AS_RT_NODES;
	grow_children(c);
	return true;
}

/* All nodes forgotten, here and by the reader. */
static bool reset(struct rt_context *c)
{
	const uint64_t w[2] = {0, 0};
	c->need_reset = true;
	if (!as_rt_flush_all(c))
		return false;
	as_rt_forget_nodes(c);
	c->need_reset = !rt_emit(c, AS_RT_REC_RESET, 0, w, 1);
	if (c->tables && !c->need_reset)
		c->tables->resets++;
	return !c->need_reset;
}

struct told {
	uint32_t id, parent;
	uint64_t avma;
	uint32_t flags, end;
};

static bool tell_node(struct rt_context *c, const struct told *t)
{
	const uint64_t w[4] = {0, t->id | (uint64_t)t->parent << 32, t->avma,
			       t->flags | (uint64_t)t->end << 32};
	return rt_emit(c, AS_RT_REC_NODE, 0, w, 2);
}

static uint32_t told_flags(const struct rt_seen *s)
{
	return (s->exact ? AS_RT_NODE_EXACT : 0) |
	       (s->flags & RT_NODE_BY_FP ? AS_RT_NODE_BY_FP : 0) |
	       (s->flags & RT_NODE_CUT ? AS_RT_NODE_TRUNCATED : 0);
}

/* The child s of node parent: known or new. 0: the reader could not be told. */
static uint32_t child_of(struct rt_context *c, uint32_t parent, const struct rt_seen *s)
{
	uint16_t flags = s->flags;
	if (flags & (RT_NODE_USES_FP | RT_NODE_STEP))
		flags |= RT_NODE_NEEDS_FP;
	if (parent && node_at(c, parent)->flags & RT_NODE_NEEDS_FP && !(flags & RT_NODE_CUT)) {
		if (flags & RT_NODE_SAVES_FP)
			flags |= RT_NODE_LOADS_FP;
		else if (!(flags & RT_NODE_ZERO_FP))
			flags |= RT_NODE_NEEDS_FP;
	}
	uint64_t h = hash_child(s->slot, s->ra, parent);
	uint32_t *set = child_set(c, h), tag = TAG_OF(h);
	for (uint32_t i = 0; i < RT_CHILD_WAYS; i++) {
		uint32_t at = set[i] & (AS_RT_NODES - 1);
		if (!at || (set[i] ^ tag) >> AS_RT_NODE_BITS)
			continue;
		const struct rt_node *n = node_at(c, at);
		if (n->parent == parent && n->flags == flags &&
		    same_frame(n, s->slot, s->ra, s->fp))
			return at;
	}
	uint32_t at = c->nnodes;
	const struct told t = {at, parent, s->ra, told_flags(s), s->end};
	if (!tell_node(c, &t)) {
		c->need_reset = true;
		return 0;
	}
	*node_at(c, at) = (struct rt_node){.slot = s->slot,
					   .ra = s->ra,
					   .fp = s->fp,
					   .parent = parent,
					   .fp_off = s->fp_off,
					   .flags = flags};
	c->nnodes = at + 1;
	if (c->nnodes > c->child_sets * (RT_CHILD_WAYS / 2) && c->many &&
	    c->child_sets < RT_CHILD_SETS)
		grow_children(c);
	else
		put_child(c, h, at);
	return at;
}

/* ---- a walk ---- */

struct walk {
	struct as_rt_walk w;
	uint32_t nseen;
	uint32_t once;   /* so many innermost frames depend on a signal frame */
	uint32_t parent; /* node the outermost frame seen was called from; 0: none */
};

static void see(struct rt_context *c, struct walk *k, uint16_t flags, int16_t fp_off)
{
	c->seen[k->nseen++] = (struct rt_seen){.slot = k->w.slot,
					       .ra = k->w.pc,
					       .fp = k->w.fp,
					       .fp_off = fp_off,
					       .flags = flags,
					       .exact = k->w.uc != 0};
}

/* The frames from node first on to before `last` are as remembered: seen. k->w: at last. */
static void see_chain(struct rt_capture *cap, struct walk *k, uint32_t first, uint32_t last)
{
	struct rt_context *c = cap->c;
	const uint16_t own = RT_NODE_STEP | RT_NODE_USES_FP | RT_NODE_SAVES_FP |
			     RT_NODE_ZERO_FP | RT_NODE_BY_FP;
	uint64_t fp = k->w.fp;
	for (uint32_t at = first; at != last && k->nseen < RT_DEPTH_MAX;) {
		const struct rt_node *n = node_at(c, at), *p = node_at(c, n->parent);
		if (n->flags & RT_NODE_CUT)
			break;
		see(c, k, n->flags & own, n->fp_off);
		if (n->flags & RT_NODE_STEP)
			(void)stepped_to(cap, n, p, &fp);
		else if (n->flags & RT_NODE_SAVES_FP)
			(void)rt_read(c, p->slot + 8 + (uint64_t)(int64_t)n->fp_off, &fp);
		else if (n->flags & RT_NODE_ZERO_FP)
			fp = 0;
		k->w = (struct as_rt_walk){
			.pc = p->ra, .sp = p->slot + 8, .fp = fp, .slot = p->slot};
		at = n->parent;
	}
}

/* Down to a known node, the root, or the depth limit. */
static void walk_down(struct rt_capture *cap, struct walk *k)
{
	struct rt_context *c = cap->c;
	while (k->nseen < RT_DEPTH_MAX) {
		uint32_t last, at = 0;
		if (!k->w.uc)
			at = probe(c, k->w.slot, k->w.pc, k->w.fp);
		if (at) {
			if (verify(cap, at, k->w.fp, &last)) {
				k->parent = at;
				return;
			}
			see_chain(cap, k, at, last);
			if (k->nseen == RT_DEPTH_MAX)
				break;
		}
		struct as_rt_rule r = rule_of(cap, k->w.pc, k->w.uc != 0);
		int16_t off;
		uint16_t flags = flags_of(&r, &off);
		see(c, k, flags, off);
		struct rt_seen *s = &c->seen[k->nseen - 1];
		switch (as_rt_step(c, &k->w, &r)) {
		case AS_RT_STEP_END:
			s->end = (uint8_t)k->w.end;
			/* no caller: nothing to verify */
			s->flags &=
				(uint16_t) ~(RT_NODE_STEP | RT_NODE_USES_FP | RT_NODE_BY_FP);
			return;
		case AS_RT_STEP_SIGNAL:
			k->once = k->nseen + 1;
			break;
		case AS_RT_STEP_CALLER:
			break;
		}
	}
	c->seen[k->nseen - 1].flags = RT_NODE_CUT;
	c->seen[k->nseen - 1].end = AS_END_DEPTH;
}

/* Keeps the outermost frames of a stack that was walked to its root. */
static void keep_root(struct rt_context *c, const struct walk *k)
{
	const struct rt_seen *s = &c->seen[k->nseen - 1];
	if (k->parent || k->once || !k->nseen || s->end != AS_END_ROOT ||
	    s->slot > c->own_last || s->slot < c->own_lo)
		return;
	c->nroot = 0;
	for (uint32_t i = 0; i < RT_ROOT_DEPTH && i < k->nseen; i++)
		c->root[c->nroot++] = s[-(int32_t)i];
}

/* The node below which a cut stack hangs: of the thread's outermost frames, if they are still there. */
static uint32_t root_node(struct rt_context *c, const struct walk *k)
{
	uint32_t at = 0;
	if (!c->nroot || k->w.sp >= c->root[c->nroot - 1].slot || k->w.sp < c->own_lo)
		return 0;
	for (uint32_t i = 0; i < c->nroot; i++)
		if (!rt_readable(c, c->root[i].slot) ||
		    rt_word(c->root[i].slot) != c->root[i].ra)
			return 0;
	for (uint32_t i = 0; i < c->nroot; i++)
		if (!(at = child_of(c, at, &c->root[i])))
			return 0;
	return at;
}

/* Nodes for all frames seen, outermost first. Returns the innermost one's id. */
static uint32_t make_nodes(struct rt_context *c, const struct walk *k)
{
	uint32_t id = k->parent, i = k->nseen, once = 0;
	if (i && c->seen[i - 1].flags & RT_NODE_CUT)
		id = root_node(c, k);
	while (i > k->once) {
		const struct rt_seen *s = &c->seen[--i];
		id = child_of(c, id, s);
		if (!id)
			return 0;
		c->probe[probe_place(s->slot, s->ra)] = id;
	}
	if (i) {
		once = c->once_id;
		c->once_id = once + i;
	}
	while (i) {
		const struct rt_seen *s = &c->seen[--i];
		uint32_t own = (once + i) | AS_RT_NODE_ONCE;
		const struct told t = {own, id, s->ra, told_flags(s), s->end};
		if (!tell_node(c, &t))
			return 0;
		id = own;
	}
	return id;
}

/* ---- captures ---- */

void as_rt_capture_begin(struct rt_capture *k, struct rt_context *c,
			 const struct rt_frame *frame)
{
	uint64_t sp = (uintptr_t)frame, before = c->capture_sp;
	k->c = c;
	k->shared = false;
	if (RT_UNLIKELY(before)) {
		/* Above it on the thread's own stack: that one was left by longjmp. */
		bool stale = sp > before && before >= c->own_lo && sp <= c->own_last;
		k->shared = !stale;
		if (stale)
			c->need_reset = true;
	}
	if (!k->shared)
		c->capture_sp = sp;
	RT_BARRIER();
	enter_stack(c, sp);
	uint32_t seq = __atomic_load_n(&c->control->modules_seq, __ATOMIC_ACQUIRE);
	if (RT_UNLIKELY(seq != c->modules_seq) && !k->shared) {
		for (uint32_t i = 0; i < RT_RULES; i++)
			c->rule[i].avma = 0;
		c->modules_seq = seq;
		c->need_reset = true;
	}
}

/* Without the table: each frame is told as it is passed, innermost first. */
static __attribute__((noinline)) uint32_t capture_shared(struct rt_capture *k,
							 const struct rt_frame *frame)
{
	struct rt_context *c = k->c;
	struct as_rt_walk w;
	uint32_t first;
	__asm__ volatile("movl %2, %0\n\txaddl %0, %1"
			 : "=&r"(first), "+m"(c->once_id)
			 : "i"(RT_DEPTH_MAX + 1)
			 : "memory", "cc");
	begin_walk(&w, frame);
	for (uint32_t i = 0; i < RT_DEPTH_MAX; i++) {
		bool exact = w.uc != 0;
		uint64_t pc = w.pc;
		struct as_rt_rule r = rule_of(k, pc, exact);
		bool ended = as_rt_step(c, &w, &r) == AS_RT_STEP_END;
		bool cut = !ended && i + 1 == RT_DEPTH_MAX;
		uint32_t id = (first + i) | AS_RT_NODE_ONCE;
		uint32_t parent = ended || cut ? 0 : (first + i + 1) | AS_RT_NODE_ONCE;
		uint32_t flags = exact ? AS_RT_NODE_EXACT : 0;
		if (!ended && r.known && (r.w0 & 0xff) == AS_UT_CFA_NONE)
			flags |= AS_RT_NODE_BY_FP;
		if (cut)
			flags |= AS_RT_NODE_TRUNCATED;
		const struct told t = {id, parent, pc, flags,
				       ended ? w.end : (cut ? AS_END_DEPTH : 0)};
		if (!tell_node(c, &t))
			return 0;
		if (ended || cut)
			break;
	}
	return first | AS_RT_NODE_ONCE;
}

/* The last node of the frame is tried before its frames: where data lie in the places that ways 1 and 2
 * look at, it is mostly the one. Where it was not the last time, it is tried now and then. */
static uint32_t find_near(struct rt_capture *k, const struct rt_frame *frame)
{
	struct rt_context *c = k->c;
	struct rt_leaf *leaf = leaf_at(c, frame);
	uint32_t last, node = 0;
	bool frames_first = leaf->walked && leaf->far && c->serial & 15;
	if (frames_first && (node = find_frames(k, frame)))
		return node;
	uint32_t at = probe(c, (uintptr_t)&frame->ra, frame->ra, frame->fp);
	if (at && verify(k, at, frame->fp, &last)) {
		leaf->far = false;
		return at;
	}
	if (leaf->walked && !frames_first)
		node = find_frames(k, frame);
	leaf->far = node != 0;
	return node;
}

/* Way 4. */
static __attribute__((noinline)) uint32_t capture_nodes(struct rt_capture *k,
							const struct rt_frame *frame)
{
	struct rt_context *c = k->c;
	struct walk walk = {0};
	uint32_t known = find_near(k, frame);
	if (known)
		return known;
	begin_walk(&walk.w, frame);
	walk_down(k, &walk);
	if (c->nnodes + walk.nseen + RT_ROOT_DEPTH >= c->max_nodes && !grow_nodes(c)) {
		if (!reset(c))
			return 0;
		walk = (struct walk){0};
		begin_walk(&walk.w, frame);
		walk_down(k, &walk);
	}
	keep_root(c, &walk);
	return make_nodes(c, &walk);
}

uint32_t as_rt_capture(struct rt_capture *k, const struct rt_frame *frame)
{
	struct rt_context *c = k->c;
	if (RT_UNLIKELY(k->shared))
		return capture_shared(k, frame);
	if (RT_UNLIKELY(c->need_reset) && !reset(c))
		return 0;
	uint32_t node = find_stack(c, frame);
	if (RT_LIKELY(node != 0))
		return node;
	node = capture_nodes(k, frame);
	keep_stack(k, frame, node);
	return node;
}
