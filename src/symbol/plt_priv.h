/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Names of PLT entries (x86-64): "memcpy@plt" for the stub that jumps through memcpy's slot of the
 * GOT. Which slot a stub uses is read from its code, whose name the slot gets from the
 * relocations; so GNU ld's, gold's, LLD's and mold's layouts (.plt, .plt.sec, .plt.got, with
 * or without IBT) need no telling apart. Lazy entries without a jump of their own (IBT) push the
 * number of their relocation. Entries of local IFUNCs have no name.
 */
#ifndef AS_SYMBOL_PLT_PRIV_H
#define AS_SYMBOL_PLT_PRIV_H

#include <stdint.h>
#include "base/mem.h"
#include "elf/elf.h"

/* name belongs to the arena. */
typedef void (*as_plt_fn)(void *ctx, uint64_t svma, uint64_t size_bytes, const char *name);
/* In ascending order within a section. Damaged tables give fewer names. */
void as_plt_each(struct as_elf *e, struct as_arena *arena, as_plt_fn fn, void *ctx);
/* Slots of the GOT in any order: named "memcpy@got" after the symbol that the loader puts there, or
 * NULL and the address in this object that it puts there. */
typedef void (*as_plt_slot_fn)(void *ctx, uint64_t svma, const char *name, uint64_t target);
void as_plt_each_slot(struct as_elf *e, struct as_arena *arena, as_plt_slot_fn fn, void *ctx);

#endif
