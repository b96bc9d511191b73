/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The image's entries (abi/rt.h); what is before them in its head is in image.lds. A thunk comes here by a jump with r11 = &hook and
 * everything else as the patched function's caller left it: the return address is at rsp.
 */
	.section .head, "ax", @progbits
	.globl	as_rt_entries
as_rt_entries:					/* at 40 */
	.irp	name, size, count, align, heap, pointer, realloc, realloc_count, realloc_rust, resize, free, mmap, munmap, mremap, modules, exec
	.long	entry_\name - as_rt_entries + 40
	.endr
	.long	0

	.text

/* Up to four arguments: the hook is the fifth, the C function has the caller's return address. */
	.macro	entry4 name
	.p2align 4
	.type	entry_\name, @function
entry_\name:
	.cfi_startproc
	mov	%r11, %r8
	jmp	as_rt_\name
	.cfi_endproc
	.size	entry_\name, . - entry_\name
	.endm

	.macro	entry5 name
	.p2align 4
	.type	entry_\name, @function
entry_\name:
	.cfi_startproc
	mov	%r11, %r9
	jmp	as_rt_\name
	.cfi_endproc
	.size	entry_\name, . - entry_\name
	.endm

	.irp	name, size, count, align, heap, pointer, realloc, realloc_count, realloc_rust, resize, free, munmap, modules
	entry4	\name
	.endr
	entry5	mremap
	entry5	exec

/* Six arguments: as an array, with the hook and our frame, which is like those the compiler makes. */
	.p2align 4
	.type	entry_mmap, @function
entry_mmap:
	.cfi_startproc
	push	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	mov	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	push	%r9
	push	%r8
	push	%rcx
	push	%rdx
	push	%rsi
	push	%rdi
	mov	%rsp, %rdi
	mov	%r11, %rsi
	mov	%rbp, %rdx
	call	as_rt_mmap
	leave
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_endproc
	.size	entry_mmap, . - entry_mmap

	.section .note.GNU-stack, "", @progbits
