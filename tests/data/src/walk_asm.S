/* Functions whose call-frame information is written by hand: x86-64, System V. */
#ifdef __x86_64__
	.text

/* long walk_asm_all(long n): calls each of them. */
	.globl	walk_asm_all
	.type	walk_asm_all, @function
walk_asm_all:
	.cfi_startproc
	push	%rbx
	.cfi_def_cfa_offset 16
	.cfi_offset %rbx, -16
	mov	%rdi, %rbx
	call	pushes
	add	%rax, %rbx
	call	keeps_in_rbx
	add	%rax, %rbx
	call	by_expression
	add	%rax, %rbx
	call	two_exits
	add	%rax, %rbx
	call	calls_next
	add	%rax, %rbx
	call	by_rbp
	lea	(%rax,%rbx), %rax
	pop	%rbx
	.cfi_def_cfa_offset 8
	.cfi_restore %rbx
	ret
	.cfi_endproc
	.size	walk_asm_all, .-walk_asm_all

/* A leaf whose frame grows and shrinks. */
	.type	pushes, @function
pushes:
	.cfi_startproc
	push	%rdi
	.cfi_adjust_cfa_offset 8
	push	%rsi
	.cfi_adjust_cfa_offset 8
	sub	$40, %rsp
	.cfi_adjust_cfa_offset 40
	pushfq
	.cfi_adjust_cfa_offset 8
	pop	%rax
	.cfi_adjust_cfa_offset -8
	add	$40, %rsp
	.cfi_adjust_cfa_offset -40
	pop	%rsi
	.cfi_adjust_cfa_offset -8
	pop	%rdi
	.cfi_adjust_cfa_offset -8
	mov	$1, %eax
	ret
	.cfi_endproc
	.size	pushes, .-pushes

/* The frame hangs on rbx, as in glibc's lazy binding: callees keep rbx, or say where it is. */
	.type	keeps_in_rbx, @function
keeps_in_rbx:
	.cfi_startproc
	push	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbx, 0
	mov	%rsp, %rbx
	.cfi_def_cfa_register %rbx
	and	$-64, %rsp
	sub	$128, %rsp
	call	saves_rbx
	call	pushes
	mov	%rbx, %rsp
	.cfi_def_cfa_register %rsp
	pop	%rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	ret
	.cfi_endproc
	.size	keeps_in_rbx, .-keeps_in_rbx

	.type	saves_rbx, @function
saves_rbx:
	.cfi_startproc
	push	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	push	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbx, 0
	mov	$77, %ebx
	mov	$78, %ebp
	sub	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	pushes
	add	$8, %rsp
	.cfi_adjust_cfa_offset -8
	pop	%rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	pop	%rbp
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbp
	ret
	.cfi_endproc
	.size	saves_rbx, .-saves_rbx

/* The caller's stack pointer is kept in the frame: DW_CFA_def_cfa_expression(DW_OP_breg7 8; DW_OP_deref; plus 8). */
	.type	by_expression, @function
by_expression:
	.cfi_startproc
	mov	%rsp, %rax
	.cfi_def_cfa_register %rax
	and	$-32, %rsp
	sub	$32, %rsp
	mov	%rax, 8(%rsp)
	.cfi_escape 0x0f, 0x05, 0x77, 0x08, 0x06, 0x23, 0x08
	mov	$0, %eax
	call	pushes
	mov	8(%rsp), %rsp
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_endproc
	.size	by_expression, .-by_expression

/* remember and restore */
	.type	two_exits, @function
two_exits:
	.cfi_startproc
	push	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	mov	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	sub	$48, %rsp
	test	%rdi, %rdi
	jne	1f
	.cfi_remember_state
	leave
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	ret
1:
	.cfi_restore_state
	call	pushes
	leave
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	ret
	.cfi_endproc
	.size	two_exits, .-two_exits

/* The thunk of position-independent code of old: call the next instruction, pop its address. */
	.type	calls_next, @function
calls_next:
	.cfi_startproc
	call	1f
1:
	.cfi_adjust_cfa_offset 8
	pop	%rax
	.cfi_adjust_cfa_offset -8
	mov	$5, %eax
	ret
	.cfi_endproc
	.size	calls_next, .-calls_next

/* rbp in another register's place for a while: DW_CFA_register is a rule that tables hold as reg + 0. */
	.type	by_rbp, @function
by_rbp:
	.cfi_startproc
	mov	%rbp, %r11
	.cfi_register %rbp, %r11
	mov	$9, %ebp
	lea	(%rbp,%rbp), %rax
	mov	%r11, %rbp
	.cfi_restore %rbp
	ret
	.cfi_endproc
	.size	by_rbp, .-by_rbp
#else
	.text
	.globl	walk_asm_all
	.type	walk_asm_all, %function
walk_asm_all:
	ret
#endif
	.section .note.GNU-stack,"",%progbits
