/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * In-target code that does nothing but count: calls of each hooked function, and returns, in the shared
 * memory where the rings would be: calls[id], returns[RETURNS + id]. hook_count.c puts the head before it
 * (abi/rt.h). It reads fs:0 and gs:0, as a real runtime does, so that a thread without them does not survive.
 */
#define RETURNS 4096

	.section .rodata
	.globl hook_call, hook_count, hook_code_end

	.macro add_one base
	movq	8(%r11), %r10			/* hook.home */
	movq	16(%r10), %r10			/* home.rings */
	pushq	%rcx
	movzwl	16(%r11), %ecx			/* hook.id */
	lock incq \base(%r10,%rcx,8)
	popq	%rcx
	.endm

	.balign 16
hook_call:
	movq	%fs:0, %r10
	movq	%gs:0, %r10
	add_one	0
	pushq	%r11
	call	*(%r11)
	popq	%r11
	add_one	(RETURNS * 8)
	ret

	.balign 16
hook_count:
	add_one	0
	jmp	*(%r11)
hook_code_end:
	.byte 0
	.section .note.GNU-stack, "", @progbits
