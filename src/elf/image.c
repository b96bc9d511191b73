/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The bytes of an object file, safe against a file that shrinks while we read it.
 *
 * Small files are read. Large ones are mapped privately: a debug binary of a gigabyte must not
 * be copied to read a few units of it. Touching a mapped page past the new end raises SIGBUS;
 * so does an I/O error below the mapping. The guard is one process-wide SIGBUS handler: when
 * the faulting address lies in one of our mappings it puts a page of zeros there, marks the
 * mapping as cut and returns; the reader goes on with zeros, which its bounds checks treat as
 * damaged input. Every other SIGBUS goes to the handler that was there before. This is the one
 * piece of process-wide state of this folder: a handler cannot have less. Slots are claimed
 * with a compare-and-swap; `base` is published last and withdrawn first, so the handler never
 * sees half a slot. When all slots are taken the file is read instead.
 */
#include "elf/elf_priv.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/sys.h"

#define NSLOTS        512
#define SLOT_CLAIMED  1 /* no page starts there */
#define UNGUARDED_MAX (256u << 20)

static struct guard_slot {
	_Atomic uintptr_t base; /* 0 free, SLOT_CLAIMED, else start of the mapping */
	_Atomic size_t len;
	_Atomic bool cut;
} slots[NSLOTS];
static struct sigaction previous;
static uintptr_t page_mask;
/* previous, page_mask: written under it */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool patch_page(uintptr_t at)
{
	for (size_t i = 0; i < NSLOTS; i++) {
		struct guard_slot *s = &slots[i];
		/* pairs with the release store in guard_add */
		uintptr_t base = atomic_load_explicit(&s->base, memory_order_acquire);
		size_t len = atomic_load_explicit(&s->len, memory_order_relaxed);

		if (base <= SLOT_CLAIMED || at < base || at - base >= len)
			continue;
		atomic_store_explicit(&s->cut, true, memory_order_relaxed);
		return mmap((void *)(at & page_mask), ~page_mask + 1, PROT_READ,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
	}
	return false;
}

static void on_sigbus(int sig, siginfo_t *si, void *uc)
{
	int saved = errno;

	if (si->si_code > 0 && patch_page((uintptr_t)si->si_addr)) {
		errno = saved;
		return;
	}
	errno = saved;
	if (previous.sa_flags & SA_SIGINFO) {
		previous.sa_sigaction(sig, si, uc);
	} else if (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN) {
		/* the faulting instruction runs again and meets the default action */
		signal(sig, SIG_DFL);
		if (si->si_code <= 0)
			raise(sig);
	} else {
		previous.sa_handler(sig);
	}
}

/* Called for every mapping: somebody may have put another handler in place since the last one. */
static void install(void)
{
	struct sigaction sa = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	struct sigaction now;

	pthread_mutex_lock(&lock);
	page_mask = ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
	if (sigaction(SIGBUS, NULL, &now) == 0 &&
	    !((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_sigbus)) {
		previous = now;
		sigemptyset(&sa.sa_mask);
		sigaction(SIGBUS, &sa, NULL);
	}
	pthread_mutex_unlock(&lock);
}

static int guard_add(const void *p, size_t n)
{
	install();
	for (int i = 0; i < NSLOTS; i++) {
		uintptr_t none = 0;

		if (!atomic_compare_exchange_strong_explicit(&slots[i].base, &none,
							     SLOT_CLAIMED, memory_order_acq_rel,
							     memory_order_relaxed))
			continue;
		atomic_store_explicit(&slots[i].len, n, memory_order_relaxed);
		atomic_store_explicit(&slots[i].cut, false, memory_order_relaxed);
		atomic_store_explicit(&slots[i].base, (uintptr_t)p, memory_order_release);
		return i;
	}
	return -1;
}

static int read_file(int fd, const char *name, size_t n, struct as_elf_image *img,
		     struct as_error *err)
{
	uint8_t *p = malloc(n);
	int r;

	if (!p)
		return as_fail(err, AS_E_LIMIT, ENOMEM, "no memory for the %zu bytes of '%s'",
			       n, name);
	r = as_pread_all(fd, p, n, 0);
	if (r < 0) {
		free(p);
		return as_fail(err, AS_E_IO, -r, "cannot read '%s': %s", name, strerror(-r));
	}
	*img = (struct as_elf_image){.p = p, .n = n, .guard = -1};
	return AS_OK;
}

int as_elf_image_load(int fd, const char *name, struct as_elf_image *img, struct as_error *err)
{
	struct stat st;
	void *p;
	int slot;

	if (fstat(fd, &st) < 0)
		return as_fail(err, AS_E_IO, errno, "cannot read '%s': %s", name,
			       strerror(errno));
	if (!S_ISREG(st.st_mode))
		return as_fail(err, AS_E_FORMAT, 0, "'%s' is not a regular file", name);
	if (st.st_size <= 0)
		return as_fail(err, AS_E_FORMAT, 0, "'%s' is empty", name);
	if ((uint64_t)st.st_size <= AS_ELF_READ_MAX)
		return read_file(fd, name, (size_t)st.st_size, img, err);
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return as_fail(err, AS_E_IO, errno, "cannot map '%s': %s", name,
			       strerror(errno));
	slot = guard_add(p, (size_t)st.st_size);
	if (slot < 0) {
		munmap(p, (size_t)st.st_size);
		if (st.st_size > UNGUARDED_MAX)
			return as_fail(err, AS_E_LIMIT, 0, "too many object files are open");
		return read_file(fd, name, (size_t)st.st_size, img, err);
	}
	*img = (struct as_elf_image){
		.p = p, .n = (size_t)st.st_size, .guard = slot, .mapped = true};
	return AS_OK;
}

void as_elf_image_clear(struct as_elf_image *img)
{
	if (img->mapped) {
		atomic_store_explicit(&slots[img->guard].base, SLOT_CLAIMED,
				      memory_order_release);
		munmap((void *)(uintptr_t)img->p, img->n);
		atomic_store_explicit(&slots[img->guard].base, 0, memory_order_release);
	} else {
		free((void *)(uintptr_t)img->p);
	}
	*img = (struct as_elf_image){.guard = -1};
}

bool as_elf_image_cut(const struct as_elf_image *img)
{
	return img->mapped &&
	       atomic_load_explicit(&slots[img->guard].cut, memory_order_relaxed);
}

void as_elf_image_advise_away(const struct as_elf_image *img)
{
	if (img->mapped)
		(void)madvise((void *)(uintptr_t)img->p, img->n, MADV_DONTNEED); /* a hint */
}
