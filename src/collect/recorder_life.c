/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Processes and threads of a recording. Numbers are reused by the kernel, ids are not: an ended
 * thread keeps its number only until the next fork that reports it, or a sample much later than
 * its end (then the fork record was lost).
 */
#include "collect/recorder_priv.h"

#include <stdio.h>
#include <string.h>

#include "base/sys.h"
#include "symbol/perfmap.h"

#define REUSE_NS 100000000ull

static uint32_t string_id(struct as_recorder *r, const char *s)
{
	return as_session_string(r->w, s, strlen(s));
}

/* The thread's name as the kernel has it now; 0 when it is gone. */
static uint32_t name_from_proc(struct as_recorder *r, pid_t pid, pid_t tid)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	char path[80];

	snprintf(path, sizeof path, "/proc/%d/task/%d/comm", (int)pid, (int)tid);
	if (as_read_file(path, 256, &b, NULL) < 0)
		return 0;
	if (b.len && b.p[b.len - 1] == '\n')
		b.len--;
	return b.len ? as_session_string(r->w, b.p, b.len) : 0;
}

static uint32_t current_proc(const struct as_recorder *r, pid_t pid)
{
	const uint64_t *slot = as_map64_get(&r->proc_by_pid, (uint32_t)pid);

	return slot ? (uint32_t)*slot : AS_NO_ID;
}

static uint32_t current_thread(const struct as_recorder *r, pid_t tid)
{
	const uint64_t *slot = as_map64_get(&r->thr_by_tid, (uint32_t)tid);

	return slot ? (uint32_t)*slot : AS_NO_ID;
}

static uint32_t add_process(struct as_recorder *r, uint64_t time_ns, pid_t pid, uint32_t parent,
			    uint32_t name)
{
	uint32_t id = (uint32_t)r->procs.n;

	as_vec_push(&r->procs,
		    (struct as_rec_proc){
			    .pid = pid, .parent = parent, .name = name, .start_ns = time_ns});
	*as_map64_put(&r->proc_by_pid, (uint32_t)pid, NULL) = id;
	as_write_process(
		r->w, &(struct as_rec_process){.id = id,
					       .pid = (uint64_t)pid,
					       .parent = parent == AS_NO_ID ? 0 : parent + 1ull,
					       .start_ns = time_ns,
					       .name = name});
	return id;
}

static uint32_t add_thread(struct as_recorder *r, uint64_t time_ns, uint32_t process, pid_t tid,
			   uint32_t name)
{
	uint32_t id = (uint32_t)r->thrs.n;

	as_vec_push(&r->thrs,
		    (struct as_rec_thr){
			    .tid = tid, .process = process, .name = name, .start_ns = time_ns});
	r->procs.v[process].live_threads++;
	*as_map64_put(&r->thr_by_tid, (uint32_t)tid, NULL) = id;
	r->last_thr = AS_NO_ID;
	as_write_thread(r->w, &(struct as_rec_thread){.id = id,
						      .process = process,
						      .tid = (uint64_t)tid,
						      .start_ns = time_ns,
						      .name = name});
	return id;
}

/* Samples have shown it before: it is the same one. One that was added already is another program. */
uint32_t as_recorder_add_process(struct as_recorder *r, uint64_t time_ns, pid_t pid,
				 uint32_t parent, const char *name)
{
	uint32_t id = current_proc(r, pid);

	if (id != AS_NO_ID && !r->procs.v[id].added) {
		r->procs.v[id].added = true;
		return id;
	}
	if (id != AS_NO_ID)
		r->procs.v[id].replaced = true;
	r->last_thr = AS_NO_ID;
	id = add_process(r, time_ns, pid, parent, string_id(r, name));
	r->procs.v[id].added = true;
	return id;
}

/* Of threads with one number the caller tells the later one later, but may tell it late. */
uint32_t as_recorder_add_thread(struct as_recorder *r, uint64_t time_ns, uint32_t process,
				pid_t tid, const char *name)
{
	uint32_t id = current_thread(r, tid);

	if (id == AS_NO_ID || r->thrs.v[id].process != process || r->thrs.v[id].added ||
	    r->thrs.v[id].start_ns > time_ns + REUSE_NS)
		id = add_thread(r, time_ns, process, tid, string_id(r, name));
	r->thrs.v[id].added = true;
	return id;
}

static bool is_stale(bool ended, uint64_t end_ns, uint64_t time_ns)
{
	return ended && time_ns > end_ns + REUSE_NS;
}

static uint32_t get_process(struct as_recorder *r, uint64_t time_ns, pid_t pid)
{
	uint32_t id = current_proc(r, pid);

	if (id != AS_NO_ID && !is_stale(r->procs.v[id].ended, r->procs.v[id].end_ns, time_ns))
		return id;
	return add_process(r, time_ns, pid, AS_NO_ID, name_from_proc(r, pid, pid));
}

uint32_t as_rec_thread(struct as_recorder *r, uint64_t time_ns, pid_t pid, pid_t tid)
{
	uint32_t id, process;

	if (r->last_thr != AS_NO_ID && r->last_tid == tid && !r->thrs.v[r->last_thr].ended)
		return r->last_thr;
	id = current_thread(r, tid);
	if (id == AS_NO_ID || is_stale(r->thrs.v[id].ended, r->thrs.v[id].end_ns, time_ns) ||
	    r->procs.v[r->thrs.v[id].process].pid != pid ||
	    r->procs.v[r->thrs.v[id].process].replaced) {
		uint32_t name;

		process = get_process(r, time_ns, pid);
		name = name_from_proc(r, pid, tid);
		id = add_thread(r, time_ns, process, tid,
				name ? name : r->procs.v[process].name);
	}
	r->last_tid = tid;
	r->last_thr = id;
	return id;
}

void as_recorder_fork(struct as_recorder *r, uint64_t time_ns, pid_t ppid, pid_t pid, pid_t tid)
{
	uint32_t parent = current_proc(r, ppid), process = current_proc(r, pid);

	if (pid == tid && process != AS_NO_ID && r->procs.v[process].added &&
	    !r->procs.v[process].ended && r->procs.v[process].start_ns >= time_ns)
		return; /* told late: it was added meanwhile */
	if (pid == tid) {
		process = add_process(r, time_ns, pid, parent,
				      parent == AS_NO_ID ? 0 : r->procs.v[parent].name);
	} else {
		process = get_process(r, time_ns, pid);
	}
	add_thread(r, time_ns, process, tid, r->procs.v[process].name);
}

void as_recorder_name(struct as_recorder *r, uint64_t time_ns, pid_t pid, pid_t tid,
		      const char *name, bool exec)
{
	uint32_t id = as_rec_thread(r, time_ns, pid, tid);
	struct as_rec_thr *t = &r->thrs.v[id];
	uint32_t s = name ? string_id(r, name) : name_from_proc(r, pid, tid);

	if (exec) {
		r->procs.v[t->process].name = s;
		as_write_exec(r->w, &(struct as_rec_exec){.time_ns = time_ns,
							  .process = t->process,
							  .name = s});
	}
	if (!s || s == t->name)
		return;
	t->name = s;
	if (pid == tid)
		r->procs.v[t->process].name = s;
	as_write_name(r->w, &(struct as_rec_name){.time_ns = time_ns, .thread = id, .name = s});
}

void as_recorder_exit(struct as_recorder *r, uint64_t time_ns, pid_t pid, pid_t tid)
{
	uint32_t id = current_thread(r, tid);
	struct as_rec_proc *p;
	struct as_rec_thr *t;

	/* exits are told late: another thread may have the number by now */
	if (id == AS_NO_ID || r->thrs.v[id].ended || time_ns < r->thrs.v[id].start_ns)
		return;
	t = &r->thrs.v[id];
	p = &r->procs.v[t->process];
	t->ended = true;
	t->end_ns = time_ns;
	if (p->live_threads)
		p->live_threads--;
	if (!p->live_threads) {
		p->ended = true;
		p->end_ns = time_ns;
		as_rec_keep_jit(r, pid);
	}
	as_write_exit(r->w, &(struct as_rec_exit){
				    .time_ns = time_ns, .thread = id, .process_too = p->ended});
}

static bool has_jit(struct as_recorder *r, pid_t pid)
{
	as_vec_foreach (m, &r->mods) {
		if (m->kind == AS_MODULE_JIT && m->pid == pid)
			return true;
	}
	return false;
}

/* Innermost namespace's number of pid: the last one of the NSpid line. */
static int namespace_pid(pid_t pid)
{
	AS_CLEANUP(as_buf_clear) struct as_buf b = {0};
	const char *p;
	char path[64];
	int v = 0;

	snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	if (as_read_file(path, 1 << 20, &b, NULL) < 0)
		return pid;
	p = strstr(as_buf_str(&b), "\nNSpid:");
	if (!p)
		return pid;
	for (p += 7; *p && *p != '\n'; p++) {
		if (*p == '\t')
			v = 0;
		else if (*p >= '0' && *p <= '9' && v < 100000000)
			v = v * 10 + (*p - '0');
	}
	return v ? v : pid;
}

void as_rec_keep_jit(struct as_recorder *r, pid_t pid)
{
	uint32_t process = current_proc(r, pid);
	struct as_perfmap *map = NULL;
	char root[64];

	if (process == AS_NO_ID || r->procs.v[process].jit_read || !has_jit(r, pid))
		return;
	r->procs.v[process].jit_read = true;
	snprintf(root, sizeof root, "/proc/%d/root", (int)pid);
	if (as_perfmap_load(root, namespace_pid(pid), &map, NULL) < 0 &&
	    as_perfmap_load("", pid, &map, NULL) < 0)
		return;
	as_vec_push(&r->jits, (struct as_rec_jit){(uint32_t)pid, map});
}
