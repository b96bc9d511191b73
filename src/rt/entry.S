/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The image's entries (abi/rt.h); what is before them in its head is in image.lds. A thunk comes here by a jump with r11 = &hook and
 * everything else as the patched function's caller left it: the return address is at rsp.
 */
	.section .head, "ax", @progbits
	.globl	as_rt_entries
as_rt_entries:					/* at 40 */
	.irp	name, size, count, align, heap, pointer, realloc, realloc_count, realloc_rust, resize, free, mmap, munmap, mremap, modules, exec, new, mark, prctl, syscall, exit_begins, exit, mlockall
	.long	entry_\name - as_rt_entries + 40
	.endr
	.irp	name, size, count, align, heap, pointer, realloc, realloc_count, realloc_rust, resize, free
	.long	entry_sampled_\name - as_rt_entries + 40
	.endr
	.irp	name, mmap, munmap, mremap, modules, exec
	.long	entry_\name - as_rt_entries + 40
	.endr
	.long	entry_sampled_new - as_rt_entries + 40
	.irp	name, mark, prctl, syscall, exit_begins, exit, mlockall
	.long	entry_\name - as_rt_entries + 40
	.endr

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

	.irp	name, size, count, align, heap, pointer, realloc, realloc_count, realloc_rust, resize, free, munmap, modules, mark, exit_begins, exit
	entry4	\name
	.endr
	.irp	name, size, count, align, heap, pointer, realloc, realloc_count, realloc_rust, resize
	entry4	sampled_\name
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

/*
 * With sampling: a block that was not told is freed by a jump. It is told when its key is in its bucket
 * (rt_priv.h: rt_sampled_bucket, rt_sampled_key). No function that frees has a fifth argument, and rax is
 * its result, nobody's yet.
 */
	.p2align 4
	.type	entry_sampled_free, @function
entry_sampled_free:
	.cfi_startproc
	mov	8(%r11), %r10			/* hook.home */
	mov	%rdi, %rax
	mov	%rdi, %r8
	mov	%rdi, %r9
	shr	$4, %rax
	shr	$20, %r8
	shr	$36, %r9
	mov	40(%r10), %r10			/* home.sampled */
	xor	%eax, %r8d
	xor	%r9d, %eax			/* the key */
	movzwl	%r8w, %r8d			/* the bucket */
	mov	(%r10,%r8,8), %r10
	cmp	%eax, %r10d
	je	1f
	shr	$32, %r10
	cmp	%eax, %r10d
	je	1f
	cmp	$-1, %r10d			/* AS_RT_SAMPLED_ALL */
	je	1f
	jmp	*(%r11)				/* hook.original */
1:	mov	%r11, %r8
	jmp	as_rt_sampled_free
	.cfi_endproc
	.size	entry_sampled_free, . - entry_sampled_free

/*
 * operator new: the C function calls what returns null where this one throws. What is left to the
 * original (also a call that is part of another) finds the stack and the arguments as they came.
 */
	.macro	entry_throwing name
	.p2align 4
	.type	entry_\name, @function
entry_\name:
	.cfi_startproc
	push	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	mov	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	push	%rdi
	push	%rsi
	push	%rdx
	push	%r11
	mov	%r11, %rdx
	mov	%rbp, %rcx
	call	as_rt_\name
	pop	%r11
	pop	%rdx
	pop	%rsi
	pop	%rdi
	pop	%rbp
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	test	%rax, %rax
	jz	1f
	ret
1:	jmp	*(%r11)
	.cfi_endproc
	.size	entry_\name, . - entry_\name
	.endm

	entry_throwing new
	entry_throwing sampled_new

/* A filter of system calls is about to be installed, or the time stamp counter taken away: our own calls
 * end before, and stamps are counted from where it stands. All arguments stay, also those on the stack. */
	.macro	no_syscalls
	mov	8(%r11), %r10			/* hook.home */
	mov	8(%r10), %r10			/* home.control */
	testl	$128, 72(%r10)			/* flags, AS_RT_NO_SYSCALLS */
	jnz	9f
	push	%rax
	.cfi_adjust_cfa_offset 8
	push	%rdx
	.cfi_adjust_cfa_offset 8
	rdtsc
	shl	$32, %rdx
	or	%rdx, %rax
	mov	%rax, 48(%r10)			/* stamps */
	pop	%rdx
	.cfi_adjust_cfa_offset -8
	pop	%rax
	.cfi_adjust_cfa_offset -8
	lock orl $128, 72(%r10)
9:	jmp	*(%r11)
	.endm

	.p2align 4
	.type	entry_prctl, @function
entry_prctl:
	.cfi_startproc
	cmp	$22, %edi			/* PR_SET_SECCOMP */
	je	1f
	cmp	$26, %edi			/* PR_SET_TSC */
	je	1f
	jmp	*(%r11)
1:	no_syscalls
	.cfi_endproc
	.size	entry_prctl, . - entry_prctl

	.p2align 4
	.type	entry_syscall, @function
entry_syscall:
	.cfi_startproc
	cmp	$317, %edi			/* seccomp */
	je	2f
	cmp	$157, %edi			/* prctl */
	je	1f
	cmp	$151, %edi			/* mlockall */
	je	3f
	jmp	*(%r11)
3:	or	$4, %esi
	jmp	*(%r11)
1:	cmp	$22, %esi
	je	2f
	cmp	$26, %esi
	je	2f
	jmp	*(%r11)
2:	no_syscalls
	.cfi_endproc
	.size	entry_syscall, . - entry_syscall

/* What a program locks is read in as it is used, not at once: the runtime's tables are gigabytes of addresses. */
	.p2align 4
	.type	entry_mlockall, @function
entry_mlockall:
	.cfi_startproc
	or	$4, %edi			/* MCL_ONFAULT */
	jmp	*(%r11)
	.cfi_endproc
	.size	entry_mlockall, . - entry_mlockall

	.section .note.GNU-stack, "", @progbits
