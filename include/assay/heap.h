/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Named moments of a program for `assay heap`: what was live then is kept, and can be compared.
 *
 *	#include <assay/heap.h>
 *
 *	load(file);
 *	assay_heap_mark("loaded");
 *	work();
 *	assay_heap_mark("worked");
 *
 * Nothing is linked: the header is all there is. A mark is a call of a function that does nothing (about
 * 1 ns); assay finds that function by its symbol, or in a stripped program by a note, and leads it
 * elsewhere while it records. The program does not notice, and runs the same where assay is not there.
 *
 * Names are cut at 48 bytes; the same name may come again. After 1,000 marks of a process further ones
 * are ignored. A mark is exact for the thread that makes it; what other threads do at the same time is
 * on one side of it or the other within 0.1 ms or so. Any thread, also in signal handlers.
 *
 * x86-64 Linux with gcc or clang; elsewhere marks are nothing. C99 and C++11.
 */
#ifndef ASSAY_HEAP_H
#define ASSAY_HEAP_H

#if defined(__x86_64__) && defined(__ELF__) && defined(__GNUC__)

/* One function in each program or library, whatever number of files include this. */
__asm__(".pushsection "
	".text.assay_heap_mark_site,\"axG\",@progbits,assay_heap_mark_site,comdat\n"
	".weak assay_heap_mark_site\n"
	".hidden assay_heap_mark_site\n"
	".type assay_heap_mark_site,@function\n"
	".p2align 4\n"
	"assay_heap_mark_site:\n"
	".cfi_startproc\n"
	"endbr64\n"
	".byte 0x0f,0x1f,0x44,0x00,0x00\n" /* a nop as long as a jump */
	"ret\n"
	".cfi_endproc\n"
	".size assay_heap_mark_site,.-assay_heap_mark_site\n"
	".popsection\n"
	".pushsection .note.assay,\"aG\",@note,assay_heap_mark_site,comdat\n"
	".balign 4\n"
	".long 6,8,1\n"
	".asciz \"assay\"\n"
	".balign 4\n"
	".quad assay_heap_mark_site-.\n"
	".popsection\n");

#ifdef __cplusplus
extern "C" {
#endif
void assay_heap_mark_site(const char *name, unsigned long bytes);
#ifdef __cplusplus
}
#endif

static inline void assay_heap_mark(const char *name)
{
	assay_heap_mark_site(name, (unsigned long)__builtin_strlen(name));
}

#else

static inline void assay_heap_mark(const char *name)
{
	(void)name;
}

#endif

#endif
