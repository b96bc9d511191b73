/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Records of the ring buffer become samples of the recorder. Frames the kernel could not place
 * are looked up in the image as it is now; a process whose mappings the kernel lacked is put
 * right (healing) before its sample is read.
 */
#include <stdlib.h>
#include <string.h>
#include "base/sys.h"
#include "collect/engine_kernel_priv.h"

#define HEAL_COST 50          /* at most a 50th of the time is spent on it, per process */
#define HEAL_NS   50000000ull /* between two readings of a process's maps */
#define MAX_LATER 256

static void kernel_frames(struct as_kernel *k, const uint64_t *word, size_t n)
{
	for (size_t i = 0; i < n; i++)
		as_vec_push(&k->frames,
			    (struct as_raw_frame){.addr = word[i],
						  .module = AS_KERNEL_FRAME,
						  .flags = AS_FRAME_KERNEL |
							   (i ? 0 : AS_FRAME_EXACT)});
}

static struct as_raw_frame user_frame(const struct as_process *p, uint64_t word)
{
	uint32_t module = (uint32_t)(word >> AS_BPF_FRAME_MODULE_SHIFT);
	bool exact = word & AS_BPF_FRAME_EXACT;
	struct as_raw_frame f = {.addr = word & AS_BPF_FRAME_ADDR_MASK,
				 .module = module - 1,
				 .flags = exact ? AS_FRAME_EXACT : 0};

	if (module)
		return f;
	const struct as_mapping *m = p ? as_image_find(p, f.addr - !exact) : NULL;
	f.module = m ? m->module : AS_NO_MODULE;
	f.addr -= m ? m->bias : 0;
	return f;
}

static void user_frames(struct as_kernel *k, const struct as_process *p, const uint64_t *word,
			size_t n)
{
	for (size_t i = 0; i < n; i++) {
		as_vec_push(&k->user, user_frame(p, word[i]));
		/* only a signal lets code be interrupted below the leaf */
		if (i && k->user.v[i].flags & AS_FRAME_EXACT)
			k->user.v[i - 1].flags |= AS_FRAME_SIGNAL;
	}
}

/* The kernel walked with mappings that are not (or no longer) those of the process. */
static void heal(struct as_kernel *k, const struct as_bpf_sample *s)
{
	struct as_kproc *p = as_kmaps_find(&k->maps, (pid_t)s->pid);

	if (s->end != AS_END_NOMAP && s->end != AS_END_NOPROC &&
	    !(s->flags & AS_BPF_SAMPLE_VMA))
		return;
	if (!p || p->dirty || s->time_ns < p->published_ns)
		return;
	if (s->generation != p->generation) {
		as_kmaps_touch(&k->maps, p); /* an exec or fork came after what we published */
		return;
	}
	if (k->now_ns - p->healed_ns < AS_MAX(HEAL_NS, p->heal_wait_ns))
		return;
	uint64_t start = as_now_ns();
	p->healed_ns = k->now_ns;
	(void)as_image_read_maps(k->env.image, p->pid, k->now_ns, NULL); /* it may be gone */
	p->heal_wait_ns = (as_now_ns() - start) * HEAL_COST; /* thousands of mappings: seldom */
}

static bool well_formed(const struct as_bpf_sample *s, size_t size, const struct as_kernel *k)
{
	size_t words = (size_t)s->nkernel + s->nuser +
		       (s->flags & AS_BPF_SAMPLE_STATE ? AS_BPF_STATE_WORDS : 0);

	return size - sizeof(*s) >= (size_t)s->words * 8 && s->words >= words &&
	       s->cpu < (uint32_t)k->bpf.ncpus && s->end < AS_END_COUNT_;
}

static void complete(struct as_kernel *k, const struct as_bpf_sample *s, const uint64_t *state,
		     struct as_raw_sample *raw)
{
	struct as_kstack st = {.pid = raw->pid,
			       .tid = raw->tid,
			       .reg = state,
			       .end = raw->end,
			       .frame = k->user.v,
			       .n = k->user.n};

	if (s->by_fp) {
		st.n = as_krepair_check(&k->repair, st.pid, st.frame, st.n, s->by_fp);
		if (st.n < k->user.n) {
			k->user.n = st.n;
			st.cut = true;
			raw->end = st.end = AS_END_NOCFI;
		}
	}
	if (raw->end == AS_END_NOCFI && !st.cut && st.n &&
	    as_krepair_is_root(&k->repair, &st.frame[st.n - 1])) {
		raw->end = AS_END_ROOT;
		return;
	}
	if (!(s->flags & AS_BPF_SAMPLE_STATE))
		return;
	if (s->flags & AS_BPF_SAMPLE_COPY) {
		st.copy = state + AS_BPF_STATE_WORDS;
		st.ncopy = s->words - (size_t)s->nkernel - s->nuser - AS_BPF_STATE_WORDS;
	}
	if (!as_krepair_try(&k->repair, &st, k->now_ns))
		return;
	k->user.n = 0;
	as_vec_reserve(&k->user, st.n);
	memmove(k->user.v, st.frame, st.n * sizeof(*st.frame));
	k->user.n = st.n;
	raw->end = st.end;
	raw->repaired = st.repaired;
	raw->callers = st.callers;
}

static void deliver(struct as_kernel *k, const struct as_bpf_sample *s)
{
	const uint64_t *word = (const uint64_t *)(s + 1);

	heal(k, s);
	const struct as_process *p = as_image_process(k->env.image, (pid_t)s->pid);
	struct as_raw_sample raw = {.time_ns = s->time_ns,
				    .pid = (pid_t)s->pid,
				    .tid = (pid_t)s->tid,
				    .cpu = s->cpu,
				    .weight = s->weight,
				    .end = s->end,
				    .kernel = s->flags & AS_BPF_SAMPLE_KERNEL};
	k->frames.n = k->user.n = 0;
	kernel_frames(k, word, s->nkernel);
	user_frames(k, p, word + s->nkernel, s->nuser);
	complete(k, s, word + s->nkernel + s->nuser, &raw);
	size_t depth = k->options.max_depth;
	if (k->user.n > depth) {
		k->user.n = depth;
		raw.callers = 0;
		raw.end = AS_END_DEPTH;
	}
	size_t at = k->frames.n;
	as_vec_reserve(&k->frames, at + k->user.n);
	if (k->user.n)
		memcpy(k->frames.v + at, k->user.v, k->user.n * sizeof(*k->user.v));
	raw.frames = k->frames.v;
	raw.nframes = at + k->user.n;
	as_recorder_sample(k->env.recorder, &raw);
	as_ktimers_seen(&k->timers, s->cpu, k->now_ns);
	k->delivered[s->cpu]++;
	k->samples++;
	k->ends[raw.end]++;
	k->repaired += raw.repaired;
}

int as_kernel_sample(void *ctx, void *data, size_t size)
{
	struct as_kernel *k = ctx;
	const struct as_bpf_sample *s = data;

	if (size < sizeof(*s) || s->cpu >= (uint32_t)k->bpf.ncpus)
		return 0;
	if (!well_formed(s, size, k)) {
		k->rejected[s->cpu]++;
		return 0;
	}
	/* what it lacks may have been mapped since the events were read */
	if (s->flags & AS_BPF_SAMPLE_COPY && s->time_ns > k->now_ns && k->later.n < MAX_LATER) {
		struct as_bpf_sample *copy = as_xmalloc(size);
		memcpy(copy, s, size);
		as_vec_push(&k->later, copy);
	} else {
		deliver(k, s);
	}
	return 0;
}

void as_kernel_deliver_later(struct as_kernel *k)
{
	as_vec_foreach (s, &k->later) {
		deliver(k, *s);
		free(*s);
	}
	k->later.n = 0;
}
