/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* All facts of a binary: opens it once and asks each part. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor/binary_priv.h"

static void open_symbols(struct as_binary *b, const char *path)
{
	AS_CLEANUP(as_close_autop) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	AS_CLEANUP(as_free_autop) char *real = realpath(path, NULL);
	struct as_symmod_spec spec = {.fd = fd, .path = real ? real : path};

	/* without it there is no debug information to judge; the code is there all the same */
	if (fd >= 0)
		(void)as_symmod_open(&spec, &b->symbols, NULL);
}

int as_binary_facts_read(const char *path, struct as_binary_facts *ret, struct as_error *err)
{
	struct as_binary b;
	int r = as_binary_open(path, &b, err);

	if (r < 0)
		return r;
	memset(ret, 0, sizeof *ret);
	ret->path = as_xstrdup(path);
	ret->arch = as_elf_arch(b.elf);
	ret->size_bytes = as_elf_size(b.elf);
	as_binary_code(&b);
	for (size_t i = 0; i < b.ncode; i++)
		ret->text_bytes += b.code[i].code.n;
	open_symbols(&b, path);
	as_binary_linked(&b, ret);
	as_binary_debug(&b, ret);
	as_binary_fdes(&b);
	as_binary_functions(&b);
	as_binary_debug_share(&b, ret);
	as_binary_judge_code(&b, ret);
	as_binary_big_frames(&b, ret);
	as_binary_unwind_gaps(&b, ret);
	as_binary_close(&b);
	return AS_OK;
}

void as_binary_facts_clear(struct as_binary_facts *f)
{
	char *owned[] = {f->path,          f->debug_file,
			 f->split_example, f->rustc,
			 f->gcc,           f->clang,
			 f->linker,        f->flags,
			 f->unopt_example, f->without_fde_example};

	for (size_t i = 0; i < AS_ARRAY_LEN(owned); i++)
		free(owned[i]);
	for (size_t i = 0; i < f->nneeded; i++)
		free(f->needed[i]);
	for (size_t i = 0; i < f->nframes; i++)
		free(f->frame[i].name);
	memset(f, 0, sizeof *f);
}
