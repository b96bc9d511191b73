/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Stacks as nodes. What a walk finds depends on the words of memory it reads and nothing else, so
 * a stack that was captured before is the same when all those words are. Three ways, cheapest
 * first; 1 and 3 are exact, 2 is as far as 64 bits tell:
 *
 * 1. The last stack with this innermost frame (its slot and return address), as a flat list of
 *    words to compare: half a nanosecond a frame.
 * 2. One of the others with this innermost frame, by a hash of what is now in the places where the
 *    first of them had its words: the stack itself where its words are in the same places, else
 *    the one to compare as in 1.
 * 3. Node by node: the last node with this frame, and its parents as long as memory holds what
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
	return &c->node[index & (AS_RT_NODES - 1)];
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
	if (number <= c->stack_base || c->stack_count - number >= RT_STACKS ||
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

/* The path of this hash; else one that may be written in its place. */
static struct rt_path *path_at(struct rt_context *c, uint64_t hash)
{
	struct rt_path *p = c->path[hash >> 40 & (RT_PATH_SETS - 1)];
	uint32_t oldest = 0;
	for (uint32_t i = 0; i < RT_PATH_WAYS; i++) {
		if (p[i].hash == hash)
			return &p[i];
		if (p[i].number < p[oldest].number)
			oldest = i;
	}
	return &p[oldest];
}

/* A stack captured before, by ways 1 and 2; 0: none. Its words are on the thread's own stack. */
static inline uint32_t find_stack(struct rt_context *c, const struct rt_frame *frame)
{
	uint64_t slot = (uintptr_t)&frame->ra;
	if (RT_UNLIKELY(slot < c->own_lo || slot > c->own_last))
		return 0;
	struct rt_leaf *leaf = &c->leaf[probe_place(slot, frame->ra) & (RT_LEAVES - 1)];
	const struct rt_stack *s, *last = stack_of(c, leaf->last, frame);
	if (RT_LIKELY(last && !leaf->varied) && same_stack(c, last, frame))
		return last->node;
	const struct rt_stack *shape = stack_of(c, leaf->shape, frame);
	if (shape && shape->last_avma <= c->own_last) {
		uint64_t hash = hash_words(c, shape, frame);
		const struct rt_path *p = path_at(c, hash);
		if (p->hash == hash && p->number > c->stack_base) {
			leaf->varied = p->number != leaf->last;
			leaf->last = p->number;
			if (p->node)
				return p->node;
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

static bool same_places(struct rt_context *c, const struct rt_stack *a,
			const struct rt_stack *b)
{
	const struct rt_pair *p = &c->pair[a->pairs & (RT_PAIRS - 1)];
	const struct rt_pair *q = &c->pair[b->pairs & (RT_PAIRS - 1)];
	if (a->npairs != b->npairs || a->needs_fp != b->needs_fp)
		return false;
	for (uint32_t i = 0; i < a->npairs; i++)
		if (p[i].avma != q[i].avma)
			return false;
	return true;
}

/* Keeps the stack of a node for find_stack. */
static void keep_stack(struct rt_context *c, const struct rt_frame *frame, uint32_t node)
{
	struct rt_stack s = {.slot = (uintptr_t)&frame->ra, .ra = frame->ra, .node = node};
	const struct rt_node *n = node_at(c, node);
	if (!node || node & AS_RT_NODE_ONCE || s.slot < c->own_lo || s.slot > c->own_last)
		return;
	s.needs_fp = n->flags & RT_NODE_NEEDS_FP;
	s.fp = n->fp;
	if (!add_pairs(c, &s) || s.last_avma > c->own_last)
		return;
	struct rt_leaf *leaf = &c->leaf[probe_place(s.slot, s.ra) & (RT_LEAVES - 1)];
	uint32_t number = ++c->stack_count;
	*stack_at(c, number) = s;
	leaf->last = number;
	const struct rt_stack *shape = stack_of(c, leaf->shape, frame);
	if (!shape || shape->last_avma > c->own_last) {
		leaf->shape = number;
		shape = stack_at(c, number);
	}
	uint64_t hash = hash_words(c, shape, frame);
	*path_at(c, hash) =
		(struct rt_path){hash, number, same_places(c, shape, &s) ? node : 0};
}

/* All nodes forgotten, here and by the reader. */
static bool reset(struct rt_context *c)
{
	const uint64_t w[2] = {0, 0};
	c->need_reset = true;
	if (!as_rt_flush_all(c))
		return false;
	c->nnodes = 1;
	c->stack_base = c->stack_count;
	for (uint32_t i = 0; i < RT_CHILD_SETS; i++)
		for (uint32_t j = 0; j < RT_CHILD_WAYS; j++)
			c->child[i][j] = 0;
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
	uint64_t h = s->slot * MIX_SLOT + s->ra * MIX_RA + parent * MIX_PARENT;
	uint32_t *set = c->child[h >> 53], tag = (uint32_t)(h >> 32) << RT_NODE_TAG_SHIFT;
	uint32_t free = (uint32_t)(h >> 29) & (RT_CHILD_WAYS - 1);
	for (uint32_t i = 0; i < RT_CHILD_WAYS; i++) {
		uint32_t at = set[i] & (AS_RT_NODES - 1);
		if (!at)
			free = i;
		if (!at || (set[i] ^ tag) >> RT_NODE_TAG_SHIFT)
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
					   .parent = (uint16_t)parent,
					   .fp_off = s->fp_off,
					   .flags = flags};
	set[free] = at | tag;
	c->nnodes = at + 1;
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
		c->probe[probe_place(s->slot, s->ra)] = (uint16_t)id;
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

static void begin_walk(struct as_rt_walk *w, const struct rt_frame *frame)
{
	uint64_t slot = (uintptr_t)&frame->ra;
	*w = (struct as_rt_walk){
		.pc = frame->ra, .sp = slot + 8, .fp = frame->fp, .slot = slot};
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

/* Way 3. */
static __attribute__((noinline)) uint32_t capture_nodes(struct rt_capture *k,
							const struct rt_frame *frame)
{
	struct rt_context *c = k->c;
	struct walk walk = {0};
	uint32_t last;
	uint32_t at = probe(c, (uintptr_t)&frame->ra, frame->ra, frame->fp);
	if (at && verify(k, at, frame->fp, &last))
		return at;
	begin_walk(&walk.w, frame);
	walk_down(k, &walk);
	if (c->nnodes + walk.nseen + RT_ROOT_DEPTH >= AS_RT_NODES) {
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
	keep_stack(c, frame, node);
	return node;
}
