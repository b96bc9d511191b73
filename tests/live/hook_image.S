/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * In-target code that does nothing but count: calls of each hooked function, and returns, in the shared
 * memory where the rings would be: calls[id], returns[RETURNS + id]. Laid out as abi/rt.h says.
 * It reads fs:0 and gs:0, as a real runtime does, so that a thread without them does not survive.
 */
#define RETURNS 4096

	.section .rodata
	.globl hook_image, hook_image_end
	.balign 16
hook_image:
	.quad 0x3154524153534153		/* AS_RT_MAGIC */
	.long 4					/* AS_RT_VERSION */
	.long hook_image_end - hook_image
	.long call - hook_image, hook_image_end - call
	.long 0, 0
	.long 21				/* AS_RT_KINDS */
	.long 0x1000				/* context_bytes */
	.rept 2					/* entry, sampled */
	.rept 13
	.long call - hook_image
	.endr
	.long count - hook_image		/* modules */
	.long count - hook_image		/* exec: does not return */
	.long count - hook_image		/* operator new: may throw */
	.rept 5
	.long count - hook_image
	.endr
	.endr

	.macro add_one base
	movq	8(%r11), %r10			/* hook.home */
	movq	16(%r10), %r10			/* home.rings */
	pushq	%rcx
	movzwl	16(%r11), %ecx			/* hook.id */
	lock incq \base(%r10,%rcx,8)
	popq	%rcx
	.endm

	.balign 16
call:	movq	%fs:0, %r10
	movq	%gs:0, %r10
	add_one	0
	pushq	%r11
	call	*(%r11)
	popq	%r11
	add_one	(RETURNS * 8)
	ret

	.balign 16
count:	add_one	0
	jmp	*(%r11)
hook_image_end:
	.byte 0
	.section .note.GNU-stack, "", @progbits
